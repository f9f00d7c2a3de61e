/* SPDX-License-Identifier: MIT
 * requests.c - cases of a service, which drives its load itself: windows of requests, what became of each, and what is
 * told of it beside the latency. Latency counts from when a request was due; one that was not answered took at least as
 * long as it waited. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/engine.h"
#include "bench/record.h"
#include "bench/record_stream.h"
#include "bench/spread.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "probe/service_view.h"

enum { TENTHS = 10 };
#define WARM_LEAST_NS UINT64_C(200000000)
#define WARM_MOST_NS UINT64_C(5000000000)

/* ---- windows ---- */

static bool is_open(const struct bench *b, const struct case_work *w)
{
    return b->plan->load == BENCH_OPEN || w->params.rate > 0;
}

static double rate_of(const struct bench *b, const struct case_work *w)
{
    return w->params.rate > 0 ? w->params.rate : b->plan->rate;
}

static tare_status make_moments(struct bench *b, const struct case_work *w, const struct load_window *window,
                                struct moments *out, tare_error *err)
{
    struct arrivals a = {.kind = window->warm ? ARRIVALS_POISSON : b->plan->arrivals,
                         .rate = rate_of(b, w),
                         .window_ns = window->window_ns,
                         .seed = rng_next(&b->rng),
                         .most = window->most};
    tare_status s = arrivals_make(&a, out, err);
    if (s == TARE_OK && out->at.n == 0)
        s = error_set(err, TARE_INVALID, "%g requests per second: none falls into %g s", a.rate,
                      (double)window->window_ns / 1e9);
    return s;
}

static tare_status run_window(struct bench *b, struct case_work *w, struct load_window *window,
                              struct load_result *out, tare_error *err)
{
    struct moments made = {VEC_INIT};
    const struct bench_replay *replay = window->warm ? NULL : b->plan->replay;
    tare_status s = TARE_OK;
    if (is_open(b, w)) {
        s = replay ? TARE_OK : make_moments(b, w, window, &made, err);
        const struct moments *planned = replay ? &replay->moments : &made;
        window->arrivals = planned->at.items;
        window->n_arrivals = planned->at.n;
        if (replay && window->most && window->most < planned->at.n) window->n_arrivals = window->most;
    }
    window->concurrency = w->params.concurrency ? w->params.concurrency : 1;
    if (s == TARE_OK) s = w->instance->subject->ops->load(w->instance, window, out, err);
    vec_release(&made.at);
    return s;
}

/* The same load as is measured, a tenth as long: connections are made, caches filled. Its failures are told when they
 * are measured, but where nothing at all is answered there is nothing to measure. */
tare_status requests_warm(struct bench *b, struct case_work *w, tare_error *err)
{
    struct load_result unseen = {0};
    uint64_t ns = b->plan->budget_ns / 10, before = bench_machine.now();
    if (ns < WARM_LEAST_NS) ns = WARM_LEAST_NS;
    struct load_window window = {.window_ns = ns < WARM_MOST_NS ? ns : WARM_MOST_NS, .warm = true};
    if (b->plan->warmup_runs == 0) return TARE_OK;
    if (b->plan->warmup_runs > 0) {
        window.most = (uint64_t)b->plan->warmup_runs;
        window.window_ns = UINT64_MAX / 4;
        if (is_open(b, w)) window.window_ns = (uint64_t)(1e9 / rate_of(b, w) * (double)(window.most + 1));
    }
    double expected = rate_of(b, w) * (double)window.window_ns / 1e9; /* slow ones: at least a few */
    if (is_open(b, w) && expected < 3) window.window_ns = (uint64_t)(3e9 / rate_of(b, w)) + 1;
    tare_status s = run_window(b, w, &window, &unseen, err);
    if (s == TARE_OK && unseen.hopeless) s = error_set(err, TARE_DENIED, "%s", unseen.failure);
    w->warmup_runs += unseen.counts.due;
    w->warmup_ns += bench_machine.now() - before;
    load_result_release(&unseen);
    return s;
}

