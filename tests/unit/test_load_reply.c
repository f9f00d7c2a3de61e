/* SPDX-License-Identifier: MIT
 * test_load_reply.c - addresses, requests as text, bodies from files, and answers read in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "load/address.h"
#include "load/bodies.h"
#include "load/reply.h"
#include "load/text.h"

/* ---- addresses ---- */

static const struct {
    const char *url, *host, *port, *authority, *target;
    bool tls;
} good_urls[] = {
    {"http://h", "h", "80", "h", "/", false},
    {"https://h.example:8443/a/b?c=d", "h.example", "8443", "h.example:8443", "/a/b?c=d", true},
    {"HTTP://127.0.0.1:1?x", "127.0.0.1", "1", "127.0.0.1:1", "/?x", false},
    {"http://[::1]:80/x#part", "::1", "80", "[::1]:80", "/x", false},
    {"https://[::1]", "::1", "443", "[::1]", "/", true},
};

static void reads_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good_urls / sizeof *good_urls; i++) {
        struct load_address a;
        assert_int_equal(load_address_read(&a, good_urls[i].url, NULL), TARE_OK);
        assert_string_equal(a.host, good_urls[i].host);
        assert_string_equal(a.port, good_urls[i].port);
        assert_string_equal(a.authority, good_urls[i].authority);
        assert_string_equal(a.target, good_urls[i].target);
        assert_int_equal(a.tls, good_urls[i].tls);
    }
}

static void reads_a_unix_socket(void **state)
{
    (void)state;
    struct load_address a;
    assert_int_equal(load_address_read(&a, "unix:/run/x.sock:/v1?y", NULL), TARE_OK);
    assert_true(a.is_unix);
    assert_string_equal(((struct sockaddr_un *)&a.at[0])->sun_path, "/run/x.sock");
    assert_string_equal(a.target, "/v1?y");
    assert_int_equal(load_address_read(&a, "unix:/run/x.sock", NULL), TARE_OK);
    assert_string_equal(a.target, "/");
    assert_int_equal(load_address_resolve(&a, NULL), TARE_OK);
}

static void refuses_addresses(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "ftp://h", "h:80",       "http://",      "http:///x",          "http://a b/",
        "unix:",   "http://h:x", "http://h/a b", "http://u:secret@h/", "http://h/\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct load_address a;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(load_address_read(&a, bad[i], &err), TARE_INVALID);
        assert_null(strstr(err.text, "secret"));
    }
    assert_false(load_is_url("model.onnx"));
    assert_false(load_is_url("httpx"));
}

static void names_that_nobody_knows(void **state)
{
    (void)state;
    struct load_address a;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(load_address_read(&a, "http://127.0.0.1:9", NULL), TARE_OK);
    assert_int_equal(load_address_resolve(&a, &err), TARE_OK);
    assert_int_equal(a.n, 1);
    snprintf(a.host, sizeof a.host, "%s", "no.such.name.invalid.");
    assert_int_equal(load_address_resolve(&a, &err), TARE_IO);
    assert_non_null(strstr(err.text, "no.such.name.invalid"));
}

/* ---- requests ---- */

