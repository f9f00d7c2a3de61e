/* SPDX-License-Identifier: MIT
 * test_serve_memory.c - a whole server whose n-th allocation fails, for every n and every route: each request is
 * answered as it is with memory, or by 500 or 503, or its connection ends; the next request is answered right, nothing
 * leaks, and what is in the store is whole. SQLite's own allocations do not fail here. */
#include <arpa/inet.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "home_fixture.h"
#include "server/route.h"
#include "store/care.h"

enum { REPLY_SIZE = 1 << 20, N_MAX = 100000, RIGHT_IN_A_ROW = 6 };

static char token[TOKEN_SIZE], run_ids[2][ULID_SIZE];
static struct server *server;
static struct file_view document = FILE_VIEW_INIT;

/* For jansson, whose texts are freed by mem_free_libc(): gated, but not counted. */
static void *gated_malloc(size_t n)
{
    void *gate = mem_new(1, 1);
    mem_free(gate);
    return gate ? malloc(n) : NULL;
}

static void say_nothing(void *ctx, const char *text)
{
    (void)ctx;
    (void)text;
}

/* ---- a client ---- */

static int dial(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)loop_port(server->loop)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void send_all(int fd, const char *text, size_t n)
{
    while (n) {
        ssize_t k = send(fd, text, n, MSG_NOSIGNAL);
        if (k <= 0) return; /* closed: recv tells */
        text += k;
        n -= (size_t)k;
    }
}

struct request {
    const char *method, *body;
    char path[300];
};

static void say(int fd, const struct request *r)
{
    char head[800];
    int n = snprintf(head, sizeof head,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                     r->method, r->path, strcmp(r->path, "/api/v1/session") == 0 ? "" : token,
                     r->body ? strlen(r->body) : 0);
    send_all(fd, head, (size_t)n);
    if (r->body) send_all(fd, r->body, strlen(r->body));
}

struct answer {
    unsigned status; /* 0: the connection ended without one */
    const char *body;
    size_t size;
};

/* One reply into `room`; a reply that is cut off is none. */
static struct answer hear(int fd, char *room)
{
    struct answer none = {0, "", 0};
    size_t n = 0;
    for (;;) {
        ssize_t k = recv(fd, room + n, REPLY_SIZE - 1 - n, 0);
        if (k <= 0) return none;
        n += (size_t)k;
        room[n] = 0;
        const char *end = strstr(room, "\r\n\r\n"), *length = strstr(room, "Content-Length: ");
        if (!end || !length || length > end) continue;
        size_t want = strtoul(length + 16, NULL, 10), head = (size_t)(end + 4 - room);
        if (n < head + want) continue;
        return (struct answer){(unsigned)strtoul(room + 9, NULL, 10), room + head, want};
    }
}

static struct answer ask(const struct request *r, char *room)
{
    int fd = dial();
    say(fd, r);
    struct answer a = hear(fd, room);
    close(fd);
    return a;
}

/* ---- a server ---- */

static int start(void **state)
{
    struct server_options o = {.threads = 1, .connections_max = 50, .login = LOGIN_TIMES, .say = say_nothing};
    struct sockaddr_in *at = (struct sockaddr_in *)&o.at;
    struct token_wish wish = {.scopes = SCOPE_READ | SCOPE_INGEST | SCOPE_RUN | SCOPE_ADMIN};
    struct buf where = BUF_INIT;
    struct store *s = NULL;
    tare_error err = TARE_ERROR_INIT;
    const char *src = getenv("TARE_SRC");
    char path[4096];
    (void)state;
    snprintf(path, sizeof path, "%s/tests/cli/report/sweep.run.json", src ? src : ".");
    assert_int_equal(file_map(path, &document, NULL), TARE_OK);
    if (home_enter() < 0) return -1;
    o.data = home;
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    json_set_alloc_funcs(gated_malloc, free);
    assert_int_equal(server_store(&o, true, &where, &err), TARE_OK);
    assert_int_equal(store_open(&s, where.data, &(struct store_options){.create = true}, &err), TARE_OK);
    assert_int_equal(token_new(s, &wish, token, &err), TARE_OK);
    store_close(s);
    buf_release(&where);
    if (server_open(&server, &o, &err) != TARE_OK) fail_msg("%s", err.text);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mem_fail_after(-1);
    file_unmap(&document);
    return home_leave();
}

