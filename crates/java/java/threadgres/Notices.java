package threadgres;

import java.sql.SQLException;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** What calls write to java.util.logging, as messages to their clients. */
final class Notices extends Handler {
    static void listen() {
        Logger root = Logger.getLogger("");
        for (Handler handler : root.getHandlers()) {
            root.removeHandler(handler);
        }
        Notices own = new Notices();
        own.setLevel(Level.ALL);
        own.setFormatter(new SimpleFormatter());
        root.addHandler(own);
    }

    @Override
    public void publish(LogRecord record) {
        if (!isLoggable(record)) {
            return;
        }
        String text = getFormatter().formatMessage(record);
        if (!Bridge.works()) {
            System.err.println(text);
            return;
        }
        int level = record.getLevel().intValue();
        int code = level >= Level.WARNING.intValue() ? 19 : level >= Level.INFO.intValue() ? 18 : 14;
        try {
            Bridge.ask(new Writer().u8(5).u8(code).text(text));
        } catch (SQLException e) {
            // The statement ends; the call learns it by itself.
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
