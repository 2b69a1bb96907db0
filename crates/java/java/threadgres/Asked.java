package threadgres;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A {@code Statement} or {@code PreparedStatement}. */
final class Asked implements InvocationHandler {
    private final String prepared;
    private final int places;
    private Object[] given;
    private boolean[] set;
    private final List<Object> batch = new ArrayList<>();
    private Object proxy;
    private ResultSet result;
    private long changed = -1;
    private int fetchSize;
    private int rowsMax;
    private boolean closed;

    Asked(String text) throws SQLException {
        Marks marks = text == null ? null : Marks.of(text);
        prepared = marks == null ? null : marks.text;
        places = marks == null ? 0 : marks.count;
        given = new Object[places];
        set = new boolean[places];
    }

    <T> T proxy(Class<T> face) {
        T made = Calls.proxy(face, this);
        proxy = made;
        return made;
    }

    @Override
    public Object invoke(Object self, Method method, Object[] args) throws Throwable {
        String name = method.getName();
        boolean places = args != null && args.length > 1 && args[0] instanceof Integer && name.startsWith("set");
        if (prepared != null && places) {
            give((Integer) args[0], name.equals("setNull") ? null : args[1]);
            return null;
        }
        switch (name) {
            case "executeQuery":
                run(text(args), given());
                if (result == null) {
                    throw new SQLException("the statement gives no rows", "02000");
                }
                return result;
            case "executeUpdate":
                run(text(args), given());
                return (int) Math.min(Integer.MAX_VALUE, Math.max(changed, 0));
            case "executeLargeUpdate":
                run(text(args), given());
                return Math.max(changed, 0);
            case "execute":
                run(text(args), given());
                return result != null;
            case "getResultSet": return result;
            case "getUpdateCount": return (int) changed;
            case "getLargeUpdateCount": return changed;
            case "getMoreResults":
                result = null;
                changed = -1;
                return false;
            case "addBatch":
                batch.add(prepared == null ? args[0] : given());
                return null;
            case "clearBatch":
                batch.clear();
                return null;
            case "executeBatch": return batch();
            case "clearParameters":
                given = new Object[given.length];
                set = new boolean[set.length];
                return null;
            case "close":
                closed = true;
                if (result != null) {
                    result.close();
                }
                return null;
            case "isClosed": return closed;
            case "getConnection": return Connected.connection();
            case "setFetchSize":
                fetchSize = (Integer) args[0];
                return null;
            case "getFetchSize": return fetchSize;
            case "setMaxRows":
                rowsMax = (Integer) args[0];
                return null;
            case "getMaxRows": return rowsMax;
            case "getQueryTimeout": return 0;
            case "setQueryTimeout": case "setPoolable": case "closeOnCompletion": case "clearWarnings":
            case "setEscapeProcessing": case "setFetchDirection": case "setMaxFieldSize":
                return null;
            case "getWarnings": return null;
            case "getResultSetType": return ResultSet.TYPE_FORWARD_ONLY;
            case "getResultSetConcurrency": return ResultSet.CONCUR_READ_ONLY;
            case "cancel": return null;
            default: return Calls.common(this, self, method, args);
        }
    }

    private void give(int place, Object value) throws SQLException {
        if (place < 1 || place > places) {
            throw new SQLException("the statement has " + places + " parameters, not " + place, "07009");
        }
        given[place - 1] = value;
        set[place - 1] = true;
    }

    private Object[] given() throws SQLException {
        for (int n = 0; n < set.length; n++) {
            if (!set[n]) {
                throw new SQLException("no value for parameter " + (n + 1), "07001");
            }
        }
        return given.clone();
    }

    private String text(Object[] args) throws SQLException {
        if (prepared != null) {
            return prepared;
        }
        if (args == null || !(args[0] instanceof String)) {
            throw new SQLException("no statement", "07001");
        }
        return (String) args[0];
    }

    private int[] batch() throws SQLException {
        int[] counts = new int[batch.size()];
        for (int n = 0; n < counts.length; n++) {
            Object one = batch.get(n);
            boolean text = one instanceof String;
            run(text ? (String) one : prepared, text ? new Object[0] : (Object[]) one);
            counts[n] = changed < 0 ? Statement.SUCCESS_NO_INFO : (int) changed;
        }
        batch.clear();
        return counts;
    }

    private void run(String text, Object[] values) throws SQLException {
        if (closed) {
            throw new SQLException("the statement is closed", "26000");
        }
        if (result != null) {
            result.close();
        }
        result = null;
        changed = -1;
        Writer out = new Writer();
        out.u8(1).text(text).i32(fetchSize > 0 ? fetchSize : 0).i32(values.length);
        for (Object value : values) {
            out.value(value);
        }
        Reader in = Bridge.ask(out);
        if (in.u8() == 0) {
            changed = in.i64();
            return;
        }
        String cursor = in.text();
        String[] names = in.texts();
        String[] types = in.texts();
        result = new Rows(names, types, new Fetched(cursor, names.length, in), proxy).proxy();
    }

    /** Rows of an answer, and of those after it where there is a cursor. */
    private final class Fetched implements Rows.Source {
        private final String cursor;
        private final int columns;
        private Reader in;
        private int left;
        private int taken;
        private boolean open;

        Fetched(String cursor, int columns, Reader in) {
            this.cursor = cursor;
            this.columns = columns;
            this.in = in;
            this.left = in.i32();
            this.open = !cursor.isEmpty();
        }

        @Override
        public Object[] next() throws SQLException {
            if (rowsMax > 0 && taken >= rowsMax) {
                return null;
            }
            if (left == 0 && open) {
                in = Bridge.ask(new Writer().u8(3).text(cursor).i32(Math.max(fetchSize, 1)));
                left = in.i32();
                if (left == 0) {
                    close();
                }
            }
            if (left == 0) {
                return null;
            }
            left--;
            taken++;
            Object[] row = new Object[columns];
            for (int n = 0; n < columns; n++) {
                row[n] = in.value();
            }
            return row;
        }

        @Override
        public void close() throws SQLException {
            if (open) {
                open = false;
                Bridge.ask(new Writer().u8(4).text(cursor));
            }
        }
    }

    @Override
    public String toString() {
        return prepared == null ? "Statement" : prepared + Arrays.toString(given);
    }
}
