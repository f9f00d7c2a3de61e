/* SPDX-License-Identifier: MIT
 * fmt.c - see fmt.h, which says how many digits and why. */
#include "core/fmt.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const time_units[] = {"ns", "us", "ms", "s", NULL};
static const char *const byte_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL};
static const char *const powers[] = {"", "k", "M", "G", "T", "P", "E", NULL};

#define LEAST_SHOWN 1e-9 /* nobody counts more zeros */
#define MOST_SHOWN 1e21  /* nor more digits; room for them and their commas */

/* Divide x by `step` until it reads less than `limit`: the unit it has then. */
static const char *scale(double *x, const char *const *units, double step, double limit)
{
    for (; units[1] && fabs(*x) >= limit; units++) *x /= step;
    return *units;
}

/* Decimals by size: two below `two`, one below `one`, none from there on. */
static int decimals(double x, double two, double one)
{
    if (x < two) return 2;
    return x < one ? 1 : 0;
}

static int three_digits(double x)
{
    return decimals(x, 9.995, 99.95);
}

/* `plain` with a comma before every third digit from the right; n characters of it. */
static void add_commas(char *out, size_t size, const char *plain, int n)
{
    size_t at = 0;
    for (int i = 0; i < n && at + 2 < size; i++) {
        out[at++] = plain[i];
        int left = n - 1 - i;
        if (left > 0 && left % 3 == 0 && plain[i] != '-') out[at++] = ',';
    }
    out[at] = 0;
}

/* Three digits, and all of the whole part: 0.0123, 1.20, 52.0, 13,412. `zeros`: 2.00, not 2. */
static struct shown three_of(double v, bool zeros)
{
    struct shown out = {"-"};
    char plain[24];
    double a = fabs(v);
    if (!isfinite(v)) return out;
    int places = a < 0.9995 ? 3 : three_digits(a);
    if (a == 0 || (!zeros && a == floor(a))) places = 0;
    if (a > 0 && a < LEAST_SHOWN) {
        snprintf(out.s, sizeof out.s, v < 0 ? "> -%.9f" : "< %.9f", LEAST_SHOWN);
    } else if (a > 0 && a < 1e-4) {
        snprintf(out.s, sizeof out.s, "%.*f", (int)ceil(-log10(a)) + 2, v); /* no power of ten */
    } else if (a >= MOST_SHOWN || (a < 0.0995 && a > 0)) {
        snprintf(out.s, sizeof out.s, "%.3g", v);
    } else {
        int n = snprintf(plain, sizeof plain, "%.*f", places, v);
        add_commas(out.s, sizeof out.s, plain, places ? n - places - 1 : n);
        if (places) snprintf(out.s + strlen(out.s), 8, "%s", plain + n - places - 1);
    }
    return out;
}

/* ---- counts ---- */

void fmt_count(struct buf *b, uint64_t n)
{
    char text[27]; /* 20 digits, 6 commas, NUL */
    size_t at = sizeof text - 1;
    text[at] = 0;
    for (int digits = 0; digits == 0 || n; digits++, n /= 10) {
        if (digits && digits % 3 == 0) text[--at] = ',';
        text[--at] = (char)('0' + n % 10);
    }
    buf_add_str(b, text + at);
}

void fmt_int(struct buf *b, int64_t n)
{
    if (n < 0) buf_add_char(b, '-');
    fmt_count(b, n < 0 ? -(uint64_t)n : (uint64_t)n);
}

void fmt_counted(struct buf *b, uint64_t n, const char *one, const char *many)
{
    fmt_count(b, n);
    buf_printf(b, " %s", n == 1 ? one : many);
}

void fmt_si(struct buf *b, double v, const char *unit)
{
    const char *power = scale(&v, powers, 1000, 999.95);
    buf_printf(b, !*power && v == floor(v) ? "%.0f" : "%.4g", v);
    if (*power || *unit) buf_printf(b, " %s%s", power, unit);
}

/* ---- columns ---- */

