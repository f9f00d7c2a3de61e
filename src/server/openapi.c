/* SPDX-License-Identifier: MIT
 * openapi.c - the table of routes as an OpenAPI 3.1 document. Nothing is listed a second time: paths, scopes and limits
 * are the rows', what a query may say and an example are beside the handlers (struct steps). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "server/route.h"

/* ---- replies ---- */

/* What a request may be answered with beside what its handler says. */
static bool may_be_refused(const struct route *r, unsigned status)
{
    bool guarded = r->scope != SCOPE_OPEN, waits = r->steps->read || r->steps->write;
    switch (status) {
    case 400: return true; /* a head that is none */
    case 401: return guarded;
    case 403: return guarded || r->method != METHOD_GET;
    case 404: return strchr(r->path, '{') != NULL;
    case 413:
    case 415:
    case 422: return r->body_max > 0;
    case 421:
    case 429: return true;
    case 500:
    case 503: return waits;
    case 507: return r->steps->write != NULL;
    default: return false;
    }
}

static void put_reply(struct json *j, const struct route *r, unsigned status)
{
    char key[16];
    const char *type = status >= 400 ? "application/problem+json" : r->steps->type;
    snprintf(key, sizeof key, "%u", status);
    json_key(j, status ? key : "2XX");
    json_object_begin(j);
    json_kv_string(j, "description", status ? reply_reason(status) : "done");
    json_key(j, "content");
    json_object_begin(j);
    json_key(j, type ? type : "application/json");
    json_object_begin(j);
    if (status >= 400) {
        json_key(j, "schema");
        json_object_begin(j);
        json_kv_string(j, "$ref", "#/components/schemas/problem");
        json_object_end(j);
    }
    json_object_end(j);
    json_object_end(j);
    json_object_end(j);
}

static void put_replies(struct json *j, const struct route *r)
{
    static const unsigned refusals[] = {400, 401, 403, 404, 413, 415, 421, 422, 429, 500, 503, 507};
    const char *own = r->steps->replies;
    json_key(j, "responses");
    json_object_begin(j);
    if (!own) put_reply(j, r, r->method == METHOD_GET ? 200 : 0);
    for (const char *at = own; at && *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
        put_reply(j, r, (unsigned)strtoul(at, NULL, 10));
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", refusals[i]);
        if (may_be_refused(r, refusals[i]) && !(own && strstr(own, text))) put_reply(j, r, refusals[i]);
    }
    json_object_end(j);
}

/* ---- requests ---- */

static void put_parameter(struct json *j, const char *in, const char *name, const char *about)
{
    json_object_begin(j);
    json_kv_string(j, "name", name);
    json_kv_string(j, "in", in);
    json_kv_bool(j, "required", strcmp(in, "path") == 0);
    json_kv_string(j, "description", about);
    json_key(j, "schema");
    json_object_begin(j);
    json_kv_string(j, "type", "string");
    json_object_end(j);
    json_object_end(j);
}

static void put_parameters(struct json *j, const struct route *r)
{
    const char *open = strchr(r->path, '{'), *close = open ? strchr(open, '}') : NULL;
    char name[32];
    json_key(j, "parameters");
    json_array_begin(j);
    if (close) {
        snprintf(name, sizeof name, "%.*s", (int)(close - open - 1), open + 1);
        put_parameter(j, "path", name, "letters, digits, - and _");
    }
    for (const struct query_word *q = r->steps->query; q && q->name; q++)
        put_parameter(j, "query", q->name, q->about);
    json_array_end(j);
}

static void put_body(struct json *j, const struct route *r)
{
    if (!r->body_max) return;
    json_key(j, "requestBody");
    json_object_begin(j);
    json_kv_bool(j, "required", true);
    json_key(j, "content");
    json_object_begin(j);
    if (!r->steps->bytes) {
        json_key(j, "application/json");
        json_object_begin(j);
        json_object_end(j);
    }
    if (r->steps->takes) {
        json_key(j, r->steps->takes);
        json_object_begin(j);
        json_object_end(j);
    }
    json_object_end(j);
    json_kv_uint(j, "x-bytes-max", r->body_max);
    json_object_end(j);
}