/* A run like the one of the file, of another id. */
static char *run_text(unsigned number, char id[ULID_SIZE])
{
    char *text = mem_strndup((const char *)document.data, document.size);
    char *at = strstr(text, "\"id\"");
    at = strchr(strchr(at, ':'), '"') + 1;
    snprintf(id, ULID_SIZE, "01KA3QZ4M6S1V7W8X9Y0Z1A%03u", number);
    memcpy(at, id, ULID_LEN);
    return text;
}

/* ---- every route ---- */

/* What the table has as an example, and ids of things that are there. */
static void request_of(const struct route *r, struct request *out, char **body)
{
    static char login[TOKEN_SIZE + 20];
    const char *id = strstr(r->path, "{id}"), *example = r->steps->example;
    char in_place[100];
    snprintf(in_place, sizeof in_place, "%s", strstr(r->path, "/runs/") ? run_ids[0] : "1");
    if (strstr(r->path, "/services/")) snprintf(in_place, sizeof in_place, "search");
    snprintf(out->path, sizeof out->path, "%.*s%s%s%s", id ? (int)(id - r->path) : (int)strlen(r->path),
             r->path, id ? in_place : "", id ? id + 4 : "", r->body_max || !example ? "" : example);
    out->method = http_method_name(r->method);
    out->body = r->body_max ? example : NULL;
    if (r->body_max && !example) out->body = "{}";
    if (strcmp(r->path, "/api/v1/compare") == 0)
        snprintf(out->path, sizeof out->path, "%s?base=%s&new=%s&force=1", r->path, run_ids[0], run_ids[1]);
    if (strcmp(r->path, "/api/v1/trend") == 0)
        snprintf(out->path, sizeof out->path, "%s?subject=minilm-l6", r->path);
    if (strcmp(r->path, "/api/v1/metrics") == 0 && r->method == METHOD_GET)
        snprintf(out->path, sizeof out->path, "%s?host=gpu7&name=gpu.power&from=0&to=4000000000000", r->path);
    if (strcmp(r->path, "/api/v1/session") == 0 && r->body_max) {
        snprintf(login, sizeof login, "{\"token\":\"%s\"}", token);
        out->body = login;
    }
    if (strcmp(r->path, "/api/v1/runs") == 0 && r->body_max) {
        char unused[ULID_SIZE];
        out->body = *body = run_text(77, unused);
    }
}

/* The same, whatever the time is. */
static bool is_steady(const struct route *r)
{
    return r->method == METHOD_GET &&
           (strstr(r->path, "/runs") || strstr(r->path, "/series") || strstr(r->path, "/assets") ||
            strcmp(r->path, "/") == 0 || strstr(r->path, "/openapi"));
}

/* Answered by one that fails after n allocations. A connection that is there already: accepting is no request. */
static struct answer ask_without(const struct request *r, long n, char *room)
{
    static const struct request ping = {"GET", NULL, "/healthz"};
    int fd = dial();
    say(fd, &ping);
    assert_int_equal(hear(fd, room).status, 200);
    mem_fail_after(n);
    say(fd, r);
    struct answer a = hear(fd, room);
    mem_fail_after(-1);
    close(fd);
    return a;
}

/* 201: the first of them kept it, and all after that find it there. */
static bool may_be(unsigned got, unsigned right)
{
    return got == right || (right == 200 && got == 201);
}

static unsigned wrong; /* each is told: one look shows all */

#define WRONG(...) (wrong++, print_error(__VA_ARGS__))

