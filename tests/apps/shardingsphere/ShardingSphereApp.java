// pgbench's tables on two shards under ShardingSphere-JDBC, with transactions over both by two-phase commit: what is asked of
// one shard and of both, transfers that commit, fail and are rolled back, many at once, and one whose second half comes from
// another connection.

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import javax.sql.DataSource;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.shardingsphere.driver.api.yaml.YamlShardingSphereDataSourceFactory;
import org.postgresql.xa.PGXADataSource;

public class ShardingSphereApp {
    // The coordinator says things on the standard output, too.
    static final PrintStream OUT = System.out;
    static final int BRANCHES = 4;
    static final int TELLERS = 10;
    static final int ACCOUNTS = 250;

    static String yaml(String[] shards) {
        var text = new StringBuilder("dataSources:\n");
        for (int n = 0; n < shards.length; n++) {
            text.append("""
                  ds_%d:
                    dataSourceClassName: com.zaxxer.hikari.HikariDataSource
                    driverClassName: org.postgresql.Driver
                    jdbcUrl: %s
                    username: postgres
                    password: x
                    maximumPoolSize: 12
                """.formatted(n, shards[n]));
        }
        text.append("rules:\n- !SHARDING\n  tables:\n");
        for (String table : List.of("pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history")) {
            text.append("""
                    %s:
                      actualDataNodes: ds_${0..1}.%s
                      databaseStrategy:
                        standard:
                          shardingColumn: bid
                          shardingAlgorithmName: by_branch
                """.formatted(table, table));
        }
        return text.append("""
              broadcastTables:
              - currencies
              bindingTables:
              - pgbench_branches,pgbench_tellers,pgbench_accounts,pgbench_history
              shardingAlgorithms:
                by_branch:
                  type: INLINE
                  props:
                    algorithm-expression: ds_${bid % 2}
                    allow-range-query-with-inline-sharding: true
            - !TRANSACTION
              defaultType: XA
              providerType: Atomikos
            """).toString();
    }

