/* SPDX-License-Identifier: MIT
 * record_stream.c - see record_stream.h. A request that was not answered is no hole in the sample: what it took is at
 * least what it had taken by then (spread.h). */
#include "bench/record_stream.h"

#include <math.h>
#include <string.h>

#include "bench/record.h"
#include "bench/spread.h"
#include "core/hist.h"

enum { PARTS = 10 };    /* of the window, for the interval of its rate */
#define GLUED_NS 100000 /* events nearer to each other were put together on the way */

/* ---- times of each request ---- */

struct taken {
    struct times known;
    struct waits waits;
};

/* What one that was not answered had waited by then; 0: there was nothing to wait for yet. */
static uint64_t waited(const struct load_outcome *o, enum request_time what)
{
    if (what == REQUEST_GAP_MAX) return o->gap_max;
    if (what == REQUEST_TPOT) return 0;
    return o->end > o->planned ? o->end - o->planned : 0;
}

static tare_status take(struct taken *t, const struct load_outcome *o, enum request_time what,
                        tare_error *err)
{
    double ns = request_time(o, what);
    bool seen = !isnan(ns) && (load_is_answered(o) || what == REQUEST_TTFT || what == REQUEST_TTFT_ANSWER);
    if (seen) return vec_push(&t->known, (uint64_t)ns, err);
    if (load_is_answered(o)) return TARE_OK;
    struct wait wait = {waited(o, what), t->known.n, o->fault != LOAD_OPEN};
    return vec_push(&t->waits, wait, err);
}

static tare_status put_times(const struct streamed *s, enum request_time what, const char *path,
                             struct run_latency *into, tare_error *err)
{
    struct taken t = {VEC_INIT, VEC_INIT};
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < s->n; i++)
        if (!(s->outcomes[i].flags & LOAD_WARM)) status = take(&t, &s->outcomes[i], what, err);
    const struct spread spread = {s->run,        s->c,      into,          path,
                                  t.known.items, t.known.n, t.waits.items, t.waits.n};
    if (status == TARE_OK && t.known.n) {
        status = spread_put(&spread, err);
    } else if (status == TARE_OK && (what != REQUEST_TTFT_ANSWER || t.waits.n)) {
        run_unknown(s->run, &s->c->unknown, path,
                    t.waits.n ? "no request came that far" : "answers came as a whole, or in one event");
    }
    vec_release(&t.known);
    vec_release(&t.waits);
    return status;
}

/* ---- gaps ---- */

static struct run_estimate as_time(struct interval i)
{
    struct run_estimate e = {.known = true, .value = round(i.value)};
    if (isfinite(i.lo)) e.lo = known_f64(fmin(round(i.lo), e.value));
    if (isfinite(i.hi)) e.hi = known_f64(fmax(round(i.hi), e.value));
    return e;
}

static void put_gap_percentiles(const struct streamed *s, const double q[], const struct interval at[])
{
    static const struct {
        const char *path, *lo, *hi;
        size_t offset;
    } rows[] = {
#define AT "stream.gap_ns."
#define ROW(p) {AT #p, AT #p ".lo", AT #p ".hi", offsetof(struct run_latency, p)}
        ROW(p50), ROW(p90), ROW(p95), ROW(p99), ROW(p999),
#undef ROW
#undef AT
    };
    const struct gaps *g = &s->pool->gaps;
    for (size_t i = 0; i < 5; i++) {
        if (isnan(at[i].value) || (q[i] > 0.5 && g->all.n < summary_samples_needed(q[i]))) {
            run_unknown(s->run, &s->c->unknown, rows[i].path, "%zu gaps of %zu streams are too few", g->all.n,
                        g->ends.n);
            continue;
        }
        struct run_estimate e = as_time(at[i]);
        const char *const ends[] = {e.lo.known ? NULL : rows[i].lo, e.hi.known ? NULL : rows[i].hi};
        memcpy((char *)&s->c->stream.gap_ns + rows[i].offset, &e, sizeof e);
        for (int k = 0; k < 2; k++)
            if (ends[k])
                run_unknown(s->run, &s->c->unknown, ends[k], "gaps of %zu streams do not bound it",
                            g->ends.n);
    }
}

