/* SPDX-License-Identifier: MIT
 * api_jobs.c - running operations by HTTP: a job is in the store before it runs, and its id is answered (202),
 * or, where the client wants to wait, what came of it. Nothing here builds a command line: see operations.h. */
#include "server/jobs/api_jobs.h"

#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"

enum { LIST_DEFAULT = 100, LIST_MAX = 1000, WAIT_MAX = 600 };

struct job_work {
    struct server *server;
    struct job_entry *entry; /* NULL: it is on its way */
    uint64_t wait_s;
};

/* ---- requests ---- */

const struct query_word job_query[] = {
    {"wait", "seconds to wait for its end before 202 is answered: 0 to 600"}, {NULL, NULL}};

void job_allowed(struct server *s, struct exchange *x)
{
    if (!s->jobs)
        reply_problem(x, 403,
                      "nothing is run here: the operator names what may run in a file, and starts tare serve "
                      "with --operations FILE");
}

json_t *job_body(struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    json_t *root;
    tare_status s = exchange_json(x, &root, &err);
    if (json_is_object(root)) return root;
    if (s == TARE_OK)
        reply_problem(x, 422, "the body is no object");
    else
        reply_refused(x, 422, &err);
    json_decref(root);
    return NULL;
}

/* False: answered. */
static bool wait_of(struct exchange *x, uint64_t *out)
{
    const char *prefer = http_header(&x->head, "prefer");
    tare_error err = TARE_ERROR_INIT;
    if (prefer && strstr(prefer, "respond-async")) *out = 0;
    tare_status s = exchange_query_number(x, "wait", (struct number_range){0, WAIT_MAX}, out, &err);
    if (s != TARE_OK) reply_refused(x, 400, &err);
    return s == TARE_OK;
}

/* The documents of the runs it names; those of other projects are as absent as what never was. */
static tare_status take_runs(struct store *st, struct exchange *x, struct job_entry *e, const struct call *c)
{
    tare_error err = TARE_ERROR_INIT;
    e->files = mem_new(c->runs.n + 1, sizeof *e->files);
    if (!e->files) return TARE_NOMEM;
    for (size_t i = 0; i < c->runs.n; i++) {
        bool ours = true;
        struct job_file *f = &e->files[e->n_files++];
        f->text = (struct buf)BUF_INIT;
        snprintf(f->name, sizeof f->name, "%s.json", c->runs.at[i]);
        tare_status s = TARE_OK;
        if (x->project[0]) s = st->ops->in_project(st, c->runs.at[i], x->project, &ours, &err);
        if (s == TARE_OK && ours) s = store_document(st, c->runs.at[i], &f->text, &err);
        if (s != TARE_OK || !ours) return s == TARE_OK ? TARE_INVALID : s;
    }
    return TARE_OK;
}

static tare_status fill_entry(struct store *st, struct exchange *x, struct job_entry *e, const struct call *c)
{
    tare_status s = ulid_new(e->id, NULL);
    buf_add(&e->request, c->input.data, c->input.len);
    e->created_ms = (int64_t)(clock_unix_ns() / 1000000);
    if (s == TARE_OK) s = buf_status(&e->request, NULL);
    return s == TARE_OK ? take_runs(st, x, e, c) : s;
}

static void refuse_place(struct exchange *x, const char *why)
{
    reply_problem(x, 429, "%s", why);
    x->reply.extra = "Retry-After: 5\r\n";
}

/* The checked call becomes a job that waits for the writer. */
static void reserve(struct server *s, struct store *st, struct exchange *x, const struct call *c)
{
    struct job_work *w = x->work;
    const char *why;
    w->entry = jobs_reserve(s->jobs, x, &why);
    if (!w->entry) {
        refuse_place(x, why);
        return;
    }
    tare_status status = fill_entry(st, x, w->entry, c);
    if (status == TARE_INVALID)
        reply_problem(x, 422, "there is no such run");
    else if (status != TARE_OK)
        reply_problem(x, 503, "the job could not be made");
}

