package threadgres;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Iterator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.BaseStream;
import org.postgresql.pljava.ResultSetHandle;
import org.postgresql.pljava.ResultSetProvider;
import org.postgresql.pljava.TriggerData;

/** A method that is a function of SQL. */
final class Routine {
    private static final int ROW = 1;
    private static final int SET = 2;
    private static final int SET_OF_ROWS = 3;
    private static final int TRIGGER = 4;

    /** Rows of a set are handed over when they are so many bytes. */
    private static final int PART_BYTES = 256 << 10;

    private static final Pattern BODY =
        Pattern.compile("(?:([\\w.$\\[\\]]+)\\s*=\\s*)?([\\w$]+(?:\\.[\\w$]+)*)\\.([\\w$]+)\\s*(?:\\(([^)]*)\\))?");

    private final ClassLoader loader;
    private final MethodHandle handle;
    private final Class<?>[] parameters;
    private final int kind;
    private final boolean strict;
    private final String[] columns;
    /** The method fills a row that it gets behind its arguments. */
    private final boolean receives;

    private Routine(ClassLoader loader, Method method, int kind, boolean strict, String[] columns, boolean receives)
        throws IllegalAccessException {
        this.loader = loader;
        this.kind = kind;
        this.strict = strict;
        this.columns = columns;
        this.receives = receives;
        this.parameters = method.getParameterTypes();
        MethodHandle direct = MethodHandles.lookup().unreflect(method).asFixedArity();
        this.handle = direct.asSpreader(Object[].class, parameters.length)
            .asType(MethodType.methodType(Object.class, Object[].class));
    }

