/* SPDX-License-Identifier: MIT
 * str.c - see str.h. */
#include "core/str.h"

#include <math.h>
#include <string.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

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
