import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** The work of the other languages, in Java. */
public final class Work {
    private Work() {}

    public static int fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    public static int same(int n) {
        return n;
    }

    public static int mix(int n) {
        return (n ^ (n >> 3)) & 1023;
    }

    public static int words(String text) {
        int words = 1;
        for (int at = text.indexOf(' '); at >= 0; at = text.indexOf(' ', at + 1)) {
            words++;
        }
        return words;
    }

    public static long ask(int times) throws SQLException {
        long total = 0;
        try (PreparedStatement query =
                DriverManager.getConnection("jdbc:default:connection").prepareStatement("SELECT 1 AS one")) {
            for (int n = 0; n < times; n++) {
                ResultSet rows = query.executeQuery();
                rows.next();
                total += rows.getInt(1);
            }
        }
        return total;
    }
}
