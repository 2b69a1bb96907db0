package threadgres;

/** A statement with JDBC's question marks as PostgreSQL numbers its parameters. */
final class Marks {
    final String text;
    final int count;

    private Marks(String text, int count) {
        this.text = text;
        this.count = count;
    }

    /** Marks in texts, names and comments are left alone; {@code ??} is the operator {@code ?}. */
    static Marks of(String text) {
        StringBuilder out = new StringBuilder(text.length() + 16);
        int count = 0;
        int at = 0;
        while (at < text.length()) {
            char c = text.charAt(at);
            int end = skipped(text, at, c);
            if (end > at) {
                out.append(text, at, end);
                at = end;
            } else if (c == '?' && text.startsWith("??", at)) {
                out.append('?');
                at += 2;
            } else if (c == '?') {
                out.append('$').append(++count);
                at++;
            } else {
                out.append(c);
                at++;
            }
        }
        return new Marks(out.toString(), count);
    }

    /** The end of what begins here and is no code; the beginning where it is code. */
    private static int skipped(String text, int at, char c) {
        if (c == '\'' || c == '"') {
            boolean escapes = c == '\'' && at > 0 && (text.charAt(at - 1) | 0x20) == 'e'
                && (at == 1 || !Character.isLetterOrDigit(text.charAt(at - 2)));
            int end = at + 1;
            while (end < text.length() && text.charAt(end) != c) {
                end += escapes && text.charAt(end) == '\\' ? 2 : 1;
            }
            return Math.min(end + 1, text.length());
        }
        if (text.startsWith("--", at)) {
            int end = text.indexOf('\n', at);
            return end < 0 ? text.length() : end;
        }
        if (text.startsWith("/*", at)) {
            return comment(text, at);
        }
        if (c == '$' && (at == 0 || !Character.isJavaIdentifierPart(text.charAt(at - 1)))) {
            int mark = text.indexOf('$', at + 1);
            boolean tag = mark > 0 && (mark == at + 1 || !Character.isDigit(text.charAt(at + 1)));
            for (int n = at + 1; tag && n < mark; n++) {
                tag = Character.isJavaIdentifierPart(text.charAt(n));
            }
            if (tag) {
                int end = text.indexOf(text.substring(at, mark + 1), mark + 1);
                return end < 0 ? text.length() : end + mark + 1 - at;
            }
        }
        return at;
    }

    private static int comment(String text, int at) {
        int depth = 0;
        for (int end = at; end < text.length(); end++) {
            if (text.startsWith("/*", end)) {
                depth++;
                end++;
            } else if (text.startsWith("*/", end)) {
                end++;
                if (--depth == 0) {
                    return end + 1;
                }
            }
        }
        return text.length();
    }
}
