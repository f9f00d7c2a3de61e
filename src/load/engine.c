/* SPDX-License-Identifier: MIT
 * engine.c - when requests are due, and when it is over. Every turn of the loop: what is due by now gets an outcome,
 * what can be sent is sent, what is too old is given up, then it waits for what comes next. */
#include "load/engine.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "load/engine_parts.h"
#include "tls/tls.h"

enum { OTHER_FILES = 64, MOST_CONNECTIONS = 60000, HOPELESS = 20, RETIRE = 1024 };
#define AWAKE_NS UINT64_C(50000000) /* often enough to hear of an interruption */
#define PAUSE_NS UINT64_C(10000000) /* after a failure, closed loop: a dead server is not hammered */

/* ---- before ---- */

tare_status load_connections(unsigned wanted, unsigned *out, tare_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) return error_errno(err, "the limit of open files");
    rlim_t need = wanted ? (rlim_t)wanted + OTHER_FILES : (rlim_t)MOST_CONNECTIONS;
    if (limit.rlim_cur < need && limit.rlim_cur < limit.rlim_max) {
        struct rlimit more = {need < limit.rlim_max ? need : limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0) limit = more;
    }
    if (wanted && limit.rlim_cur < need)
        return error_set(err, TARE_INVALID,
                         "%u connections need %llu open files, and this process may have %llu: %s", wanted,
                         (unsigned long long)need, (unsigned long long)limit.rlim_cur,
                         "fewer connections, or ulimit -n");
    rlim_t most = limit.rlim_cur > OTHER_FILES ? limit.rlim_cur - OTHER_FILES : 1;
    if (most > MOST_CONNECTIONS) most = MOST_CONNECTIONS;
    *out = wanted ? wanted : (unsigned)most;
    return TARE_OK;
}

static tare_status set_up(struct load_engine *e, tare_error *err)
{
    if (!http_library())
        return error_set(err, TARE_UNSUPPORTED,
                         "this tare was built without llhttp: no load by HTTP (make deps, then make)");
    tare_status s = load_address_read(&e->at, e->o.url, err);
    if (s == TARE_OK) s = load_connections(e->o.connections, &e->most_open, err);
    if (s == TARE_OK) s = load_address_resolve(&e->at, err);
    if (s == TARE_OK && e->at.tls) s = tls_trust(&e->trust, e->o.authorities, err);
    if (s < 0) return s;
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (e->epoll < 0) return error_errno(err, "epoll");
    e->room = mem_new(1, 1 << 16);
    return e->room ? TARE_OK : error_nomem(err, "load");
}

tare_status load_open(struct load_engine **out, const struct load_options *o, tare_error *err)
{
    struct load_engine *e = mem_new(1, sizeof *e);
    if (!e) return error_nomem(err, "load");
    *e =
        (struct load_engine){.o = *o, .epoll = -1, .fixed = BUF_INIT, .made = {BUF_INIT, BUF_INIT, BUF_INIT}};
    if (!e->o.keep) e->o.keep = LOAD_KEEP;
    if (!e->o.timeout_ns) e->o.timeout_ns = LOAD_TIMEOUT_NS;
    e->rules = (struct reply_rules){o->reader, o->expect_body, o->expect_status,
                                    o->body_max ? o->body_max : LOAD_BODY_MAX, o->source.period != 0};
    e->wording = (struct load_wording){&e->at, o->method, o->headers, o->source.content_type, o->fresh};
    tare_status s = set_up(e, err);
    if (s == TARE_OK)
        *out = e;
    else
        load_close(e);
    return s;
}

void load_close(struct load_engine *e)
{
    if (!e) return;
    carry_close_all(e);
    if (e->epoll >= 0) close(e->epoll);
    tls_release(e->trust);
    load_request_release(&e->made);
    buf_release(&e->fixed);
    vec_release(&e->due);
    mem_free(e->room);
    mem_free(e);
}

/* ---- outcomes ---- */

