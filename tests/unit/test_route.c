/* SPDX-License-Identifier: MIT
 * test_route.c - the table of routes: each has a scope and its line in the page; what is in no row is nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <ctype.h>
#include <jansson.h>

#include "core/file.h"
#include "server/route.h"

/* Whoever may not come in needs a door: the page, what it is made of, and logging in. None of them tells of data, but
 * the badges of projects that the operator named (--public-badge). */
static bool is_meant_open(const char *path)
{
    static const char *const open[] = {"/healthz",
                                       "/",
                                       "/login",
                                       "/assets/{id}.js",
                                       "/assets/{id}.css",
                                       "/api/v1/session",
                                       "/public/badge.svg",
                                       "/public/line.svg"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (strcmp(path, open[i]) == 0) return true;
    return false;
}

static void every_route_is_guarded_and_documented(void **state)
{
    const char *root = getenv("TARE_SRC");
    char path[4096], line[200], scope[TOKEN_SCOPES_SIZE];
    struct file_view page = FILE_VIEW_INIT;
    snprintf(path, sizeof path, "%s/docs/server-api.md", root ? root : ".");
    assert_int_equal(file_map(path, &page, NULL), TARE_OK);
    for (const struct route *r = route_table; r->path; r++) {
        assert_true(r->scope != 0 && (r->scope & (r->scope - 1)) == 0);
        assert_true(r->rate != RATE_NONE && r->steps && r->does);
        assert_true(r->scope != SCOPE_OPEN || is_meant_open(r->path));
        if (r->method != METHOD_GET) assert_true(r->scope != SCOPE_READ && r->rate == RATE_WRITE);
        if (r->method != METHOD_GET && r->method != METHOD_DELETE) assert_true(r->body_max);
        scopes_print(r->scope, ',', scope);
        snprintf(line, sizeof line, "| `%s %s` | %s |", http_method_name(r->method), r->path,
                 r->scope == SCOPE_OPEN ? "none" : scope);
        if (!memmem(page.data, page.size, line, strlen(line))) fail_msg("no line in the page: %s", line);
    }
    file_unmap(&page);
    (void)state;
}

/* The document has every row, and nothing else. */
static void the_openapi_document_is_the_table(void **state)
{
    struct buf text = BUF_INIT;
    size_t rows = 0, told = 0;
    const char *path;
    json_t *methods;
    openapi_write(&text);
    json_t *document = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    json_t *paths = json_object_get(document, "paths");
    assert_true(json_is_object(paths));
    for (const struct route *r = route_table; r->path; r++, rows++) {
        char method[16];
        snprintf(method, sizeof method, "%s", http_method_name(r->method));
        for (char *m = method; *m; m++) *m = (char)tolower((unsigned char)*m);
        json_t *operation = json_object_get(json_object_get(paths, r->path), method);
        assert_string_equal(json_string_value(json_object_get(operation, "summary")), r->does);
        assert_int_equal(json_object_get(operation, "requestBody") != NULL, r->body_max > 0);
    }
    json_object_foreach(paths, path, methods) told += json_object_size(methods);
    assert_int_equal(rows, told);
    json_decref(document);
    buf_release(&text);
    (void)state;
}

static void paths_are_found_as_they_are_written(void **state)
{
    char param[EXCHANGE_PARAM_SIZE] = "";
    unsigned allowed;
    const struct route *r = route_find(METHOD_GET, "/api/v1/runs/01ABC", param, &allowed);
    assert_non_null(r);
    assert_string_equal(param, "01ABC");
    assert_ptr_equal(route_find(METHOD_HEAD, "/api/v1/runs/01ABC", param, &allowed), r);
    static const char *const none[] = {"",
                                       "//",
                                       "*",
                                       "/healthz/",
                                       "/api/v1/runs/",
                                       "/assets/.js",
                                       "/assets/a/b.js",
                                       "/assets/../b.js",
                                       "/assets/a.html",
                                       "/api/v1/runs/a/b",
                                       "/api/v1/runs/a.b",
                                       "/api/v1/runs/%41",
                                       "/api/v1/runs/{id}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_null(route_find(METHOD_GET, none[i], param, &allowed));
        assert_int_equal(allowed, 0);
    }
    assert_null(route_find(METHOD_DELETE, "/api/v1/runs", param, &allowed));
    assert_int_equal(allowed, 1u << METHOD_GET | 1u << METHOD_HEAD | 1u << METHOD_POST);
    (void)state;
}

static void rates(void **state)
{
    struct rate *r = NULL;
    struct rate_limit limit = {10, 5}, none = {0, 0};
    assert_int_equal(rate_open(&r, NULL), TARE_OK);
    uint64_t now = 1000000000;
    for (int i = 0; i < 5; i++) assert_int_equal(rate_take(r, &limit, "a", 1, now), 0);
    assert_int_equal(rate_take(r, &limit, "a", 1, now), 100000000); /* the next one in a tenth of a second */
    assert_int_equal(rate_take(r, &limit, "b", 1, now), 0);         /* others are not touched */
    assert_int_equal(rate_take(r, &limit, "a", 1, now + 100000000), 0);
    assert_true(rate_take(r, &limit, "a", 1, now + 100000000) > 0);
    for (int i = 0; i < 5; i++) assert_int_equal(rate_take(r, &limit, "a", 1, now + UINT64_C(5000000000)), 0);
    assert_true(rate_take(r, &limit, "a", 1, now + UINT64_C(5000000000)) > 0);
    for (int i = 0; i < 1000; i++) assert_int_equal(rate_take(r, &none, "a", 1, now), 0);
    for (unsigned i = 0; i < 100000; i++)
        rate_take(r, &limit, &i, sizeof i, now); /* a flood takes no memory */
    rate_close(r);
    (void)state;
}

static void scopes(void **state)
{
    unsigned bits = 0;
    char text[TOKEN_SCOPES_SIZE];
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(scopes_parse("ingest,read", &bits, NULL), TARE_OK);
    assert_int_equal(bits, SCOPE_READ | SCOPE_INGEST);
    scopes_print(SCOPE_READ | SCOPE_INGEST | SCOPE_RUN | SCOPE_ADMIN, ',', text);
    assert_string_equal(text, "read,ingest,run,admin");
    static const char *const bad[] = {"",     "read,", ",read", "read ingest",
                                      "Read", "rea",   "open",  "read,,run"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(scopes_parse(bad[i], &bits, &err), TARE_INVALID);
    assert_int_equal(bits, SCOPE_READ | SCOPE_INGEST); /* untouched */
    (void)state;
}

static const char *asked(struct exchange *x, const char *query, const char *name)
{
    const char *out = NULL;
    x->head.query = query;
    return exchange_query(x, name, &out, NULL) == TARE_OK ? out : "refused";
}

static void queries(void **state)
{
    static struct exchange x;
    x.arena = (struct arena)ARENA_INIT;
    assert_string_equal(asked(&x, "a=1&b=2", "b"), "2");
    assert_string_equal(asked(&x, "a=x+y%26z%2", "b") ? "" : "none", "none");
    assert_string_equal(asked(&x, "a=x+y%26z", "a"), "x y&z");
    assert_string_equal(asked(&x, "a=%2541", "a"), "%41"); /* decoded once */
    assert_string_equal(asked(&x, "a=", "a"), "");
    assert_null(asked(&x, "ab=1", "a"));
    assert_null(asked(&x, "", "a"));
    static const char *const bad[] = {"a=%", "a=%4", "a=%zz", "a=%00", "a=%4&b=1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_string_equal(asked(&x, bad[i], "a"), "refused");
    arena_release(&x.arena);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_guarded_and_documented),
        cmocka_unit_test(the_openapi_document_is_the_table), cmocka_unit_test(paths_are_found_as_they_are_written),
        cmocka_unit_test(rates), cmocka_unit_test(scopes), cmocka_unit_test(queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
