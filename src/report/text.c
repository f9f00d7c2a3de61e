/* SPDX-License-Identifier: MIT
 * text.c - see text.h. Knows nothing of reports. */
#include "report/text.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "core/json.h"
#include "core/str.h"

/* ---- characters ---- */

size_t text_decode(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    if (len == 0 || len > n) return 0;
    *cp = len == 1 ? s[0] : s[0] & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (s[i] >> 6 != 2) return 0;
        *cp = *cp << 6 | (s[i] & 0x3F);
    }
    bool bad = *cp < least[len] || *cp > 0x10FFFF || (*cp >= 0xD800 && *cp <= 0xDFFF);
    return bad ? 0 : len;
}

size_t text_clip(const char *s, size_t max)
{
    size_t n = strnlen(s, max + 1);
    if (n <= max) return n;
    size_t at = max; /* s[at] would be the first byte left out: it must not continue a character */
    while (at > 0 && max - at < 4 && ((unsigned char)s[at] >> 6) == 2) at--;
    return ((unsigned char)s[at] >> 6) == 2 ? max : at;
}

bool text_is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029 || cp == 0x200E ||
           cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069);
}

static void add_escaped(struct buf *b, uint32_t cp)
{
    if (cp == '\n')
        buf_add_str(b, "\\n");
    else if (cp == '\t')
        buf_add_str(b, "\\t");
    else if (cp < 0x100)
        buf_printf(b, "\\x%02x", cp);
    else
        buf_printf(b, "\\u%04x", cp);
}

/* Controls escaped, and the character `also` with them; 0: none. */
static void add_text(struct buf *b, const char *s, size_t n, char also)
{
    const char *at = s, *end = s + n;
    while (at < end) {
        uint32_t cp = 0;
        size_t len = text_decode(at, (size_t)(end - at), &cp);
        if (len == 0) {
            buf_add_str(b, "\xEF\xBF\xBD");
            len = 1;
        } else if (text_is_control(cp) || (also && cp == (unsigned char)also)) {
            add_escaped(b, cp);
        } else {
            buf_add(b, at, len);
        }
        at += len;
    }
}

void text_plain(struct buf *b, const char *s, size_t n)
{
    add_text(b, s, n, 0);
}

void text_folded(struct buf *b, const char *s, size_t n)
{
    add_text(b, s, n, ';');
}

void text_json(struct buf *b, const char *s, size_t n)
{
    struct json j;
    json_init(&j, b, JSON_STYLE_COMPACT);
    json_put_string_n(&j, s, n);
}

uint32_t text_columns(const char *s, size_t n)
{
    uint32_t columns = 0;
    for (size_t i = 0; i < n; i++) columns += ((unsigned char)s[i] >> 6) != 2;
    return columns;
}

/* ---- numbers ---- */

void text_int(struct buf *b, int64_t n)
{
    if (n < 0) buf_add_char(b, '-');
    str_add_count(b, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

static double power_below(double x) /* the exponent of the leading decimal digit */
{
    return floor(log10(x) + 1e-12);
}

/* The exponent of the last digit worth printing: one digit of the uncertainty, two if it begins with 1. */
static double last_digit(double half)
{
    double e = power_below(half);
    return half < 1.95 * pow(10, e) ? e - 1 : e;
}

void text_time(struct buf *b, double ns, double half_ns)
{
    static const struct unit {
        double exponent;
        const char *name;
    } units[] = {{9, "s"}, {6, "ms"}, {3, "us"}, {0, "ns"}};
    if (!isfinite(ns)) {
        buf_add_char(b, '-');
        return;
    }
    double last = ns == 0 ? -2 : fmax(power_below(fabs(ns) * 1.0000499) - 3, -2); /* 999.99 rounds up */
    if (half_ns > 0 && isfinite(half_ns) && last_digit(half_ns) > last) last = last_digit(half_ns);
    if (ns != 0) last = fmin(last, power_below(fabs(ns))); /* one digit stays: 0 would be a lie */
    double step = pow(10, last), rounded = round(ns / step) * step;
    const struct unit *u = units;
    double size = rounded == 0 ? step : fabs(rounded);
    while (u->exponent > 0 && size < pow(10, u->exponent) * 0.99999) u++;
    double decimals = u->exponent - last;
    if (rounded == 0 && !(half_ns > 0)) decimals = 0;
    buf_printf(b, "%.*f %s", decimals > 0 ? (int)decimals : 0, rounded / pow(10, u->exponent), u->name);
}

void text_estimate(struct buf *b, struct interval e, double limit_ns)
{
    double half = interval_half(e);
    bool vanishes = half > 0 && e.value < pow(10, last_digit(half)) / 2; /* would be printed as 0 */
    if (isnan(e.value) || (e.value > 0 && !vanishes)) {
        text_time(b, e.value, half);
        return;
    }
    double bound = fmax(limit_ns > 0 ? limit_ns : 0, e.hi > 0 ? e.hi : 0);
    if (!(bound > 0)) bound = 1;
    buf_add_str(b, "< ");
    text_time(b, bound, bound);
}

void text_half(struct buf *b, struct interval e)
{
    double half = interval_half(e);
    if (half > 0)
        text_time(b, half, half);
    else
        buf_add_str(b, half == 0 ? "0 ns" : "-");
}

void text_share(struct buf *b, double share)
{
    if (isnan(share))
        buf_add_char(b, '-');
    else if (share > 0 && share < 0.0005)
        buf_add_str(b, "< 0.1 %");
    else
        buf_printf(b, "%.1f %%", share * 100 + 0.0);
}

void text_rate(struct buf *b, double per_second)
{
    if (!isfinite(per_second)) {
        buf_add_char(b, '-');
    } else if (fabs(per_second) < 1000) {
        buf_printf(b, "%.3g/s", per_second);
    } else if (fabs(per_second) < 1e18) {
        double step = pow(10, power_below(fabs(per_second)) - 3);
        text_int(b, (int64_t)(round(per_second / step) * step));
        buf_add_str(b, "/s");
    } else {
        buf_printf(b, "%.3g/s", per_second);
    }
}

void text_date(struct buf *b, uint64_t unix_ns, bool iso)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    unsigned ms = (unsigned)(unix_ns / 1000000 % 1000);
    struct tm t;
    char day[40];
    if (!gmtime_r(&seconds, &t)) return;
    strftime(day, sizeof day, iso ? "%Y-%m-%dT%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &t);
    buf_add_str(b, day);
    if (iso)
        buf_printf(b, ".%03uZ", ms);
    else
        buf_add_str(b, " UTC");
}
