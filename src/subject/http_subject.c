/* SPDX-License-Identifier: MIT
 * http_subject.c - a service behind an address as a subject of `tare bench`: one request after the other by run(), or a
 * window of load that it drives itself (src/load). */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/mem.h"
#include "subject/subject.h"
#include "tare/tare.h"

struct service {
    struct subject subject;
    struct load_engine *engine;
    char *url;
    bool open_loop;
    const volatile sig_atomic_t *interrupted;
};

struct service_case {
    struct instance instance;
    struct service *service;
    struct load_result first; /* of run() */
};

/* ---- requests in the trace of `tare run --bench`, or wherever TARE_TRACE says: each a scope of its own ---- */

_Static_assert(sizeof(tare_scope) == LOAD_SPAN_ROOM * sizeof(uint64_t), "a span has room for a scope");

/* A free scope, put aside at once: others begin before it ends. */
static void span_begin(uint64_t room[LOAD_SPAN_ROOM], bool warm)
{
    static tare_site sites[2] = {{.name = "request", .file = "tare bench"},
                                 {.name = "request of the warm-up", .file = "tare bench"}};
    tare_scope *scope = (tare_scope *)room;
    tare_open(scope, &sites[warm]);
    tare_pause(scope);
}

static void span_end(uint64_t room[LOAD_SPAN_ROOM])
{
    tare_scope *scope = (tare_scope *)room;
    tare_resume(scope, 1);
    tare_end(scope);
}

static const struct load_spans spans = {span_begin, span_end};

static struct service *service_of(struct instance *i)
{
    return ((struct service_case *)i)->service;
}

static tare_status describe(struct subject *s, struct run *run, tare_error *err)
{
    run->subject.type = "http";
    run->subject.name = arena_str(&run->arena, ((struct service *)s)->url);
    return run->subject.name ? TARE_OK : error_nomem(err, "the subject");
}

static tare_status prepare(struct subject *s, const struct case_params *p, const struct case_record *to,
                           struct instance **out, tare_error *err)
{
    struct service_case *c = mem_new(1, sizeof *c);
    if (!c) return error_nomem(err, "a case");
    c->instance.subject = s;
    c->service = (struct service *)s;
    case_say_params(p, to);
    *out = &c->instance;
    return TARE_OK;
}

/* One request: what the load is made of, checked before there is any. */
static tare_status run_one(struct instance *i, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct service_case *c = (struct service_case *)i;
    struct service *s = c->service;
    struct load_window one = {.concurrency = 1, .most = 1, .window_ns = UINT64_MAX / 4, .warm = true};
    (void)worker;
    tare_status status = load_run(s->engine, &one, &c->first, err);
    if (status < 0) return status;
    if (c->first.interrupted || !c->first.outcomes.n) return error_set(err, TARE_DENIED, "interrupted");
    const struct load_outcome *o = &c->first.outcomes.items[0];
    cost->wall_ns = o->end - o->sent;
    if (load_is_answered(o)) return TARE_OK;
    return error_set(err, TARE_DENIED, "%s: %s", s->url, c->first.failure);
}

/* Until it answers as expected. What it says meanwhile is its error when the time is over. */
tare_status subject_await_http(struct subject *subject, uint64_t patience_ns, tare_error *err)
{
    struct service_case c = {.instance = {subject}, .service = (struct service *)subject};
    const volatile sig_atomic_t *interrupted = c.service->interrupted;
    uint64_t began = instant_now().ns;
    tare_status s;
    for (;;) {
        struct subject_cost cost = {.known = false};
        struct timespec nap = {0, 50000000};
        s = run_one(&c.instance, 0, &cost, err);
        bool over = instant_now().ns - began >= patience_ns || (interrupted && *interrupted);
        if (s == TARE_OK || over) break;
        nanosleep(&nap, NULL);
    }
    load_result_release(&c.first);
    return s;
}

static tare_status load(struct instance *i, const struct load_window *w, struct load_result *out,
                        tare_error *err)
{
    return load_run(service_of(i)->engine, w, out, err);
}

static void finish(struct instance *i)
{
    struct service_case *c = (struct service_case *)i;
    load_result_release(&c->first);
    mem_free(c);
}

static void close_service(struct subject *s)
{
    struct service *v = (struct service *)s;
    load_close(v->engine);
    mem_free(v->url);
    mem_free(v);
}

static const struct subject_ops service_ops = {
    .type = "http",
    .describe = describe,
    .prepare = prepare,
    .run = run_one,
    .finish = finish,
    .close = close_service,
    .load = load,
    .reports_time = true,
};

/* The query may hold secrets, and is no name of a service. */
static char *name_of(const char *url)
{
    return mem_strndup(url, strcspn(url, "?#"));
}

tare_status subject_open_http(struct subject **out, const struct load_options *o, tare_error *err)
{
    struct service *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "a service");
    s->subject.ops = &service_ops;
    s->interrupted = o->interrupted;
    s->url = name_of(o->url);
    struct load_options with_spans = *o;
    with_spans.spans = &spans;
    tare_status status = s->url ? load_open(&s->engine, &with_spans, err) : error_nomem(err, "a service");
    if (status < 0) {
        close_service(&s->subject);
        return status;
    }
    *out = &s->subject;
    return TARE_OK;
}
