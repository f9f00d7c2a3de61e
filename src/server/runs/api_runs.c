/* SPDX-License-Identifier: MIT
 * api_runs.c - runs by HTTP: lists, documents, and keeping new ones. A new run is answered 201 when the transaction
 * that holds it is committed, and not before; all that wait share one. Its id is the client's, so that sending it
 * again is harmless: the same document is 200, another under the same id 409. */
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/mem.h"
#include "run/run.h"
#include "server/route.h"

enum { LIST_DEFAULT = 100, LIST_MAX = 1000, SAMPLES_SHOWN = 50000, SMALL_BODY = 8192 };

/* ---- lists ---- */

static tare_status list_one(void *ctx, const struct store_run *r, tare_error *err)
{
    (void)err;
    store_run_json(ctx, r);
    return TARE_OK;
}

static tare_status read_filter(struct exchange *x, struct store_filter *f, tare_error *err)
{
    const struct number_range limits = {1, LIST_MAX}, times = {0, INT64_MAX};
    uint64_t since = 0;
    *f = (struct store_filter){.limit = LIST_DEFAULT, .project = x->project[0] ? x->project : NULL};
    tare_status s = exchange_query(x, "subject", &f->subject, err);
    if (s == TARE_OK) s = exchange_query(x, "host", &f->host, err);
    if (s == TARE_OK) s = exchange_query(x, "tag", &f->tag, err);
    if (s == TARE_OK) s = exchange_query(x, "commit", &f->commit, err);
    if (s == TARE_OK) s = exchange_query(x, "id", &f->id_prefix, err);
    if (s == TARE_OK) s = exchange_query(x, "before", &f->before, err);
    if (s == TARE_OK) s = exchange_query_number(x, "since", times, &since, err);
    f->since_ms = (int64_t)since;
    return s == TARE_OK ? exchange_query_number(x, "limit", limits, &f->limit, err) : s;
}

static tare_status count_one(void *ctx, const struct store_run *r, tare_error *err)
{
    (void)r, (void)err;
    ++*(unsigned *)ctx;
    return TARE_OK;
}

/* A list that goes on from a run that is gone has no place to go on from: it would end too early, unseen. */
static tare_status check_before(struct store *s, const struct store_filter *f, tare_error *err)
{
    unsigned n = 0;
    struct store_filter one = {.project = f->project, .id_prefix = f->before, .limit = 1};
    if (!f->before) return TARE_OK;
    tare_status status = ulid_is_valid(f->before) ? s->ops->list(s, &one, count_one, &n, err) : TARE_OK;
    if (status == TARE_OK && n == 0)
        status = error_set(err, TARE_INVALID, "there is no run that 'before' names");
    return status;
}