static tare_status put_gaps(const struct streamed *s, tare_error *err)
{
    static const double q[] = {0.5, 0.9, 0.95, 0.99, 0.999};
    const struct gaps *g = &s->pool->gaps;
    struct run_latency *to = &s->c->stream.gap_ns;
    struct interval at[5];
    struct hist h = HIST_INIT;
    double sum = 0, squares = 0, n = (double)g->all.n;
    uint64_t least = UINT64_MAX, most = 0;
    if (!g->all.n) {
        run_unknown(s->run, &s->c->unknown, "stream.gap_ns", "no answer had two events");
        return TARE_OK;
    }
    tare_status status = gaps_quantiles(g, q, 5, at, err);
    for (size_t i = 0; status == TARE_OK && i < g->all.n; i++) {
        uint64_t ns = (uint64_t)g->all.items[i] * GAP_UNIT_NS;
        sum += (double)ns;
        squares += (double)ns * (double)ns;
        if (ns < least) least = ns;
        if (ns > most) most = ns;
        status = hist_record(&h, ns, err);
    }
    if (status == TARE_OK) {
        *to = (struct run_latency){.known = true,
                                   .mean = known_u64((uint64_t)(sum / n + 0.5)),
                                   .min = known_u64(least),
                                   .max = known_u64(most)};
        to->stddev = known_u64((uint64_t)sqrt(fmax(squares / n - sum * sum / n / n, 0)));
        put_gap_percentiles(s, q, at);
        run_set_histogram(s->run, &to->histogram, &h);
    }
    hist_release(&h);
    return status;
}

/* ---- tokens ---- */

/* How much of from .. to lies within a .. b; a moment is within or not. */
static double overlap(double from, double to, double a, double b)
{
    if (!(to > from)) return from >= a && from < b ? 1 : 0;
    return fmax(0, fmin(to, b) - fmax(from, a)) / (to - from);
}

/* Tokens that came in a .. b: those of the first event at its time, the others evenly until the last. */
static double tokens_within(const struct load_outcome *o, double a, double b)
{
    double first = o->first_tokens < o->tokens ? o->first_tokens : o->tokens, rest = o->tokens - first;
    if (!o->first_content) return load_is_answered(o) ? o->tokens * overlap((double)o->end, 0, a, b) : 0;
    return first * overlap((double)o->first_content, 0, a, b) +
           rest * overlap((double)o->first_content, (double)o->last_content, a, b);
}

static void put_rate(const struct streamed *s)
{
    struct run_throughput *to = &s->c->stream.tokens_per_s;
    double rates[PARTS], part = (double)s->window_ns / PARTS;
    to->unit = "tokens/s";
    for (int k = 0; k < PARTS; k++) {
        double a = (double)s->began_ns + k * part, n = 0;
        for (size_t i = 0; i < s->n; i++) n += tokens_within(&s->outcomes[i], a, a + part);
        rates[k] = n * (double)s->one_in / part * 1e9;
    }
    double mean = stats_mean(rates, PARTS);
    double half =
        stats_t_quantile((1 + BENCH_CONFIDENCE) / 2, PARTS - 1) * stats_stddev(rates, PARTS) / sqrt(PARTS);
    to->rate = run_estimate(mean, fmax(mean - half, 0), mean + half);
}

