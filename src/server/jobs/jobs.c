/* SPDX-License-Identifier: MIT
 * jobs.c - see jobs.h. */
#include "server/jobs/jobs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/json.h"
#include "run/run.h"
#include "server/steps.h"

struct jobs {
    struct jobs_options options;
    char owner[65];
    pthread_mutex_t lock;
    pthread_cond_t more;         /* something to run, somebody who waits, or the end */
    struct job_entry *first;     /* queued, oldest first */
    struct job_entry *all;       /* reserved, queued or running, by `sibling` */
    unsigned n, n_seats, broken; /* broken: runners that are gone */
    bool stop;
    pthread_t clock;
    bool has_clock;
    struct seat {
        struct jobs *jobs;
        struct runner *runner;
        struct store *store;
        struct job_entry *job; /* that it runs */
        pthread_t thread;
        bool started;
    } seats[RUNS_AT_ONCE_MAX];
};

const char *jobs_owner(const struct jobs *j)
{
    return j->owner;
}

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- places ---- */

struct job_entry *jobs_reserve(struct jobs *j, const struct exchange *x, const char **why)
{
    const struct operations *ops = j->options.operations;
    unsigned of_token = 0;
    struct job_entry *e = NULL;
    pthread_mutex_lock(&j->lock);
    for (struct job_entry *other = j->all; other; other = other->sibling)
        of_token += strcmp(other->who, x->who) == 0;
    *why = NULL;
    if (j->stop || j->broken == j->n_seats)
        *why = "nothing can be run now";
    else if (of_token >= ops->per_token)
        *why = "this token has as many jobs under way as it may have";
    else if (j->n >= ops->queue + ops->at_once)
        *why = "too many jobs wait already";
    else if (!(e = mem_new(1, sizeof *e)))
        *why = "no memory";
    if (e) {
        snprintf(e->who, sizeof e->who, "%s", x->who);
        snprintf(e->project, sizeof e->project, "%s", x->project);
        e->request = (struct buf)BUF_INIT;
        e->sibling = j->all;
        j->all = e;
        j->n++;
    }
    pthread_mutex_unlock(&j->lock);
    return e;
}

static void free_entry(struct job_entry *e)
{
    for (size_t i = 0; i < e->n_files; i++) buf_release(&e->files[i].text);
    mem_free(e->files);
    buf_release(&e->request);
    mem_free(e);
}

void jobs_release(struct jobs *j, struct job_entry *e)
{
    pthread_mutex_lock(&j->lock);
    for (struct job_entry **at = &j->all; *at; at = &(*at)->sibling) {
        if (*at != e) continue;
        *at = e->sibling;
        j->n--;
        break;
    }
    pthread_mutex_unlock(&j->lock);
    free_entry(e);
}

/* ---- replies ---- */

void jobs_reply_waiting(struct exchange *x, const char *id, const char *operation, const char *state)
{
    struct json j;
    reply_json(x, 202);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "id", id);
    json_kv_string(&j, "operation", operation);
    json_kv_string(&j, "state", state);
    json_object_end(&j);
    json_finish(&j, NULL);
    x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/jobs/%s\r\nRetry-After: 1\r\n", id);
}

static void answer(struct exchange *x, const struct job_entry *e, const struct job_outcome *o)
{
    if (strcmp(o->state, "done") != 0) {
        reply_problem(x, strcmp(o->state, "timeout") == 0 ? 504 : 502, "job %s: %s", e->id,
                      o->why[0] ? o->why : o->state);
    } else if (o->answer.len) {
        reply_json(x, 200);
        buf_add(&x->reply.body, o->answer.data, o->answer.len);
    } else {
        jobs_reply_waiting(x, e->id, e->operation->name, o->state);
        x->reply.status = 200;
    }
    x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/jobs/%s\r\n", e->id);
    steps_finish(x);
}

/* Who waits for it is answered once: by its end, or by the clock. */
static struct exchange *take_waiting(struct jobs *j, struct job_entry *e)
{
    pthread_mutex_lock(&j->lock);
    struct exchange *x = e->waits;
    e->waits = NULL;
    pthread_mutex_unlock(&j->lock);
    return x;
}

/* ---- running one ---- */

