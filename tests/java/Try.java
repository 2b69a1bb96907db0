package tried;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.postgresql.pljava.ResultSetHandle;
import org.postgresql.pljava.ResultSetProvider;
import org.postgresql.pljava.TriggerData;

/** What the tests of functions in Java call. */
public final class Try {
    private static final AtomicLong CALLS = new AtomicLong();

    private Try() {}

    public static boolean same(boolean v) {
        return v;
    }

    public static short same(short v) {
        return v;
    }

    public static int same(int v) {
        return v;
    }

    public static Integer maybe(Integer v) {
        return v;
    }

    public static long same(long v) {
        return v;
    }

    public static float same(float v) {
        return v;
    }

    public static double same(double v) {
        return v;
    }

    public static BigDecimal same(BigDecimal v) {
        return v;
    }

    public static String same(String v) {
        return v;
    }

    public static byte[] same(byte[] v) {
        return v;
    }

    public static Date same(Date v) {
        return v;
    }

    public static LocalTime same(LocalTime v) {
        return v;
    }

    public static LocalDateTime same(LocalDateTime v) {
        return v;
    }

    public static Timestamp stamp(Timestamp v) {
        return v;
    }

    public static OffsetDateTime same(OffsetDateTime v) {
        return v;
    }

    public static UUID same(UUID v) {
        return v;
    }

    public static int[] same(int[] v) {
        return v;
    }

    public static Integer[] same(Integer[] v) {
        return v;
    }

    public static long[][] same(long[][] v) {
        return v;
    }

    public static double[] same(double[] v) {
        return v;
    }

    public static String[] same(String[] v) {
        return v;
    }

    public static boolean same(ResultSet in, ResultSet out) throws SQLException {
        out.updateInt("a", in.getInt("a"));
        out.updateString(2, in.getString(2));
        return true;
    }

    public static int add(int a, int b) {
        return Math.addExact(a, b);
    }

    public static long calls() {
        return CALLS.incrementAndGet();
    }

    private static Connection connection() throws SQLException {
        return DriverManager.getConnection("jdbc:default:connection");
    }

    public static String ask(String query) throws SQLException {
        try (Statement statement = connection().createStatement(); ResultSet rows = statement.executeQuery(query)) {
            return rows.next() ? rows.getString(1) : null;
        }
    }

    public static long total(String query, int size) throws SQLException {
        try (Statement statement = connection().createStatement()) {
            statement.setFetchSize(size);
            long total = 0;
            try (ResultSet rows = statement.executeQuery(query)) {
                while (rows.next()) {
                    total += rows.getLong(1);
                }
            }
            return total;
        }
    }

    public static int change(String statement, String[] values) throws SQLException {
        try (PreparedStatement prepared = connection().prepareStatement(statement)) {
            for (int n = 0; n < values.length; n++) {
                prepared.setString(n + 1, values[n]);
            }
            return prepared.executeUpdate();
        }
    }

    public static String code(String statement) {
        try {
            change(statement, new String[0]);
            return "none";
        } catch (SQLException e) {
            return e.getSQLState();
        }
    }

    /** Runs words apart by blanks: a number is inserted into t, s makes a savepoint, b goes back to the last, r releases it. */
    public static String marks(String words) throws SQLException {
        Connection connection = connection();
        List<Savepoint> made = new ArrayList<>();
        for (String word : words.split(" ")) {
            int last = made.size() - 1;
            switch (word) {
                case "s":
                    made.add(made.isEmpty() ? connection.setSavepoint() : connection.setSavepoint("s" + made.size()));
                    break;
                case "b":
                    connection.rollback(made.get(last));
                    break;
                case "first":
                    connection.rollback(made.get(0));
                    break;
                case "r":
                    connection.releaseSavepoint(made.remove(last));
                    break;
                case "fail": throw new IllegalStateException("after savepoints");
                case "c":
                    connection.commit();
                    break;
                default:
                    change("INSERT INTO t VALUES (" + word + ")", new String[0]);
            }
        }
        return ask("SELECT string_agg(n::text, ' ' ORDER BY n) FROM t");
    }

    public static Iterator<Integer> series(int count) {
        return IntStream.range(0, count).boxed().iterator();
    }

    public static List<Object[]> pairs(String text) {
        List<Object[]> pairs = new ArrayList<>();
        for (String word : text.split(" ")) {
            pairs.add(new Object[] {word.length(), word});
        }
        return pairs;
    }

    public static ResultSetProvider provided(int count) {
        return new ResultSetProvider() {
            @Override
            public boolean assignRowValues(ResultSet row, int n) throws SQLException {
                if (n >= count) {
                    return false;
                }
                row.updateInt(1, n);
                row.updateString(2, "row " + n);
                return true;
            }

            @Override
            public void close() {}
        };
    }

    public static ResultSetHandle queried(String query) {
        return new ResultSetHandle() {
            @Override
            public ResultSet getResultSet() throws SQLException {
                return connection().createStatement().executeQuery(query);
            }

            @Override
            public void close() {}
        };
    }

    public static Map<String, Object> mapped(int n) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("t", "number " + n);
        row.put("n", n);
        return row;
    }

    public static void doubled(TriggerData fired) throws SQLException {
        ResultSet row = fired.getNew();
        if (row.getInt("n") == 13) {
            fired.suppress();
            return;
        }
        row.updateInt("n", row.getInt("n") * 2);
        row.updateString("t", (fired.isFiredByInsert() ? "INSERT" : "UPDATE") + " " + fired.getArguments()[0]);
    }

    public static void twice(String statement) throws SQLException {
        Connection connection = connection();
        try (Statement asked = connection.createStatement()) {
            asked.execute(statement);
            connection.commit();
            asked.execute(statement);
            connection.rollback();
        }
    }

    public static void say(String text) {
        Logger.getLogger("tried").info(text);
    }

    public static int fail(String text) {
        throw new IllegalStateException(text, new IllegalArgumentException("inner"));
    }

    public static int raise(String state) throws SQLException {
        throw new SQLException("own words", state);
    }

    public static int deep(int n) {
        return deep(n + 1) + 1;
    }

    public static int hog() {
        List<long[]> all = new ArrayList<>();
        while (true) {
            all.add(new long[1 << 17]);
        }
    }

    public static void forever() {
        while (true) {
            CALLS.get();
        }
    }

    public static int sleep(int ms) throws InterruptedException {
        Thread.sleep(ms);
        return ms;
    }

    /** Often enough for the compiler, which leaves the check for null to the processor. */
    public static int size(String text) {
        int size = 0;
        for (int n = 0; n < 20_000; n++) {
            size += length("some text");
        }
        return size + length(text);
    }

    private static int length(String text) {
        return text.length();
    }

    public static void exit() {
        System.exit(3);
    }

    public static String elsewhere() throws InterruptedException {
        String[] said = new String[1];
        Thread other = new Thread(() -> {
            try {
                said[0] = ask("SELECT 1");
            } catch (SQLException e) {
                said[0] = e.getSQLState();
            }
        });
        other.start();
        other.join();
        return said[0];
    }
}