void job_check(struct server *s, struct store *st, struct exchange *x, const struct job_wish *wish)
{
    const struct operations *ops = s->options.operations;
    const struct operation *op = operations_find(ops, wish->operation);
    struct job_work *w = mem_new(1, sizeof *w);
    struct call c = CALL_INIT;
    tare_error err = TARE_ERROR_INIT;
    char *text = json_dumps(wish->parameters, JSON_COMPACT);
    x->work = w;
    if (!w || !text) {
        reply_problem(x, 503, "no memory");
    } else if (!op) {
        reply_problem(x, 403, "the operator's file names no operation '%.64s'", wish->operation);
    } else {
        *w = (struct job_work){.server = s, .wait_s = wish->wait_s};
        tare_status status = call_make(&c, op, text, strlen(text), &err);
        if (status != TARE_OK)
            reply_problem(x, status == TARE_INVALID ? 422 : 503, "%s", err.text);
        else if (wait_of(x, &w->wait_s))
            reserve(s, st, x, &c);
        if (w->entry) w->entry->operation = op;
    }
    mem_free_libc(text);
    call_release(&c);
}

tare_status job_keep(struct server *s, struct store *st, struct exchange *x, tare_error *err)
{
    const struct job_work *w = x->work;
    const struct job_entry *e = w->entry;
    struct store_job job = {.id = e->id,
                            .project = e->project[0] ? e->project : NULL,
                            .token = e->who,
                            .owner = jobs_owner(s->jobs),
                            .operation = e->operation->name,
                            .state = "queued",
                            .request = e->request.data,
                            .created_ms = e->created_ms};
    return st->ops->job_add(st, &job, err);
}

/* Once it is put, it may have ended: nothing of it is looked at after that. */
void job_begin(struct server *s, struct store *st, struct exchange *x)
{
    struct job_work *w = x->work;
    struct job_entry *e = w->entry;
    bool waits = w->wait_s > 0;
    (void)st;
    w->entry = NULL;
    if (!waits) jobs_reply_waiting(x, e->id, e->operation->name, "queued");
    jobs_put(s->jobs, e, waits ? x : NULL, w->wait_s);
}

void job_forget(struct exchange *x)
{
    struct job_work *w = x->work;
    if (w && w->entry) jobs_release(w->server->jobs, w->entry);
    mem_free(w);
}

static void check_post(struct server *s, struct store *st, struct exchange *x)
{
    json_t *body = job_body(x), *parameters = json_object_get(body, "parameters");
    const char *operation = json_string_value(json_object_get(body, "operation")), *key;
    json_t *value, *none = json_object();
    if (!body || !none) {
        json_decref(none);
        return;
    }
    json_object_foreach (body, key, value)
        if (strcmp(key, "operation") != 0 && strcmp(key, "parameters") != 0)
            reply_problem(x, 422, "%.60s: a job has operation and parameters", key);
    if (!x->reply.status && !operation) reply_problem(x, 422, "operation: a name is expected");
    if (!x->reply.status && parameters && !json_is_object(parameters))
        reply_problem(x, 422, "parameters: an object is expected");
    if (!x->reply.status) job_check(s, st, x, &(struct job_wish){operation, parameters ? parameters : none, 0});
    json_decref(none);
    json_decref(body);
}

const struct steps jobs_post = {.now = job_allowed,
                                .read = check_post,
                                .write = job_keep,
                                .written = job_begin,
                                .forget = job_forget,
                                .query = job_query,
                                .replies = "202,200,502,504"};

/* ---- lists and one ---- */

static void put_time(struct json *j, const char *key, int64_t ms)
{
    if (ms)
        json_kv_int(j, key, ms);
    else
        json_kv_null(j, key);
}

static void put_job(struct json *j, const struct store_job *job)
{
    json_object_begin(j);
    json_kv_string(j, "id", job->id);
    json_kv_string(j, "operation", job->operation);
    json_kv_string(j, "state", job->state);
    json_kv_string(j, "project", job->project);
    json_kv_string(j, "token", job->token);
    put_time(j, "created_ms", job->created_ms);
    put_time(j, "started_ms", job->started_ms);
    put_time(j, "ended_ms", job->ended_ms);
    json_object_end(j);
}

