package examples;

import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.postgresql.pljava.TriggerData;

/** A trigger that notes changes in the table that its argument names. */
public final class Audit {
    private Audit() {}

    /** Of AFTER triggers FOR EACH ROW. */
    public static void changed(TriggerData fired) throws SQLException {
        String insert = "INSERT INTO " + fired.getArguments()[0] + " (what, tab, id) VALUES (?, ?, ?)";
        String what = fired.isFiredByInsert() ? "insert" : fired.isFiredByDelete() ? "delete" : "update";
        try (PreparedStatement note =
                DriverManager.getConnection("jdbc:default:connection").prepareStatement(insert)) {
            note.setString(1, what);
            note.setString(2, fired.getTableName());
            note.setInt(3, (fired.getNew() == null ? fired.getOld() : fired.getNew()).getInt("id"));
            note.executeUpdate();
        }
    }
}
