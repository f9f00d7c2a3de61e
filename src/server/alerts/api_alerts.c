/* SPDX-License-Identifier: MIT
 * api_alerts.c - alerts by HTTP: which rules there are and how things stand to each; silence for a time; and a message
 * on trial. One who is bound to a project sees and silences what is of that project only. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/mem.h"
#include "server/route.h"

enum { SILENCE_MOST_S = 31536000, ABOUT_MAX = 400, WHY_MAX = 200 };

static int64_t now_ms(void)
{
    return (int64_t)(clock_unix_ns() / 1000000);
}

/* ---- how things stand ---- */

static void answer_alerts(struct server *s, struct store *st, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct silences silent = SILENCES_INIT;
    struct json j;
    if (silences_read(&silent, st, &err) != TARE_OK) {
        steps_failed(s, x, &err);
        silences_release(&silent);
        return;
    }
    reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "rules");
    json_array_begin(&j);
    for (size_t i = 0; s->alarms && i < s->options.operations->alert_rules.n; i++)
        json_put_string(&j, s->options.operations->alert_rules.at[i]);
    json_array_end(&j);
    json_key(&j, "alerts");
    json_array_begin(&j);
    if (s->alarms) alarms_json(s->alarms, x->project, &silent, &j);
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
    silences_release(&silent);
}

const struct steps alerts_list = {.read = answer_alerts};

static void answer_silences(struct server *s, struct store *st, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct silences silent = SILENCES_INIT;
    struct json j;
    tare_status status = silences_read(&silent, st, &err);
    if (status == TARE_OK) reply_json(x, 200);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "silences");
    json_array_begin(&j);
    for (size_t i = 0; i < silent.at.n; i++) {
        const struct store_silence *q = &silent.at.items[i];
        if (x->project[0] && strcmp(x->project, q->project) != 0) continue;
        json_object_begin(&j);
        json_kv_string(&j, "id", q->id);
        json_kv_string(&j, "project", q->project[0] ? q->project : NULL);
        json_kv_string(&j, "rule", q->rule);
        json_kv_string(&j, "about", q->about);
        json_kv_string(&j, "why", q->why);
        json_kv_string(&j, "who", q->who);
        reply_time(&j, "created", q->created_ms);
        reply_time(&j, "until", q->until_ms);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_finish(&j, NULL);
    if (status != TARE_OK) steps_failed(s, x, &err);
    silences_release(&silent);
}

const struct steps silences_list = {.read = answer_silences};

/* ---- what is asked for ---- */

struct wish {
    json_t *body; /* lends the texts */
    const char *rule, *about, *why, *project;
    int64_t for_ms;
};

static void forget_wish(struct exchange *x)
{
    struct wish *w = x->work;
    if (!w) return;
    json_decref(w->body);
    mem_free(w);
}

/* What is wrong with a member; NULL: nothing. */
static const char *take_member(struct wish *w, const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    if (strcmp(key, "for_s") == 0) {
        json_int_t s = json_integer_value(value);
        if (!json_is_integer(value) || s < 1 || s > SILENCE_MOST_S)
            return "for_s: seconds from 1 to 31536000";
        w->for_ms = (int64_t)s * 1000;
        return NULL;
    }
    if (strcmp(key, "rule") == 0)
        return (w->rule = text) ? NULL : "rule: a rule of the server, as it is written";
    if (strcmp(key, "about") == 0) {
        w->about = text;
        return text && strlen(text) <= ABOUT_MAX ? NULL : "about: a text of at most 400 bytes";
    }
    if (strcmp(key, "why") == 0) {
        w->why = text;
        return text && strlen(text) <= WHY_MAX ? NULL : "why: a text of at most 200 bytes";
    }
    if (strcmp(key, "project") == 0) {
        w->project = text;
        return text && store_name_ok(text) ? NULL : "project: letters, digits and . _ - / only, at most 64";
    }
    return "a silence has for_s, rule, about, project and why; a test has rule";
}

static const char *read_wish(struct server *s, struct wish *w)
{
    const char *key, *wrong = NULL;
    json_t *value;
    if (!json_is_object(w->body)) return "expected an object";
    json_object_foreach(w->body, key, value)
    {
        if (!wrong) wrong = take_member(w, key, value);
    }
    if (!wrong && w->rule && !(s->alarms && alarms_has(s->alarms, w->rule)))
        wrong = "rule: this server has no such rule (GET /api/v1/alerts lists them)";
    return wrong;
}