static void add_long_time(struct buf *b, double seconds)
{
    uint64_t s = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : UINT64_C(1000000000000000);
    if (s < 3600)
        buf_printf(b, "%u m %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
    else
        buf_printf(b, "%llu h %02u m", (unsigned long long)(s / 3600), (unsigned)(s % 3600 / 60));
}

void fmt_duration(struct buf *b, double ns)
{
    if (ns < 0 || !isfinite(ns)) buf_add_char(b, '-');
    if (!isfinite(ns)) return;
    double x = fabs(ns);
    const char *unit = scale(&x, time_units, 1000, 999.5);
    bool whole = unit == time_units[0] && x == floor(x); /* whole nanoseconds have no decimals to show */
    if (unit == time_units[3] && x >= 59.95)
        add_long_time(b, x);
    else
        buf_printf(b, "%.*f %s", whole ? 0 : three_digits(x), x, unit);
}

bool fmt_interval(struct buf *b, struct interval ns, double limit)
{
    double half = interval_half(ns);
    bool is_told_from_zero = isnan(ns.value) || (ns.value > 0 && (!isfinite(half) || half < ns.value));
    if (!is_told_from_zero) buf_add_str(b, "< ");
    fmt_duration(b, is_told_from_zero ? ns.value : fmax(fmax(limit, ns.hi), 1)); /* fmax takes no NAN */
    return is_told_from_zero;
}

void fmt_bytes(struct buf *b, double bytes)
{
    if (bytes < 0 || isnan(bytes)) buf_add_char(b, '-');
    if (isnan(bytes)) return;
    double x = floor(fabs(bytes));
    const char *unit = scale(&x, byte_units, 1024, 1023.5);
    buf_printf(b, "%.*f %s", unit == byte_units[0] ? 0 : three_digits(x), x, unit);
}

void fmt_share(struct buf *b, double share)
{
    if (isnan(share))
        buf_add_char(b, '-');
    else if (share > 0 && share < 0.0005)
        buf_add_str(b, "< 0.1 %");
    else
        buf_printf(b, "%.1f %%", share * 100 + 0.0);
}

void fmt_number(struct buf *b, double v)
{
    buf_add_str(b, three_of(v, true).s);
}

/* Ten times is where +900 % has to be read twice; below a hundredth -99.99 % would read -100 %. */
static bool is_factor(double ratio)
{
    return ratio > 10 || (ratio > 0 && ratio < 0.01);
}

static void add_change(struct buf *b, double ratio, bool factor)
{
    double p = 100 * (ratio - 1);
    if (fabs(p) < 0.005) p = 0; /* no "-0.00" */
    if (factor && ratio > 0 && ratio < 0.1)
        buf_printf(b, "1/%s", three_of(1 / ratio, false).s);
    else if (factor)
        buf_printf(b, "%sx", three_of(ratio, false).s);
    else
        buf_printf(b, "%+.*f", decimals(fabs(p), 0.995, 99.5), p);
}

void fmt_change(struct buf *b, double ratio)
{
    if (!isfinite(ratio))
        buf_add_char(b, '-');
    else
        add_change(b, ratio, is_factor(ratio));
    if (isfinite(ratio) && !is_factor(ratio)) buf_add_str(b, " %");
}

void fmt_changes(struct buf *b, double lo, double hi, const char *between)
{
    bool factor = is_factor(lo) || is_factor(hi);
    add_change(b, lo, factor);
    buf_add_str(b, between);
    add_change(b, hi, factor);
    if (!factor) buf_add_str(b, " %");
}

void fmt_date(struct buf *b, uint64_t unix_ns, bool iso)
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

/* ---- sentences ---- */

static struct shown with_unit(double v, const char *unit)
{
    struct shown out = three_of(v, false);
    size_t n = strlen(out.s);
    if (isfinite(v)) snprintf(out.s + n, sizeof out.s - n, "%s%.14s", *unit ? " " : "", unit);
    return out;
}

struct shown show_time(double ns)
{
    const char *unit = scale(&ns, time_units, 1000, 999.5);
    return with_unit(ns, unit);
}

struct shown show_bytes(double bytes)
{
    const char *unit = scale(&bytes, byte_units, 1024, 1023.5);
    return with_unit(bytes, unit);
}

struct shown show_rate(double rate, const char *unit)
{
    struct shown out = with_unit(rate, unit ? unit : "/s");
    if (!isfinite(rate)) snprintf(out.s, sizeof out.s, "- %.14s", unit ? unit : "/s");
    return out;
}

struct shown show_percent(double share)
{
    struct shown out = {"-"};
    double p = share * 100;
    if (p > 0 && p < 0.05) return (struct shown){"< 0.1 %"};
    if (fabs(p) < 0.05) p = 0; /* no "-0.0" */
    if (isfinite(p)) snprintf(out.s, sizeof out.s, "%.*f %%", decimals(fabs(p), 0, 9.95), p);
    return out;
}

struct shown show_number(double v)
{
    return with_unit(v, "");
}

struct shown show_quantity(const char *unit, double v)
{
    if (strcmp(unit, "1") == 0) return show_percent(v);
    if (strcmp(unit, "B") == 0) return show_bytes(v);
    if (strcmp(unit, "s") == 0) return show_time(v * 1e9);
    bool bytes = strcmp(unit, "B/s") == 0, rate = bytes || strcmp(unit, "1/s") == 0;
    struct shown out = bytes ? show_bytes(v) : show_number(v);
    size_t used = strlen(out.s);
    snprintf(out.s + used, sizeof out.s - used, "%s%s", rate ? "" : " ", rate ? "/s" : unit);
    return out;
}

struct shown show_count(double n, const char *noun)
{
    struct shown out = three_of(n, false);
    bool one = strcmp(out.s, "1") == 0;
    size_t at = strlen(out.s);
    snprintf(out.s + at, sizeof out.s - at, " %s%s", noun, one ? "" : "s");
    return out;
}

struct shown show_cases(size_t n, size_t of)
{
    struct shown out = {""};
    if (of > 1) snprintf(out.s, sizeof out.s, " (%zu of %zu cases)", n, of);
    return out;
}

struct shown narrow_bytes(double bytes)
{
    struct shown out = {"-"};
    const char *unit = scale(&bytes, byte_units, 1024, 999.5);
    int places = unit == byte_units[0] ? 0 : decimals(fabs(bytes), 0, 99.95);
    if (isfinite(bytes)) snprintf(out.s, sizeof out.s, "%.*f%c", places, bytes, *unit);
    return out;
}

struct shown narrow_percent(double share)
{
    return narrow_number(share * 100, decimals(fabs(share * 100), 0, 999.95));
}

struct shown narrow_number(double v, int places)
{
    struct shown out = {"-"};
    if (isfinite(v)) snprintf(out.s, sizeof out.s, "%.*f", places, v);
    return out;
}
