package threadgres;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Arrays;

/** A {@code ResultSet}: over rows that come one after the other, over one row, or a row that a method fills. */
final class Rows implements InvocationHandler {
    /** Gives the next row's values, or null. */
    interface Source {
        Object[] next() throws SQLException;

        default void close() throws SQLException {}
    }

    private final String[] names;
    private final String[] types;
    private final Source source;
    private final Object statement;
    private final boolean writable;
    Object[] row;
    private int at;
    private boolean wasNull;
    private boolean closed;
    private boolean ended;

    Rows(String[] names, String[] types, Source source, Object statement) {
        this.names = names;
        this.types = types;
        this.source = source;
        this.statement = statement;
        this.writable = false;
    }

    /** Over one row. */
    Rows(String[] names, Object[] row, boolean writable) {
        this.names = names;
        this.types = null;
        this.source = null;
        this.statement = null;
        this.writable = writable;
        this.row = row;
    }

    static ResultSet of(Row row) {
        return new Rows(row.names, row.values, false).proxy();
    }

    ResultSet proxy() {
        Class<?>[] faces = {ResultSet.class};
        return (ResultSet) Proxy.newProxyInstance(Rows.class.getClassLoader(), faces, this);
    }

    /** The row on which somebody's result set stands. */
    static Row current(ResultSet of) throws SQLException {
        if (Proxy.isProxyClass(of.getClass()) && Proxy.getInvocationHandler(of) instanceof Rows) {
            Rows rows = (Rows) Proxy.getInvocationHandler(of);
            return new Row(rows.names, rows.row());
        }
        ResultSetMetaData facts = of.getMetaData();
        String[] names = new String[facts.getColumnCount()];
        Object[] values = new Object[names.length];
        for (int n = 0; n < names.length; n++) {
            names[n] = facts.getColumnLabel(n + 1);
            values[n] = of.getObject(n + 1);
        }
        return new Row(names, values);
    }

    private Object[] row() throws SQLException {
        if (closed) {
            throw new SQLException("the result set is closed", "24000");
        }
        if (row == null) {
            throw new SQLException("the result set is not on a row", "24000");
        }
        return row;
    }

    private int column(Object which) throws SQLException {
        if (which instanceof Integer) {
            int n = (Integer) which;
            if (n < 1 || n > names.length) {
                throw new SQLException("column " + n + " does not exist", "42703");
            }
            return n - 1;
        }
        for (int n = 0; n < names.length; n++) {
            if (names[n].equalsIgnoreCase((String) which)) {
                return n;
            }
        }
        throw new SQLException("column \"" + which + "\" does not exist", "42703");
    }

    private static boolean isColumn(Object[] args) {
        return args != null && args.length > 0 && (args[0] instanceof Integer || args[0] instanceof String);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
        String name = method.getName();
        if (isColumn(args)) {
            if (name.startsWith("get")) {
                return cell(method, args);
            }
            if (name.startsWith("update") && writable) {
                int n = column(args[0]);
                row()[n] = args.length == 1 ? null : args[1];
                return null;
            }
        }
        switch (name) {
            case "next": return next();
            case "findColumn": return column(args[0]) + 1;
            case "wasNull": return wasNull;
            case "close":
                if (source != null && !closed) {
                    source.close();
                }
                closed = true;
                return null;
            case "isClosed": return closed;
            case "getRow": return at;
            case "isBeforeFirst": return at == 0 && !ended;
            case "isFirst": return at == 1;
            case "isAfterLast": return ended;
            case "getMetaData": return metadata();
            case "getStatement": return statement;
            case "getType": return ResultSet.TYPE_FORWARD_ONLY;
            case "getConcurrency": return writable ? ResultSet.CONCUR_UPDATABLE : ResultSet.CONCUR_READ_ONLY;
            case "getHoldability": return ResultSet.CLOSE_CURSORS_AT_COMMIT;
            case "getFetchDirection": return ResultSet.FETCH_FORWARD;
            case "getFetchSize": return 0;
            case "getWarnings": return null;
            case "setFetchSize": case "setFetchDirection": case "clearWarnings": case "updateRow": return null;
            default: return Calls.common(this, proxy, method, args);
        }
    }

    private Object next() throws SQLException {
        if (source == null || closed) {
            throw new SQLException("this result set can't be moved", "24000");
        }
        row = source.next();
        ended = row == null;
        at++;
        return row != null;
    }

    private Object cell(Method method, Object[] args) throws SQLException {
        Object value = row()[column(args[0])];
        wasNull = value == null;
        Class<?> want = method.getReturnType();
        if (want == Object.class) {
            return args.length > 1 && args[1] instanceof Class
                ? Convert.to(value, (Class<?>) args[1])
                : Convert.jdbc(value);
        }
        if (value == null) {
            return want.isPrimitive() ? zero(want) : null;
        }
        return Convert.to(value, want);
    }

    private static Object zero(Class<?> want) throws SQLException {
        return want == boolean.class ? Boolean.FALSE : Convert.to(0, want);
    }

    private ResultSetMetaData metadata() {
        return Calls.proxy(ResultSetMetaData.class, (proxy, method, args) -> {
            int n = args != null && args.length == 1 && args[0] instanceof Integer ? column(args[0]) : 0;
            switch (method.getName()) {
                case "getColumnCount": return names.length;
                case "getColumnName": case "getColumnLabel": return names[n];
                case "getColumnTypeName": return types == null ? "" : types[n];
                case "getColumnType": return types == null ? Types.OTHER : code(types[n]);
                case "isNullable": return ResultSetMetaData.columnNullableUnknown;
                case "isReadOnly": return !writable;
                case "isWritable": case "isDefinitelyWritable": return writable;
                case "isAutoIncrement": case "isCurrency": return false;
                case "getSchemaName": case "getTableName": case "getCatalogName": return "";
                default: return Calls.common(this, proxy, method, args);
            }
        });
    }

    private static int code(String type) {
        if (type.endsWith("[]")) {
            return Types.ARRAY;
        }
        switch (type) {
            case "boolean": return Types.BIT;
            case "smallint": return Types.SMALLINT;
            case "integer": return Types.INTEGER;
            case "bigint": case "oid": return Types.BIGINT;
            case "real": return Types.REAL;
            case "double precision": return Types.DOUBLE;
            case "numeric": return Types.NUMERIC;
            case "text": case "character varying": case "name": return Types.VARCHAR;
            case "character": return Types.CHAR;
            case "bytea": return Types.BINARY;
            case "date": return Types.DATE;
            case "time without time zone": return Types.TIME;
            case "timestamp without time zone": return Types.TIMESTAMP;
            case "timestamp with time zone": return Types.TIMESTAMP_WITH_TIMEZONE;
            default: return Types.OTHER;
        }
    }

    @Override
    public String toString() {
        return "ResultSet of " + Arrays.toString(names);
    }
}
