package threadgres;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.UUID;

/** A message of the server, read from its beginning. The form of values is said in value.rs. */
final class Reader {
    private static final VarHandle SHORT = view(short[].class);
    private static final VarHandle INT = view(int[].class);
    private static final VarHandle LONG = view(long[].class);

    /** Seconds from 1970 to 2000. */
    static final long EPOCH_S = 946_684_800L;

    private final byte[] bytes;
    private int at;

    Reader(byte[] bytes) {
        this.bytes = bytes;
    }

    private static VarHandle view(Class<?> array) {
        return MethodHandles.byteArrayViewVarHandle(array, ByteOrder.BIG_ENDIAN);
    }

    int u8() {
        return bytes[at++] & 0xff;
    }

    short i16() {
        short value = (short) SHORT.get(bytes, at);
        at += 2;
        return value;
    }

    int i32() {
        int value = (int) INT.get(bytes, at);
        at += 4;
        return value;
    }

    long i64() {
        long value = (long) LONG.get(bytes, at);
        at += 8;
        return value;
    }

    String text() {
        int length = i32();
        String text = new String(bytes, at, length, StandardCharsets.UTF_8);
        at += length;
        return text;
    }

    byte[] blob() {
        byte[] taken = new byte[i32()];
        System.arraycopy(bytes, at, taken, 0, taken.length);
        at += taken.length;
        return taken;
    }

    String[] texts() {
        String[] texts = new String[i32()];
        for (int n = 0; n < texts.length; n++) {
            texts[n] = text();
        }
        return texts;
    }

    /** The next value as a method's parameter of this class takes it. */
    Object value(Class<?> want) throws SQLException {
        return Convert.to(value(), want);
    }

    /** The next value in its own class. */
    Object value() throws SQLException {
        int tag = u8();
        switch (tag) {
            case 0: return null;
            case 'b': return u8() != 0;
            case 's': return i16();
            case 'i': return i32();
            case 'l': return i64();
            case 'f': return Float.intBitsToFloat(i32());
            case 'd': return Double.longBitsToDouble(i64());
            case 'n': return number(text());
            case 't': return text();
            case 'B': return blob();
            case 'D': return date(i32());
            case 'T': {
                long us = i64();
                return us >= 86_400_000_000L ? LocalTime.MAX : LocalTime.ofNanoOfDay(us * 1000);
            }
            case 'S': return timestamp(i64());
            case 'Z': return instant(i64());
            case 'U': return new UUID(i64(), i64());
            case 'V': return vector();
            case 'A': return array();
            case 'R': return record();
            default: throw new SQLException("a value of unknown form " + tag, "XX000");
        }
    }

    private static Object number(String text) {
        switch (text) {
            case "NaN": return Double.NaN;
            case "Infinity": return Double.POSITIVE_INFINITY;
            case "-Infinity": return Double.NEGATIVE_INFINITY;
            default: return new BigDecimal(text);
        }
    }

    private static LocalDate date(int days) {
        if (days == Integer.MAX_VALUE) {
            return LocalDate.MAX;
        }
        return days == Integer.MIN_VALUE ? LocalDate.MIN : LocalDate.ofEpochDay(days + EPOCH_S / 86_400);
    }

    private static LocalDateTime timestamp(long us) {
        if (us == Long.MAX_VALUE) {
            return LocalDateTime.MAX;
        }
        if (us == Long.MIN_VALUE) {
            return LocalDateTime.MIN;
        }
        long seconds = Math.floorDiv(us, 1_000_000L);
        int nanos = (int) Math.floorMod(us, 1_000_000L) * 1000;
        return LocalDateTime.ofEpochSecond(seconds + EPOCH_S, nanos, ZoneOffset.UTC);
    }

    private static OffsetDateTime instant(long us) {
        if (us == Long.MAX_VALUE) {
            return OffsetDateTime.MAX;
        }
        return us == Long.MIN_VALUE ? OffsetDateTime.MIN : timestamp(us).atOffset(ZoneOffset.UTC);
    }

    /** Numbers of one dimension without NULL. */
    private Object vector() throws SQLException {
        int tag = u8();
        int count = i32();
        switch (tag) {
            case 'b': {
                boolean[] all = new boolean[count];
                for (int n = 0; n < count; n++) {
                    all[n] = u8() != 0;
                }
                return all;
            }
            case 's': {
                short[] all = new short[count];
                for (int n = 0; n < count; n++) {
                    all[n] = i16();
                }
                return all;
            }
            case 'i': {
                int[] all = new int[count];
                for (int n = 0; n < count; n++) {
                    all[n] = i32();
                }
                return all;
            }
            case 'l': {
                long[] all = new long[count];
                for (int n = 0; n < count; n++) {
                    all[n] = i64();
                }
                return all;
            }
            case 'f': {
                float[] all = new float[count];
                for (int n = 0; n < count; n++) {
                    all[n] = Float.intBitsToFloat(i32());
                }
                return all;
            }
            case 'd': {
                double[] all = new double[count];
                for (int n = 0; n < count; n++) {
                    all[n] = Double.longBitsToDouble(i64());
                }
                return all;
            }
            default: throw new SQLException("a vector of unknown form " + tag, "XX000");
        }
    }

    private Object array() throws SQLException {
        Class<?> element = Convert.boxed(u8());
        int[] lengths = new int[u8()];
        for (int n = 0; n < lengths.length; n++) {
            lengths[n] = i32();
        }
        if (lengths.length == 0) {
            return Array.newInstance(element, 0);
        }
        return level(element, lengths, 0);
    }

    private Object level(Class<?> element, int[] lengths, int depth) throws SQLException {
        if (depth + 1 == lengths.length) {
            Object all = Array.newInstance(element, lengths[depth]);
            for (int n = 0; n < lengths[depth]; n++) {
                Array.set(all, n, Convert.to(value(), element));
            }
            return all;
        }
        Class<?> inner = element;
        for (int n = depth + 1; n < lengths.length; n++) {
            inner = Array.newInstance(inner, 0).getClass();
        }
        Object all = Array.newInstance(inner, lengths[depth]);
        for (int n = 0; n < lengths[depth]; n++) {
            Array.set(all, n, level(element, lengths, depth + 1));
        }
        return all;
    }

    private Row record() throws SQLException {
        String[] names = new String[i16()];
        Object[] values = new Object[names.length];
        for (int n = 0; n < names.length; n++) {
            names[n] = text();
            values[n] = value();
        }
        return new Row(names, values);
    }
}
