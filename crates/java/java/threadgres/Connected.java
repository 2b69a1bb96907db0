package threadgres;

import java.lang.reflect.Method;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.util.Properties;
import java.util.logging.Logger;

/**
 * The connection {@code jdbc:default:connection} to the session that calls. It has no state: what is asked of it, and
 * of its statements, goes to the session that the asking thread works for at the time.
 */
final class Connected implements Driver {
    static final String URL = "jdbc:default:connection";

    private static final Connection CONNECTION = Calls.proxy(Connection.class, Connected::call);

    static void register() throws SQLException {
        DriverManager.registerDriver(new Connected());
    }

    private static Object call(Object proxy, Method method, Object[] args) throws SQLException {
        switch (method.getName()) {
            case "createStatement": return new Asked(null).proxy(Statement.class);
            case "prepareStatement": return new Asked((String) args[0]).proxy(PreparedStatement.class);
            case "nativeSQL": return args[0];
            case "commit":
                Bridge.ask(new Writer().u8(6).u8(1));
                return null;
            case "rollback":
                if (args != null) {
                    Mark.of(args[0]).rollBack();
                    return null;
                }
                Bridge.ask(new Writer().u8(6).u8(0));
                return null;
            case "setSavepoint": return new Mark(args == null ? null : (String) args[0]);
            case "releaseSavepoint":
                Mark.of(args[0]).release();
                return null;
            case "getAutoCommit": return false;
            case "setAutoCommit":
                if ((Boolean) args[0]) {
                    throw new SQLFeatureNotSupportedException("the transaction is the caller's", "0A000");
                }
                return null;
            case "close": case "clearWarnings": case "setReadOnly": case "setHoldability": case "setClientInfo":
                return null;
            case "isClosed": case "isReadOnly": return false;
            case "isValid": return true;
            case "getWarnings": return null;
            case "getHoldability": return ResultSet.CLOSE_CURSORS_AT_COMMIT;
            case "getTransactionIsolation": return isolation();
            case "getCatalog": return one("SELECT current_database()");
            case "getSchema": return one("SELECT current_schema()");
            case "createArrayOf": return array(args[1]);
            case "getMetaData": return Calls.proxy(DatabaseMetaData.class, Connected::facts);
            case "toString": return URL;
            default: break;
        }
        return Calls.common(CONNECTION.getClass(), proxy, method, args);
    }

    private static Object facts(Object proxy, Method method, Object[] args) throws SQLException {
        switch (method.getName()) {
            case "getURL": return URL;
            case "getDatabaseProductName": return "PostgreSQL";
            case "getDatabaseProductVersion": return one("SHOW server_version");
            case "getDatabaseMajorVersion": return Integer.parseInt(one("SHOW server_version_num")) / 10_000;
            case "getDatabaseMinorVersion": return Integer.parseInt(one("SHOW server_version_num")) % 10_000;
            case "getUserName": return one("SELECT current_user");
            case "getDriverName": return "Threadgres, inside";
            case "getConnection": return CONNECTION;
            case "getIdentifierQuoteString": return "\"";
            case "supportsTransactions": case "supportsBatchUpdates": case "supportsSavepoints": return true;
            case "getJDBCMajorVersion": return 4;
            case "getJDBCMinorVersion": return 3;
            default: return Calls.common(URL, proxy, method, args);
        }
    }

    private static String one(String query) throws SQLException {
        try (ResultSet rows = CONNECTION.createStatement().executeQuery(query)) {
            return rows.next() ? rows.getString(1) : null;
        }
    }

    private static int isolation() throws SQLException {
        switch (one("SHOW transaction_isolation")) {
            case "serializable": return Connection.TRANSACTION_SERIALIZABLE;
            case "repeatable read": return Connection.TRANSACTION_REPEATABLE_READ;
            default: return Connection.TRANSACTION_READ_COMMITTED;
        }
    }

    /** An array as JDBC has it. */
    static java.sql.Array array(Object values) {
        return Calls.proxy(java.sql.Array.class, (proxy, method, args) -> {
            switch (method.getName()) {
                case "getArray":
                    if (args == null) {
                        return values;
                    }
                    break;
                case "free": return null;
                default: break;
            }
            return Calls.common(values, proxy, method, args);
        });
    }

    static Connection connection() {
        return CONNECTION;
    }

    @Override
    public Connection connect(String url, Properties info) {
        return acceptsURL(url) ? CONNECTION : null;
    }

    @Override
    public boolean acceptsURL(String url) {
        return URL.equals(url);
    }

    @Override
    public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
        return new DriverPropertyInfo[0];
    }

    @Override
    public int getMajorVersion() {
        return 1;
    }

    @Override
    public int getMinorVersion() {
        return 0;
    }

    @Override
    public boolean jdbcCompliant() {
        return false;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getGlobal();
    }
}
