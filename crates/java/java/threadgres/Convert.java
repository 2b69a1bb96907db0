package threadgres;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.ResultSet;
import java.sql.SQLDataException;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;

/** Values from one class to another. */
final class Convert {
    /** The infinities as PostgreSQL's JDBC driver has them, in milliseconds. */
    private static final long INFINITY_MS = 9_223_372_036_825_200_000L;
    private static final long MINUS_INFINITY_MS = -9_223_372_036_832_400_000L;

    private static final Map<Class<?>, Class<?>> BOXED = new HashMap<>();

    static {
        BOXED.put(boolean.class, Boolean.class);
        BOXED.put(byte.class, Byte.class);
        BOXED.put(short.class, Short.class);
        BOXED.put(int.class, Integer.class);
        BOXED.put(long.class, Long.class);
        BOXED.put(float.class, Float.class);
        BOXED.put(double.class, Double.class);
        BOXED.put(char.class, Character.class);
    }

    private Convert() {}

    /** The class of a value with this tag. */
    static Class<?> boxed(int tag) {
        switch (tag) {
            case 'b': return Boolean.class;
            case 's': return Short.class;
            case 'i': return Integer.class;
            case 'l': return Long.class;
            case 'f': return Float.class;
            case 'd': return Double.class;
            case 'n': return BigDecimal.class;
            case 't': return String.class;
            case 'B': return byte[].class;
            case 'D': return LocalDate.class;
            case 'T': return LocalTime.class;
            case 'S': return LocalDateTime.class;
            case 'Z': return OffsetDateTime.class;
            case 'U': return UUID.class;
            default: return Object.class;
        }
    }

    static Class<?> boxed(Class<?> of) {
        return of.isPrimitive() ? BOXED.getOrDefault(of, of) : of;
    }

    static SQLException cannot(Object value, Class<?> want) {
        return new SQLDataException(
            "a value of " + value.getClass().getTypeName() + " can't be had as " + want.getTypeName(), "42846");
    }

    private static SQLException outOf(Class<?> want) {
        return new SQLDataException(want.getSimpleName().toLowerCase() + " out of range", "22003");
    }

    /** The value as this class has it. */
    static Object to(Object value, Class<?> want) throws SQLException {
        if (value == null) {
            if (want.isPrimitive()) {
                throw new SQLDataException("NULL for a parameter of type " + want.getTypeName(), "22004");
            }
            return null;
        }
        Class<?> target = boxed(want);
        if (target.isInstance(value)) {
            return value instanceof Row ? Rows.of((Row) value) : value;
        }
        if (target == String.class || target == CharSequence.class) {
            return text(value);
        }
        if (Number.class.isAssignableFrom(target)) {
            return number(value, target);
        }
        if (target == Boolean.class) {
            return truth(value, want);
        }
        if (target.isArray()) {
            return array(value, target);
        }
        if (value instanceof Row) {
            if (target == ResultSet.class) {
                return Rows.of((Row) value);
            }
            if (target.isAssignableFrom(java.util.LinkedHashMap.class)) {
                return ((Row) value).map();
            }
        }
        if (target == java.sql.Array.class && value.getClass().isArray()) {
            return Connected.array(value);
        }
        if (target == UUID.class && value instanceof String) {
            return UUID.fromString((String) value);
        }
        return time(value, target);
    }

    private static String text(Object value) throws SQLException {
        if (value instanceof BigDecimal) {
            return ((BigDecimal) value).toPlainString();
        }
        if (value instanceof Boolean) {
            return (Boolean) value ? "t" : "f";
        }
        if (value instanceof LocalDateTime) {
            return to(value, java.sql.Timestamp.class).toString();
        }
        if (value.getClass().isArray()) {
            throw cannot(value, String.class);
        }
        return value.toString();
    }

    private static Object truth(Object value, Class<?> want) throws SQLException {
        if (value instanceof Number) {
            return ((Number) value).doubleValue() != 0;
        }
        switch (value.toString()) {
            case "t": case "true": case "1": case "y": case "yes": case "on": return true;
            case "f": case "false": case "0": case "n": case "no": case "off": return false;
            default: throw cannot(value, want);
        }
    }

