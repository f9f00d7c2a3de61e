/* SPDX-License-Identifier: MIT
 * test_http_parse.c - the framing table, each case in one piece, byte by byte and cut at random; what a head says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/buf.h"
#include "core/rng.h"
#include "framing_cases.h"
#include "http/http_parse.h"

struct reader {
    struct http_parser p;
    struct http_head head;
    struct buf body, verdict;
};

static void to_body(void *ctx, const char *bytes, size_t n)
{
    buf_add(&((struct reader *)ctx)->body, bytes, n);
}

static void reader_open(struct reader *r)
{
    *r = (struct reader){.body = BUF_INIT, .verdict = BUF_INIT};
    http_parser_init(&r->p, to_body, r);
    http_begin(&r->p, &r->head);
}

static void reader_close(struct reader *r)
{
    buf_release(&r->body);
    buf_release(&r->verdict);
}

static void word(struct reader *r, unsigned status)
{
    buf_printf(&r->verdict, "%s%u", r->verdict.len ? " " : "", status);
}

/* Feed one piece; false: refused. */
static bool feed(struct reader *r, const char *bytes, size_t n)
{
    bool again = n > 0;
    while (again) {
        size_t used = 0;
        enum http_step step = http_parse(&r->p, bytes, n, &used);
        assert_true(used <= n);
        bytes += used;
        n -= used;
        if (step == PARSE_REFUSED) {
            assert_non_null(r->p.why);
            word(r, r->p.status);
            return false;
        }
        if (step == PARSE_END) {
            word(r, 200);
            http_begin(&r->p, &r->head);
        }
        again = n > 0 || step == PARSE_HEAD;
    }
    return true;
}

enum cut { WHOLE, BYTES, RANDOM };

static void read_case(struct reader *r, const struct buf *bytes, enum cut cut, struct rng *rng)
{
    bool goes_on = true;
    reader_open(r);
    for (size_t at = 0; at < bytes->len && goes_on;) {
        size_t n = cut == WHOLE ? bytes->len : 1;
        if (cut == RANDOM) n = 1 + rng_next(rng) % 40;
        if (n > bytes->len - at) n = bytes->len - at;
        char *piece = malloc(n); /* of its own, so that a read beyond it is seen */
        memcpy(piece, bytes->data + at, n);
        goes_on = feed(r, piece, n);
        free(piece);
        at += n;
    }
    if (goes_on && (r->p.before > 0 || r->p.head_done))
        buf_printf(&r->verdict, "%swait", r->verdict.len ? " " : "");
}

static void bytes_of(const struct framing_case *c, struct buf *out)
{
    buf_add(out, c->a, c->size_a ? c->size_a : strlen(c->a));
    for (size_t i = 0; i < c->n; i++) buf_add_str(out, c->unit);
    buf_add_str(out, c->b);
    assert_false(out->failed);
}

/* "501|400": either. Which of two faults is told may depend on what llhttp sees first. */
static bool is_wanted(const char *wanted, const char *got)
{
    size_t n = strlen(got);
    for (const char *at = wanted; at; at = strchr(at, '|')) {
        if (*at == '|') at++;
        if (strncmp(at, got, n) == 0 && (at[n] == 0 || at[n] == '|')) return true;
    }
    return false;
}

static void framing_table(void **state)
{
    struct rng rng;
    struct reader r;
    unsigned wrong = 0;
    rng_seed(&rng, 17);
    assert_true(sizeof framing_cases / sizeof *framing_cases >= 91);
    for (size_t i = 0; i < sizeof framing_cases / sizeof *framing_cases; i++) {
        const struct framing_case *c = &framing_cases[i];
        struct buf bytes = BUF_INIT;
        bytes_of(c, &bytes);
        for (enum cut cut = WHOLE; cut <= RANDOM; cut++) {
            read_case(&r, &bytes, cut, &rng);
            if (!is_wanted(c->wanted, r.verdict.data)) {
                printf("# %s (cut %d): %s, wanted %s: %s\n", c->name, cut, r.verdict.data, c->wanted,
                       r.p.why ? r.p.why : "");
                wrong++;
            }
            reader_close(&r);
        }
        buf_release(&bytes);
    }
    assert_int_equal(wrong, 0);
    (void)state;
}