    static Routine of(ClassLoader loader, Reader in) throws SQLException, IllegalAccessException {
        String body = in.text().trim();
        int kind = in.u8();
        boolean strict = in.u8() != 0;
        String[] columns = in.texts();
        int count = in.i16();
        int[] tags = new int[count];
        int[] elements = new int[count];
        for (int n = 0; n < count; n++) {
            tags[n] = in.u8();
            elements[n] = in.u8();
        }
        Matcher parts = BODY.matcher(body);
        if (!parts.matches()) {
            throw new SQLException("AS names no method: it has the form [type=]class.method[(type, ...)]", "42601");
        }
        Class<?> type;
        try {
            type = Class.forName(parts.group(2), true, loader);
        } catch (ClassNotFoundException e) {
            throw new SQLException("class \"" + parts.group(2) + "\" does not exist", "46103");
        } catch (LinkageError e) {
            throw new SQLException("class \"" + parts.group(2) + "\" can't be loaded: " + e, "46103", e);
        }
        boolean mayReceive = kind == ROW;
        Method best = null;
        int least = Integer.MAX_VALUE;
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Method method : at.getDeclaredMethods()) {
                if (!method.getName().equals(parts.group(3)) || !Modifier.isStatic(method.getModifiers())) {
                    continue;
                }
                int cost = kind == TRIGGER
                    ? trigger(method)
                    : cost(method, tags, elements, parts.group(4), mayReceive);
                if (cost >= 0 && cost < least && usable(method)) {
                    best = method;
                    least = cost;
                }
            }
        }
        if (best == null) {
            throw new SQLException(
                "class \"" + parts.group(2) + "\" has no static method \"" + parts.group(3)
                    + "\" that takes the function's parameters", "42883");
        }
        boolean receives = mayReceive && best.getParameterCount() == count + 1;
        return new Routine(loader, best, kind, strict, columns, receives);
    }

    private static boolean usable(Method method) {
        boolean open = Modifier.isPublic(method.getModifiers())
            && Modifier.isPublic(method.getDeclaringClass().getModifiers());
        try {
            method.setAccessible(true);
            return true;
        } catch (RuntimeException e) {
            return open;
        }
    }

    private static int trigger(Method method) {
        Class<?>[] types = method.getParameterTypes();
        return types.length == 1 && types[0] == TriggerData.class ? 0 : -1;
    }

    private static int cost(Method method, int[] tags, int[] elements, String explicit, boolean mayReceive) {
        Class<?>[] types = method.getParameterTypes();
        boolean receives = mayReceive && types.length == tags.length + 1 && types[tags.length] == ResultSet.class;
        if (types.length != tags.length && !receives) {
            return -1;
        }
        if (explicit != null && !matches(types, tags.length, explicit)) {
            return -1;
        }
        int sum = receives ? 0 : 1;
        for (int n = 0; n < tags.length; n++) {
            int cost = Convert.cost(tags[n], elements[n], types[n]);
            if (cost < 0) {
                return -1;
            }
            sum += cost;
        }
        return sum;
    }

    private static boolean matches(Class<?>[] types, int count, String explicit) {
        String[] names = explicit.trim().isEmpty() ? new String[0] : explicit.split(",");
        if (names.length != count && names.length != types.length) {
            return false;
        }
        for (int n = 0; n < names.length; n++) {
            String name = names[n].trim().replaceAll("\\s+", "");
            String full = types[n].getTypeName();
            if (!full.equals(name) && !full.endsWith("." + name)) {
                return false;
            }
        }
        return true;
    }

    private Object invoke(Object[] args) throws Throwable {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        if (before == loader) {
            return (Object) handle.invokeExact(args);
        }
        thread.setContextClassLoader(loader);
        try {
            return (Object) handle.invokeExact(args);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    /** Calls it for each of the rows of arguments. */
    void call(Reader in, Writer out) throws Throwable {
        int rows = in.i32();
        // A caller may want other columns than the function declares.
        String[] names = in.u8() == 0 ? columns : in.texts();
        int given = parameters.length - (receives ? 1 : 0);
        for (int n = 0; n < rows; n++) {
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedException();
            }
            Object[] args = new Object[parameters.length];
            boolean missing = false;
            for (int at = 0; at < given; at++) {
                Object value = in.value();
                missing |= value == null;
                args[at] = strict && missing ? null : Convert.to(value, parameters[at]);
            }
            if (strict && missing) {
                out.u8(0);
            } else {
                one(args, names, out);
            }
        }
    }

    private void one(Object[] args, String[] names, Writer out) throws Throwable {
        if (receives) {
            Object[] row = new Object[names.length];
            args[args.length - 1] = new Rows(names, row, true).proxy();
            Object there = invoke(args);
            if (Boolean.FALSE.equals(there)) {
                out.u8(0);
            } else {
                out.positional(row);
            }
            return;
        }
        Object result = invoke(args);
        switch (kind) {
            case SET: case SET_OF_ROWS:
                if (result != null) {
                    set(result, names);
                }
                out.u8(0);
                return;
            case ROW:
                row(result, out);
                return;
            default: out.value(result);
        }
    }

    /** A row by place, where an array of objects stands for one. */
    private static void row(Object value, Writer out) throws SQLException {
        if (value instanceof Object[]) {
            out.positional((Object[]) value);
        } else {
            out.value(value);
        }
    }

    /** Gives the rows of a set to the server, in parts. */
    private final class Parts {
        private final Writer out = new Writer();
        private int rows;

        Parts() {
            begin();
        }

        private void begin() {
            out.clear();
            out.u8(7).i32(0);
            rows = 0;
        }

        boolean isOfRows() {
            return kind == SET_OF_ROWS;
        }

        void add(Object value) throws SQLException, InterruptedException {
            if (Thread.currentThread().isInterrupted()) {
                throw new InterruptedException();
            }
            if (kind == SET_OF_ROWS) {
                row(value, out);
            } else {
                out.value(value);
            }
            rows++;
            if (out.size() >= PART_BYTES) {
                give();
            }
        }

        void give() throws SQLException {
            if (rows > 0) {
                out.setI32(1, rows);
                Bridge.ask(out);
                begin();
            }
        }
    }

    private void set(Object result, String[] names) throws Throwable {
        Parts parts = new Parts();
        if (result instanceof Iterator) {
            all((Iterator<?>) result, parts);
        } else if (result instanceof Iterable) {
            all(((Iterable<?>) result).iterator(), parts);
        } else if (result instanceof BaseStream) {
            try (BaseStream<?, ?> stream = (BaseStream<?, ?>) result) {
                all(stream.iterator(), parts);
            }
        } else if (result instanceof ResultSetProvider) {
            ResultSetProvider provider = (ResultSetProvider) result;
            try {
                for (int n = 0;; n++) {
                    Object[] row = new Object[names.length];
                    if (!provider.assignRowValues(new Rows(names, row, true).proxy(), n)) {
                        break;
                    }
                    parts.add(row);
                }
            } finally {
                provider.close();
            }
        } else if (result instanceof ResultSetHandle) {
            ResultSetHandle handed = (ResultSetHandle) result;
            try {
                rows(handed.getResultSet(), parts);
            } finally {
                handed.close();
            }
        } else if (result instanceof ResultSet) {
            rows((ResultSet) result, parts);
        } else if (result.getClass().isArray()) {
            for (int n = 0; n < Array.getLength(result); n++) {
                parts.add(Array.get(result, n));
            }
        } else {
            throw new SQLException(
                "a " + result.getClass().getName() + " is no set: it is an Iterator, Iterable, stream, array,"
                    + " ResultSet, ResultSetProvider or ResultSetHandle", "42804");
        }
        parts.give();
    }

    private static void all(Iterator<?> from, Parts parts) throws SQLException, InterruptedException {
        while (from.hasNext()) {
            parts.add(from.next());
        }
    }

    private static void rows(ResultSet from, Parts parts) throws SQLException, InterruptedException {
        while (from != null && from.next()) {
            Row row = Rows.current(from);
            parts.add(parts.isOfRows() ? row.values : row.values[0]);
        }
    }

    /** Fires it. */
    void trigger(Reader in, Writer out) throws Throwable {
        Fired fired = new Fired(in);
        invoke(new Object[] {fired});
        fired.write(out);
    }
}
