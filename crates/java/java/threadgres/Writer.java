package threadgres;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.UUID;

/** A message for the server. The form of values is said in value.rs. */
final class Writer {
    private static final VarHandle SHORT = view(short[].class);
    private static final VarHandle INT = view(int[].class);
    private static final VarHandle LONG = view(long[].class);

    /** The largest message, in bytes. */
    private static final int SIZE_MAX = 1 << 30;

    private byte[] bytes = new byte[64];
    private int at;

    private static VarHandle view(Class<?> array) {
        return MethodHandles.byteArrayViewVarHandle(array, ByteOrder.BIG_ENDIAN);
    }

    private void room(int more) {
        if (bytes.length - at < more) {
            long size = (long) at + more;
            if (size > SIZE_MAX) {
                throw new OutOfMemoryError("a result of more than 1 GB");
            }
            bytes = Arrays.copyOf(bytes, (int) Math.min(SIZE_MAX, Math.max(size, 2L * bytes.length)));
        }
    }

    int size() {
        return at;
    }

    void clear() {
        at = 0;
    }

    byte[] take() {
        return at == bytes.length ? bytes : Arrays.copyOf(bytes, at);
    }

    Writer u8(int value) {
        room(1);
        bytes[at++] = (byte) value;
        return this;
    }

    Writer i16(int value) {
        room(2);
        SHORT.set(bytes, at, (short) value);
        at += 2;
        return this;
    }

    Writer i32(int value) {
        room(4);
        INT.set(bytes, at, value);
        at += 4;
        return this;
    }

    Writer i64(long value) {
        room(8);
        LONG.set(bytes, at, value);
        at += 8;
        return this;
    }

    /** Sets a number that was written as a place holder. */
    void setI32(int place, int value) {
        INT.set(bytes, place, value);
    }

    Writer text(String text) {
        return blob(text.getBytes(StandardCharsets.UTF_8));
    }

    Writer blob(byte[] more) {
        i32(more.length);
        room(more.length);
        System.arraycopy(more, 0, bytes, at, more.length);
        at += more.length;
        return this;
    }

    /** A value of any class. */
    void value(Object value) throws SQLException {
        if (value == null) {
            u8(0);
        } else if (value instanceof Integer) {
            u8('i').i32((Integer) value);
        } else if (value instanceof Long) {
            u8('l').i64((Long) value);
        } else if (value instanceof String) {
            u8('t').text((String) value);
        } else if (value instanceof Boolean) {
            u8('b').u8((Boolean) value ? 1 : 0);
        } else if (value instanceof Double) {
            u8('d').i64(Double.doubleToRawLongBits((Double) value));
        } else if (value instanceof Float) {
            u8('f').i32(Float.floatToRawIntBits((Float) value));
        } else if (value instanceof Short || value instanceof Byte) {
            u8('s').i16(((Number) value).shortValue());
        } else if (value instanceof BigDecimal || value instanceof BigInteger) {
            u8('n').text(value.toString());
        } else if (value instanceof byte[]) {
            u8('B').blob((byte[]) value);
        } else if (value instanceof UUID) {
            UUID uuid = (UUID) value;
            u8('U').i64(uuid.getMostSignificantBits()).i64(uuid.getLeastSignificantBits());
        } else if (value.getClass().isArray()) {
            array(value);
        } else {
            other(value);
        }
    }

    private void other(Object value) throws SQLException {
        if (value instanceof java.sql.Timestamp) {
            java.sql.Timestamp timestamp = (java.sql.Timestamp) value;
            Long far = Convert.infinity(timestamp.getTime());
            if (far != null) {
                u8('P').i64(far).i64(far);
                return;
            }
            u8('P').i64(local(timestamp.toLocalDateTime())).i64(instant(timestamp.toInstant()));
        } else if (value instanceof java.sql.Date) {
            java.sql.Date date = (java.sql.Date) value;
            Long far = Convert.infinity(date.getTime());
            u8('D').i32(far == null ? date(date.toLocalDate()) : far > 0 ? Integer.MAX_VALUE : Integer.MIN_VALUE);
        } else if (value instanceof java.sql.Time) {
            u8('T').i64(((java.sql.Time) value).toLocalTime().toNanoOfDay() / 1000);
        } else if (value instanceof java.util.Date) {
            other(new java.sql.Timestamp(((java.util.Date) value).getTime()));
        } else if (value instanceof LocalDate) {
            u8('D').i32(date((LocalDate) value));
        } else if (value instanceof LocalTime) {
            u8('T').i64(((LocalTime) value).toNanoOfDay() / 1000);
        } else if (value instanceof LocalDateTime) {
            u8('S').i64(local((LocalDateTime) value));
        } else if (value instanceof OffsetDateTime) {
            OffsetDateTime time = (OffsetDateTime) value;
            boolean far = time.equals(OffsetDateTime.MAX) || time.equals(OffsetDateTime.MIN);
            u8('Z').i64(far ? local(time.toLocalDateTime()) : instant(time.toInstant()));
        } else if (value instanceof ZonedDateTime) {
            u8('Z').i64(instant(((ZonedDateTime) value).toInstant()));
        } else if (value instanceof Instant) {
            u8('Z').i64(instant((Instant) value));
        } else if (value instanceof java.sql.Array) {
            value(((java.sql.Array) value).getArray());
        } else if (value instanceof Row) {
            record(((Row) value).names, ((Row) value).values);
        } else if (value instanceof ResultSet) {
            Row row = Rows.current((ResultSet) value);
            record(row.names, row.values);
        } else if (value instanceof Map) {
            map((Map<?, ?>) value);
        } else if (value instanceof Collection) {
            array(((Collection<?>) value).toArray());
        } else if (isRecord(value)) {
            fields(value);
        } else {
            u8('t').text(value.toString());
        }
    }