static void check_text(const char *request, const char *host, const char *path, const char *query)
{
    struct reader r;
    reader_open(&r);
    size_t used;
    assert_int_equal(http_parse(&r.p, request, strlen(request), &used), PARSE_HEAD);
    assert_string_equal(r.head.host, host);
    assert_string_equal(r.head.path, path);
    assert_string_equal(r.head.query, query);
    reader_close(&r);
}

static void targets_are_split(void **state)
{
    check_text(GET "\r\n", "a", "/", "");
    check_text("GET /x/y?a=1&b=?2 HTTP/1.1\r\nHost: h:80\r\n\r\n", "h:80", "/x/y", "a=1&b=?2");
    check_text("GET http://b.example:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "b.example:80", "/x", "y");
    check_text("GET https://b?y HTTP/1.1\r\nHost: a\r\n\r\n", "b", "/", "y");
    check_text("GET HTTP://b HTTP/1.1\r\nHost: a\r\n\r\n", "b", "/", "");
    check_text("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "a", "*", "");
    (void)state;
}

static void a_head_is_read(void **state)
{
    static const char text[] =
        "PUT /up HTTP/1.1\r\nHost: a\r\nX-Two:  b \r\nx-two: c\r\nEmpty:\r\n"
        "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    struct reader r;
    reader_open(&r);
    size_t used, n;
    assert_int_equal(http_parse(&r.p, text, sizeof text - 1, &used), PARSE_HEAD);
    assert_int_equal(r.head.method, METHOD_PUT);
    assert_string_equal(http_header(&r.head, "x-two"), "b");
    assert_string_equal(http_header(&r.head, "empty"), "");
    assert_null(http_header(&r.head, "x-three"));
    assert_true(r.head.chunked && r.head.expects_continue && r.head.keep_alive && !r.head.http10);
    assert_int_equal(r.head.n_headers, 6);
    assert_int_equal(http_parse(&r.p, text + used, sizeof text - 1 - used, &n), PARSE_END);
    assert_int_equal(used + n, sizeof text - 1);
    assert_string_equal(r.body.data, "abcde");
    reader_close(&r);
    (void)state;
}

static void keep_alive_is_told(void **state)
{
    static const struct {
        const char *request;
        bool keep;
    } cases[] = {{GET "\r\n", true},
                 {GET "Connection: close\r\n\r\n", false},
                 {GET "Connection: Keep-Alive, Close\r\n\r\n", false},
                 {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", false},
                 {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader r;
        size_t used;
        reader_open(&r);
        assert_int_equal(http_parse(&r.p, cases[i].request, strlen(cases[i].request), &used), PARSE_HEAD);
        assert_int_equal(r.head.keep_alive, cases[i].keep);
        reader_close(&r);
    }
    (void)state;
}

static void hosts(void **state)
{
    static const char *const good[] = {"a", "a.b-c_d", "127.0.0.1:8321", "[::1]", "[fe80::1]:1", "x:65535"};
    static const char *const bad[] = {"",      ":80", "a:", "a:65536", "a:x", "[::1",  "[]",
                                      "[g::]", "a/b", ".a", "a b",     "a,b", "[::1]x"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(http_host_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(http_host_ok(bad[i]));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(framing_table), cmocka_unit_test(targets_are_split), cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(keep_alive_is_told), cmocka_unit_test(hosts),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(hosts)};
    return http_library() ? cmocka_run_group_tests(with, NULL, NULL)
                          : cmocka_run_group_tests(without, NULL, NULL);
}
