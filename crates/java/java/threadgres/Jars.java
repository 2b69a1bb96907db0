package threadgres;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLConnection;
import java.net.URLStreamHandler;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;

/** The classes of a class path of jars that lie in the database. The first jar that has an entry counts. */
final class Jars extends ClassLoader {
    static {
        registerAsParallelCapable();
    }

    private final Map<String, List<byte[]>> entries = new HashMap<>();
    private final ProtectionDomain domain;

    Jars(Reader in) throws IOException {
        super("jars", Bridge.class.getClassLoader());
        for (int left = in.i32(); left > 0; left--) {
            in.text();
            add(in.blob());
        }
        domain = new ProtectionDomain(new CodeSource(null, (Certificate[]) null), null, this, null);
    }

    private void add(byte[] jar) throws IOException {
        try (ZipInputStream zip = new ZipInputStream(new ByteArrayInputStream(jar))) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                if (!entry.isDirectory()) {
                    entries.computeIfAbsent(entry.getName(), name -> new ArrayList<>(1)).add(zip.readAllBytes());
                }
            }
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        List<byte[]> found = entries.get(name.replace('.', '/') + ".class");
        if (found == null) {
            throw new ClassNotFoundException(name);
        }
        byte[] bytes = found.get(0);
        int dot = name.lastIndexOf('.');
        if (dot > 0 && getDefinedPackage(name.substring(0, dot)) == null) {
            try {
                definePackage(name.substring(0, dot), null, null, null, null, null, null, null);
            } catch (IllegalArgumentException e) {
                // Another thread was first.
            }
        }
        return defineClass(name, bytes, 0, bytes.length, domain);
    }

    @Override
    protected URL findResource(String name) {
        List<byte[]> found = entries.get(name);
        return found == null ? null : url(name, found.get(0));
    }

    @Override
    protected Enumeration<URL> findResources(String name) {
        List<URL> all = new ArrayList<>();
        for (byte[] bytes : entries.getOrDefault(name, Collections.emptyList())) {
            all.add(url(name, bytes));
        }
        return Collections.enumeration(all);
    }

    private static URL url(String name, byte[] bytes) {
        try {
            return new URL("sqlj", null, -1, "/" + name, new URLStreamHandler() {
                @Override
                protected URLConnection openConnection(URL url) {
                    return new URLConnection(url) {
                        @Override
                        public void connect() {}

                        @Override
                        public InputStream getInputStream() {
                            return new ByteArrayInputStream(bytes);
                        }
                    };
                }
            });
        } catch (MalformedURLException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Everything of one entry of a jar; null when there is none. */
    static byte[] entry(byte[] jar, String name) throws IOException {
        try (ZipInputStream zip = new ZipInputStream(new ByteArrayInputStream(jar))) {
            for (ZipEntry entry = zip.getNextEntry(); entry != null; entry = zip.getNextEntry()) {
                if (entry.getName().equals(name)) {
                    ByteArrayOutputStream out = new ByteArrayOutputStream();
                    zip.transferTo(out);
                    return out.toByteArray();
                }
            }
        }
        return null;
    }
}
