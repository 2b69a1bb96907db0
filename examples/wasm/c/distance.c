/* distance(lat1, lon1, lat2, lon2) -> float8: kilometres on a sphere, for whole columns (BATCH). Without a C library:
 * clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry -o distance.wasm distance.c */
typedef unsigned int u32;
typedef unsigned long long u64;

#define EXPORT(name) __attribute__((export_name(#name)))

static unsigned char heap[4 << 20] __attribute__((aligned(8)));

EXPORT(alloc) void *alloc(u32 size) {
    return size <= sizeof heap ? heap : 0;
}

/* count, flags, then the values; behind a validity when flag 1 is set. */
struct column {
    u32 count, flags;
    unsigned char rest[];
};

static const double *values(const unsigned char *at, int n) {
    const struct column *column = (const void *)(at + ((const u32 *)at)[n]);
    u32 skip = column->flags & 1 ? (column->count + 7) & ~7u : 0;
    return (const double *)(column->rest + skip);
}

static double absolute(double x) { return x < 0 ? -x : x; }

/* Series that are good to some metres between -pi and pi. */
static double sine(double x) {
    const double pi = 3.14159265358979323846;
    while (x > pi) x -= 2 * pi;
    while (x < -pi) x += 2 * pi;
    double term = x, sum = x;
    for (int n = 1; n < 12; n++) {
        term *= -x * x / ((2 * n) * (2 * n + 1));
        sum += term;
    }
    return sum;
}

static double cosine(double x) { return sine(x + 1.57079632679489661923); }

static double arcsine(double x) {
    /* Newton's steps from the angle of the chord. */
    double angle = x;
    for (int n = 0; n < 30 && absolute(sine(angle) - x) > 1e-15; n++) {
        double slope = cosine(angle);
        angle -= (sine(angle) - x) / (slope > 1e-9 ? slope : 1e-9);
    }
    return angle;
}

static struct {
    u32 count, flags;
    double values[1 << 16];
} out;

EXPORT(distance) u64 distance(u32 rows, const unsigned char *at) {
    const double *lat1 = values(at, 0), *lon1 = values(at, 1), *lat2 = values(at, 2), *lon2 = values(at, 3);
    const double degree = 3.14159265358979323846 / 180;
    out.count = rows;
    for (u32 n = 0; n < rows; n++) {
        double a = sine((lat2[n] - lat1[n]) * degree / 2), b = sine((lon2[n] - lon1[n]) * degree / 2);
        double h = a * a + cosine(lat1[n] * degree) * cosine(lat2[n] * degree) * b * b;
        out.values[n] = 2 * 6371 * arcsine(__builtin_sqrt(h > 1 ? 1 : h));
    }
    return (u64)(u32)&out << 32 | (8 + rows * 8);
}