/* The first failure is told in words; of a wrong answer also how its body begins. */
static void describe(struct load_engine *e, const struct load_outcome *o, const char *why,
                     const char *glimpse)
{
    char *to = e->r->failure;
    size_t size = sizeof e->r->failure;
    if (o->fault == LOAD_STATUS)
        snprintf(to, size, "status %u%s%.*s%s", o->status, glimpse[0] ? ", \"" : "", 150, glimpse,
                 glimpse[0] ? "\"" : "");
    else if (o->fault == LOAD_BODY && !why)
        snprintf(to, size, "the expected text is not in the body: \"%.150s\"", glimpse);
    else
        snprintf(to, size, "%s%s%.150s", load_fault_help(o->fault), why ? ": " : "", why ? why : "");
    if (o->status / 100 == 3 && strlen(to) + 40 < size)
        snprintf(to + strlen(to), size - strlen(to), " (redirects are not followed)");
}

void engine_conclude(struct load_engine *e, struct load_outcome *o, const char *why, const char *glimpse)
{
    load_count(&e->r->counts, o);
    if (load_is_answered(o)) return;
    e->not_before = o->end + PAUSE_NS;
    if (!e->r->failure[0]) describe(e, o, why, glimpse);
}

/* Where there is no room for more, every other one goes. */
static void keep(struct load_engine *e, const struct load_outcome *o)
{
    struct load_result *r = e->r;
    if (o->number % r->one_in) return;
    if (r->outcomes.n == e->o.keep) {
        for (size_t i = 0; 2 * i < r->outcomes.n; i++) r->outcomes.items[i] = r->outcomes.items[2 * i];
        r->outcomes.n -= r->outcomes.n / 2;
        r->one_in *= 2;
        if (o->number % r->one_in) return;
    }
    tare_status s = vec_push(&r->outcomes, *o, e->err);
    if (s < 0) e->broken = s;
}

/* Those that are over, up to the first that is not: so they are kept in the order in which they were due, and what is
 * here is no more than came due while one was under way. */
static void retire(struct load_engine *e)
{
    while (e->over < e->due.n && e->due.items[e->over].end && e->broken == TARE_OK)
        keep(e, &e->due.items[e->over++]);
    if (e->over < RETIRE || 2 * e->over < e->due.n) return;
    e->due.n -= e->over;
    memmove(e->due.items, e->due.items + e->over, e->due.n * sizeof *e->due.items);
    e->first += e->over;
    e->over = 0;
}

/* ---- turns ---- */

static size_t n_due(const struct load_engine *e)
{
    return e->first + e->due.n;
}

static bool add_outcome(struct load_engine *e, uint64_t planned)
{
    struct load_outcome o = {
        .number = n_due(e), .planned = planned, .fault = LOAD_OPEN, .flags = e->w->warm ? LOAD_WARM : 0};
    tare_status s = vec_push(&e->due, o, e->err);
    if (s < 0) e->broken = s;
    return s == TARE_OK;
}

static bool is_interrupted(const struct load_engine *e)
{
    return e->o.interrupted && *e->o.interrupted;
}

/* May another one be due, in a closed loop? */
static bool has_room(const struct load_engine *e, uint64_t now)
{
    size_t n = n_due(e), under_way = e->n_busy + (n - e->next);
    return under_way < e->w->concurrency && now >= e->not_before && (!e->w->most || n < e->w->most);
}

static void plan_due(struct load_engine *e, uint64_t now)
{
    const struct load_window *w = e->w;
    if (w->arrivals) {
        while (e->arrived < w->n_arrivals && e->origin + w->arrivals[e->arrived] <= now)
            if (!add_outcome(e, e->origin + w->arrivals[e->arrived++])) return;
        return;
    }
    while (now < e->origin + w->window_ns && has_room(e, now))
        if (!add_outcome(e, now)) return;
}

static void send_due(struct load_engine *e)
{
    for (; e->next < n_due(e) && e->broken == TARE_OK; e->next++) {
        if (carry_begin(e, e->next)) continue;
        engine_outcome(e, e->next)->flags |= LOAD_QUEUED;
        return;
    }
}

/* "": for the answer. */
static const char *waits_for(const struct carrier *c)
{
    if (c->state == CARRIER_DIALS) return "the connection was not accepted";
    return c->state == CARRIER_SHAKES ? "the TLS handshake was not answered" : "";
}

