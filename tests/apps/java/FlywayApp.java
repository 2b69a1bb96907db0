// Migrations with Flyway: versioned and repeatable ones, with functions, triggers and procedures; a failing one leaves
// nothing behind; validation, information and a clean database.

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.FlywayException;
import org.flywaydb.core.api.MigrationInfo;

public class FlywayApp {
    static void show(Connection c, String query) throws SQLException {
        try (var s = c.createStatement(); var r = s.executeQuery(query)) {
            int columns = r.getMetaData().getColumnCount();
            while (r.next()) {
                var line = new StringBuilder(" ");
                for (int n = 1; n <= columns; n++) line.append(' ').append(r.getString(n));
                System.out.println(line);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String url = args[0];
        Path scripts = Files.createTempDirectory("flyway");
        try (var all = Files.list(Path.of(args[1]))) {
            for (Path one : all.toList()) Files.copy(one, scripts.resolve(one.getFileName()));
        }
        var flyway = Flyway.configure().dataSource(url, "postgres", "").cleanDisabled(false)
            .locations("filesystem:" + scripts).load();
        System.out.println("migrations: " + flyway.migrate().migrationsExecuted);
        System.out.println("again: " + flyway.migrate().migrationsExecuted);
        flyway.validate();
        for (MigrationInfo one : flyway.info().all()) {
            System.out.println("  " + one.getVersion() + " " + one.getDescription() + " " + one.getState());
        }
        try (Connection c = DriverManager.getConnection(url, "postgres", "")) {
            try (var s = c.createStatement()) {
                s.execute("INSERT INTO account (name, balance) VALUES ('a', 100), ('b', 20)");
                s.execute("CALL transfer('a', 'b', 30.5)");
                try {
                    s.execute("CALL transfer('nobody', 'b', 1)");
                } catch (SQLException e) {
                    System.out.println("refused: " + e.getSQLState());
                }
                try {
                    s.execute("CALL transfer('a', 'b', 1000)");
                } catch (SQLException e) {
                    System.out.println("refused: " + e.getSQLState());
                }
            }
            show(c, "SELECT name, balance, changed IS NOT NULL FROM account ORDER BY name");
            show(c, "SELECT a.name, l.was, l.now FROM account_log l JOIN account a ON a.id = l.account ORDER BY 1");
            show(c, "SELECT * FROM totals");

            Files.writeString(scripts.resolve("V3__broken.sql"),
                "ALTER TABLE account ADD COLUMN note text DEFAULT '-';\nSELECT 1 / 0;\n");
            try {
                flyway.migrate();
            } catch (FlywayException e) {
                System.out.println("failed: " + (e.getMessage().contains("22012") ? "22012" : e.getMessage()));
            }
            show(c, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'account'");
            Files.writeString(scripts.resolve("V3__broken.sql"),
                "ALTER TABLE account ADD COLUMN note text DEFAULT '-';\n");
            Files.writeString(scripts.resolve("R__totals.sql"),
                "CREATE OR REPLACE VIEW totals AS SELECT count(*) AS accounts, sum(balance) AS balance, max(note) AS note"
                    + " FROM account;\n");
            Files.writeString(scripts.resolve("V4__index.sql"),
                "CREATE INDEX account_note ON account (note);\n");
            System.out.println("then: " + flyway.migrate().migrationsExecuted);
            show(c, "SELECT * FROM totals");
            show(c, "SELECT version, description, type, success FROM flyway_schema_history ORDER BY installed_rank");
            // Two at once: one waits for the other's lock and finds nothing to do.
            Files.writeString(scripts.resolve("V5__slow.sql"), "SELECT pg_sleep(0.3);\nCREATE TABLE slow (a int);\n");
            int[] done = new int[2];
            Thread[] both = new Thread[2];
            for (int n = 0; n < 2; n++) {
                int own = n;
                both[n] = new Thread(() -> done[own] = Flyway.configure().dataSource(url, "postgres", "")
                    .locations("filesystem:" + scripts).load().migrate().migrationsExecuted);
                both[n].start();
            }
            for (Thread one : both) one.join();
            System.out.println("at once: " + (done[0] + done[1]));
            flyway.clean();
            show(c, "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'public'");
            show(c, "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE nspname = 'public'");
        }
    }
}
