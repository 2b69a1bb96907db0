// Changes of a table by Debezium's embedded engine: its snapshot of what is there, the stream behind it, and a restart in
// the middle of a load. Each version of each row must come once.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

public class DebeziumApp {
    static final ObjectMapper JSON = new ObjectMapper();
    // What came, by kind, row and version, and how often.
    static final ConcurrentHashMap<String, Integer> CAME = new ConcurrentHashMap<>();

    static void take(ChangeEvent<String, String> event) {
        try {
            if (event.value() == null) return;
            JsonNode value = JSON.readTree(event.value());
            String op = value.path("op").asText();
            JsonNode row = op.equals("d") ? value.path("before") : value.path("after");
            if (row.isMissingNode() || !row.has("id")) return;
            String version = op.equals("d") ? "" : " " + row.path("n").asInt() + " " + row.path("note").asText();
            CAME.merge(op + " " + row.path("id").asInt() + version, 1, Integer::sum);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    static Properties properties(String host, String port, String database, Path offsets) {
        var p = new Properties();
        p.setProperty("name", "engine");
        p.setProperty("connector.class", "io.debezium.connector.postgresql.PostgresConnector");
        p.setProperty("offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        p.setProperty("offset.storage.file.filename", offsets.toString());
        p.setProperty("offset.flush.interval.ms", "0");
        p.setProperty("database.hostname", host);
        p.setProperty("database.port", port);
        p.setProperty("database.user", "postgres");
        p.setProperty("database.password", "x");
        p.setProperty("database.dbname", database);
        p.setProperty("topic.prefix", "t");
        p.setProperty("plugin.name", "pgoutput");
        p.setProperty("slot.name", "debezium_" + database);
        p.setProperty("publication.autocreate.mode", "filtered");
        p.setProperty("table.include.list", "public.orders");
        p.setProperty("key.converter.schemas.enable", "false");
        p.setProperty("value.converter.schemas.enable", "false");
        return p;
    }

    static long count(String kind) {
        return CAME.keySet().stream().filter(key -> key.startsWith(kind)).count();
    }

    static void await(String kind, long wanted) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (count(kind) < wanted) {
            if (System.nanoTime() > until) throw new IllegalStateException(kind + ": " + count(kind) + " of " + wanted);
            Thread.sleep(20);
        }
    }

    interface Work { void run() throws Exception; }

    static void within(Properties properties, Work work) throws Exception {
        var failure = new Throwable[1];
        var engine = DebeziumEngine.create(Json.class).using(properties).notifying(DebeziumApp::take)
            .using((success, message, error) -> failure[0] = error).build();
        var threads = Executors.newSingleThreadExecutor();
        threads.execute(engine);
        try {
            work.run();
        } finally {
            engine.close();
            threads.shutdown();
            threads.awaitTermination(60, TimeUnit.SECONDS);
            if (failure[0] != null) failure[0].printStackTrace();
        }
    }

    static void execute(Connection c, String sql) throws SQLException {
        try (var s = c.createStatement()) { s.execute(sql); }
    }

    static void change(Connection c, int from, int to) throws SQLException {
        for (int id = from; id < to; id++) {
            execute(c, "INSERT INTO orders VALUES (" + id + ", 0, 'new')");
            execute(c, "BEGIN; UPDATE orders SET n = 1 WHERE id = " + id + "; UPDATE orders SET n = 2, note = 'two' WHERE id = " + id + "; COMMIT");
            if (id % 4 == 0) execute(c, "DELETE FROM orders WHERE id = " + id);
            if (id % 10 == 0) execute(c, "BEGIN; UPDATE orders SET n = 99 WHERE id = " + id + "; ROLLBACK");
        }
    }

    public static void main(String[] args) throws Exception {
        String[] place = args[0].split("[:/]");
        Path offsets = Files.createTempDirectory("debezium").resolve("offsets");
        var properties = properties(place[0], place[1], place[2], offsets);
        try (Connection c = DriverManager.getConnection("jdbc:postgresql://" + args[0], "postgres", "x")) {
            execute(c, "CREATE TABLE orders (id int PRIMARY KEY, n int NOT NULL, note text)");
            execute(c, "ALTER TABLE orders REPLICA IDENTITY FULL");
            execute(c, "INSERT INTO orders SELECT i, 0, 'old' FROM generate_series(1, 200) i");
            within(properties, () -> {
                await("r", 200);
                change(c, 1000, 1200);
                await("c", 20);
            });
            System.out.println("rows of the snapshot: " + count("r"));
            change(c, 1200, 1300);
            within(properties, () -> {
                change(c, 1300, 1400);
                await("c", 400);
                await("u", 800);
                await("d", 100);
            });
            var sums = new TreeMap<String, Long>();
            CAME.keySet().forEach(key -> sums.merge(key.substring(0, 1), 1L, Long::sum));
            System.out.println("kinds: " + sums);
            System.out.println("doubled: " + CAME.values().stream().filter(n -> n > 1).count());
            System.out.println("rolled back: " + CAME.keySet().stream().filter(key -> key.contains(" 99 ")).count());
            execute(c, "SELECT pg_drop_replication_slot('debezium_" + place[2] + "')");
        }
        System.exit(0);
    }
}
