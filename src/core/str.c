/* SPDX-License-Identifier: MIT
 * str.c - see str.h. Numbers are parsed in integers, digit by digit, so that nothing is rounded twice and no
 * locale can change the decimal point. */
#include "core/str.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- UTF-8 ---- */

/* The length of the valid sequence at s (1 .. 4), or minus the length of what to replace (-1 .. -3). */
static int utf8_step(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char first, last, low, high; /* range of the lead byte, and of the byte after it */
        int size;
    } leads[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    if (s[0] < 0x80) return 1;
    for (size_t k = 0; k < sizeof leads / sizeof leads[0]; k++) {
        if (s[0] < leads[k].first || s[0] > leads[k].last) continue;
        if (n < 2 || s[1] < leads[k].low || s[1] > leads[k].high) return -1;
        for (int i = 2; i < leads[k].size; i++) {
            if ((size_t)i >= n || (s[i] & 0xC0) != 0x80) return -i;
        }
        return leads[k].size;
    }
    return -1;
}

bool str_is_utf8(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        int step = utf8_step((const unsigned char *)s + i, n - i);
        if (step < 0) return false;
        i += (size_t)step;
    }
    return true;
}

void str_add_utf8(struct buf *out, const char *s, size_t n)
{
    size_t good = 0; /* start of the good bytes not yet added */
    for (size_t i = 0; i < n;) {
        int step = utf8_step((const unsigned char *)s + i, n - i);
        if (step > 0) {
            i += (size_t)step;
            continue;
        }
        buf_add(out, s + good, i - good);
        buf_add(out, "\xEF\xBF\xBD", 3);
        i += (size_t)-step;
        good = i;
    }
    buf_add(out, s + good, n - good);
}

/* ---- quantities in ---- */

/* digits [. digits]: the whole part, and the fraction as part / scale. At most 18 digits of fraction. */
struct number {
    uint64_t whole, part, scale;
    const char *rest; /* what follows */
};

enum number_fault { NUMBER_GOOD, NUMBER_BAD, NUMBER_LARGE };

static enum number_fault read_number(const char *text, struct number *out)
{
    *out = (struct number){0, 0, 1, text};
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(out->whole, 10u, &out->whole)) return NUMBER_LARGE;
        if (__builtin_add_overflow(out->whole, (uint64_t)(*at - '0'), &out->whole)) return NUMBER_LARGE;
    }
    if (at == text) return NUMBER_BAD;
    if (*at == '.') {
        const char *point = at++;
        for (; *at >= '0' && *at <= '9'; at++) {
            if (at - point > 18) return NUMBER_BAD;
            out->part = out->part * 10 + (uint64_t)(*at - '0');
            out->scale *= 10;
        }
        if (at == point + 1) return NUMBER_BAD;
    }
    out->rest = at;
    return NUMBER_GOOD;
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* number * factor to the nearest whole, halves up. */
static unsigned __int128 scale_number(const struct number *number, uint64_t factor)
{
    unsigned __int128 whole = (unsigned __int128)number->whole * factor;
    unsigned __int128 parts = (unsigned __int128)number->part * factor;
    return whole + (parts + number->scale / 2) / number->scale;
}

struct quantity {
    const struct unit *units;
    size_t n_units;
    bool any_case, sums; /* sums: several numbers with units, as in 1m30s */
    uint64_t most;
    const char *what, *expected;
};

static const struct unit *find_unit(const struct quantity *q, const char *name, size_t len)
{
    for (size_t i = 0; i < q->n_units; i++) {
        const struct unit *u = &q->units[i];
        if (strlen(u->name) == len && (q->any_case ? strncasecmp : strncmp)(u->name, name, len) == 0)
            return u;
    }
    return NULL;
}

static tare_status parse_quantity(const struct quantity *q, const char *text, uint64_t *out, tare_error *err)
{
    uint64_t sum = 0;
    const char *at = text;
    do {
        struct number number;
        enum number_fault fault = read_number(at, &number);
        size_t len = strcspn(number.rest, "0123456789.");
        const struct unit *unit = fault ? NULL : find_unit(q, number.rest, len);
        at = number.rest + len;
        if (fault != NUMBER_LARGE && (!unit || (*at && !q->sums)))
            return error_set(err, TARE_INVALID, "'%.60s' is not %s: expected %s", text, q->what, q->expected);
        if (fault == NUMBER_LARGE || scale_number(&number, unit->factor) > q->most - sum)
            return error_set(err, TARE_INVALID, "'%.60s' is too large for %s", text, q->what);
        sum += (uint64_t)scale_number(&number, unit->factor);
    } while (*at);
    *out = sum;
    return TARE_OK;
}

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

