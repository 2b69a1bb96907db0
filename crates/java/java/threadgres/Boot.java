package threadgres;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/**
 * The loader of the other classes here, whose bytes the server brings. It is the only class that is defined by JNI.
 */
public final class Boot extends ClassLoader {
    private final Map<String, byte[]> classes = new HashMap<>();

    private Boot(ClassLoader parent) {
        super("threadgres", parent);
    }

    /** Takes the classes (count; each a name and its bytes, with lengths before them) and gives the bridge's. */
    public static Class<?> start(byte[] all) throws IOException, ClassNotFoundException {
        Boot boot = new Boot(ClassLoader.getSystemClassLoader());
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(all));
        for (int left = in.readInt(); left > 0; left--) {
            String name = in.readUTF();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            boot.classes.put(name, bytes);
        }
        return Class.forName("threadgres.Bridge", true, boot);
    }

    /** The parent, the system's loader, knows this class alone; everything else of the package is found here. */
    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        byte[] bytes = classes.get(name);
        if (bytes == null) {
            throw new ClassNotFoundException(name);
        }
        return defineClass(name, bytes, 0, bytes.length);
    }
}