/* ---- what became of them ---- */

static tare_status take_outcomes(struct case_work *w, const struct load_result *r, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < r->outcomes.n; i++) {
        const struct load_outcome *o = &r->outcomes.items[i];
        struct wait wait = {load_took(o), w->samples.n, o->fault != LOAD_OPEN};
        s = load_is_answered(o) ? vec_push(&w->samples, load_took(o), err) : vec_push(&w->waits, wait, err);
    }
    return s;
}

/* Answers of tenths of the window: what came after its end is not throughput. */
static tare_status take_tenths(struct case_work *w, const struct load_result *r, tare_error *err)
{
    uint64_t done[TENTHS] = {0}, each = (r->closed_ns - r->began_ns) / TENTHS;
    for (size_t i = 0; i < r->outcomes.n; i++) {
        const struct load_outcome *o = &r->outcomes.items[i];
        uint64_t tenth = (o->end - r->began_ns) / (each ? each : 1);
        if (load_is_answered(o) && tenth < TENTHS) done[tenth] += r->one_in;
    }
    tare_status s = TARE_OK;
    for (int k = 0; s == TARE_OK && k < TENTHS; k++) {
        struct slice slice = {.n = (size_t)done[k], .wall_ns = each, .runs = done[k]};
        s = vec_push(&w->slices, slice, err);
    }
    return s;
}