tare_status str_parse_bytes(const char *text, uint64_t *out, tare_error *err)
{
    static const struct unit units[] = {
        {"", 1},
        {"B", 1},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"KB", UINT64_C(1000)},
        {"MB", UINT64_C(1000000)},
        {"GB", UINT64_C(1000000000)},
        {"TB", UINT64_C(1000000000000)},
    };
    static const struct quantity bytes = {
        .units = units,
        .n_units = COUNT_OF(units),
        .any_case = true,
        .most = UINT64_MAX,
        .what = "a size",
        .expected = "a number of bytes, like 65536, 64M, 1GiB or 4GB",
    };
    return parse_quantity(&bytes, text, out, err);
}

tare_status str_parse_duration(const char *text, struct duration *out, tare_error *err)
{
    static const struct unit units[] = {
        {"ns", 1},
        {"us", UINT64_C(1000)},
        {"\xC2\xB5s", UINT64_C(1000)}, /* micro sign */
        {"\xCE\xBCs", UINT64_C(1000)}, /* Greek mu */
        {"ms", UINT64_C(1000000)},
        {"s", UINT64_C(1000000000)},
        {"m", UINT64_C(60000000000)},
        {"min", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
        {"d", UINT64_C(86400000000000)},
    };
    static const struct quantity time = {
        .units = units,
        .n_units = COUNT_OF(units),
        .sums = true,
        .most = INT64_MAX,
        .what = "a time",
        .expected = "numbers with a unit (ns, us, ms, s, m, h, d), like 500us, 1.5s or 1m30s",
    };
    uint64_t ns = 0;
    bool zero = strcmp(text, "0") == 0, bare = text[0] && !text[strspn(text, "0123456789.")];
    if (bare && !zero)
        return error_set(err, TARE_INVALID, "'%.60s' has no unit; write %.60ss or %.60sms", text, text, text);
    tare_status s = zero ? TARE_OK : parse_quantity(&time, text, &ns, err);
    if (s == TARE_OK) out->ns = (int64_t)ns;
    return s;
}

/* ---- quantities out ---- */

/* Would x, shown in three digits, read `limit` or more? Then the next unit is the better one. */
static bool rounds_to(double x, double limit)
{
    return x >= limit - 0.5;
}

static void add_three_digits(struct buf *out, double x)
{
    int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    buf_printf(out, "%.*f", decimals, x);
}

static void add_long_time(struct buf *out, double seconds)
{
    uint64_t s = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : UINT64_C(1000000000000000);
    if (s < 3600)
        buf_printf(out, "%u m %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
    else
        buf_printf(out, "%llu h %02u m", (unsigned long long)(s / 3600), (unsigned)(s % 3600 / 60));
}

void str_add_duration(struct buf *out, double ns)
{
    if (isnan(ns)) {
        buf_add_char(out, '-');
        return;
    }
    if (ns < 0) buf_add_char(out, '-');
    double x = fabs(ns);
    static const char *const units[] = {"ns", "us", "ms"};
    for (size_t i = 0; i < COUNT_OF(units); i++, x /= 1000) {
        if (rounds_to(x, 1000)) continue;
        if (i == 0 && x == floor(x))
            buf_printf(out, "%.0f", x); /* whole nanoseconds have no decimals to show */
        else
            add_three_digits(out, x);
        buf_printf(out, " %s", units[i]);
        return;
    }
    if (x < 59.95) {
        add_three_digits(out, x);
        buf_add_str(out, " s");
    } else {
        add_long_time(out, x);
    }
}

void str_add_bytes(struct buf *out, uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        buf_printf(out, "%u B", (unsigned)bytes);
        return;
    }
    double x = (double)bytes / 1024;
    size_t i = 0;
    for (; i + 1 < COUNT_OF(units) && rounds_to(x, 1024); i++) x /= 1024;
    add_three_digits(out, x);
    buf_printf(out, " %s", units[i]);
}

void str_add_count(struct buf *out, uint64_t n)
{
    char text[27]; /* 20 digits, 6 commas, NUL */
    size_t at = sizeof text - 1;
    text[at] = 0;
    for (int digits = 0; digits == 0 || n; digits++, n /= 10) {
        if (digits && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + n % 10);
    }
    buf_add_str(out, text + at);
}

void str_add_counted(struct buf *out, uint64_t n, const char *one, const char *many)
{
    str_add_count(out, n);
    buf_printf(out, " %s", n == 1 ? one : many);
}
