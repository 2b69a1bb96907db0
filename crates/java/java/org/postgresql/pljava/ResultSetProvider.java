package org.postgresql.pljava;

import java.sql.ResultSet;
import java.sql.SQLException;

/** The rows of a set-returning function, made one by one. */
public interface ResultSetProvider {
    /** Fills the columns of row {@code currentRow} (from 0) of {@code receiver}; false: there is no such row. */
    boolean assignRowValues(ResultSet receiver, int currentRow) throws SQLException;

    /** Nobody asks for rows any more. */
    void close() throws SQLException;
}
