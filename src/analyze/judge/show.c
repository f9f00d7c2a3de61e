/* SPDX-License-Identifier: MIT
 * show.c - see show.h. */
#include "analyze/judge/show.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Three significant digits (a whole number: all of them) without an exponent, thousands apart: 1,340. */
static void digits(char *out, size_t size, double v)
{
    if (!isfinite(v)) {
        snprintf(out, size, "-");
        return;
    }
    double a = fabs(v);
    int decimals = a >= 99.95 || a == floor(a) ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3;
    if (a >= 1e15) {
        snprintf(out, size, "%.3g", v);
        return;
    }
    if (a < 0.0995 && a > 0) {
        snprintf(out, size, "%.3g", v);
        return;
    }
    char plain[24];
    int n = snprintf(plain, sizeof plain, "%.*f", decimals, v);
    if (decimals > 0) {
        snprintf(out, size, "%s", plain);
        return;
    }
    size_t at = 0;
    for (int i = 0; i < n && at + 2 < size; i++) {
        out[at++] = plain[i];
        int left = n - 1 - i;
        if (left > 0 && left % 3 == 0 && plain[i] != '-') out[at++] = ',';
    }
    out[at] = 0;
}

static struct shown with_unit(double v, const char *unit)
{
    struct shown out;
    char number[24];
    digits(number, sizeof number, v);
    snprintf(out.s, sizeof out.s, "%s%s%.14s", number, *unit ? " " : "", unit);
    return out;
}

struct shown show_time(double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int u = 0;
    while (u < 3 && fabs(ns) >= 999.5) {
        ns /= 1000;
        u++;
    }
    return with_unit(ns, isfinite(ns) ? units[u] : "");
}

struct shown show_bytes(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    while (u < 4 && fabs(bytes) >= 1023.5) {
        bytes /= 1024;
        u++;
    }
    return with_unit(bytes, isfinite(bytes) ? units[u] : "");
}

struct shown show_rate(double rate, const char *unit)
{
    return with_unit(rate, unit ? unit : "/s");
}

struct shown show_percent(double share)
{
    struct shown out;
    double p = share * 100;
    if (fabs(p) < 0.05) p = 0; /* no "-0.0" */
    if (isfinite(p))
        snprintf(out.s, sizeof out.s, "%.*f %%", fabs(p) < 9.95 ? 1 : 0, p);
    else
        snprintf(out.s, sizeof out.s, "-");
    return out;
}

struct shown show_number(double v)
{
    return with_unit(v, "");
}

struct shown show_count(double n, const char *noun)
{
    struct shown out;
    snprintf(out.s, sizeof out.s, "%g %s%s", n, noun, n == 1 ? "" : "s");
    return out;
}

struct shown show_cases(size_t n, size_t of)
{
    struct shown out = {""};
    if (of > 1) snprintf(out.s, sizeof out.s, " (%zu of %zu cases)", n, of);
    return out;
}
