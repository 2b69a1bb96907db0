// Changes with Liquibase: tables, keys, views, sequences, functions and triggers, preconditions, rollback, and the
// difference between a changelog's database and the snapshot that Liquibase takes of it.

import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.Column;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.Sequence;
import liquibase.structure.core.Table;
import liquibase.structure.core.UniqueConstraint;
import liquibase.structure.core.View;

public class LiquibaseApp {
    static void show(Connection c, String query) throws SQLException {
        try (var s = c.createStatement(); var r = s.executeQuery(query)) {
            int columns = r.getMetaData().getColumnCount();
            while (r.next()) {
                var line = new StringBuilder(" ");
                for (int n = 1; n <= columns; n++) line.append(' ').append(r.getString(n));
                System.out.println(line);
            }
        }
        c.commit();
    }

    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection(args[0], "postgres", "");
                Connection own = DriverManager.getConnection(args[0], "postgres", "")) {
            own.setAutoCommit(false);
            var database = DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(c));
            var liquibase = new Liquibase("changelog.xml", new DirectoryResourceAccessor(Path.of(args[1])), database);
            var all = new Contexts();
            var any = new LabelExpression();
            System.out.println("to do: " + liquibase.listUnrunChangeSets(all, any).size());
            liquibase.update(all, any);
            System.out.println("to do: " + liquibase.listUnrunChangeSets(all, any).size());
            show(own, "SELECT id, author, exectype FROM databasechangelog ORDER BY orderexecuted");
            try (var s = own.createStatement()) {
                s.execute("INSERT INTO person (name, department) VALUES ('bob', 2)");
            }
            own.commit();
            show(own, "SELECT name, upper_name, enabled FROM person ORDER BY id");
            show(own, "SELECT * FROM people ORDER BY 1");
            show(own, "SELECT nextval('badge'), nextval('badge')");

            var snapshot = SnapshotGeneratorFactory.getInstance()
                .createSnapshot(database.getDefaultSchema(), database, new SnapshotControl(database));
            var lines = new java.util.TreeSet<String>();
            for (Table t : snapshot.get(Table.class)) lines.add("table " + t.getName() + " " + t.getRemarks());
            for (View v : snapshot.get(View.class)) lines.add("view " + v.getName());
            for (Sequence s : snapshot.get(Sequence.class)) lines.add("sequence " + s.getName() + " " + s.getIncrementBy());
            for (Index i : snapshot.get(Index.class)) {
                lines.add("index " + i.getName() + " " + i.getColumns() + " " + i.isUnique());
            }
            for (ForeignKey k : snapshot.get(ForeignKey.class)) lines.add("key " + k.getName() + " " + k.getDeleteRule());
            for (UniqueConstraint u : snapshot.get(UniqueConstraint.class)) lines.add("unique " + u.getName());
            for (Column k : snapshot.get(Column.class)) {
                if (k.getRelation() instanceof Table t && !t.getName().startsWith("databasechange")) {
                    lines.add("column " + t.getName() + "." + k.getName() + " " + k.getType() + " " + k.isNullable() + " "
                        + k.isAutoIncrement() + " " + k.getRemarks());
                }
            }
            lines.forEach(System.out::println);

            liquibase.rollback(2, "");
            show(own, "SELECT count(*) FROM pg_trigger WHERE tgname = 'set_upper'");
            liquibase.tag("now");
            liquibase.update(all, any);
            show(own, "SELECT count(*) FROM pg_trigger WHERE tgname = 'set_upper'");
            liquibase.validate();
            own.close();
            liquibase.dropAll();
            try (Connection last = DriverManager.getConnection(args[0], "postgres", "")) {
                last.setAutoCommit(false);
                show(last, "SELECT count(*) FROM pg_class WHERE relname IN ('person', 'department', 'people', 'badge')");
            }
        }
    }
}