static double per_second(uint64_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

static void take_open_loop(struct case_work *w, const struct load_result *r, uint64_t arriving)
{
    const struct load_counts *c = &r->counts;
    uint64_t due = c->due, in_time = 0;
    for (size_t i = 0; i < w->slices.n; i++) in_time += w->slices.items[i].n;
    if (r->closed_ns - r->began_ns < arriving) arriving = r->closed_ns - r->began_ns;
    w->open = (struct run_open_loop){
        .known = true,
        .offered = known_f64(per_second(due, arriving)),
        .achieved = known_f64(per_second(in_time, r->closed_ns - r->began_ns)),
        .due = known_u64(due),
        .served = known_u64(c->answered),
        .failed = known_u64(c->failed),
        .queued = known_u64(c->queued),
        .late_starts = known_u64(c->late),
        .longest_delay_ns = known_u64(c->longest_delay),
        .overloaded = known_bool(due > in_time + c->failed + 10 && due - in_time - c->failed > due / 20),
    };
}

/* With the service's processes looked at before and after, where they were named. */
static tare_status watched_window(struct bench *b, struct case_work *w, struct load_window *window,
                                  tare_error *err)
{
    struct service_view v = {.is_open = false};
    pid_t pid = b->plan->service_pid;
    tare_status s = pid ? service_view_begin(&v, pid, err) : TARE_OK;
    if (s == TARE_OK) s = run_window(b, w, window, &w->requests, err);
    if (s == TARE_OK && pid) s = service_view_end(&v, b->run, &w->server, err);
    service_view_release(&v);
    return s;
}

tare_status requests_window(struct bench *b, struct case_work *w, tare_error *err)
{
    struct load_window window = {.window_ns = b->plan->budget_ns, .most = b->plan->max_runs};
    struct load_result *r = &w->requests;
    tare_status s = watched_window(b, w, &window, err);
    if (s < 0) return s;
    if (b->plan->streams.pool) { /* the next window is of another case */
        llm_pool_release(&w->streams);
        w->streams = *b->plan->streams.pool;
        *b->plan->streams.pool = (struct llm_pool){.no_memory = false};
    }
    if (b->plan->window_done.tell)
        b->plan->window_done.tell(b->plan->window_done.ctx, (size_t)(w - b->cases));
    if (!r->counts.due) return error_set(err, TARE_DENIED, "interrupted before the first request");
    w->runs += r->counts.due;
    w->spent_ns += r->ended_ns - r->began_ns;
    s = take_outcomes(w, r, err);
    if (s == TARE_OK) s = take_tenths(w, r, err);
    if (s == TARE_OK && is_open(b, w)) take_open_loop(w, r, b->plan->budget_ns);
    if (s < 0) return s;
    if (!w->samples.n && r->failure[0]) return error_set(err, TARE_DENIED, "%s", r->failure);
    if (!r->failure[0] || w->failure) return TARE_OK;
    w->failure = arena_str(&b->run->arena, r->failure);
    return w->failure ? TARE_OK : error_nomem(err, "case %s", w->what->name);
}

/* ---- into the document ---- */

static bool part_service(const struct load_outcome *o, uint64_t *ns)
{
    *ns = (o->last_content ? o->last_content : o->end) - o->sent;
    return load_is_answered(o);
}

static bool part_delay(const struct load_outcome *o, uint64_t *ns)
{
    *ns = o->sent - o->planned;
    return o->sent != 0;
}

static bool part_first_byte(const struct load_outcome *o, uint64_t *ns)
{
    *ns = o->first_byte - o->planned;
    return o->first_byte != 0;
}

static bool part_body(const struct load_outcome *o, uint64_t *ns)
{
    *ns = o->end - o->first_byte;
    return load_is_answered(o) && o->first_byte != 0;
}

/* Times of requests: from which moment to which, of those that came so far. */
static const struct part {
    const char *path;
    size_t offset;
    bool (*take)(const struct load_outcome *o, uint64_t *ns);
} parts[] = {
    {"http.service_ns", offsetof(struct run_http, service_ns), part_service},
    {"http.delay_ns", offsetof(struct run_http, delay_ns), part_delay},
    {"http.first_byte_ns", offsetof(struct run_http, first_byte_ns), part_first_byte},
    {"http.body_ns", offsetof(struct run_http, body_ns), part_body},
};

static tare_status put_part(struct run *run, struct run_case *c, const struct load_result *r,
                            const struct part *part, tare_error *err)
{
    uint64_t *ns = mem_new(r->outcomes.n, sizeof *ns);
    size_t n = 0;
    if (!ns) return error_nomem(err, "%zu requests", r->outcomes.n);
    for (size_t i = 0; i < r->outcomes.n; i++)
        if (part->take(&r->outcomes.items[i], &ns[n])) n++;
    struct run_latency *into = (struct run_latency *)((char *)&c->http + part->offset);
    struct spread s = {.run = run, .c = c, .into = into, .path = part->path, .ns = ns, .n = n};
    if (!n) run_unknown(run, &c->unknown, part->path, "no request came so far");
    tare_status status = n ? spread_put(&s, err) : TARE_OK;
    mem_free(ns);
    return status;
}

static void put_faults(struct run *run, struct run_http *h, const struct load_counts *c)
{
    char key[8];
    for (unsigned f = LOAD_NONE + 1; f < LOAD_FAULTS; f++)
        if (c->faults[f]) run_map_int(&run->arena, &h->faults, load_fault_word(f), (int64_t)c->faults[f]);
    for (unsigned s = 100; s < LOAD_STATUSES; s++) {
        if (!c->statuses[s]) continue;
        snprintf(key, sizeof key, "%u", s);
        run_map_int(&run->arena, &h->statuses, key, (int64_t)c->statuses[s]);
    }
}

static void put_client(struct run_http *h, const struct load_result *r)
{
    const struct load_counts *c = &r->counts;
    uint64_t wall = r->ended_ns - r->began_ns;
    uint64_t open_ns = r->closed_ns - r->began_ns;
    h->client_busy = known_f64(open_ns ? fmin((double)r->cpu_ns / (double)open_ns, 1) : 0);
    if (c->sent) h->client_ns = known_u64(r->cpu_ns / c->sent);
    h->drain_ns = known_u64(wall - open_ns);
    h->limited = known_bool(h->client_busy.v > HTTP_CLIENT_BUSY || c->faults[LOAD_SOCKETS] > 0);
}

/* ---- answers to the same requests ---- */

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* One number for each answer: which request it was, and what its body is like. */
static size_t list_answers(const struct load_result *r, uint64_t *to)
{
    size_t n = 0;
    for (size_t i = 0; i < r->outcomes.n; i++) {
        const struct load_outcome *o = &r->outcomes.items[i];
        if (load_is_answered(o)) to[n++] = o->number % r->period << 32 | (o->digest ^ o->bytes);
    }
    qsort(to, n, sizeof *to, by_value);
    return n;
}

/* How many requests there were, and how many different answers to them. */
static tare_status put_distinct(struct run_http *h, const struct load_result *r, tare_error *err)
{
    uint64_t *all = r->period ? mem_new(r->outcomes.n, sizeof *all) : NULL, asked = 0, distinct = 0;
    if (!r->period) return TARE_OK;
    if (!all) return error_nomem(err, "%zu requests", r->outcomes.n);
    size_t n = list_answers(r, all);
    for (size_t i = 0; i < n; i++) {
        distinct += i == 0 || all[i] != all[i - 1];
        asked += i == 0 || all[i] >> 32 != all[i - 1] >> 32;
    }
    mem_free(all);
    if (asked) h->asked = known_u64(asked);
    if (asked) h->distinct = known_u64(distinct);
    return TARE_OK;
}

/* ---- over time ---- */

enum { MOMENTS_MOST = 60, MOMENT_REQUESTS = 20 };

/* The lower median of those due in one stretch; NAN: it falls on one without an answer. Sorts x. */
static double median_of(double *x, size_t n, size_t due)
{
    size_t middle = (due - 1) / 2;
    if (middle >= n) return NAN;
    stats_sort(x, n);
    return x[middle];
}

/* Of `n` requests in a row, each of which stands for `one_in`; x: room for as many. */
static struct run_moment moment_of(const struct load_outcome *o, size_t n, uint64_t one_in, double *x)
{
    struct run_moment m = {.due = known_u64(n * one_in)};
    size_t answered = 0;
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!load_is_answered(&o[i])) continue;
        x[answered++] = (double)load_took(&o[i]);
        most = fmax(most, x[answered - 1]);
    }
    m.failed = known_u64((n - answered) * one_in);
    if (answered) m.max_ns = known_u64((uint64_t)most);
    double median = n ? median_of(x, answered, n) : NAN;
    if (isfinite(median)) m.p50_ns = known_u64((uint64_t)median);
    return m;
}