/* Until it was right six times: then nothing failed any more. What changes something is asked by requests that find
 * no memory first, so that each of its steps fails once; what is right then is known in the end. */
static void try_route(const struct route *r, char *right, char *room)
{
    struct request q = {0};
    char *body = NULL;
    unsigned in_a_row = 0, seen = 0, statuses[8] = {0};
    struct answer known = {0};
    request_of(r, &q, &body);
    if (r->method == METHOD_GET) known = ask(&q, right);
    for (long n = 0; in_a_row < RIGHT_IN_A_ROW && n < N_MAX; n += 1 + n / 32) {
        struct answer a = ask_without(&q, n, room);
        bool failed = a.status == 0 || a.status == 500 || a.status == 503;
        in_a_row = failed ? 0 : in_a_row + 1;
        if (!failed && seen < 8 && (!seen || statuses[seen - 1] != a.status)) statuses[seen++] = a.status;
        if (a.status == 200 && is_steady(r) &&
            (a.size != known.size || memcmp(a.body, known.body, a.size) != 0))
            WRONG("%s %s: other bytes than with memory; %ld allocations: %s\n", q.method, q.path, n, a.body);
    }
    known = ask(&q, right);
    if (in_a_row < RIGHT_IN_A_ROW || known.status == 0 || known.status >= 500)
        WRONG("%s %s: never right: in the end %u\n", q.method, q.path, known.status);
    for (unsigned i = 0; i < seen; i++)
        if (!may_be(statuses[i], known.status))
            WRONG("%s %s: with memory %u, without %u\n", q.method, q.path, known.status, statuses[i]);
    mem_free(body);
}

static bool comes_in_pieces(const struct route *r)
{
    return r->steps->take != NULL;
}

static void every_route(void **state)
{
    char *right = malloc(REPLY_SIZE), *room = malloc(REPLY_SIZE);
    for (unsigned i = 0; i < 2; i++) {
        struct request q = {.method = "POST", .path = "/api/v1/runs"};
        char *text = run_text(i, run_ids[i]);
        q.body = text;
        assert_int_equal(ask(&q, room).status, 201);
        mem_free(text);
    }
    /* those that write first, so that there is something to read */
    for (int writes = 1; writes >= 0; writes--)
        for (const struct route *r = route_table; r->path; r++)
            if ((r->method != METHOD_GET) == writes && !comes_in_pieces(r)) try_route(r, right, room);
    assert_int_equal(wrong, 0);
    struct request kept = {.method = "GET"};
    char id[ULID_SIZE], *text = run_text(77, id);
    snprintf(kept.path, sizeof kept.path, "/api/v1/runs/%s", id);
    struct answer a = ask(&kept, room);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.size, strlen(text));
    assert_memory_equal(a.body, text, a.size);
    mem_free(text);
    free(right);
    free(room);
    (void)state;
}

/* After all that: no block is left, the data is whole, and so is the chain of the audit. */
static void nothing_is_left_over(void **state)
{
    struct store *s = NULL;
    struct store_health h;
    struct audit_report r;
    struct buf where = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    server_stop(server);
    server_close(server);
    assert_int_equal(mem_live_blocks(), 0);
    assert_int_equal(server_store(&(struct server_options){.data = home}, false, &where, &err), TARE_OK);
    assert_int_equal(store_open(&s, where.data, &(struct store_options){0}, &err), TARE_OK);
    assert_int_equal(store_check(s, &h, &err), TARE_OK);
    assert_string_equal(h.trouble, "");
    assert_int_equal(h.runs, 3);
    if (audit_verify(s, NULL, &r, &err) != TARE_OK) fail_msg("%s", err.text);
    store_close(s);
    buf_release(&where);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route),
        cmocka_unit_test(nothing_is_left_over),
    };
    if (!http_library()) return 0;
    return cmocka_run_group_tests(tests, start, stop);
}
