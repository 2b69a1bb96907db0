import java.io.StringReader;
import java.math.BigDecimal;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

/**
 * A small warehouse over JDBC: it makes its tables, fills them, asks, fails and recovers.
 * Usage: java Warehouse.java jdbc:postgresql://HOST:PORT/DATABASE?user=postgres
 */
public class Warehouse {
    interface Test {
        void run(Connection c) throws Exception;
    }

    static String url;

    static void check(boolean condition, Object... values) {
        if (!condition) throw new AssertionError(Arrays.deepToString(values));
    }

    static Connection connect() throws SQLException {
        return DriverManager.getConnection(url);
    }

    static void makesItsTables(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS moved, item");
            s.execute("CREATE TABLE item (id int PRIMARY KEY, name varchar(40) NOT NULL UNIQUE,"
                + " price numeric(10, 2), weight float8, fragile bool, photo bytea, made date, seen timestamptz,"
                + " at time, code uuid)");
            s.execute("CREATE TABLE moved (item int REFERENCES item (id), n int)");
        }
    }

    static void valuesComeBack(Connection c) throws Exception {
        Timestamp seen = Timestamp.valueOf("2024-02-29 12:30:15.123456");
        UUID code = UUID.fromString("12345678-1234-5678-1234-567812345678");
        try (PreparedStatement p = c.prepareStatement("INSERT INTO item VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            p.setInt(1, 1);
            p.setString(2, "Vase \"ä\" 😀");
            p.setBigDecimal(3, new BigDecimal("12.50"));
            p.setDouble(4, 0.1);
            p.setBoolean(5, true);
            p.setBytes(6, new byte[] {0, -1, 92});
            p.setDate(7, java.sql.Date.valueOf("1999-12-31"));
            p.setTimestamp(8, seen);
            p.setTime(9, Time.valueOf("23:59:58"));
            p.setObject(10, code);
            check(p.executeUpdate() == 1);
        }
        // From the fifth time on the driver prepares on the server, and takes results in binary.
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM item WHERE id = ?")) {
            for (int n = 0; n < 10; n++) {
                p.setInt(1, 1);
                try (ResultSet r = p.executeQuery()) {
                    check(r.next());
                    check(r.getString("name").equals("Vase \"ä\" 😀"), r.getString("name"));
                    check(r.getBigDecimal("price").equals(new BigDecimal("12.50")), r.getBigDecimal("price"));
                    check(r.getDouble("weight") == 0.1 && r.getBoolean("fragile"));
                    check(Arrays.equals(r.getBytes("photo"), new byte[] {0, -1, 92}));
                    check(r.getDate("made").toString().equals("1999-12-31"), r.getDate("made"));
                    check(r.getTimestamp("seen").equals(seen), r.getTimestamp("seen"));
                    check(r.getTime("at").toString().equals("23:59:58"), r.getTime("at"));
                    check(r.getObject("code").equals(code), r.getObject("code"));
                    check(!r.next());
                }
            }
        }
        try (PreparedStatement p = c.prepareStatement("SELECT ?::int[], ?::text, id FROM item WHERE id = ANY (?)")) {
            p.setArray(1, c.createArrayOf("int4", new Integer[] {1, null, 3}));
            p.setNull(2, Types.VARCHAR);
            p.setArray(3, c.createArrayOf("int4", new Integer[] {1, 2}));
            try (ResultSet r = p.executeQuery()) {
                check(r.next());
                check(Arrays.equals((Integer[]) r.getArray(1).getArray(), new Integer[] {1, null, 3}));
                check(r.getString(2) == null && r.wasNull() && r.getInt(3) == 1);
            }
        }
    }

    static void batches(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?)")) {
            for (int n = 2; n <= 500; n++) {
                p.setInt(1, n);
                p.setString(2, "item " + n);
                p.addBatch();
            }
            int[] counts = p.executeBatch();
            check(counts.length == 499 && Arrays.stream(counts).allMatch(n -> n == 1));
        }
        c.commit();
        try (Statement s = c.createStatement()) {
            s.addBatch("INSERT INTO moved VALUES (2, 1)");
            s.addBatch("INSERT INTO moved VALUES (9999, 1)");
            s.addBatch("INSERT INTO moved VALUES (3, 1)");
            s.executeBatch();
            check(false, "a batch with an error went through");
        } catch (BatchUpdateException e) {
            check(e.getSQLState().equals("23503"), e.getSQLState());
        }
        c.rollback();
        c.setAutoCommit(true);
    }

    static void rowsAreFetchedInParts(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.setFetchSize(50);
            try (ResultSet r = s.executeQuery("SELECT id FROM item ORDER BY id")) {
                int n = 0;
                while (r.next()) check(r.getInt(1) == ++n, n);
                check(n == 500, n);
            }
        }
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
             ResultSet r = s.executeQuery("SELECT id FROM item ORDER BY id LIMIT 10")) {
            check(r.last() && r.getInt(1) == 10 && r.absolute(3) && r.getInt(1) == 3 && r.previous());
        }
        try (Statement s = c.createStatement()) {
            s.setMaxRows(7);
            try (ResultSet r = s.executeQuery("SELECT id FROM item")) {
                int n = 0;
                while (r.next()) n++;
                check(n == 7, n);
            }
        }
        c.commit();
        c.setAutoCommit(true);
    }

    static List<String> column(ResultSet r, String name) throws SQLException {
        List<String> out = new ArrayList<>();
        while (r.next()) out.add(r.getString(name));
        return out;
    }

    static void metadata(Connection c) throws Exception {
        DatabaseMetaData m = c.getMetaData();
        check(m.getDatabaseMajorVersion() == 15, m.getDatabaseProductVersion());
        check(column(m.getTables(null, "public", "item", new String[] {"TABLE"}), "TABLE_NAME").equals(List.of("item")));
        check(column(m.getColumns(null, "public", "moved", null), "COLUMN_NAME").equals(List.of("item", "n")));
        try (ResultSet r = m.getColumns(null, "public", "item", "name")) {
            check(r.next() && r.getInt("DATA_TYPE") == Types.VARCHAR && r.getInt("COLUMN_SIZE") == 40);
            check(r.getString("IS_NULLABLE").equals("NO"));
        }
        check(column(m.getPrimaryKeys(null, "public", "item"), "COLUMN_NAME").equals(List.of("id")));
        check(column(m.getImportedKeys(null, "public", "moved"), "PKTABLE_NAME").equals(List.of("item")));
        check(column(m.getIndexInfo(null, "public", "item", true, false), "INDEX_NAME")
            .containsAll(List.of("item_pkey", "item_name_key")));
        check(column(m.getSchemas(), "TABLE_SCHEM").contains("public"));
        check(column(m.getTypeInfo(), "TYPE_NAME").contains("int4"));
        try (PreparedStatement p = c.prepareStatement("SELECT id, name FROM item WHERE price > ?")) {
            check(p.getParameterMetaData().getParameterType(1) == Types.NUMERIC);
            check(p.getMetaData().getColumnCount() == 2 && p.getMetaData().getTableName(1).equals("item"));
        }
    }

    static void errorsSayWhatIsWrong(Connection c) throws Exception {
        String[][] cases = {
            {"INSERT INTO item (id, name) VALUES (1, 'x')", "23505", "item_pkey"},
            {"INSERT INTO item (id) VALUES (900)", "23502", null},
            {"INSERT INTO item (id, name) VALUES (900, repeat('x', 41))", "22001", null},
            {"SELECT 1 / 0", "22012", null},
            {"SELECT nothing", "42703", null},
        };
        for (String[] one : cases) {
            try (Statement s = c.createStatement()) {
                s.execute(one[0]);
                check(false, one[0]);
            } catch (PSQLException e) {
                check(e.getSQLState().equals(one[1]), one[0], e.getSQLState());
                check(Objects.equals(e.getServerErrorMessage().getConstraint(), one[2]), one[0]);
            }
        }
    }

    static void savepointsAndIsolation(Connection c) throws Exception {
        c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        c.setAutoCommit(false);
        try (Statement s = c.createStatement()) {
            s.executeUpdate("UPDATE item SET price = 1 WHERE id = 2");
            Savepoint point = c.setSavepoint("point");
            try {
                s.executeUpdate("INSERT INTO item (id, name) VALUES (2, 'twice')");
                check(false, "twice");
            } catch (SQLException e) {
                c.rollback(point);
            }
            c.releaseSavepoint(point);
            check(s.executeUpdate("UPDATE item SET price = 2 WHERE id = 2") == 1);
        }
        c.commit();
        c.setReadOnly(true);
        try (Statement s = c.createStatement()) {
            s.executeUpdate("DELETE FROM item");
            check(false, "a read-only transaction wrote");
        } catch (SQLException e) {
            check(e.getSQLState().equals("25006"), e.getSQLState());
        }
        c.rollback();
    }

    static void returningAndCopy(Connection c) throws Exception {
        try (PreparedStatement p = c.prepareStatement("INSERT INTO item (id, name) VALUES (?, ?)",
                new String[] {"id", "name"})) {
            p.setInt(1, 1000);
            p.setString(2, "thousand");
            p.executeUpdate();
            try (ResultSet r = p.getGeneratedKeys()) {
                check(r.next() && r.getInt(1) == 1000 && r.getString("name").equals("thousand"));
            }
        }
        long n = c.unwrap(PGConnection.class).getCopyAPI()
            .copyIn("COPY moved FROM STDIN (FORMAT CSV)", new StringReader("1,5\n2,6\n"));
        check(n == 2, n);
    }

    static void cancelAndRecovery(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.execute("SELECT pg_sleep(600)");
            check(false, "the time limit was ignored");
        } catch (SQLException e) {
            check(e.getSQLState().equals("57014"), e.getSQLState());
        }
        check(c.isValid(5));
        int pid = c.unwrap(PGConnection.class).getBackendPID();
        try (Connection other = connect(); Statement s = other.createStatement()) {
            s.execute("SELECT pg_terminate_backend(" + pid + ")");
        }
        while (c.isValid(5)) {}
        try (Connection again = connect()) {
            check(again.isValid(5));
        }
    }

    public static void main(String[] args) throws Exception {
        url = args.length > 0 ? args[0] : "jdbc:postgresql://127.0.0.1:5432/postgres?user=postgres";
        Map<String, Test> tests = new LinkedHashMap<>();
        tests.put("makesItsTables", Warehouse::makesItsTables);
        tests.put("valuesComeBack", Warehouse::valuesComeBack);
        tests.put("batches", Warehouse::batches);
        tests.put("rowsAreFetchedInParts", Warehouse::rowsAreFetchedInParts);
        tests.put("metadata", Warehouse::metadata);
        tests.put("errorsSayWhatIsWrong", Warehouse::errorsSayWhatIsWrong);
        tests.put("savepointsAndIsolation", Warehouse::savepointsAndIsolation);
        tests.put("returningAndCopy", Warehouse::returningAndCopy);
        tests.put("cancelAndRecovery", Warehouse::cancelAndRecovery);
        int failed = 0;
        for (Map.Entry<String, Test> test : tests.entrySet()) {
            try (Connection c = connect()) {
                test.getValue().run(c);
            } catch (Throwable why) {
                failed++;
                System.out.println(test.getKey() + ": " + why);
                for (StackTraceElement at : why.getStackTrace()) {
                    if (at.getClassName().equals("Warehouse")) System.out.println("  at line " + at.getLineNumber());
                }
            }
        }
        System.out.println("jdbc: " + (tests.size() - failed) + " passed, " + failed + " failed");
        System.exit(failed > 0 ? 1 : 0);
    }
}