static void put_security(struct json *j, const struct route *r)
{
    char scopes[TOKEN_SCOPES_SIZE] = "none";
    if (r->scope != SCOPE_OPEN) scopes_print(r->scope, ',', scopes);
    json_key(j, "security");
    json_array_begin(j);
    if (r->scope != SCOPE_OPEN) {
        json_object_begin(j);
        json_key(j, "token");
        json_array_begin(j);
        json_put_string(j, scopes);
        json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
    json_kv_string(j, "x-scope", scopes);
}

/* "get_runs_id" of GET /api/v1/runs/{id}, "get_root_metrics" of GET /metrics */
static void put_name(struct json *j, const struct route *r)
{
    char name[120];
    size_t n = 0;
    bool ours = strncmp(r->path, "/api/v1/", 8) == 0;
    const char *at = ours ? r->path + 7 : r->path;
    for (const char *m = http_method_name(r->method); *m && n < sizeof name - 2; m++)
        name[n++] = (char)tolower((unsigned char)*m);
    for (const char *m = ours ? "" : "_root"; *m; m++) name[n++] = *m;
    for (; *at && n < sizeof name - 2; at++) {
        bool word = isalnum((unsigned char)*at);
        if (word)
            name[n++] = *at;
        else if (n && name[n - 1] != '_' && *at != '}')
            name[n++] = '_';
    }
    name[n] = 0;
    json_kv_string(j, "operationId", name);
}

static void put_operation(struct json *j, const struct route *r)
{
    char method[16];
    snprintf(method, sizeof method, "%s", http_method_name(r->method));
    for (char *m = method; *m; m++) *m = (char)tolower((unsigned char)*m);
    json_key(j, method);
    json_object_begin(j);
    put_name(j, r);
    json_kv_string(j, "summary", r->does);
    put_security(j, r);
    put_parameters(j, r);
    put_body(j, r);
    if (r->steps->example) json_kv_string(j, "x-example", r->steps->example);
    put_replies(j, r);
    json_object_end(j);
}

/* ---- the whole ---- */

/* Rows of one path are one object, written where the first of them is. */
static bool is_first_of_path(const struct route *r)
{
    for (const struct route *before = route_table; before < r; before++)
        if (strcmp(before->path, r->path) == 0) return false;
    return true;
}

static void put_paths(struct json *j)
{
    json_key(j, "paths");
    json_object_begin(j);
    for (const struct route *r = route_table; r->path; r++) {
        if (!is_first_of_path(r)) continue;
        json_key(j, r->path);
        json_object_begin(j);
        for (const struct route *same = r; same->path; same++)
            if (strcmp(same->path, r->path) == 0) put_operation(j, same);
        json_object_end(j);
    }
    json_object_end(j);
}

/* RFC 9457, as reply_problem() writes it. */
static void put_problem(struct json *j)
{
    static const char *const texts[] = {"type", "title", "detail", "request"};
    json_key(j, "problem");
    json_object_begin(j);
    json_kv_string(j, "type", "object");
    json_key(j, "properties");
    json_object_begin(j);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_key(j, texts[i]);
        json_object_begin(j);
        json_kv_string(j, "type", "string");
        json_object_end(j);
    }
    json_key(j, "status");
    json_object_begin(j);
    json_kv_string(j, "type", "integer");
    json_object_end(j);
    json_object_end(j);
    json_object_end(j);
}

static void put_components(struct json *j)
{
    json_key(j, "components");
    json_object_begin(j);
    json_key(j, "schemas");
    json_object_begin(j);
    put_problem(j);
    json_object_end(j);
    json_key(j, "securitySchemes");
    json_object_begin(j);
    json_key(j, "token");
    json_object_begin(j);
    json_kv_string(j, "type", "http");
    json_kv_string(j, "scheme", "bearer");
    json_kv_string(j, "description", "a token of tare token new");
    json_object_end(j);
    json_object_end(j);
    json_object_end(j);
}

void openapi_write(struct buf *out)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    json_kv_string(&j, "openapi", "3.1.0");
    json_key(&j, "info");
    json_object_begin(&j);
    json_kv_string(&j, "title", "tare serve");
    json_kv_string(&j, "version", TARE_VERSION);
    json_object_end(&j);
    put_paths(&j);
    put_components(&j);
    json_object_end(&j);
    json_finish(&j, NULL); /* where memory ran out, the loop answers 500 */
}
