/* SPDX-License-Identifier: MIT
 * api_baselines.c - which runs later ones are judged against, by HTTP: a name pins one run of a subject in each
 * project. The name `baseline` is the one that trends, regressions and alerts go by. Who is bound to a project sees
 * and changes that project's only; each change is in the audit. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/mem.h"
#include "history/trend_answer.h"
#include "server/route.h"

enum { LIST_MOST = 1000 };

/* ---- list ---- */

struct listing {
    struct json j;
    const char *name;
};

static tare_status list_one(void *ctx, const struct store_run *r, tare_error *err)
{
    struct listing *l = ctx;
    (void)err;
    json_object_begin(&l->j);
    json_kv_string(&l->j, "name", l->name);
    json_kv_string(&l->j, "subject", r->subject);
    json_kv_string(&l->j, "run", r->id);
    json_kv_string(&l->j, "created", r->created);
    json_kv_string(&l->j, "hostname", r->hostname);
    json_kv_string(&l->j, "commit", r->commit);
    json_kv_string(&l->j, "branch", r->branch);
    json_object_end(&l->j);
    return TARE_OK;
}

static tare_status read_name(struct exchange *x, const char **name, tare_error *err)
{
    *name = NULL;
    tare_status s = exchange_query(x, "name", name, err);
    if (s == TARE_OK && !*name) *name = TREND_ACCEPTED;
    if (s == TARE_OK && !store_name_ok(*name))
        s = error_set(err, TARE_INVALID, "name: letters, digits and . _ - / only, at most %d",
                      STORE_NAME_MAX);
    return s;
}

static void answer_baselines(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct listing l;
    char tag[STORE_NAME_MAX + 16];
    struct store_filter f = {.tag = tag, .limit = LIST_MOST, .project = x->project[0] ? x->project : NULL};
    if (read_name(x, &l.name, &err) != TARE_OK || exchange_query(x, "subject", &f.subject, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    snprintf(tag, sizeof tag, "baseline:%s", l.name);
    reply_json(x, 200);
    json_init(&l.j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&l.j);
    json_key(&l.j, "baselines");
    json_array_begin(&l.j);
    if (s->ops->list(s, &f, list_one, &l, &err) != TARE_OK) {
        steps_failed(sv, x, &err);
        return;
    }
    json_array_end(&l.j);
    json_object_end(&l.j);
    json_finish(&l.j, NULL);
}

static const struct query_word list_query[] = {
    {"name", "of this name; `baseline` where nothing is said, which trends, regressions and alerts go by"},
    {"subject", "of this subject"},
    {NULL, NULL}};

const struct steps baselines_list = {.read = answer_baselines, .query = list_query, .example = "?name=main"};

/* ---- accepting one ---- */

struct wish {
    char run[ULID_SIZE];
    char name[STORE_NAME_MAX + 1];
};

static const char *take_member(struct wish *w, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    if (strcmp(key, "run") == 0) {
        if (!text || !ulid_is_valid(text)) return "run: the id of a run is needed";
        snprintf(w->run, sizeof w->run, "%s", text);
        return NULL;
    }
    if (strcmp(key, "name") == 0) {
        if (!text || !store_name_ok(text)) return "name: letters, digits and . _ - / only, at most 64";
        snprintf(w->name, sizeof w->name, "%s", text);
        return NULL;
    }
    return "a baseline has run and name";
}

static const char *read_wish(struct wish *w, json_t *body)
{
    const char *key, *wrong = NULL;
    json_t *value;
    snprintf(w->name, sizeof w->name, "%s", TREND_ACCEPTED);
    if (!json_is_object(body)) return "expected an object";
    json_object_foreach(body, key, value)
    {
        if (!wrong) wrong = take_member(w, key, value);
    }
    return !wrong && !w->run[0] ? "run: missing" : wrong;
}

static void forget_wish(struct exchange *x)
{
    mem_free(x->work);
}

static void check_wish(struct server *sv, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    json_t *body = NULL;
    struct wish *w = mem_new(1, sizeof *w);
    (void)sv;
    tare_status status = w ? exchange_json(x, &body, &err) : error_nomem(&err, "a baseline");
    const char *wrong = status == TARE_OK ? read_wish(w, body) : NULL;
    json_decref(body);
    if (status != TARE_OK)
        reply_refused(x, 422, &err);
    else if (wrong)
        reply_problem(x, 422, "%s", wrong);
    if (!x->reply.status)
        x->work = w;
    else
        mem_free(w);
}

/* Is the run there, for who asks? Looked up and pinned in one transaction. */
static tare_status pin(struct store *s, struct exchange *x, const struct wish *w, bool on, tare_error *err)
{
    bool there = false;
    tare_error none = TARE_ERROR_INIT;
    snprintf(x->param, sizeof x->param, "%s", w->run);
    tare_status status = run_is_there(s, x, &there, err);
    if (status != TARE_OK) return status;
    status = there ? s->ops->pin(s, w->run, w->name, on, &none) : TARE_INVALID;
    if (status == TARE_INVALID)
        reply_problem(x, 404, there ? "the run is no such baseline" : "there is no such run");
    else if (status != TARE_OK)
        return error_set(err, status, "%s", none.text);
    else if (on)
        reply_json(x, 201);
    else
        x->reply.status = 204;
    return TARE_OK;
}

static tare_status keep_wish(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    (void)sv;
    return pin(s, x, x->work, true, err);
}

static void tell_wish(struct server *sv, struct store *s, struct exchange *x)
{
    const struct wish *w = x->work;
    struct json j;
    (void)sv;
    (void)s;
    if (x->reply.status != 201) return;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "run", w->run);
    json_kv_string(&j, "name", w->name);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps baselines_post = {
    .now = check_wish, .write = keep_wish, .written = tell_wish, .forget = forget_wish, .replies = "201"};

/* ---- taking it back ---- */

static tare_status end_baseline(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    const char *name = NULL;
    tare_error wrong = TARE_ERROR_INIT;
    struct wish w = {.run = ""};
    (void)sv;
    if (read_name(x, &name, &wrong) != TARE_OK) {
        reply_refused(x, 400, &wrong);
        return TARE_OK;
    }
    memcpy(w.run, x->param, ULID_LEN); /* it is an id: run_id_check() */
    snprintf(w.name, sizeof w.name, "%s", name);
    return pin(s, x, &w, false, err);
}

static const struct query_word end_query[] = {{"name", "this name of the run; `baseline` where nothing is said"},
                                              {NULL, NULL}};

const struct steps baselines_delete = {
    .now = run_id_check, .write = end_baseline, .query = end_query, .replies = "204"};