/* What was wished for in x->work; NULL: it is answered already. */
static struct wish *begin_wish(struct server *s, struct exchange *x)
{
    struct wish *w = mem_new(1, sizeof *w);
    if (!(x->work = w)) {
        reply_problem(x, 503, "no memory");
        return NULL;
    }
    tare_error err = TARE_ERROR_INIT;
    if (exchange_json(x, &w->body, &err) != TARE_OK) {
        reply_refused(x, 422, &err);
        return NULL;
    }
    const char *wrong = read_wish(s, w);
    if (wrong) reply_problem(x, 422, "%s", wrong);
    return wrong ? NULL : w;
}

static void end_wish(struct exchange *x)
{
    if (!x->reply.status) return;
    forget_wish(x);
    x->work = NULL;
}

/* ---- silence ---- */

static void check_silence(struct server *s, struct exchange *x)
{
    struct wish *w = begin_wish(s, x);
    if (w && !w->for_ms)
        reply_problem(x, 422, "for_s: missing: every silence ends");
    else if (w && w->project && x->project[0] && strcmp(w->project, x->project) != 0)
        reply_problem(x, 403, "this token asks for silence in its own project only");
    else if (w && x->project[0])
        w->project = x->project;
    end_wish(x);
}

static tare_status add_silence(struct server *s, struct store *st, struct exchange *x, tare_error *err)
{
    const struct wish *w = x->work;
    char id[ULID_SIZE];
    (void)s;
    tare_status status = ulid_new(id, err);
    if (status != TARE_OK) return status;
    int64_t now = now_ms();
    struct store_silence silence = {.id = id,
                                    .project = w->project ? w->project : "",
                                    .rule = w->rule,
                                    .about = w->about,
                                    .why = w->why,
                                    .who = x->who,
                                    .created_ms = now,
                                    .until_ms = now + w->for_ms};
    status = st->ops->silence_add(st, &silence, err);
    if (status != TARE_OK) return status;
    snprintf(x->param, sizeof x->param, "%s", id);
    reply_json(x, 201);
    return TARE_OK;
}

static void tell_silence(struct server *s, struct store *st, struct exchange *x)
{
    struct json j;
    (void)s;
    (void)st;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "id", x->param);
    json_object_end(&j);
    json_finish(&j, NULL);
    x->reply.extra = arena_printf(&x->arena, "Location: /api/v1/silences/%s\r\n", x->param);
}

const struct steps silences_post = {.now = check_silence,
                                    .write = add_silence,
                                    .written = tell_silence,
                                    .forget = forget_wish,
                                    .example =
                                        "{\"for_s\": 3600, \"about\": \"gpu7\", \"why\": \"new disks\"}",
                                    .replies = "201"};

static tare_status end_silence(struct server *s, struct store *st, struct exchange *x, tare_error *err)
{
    struct store_silence which = {
        .id = x->param, .project = x->project[0] ? x->project : NULL, .until_ms = now_ms()};
    bool ended = false;
    (void)s;
    tare_status status = st->ops->silence_end(st, &which, &ended, err);
    if (status != TARE_OK) return status;
    if (ended)
        x->reply.status = 204;
    else
        reply_problem(x, 404, "there is no such silence that goes on");
    return TARE_OK;
}

const struct steps silences_delete = {.write = end_silence, .replies = "204"};

/* ---- a message on trial ---- */

static void check_test(struct server *s, struct exchange *x)
{
    struct wish *w = begin_wish(s, x);
    if (w && !w->rule)
        reply_problem(x, 422, "rule: which?");
    else if (w && !alarms_tells(s->alarms))
        reply_problem(x, 409, "nobody is told: the server's file has no webhook and no command");
    end_wish(x);
}

/* Nothing but the audit's entry, which says whose test it was. */
static tare_status note_test(struct server *s, struct store *st, struct exchange *x, tare_error *err)
{
    const struct wish *w = x->work;
    (void)s;
    (void)st;
    (void)err;
    snprintf(x->param, sizeof x->param, "%s", w->rule);
    reply_json(x, 202);
    return TARE_OK;
}

static void send_test(struct server *s, struct store *st, struct exchange *x)
{
    const struct wish *w = x->work;
    struct json j;
    (void)st;
    alarms_test(s->alarms, w->rule);
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "rule", w->rule);
    json_object_end(&j);
    json_finish(&j, NULL);
}

const struct steps alerts_test = {
    .now = check_test, .write = note_test, .written = send_test, .forget = forget_wish, .replies = "202,409"};
