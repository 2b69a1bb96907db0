package org.postgresql.pljava;

import java.sql.ResultSet;
import java.sql.SQLException;

/** The rows of a set-returning function, from a query. */
public interface ResultSetHandle {
    /** The rows. */
    ResultSet getResultSet() throws SQLException;

    /** Nobody asks for rows any more. */
    void close() throws SQLException;
}
