/* SPDX-License-Identifier: MIT
 * api_tokens.c - tokens and the audit by HTTP, for administrators. One who is bound to a project makes, sees and ends
 * tokens of that project only, and sees its entries of the audit only. */
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "server/route.h"

static bool is_ours(const struct exchange *x, const char *project)
{
    return !x->project[0] || (project && strcmp(project, x->project) == 0);
}

/* ---- list ---- */

struct listing {
    struct json j;
    const struct exchange *x;
    int64_t now_ms;
};

static tare_status list_one(void *ctx, const struct store_token *t, tare_error *err)
{
    struct listing *l = ctx;
    (void)err;
    if (is_ours(l->x, t->project)) token_json(&l->j, t, l->now_ms);
    return TARE_OK;
}

static void begin_list(struct listing *l, struct exchange *x, const char *name)
{
    l->x = x;
    l->now_ms = (int64_t)(clock_unix_ns() / 1000000);
    reply_json(x, 200);
    json_init(&l->j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&l->j);
    json_key(&l->j, name);
    json_array_begin(&l->j);
}

static void end_list(struct listing *l)
{
    json_array_end(&l->j);
    json_object_end(&l->j);
    json_finish(&l->j, NULL);
}

static void answer_tokens(struct server *sv, struct store *s, struct exchange *x)
{
    struct listing l;
    tare_error err = TARE_ERROR_INIT;
    begin_list(&l, x, "tokens");
    if (s->ops->tokens(s, list_one, &l, &err) == TARE_OK)
        end_list(&l);
    else
        steps_failed(sv, x, &err);
}

const struct steps tokens_list = {.read = answer_tokens};

/* ---- new ---- */

struct new_token {
    struct token_wish wish;
    json_t *body; /* lends the texts */
    char text[TOKEN_SIZE];
};

static void forget_wish(struct exchange *x)
{
    struct new_token *n = x->work;
    if (!n) return;
    json_decref(n->body);
    OPENSSL_cleanse(n->text, sizeof n->text);
    mem_free(n);
}

/* What is wrong with a member; NULL: nothing. */
static const char *take_member(struct new_token *n, const char *key, const json_t *value, tare_error *err)
{
    const char *text = json_string_value(value);
    if (strcmp(key, "expires_s") == 0) {
        json_int_t s = json_integer_value(value);
        if (!json_is_integer(value) || s < 1 || s > 315360000)
            return "expires_s: seconds from 1 to 315360000";
        n->wish.lives_ms = (int64_t)s * 1000;
        return NULL;
    }
    if (strcmp(key, "scopes") == 0)
        return text && scopes_parse(text, &n->wish.scopes, err) == TARE_OK
                   ? NULL
                   : "scopes: read, ingest, run, admin, separated by commas";
    if (strcmp(key, "project") == 0) {
        n->wish.project = text;
        return text && store_name_ok(text) ? NULL : "project: letters, digits and . _ - / only, at most 64";
    }
    if (strcmp(key, "name") == 0) {
        n->wish.name = text;
        return text && strlen(text) <= 200 ? NULL : "name: a text of at most 200 bytes";
    }
    return "a token has scopes, project, name and expires_s";
}

static const char *read_wish(struct new_token *n, tare_error *err)
{
    const char *key, *wrong = NULL;
    json_t *value;
    if (!json_is_object(n->body)) return "expected an object";
    json_object_foreach(n->body, key, value)
    {
        if (!wrong) wrong = take_member(n, key, value, err);
    }
    if (!wrong && !n->wish.scopes) wrong = "scopes: missing";
    return wrong;
}