struct hearing { /* what the runner says of a job */
    struct seat *seat;
    struct job_entry *e;
    struct job_outcome outcome;
    struct job_documents documents;
    struct run_text {
        struct buf text;
    } texts[DOCUMENTS_MAX];
    size_t n_texts;
    bool ended;
};

static void hear_document(void *ctx, const char *name, const char *text, size_t n)
{
    struct hearing *h = ctx;
    struct job_document d = {.run = ""};
    if (h->n_texts >= DOCUMENTS_MAX) return;
    snprintf(d.name, sizeof d.name, "%s", name);
    if (vec_push(&h->documents.at, d, NULL) != TARE_OK) return;
    h->texts[h->n_texts].text = (struct buf)BUF_INIT;
    buf_add(&h->texts[h->n_texts].text, text, n);
    h->n_texts++;
}

/* Documents are checked as those that come by HTTP are. */
static tare_status keep_document(struct hearing *h, size_t i, tare_error *err)
{
    struct job_document *d = &h->documents.at.items[i];
    const struct buf *text = &h->texts[i].text;
    struct run *run = mem_new(1, sizeof *run);
    struct store_context c = {.project = h->e->project[0] ? h->e->project : NULL,
                              .text = {text->data, text->len}};
    tare_error why = TARE_ERROR_INIT;
    bool added;
    if (!run) return error_nomem(err, "a run");
    tare_status s = run_read(run, d->name, text->data, text->len, &why);
    if (s != TARE_OK) {
        mem_free(run);
        snprintf(d->why, sizeof d->why, "%.190s", why.text);
        return TARE_OK;
    }
    s = store_add_run(h->seat->store, run, &c, &added, err);
    if (s == TARE_OK) snprintf(d->run, sizeof d->run, "%s", run->id);
    run_release(run);
    mem_free(run);
    return s;
}

static tare_status change(struct hearing *h, const char *state, const char *record, tare_error *err)
{
    struct store *st = h->seat->store;
    bool over = strcmp(state, "running") != 0;
    struct store_job job = {.id = h->e->id,
                            .state = state,
                            .record = record,
                            .started_ms = h->e->started_ms,
                            .ended_ms = over ? now_ms() : 0};
    return st->ops->job_change(st, &job, err);
}

static void complain(struct jobs *j, const struct job_entry *e, const tare_error *err)
{
    char text[800];
    snprintf(text, sizeof text, "job %s: %s", e->id, err->text);
    j->options.say(j->options.say_ctx, text);
}

/* Its runs and its end in one transaction; where that fails, at least its end. */
static void keep_end(struct hearing *h, const struct job_said *said)
{
    struct store *st = h->seat->store;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = st->ops->begin(st, &err);
    bool begun = s == TARE_OK;
    for (size_t i = 0; i < h->n_texts && s == TARE_OK; i++) s = keep_document(h, i, &err);
    job_outcome_make(&h->outcome, h->e, said);
    if (s == TARE_OK) s = change(h, h->outcome.state, h->outcome.record.data, &err);
    if (begun) {
        tare_status end = st->ops->end(st, s == TARE_OK, s == TARE_OK ? &err : NULL);
        if (s == TARE_OK) s = end;
    }
    if (s == TARE_OK) return;
    complain(h->seat->jobs, h->e, &err);
    h->outcome.state = "failed";
    snprintf(h->outcome.why, sizeof h->outcome.why, "its results could not be kept");
    change(h, "failed", "{\"why\":\"its results could not be kept\"}", NULL);
}

static void hear_end(void *ctx, const struct job_end *end, const char *out, const char *err)
{
    struct hearing *h = ctx;
    struct job_said said = {end, out, err, &h->documents};
    h->ended = true;
    keep_end(h, &said);
}

