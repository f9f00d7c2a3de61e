/* SPDX-License-Identifier: MIT
 * api_finetuning.c - the paths by which users' programs ask for profiling and tuning. The work is done by operations of
 * the operator's file, by name: the last part of the path, or what the body calls "operation". */
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "server/jobs/api_jobs.h"

/* ---- running ---- */

static void check_run(struct server *s, struct store *st, struct exchange *x)
{
    json_t *body = job_body(x);
    if (!body) return;
    const char *name = strrchr(x->head.path, '/') + 1;
    job_check(s, st, x, &(struct job_wish){name, body, s->options.operations->wait_s});
    json_decref(body);
}

static void check_profile(struct server *s, struct store *st, struct exchange *x)
{
    char name[65];
    json_t *body = job_body(x);
    if (!body) return;
    const char *given = json_string_value(json_object_get(body, "operation"));
    snprintf(name, sizeof name, "%s", given ? given : "");
    if (!given)
        reply_problem(x, 422, "operation: a name is expected");
    else if (json_object_del(body, "operation") == 0)
        job_check(s, st, x, &(struct job_wish){name, body, s->options.operations->wait_s});
    json_decref(body);
}

#define RUNS(check)                                                                                               \
    {.now = job_allowed, .read = check, .write = job_keep, .written = job_begin, .forget = job_forget,            \
     .query = job_query, .replies = "200,202,502,504"}
const struct steps finetuning_run = RUNS(check_run);
const struct steps finetuning_profile = RUNS(check_profile);

/* ---- the report ---- */

enum { REPORT_JOBS = 1000 };

struct report {
    json_t *operations, *targets, *recommendations;
};

static void count(json_t *o, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(o, key));
    json_object_set_new(o, key, json_integer(n + 1));
}

static bool has(const json_t *list, const json_t *text)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item) if (json_equal(item, text)) return true;
    return false;
}

/* What a program's answer says of targets and recommendations; each advice once. */
static void take_answer(struct report *r, const struct store_job *job, json_t *result)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(result, "targets"), i, item)
    {
        if (!json_is_object(item)) continue;
        json_t *row = json_copy(item);
        json_object_set_new(row, "job", json_string(job->id));
        json_array_append_new(r->targets, row);
    }
    json_array_foreach(json_object_get(result, "recommendations"), i,
                       item) if (!has(r->recommendations, item)) json_array_append(r->recommendations, item);
}

/* Newest first: the first one of an operation is its last. */
static tare_status add_job(void *ctx, const struct store_job *job, tare_error *err)
{
    struct report *r = ctx;
    json_t *record = job->record ? json_loads(job->record, 0, NULL) : NULL;
    json_t *of = json_object_get(r->operations, job->operation);
    (void)err;
    if (!of) {
        of = json_object();
        json_object_set_new(r->operations, job->operation, of);
        json_object_set_new(of, "jobs", json_integer(0));
        json_object_set_new(of, "last",
                            json_pack("{s:s, s:s, s:I, s:O?}", "id", job->id, "state", job->state,
                                      "created_ms", (json_int_t)job->created_ms, "wall_s",
                                      json_object_get(record, "wall_s")));
    }
    count(of, "jobs");
    count(of, job->state);
    take_answer(r, job, json_object_get(record, "result"));
    json_decref(record);
    return TARE_OK;
}

static void answer_report(struct server *sv, struct store *st, struct exchange *x)
{
    struct store_job_filter f = {.project = x->project[0] ? x->project : NULL, .limit = REPORT_JOBS};
    struct report r = {json_object(), json_array(), json_array()};
    tare_error err = TARE_ERROR_INIT;
    if (st->ops->jobs(st, &f, add_job, &r, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
    } else {
        json_t *all = json_pack("{s:O, s:O, s:O}", "targets", r.targets, "recommendations", r.recommendations,
                                "operations", r.operations);
        char *text = all ? json_dumps(all, JSON_COMPACT) : NULL;
        reply_json(x, 200);
        if (text) buf_add_str(&x->reply.body, text);
        if (!text) reply_problem(x, 503, "no memory");
        mem_free_libc(text);
        json_decref(all);
    }
    json_decref(r.operations);
    json_decref(r.targets);
    json_decref(r.recommendations);
}

const struct steps finetuning_report = {.read = answer_report};