static void check_wish(struct server *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct new_token *n = mem_new(1, sizeof *n);
    (void)s;
    if (!(x->work = n)) {
        reply_problem(x, 503, "no memory");
        return;
    }
    tare_status status = exchange_json(x, &n->body, &err);
    const char *wrong = status == TARE_OK ? read_wish(n, &err) : NULL;
    if (status != TARE_OK)
        reply_refused(x, 422, &err);
    else if (wrong)
        reply_problem(x, 422, "%s", wrong);
    else if (n->wish.project && !is_ours(x, n->wish.project))
        reply_problem(x, 403, "this token makes tokens of its own project only");
    else if (x->project[0])
        n->wish.project = x->project;
    if (x->reply.status) {
        forget_wish(x);
        x->work = NULL;
    }
}

static tare_status make_token(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    struct new_token *n = x->work;
    (void)sv;
    tare_status status = token_new(s, &n->wish, n->text, err);
    if (status != TARE_OK) return status;
    token_id(n->text, x->param);
    reply_json(x, 201);
    return TARE_OK;
}

static void tell_token(struct server *sv, struct store *s, struct exchange *x)
{
    struct new_token *n = x->work;
    struct json j;
    (void)sv;
    (void)s;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "id", x->param);
    json_kv_string(&j, "token", n->text);
    json_object_end(&j);
    json_finish(&j, NULL);
    x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/tokens/%s\r\n", x->param);
}

const struct steps tokens_post = {.now = check_wish,
                                  .write = make_token,
                                  .written = tell_token,
                                  .forget = forget_wish,
                                  .example =
                                      "{\"scopes\": \"read,ingest\", \"name\": \"CI\", \"expires_s\": 86400}",
                                  .replies = "201"};

/* ---- revoke ---- */

struct finding {
    const struct exchange *x;
    bool found;
};

static tare_status find_one(void *ctx, const struct store_token *t, tare_error *err)
{
    struct finding *f = ctx;
    (void)err;
    if (strcmp(t->id, f->x->param) == 0 && is_ours(f->x, t->project) && !t->revoked_ms) f->found = true;
    return TARE_OK;
}

/* Looked up and ended in one transaction. A token of another project is as absent as one that never was. */
static tare_status end_token(struct server *sv, struct store *s, struct exchange *x, tare_error *err)
{
    struct finding f = {x, false};
    (void)sv;
    tare_status status = s->ops->tokens(s, find_one, &f, err);
    if (status == TARE_OK && f.found)
        status = s->ops->token_revoke(s, x->param, (int64_t)(clock_unix_ns() / 1000000), err);
    if (status != TARE_OK) return status;
    if (f.found)
        x->reply.status = 204;
    else
        reply_problem(x, 404, "there is no such token that is not revoked already");
    return TARE_OK;
}

const struct steps tokens_delete = {.write = end_token, .replies = "204"};

/* ---- the audit ---- */

static tare_status list_entry(void *ctx, const struct store_audit *e, tare_error *err)
{
    struct listing *l = ctx;
    (void)err;
    audit_json(&l->j, e);
    return TARE_OK;
}

static void answer_audit(struct server *sv, struct store *s, struct exchange *x)
{
    enum { AUDIT_DEFAULT = 100, AUDIT_MAX = 1000 };
    struct listing l;
    tare_error err = TARE_ERROR_INIT;
    struct store_audit_filter f = {
        .project = x->project[0] ? x->project : NULL, .newest_first = true, .limit = AUDIT_DEFAULT};
    uint64_t before = 0;
    if (exchange_query_number(x, "limit", (struct number_range){1, AUDIT_MAX}, &f.limit, &err) != TARE_OK ||
        exchange_query_number(x, "before", (struct number_range){1, INT64_MAX}, &before, &err) != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    f.before = (int64_t)before;
    begin_list(&l, x, "entries");
    if (s->ops->audits(s, &f, list_entry, &l, &err) == TARE_OK)
        end_list(&l);
    else
        steps_failed(sv, x, &err);
}

static const struct query_word audit_query[] = {
    {"limit", "at most so many: 1 to 1000, 100 where nothing is said"},
    {"before", "only entries whose seq is smaller: the next page"},
    {NULL, NULL}};

const struct steps audit_list = {.read = answer_audit, .query = audit_query, .example = "?limit=2"};
