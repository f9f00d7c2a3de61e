/* SPDX-License-Identifier: MIT
 * api_session.c - logging in and out. A login link or a token becomes a cookie that scripts cannot read and other sites
 * cannot send; the token itself stays nowhere in the browser. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "server/route.h"

static void tell_session(struct server *s, struct exchange *x, const struct login *a)
{
    char scopes[TOKEN_SCOPES_SIZE];
    struct json j;
    uint64_t now = login_clock(), ends = a ? a->began_ns + s->options.login.longest_ns : 0;
    json_init(&j, &x->reply.body, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_key(&j, "session");
    if (a) {
        json_object_begin(&j);
        scopes_print(a->grant.scopes, ',', scopes);
        json_kv_string(&j, "scopes", scopes);
        json_kv_string(&j, "project", a->grant.project[0] ? a->grant.project : NULL);
        json_kv_string(&j, "token", a->by_token ? a->grant.id : NULL);
        json_kv_double(&j, "idle_s", (double)s->options.login.idle_ns / 1e9);
        json_kv_double(&j, "ends_s", ends > now ? (double)(ends - now) / 1e9 : 0);
        json_kv_string(&j, "version", TARE_VERSION);
        json_object_end(&j);
    } else {
        json_put_null(&j);
    }
    json_object_end(&j);
    json_finish(&j, NULL);
}

/* Open to anybody, so that the page can ask without being refused: it is told of itself alone. */
static void answer_who(struct server *s, struct exchange *x)
{
    struct login a;
    bool any = server_login(s, x, &a);
    reply_json(x, 200);
    tell_session(s, x, any ? &a : NULL);
}

const struct steps session_get = {.now = answer_who};

/* ---- in ---- */

enum { COOKIE_LINE = 256 };

static void cookie_line(const struct server *s, const char *text, char out[COOKIE_LINE])
{
    char name[32];
    server_cookie_name(s, name);
    snprintf(out, COOKIE_LINE, "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict%s%s\r\n", name, text,
             s->options.encrypted ? "; Secure" : "", *text ? "" : "; Max-Age=0");
}

/* Whoever started the server sees the link: it opens everything but sending runs. */
static bool take_link(struct server *s, const char *once, struct login *out)
{
    if (!logins_redeem(s->logins, once, login_clock())) return false;
    out->grant = (struct grant){.scopes = SCOPE_READ | SCOPE_RUN | SCOPE_ADMIN, .id = "link"};
    return true;
}

static void begin_session(struct server *s, struct exchange *x, struct login *a)
{
    char text[LOGIN_TEXT_SIZE], line[COOKIE_LINE];
    tare_error err = TARE_ERROR_INIT;
    a->began_ns = login_clock();
    if (logins_begin(s->logins, a, text, &err) != TARE_OK) {
        reply_problem(x, 503, "no session can be made");
        return;
    }
    cookie_line(s, text, line);
    reply_json(x, 201);
    x->reply.extra = arena_str(&x->arena, line);
    tell_session(s, x, a);
    memcpy(x->who, a->grant.id, sizeof a->grant.id);
    memcpy(x->project, a->grant.project, sizeof x->project);
    server_note(s, x);
}

static void log_in(struct server *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct login a = {0};
    json_t *body;
    if (exchange_json(x, &body, &err) == TARE_NOMEM) {
        reply_refused(x, 400, &err);
        return;
    }
    const char *once = json_string_value(json_object_get(body, "once"));
    const char *token = json_string_value(json_object_get(body, "token"));
    if (!body || (!once) == (!token)) {
        reply_problem(x, 400,
                      "the body is {\"token\": \"tare_...\"}, or {\"once\": \"...\"} of a login link");
    } else if (once ? take_link(s, once, &a) : tokens_check(s->tokens, token, &a.grant)) {
        a.by_token = token != NULL;
        begin_session(s, x, &a);
    } else {
        server_refuse_stranger(
            s, x, once ? "this login link was used already, or is too old" : "there is no such token");
    }
    json_decref(body);
}

const struct steps session_post = {.now = log_in, .replies = "201,401"};

/* ---- out ---- */

/* Without a session there is nothing to end, and the cookie goes all the same. */
static void log_out(struct server *s, struct exchange *x)
{
    char text[LOGIN_TEXT_SIZE], line[COOKIE_LINE];
    struct login a;
    bool any = server_login(s, x, &a);
    if (server_cookie(s, x, text)) logins_end(s->logins, text);
    cookie_line(s, "", line);
    x->reply.status = 204;
    x->reply.extra = arena_str(&x->arena, line);
    if (!any) return;
    memcpy(x->who, a.grant.id, sizeof a.grant.id);
    memcpy(x->project, a.grant.project, sizeof x->project);
    server_note(s, x);
}

const struct steps session_delete = {.now = log_out, .replies = "204"};