    private static int date(LocalDate date) throws SQLException {
        if (date.equals(LocalDate.MAX)) {
            return Integer.MAX_VALUE;
        }
        if (date.equals(LocalDate.MIN)) {
            return Integer.MIN_VALUE;
        }
        long days = date.toEpochDay() - Reader.EPOCH_S / 86_400;
        if (days != (int) days) {
            throw new SQLException("date out of range", "22008");
        }
        return (int) days;
    }

    private static long local(LocalDateTime time) throws SQLException {
        if (time.equals(LocalDateTime.MAX)) {
            return Long.MAX_VALUE;
        }
        if (time.equals(LocalDateTime.MIN)) {
            return Long.MIN_VALUE;
        }
        return instant(time.toInstant(ZoneOffset.UTC));
    }

    private static long instant(Instant time) throws SQLException {
        try {
            long us = Math.multiplyExact(time.getEpochSecond() - Reader.EPOCH_S, 1_000_000L);
            return Math.addExact(us, time.getNano() / 1000);
        } catch (ArithmeticException e) {
            throw new SQLException("timestamp out of range", "22008");
        }
    }

    private void record(String[] names, Object[] values) throws SQLException {
        u8('R').i16(names.length);
        for (int n = 0; n < names.length; n++) {
            text(names[n]);
            value(values[n]);
        }
    }

    private void map(Map<?, ?> map) throws SQLException {
        u8('R').i16(map.size());
        for (Map.Entry<?, ?> entry : map.entrySet()) {
            text(String.valueOf(entry.getKey()));
            value(entry.getValue());
        }
    }

    private static boolean isRecord(Object value) {
        Class<?> above = value.getClass().getSuperclass();
        return above != null && above.getName().equals("java.lang.Record");
    }

    /** A record of Java, whose components are columns by place. */
    private void fields(Object value) throws SQLException {
        Field[] all = value.getClass().getDeclaredFields();
        int count = 0;
        for (Field field : all) {
            count += Modifier.isStatic(field.getModifiers()) ? 0 : 1;
        }
        u8('r').i16(count);
        for (Field field : all) {
            if (!Modifier.isStatic(field.getModifiers())) {
                try {
                    field.setAccessible(true);
                    value(field.get(value));
                } catch (ReflectiveOperationException | RuntimeException e) {
                    throw new SQLException("component " + field.getName() + " can't be read", "38000", e);
                }
            }
        }
    }

    /** Columns by place. */
    void positional(Object[] values) throws SQLException {
        u8('r').i16(values.length);
        for (Object value : values) {
            value(value);
        }
    }

    private void array(Object array) throws SQLException {
        int count = Array.getLength(array);
        if (array instanceof int[]) {
            vector('i', count, 4);
            for (int value : (int[]) array) {
                i32(value);
            }
        } else if (array instanceof long[]) {
            vector('l', count, 8);
            for (long value : (long[]) array) {
                i64(value);
            }
        } else if (array instanceof double[]) {
            vector('d', count, 8);
            for (double value : (double[]) array) {
                i64(Double.doubleToRawLongBits(value));
            }
        } else if (array instanceof float[]) {
            vector('f', count, 4);
            for (float value : (float[]) array) {
                i32(Float.floatToRawIntBits(value));
            }
        } else if (array instanceof short[]) {
            vector('s', count, 2);
            for (short value : (short[]) array) {
                i16(value);
            }
        } else if (array instanceof boolean[]) {
            vector('b', count, 1);
            for (boolean value : (boolean[]) array) {
                u8(value ? 1 : 0);
            }
        } else {
            nested(array);
        }
    }

    private void vector(int tag, int count, int width) {
        long size = (long) count * width + 5;
        room(size > SIZE_MAX ? SIZE_MAX : (int) size);
        u8('V').u8(tag).i32(count);
    }

    private void nested(Object array) throws SQLException {
        int[] lengths = new int[6];
        int depth = 0;
        Object first = array;
        while (first != null && first.getClass().isArray() && !(first instanceof byte[])) {
            if (depth == 6) {
                throw new SQLException("number of array dimensions exceeds the maximum allowed (6)", "54000");
            }
            lengths[depth] = Array.getLength(first);
            first = lengths[depth] == 0 ? null : Array.get(first, 0);
            depth++;
        }
        u8('A').u8('?').u8(depth);
        for (int n = 0; n < depth; n++) {
            i32(lengths[n]);
        }
        level(array, lengths, 0, depth);
    }

    private void level(Object array, int[] lengths, int at, int depth) throws SQLException {
        if (array == null || Array.getLength(array) != lengths[at]) {
            throw new SQLException(
                "multidimensional arrays must have array expressions with matching dimensions", "2202E");
        }
        for (int n = 0; n < lengths[at]; n++) {
            if (at + 1 == depth) {
                value(Array.get(array, n));
            } else {
                level(Array.get(array, n), lengths, at + 1, depth);
            }
        }
    }
}