static tare_status put_counts(const struct streamed *s, tare_error *err)
{
    struct run_stream *to = &s->c->stream;
    uint64_t in = 0, cached = 0, out = 0, events = 0;
    bool estimated = false;
    VEC(double) each = VEC_INIT;
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < s->n; i++) {
        const struct load_outcome *o = &s->outcomes[i];
        if (o->flags & LOAD_WARM) continue;
        in += o->tokens_in;
        cached += o->tokens_cached;
        out += o->tokens;
        events += o->events;
        estimated |= (o->flags & LOAD_ESTIMATED) != 0;
        if (load_is_answered(o)) status = vec_push(&each, (double)o->tokens, err);
    }
    to->events = known_u64(events * s->one_in);
    to->tokens_out = known_u64(out * s->one_in);
    to->estimated = known_bool(estimated);
    if (in) to->tokens_in = known_u64(in * s->one_in);
    if (in) to->tokens_cached = known_u64(cached * s->one_in);
    if (events) to->tokens_per_event = known_f64((double)out / (double)events);
    if (!events) run_unknown(s->run, &s->c->unknown, "stream.tokens_per_event", "there were no events");
    if (status == TARE_OK && each.n) {
        stats_sort(each.items, each.n);
        to->tokens_out_p50 = known_u64((uint64_t)stats_median_sorted(each.items, each.n));
    } else {
        run_unknown(s->run, &s->c->unknown, "stream.tokens_out_p50", "no request was answered");
    }
    vec_release(&each);
    return status;
}

static void put_reading(const struct streamed *s)
{
    struct run_stream *to = &s->c->stream;
    double glued = gaps_share_below(&s->pool->gaps, GLUED_NS);
    to->coalesced = known_if_finite(glued);
    to->shared_reads = known_u64(s->pool->many_per_read);
    to->not_streamed = known_u64(s->pool->whole);
    if (!to->coalesced.known)
        run_unknown(s->run, &s->c->unknown, "stream.coalesced", "no answer had two events");
}

/* ---- goodput ---- */

static void put_goodput(const struct streamed *s)
{
    struct run_goodput *to = &s->c->stream.goodput;
    uint64_t due = 0, good = 0, missed[REQUEST_TIMES] = {0};
    if (!s->slo || !*s->slo->text) return;
    for (size_t i = 0; i < s->n; i++) {
        const struct load_outcome *o = &s->outcomes[i];
        if (o->flags & LOAD_WARM) continue;
        due++;
        good += slo_kept(s->slo, o);
        for (unsigned k = 0; k < REQUEST_TIMES; k++) missed[k] += slo_missed(s->slo, (enum request_time)k, o);
    }
    struct interval share = share_interval(good, due);
    if (!due) return;
    to->share = run_estimate(share.value, share.lo, share.hi);
    to->slo = arena_str(&s->run->arena, s->slo->text);
    to->good = known_u64(good);
    to->due = known_u64(due);
    to->per_s = known_f64((double)(good * s->one_in) / (double)s->window_ns * 1e9);
    for (unsigned k = 0; k < REQUEST_TIMES; k++)
        if (s->slo->limit[k] > 0)
            run_map_int(&s->run->arena, &to->missed, slo_word((enum request_time)k), (int64_t)missed[k]);
}

tare_status record_stream(const struct streamed *s, tare_error *err)
{
    struct run_stream *to = &s->c->stream;
    const struct {
        enum request_time what;
        const char *path;
        struct run_latency *into;
    } kinds[] = {
        {REQUEST_TTFT, "stream.ttft_ns", &to->ttft_ns},
        {REQUEST_TTFT_ANSWER, "stream.ttft_answer_ns", &to->ttft_answer_ns},
        {REQUEST_GAP_MAX, "stream.gap_max_ns", &to->gap_max_ns},
        {REQUEST_TPOT, "stream.tpot_ns", &to->tpot_ns},
    };
    to->known = true;
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < sizeof kinds / sizeof *kinds; i++)
        status = put_times(s, kinds[i].what, kinds[i].path, kinds[i].into, err);
    if (status < 0 || (status = put_gaps(s, err)) < 0 || (status = put_counts(s, err)) < 0) return status;
    put_rate(s);
    put_reading(s);
    put_goodput(s);
    return TARE_OK;
}