/* False: the runner is gone. */
static bool run_one(struct seat *seat, struct job_entry *e)
{
    struct jobs *j = seat->jobs;
    struct hearing h = {.seat = seat, .e = e, .outcome = JOB_OUTCOME_INIT};
    struct job_request request = {.operation = (uint32_t)(e->operation - j->options.operations->at),
                                  .json = e->request.data,
                                  .n = e->request.len,
                                  .files = e->files,
                                  .n_files = e->n_files};
    struct job_answer hear = {&h, hear_document, hear_end};
    tare_error err = TARE_ERROR_INIT;
    e->started_ms = now_ms();
    tare_status s = change(&h, "running", NULL, &err);
    if (s != TARE_OK) complain(j, e, &err);
    pthread_mutex_lock(&j->lock);
    bool dropped = e->cancelled || j->stop;
    tare_status sent = dropped ? TARE_OK : runner_send(seat->runner, &request, &err);
    e->running = !dropped && sent == TARE_OK;
    pthread_mutex_unlock(&j->lock);
    if (e->running) sent = runner_wait(seat->runner, &hear, &err);
    pthread_mutex_lock(&j->lock);
    e->running = false;
    pthread_mutex_unlock(&j->lock);
    if (!h.ended) {
        h.outcome.state = e->cancelled ? "cancelled" : "lost";
        snprintf(h.outcome.why, sizeof h.outcome.why, "%s",
                 e->cancelled ? "it was cancelled" : "the server ended");
        change(&h, h.outcome.state, NULL, NULL);
    }
    struct exchange *x = take_waiting(j, e);
    if (x) answer(x, e, &h.outcome);
    for (size_t i = 0; i < h.n_texts; i++) buf_release(&h.texts[i].text);
    vec_release(&h.documents.at);
    job_outcome_release(&h.outcome);
    return sent == TARE_OK;
}

static struct job_entry *take(struct seat *seat)
{
    struct jobs *j = seat->jobs;
    pthread_mutex_lock(&j->lock);
    while (!j->first && !j->stop) pthread_cond_wait(&j->more, &j->lock);
    struct job_entry *e = j->first;
    if (e) j->first = e->next;
    seat->job = e;
    pthread_mutex_unlock(&j->lock);
    return e;
}

static void *sit(void *ctx)
{
    struct seat *seat = ctx;
    struct jobs *j = seat->jobs;
    struct job_entry *e;
    bool good = true;
    while (good && (e = take(seat))) {
        good = run_one(seat, e);
        pthread_mutex_lock(&j->lock);
        seat->job = NULL;
        pthread_mutex_unlock(&j->lock);
        jobs_release(j, e);
    }
    pthread_mutex_lock(&j->lock);
    j->broken += !good;
    bool tell = !good && !j->stop;
    pthread_mutex_unlock(&j->lock);
    if (tell)
        j->options.say(j->options.say_ctx, "a process that runs operations is gone: start the server again");
    return NULL;
}

/* ---- those who wait ---- */

void jobs_put(struct jobs *j, struct job_entry *e, struct exchange *x, uint64_t wait_s)
{
    pthread_mutex_lock(&j->lock);
    struct job_entry **last = &j->first;
    while (*last) last = &(*last)->next;
    *last = e;
    e->waits = x;
    e->until_ns = clock_raw_ns() + wait_s * UINT64_C(1000000000);
    pthread_mutex_unlock(&j->lock);
    pthread_cond_broadcast(&j->more);
}

/* One whose time is over; NULL: none. *next_ns: when the next one's is. */
static struct job_entry *overdue(struct jobs *j, uint64_t *next_ns)
{
    uint64_t now = clock_raw_ns();
    *next_ns = now + UINT64_C(3600000000000);
    for (struct job_entry *e = j->all; e; e = e->sibling) {
        if (!e->waits) continue;
        if (j->stop || e->until_ns <= now) return e;
        if (e->until_ns < *next_ns) *next_ns = e->until_ns;
    }
    return NULL;
}

static void sleep_until(struct jobs *j, uint64_t next_ns)
{
    struct timespec at;
    uint64_t wait = next_ns - clock_raw_ns();
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(wait / 1000000000);
    at.tv_nsec += (long)(wait % 1000000000);
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    if (wait < UINT64_C(1) << 62) pthread_cond_timedwait(&j->more, &j->lock, &at);
}