    private static Object number(Object value, Class<?> target) throws SQLException {
        Object given = value;
        if (given instanceof String) {
            try {
                given = new BigDecimal(((String) given).trim());
            } catch (NumberFormatException e) {
                throw new SQLDataException("not a number: \"" + value + "\"", "22018");
            }
        } else if (given instanceof Boolean) {
            given = (Boolean) given ? 1 : 0;
        }
        if (!(given instanceof Number)) {
            throw cannot(value, target);
        }
        Number number = (Number) given;
        if (target.isInstance(number)) {
            return number;
        }
        if (target == Double.class) {
            return number.doubleValue();
        }
        if (target == Float.class) {
            return number.floatValue();
        }
        boolean real = number instanceof Double || number instanceof Float;
        if (target == BigDecimal.class || target == BigInteger.class) {
            if (real && !Double.isFinite(number.doubleValue())) {
                throw outOf(target);
            }
            BigDecimal exact = real ? BigDecimal.valueOf(number.doubleValue()) : new BigDecimal(number.toString());
            return target == BigDecimal.class ? exact : exact.toBigInteger();
        }
        long whole = whole(number, real, target);
        if (target == Long.class) {
            return whole;
        }
        if (target == Integer.class && whole == (int) whole) {
            return (int) whole;
        }
        if (target == Short.class && whole == (short) whole) {
            return (short) whole;
        }
        if (target == Byte.class && whole == (byte) whole) {
            return (byte) whole;
        }
        throw target == Number.class ? cannot(value, target) : outOf(target);
    }

    private static long whole(Number number, boolean real, Class<?> target) throws SQLException {
        if (number instanceof BigDecimal) {
            try {
                return ((BigDecimal) number).toBigInteger().longValueExact();
            } catch (ArithmeticException e) {
                throw outOf(target);
            }
        }
        if (real) {
            double value = number.doubleValue();
            if (!(value >= -0x1p63 && value < 0x1p63)) {
                throw outOf(target);
            }
            return (long) value;
        }
        return number.longValue();
    }

    private static Object array(Object value, Class<?> target) throws SQLException {
        if (target == byte[].class && value instanceof String) {
            return ((String) value).getBytes(java.nio.charset.StandardCharsets.UTF_8);
        }
        if (!value.getClass().isArray()) {
            throw cannot(value, target);
        }
        int count = Array.getLength(value);
        Class<?> element = target.getComponentType();
        Object all = Array.newInstance(element, count);
        for (int n = 0; n < count; n++) {
            Array.set(all, n, to(Array.get(value, n), element));
        }
        return all;
    }

    private static Object time(Object value, Class<?> target) throws SQLException {
        if (value instanceof LocalDate) {
            LocalDate date = (LocalDate) value;
            if (target == java.sql.Date.class || target == java.util.Date.class) {
                Long far = far(date.equals(LocalDate.MAX), date.equals(LocalDate.MIN));
                return far != null ? new java.sql.Date(far) : java.sql.Date.valueOf(date);
            }
            if (target == java.sql.Timestamp.class || target == LocalDateTime.class) {
                return to(date.atStartOfDay(), target);
            }
        } else if (value instanceof LocalTime && target == java.sql.Time.class) {
            return java.sql.Time.valueOf((LocalTime) value);
        } else if (value instanceof LocalDateTime) {
            LocalDateTime time = (LocalDateTime) value;
            if (target == java.sql.Timestamp.class || target == java.util.Date.class) {
                Long far = far(time.equals(LocalDateTime.MAX), time.equals(LocalDateTime.MIN));
                return far != null ? new java.sql.Timestamp(far) : java.sql.Timestamp.valueOf(time);
            }
            if (target == LocalDate.class) {
                return time.toLocalDate();
            }
            if (target == java.sql.Date.class) {
                return to(time.toLocalDate(), target);
            }
        } else if (value instanceof OffsetDateTime) {
            OffsetDateTime time = (OffsetDateTime) value;
            if (target == java.sql.Timestamp.class || target == java.util.Date.class) {
                Long far = far(time.equals(OffsetDateTime.MAX), time.equals(OffsetDateTime.MIN));
                return far != null ? new java.sql.Timestamp(far) : java.sql.Timestamp.from(time.toInstant());
            }
            if (target == Instant.class) {
                return time.toInstant();
            }
            if (target == ZonedDateTime.class) {
                return time.atZoneSameInstant(ZoneId.systemDefault());
            }
            if (target == LocalDateTime.class || target == java.sql.Date.class || target == LocalDate.class) {
                return to(time.atZoneSameInstant(ZoneId.systemDefault()).toLocalDateTime(), target);
            }
        }
        throw cannot(value, target);
    }

