package org.postgresql.pljava;

import java.sql.ResultSet;
import java.sql.SQLException;

/** The facts of a trigger's firing, as a trigger's method gets them. */
public interface TriggerData {
    /** Leaves the row alone: no further trigger fires for it. Of BEFORE ROW and INSTEAD OF triggers. */
    void suppress() throws SQLException;

    /** The row after; in BEFORE ROW triggers its columns can be changed. Null where there is none. */
    ResultSet getNew() throws SQLException;

    /** The row before. Null where there is none. */
    ResultSet getOld() throws SQLException;

    /** The arguments of CREATE TRIGGER. */
    String[] getArguments() throws SQLException;

    /** The trigger's name. */
    String getName() throws SQLException;

    /** The table's name. */
    String getTableName() throws SQLException;

    /** The schema of the table. */
    String getSchemaName() throws SQLException;

    boolean isFiredAfter() throws SQLException;

    boolean isFiredBefore() throws SQLException;

    boolean isFiredForEachRow() throws SQLException;

    boolean isFiredForStatement() throws SQLException;

    boolean isFiredByDelete() throws SQLException;

    boolean isFiredByInsert() throws SQLException;

    boolean isFiredByUpdate() throws SQLException;

    boolean isFiredByTruncate() throws SQLException;
}
