/* SPDX-License-Identifier: MIT
 * arrivals.c - see arrivals.h. */
#include "load/arrivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/unit.h"

/* ---- made ---- */

const char *arrivals_word(enum load_arrivals kind)
{
    static const char *const words[] = {
#define X(name, word, help) word,
        LOAD_ARRIVALS_MAP(X)
#undef X
    };
    return words[kind];
}

static double exponential(struct rng *r)
{
    return -log1p(-rng_unit(r));
}

static double normal(struct rng *r)
{
    return sqrt(2 * exponential(r)) * cos(2 * M_PI * rng_unit(r));
}

/* Of the gamma distribution with this shape (below 1) and scale 1: Marsaglia and Tsang, one shape higher, times a power
 * of an even one. */
static double gamma_below_one(struct rng *r, double shape)
{
    double d = shape + 1 - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(r), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        if (log(1 - rng_unit(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v * pow(1 - rng_unit(r), 1 / shape);
    }
}

/* When a ramp from RAMP_START to 1 has let through as much as 1 would have in `unit` s; `whole`: how long it rises. */
static double ramp_time(double unit, double whole)
{
    double a = (1 - RAMP_START) / (2 * whole);
    return (sqrt(RAMP_START * RAMP_START + 4 * a * unit) - RAMP_START) / (2 * a);
}

/* The next moment, ns. `clock` runs in gaps of the mean; a constant rate is multiplied, not summed, so that rounding
 * does not add up. */
static double next_moment(const struct arrivals *a, struct rng *r, uint64_t i, double *clock)
{
    const double shape = 1 / (BURSTY_CV * BURSTY_CV);
    switch (a->kind) {
    case ARRIVALS_CONSTANT: return (double)i * 1e9 / a->rate;
    case ARRIVALS_BURSTY: *clock += gamma_below_one(r, shape) / shape; break;
    default: *clock += exponential(r);
    }
    double s = *clock / a->rate;
    return 1e9 * (a->kind == ARRIVALS_RAMP ? ramp_time(s, (double)a->window_ns / 1e9) : s);
}

tare_status arrivals_make(const struct arrivals *a, struct moments *out, tare_error *err)
{
    struct rng r;
    double clock = 0, expected = a->rate * (double)a->window_ns / 1e9;
    if (!(a->rate > 0) || !isfinite(a->rate))
        return error_set(err, TARE_INVALID, "an open loop needs a rate above 0, not %g", a->rate);
    if (!(expected <= ARRIVALS_MOST))
        return error_set(err, TARE_INVALID, "%g requests per second for %g s are more than %d requests: %s",
                         a->rate, (double)a->window_ns / 1e9, ARRIVALS_MOST, "lower the rate or the budget");
    rng_seed(&r, a->seed);
    out->at.n = 0;
    for (uint64_t i = 0; !a->most || i < a->most; i++) {
        double at = next_moment(a, &r, i, &clock);
        if (!(at < (double)a->window_ns)) return TARE_OK;
        tare_status s = vec_push(&out->at, (uint64_t)at, err);
        if (s < 0) return s;
    }
    return TARE_OK;
}

/* ---- replayed ---- */

/* Digits of a fraction right behind a time, as ns. */
static int64_t fraction_ns(const char **at)
{
    int64_t ns = 0, unit = 100000000;
    if (**at != '.' && **at != ',') return 0;
    for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, unit /= 10) ns += (**at - '0') * unit;
    return ns;
}

/* "Z", "+02:00", " +0200" as s; nothing is UTC. */
static int64_t zone_s(const char *at)
{
    if (*at == ' ') at++;
    if (*at != '+' && *at != '-') return 0;
    int64_t sign = *at++ == '-' ? -1 : 1, digits[4] = {0};
    for (int i = 0; i < 4; at++) {
        if (*at == ':' && i == 2) continue;
        if (*at < '0' || *at > '9') return 0;
        digits[i++] = *at - '0';
    }
    return sign * ((digits[0] * 10 + digits[1]) * 3600 + (digits[2] * 10 + digits[3]) * 60);
}

static bool read_date(const char *at, int64_t *ns)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%d/%b/%Y:%H:%M:%S"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int64_t s, part;
        const char *rest = unit_date(at, forms[i], &s);
        if (!rest) continue;
        part = fraction_ns(&rest);
        s -= zone_s(rest);
        if (s < 0 || s > 9000000000) return false;
        *ns = s * 1000000000 + part;
        return true;
    }
    return false;
}

/* Seconds since anything, or s, ms, us, ns since 1970: today is 1.8e9 s. */
static bool read_number(const char *at, int64_t *ns)
{
    const char *end = at;
    double v, unit = 1e9;
    if (unit_number(&end, &v) || (*end && !strchr(" \t,;\"]", *end))) return false;
    for (double limit = 1e11; unit > 1 && v >= limit; limit *= 1000) unit /= 1000;
    if (unit == 1) {
        *ns = strtoll(at, NULL, 10); /* a double has too few digits */
        return v < 9e18;
    }
    *ns = (int64_t)llround(v * unit);
    return v * unit < 9e18;
}

static bool is_number_begin(const char *line, const char *at)
{
    return *at >= '0' && *at <= '9' && (at == line || strchr(" \t,;\"[", at[-1]));
}

/* The first time of a line: a date anywhere goes before a number. */
static bool read_time(const char *line, int64_t *ns)
{
    for (const char *at = line; *at; at++)
        if (is_number_begin(line, at) && read_date(at, ns)) return true;
    for (const char *at = line; *at; at++)
        if (is_number_begin(line, at) && read_number(at, ns)) return true;
    return false;
}

static int earlier(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static tare_status read_lines(const struct replay *r, struct moments *out, size_t *skipped, tare_error *err)
{
    char line[1024]; /* a time stands near the beginning */
    size_t number = 0;
    tare_status s = TARE_OK;
    for (const char *at = r->text, *end = r->text + r->n; s == TARE_OK && at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at), n_kept = n < sizeof line - 1 ? n : sizeof line - 1;
        int64_t ns;
        memcpy(line, at, n_kept);
        line[n_kept] = 0;
        line[strcspn(line, "\r")] = 0;
        at += n + 1;
        if (read_time(line, &ns)) {
            if (out->at.n == ARRIVALS_MOST)
                return error_set(err, TARE_INVALID, "%s: more than %d times", r->name, ARRIVALS_MOST);
            s = vec_push(&out->at, (uint64_t)ns, err);
        } else if (*line && number) {
            ++*skipped;
        }
    }
    return s;
}

tare_status arrivals_replay(const struct replay *r, struct moments *out, size_t *skipped, tare_error *err)
{
    out->at.n = 0;
    *skipped = 0;
    if (!(r->speed > 0) || !isfinite(r->speed))
        return error_set(err, TARE_INVALID, "a replay needs a speed above 0, not %g", r->speed);
    tare_status s = read_lines(r, out, skipped, err);
    if (s < 0) return s;
    if (!out->at.n)
        return error_set(err, TARE_FORMAT, "%s: no line has a time, such as 2026-11-18T09:30:00.5Z or 1.25",
                         r->name);
    qsort(out->at.items, out->at.n, sizeof *out->at.items, earlier);
    uint64_t first = out->at.items[0];
    for (size_t i = 0; i < out->at.n; i++) {
        double at = (double)(out->at.items[i] - first) / r->speed;
        if (!(at < 9e18)) return error_set(err, TARE_INVALID, "%s: it would take over 200 years", r->name);
        out->at.items[i] = (uint64_t)at;
    }
    return TARE_OK;
}