static tare_status list_one(void *ctx, const struct store_job *job, tare_error *err)
{
    (void)err;
    put_job(ctx, job);
    return TARE_OK;
}

static void answer_list(struct server *sv, struct store *st, struct exchange *x)
{
    struct store_job_filter f = {.project = x->project[0] ? x->project : NULL, .limit = LIST_DEFAULT};
    tare_error err = TARE_ERROR_INIT;
    struct json j;
    if (exchange_query_number(x, "limit", (struct number_range){1, LIST_MAX}, &f.limit, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "jobs");
    json_array_begin(&j);
    if (st->ops->jobs(st, &f, list_one, &j, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

static const struct query_word list_query[] = {
    {"limit", "at most so many: 1 to 1000, 100 where nothing is said"}, {NULL, NULL}};

const struct steps jobs_list = {.read = answer_list, .query = list_query, .example = "?limit=2"};

/* Request and record are JSON already: they are put into the object as they are. */
static tare_status tell_one(void *ctx, const struct store_job *job, tare_error *err)
{
    struct exchange *x = ctx;
    struct json j;
    (void)err;
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    put_job(&j, job);
    json_finish(&j, NULL);
    if (x->reply.body.len) x->reply.body.len--; /* the } */
    buf_printf(&x->reply.body, ",\"request\":%s,\"record\":%s}", job->request, job->record ? job->record : "null");
    return TARE_OK;
}

static tare_status see(void *ctx, const struct store_job *job, tare_error *err)
{
    (void)job;
    (void)err;
    *(bool *)ctx = true;
    return TARE_OK;
}

static void answer_one(struct server *sv, struct store *st, struct exchange *x)
{
    struct store_job_filter f = {.id = x->param, .project = x->project[0] ? x->project : NULL};
    tare_error err = TARE_ERROR_INIT;
    if (st->ops->jobs(st, &f, tell_one, x, &err) != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!x->reply.status)
        reply_problem(x, 404, "there is no such job");
}

const struct steps jobs_get = {.read = answer_one};

/* ---- cancelling ---- */

static void check_cancel(struct server *s, struct store *st, struct exchange *x)
{
    struct store_job_filter f = {.id = x->param, .project = x->project[0] ? x->project : NULL};
    tare_error err = TARE_ERROR_INIT;
    bool ours = false;
    struct job_work *w = mem_new(1, sizeof *w);
    x->work = w;
    if (!w)
        reply_problem(x, 503, "no memory");
    else if (st->ops->jobs(st, &f, see, &ours, &err) != TARE_OK)
        steps_failed(s, x, &err);
    else if (!ours)
        reply_problem(x, 404, "there is no such job");
    else if (!s->jobs || !jobs_cancel(s->jobs, x->param, &w->entry))
        reply_problem(x, 409, "this job has ended already");
    if (w) w->server = s;
}

/* One that runs tells its end itself. */
static tare_status keep_cancel(struct server *s, struct store *st, struct exchange *x, tare_error *err)
{
    const struct job_work *w = x->work;
    (void)s;
    if (!w->entry) return TARE_OK;
    struct store_job job = {.id = x->param, .state = "cancelled", .ended_ms = (int64_t)(clock_unix_ns() / 1000000)};
    return st->ops->job_change(st, &job, err);
}

static void answer_cancel(struct server *s, struct store *st, struct exchange *x)
{
    (void)s;
    (void)st;
    x->reply.status = 204;
}

static void forget_cancel(struct exchange *x)
{
    struct job_work *w = x->work;
    if (w && w->entry) jobs_drop(w->server->jobs, w->entry);
    mem_free(w);
}

const struct steps jobs_delete = {.read = check_cancel,
                                  .write = keep_cancel,
                                  .written = answer_cancel,
                                  .forget = forget_cancel,
                                  .replies = "204,409"};
