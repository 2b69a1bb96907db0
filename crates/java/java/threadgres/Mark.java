package threadgres;

import java.sql.SQLException;
import java.sql.Savepoint;

/** A savepoint of the call that the running thread works for. The server ends it with the call at the latest. */
final class Mark implements Savepoint {
    private final int number;
    private final String name;

    Mark(String name) throws SQLException {
        this.name = name;
        this.number = Bridge.ask(new Writer().u8(8)).i32();
    }

    static Mark of(Object savepoint) throws SQLException {
        if (savepoint instanceof Mark) {
            return (Mark) savepoint;
        }
        throw new SQLException("the savepoint is not one of this connection", "3B001");
    }

    void rollBack() throws SQLException {
        Bridge.ask(new Writer().u8(9).i32(number));
    }

    void release() throws SQLException {
        Bridge.ask(new Writer().u8(10).i32(number));
    }

    @Override
    public int getSavepointId() throws SQLException {
        if (name != null) {
            throw new SQLException("the savepoint has a name", "3B000");
        }
        return number;
    }

    @Override
    public String getSavepointName() throws SQLException {
        if (name == null) {
            throw new SQLException("the savepoint has no name", "3B000");
        }
        return name;
    }

    @Override
    public String toString() {
        return "Savepoint " + (name == null ? Integer.toString(number) : name);
    }
}
