package threadgres;

import java.io.InputStream;
import java.net.URI;
import java.sql.SQLException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The two ways between the server and Java: jobs that come in, and questions that go out. */
public final class Bridge {
    /** The pool's threads by number. */
    private static final Map<Long, Lane> LANES = new ConcurrentHashMap<>();
    private static final ThreadLocal<Lane> OWN = new ThreadLocal<>();
    private static final Map<Integer, ClassLoader> LOADERS = new ConcurrentHashMap<>();
    private static final Map<Integer, Routine> ROUTINES = new ConcurrentHashMap<>();
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private Bridge() {}

    /** A thread of the pool. */
    private static final class Lane {
        Thread thread;
        long serial;
        int depth;
        /** The call that was interrupted before its thread came to it. */
        long early;

        synchronized void enter(long of) {
            thread = Thread.currentThread();
            serial = of;
            depth++;
            if (early == of) {
                early = 0;
                thread.interrupt();
            }
        }

        /** An interrupt of a call that is over must not reach the next one. */
        synchronized void leave() {
            if (--depth == 0) {
                serial = 0;
                Thread.interrupted();
            }
        }

        synchronized void interrupt(long of) {
            if (serial == of) {
                thread.interrupt();
            } else if (of > serial) {
                early = of;
            }
        }
    }

    /** Asks the session that the running thread works for; null when it works for none. */
    private static native byte[] request(byte[] message);

    /** Called once. */
    static void start() throws SQLException {
        Connected.register();
        Guard.set();
        Notices.listen();
    }

    /** Runs a job of the server on a thread of the pool. Null: there is no memory even for saying so. */
    static byte[] call(long number, long serial, byte[] job) {
        Lane lane = OWN.get();
        if (lane == null) {
            lane = LANES.computeIfAbsent(number, n -> new Lane());
            OWN.set(lane);
        }
        lane.enter(serial);
        try {
            Writer out = new Writer();
            out.u8(0);
            run(new Reader(job), out);
            return out.take();
        } catch (Throwable thrown) {
            return Failure.write(thrown);
        } finally {
            lane.leave();
        }
    }

    /** The thread is about to end. */
    static void ended(long number) {
        LANES.remove(number);
    }

    static void interrupt(long number, long serial) {
        LANES.computeIfAbsent(number, n -> new Lane()).interrupt(serial);
    }

    /** A routine or loader that the server has no use for any more. */
    static void forget(int number) {
        ROUTINES.remove(number);
        LOADERS.remove(number);
    }

    private static void run(Reader in, Writer out) throws Throwable {
        int what = in.u8();
        switch (what) {
            case 1:
                routine(in).call(in, out);
                return;
            case 2: {
                ClassLoader loader = LOADERS.get(in.i32());
                int number = NUMBERS.incrementAndGet();
                Routine routine = Routine.of(loader == null ? Bridge.class.getClassLoader() : loader, in);
                ROUTINES.put(number, routine);
                out.i32(number);
                return;
            }
            case 3: {
                int number = NUMBERS.incrementAndGet();
                LOADERS.put(number, new Jars(in));
                out.i32(number);
                return;
            }
            case 4:
                routine(in).trigger(in, out);
                return;
            default: throw new SQLException("an unknown job of number " + what, "XX000");
        }
    }

    private static Routine routine(Reader in) throws SQLException {
        Routine routine = ROUTINES.get(in.i32());
        if (routine == null) {
            throw new SQLException("a routine that is gone", "XX000");
        }
        return routine;
    }

    /** Whether the running thread works for a session. */
    static boolean works() {
        Lane lane = OWN.get();
        return lane != null && lane.depth > 0;
    }

    /** Asks the session, and gives its answer or throws its error. */
    static Reader ask(Writer question) throws SQLException {
        byte[] answer = works() ? request(question.take()) : null;
        if (answer == null) {
            throw new SQLException("this thread works for no session", "08003");
        }
        Reader in = new Reader(answer);
        if (in.u8() == 0) {
            return in;
        }
        throw new ServerException(in);
    }

    /** For sqlj.install_jar: what a URL leads to. */
    public static byte[] read(String url) throws Exception {
        try (InputStream in = URI.create(url).toURL().openStream()) {
            return in.readAllBytes();
        }
    }

    /** For sqlj.java_version. */
    public static String version() {
        return System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version");
    }

    /** For sqlj.install_jar with deployment: the commands of a jar's descriptor, or of its end. */
    public static String[] commands(byte[] jar, boolean install) throws Exception {
        return Deployment.commands(jar, install);
    }
}
