/* SPDX-License-Identifier: MIT
 * ab_worker.c - see ab.h. The clock is read here, in the process that works, so that waking up and the
 * socket are no part of a measurement. */
#include "bench/ab.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "bench/engine.h"
#include "core/clock.h"

enum { WARM_LEAST = 2, WARM_MOST = 10 };
#define WARM_NS UINT64_C(20000000)       /* at least this long .. */
#define WARM_MOST_NS UINT64_C(100000000) /* .. and, once there were WARM_MOST runs, no longer than this */
#define WARM_LONG_NS UINT64_C(1000000000) /* never longer: one run, where that takes seconds */
#define WARM_SLACK 1.1                   /* warm: the last run took no longer than this times the fastest */

/* ---- packets ---- */

static ssize_t receive(int fd, void *to, size_t size)
{
    ssize_t n;
    do n = recv(fd, to, size, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

static bool send_reply(int fd, const struct ab_reply *r)
{
    ssize_t n;
    do n = send(fd, r, sizeof *r, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *r;
}

void ab_worker_refuse(int fd, tare_status status, const char *text)
{
    struct ab_reply r = {.magic = AB_MAGIC, .status = status};
    snprintf(r.text, sizeof r.text, "%s", text);
    send_reply(fd, &r);
}

tare_status ab_worker_begin(int fd, struct ab_request *start, char *spec, size_t size, tare_error *err)
{
    ssize_t n = receive(fd, start, sizeof *start);
    if (n != (ssize_t)sizeof *start || start->magic != AB_MAGIC || start->kind != AB_ASK_START)
        return error_set(err, TARE_INVALID, "descriptor %d: no comparison at the other end", fd);
    n = receive(fd, spec, size - 1);
    if (n <= 0) return error_set(err, TARE_INVALID, "descriptor %d: no specification came", fd);
    spec[n] = 0;
    return TARE_OK;
}

/* ---- measuring ---- */

struct at_work {
    struct subject *subject;
    const struct case_params *params;
    const struct case_record *record;
    struct instance *instance;
    const struct subject_ops *ops;
};

static struct rusage usage_now(void)
{
    struct rusage u = {0};
    getrusage(RUSAGE_SELF, &u);
    return u;
}

/* The clocks are nested: the wall clock is read innermost, the counters that cost system calls outermost.
 * Repeats are timed as a whole, because one run may be as short as reading the clock. */
static tare_status run_repeats(struct at_work *w, uint64_t n, struct pair_side *r, tare_error *err)
{
    struct subject_cost cost;
    tare_status s = TARE_OK;
    struct rusage before = usage_now();
    struct known_u64 delay = procstat_run_delay(NULL, 0);
    uint64_t cpu = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID), start = bench_machine.now();
    for (uint64_t i = 0; s == TARE_OK && i < n; i++) s = w->ops->run(w->instance, 0, &cost, err);
    uint64_t end = bench_machine.now();
    r->wall_ns = end - start;
    r->cpu_ns = clock_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    struct known_u64 delayed = procstat_run_delay(NULL, 0);
    if (delay.known && delayed.known) r->others = known_u64(delayed.v - delay.v);
    struct rusage after = usage_now();
    r->involuntary = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw);
    r->voluntary = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
    return s;
}

/* Until a run is about as fast as the fastest so far. */
static tare_status warm_up(struct at_work *w, struct ab_launched *r, tare_error *err)
{
    uint64_t sum = 0, fastest = UINT64_MAX;
    for (;;) {
        struct pair_side one;
        tare_status s = run_repeats(w, 1, &one, err);
        if (s < 0) return s;
        r->warmup_runs++;
        sum += one.wall_ns;
        bool near = (double)one.wall_ns <= WARM_SLACK * (double)fastest;
        if (one.wall_ns < fastest) fastest = one.wall_ns;
        if (r->warmup_runs >= WARM_LEAST && sum >= WARM_NS && near) break;
        if (r->warmup_runs >= WARM_MOST && sum >= WARM_MOST_NS) break;
        if (sum >= WARM_LONG_NS) break;
    }
    r->typical_ns = fastest;
    return TARE_OK;
}

static tare_status load(struct at_work *w, struct ab_launched *r, tare_error *err)
{
    uint64_t start = bench_machine.now();
    tare_status status = w->ops->prepare(w->subject, w->params, w->record, &w->instance, err);
    if (status < 0) {
        w->instance = NULL;
        return status;
    }
    r->load_ns = bench_machine.now() - start;
    return warm_up(w, r, err);
}

/* True: go on. */
static bool serve_one(int fd, struct at_work *w, tare_status *status, tare_error *err)
{
    struct ab_request ask;
    struct ab_reply r = {.magic = AB_MAGIC};
    ssize_t n = receive(fd, &ask, sizeof ask);
    if (n == 0) return false; /* nobody is left to answer */
    if (n != (ssize_t)sizeof ask || ask.magic != AB_MAGIC ||
        (ask.kind != AB_ASK_RUN && ask.kind != AB_ASK_END)) {
        *status = error_set(err, TARE_INVALID, "a request that is none");
        return false;
    }
    if (ask.kind == AB_ASK_RUN && (*status = run_repeats(w, ask.n, &r.side, err)) < 0) return false;
    struct known_u64 peak = ask.kind == AB_ASK_END ? procstat_rss_peak("") : (struct known_u64){0};
    if (peak.known) r.side.rss_peak = peak.v;
    return send_reply(fd, &r) && ask.kind == AB_ASK_RUN;
}

tare_status ab_worker_serve(int fd, struct subject *s, const struct case_params *p,
                            const struct case_record *to, tare_error *err)
{
    struct at_work w = {.subject = s, .params = p, .record = to, .ops = s->ops};
    struct ab_reply r = {.magic = AB_MAGIC};
    tare_status status = load(&w, &r.launched, err);
    if (status == TARE_OK && send_reply(fd, &r))
        while (serve_one(fd, &w, &status, err)) continue;
    if (status < 0) ab_worker_refuse(fd, status, err ? err->text : "failed");
    if (w.instance) s->ops->finish(w.instance);
    return status;
}
