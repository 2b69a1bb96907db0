package threadgres;

import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;

/** What a method throws, as the server's error. */
final class Failure {
    private static final int FRAMES_MAX = 20;
    private static final int CAUSES_MAX = 10;

    private Failure() {}

    static byte[] write(Throwable thrown) {
        try {
            Writer out = new Writer();
            out.u8(1);
            String state = state(thrown);
            boolean sql = thrown instanceof SQLException && thrown.getMessage() != null;
            out.text(state);
            out.text(sql ? thrown.getMessage() : String.valueOf(thrown));
            StringBuilder causes = new StringBuilder();
            Throwable cause = thrown.getCause();
            for (int n = 0; cause != null && n < CAUSES_MAX; n++) {
                causes.append(n == 0 ? "" : "\n").append("Caused by ").append(cause);
                cause = cause.getCause();
            }
            out.text(causes.toString());
            out.i32(thrown instanceof ServerException ? ((ServerException) thrown).number : -1);
            List<String> frames = frames(thrown);
            out.i32(frames.size());
            for (String frame : frames) {
                out.text(frame);
            }
            return out.take();
        } catch (Throwable again) {
            return null;
        }
    }

    private static String state(Throwable thrown) {
        if (thrown instanceof SQLException) {
            String state = ((SQLException) thrown).getSQLState();
            return state == null || !state.matches("[0-9A-Z]{5}") || state.startsWith("00") ? "38000" : state;
        }
        if (thrown instanceof StackOverflowError) {
            return "54001";
        }
        return thrown instanceof OutOfMemoryError ? "53200" : "38000";
    }

    /** The frames of the user's code, the innermost first. */
    private static List<String> frames(Throwable thrown) {
        List<String> frames = new ArrayList<>();
        for (StackTraceElement frame : thrown.getStackTrace()) {
            String type = frame.getClassName();
            if (type.equals("threadgres.Routine")) {
                break;
            }
            boolean own = type.startsWith("threadgres.") || type.startsWith("java.lang.invoke.")
                || type.startsWith("jdk.internal.") || type.startsWith("jdk.proxy");
            if (!own && frames.size() < FRAMES_MAX) {
                String place = frame.getFileName() == null
                    ? ""
                    : " (" + frame.getFileName() + (frame.getLineNumber() > 0 ? ":" + frame.getLineNumber() : "") + ")";
                frames.add(type + "." + frame.getMethodName() + place);
            }
        }
        return frames;
    }
}
