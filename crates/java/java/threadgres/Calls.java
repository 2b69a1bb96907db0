package threadgres;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;

/** What the proxies of JDBC's interfaces have in common: only what can be done here is written down. */
final class Calls {
    private Calls() {}

    static <T> T proxy(Class<T> face, InvocationHandler handler) {
        return face.cast(Proxy.newProxyInstance(Calls.class.getClassLoader(), new Class<?>[] {face}, handler));
    }

    /** The answer of methods that all have; {@code 0A000} for all others. */
    static Object common(Object target, Object proxy, Method method, Object[] args) throws SQLException {
        switch (method.getName()) {
            case "toString": return target.toString();
            case "hashCode": return System.identityHashCode(proxy);
            case "equals": return proxy == args[0];
            case "isWrapperFor": return ((Class<?>) args[0]).isInstance(proxy);
            case "unwrap":
                if (((Class<?>) args[0]).isInstance(proxy)) {
                    return proxy;
                }
                throw new SQLException("not a wrapper for " + args[0], "0A000");
            default:
                String face = method.getDeclaringClass().getSimpleName();
                throw new SQLFeatureNotSupportedException(
                    face + "." + method.getName() + " is not supported", "0A000");
        }
    }
}
