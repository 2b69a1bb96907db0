package threadgres;

import java.sql.SQLException;

/** An error of the server in a statement of Java's. */
final class ServerException extends SQLException {
    private static final long serialVersionUID = 1;

    /** The error's number in the session that had it. */
    final int number;

    ServerException(Reader in) {
        this(in.i32(), in.text(), in.text());
    }

    private ServerException(int number, String state, String message) {
        super(message, state);
        this.number = number;
    }
}