static void writes_requests(void **state)
{
    (void)state;
    struct load_address a;
    struct load_request r = {BUF_INIT, BUF_INIT, BUF_INIT};
    struct buf out = BUF_INIT, lines = BUF_INIT;
    load_address_read(&a, "http://h:1/x", NULL);
    struct load_wording w = {.to = &a};
    load_write_request(&w, &r, &out);
    assert_string_equal(out.data, "GET /x HTTP/1.1\r\nHost: h:1\r\nUser-Agent: tare\r\nAccept: */*\r\n\r\n");
    buf_clear(&out);
    assert_int_equal(load_add_header(&lines, "host: other", NULL), TARE_OK);
    assert_int_equal(load_add_header(&lines, "User-Agent:me", NULL), TARE_OK);
    w = (struct load_wording){.to = &a, .headers = lines.data, .content_type = "text/plain", .closes = true};
    buf_add_str(&r.body, "hello");
    buf_add_str(&r.target, "/y");
    buf_add_str(&r.headers, "Accept: a/b\r\n");
    load_write_request(&w, &r, &out);
    assert_string_equal(out.data,
                        "POST /y HTTP/1.1\r\nhost: other\r\nUser-Agent: me\r\nAccept: a/b\r\n"
                        "Content-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    buf_release(&out);
    buf_release(&lines);
    load_request_release(&r);
}

static void headers_from_the_environment(void **state)
{
    (void)state;
    struct buf lines = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    setenv("TARE_TEST_KEY", "Bearer s3cret", 1);
    assert_int_equal(load_add_header(&lines, "Authorization: env:TARE_TEST_KEY", &err), TARE_OK);
    assert_string_equal(lines.data, "Authorization: Bearer s3cret\r\n");
    static const char *const bad[] = {"no colon",
                                      ": x",
                                      "a b: c",
                                      "Content-Length: 3",
                                      "connection: close",
                                      "X: env:TARE_TEST_NOT_THERE",
                                      "X: a\r\nY: b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(load_add_header(&lines, bad[i], &err), TARE_INVALID);
    setenv("TARE_TEST_KEY", "s3cret\n", 1);
    assert_int_equal(load_add_header(&lines, "X: env:TARE_TEST_KEY", &err), TARE_INVALID);
    assert_null(strstr(err.text, "s3cret"));
    buf_release(&lines);
}

static void bodies_of_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/tare-bodies-XXXXXX.jsonl";
    int fd = mkstemps(path, 6);
    struct bodies b = BODIES_INIT;
    const struct bodies_files lines = {.lines = path}, whole = {.whole = path};
    struct load_request r = {BUF_INIT, BUF_INIT, BUF_INIT};
    assert_true(write(fd, "{\"a\":1}\r\n\n{\"a\":2}\n", 18) == 18);
    assert_int_equal(bodies_open(&b, &lines, NULL), TARE_OK);
    struct load_source s = bodies_source(&b);
    assert_false(s.same);
    assert_string_equal(s.content_type, "application/json");
    static const struct {
        uint64_t number;
        const char *body;
    } want[] = {{0, "{\"a\":1}"}, {1, "{\"a\":2}"}, {2, "{\"a\":1}"}, {LOAD_WARM_NUMBER, "{\"a\":2}"}};
    for (size_t i = 0; i < 4; i++) {
        load_request_clear(&r);
        assert_int_equal(s.fill(s.ctx, want[i].number, &r, NULL), TARE_OK);
        assert_string_equal(r.body.data, want[i].body);
    }
    bodies_close(&b);
    assert_int_equal(bodies_open(&b, &whole, NULL), TARE_OK);
    assert_true(bodies_source(&b).same);
    bodies_close(&b);
    assert_true(ftruncate(fd, 0) == 0);
    assert_int_equal(bodies_open(&b, &lines, NULL), TARE_FORMAT);
    bodies_close(&b);
    assert_int_equal(bodies_open(&b, &(struct bodies_files){.lines = "/no/such/file"}, NULL), TARE_IO);
    load_request_release(&r);
    close(fd);
    unlink(path);
}

/* ---- answers ---- */

#define OK "HTTP/1.1 200 OK\r\n"

static const struct {
    const char *name, *bytes;
    unsigned status;
    enum load_fault fault;
    bool closes;
} answers[] = {
    {"with its length", OK "Content-Length: 5\r\n\r\nhello", 200, LOAD_NONE, false},
    {"in chunks", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 200, LOAD_NONE,
     false},
    {"until the end", OK "\r\nhello", 200, LOAD_NONE, true},
    {"100 before it", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 5\r\n\r\nhello", 200, LOAD_NONE,
     false},
    {"closes", OK "Connection: close\r\nContent-Length: 5\r\n\r\nhello", 200, LOAD_NONE, true},
    {"status", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", 503, LOAD_STATUS, false},
    {"redirect", "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", 302, LOAD_STATUS, false},
    {"another body", OK "Content-Length: 5\r\n\r\nhullo", 200, LOAD_BODY, false},
    {"cut", OK "Content-Length: 50\r\n\r\nhello", 200, LOAD_CUT, true},
    {"cut in the head", "HTTP/1.1 200", 0, LOAD_CUT, true},
    {"nothing", "", 0, LOAD_CUT, true},
    {"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", 0, LOAD_INVALID, false},
    {"two lengths", OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 0, LOAD_INVALID, false},
    {"too large", OK "Content-Length: 5000\r\n\r\nhello", 200, LOAD_TOO_LARGE, false},
    {"too large in chunks",
     OK "Transfer-Encoding: chunked\r\n\r\n28\r\n0123456789012345678901234567890123456789\r\n"
        "46\r\n0123456789012345678901234567890123456789012345678901234567890123456789\r\n0\r\n\r\n",
     200, LOAD_TOO_LARGE, false},
};

static enum reply_step play(struct reply *r, const char *bytes, size_t piece, struct load_outcome *o)
{
    size_t n = strlen(bytes);
    for (size_t at = 0; at < n;) {
        struct reply_bytes b = {bytes + at, n - at < piece ? n - at : piece, 0, 1000 + at};
        enum reply_step step = reply_take(r, &b, o);
        if (step != REPLY_MORE) return step;
        at += b.used;
    }
    return reply_ended(r, 5000, o);
}

static tare_status asked(struct bodies *b, const struct bodies_files *f, struct load_request *r, tare_error *err)
{
    *b = (struct bodies)BODIES_INIT;
    tare_status s = bodies_open(b, f, err);
    if (s < 0) return s;
    struct load_source source = bodies_source(b);
    load_request_clear(r);
    return source.fill(source.ctx, 7, r, err);
}

static void put_file(char *path, int suffix, const char *text)
{
    int fd = mkstemps(path, suffix);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void bodies_of_a_template(void **state)
{
    char made[] = "/tmp/tare-template-XXXXXX.json", lines[] = "/tmp/tare-lines-XXXXXX.txt";
    char taking[] = "/tmp/tare-taking-XXXXXX.json";
    struct bodies b;
    struct load_request r = {BUF_INIT, BUF_INIT, BUF_INIT};
    tare_error err = TARE_ERROR_INIT;
    put_file(made, 5, "{\"id\":{{id}},\"x\":{{random:5..5}}}");
    put_file(taking, 5, "{\"text\":\"{{line}}\"}");
    put_file(lines, 4, "one\ntwo\n");
    struct bodies_files f = {.template = made, .url = "http://h/items/{{id}}?n={{random:3..3}}"};
    assert_int_equal(asked(&b, &f, &r, &err), TARE_OK);
    assert_string_equal(r.body.data, "{\"id\":7,\"x\":5}");
    assert_string_equal(r.target.data, "/items/7?n=3");
    assert_string_equal(bodies_source(&b).content_type, "application/json");
    assert_false(bodies_source(&b).same);
    bodies_close(&b);
    f = (struct bodies_files){.template = taking, .lines = lines};
    assert_int_equal(asked(&b, &f, &r, &err), TARE_OK);
    assert_string_equal(r.body.data, "{\"text\":\"two\"}"); /* 7 of two lines */
    bodies_close(&b);
    const struct {
        struct bodies_files files;
        const char *says;
    } bad[] = {{{.template = taking}, "no file of lines"},
               {{.template = made, .lines = lines}, "takes the lines"},
               {{.url = "http://h/{{line}}"}, "fit an address"},
               {{.url = "http://h/{{random:words:3}}"}, "fit an address"},
               {{.url = "http://h/{{id}"}, "column"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(asked(&b, &bad[i].files, &r, &err), TARE_INVALID);
        assert_non_null(strstr(err.text, bad[i].says));
        bodies_close(&b);
    }
    load_request_release(&r);
    unlink(made);
    unlink(taking);
    unlink(lines);
    (void)state;
}

static void reads_answers(void **state)
{
    (void)state;
    static const struct reply_rules rules = {.expect_body = "hell", .body_max = 100};
    struct http_head *head = mem_new(1, sizeof *head);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        for (size_t piece = 1; piece < 200; piece += 1 + piece / 8) {
            struct reply r;
            struct load_outcome o = {.sent = 1};
            reply_open(&r, &rules, NULL);
            reply_begin(&r, head);
            enum reply_step step = play(&r, answers[i].bytes, piece, &o);
            if (o.fault != answers[i].fault || r.closes != answers[i].closes)
                fail_msg("%s in pieces of %zu: %u, closes %d", answers[i].name, piece, o.fault, r.closes);
            bool broken = o.fault == LOAD_CUT || o.fault == LOAD_INVALID || o.fault == LOAD_TOO_LARGE;
            assert_int_equal(step, broken ? REPLY_FAILED : REPLY_DONE);
            if (answers[i].status) assert_int_equal(o.status, answers[i].status);
            if (o.fault == LOAD_STATUS && o.status == 503) assert_string_equal(r.glimpse, "busy");
            if (o.first_byte) assert_true(o.first_byte >= 1000);
        }
    }
    mem_free(head);
}

/* One after the other on one connection: nothing of the first is left. */
static void reads_two_answers(void **state)
{
    (void)state;
    static const struct reply_rules rules = {.expect_status = 204, .body_max = 100};
    struct http_head *head = mem_new(1, sizeof *head);
    struct reply r;
    const char *both = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 204 No Content\r\n\r\n";
    struct reply_bytes b = {both, strlen(both), 0, 7};
    struct load_outcome first = {.sent = 1}, second = {.sent = 1};
    reply_open(&r, &rules, NULL);
    reply_begin(&r, head);
    assert_int_equal(reply_take(&r, &b, &first), REPLY_DONE);
    assert_int_equal(first.fault, LOAD_STATUS);
    assert_int_equal(first.bytes, 2);
    b = (struct reply_bytes){both + b.used, strlen(both) - b.used, 0, 9};
    reply_begin(&r, head);
    assert_int_equal(reply_take(&r, &b, &second), REPLY_DONE);
    assert_int_equal(second.fault, LOAD_NONE);
    assert_int_equal(second.first_byte, 9);
    assert_int_equal(second.end, 9);
    assert_string_equal(r.glimpse, "");
    mem_free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_addresses),   cmocka_unit_test(reads_a_unix_socket),
        cmocka_unit_test(refuses_addresses), cmocka_unit_test(names_that_nobody_knows),
        cmocka_unit_test(writes_requests),   cmocka_unit_test(headers_from_the_environment),
        cmocka_unit_test(bodies_of_a_file),  cmocka_unit_test(bodies_of_a_template), cmocka_unit_test(reads_answers),
        cmocka_unit_test(reads_two_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