static void answer_list(struct server *sv, struct store *s, struct exchange *x)
{
    struct store_filter f;
    tare_error err = TARE_ERROR_INIT;
    struct json j;
    tare_status status = read_filter(x, &f, &err);
    if (status == TARE_OK) status = check_before(s, &f, &err);
    if (status == TARE_INVALID) {
        reply_refused(x, 400, &err);
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "runs");
    json_array_begin(&j);
    if (status == TARE_OK) status = s->ops->list(s, &f, list_one, &j, &err);
    if (status != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
}

tare_status run_is_there(struct store *s, const struct exchange *x, bool *yes, tare_error *err)
{
    unsigned n = 0;
    struct store_filter one = {
        .project = x->project[0] ? x->project : NULL, .id_prefix = x->param, .limit = 1};
    tare_status status = s->ops->list(s, &one, count_one, &n, err);
    *yes = n > 0;
    return status;
}

/* ---- one document ---- */

/* A run of another project is as absent as one that never was. False: answered. */
static bool load_document(struct server *sv, struct store *s, struct exchange *x, struct buf *out)
{
    tare_error err = TARE_ERROR_INIT;
    bool ours = true;
    tare_status status = TARE_OK;
    if (x->project[0]) status = s->ops->in_project(s, x->param, x->project, &ours, &err);
    if (status == TARE_OK && ours) status = store_document(s, x->param, out, &err);
    if (status == TARE_INVALID || !ours)
        reply_problem(x, 404, "there is no such run");
    else if (status != TARE_OK)
        steps_failed(sv, x, &err);
    return status == TARE_OK && ours;
}

static void answer_document(struct server *sv, struct store *s, struct exchange *x)
{
    if (load_document(sv, s, x, &x->reply.body)) reply_json(x, 200);
}

/* As pages show it: single samples are decoded, and thinned out where there are many. */
static void answer_view(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct buf text = BUF_INIT;
    struct run run;
    if (load_document(sv, s, x, &text)) {
        tare_status status = run_read(&run, x->param, text.data, text.len, &err);
        if (status == TARE_OK) {
            status = run_write_page(&run, SAMPLES_SHOWN, &x->reply.body, &err);
            run_release(&run);
        }
        if (status == TARE_OK)
            reply_json(x, 200);
        else
            steps_failed(sv, x, &err);
    }
    buf_release(&text);
}

static const struct query_word list_query[] = {
    {"subject", "runs of this subject"},
    {"host", "of this host, by name or fingerprint"},
    {"tag", "that carry this tag"},
    {"commit", "whose commit begins so"},
    {"id", "whose id begins so"},
    {"since", "created at this time (unix ms) or later"},
    {"before", "an id: the list goes on after that run"},
    {"limit", "at most so many: 1 to 1000, 100 where nothing is said"},
    {NULL, NULL}};

const struct steps runs_list = {.read = answer_list, .query = list_query, .example = "?limit=2"};

void run_id_check(struct server *s, struct exchange *x)
{
    (void)s;
    if (!ulid_is_valid(x->param)) reply_problem(x, 404, "there is no such run");
    for (char *p = x->param; *p; p++)
        if (*p >= 'a' && *p <= 'z') *p = (char)(*p - 'a' + 'A');
}

const struct steps runs_get = {.now = run_id_check, .read = answer_document};
const struct steps runs_view = {.now = run_id_check, .read = answer_view};

/* ---- keeping ---- */

static void forget_run(struct exchange *x)
{
    if (x->work) run_release(x->work);
    mem_free(x->work);
}

/* The document is read and checked before it waits for the writer: what is wrong with it costs no transaction. */
static void check_document(struct server *sv, struct store *s, struct exchange *x)
{
    (void)sv;
    (void)s;
    tare_error err = TARE_ERROR_INIT;
    struct run *run = mem_new(1, sizeof *run);
    tare_status status =
        run ? run_read(run, "the document", x->body.data, x->body.len, &err) : error_nomem(&err, "a run");
    if (status == TARE_OK) {
        x->work = run;
        return;
    }
    mem_free(run);
    reply_refused(x, 422, &err);
}

/* A small one takes less time than waking a reader. */
static void check_small(struct server *sv, struct exchange *x)
{
    if (x->body.len <= SMALL_BODY) check_document(sv, NULL, x);
}

static tare_status keep_run(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    (void)sv;
    struct store_context c = {.project = x->project[0] ? x->project : NULL,
                              .text = {x->body.data, x->body.len}};
    bool added = false;
    tare_status status = store_add_run(s, x->work, &c, &added, err);
    if (status == TARE_OK) reply_json(x, added ? 201 : 200);
    return status;
}

/* Kept already: the same document, or another one under the same id? */
static void compare_kept(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct buf kept = BUF_INIT;
    bool ours = true;
    const struct run *run = x->work;
    tare_status status = TARE_OK;
    if (x->project[0]) status = s->ops->in_project(s, run->id, x->project, &ours, &err);
    if (status == TARE_OK && ours) status = store_document(s, run->id, &kept, &err);
    if (status != TARE_OK)
        steps_failed(sv, x, &err);
    else if (!ours || kept.len != x->body.len || memcmp(kept.data, x->body.data, kept.len) != 0)
        reply_problem(x, 409, "another document has this id");
    buf_release(&kept);
}

static void answer_kept(struct server *sv, struct store *s, struct exchange *x)
{
    const struct run *run = x->work;
    if (x->reply.status == 200) compare_kept(sv, s, x);
    if (x->reply.status > 201) return;
    struct json j;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "id", run->id);
    json_object_end(&j);
    json_finish(&j, NULL);
    if (x->reply.status == 201)
        x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/runs/%s\r\n", run->id);
}

const struct steps runs_post = {.now = check_small,
                                .read = check_document,
                                .write = keep_run,
                                .written = answer_kept,
                                .forget = forget_run,
                                .replies = "201,200,409"};
