package threadgres;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.Manifest;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Deployment descriptors of jars (ISO/IEC 9075-13, 4.11): commands to be run when a jar comes and when it goes. */
final class Deployment {
    private static final Pattern ACTIONS =
        Pattern.compile("\"BEGIN\\s+(INSTALL|REMOVE)(.*?)END\\s+\\1\\s*\"", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
    private static final Pattern IMPLEMENTOR =
        Pattern.compile("^BEGIN\\s+(\\w+)\\s+(.*?)\\s*END\\s+\\1$", Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    private Deployment() {}

    static String[] commands(byte[] jar, boolean install) throws Exception {
        List<String> commands = new ArrayList<>();
        byte[] manifest = Jars.entry(jar, "META-INF/MANIFEST.MF");
        if (manifest == null) {
            return new String[0];
        }
        Map<String, Attributes> sections = new Manifest(new ByteArrayInputStream(manifest)).getEntries();
        for (Map.Entry<String, Attributes> section : sections.entrySet()) {
            if ("true".equalsIgnoreCase(section.getValue().getValue("SQLJDeploymentDescriptor"))) {
                byte[] text = Jars.entry(jar, section.getKey());
                if (text == null) {
                    throw new SQLException("the jar has no entry " + section.getKey(), "46001");
                }
                actions(new String(text, StandardCharsets.UTF_8), install, commands);
            }
        }
        return commands.toArray(new String[0]);
    }

    private static void actions(String text, boolean install, List<String> commands) {
        Matcher actions = ACTIONS.matcher(text);
        while (actions.find()) {
            if (actions.group(1).equalsIgnoreCase("install") == install) {
                split(actions.group(2).replace("\"\"", "\""), commands);
            }
        }
    }

    /** Commands end with semicolons that stand outside of texts, names and blocks for one implementor. */
    private static void split(String text, List<String> commands) {
        int from = 0;
        char quote = 0;
        for (int at = 0; at < text.length(); at++) {
            char c = text.charAt(at);
            if (quote != 0) {
                quote = c == quote ? 0 : quote;
            } else if (c == '\'' || c == '"') {
                quote = c;
            } else if (c == '$' && text.startsWith("$$", at)) {
                int end = text.indexOf("$$", at + 2);
                at = end < 0 ? text.length() : end + 1;
            } else if (c == ';') {
                command(text.substring(from, at).trim(), commands);
                from = at + 1;
            }
        }
        command(text.substring(Math.min(from, text.length())).trim(), commands);
    }

    private static void command(String command, List<String> commands) {
        if (command.isEmpty()) {
            return;
        }
        Matcher block = IMPLEMENTOR.matcher(command);
        if (!block.find()) {
            commands.add(command);
        } else if (block.group(1).equalsIgnoreCase("PostgreSQL")) {
            commands.add(block.group(2));
        }
    }
}
