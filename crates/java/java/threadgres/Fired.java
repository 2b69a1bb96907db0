package threadgres;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Objects;
import org.postgresql.pljava.TriggerData;

/** A firing of a trigger. */
final class Fired implements TriggerData {
    private final String name;
    private final String timing;
    private final String operation;
    private final boolean forRow;
    private final String table;
    private final String schema;
    private final String[] arguments;
    private final Object[] before;
    private final Object[] after;
    private final Object[] given;
    private final ResultSet oldRow;
    private final ResultSet newRow;
    private boolean suppressed;

    Fired(Reader in) throws SQLException {
        name = in.text();
        timing = in.text();
        operation = in.text();
        forRow = in.u8() != 0;
        table = in.text();
        schema = in.text();
        arguments = in.texts();
        String[] columns = in.texts();
        before = row(in, columns.length);
        after = row(in, columns.length);
        given = after == null ? null : after.clone();
        boolean writable = isFiredBefore() && forRow;
        oldRow = before == null ? null : new Rows(columns, before, false).proxy();
        newRow = after == null ? null : new Rows(columns, after, writable).proxy();
    }

    private static Object[] row(Reader in, int columns) throws SQLException {
        if (in.u8() == 0) {
            return null;
        }
        Object[] row = new Object[columns];
        for (int n = 0; n < columns; n++) {
            row[n] = in.value();
        }
        return row;
    }

    /** 0: the row as it came; 1: none; 2: how many columns have changed, and each one's number and value. */
    void write(Writer out) throws SQLException {
        if (suppressed) {
            out.u8(1);
            return;
        }
        int changed = 0;
        for (int n = 0; after != null && n < after.length; n++) {
            changed += after[n] == given[n] ? 0 : 1;
        }
        if (changed == 0) {
            out.u8(0);
            return;
        }
        out.u8(2).i32(changed);
        for (int n = 0; n < after.length; n++) {
            if (after[n] != given[n]) {
                out.i32(n);
                out.value(after[n]);
            }
        }
    }

    @Override
    public void suppress() throws SQLException {
        if (!forRow || isFiredAfter()) {
            throw new SQLException("only BEFORE ROW and INSTEAD OF triggers can suppress a row", "39P01");
        }
        suppressed = true;
    }

    @Override
    public ResultSet getNew() {
        return newRow;
    }

    @Override
    public ResultSet getOld() {
        return oldRow;
    }

    @Override
    public String[] getArguments() {
        return arguments.clone();
    }

    @Override
    public String getName() {
        return name;
    }

    @Override
    public String getTableName() {
        return table;
    }

    @Override
    public String getSchemaName() {
        return schema;
    }

    @Override
    public boolean isFiredAfter() {
        return timing.equals("AFTER");
    }

    @Override
    public boolean isFiredBefore() {
        return !isFiredAfter();
    }

    @Override
    public boolean isFiredForEachRow() {
        return forRow;
    }

    @Override
    public boolean isFiredForStatement() {
        return !forRow;
    }

    @Override
    public boolean isFiredByDelete() {
        return operation.equals("DELETE");
    }

    @Override
    public boolean isFiredByInsert() {
        return operation.equals("INSERT");
    }

    @Override
    public boolean isFiredByUpdate() {
        return operation.equals("UPDATE");
    }

    @Override
    public boolean isFiredByTruncate() {
        return operation.equals("TRUNCATE");
    }

    @Override
    public String toString() {
        return Objects.toString(name) + " on " + table;
    }
}