    private static Long far(boolean after, boolean before) {
        return after ? Long.valueOf(INFINITY_MS) : before ? Long.valueOf(MINUS_INFINITY_MS) : null;
    }

    /** The infinity that these milliseconds stand for; null for others. */
    static Long infinity(long ms) {
        return ms == INFINITY_MS ? Long.valueOf(Long.MAX_VALUE) : ms == MINUS_INFINITY_MS ? Long.valueOf(Long.MIN_VALUE) : null;
    }

    /** The value as {@code getObject} of JDBC gives it. */
    static Object jdbc(Object value) throws SQLException {
        if (value instanceof LocalDate) {
            return to(value, java.sql.Date.class);
        }
        if (value instanceof LocalTime) {
            return to(value, java.sql.Time.class);
        }
        if (value instanceof LocalDateTime || value instanceof OffsetDateTime) {
            return to(value, java.sql.Timestamp.class);
        }
        if (value instanceof Short) {
            return Integer.valueOf((Short) value);
        }
        if (value instanceof Row) {
            return Rows.of((Row) value);
        }
        return value != null && value.getClass().isArray() && !(value instanceof byte[])
            ? Connected.array(value)
            : value;
    }

    /** How well a parameter of this class takes values with this tag; less is better, -1: not at all. */
    static int cost(int tag, int element, Class<?> parameter) {
        if (parameter == Object.class) {
            return 20;
        }
        Class<?> boxed = boxed(parameter);
        int unboxing = parameter.isPrimitive() ? 0 : 1;
        switch (tag) {
            case 'b': return boxed == Boolean.class ? unboxing : -1;
            case 's': case 'i': case 'l': case 'f': case 'd': case 'n':
                return boxed == boxed(tag) ? unboxing : numeric(tag, boxed);
            case 't': return text(parameter);
            case 'B': return parameter == byte[].class ? 0 : -1;
            case 'D': return among(parameter, java.sql.Date.class, LocalDate.class);
            case 'T': return among(parameter, java.sql.Time.class, LocalTime.class);
            case 'S': return among(parameter, java.sql.Timestamp.class, LocalDateTime.class);
            case 'Z': return among(parameter, java.sql.Timestamp.class, OffsetDateTime.class, Instant.class);
            case 'U': return among(parameter, UUID.class, String.class);
            case 'A': return array(element, parameter);
            case 'R': return among(parameter, ResultSet.class, Map.class);
            default: return -1;
        }
    }

    private static int among(Class<?> parameter, Class<?>... those) {
        int at = Arrays.asList(those).indexOf(parameter);
        return at < 0 ? -1 : at;
    }

    private static int text(Class<?> parameter) {
        return parameter == String.class ? 0 : parameter == CharSequence.class ? 1 : -1;
    }

    private static int numeric(int tag, Class<?> boxed) {
        String wider = "sil";
        int from = wider.indexOf(tag);
        int to = boxed == Short.class ? 0 : boxed == Integer.class ? 1 : boxed == Long.class ? 2 : -1;
        if (from >= 0 && to > from) {
            return 2 + to;
        }
        if (boxed == Double.class) {
            return tag == 'l' || tag == 'n' ? 8 : 6;
        }
        if (boxed == BigDecimal.class) {
            return 7;
        }
        return boxed == BigInteger.class || boxed == Number.class ? 10 : -1;
    }

    private static int array(int element, Class<?> parameter) {
        if (parameter == java.sql.Array.class) {
            return 3;
        }
        Class<?> inner = parameter;
        while (inner.isArray() && inner != byte[].class) {
            inner = inner.getComponentType();
        }
        if (inner == parameter) {
            return -1;
        }
        int cost = cost(element, 0, inner);
        return cost < 0 ? -1 : cost + (parameter.getComponentType() == inner ? 0 : 2);
    }
}