/* At the end of the server those who wait hear where to look later. */
static void *tell_time(void *ctx)
{
    struct jobs *j = ctx;
    uint64_t next;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        struct job_entry *e = overdue(j, &next);
        if (e) {
            struct exchange *x = e->waits;
            e->waits = NULL;
            jobs_reply_waiting(x, e->id, e->operation->name, e->running ? "running" : "queued");
            pthread_mutex_unlock(&j->lock);
            steps_finish(x);
            pthread_mutex_lock(&j->lock);
        } else if (j->stop) {
            break;
        } else {
            sleep_until(j, next);
        }
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

static bool unqueue(struct jobs *j, struct job_entry *e)
{
    for (struct job_entry **at = &j->first; *at; at = &(*at)->next) {
        if (*at != e) continue;
        *at = e->next;
        return true;
    }
    return false;
}

/* One that is between the queue and its runner is dropped by its seat. */
bool jobs_cancel(struct jobs *j, const char *id, struct job_entry **waiting)
{
    bool found = false;
    *waiting = NULL;
    pthread_mutex_lock(&j->lock);
    for (struct job_entry *e = j->all; e && !found; e = e->sibling) {
        if (strcmp(e->id, id) != 0) continue;
        found = true;
        if (unqueue(j, e)) *waiting = e;
        for (unsigned i = 0; i < j->n_seats && e->running && !e->cancelled; i++)
            if (j->seats[i].job == e) runner_cancel(j->seats[i].runner);
        e->cancelled = true;
    }
    pthread_mutex_unlock(&j->lock);
    return found;
}

void jobs_drop(struct jobs *j, struct job_entry *e)
{
    struct job_outcome o = JOB_OUTCOME_INIT;
    struct exchange *x = take_waiting(j, e);
    o.state = "cancelled";
    if (x) answer(x, e, &o);
    job_outcome_release(&o);
    jobs_release(j, e);
}

/* ---- opening ---- */

static tare_status start_threads(struct jobs *j, tare_error *err)
{
    sigset_t all, was;
    int rc = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    for (unsigned i = 0; i < j->n_seats && rc == 0; i++) {
        rc = pthread_create(&j->seats[i].thread, NULL, sit, &j->seats[i]);
        j->seats[i].started = rc == 0;
    }
    if (rc == 0) rc = pthread_create(&j->clock, NULL, tell_time, j);
    j->has_clock = rc == 0;
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    errno = rc;
    return rc ? error_errno(err, "no thread for jobs") : TARE_OK;
}

tare_status jobs_open(struct jobs **out, const struct jobs_options *o, tare_error *err)
{
    struct jobs *j = mem_new(1, sizeof *j);
    pthread_condattr_t steady;
    tare_status s = TARE_OK;
    if (!j) return error_nomem(err, "jobs");
    j->options = *o;
    if (gethostname(j->owner, sizeof j->owner - 1) < 0) snprintf(j->owner, sizeof j->owner, "here");
    pthread_mutex_init(&j->lock, NULL);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&j->more, &steady);
    pthread_condattr_destroy(&steady);
    for (unsigned i = 0; i < o->operations->at_once && s == TARE_OK; i++) {
        struct seat *seat = &j->seats[i];
        *seat = (struct seat){.jobs = j, .runner = &o->runners[i]};
        s = store_open(&seat->store, o->store, &(struct store_options){.create = true}, err);
        if (s == TARE_OK) j->n_seats++;
    }
    if (s == TARE_OK) s = j->seats[0].store->ops->jobs_lose(j->seats[0].store, j->owner, now_ms(), err);
    if (s == TARE_OK) s = start_threads(j, err);
    if (s != TARE_OK) {
        jobs_stop(j);
        jobs_close(j);
        return s;
    }
    *out = j;
    return TARE_OK;
}

/* Runners end by the end of their sockets; then the seats hear of it. */
void jobs_stop(struct jobs *j)
{
    if (!j) return;
    pthread_mutex_lock(&j->lock);
    j->stop = true;
    for (unsigned i = 0; i < j->n_seats; i++) shutdown(j->seats[i].runner->sock, SHUT_RDWR);
    pthread_mutex_unlock(&j->lock);
    pthread_cond_broadcast(&j->more);
    for (unsigned i = 0; i < j->n_seats; i++)
        if (j->seats[i].started) pthread_join(j->seats[i].thread, NULL);
    if (j->has_clock) pthread_join(j->clock, NULL);
    j->has_clock = false;
    for (unsigned i = 0; i < j->n_seats; i++) j->seats[i].started = false;
}

void jobs_close(struct jobs *j)
{
    if (!j) return;
    for (struct job_entry *e = j->all, *next; e; e = next) {
        next = e->sibling;
        free_entry(e);
    }
    for (unsigned i = 0; i < j->n_seats; i++) store_close(j->seats[i].store);
    pthread_cond_destroy(&j->more);
    pthread_mutex_destroy(&j->lock);
    mem_free(j);
}
