package threadgres;

import java.security.Permission;

/** Keeps Java code from ending the server's process, which is all sessions. It forbids nothing else. */
final class Guard {
    private Guard() {}

    static void set() {
        // Where there is no security manager any more, an orderly exit waits for its hooks, and so for ever.
        Thread forever = new Thread(() -> {
            while (true) {
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException e) {
                    // Goes on waiting.
                }
            }
        }, "threadgres exit");
        forever.setDaemon(true);
        Runtime.getRuntime().addShutdownHook(forever);
        try {
            manage();
        } catch (UnsupportedOperationException | LinkageError e) {
            // The hook is what there is.
        }
    }

    @SuppressWarnings({"deprecation", "removal"})
    private static void manage() {
        System.setSecurityManager(new SecurityManager() {
            @Override
            public void checkExit(int status) {
                throw new SecurityException("System.exit would end the server");
            }

            @Override
            public void checkPermission(Permission permission) {
                if (permission.getName().equals("setSecurityManager")) {
                    throw new SecurityException("the security manager stays");
                }
            }

            @Override
            public void checkPermission(Permission permission, Object context) {}
        });
    }
}