/* As many stretches as have some requests each. Outcomes stand in the order in which they were due. */
static tare_status put_over_time(struct run *run, struct run_case *c, const struct load_result *r,
                                 tare_error *err)
{
    size_t all = r->outcomes.n, at = 0;
    uint64_t window = r->closed_ns - r->began_ns, stretches = all / MOMENT_REQUESTS;
    double *x = mem_new(all ? all : 1, sizeof *x);
    tare_status s = x ? TARE_OK : TARE_NOMEM;
    if (stretches > MOMENTS_MOST) stretches = MOMENTS_MOST;
    if (stretches < 1) stretches = 1;
    for (uint64_t k = 0; s == TARE_OK && k < stretches; k++) {
        uint64_t end = k + 1 < stretches ? r->began_ns + window / stretches * (k + 1) : UINT64_MAX;
        size_t from = at;
        while (at < all && r->outcomes.items[at].planned < end) at++;
        struct run_moment *m = RUN_LIST_ADD(&run->arena, &c->http.over_time);
        s = m ? TARE_OK : TARE_NOMEM;
        if (!m) break;
        *m = moment_of(&r->outcomes.items[from], at - from, r->one_in, x);
        m->start_ns = known_u64(window / stretches * k);
    }
    mem_free(x);
    return s == TARE_OK ? s : error_nomem(err, "%zu requests over time", all);
}