    static String rows(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int n = 0; n < values.length; n++) statement.setObject(n + 1, values[n]);
            var out = new ArrayList<String>();
            try (ResultSet result = statement.executeQuery()) {
                int columns = result.getMetaData().getColumnCount();
                while (result.next()) {
                    var row = new ArrayList<String>();
                    for (int n = 1; n <= columns; n++) row.add(String.valueOf(result.getObject(n)));
                    out.add(String.join(" ", row));
                }
            }
            return String.join(", ", out);
        }
    }

    static int run(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int n = 0; n < values.length; n++) statement.setObject(n + 1, values[n]);
            return statement.executeUpdate();
        }
    }

    static void define(Connection connection) throws SQLException {
        for (String sql : List.of(
            "CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int NOT NULL, filler char(88))",
            "CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))",
            "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int CHECK (abalance > -100000), filler char(84))",
            "CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))",
            "CREATE TABLE currencies (code char(3) PRIMARY KEY, rate numeric(10,4))",
            "CREATE INDEX accounts_by_branch ON pgbench_accounts (bid, abalance)")) {
            try (Statement statement = connection.createStatement()) {
                statement.execute(sql);
            }
        }
    }

    static void fill(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        for (int bid = 1; bid <= BRANCHES; bid++) {
            run(connection, "INSERT INTO pgbench_branches (bid, bbalance) VALUES (?, 0)", bid);
        }
        try (PreparedStatement batch =
                connection.prepareStatement("INSERT INTO pgbench_tellers (tid, bid, tbalance) VALUES (?, ?, 0)")) {
            for (int tid = 1; tid <= BRANCHES * TELLERS; tid++) {
                batch.setInt(1, tid);
                batch.setInt(2, (tid - 1) / TELLERS + 1);
                batch.addBatch();
            }
            OUT.println("tellers: " + Arrays.stream(batch.executeBatch()).sum());
        }
        try (PreparedStatement batch = connection.prepareStatement(
                "INSERT INTO pgbench_accounts (aid, bid, abalance, filler) VALUES (?, ?, 0, ?)")) {
            for (int aid = 1; aid <= BRANCHES * ACCOUNTS; aid++) {
                batch.setInt(1, aid);
                batch.setInt(2, (aid - 1) / ACCOUNTS + 1);
                batch.setString(3, "account " + aid);
                batch.addBatch();
            }
            OUT.println("accounts: " + Arrays.stream(batch.executeBatch()).sum());
        }
        run(connection, "INSERT INTO currencies VALUES ('EUR', 1), ('CHF', 0.9413)");
        connection.commit();
        connection.setAutoCommit(true);
    }

    // pgbench's transaction, with a teller and an account of any branches.
    static void transfer(Connection connection, int tid, int aid, int delta) throws SQLException {
        int tellers = (tid - 1) / TELLERS + 1;
        int accounts = (aid - 1) / ACCOUNTS + 1;
        run(connection, "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ? AND bid = ?", delta, aid, accounts);
        run(connection, "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ? AND bid = ?", delta, tid, tellers);
        run(connection, "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?", delta, tellers);
        run(connection, "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ?, ?, ?, now())",
            tid, tellers, aid, delta);
    }

    static String balances(Connection connection) throws SQLException {
        return rows(connection, "SELECT sum(abalance), count(*) FROM pgbench_accounts") + "; "
            + rows(connection, "SELECT sum(tbalance) FROM pgbench_tellers") + "; "
            + rows(connection, "SELECT sum(bbalance) FROM pgbench_branches") + "; "
            + rows(connection, "SELECT sum(delta), count(*) FROM pgbench_history");
    }

    static void ask(Connection connection) throws SQLException {
        for (String sql : List.of(
            "SELECT aid, bid, abalance, trim(filler) FROM pgbench_accounts WHERE aid = 260 AND bid = 2",
            "SELECT aid FROM pgbench_accounts WHERE aid BETWEEN 249 AND 252 ORDER BY aid",
            "SELECT bid, count(*), max(aid) FROM pgbench_accounts GROUP BY bid ORDER BY bid",
            "SELECT count(*), sum(aid), avg(aid), min(aid), max(aid) FROM pgbench_accounts",
            "SELECT aid FROM pgbench_accounts ORDER BY aid DESC LIMIT 3 OFFSET 498",
            "SELECT DISTINCT bid FROM pgbench_tellers WHERE bid IN (1, 2, 4) ORDER BY bid DESC",
            "SELECT b.bid, count(*) FROM pgbench_branches b JOIN pgbench_tellers t ON t.bid = b.bid "
                + "WHERE b.bid IN (2, 3) GROUP BY b.bid ORDER BY b.bid",
            "SELECT bid FROM pgbench_tellers GROUP BY bid HAVING count(*) = 10 ORDER BY bid",
            "SELECT code, rate FROM currencies ORDER BY code")) {
            OUT.println(rows(connection, sql));
        }
        OUT.println(rows(connection, "SELECT tid FROM pgbench_tellers WHERE bid = ? AND tid > ? ORDER BY tid", 3, 28));
    }

    static void transfers(DataSource source, Connection connection) throws Exception {
        // A transaction over both begins with each setAutoCommit(false).
        connection.setAutoCommit(false);
        transfer(connection, 1, 300, 500);
        transfer(connection, 15, 20, -200);
        OUT.println("within: " + balances(connection));
        connection.commit();
        connection.setAutoCommit(true);
        OUT.println("committed: " + balances(connection));
        connection.setAutoCommit(false);
        transfer(connection, 2, 301, 77);
        connection.rollback();
        connection.setAutoCommit(true);
        OUT.println("rolled back: " + balances(connection));
        connection.setAutoCommit(false);
        try {
            transfer(connection, 3, 10, -1000);
            transfer(connection, 3, 302, -100001);
            OUT.println("the check was passed");
        } catch (SQLException e) {
            OUT.println("refused: " + e.getSQLState());
        }
        connection.rollback();
        connection.setAutoCommit(true);
        OUT.println("after that: " + balances(connection));

        var threads = Executors.newFixedThreadPool(4);
        var work = new ArrayList<Callable<Integer>>();
        for (int n = 0; n < 4; n++) {
            int client = n;
            work.add(() -> {
                int done = 0;
                try (Connection own = source.getConnection()) {
                    for (int i = 0; i < 25; i++) {
                        own.setAutoCommit(false);
                        // Each has a branch to itself, and the accounts of another: nobody waits in a circle.
                        int branch = client % BRANCHES;
                        int account = (branch + 1) % BRANCHES * ACCOUNTS + i * 37 % ACCOUNTS + 1;
                        transfer(own, branch * TELLERS + i % TELLERS + 1, account, i + 1);
                        own.commit();
                        own.setAutoCommit(true);
                        done++;
                    }
                }
                return done;
            });
        }
        int done = 0;
        for (var result : threads.invokeAll(work)) done += result.get();
        threads.shutdown();
        OUT.println(done + " at once: " + balances(connection));
    }

    // An identifier of a transaction.
    record Id(int getFormatId, byte[] getGlobalTransactionId, byte[] getBranchQualifier) implements Xid {
        public int getFormatId() { return getFormatId; }
        public byte[] getGlobalTransactionId() { return getGlobalTransactionId; }
        public byte[] getBranchQualifier() { return getBranchQualifier; }
    }

    // A coordinator that ends between the two phases: another one finds what was prepared and decides.
    static void recover(String[] shards) throws Exception {
        var ids = new ArrayList<Xid>();
        for (int n = 0; n < shards.length; n++) {
            var source = new PGXADataSource();
            source.setURL(shards[n]);
            source.setUser("postgres");
            var xa = source.getXAConnection();
            var id = new Id(7, "half".getBytes(StandardCharsets.UTF_8), new byte[] {(byte) n});
            xa.getXAResource().start(id, XAResource.TMNOFLAGS);
            try (Statement statement = xa.getConnection().createStatement()) {
                statement.executeUpdate("UPDATE currencies SET rate = 2 WHERE code = 'EUR'");
            }
            xa.getXAResource().end(id, XAResource.TMSUCCESS);
            OUT.println("prepared: " + (xa.getXAResource().prepare(id) == XAResource.XA_OK));
            ids.add(id);
            xa.close();
        }
        for (int n = 0; n < shards.length; n++) {
            var source = new PGXADataSource();
            source.setURL(shards[n]);
            source.setUser("postgres");
            var xa = source.getXAConnection();
            Xid[] found = xa.getXAResource().recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
            boolean is = Arrays.equals(found[0].getBranchQualifier(), ids.get(n).getBranchQualifier());
            OUT.println("found: " + found.length + " " + is);
            if (n == 0) xa.getXAResource().commit(found[0], false);
            else xa.getXAResource().rollback(found[0]);
            xa.close();
        }
        for (String shard : shards) {
            try (Connection direct = DriverManager.getConnection(shard, "postgres", "x")) {
                OUT.println("rate: " + rows(direct, "SELECT rate FROM currencies WHERE code = 'EUR'"));
            }
        }
    }

    static void change(Connection connection) throws SQLException {
        OUT.println("changed: " + run(connection, "UPDATE pgbench_accounts SET filler = ? WHERE aid <= ?", "few", 251));
        OUT.println("with: " + rows(connection, "SELECT bid, count(*) FROM pgbench_accounts WHERE filler = 'few' GROUP BY bid ORDER BY bid"));
        OUT.println("deleted: " + run(connection, "DELETE FROM pgbench_accounts WHERE bid > ? AND abalance = 0", 2));
        try {
            run(connection, "INSERT INTO pgbench_accounts (aid, bid, abalance) VALUES (1, 1, 0)");
        } catch (SQLException e) {
            OUT.println("refused: " + e.getSQLState());
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("ALTER TABLE pgbench_branches ADD COLUMN opened date DEFAULT '2020-02-02'");
            OUT.println("opened: " + rows(connection, "SELECT bid, opened FROM pgbench_branches WHERE bid < 3 ORDER BY bid"));
            statement.execute("TRUNCATE TABLE pgbench_history");
        }
        OUT.println("history: " + rows(connection, "SELECT count(*) FROM pgbench_history"));
    }

    public static void main(String[] args) throws Exception {
        System.setOut(System.err);
        String first = "jdbc:postgresql://" + args[0];
        String[] shards = {first, first + "_1"};
        String other = first.substring(first.lastIndexOf('/') + 1) + "_1";
        try (Connection admin = DriverManager.getConnection(first, "postgres", "x"); Statement statement = admin.createStatement()) {
            statement.execute("DROP DATABASE IF EXISTS " + other);
            statement.execute("CREATE DATABASE " + other);
        }
        DataSource source = YamlShardingSphereDataSourceFactory.createDataSource(yaml(shards).getBytes(StandardCharsets.UTF_8));
        try (Connection connection = source.getConnection()) {
            define(connection);
            fill(connection);
            ask(connection);
            transfers(source, connection);
            change(connection);
        }
        recover(shards);
        for (String shard : shards) {
            try (Connection direct = DriverManager.getConnection(shard, "postgres", "x")) {
                OUT.println("shard: " + rows(direct, "SELECT count(*), sum(abalance), min(bid), max(bid) FROM pgbench_accounts")
                    + "; prepared: " + rows(direct, "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()"));
            }
        }
        ((AutoCloseable) source).close();
        System.exit(0);
    }
}