/* Both lists are in the order of planning, so that only their heads need a look. */
static void expire(struct load_engine *e, uint64_t now)
{
    for (struct carrier *c = e->busy.first;
         c && now - engine_outcome(e, c->request)->planned >= e->o.timeout_ns; c = e->busy.first) {
        c->used = false; /* it is not sent again */
        snprintf(c->why, sizeof c->why, "%s", waits_for(c));
        carry_give_up(e, c, LOAD_TIMEOUT);
    }
    for (; e->next < n_due(e); e->next++) {
        struct load_outcome *o = engine_outcome(e, e->next);
        if (now - o->planned < e->o.timeout_ns) return;
        o->fault = LOAD_TIMEOUT;
        o->end = now;
        o->flags |= LOAD_QUEUED;
        engine_conclude(e, o, "all connections were busy", "");
    }
}

/* Nothing is under way, and nothing will be. */
static bool is_over(const struct load_engine *e, uint64_t now)
{
    const struct load_window *w = e->w;
    if (e->n_busy || e->next < n_due(e)) return false;
    if (w->arrivals) return e->arrived == w->n_arrivals;
    return now >= e->origin + w->window_ns || (w->most && n_due(e) >= w->most);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When there is something to do even if nothing comes. */
static uint64_t next_moment(const struct load_engine *e, uint64_t now)
{
    const struct load_window *w = e->w;
    uint64_t at = now + AWAKE_NS;
    if (w->arrivals && e->arrived < w->n_arrivals) at = least(at, e->origin + w->arrivals[e->arrived]);
    if (!w->arrivals && e->not_before > now) at = least(at, e->not_before);
    if (!w->arrivals) at = least(at, e->origin + w->window_ns > now ? e->origin + w->window_ns : at);
    size_t oldest = e->busy.first ? e->busy.first->request : e->next; /* the others were planned later */
    if (oldest < n_due(e)) at = least(at, engine_outcome(e, oldest)->planned + e->o.timeout_ns);
    return at > now ? at - now : 0;
}

static bool is_hopeless(const struct load_engine *e)
{
    return e->r->counts.answered == 0 && e->r->counts.failed >= HOPELESS;
}

static void run_turns(struct load_engine *e)
{
    while (e->broken == TARE_OK && !is_interrupted(e) && !is_hopeless(e)) {
        uint64_t now = instant_now().ns;
        plan_due(e, now);
        expire(e, now);
        send_due(e);
        retire(e);
        now = instant_now().ns;
        if (is_over(e, now)) return;
        carry_wait(e, next_moment(e, now));
    }
}

/* Interrupted: what is under way stays open, and took at least this long. */
static void abandon(struct load_engine *e)
{
    uint64_t now = instant_now().ns;
    for (; e->next < n_due(e); e->next++) {
        engine_outcome(e, e->next)->end = now;
        engine_conclude(e, engine_outcome(e, e->next), NULL, "");
    }
    while (e->busy.first) {
        struct carrier *c = e->busy.first;
        c->used = false;
        carry_give_up(e, c, LOAD_OPEN);
    }
    retire(e);
}

static void begin_window(struct load_engine *e, const struct load_window *w, struct load_result *out)
{
    load_result_release(out);
    *out = (struct load_result){.one_in = 1, .period = e->o.source.period};
    e->w = w;
    e->r = out;
    e->next = e->arrived = e->first = e->over = e->due.n = 0;
    e->not_before = 0;
    e->broken = TARE_OK;
    if (e->o.reader && e->o.reader->clear) e->o.reader->clear(e->o.reader->ctx);
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* of this thread: its sleeps end when asked */
    out->most_open = e->n_open;
}

tare_status load_run(struct load_engine *e, const struct load_window *w, struct load_result *out,
                     tare_error *err)
{
    begin_window(e, w, out);
    e->err = err;
    size_t room = w->arrivals ? w->n_arrivals : 1024;
    tare_status s = vec_reserve(&out->outcomes, room < e->o.keep ? room : e->o.keep, err);
    if (s < 0) return s;
    uint64_t cpu = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    out->began_ns = e->origin = instant_now().ns;
    run_turns(e);
    out->interrupted = is_interrupted(e);
    out->hopeless = is_hopeless(e);
    out->ended_ns = instant_now().ns;
    out->closed_ns = least(out->ended_ns, e->origin + w->window_ns);
    abandon(e);
    out->cpu_ns = clock_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    return e->broken;
}