/* Little's law: what is answered in a second, times how long each is under way. */
static void put_server(struct bench *b, struct run_case *c, const struct case_work *w)
{
    const struct load_result *r = &w->requests;
    struct run_http *h = &c->http;
    h->server = w->server;
    if (!w->server.known) {
        if (b->plan->service_pid) run_unknown(b->run, &c->unknown, "http.server", "its process is gone");
        return;
    }
    double seconds = (double)(r->ended_ns - r->began_ns) / 1e9;
    if (h->service_ns.known && h->service_ns.mean.known && h->answered.known && seconds > 0)
        h->server.in_flight = known_f64((double)h->answered.v * (double)h->service_ns.mean.v / 1e9 / seconds);
    const char *const fields[] = {"name", "thread", "thread_busy", "waited", "usable", "in_flight"};
    const bool known[] = {h->server.name != NULL, h->server.thread != NULL, h->server.thread_busy.known,
                          h->server.waited.known, h->server.usable.known,   h->server.in_flight.known};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char path[40];
        snprintf(path, sizeof path, "http.server.%s", fields[i]);
        if (!known[i]) run_unknown(b->run, &c->unknown, path, "the kernel does not tell it of this process");
    }
}

/* The longest of all may be one that was not kept. */
static void put_longest(struct run *run, struct run_case *c, const struct load_result *r)
{
    const struct load_counts *n = &r->counts;
    bool all = n->answered == n->due;
    uint64_t longest = all || n->longest > n->longest_failed ? n->longest : n->longest_failed;
    c->latency_ns.max = all ? known_u64(longest) : (struct known_u64){0};
    if (all) return;
    run_map_int(&run->arena, &c->latency_ns.at_least, "max", (int64_t)longest);
    run_unknown(run, &c->unknown, "latency_ns.max",
                "more than %s: %" PRIu64 " of %" PRIu64 " were not answered", show_time((double)longest).s,
                n->due - n->answered, n->due);
}

tare_status record_http(struct bench *b, struct run_case *c, const struct case_work *w, tare_error *err)
{
    const struct load_result *r = &w->requests;
    const struct load_counts *n = &r->counts;
    struct run_http *h = &c->http;
    *h = (struct run_http){.known = true,
                           .due = known_u64(n->due),
                           .sent = known_u64(n->sent),
                           .answered = known_u64(n->answered),
                           .failed = known_u64(n->failed),
                           .open = known_u64(n->open),
                           .queued = known_u64(n->queued),
                           .late = known_u64(n->late),
                           .connections = known_u64(r->most_open),
                           .connected = known_u64(r->connected),
                           .reconnects = known_u64(r->reconnects),
                           .unstamped = known_u64(n->unstamped),
                           .one_in = known_u64(r->one_in),
                           .surplus = known_u64(r->surplus),
                           .bytes_sent = known_u64(r->bytes_sent),
                           .bytes_received = known_u64(r->bytes_received)};
    if (n->last_answer > r->began_ns) h->last_answer_ns = known_u64(n->last_answer - r->began_ns);
    if (r->one_in > 1) put_longest(b->run, c, r);
    put_faults(b->run, h, n);
    put_client(h, r);
    tare_status status = TARE_OK;
    for (size_t i = 0; status == TARE_OK && i < sizeof parts / sizeof *parts; i++)
        status = put_part(b->run, c, r, &parts[i], err);
    if (status == TARE_OK) status = put_over_time(b->run, c, r, err);
    if (status == TARE_OK) status = put_distinct(h, r, err);
    put_server(b, c, w);
    if (status < 0 || !b->plan->streams.pool) return status;
    const struct streamed streamed = {b->run,
                                      c,
                                      r->outcomes.items,
                                      r->outcomes.n,
                                      r->one_in,
                                      r->began_ns,
                                      r->closed_ns - r->began_ns,
                                      &w->streams,
                                      b->plan->streams.slo};
    return record_stream(&streamed, err);
}
