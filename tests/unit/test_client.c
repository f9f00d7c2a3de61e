/* SPDX-License-Identifier: MIT
 * test_client.c - questions to servers that answer well, badly, slowly, too much or not at all. Each server is a thread
 * that plays one row of a table. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "client/client.h"
#include "http/http_parse.h"
#include "tls/tls.h"

/* What a server does with each connection: it reads until the end of a question, writes `say` and then `unit` until the
 * client is gone (`n` < 0) or n times, and waits for the client, or closes. */
struct play {
    const char *say, *unit;
    int n;
    bool stays;       /* reads the next question on this connection, and answers it the same */
    unsigned drip_us; /* between two units */
    /* its own */
    int listening;
    char url[64];
    pthread_t thread;
    unsigned questions, connections;
    char asked[2048];
};

static bool read_question(struct play *p, int fd)
{
    char asked[sizeof p->asked] = "";
    size_t used = 0;
    while (!strstr(asked, "\r\n\r\n") && used < sizeof asked - 1) {
        ssize_t n = recv(fd, asked + used, sizeof asked - 1 - used, 0);
        if (n <= 0) return false;
        used += (size_t)n;
        asked[used] = 0;
    }
    memcpy(p->asked, asked, sizeof asked); /* the test looks at it when the answer has come */
    p->questions++;
    return true;
}

static bool say(int fd, const char *text)
{
    size_t n = strlen(text);
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, text + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += (size_t)sent;
    }
    return true;
}

static void answer(struct play *p, int fd)
{
    bool goes_on = say(fd, p->say);
    for (int i = 0; goes_on && p->unit && (p->n < 0 || i < p->n); i++) {
        if (p->drip_us) usleep(p->drip_us);
        goes_on = say(fd, p->unit);
    }
}

static void *play(void *arg)
{
    struct play *p = arg;
    for (;;) {
        int fd = accept(p->listening, NULL, NULL);
        if (fd < 0) return NULL;
        p->connections++;
        while (read_question(p, fd)) {
            answer(p, fd);
            if (!p->stays) break;
        }
        close(fd);
    }
}

static void play_begin(struct play *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(p->listening, 8), 0);
    assert_int_equal(getsockname(p->listening, (struct sockaddr *)&at, &n), 0);
    snprintf(p->url, sizeof p->url, "http://127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&p->thread, NULL, play, p), 0);
}

static void play_end(struct play *p)
{
    shutdown(p->listening, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->listening);
}

static const struct client_request get = {.method = "GET", .target = "/x?y=1", .harmless = true};
#define OK "HTTP/1.1 200 OK\r\n"
#define LONG_MS 60000u /* a deadline that no test reaches */

/* ---- what must work ---- */

static const struct {
    const char *name, *say, *wanted; /* wanted: the status and the body */
} good[] = {
    {"with its length", OK "Content-Length: 5\r\n\r\nhello", "200 hello"},
    {"of nothing", OK "Content-Length: 0\r\n\r\n", "200 "},
    {"in chunks", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX: y\r\n\r\n",
     "200 hello"},
    {"until the end", OK "\r\nhello", "200 hello"},
    {"of HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", "200 hello"},
    {"204 has no body", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", "204 "},
    {"no reason", "HTTP/1.1 404 \r\nContent-Length: 2\r\n\r\nno", "404 no"},
    {"100 before it", "HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\nhi", "200 hi"},
    {"two before it",
     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK
     "Content-Length: 2\r\n\r\nhi",
     "200 hi"},
    {"more than it says", OK "Content-Length: 2\r\n\r\nhi there", "200 hi"},
    {"a redirect is not followed",
     "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", "302 "},
};

static void good_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct play p = {.say = good[i].say};
        struct client_reply r = CLIENT_REPLY_INIT;
        tare_error err = TARE_ERROR_INIT;
        struct client *c = NULL;
        char got[64];
        play_begin(&p);
        assert_int_equal(client_open(&c, p.url, &(struct client_options){.deadline_ms = LONG_MS}, &err),
                         TARE_OK);
        for (int twice = 0; twice < 2;
             twice++) { /* the server closes each time: the second one connects anew */
            if (client_ask(c, &get, &r, &err) != TARE_OK) fail_msg("%s: %s", good[i].name, err.text);
            snprintf(got, sizeof got, "%u %.*s", r.status, (int)r.body.len, r.body.data);
            if (strcmp(got, good[i].wanted) != 0) fail_msg("%s: %s", good[i].name, got);
        }
        client_close(c);
        client_reply_release(&r);
        play_end(&p);
        assert_int_equal(p.connections, 2);
    }
}

static void a_question_is_as_it_should_be(void **state)
{
    (void)state;
    struct play p = {.say = OK "Content-Length: 0\r\n\r\n", .stays = true};
    struct client_reply r = CLIENT_REPLY_INIT;
    struct client *c = NULL;
    char url[100];
    play_begin(&p);
    snprintf(url, sizeof url, "%s/tare/", p.url);
    struct client_options o = {.deadline_ms = LONG_MS, .token = "tare_read_1_2"};
    assert_int_equal(client_open(&c, url, &o, NULL), TARE_OK);
    assert_int_equal(client_ask(c, &get, &r, NULL), TARE_OK);
    assert_ptr_equal(strstr(p.asked, "GET /tare/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:"), p.asked);
    assert_non_null(strstr(p.asked, "\r\nAuthorization: Bearer tare_read_1_2\r\n"));
    assert_null(strstr(p.asked, "Content-Length"));
    struct client_request post = {
        .method = "POST", .target = "/", .type = "text/plain", .body = "abc", .n = 3};
    assert_int_equal(client_ask(c, &post, &r, NULL), TARE_OK);
    assert_non_null(strstr(p.asked, "\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc"));
    client_close(c);
    client_reply_release(&r);
    play_end(&p);
    assert_int_equal(p.questions, 2);
    assert_int_equal(p.connections, 1); /* kept alive */
}

/* ---- what must not ---- */

static const struct {
    const char *name;
    struct play play;
    tare_status wanted;
    const char *text; /* in the error */
} bad[] = {
    {"nothing", {.say = ""}, TARE_IO, "without a reply"},
    {"half a head", {.say = "HTTP/1.1 200 OK\r\nContent-"}, TARE_FORMAT, "ends in the middle"},
    {"half a body", {.say = OK "Content-Length: 10\r\n\r\nhalf"}, TARE_FORMAT, "ends in the middle"},
    {"half a chunk",
     {.say = OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhe"},
     TARE_FORMAT,
     "ends in the middle"},
    {"no last chunk",
     {.say = OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n"},
     TARE_FORMAT,
     "ends in the middle"},
    {"only 100", {.say = "HTTP/1.1 100 Continue\r\n\r\n"}, TARE_FORMAT, "ends in the middle"},
    {"an endless head",
     {.say = OK, .unit = "X-Y: zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\r\n", .n = -1},
     TARE_FORMAT,
     "too many headers"},
    {"an endless header",
     {.say = OK "X: ", .unit = "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", .n = -1},
     TARE_FORMAT,
     "head is too large"},
    {"too many headers", {.say = OK, .unit = "X: y\r\n", .n = -1}, TARE_FORMAT, "too many headers"},
    {"endless 100s",
     {.say = "", .unit = "HTTP/1.1 100 Continue\r\n\r\n", .n = -1},
     TARE_FORMAT,
     "nothing but"},
    {"an endless body",
     {.say = OK "\r\n", .unit = "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", .n = -1},
     TARE_FORMAT,
     "larger than 4096 bytes"},
    {"endless chunks",
     {.say = OK "Transfer-Encoding: chunked\r\n\r\n", .unit = "10\r\n0123456789abcdef\r\n", .n = -1},
     TARE_FORMAT,
     "larger than 4096 bytes"},
    {"a huge length",
     {.say = OK "Content-Length: 99999999999999999999999\r\n\r\n"},
     TARE_FORMAT,
     "no reply of HTTP/1.1"},
    {"two lengths",
     {.say = OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"},
     TARE_FORMAT,
     "the reply is bad"},
    {"length and chunks",
     {.say = OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
     TARE_FORMAT,
     "the reply is bad"},
    {"chunked and a tab",
     {.say = OK "Transfer-Encoding: chunked\t\r\n\r\n1\r\na\r\n0\r\n\r\n"},
     TARE_FORMAT,
     "the reply is bad"},
    {"another coding", {.say = OK "Transfer-Encoding: gzip\r\n\r\nxx"}, TARE_FORMAT, "the reply is bad"},
    {"no HTTP", {.say = "SSH-2.0-OpenSSH_9.2\r\n"}, TARE_FORMAT, "no reply of HTTP/1.1"},
    {"HTTP/2.0", {.say = "HTTP/2.0 200 OK\r\n\r\n"}, TARE_FORMAT, "HTTP/1"},
    {"101",
     {.say = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"},
     TARE_FORMAT,
     "no status of a reply"},
    {"a NUL", {.say = OK "X: a\x01\r\n\r\n"}, TARE_FORMAT, "the reply is bad"},
    {"bare LF", {.say = "HTTP/1.1 200 OK\nContent-Length: 0\n\n"}, TARE_FORMAT, "the reply is bad"},
};

static void bad_replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct play p = bad[i].play;
        struct client_reply r = CLIENT_REPLY_INIT;
        tare_error err = TARE_ERROR_INIT;
        struct client *c = NULL;
        play_begin(&p);
        struct client_options o = {.deadline_ms = LONG_MS, .reply_max = 4096, .token = "tare_secret"};
        assert_int_equal(client_open(&c, p.url, &o, NULL), TARE_OK);
        tare_status s = client_ask(c, &get, &r, &err);
        if (s != bad[i].wanted || !strstr(err.text, bad[i].text))
            fail_msg("%s: %d: %s", bad[i].name, s, err.text);
        assert_ptr_equal(strstr(err.text, p.url), err.text); /* which server */
        assert_null(strstr(err.text, "tare_secret"));
        client_close(c);
        client_reply_release(&r);
        play_end(&p);
    }
}

/* A deadline is of the whole: bytes that come now and then do not move it. */
static void slow_servers(void **state)
{
    (void)state;
    static const struct play slow[] = {
        {.say = "", .unit = "", .n = -1, .drip_us = 1000, .stays = true},
        {.say = OK "X: ", .unit = "y", .n = -1, .drip_us = 1000},
        {.say = OK "Content-Length: 1000000\r\n\r\n", .unit = "y", .n = -1, .drip_us = 1000},
    };
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++) {
        struct play p = slow[i];
        struct client_reply r = CLIENT_REPLY_INIT;
        tare_error err = TARE_ERROR_INIT;
        struct client *c = NULL;
        if (i == 0) p.n = 0; /* reads, and never says anything */
        play_begin(&p);
        assert_int_equal(client_open(&c, p.url, &(struct client_options){.deadline_ms = 100}, NULL), TARE_OK);
        assert_int_equal(client_ask(c, &get, &r, &err), TARE_IO);
        assert_non_null(strstr(err.text, "no answer in 100 ms"));
        client_close(c);
        client_reply_release(&r);
        play_end(&p);
    }
}

/* The deadline holds for the handshake, too: this one reads its first bytes and says nothing. */
static void a_handshake_that_does_not_come(void **state)
{
    (void)state;
    struct play p = {.say = "", .stays = true};
    struct client_reply r = CLIENT_REPLY_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct client *c = NULL;
    char url[80];
    if (!tls_available()) skip();
    play_begin(&p);
    snprintf(url, sizeof url, "https%.*s", (int)sizeof p.url, p.url + strlen("http"));
    assert_int_equal(client_open(&c, url, &(struct client_options){.deadline_ms = 100}, NULL), TARE_OK);
    assert_int_equal(client_ask(c, &get, &r, &err), TARE_IO);
    assert_non_null(strstr(err.text, "no answer in time"));
    client_close(c);
    client_reply_release(&r);
    play_end(&p);
    assert_int_equal(p.questions, 0); /* nothing was said in the clear */
}

/* It answers while the question is still on its way, and reads no more. */
static void an_early_answer_is_heard(void **state)
{
    (void)state;
    struct play p = {.say = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno", .stays = true};
    struct client_reply r = CLIENT_REPLY_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct client *c = NULL;
    size_t n = 32 << 20;
    char *body = calloc(1, n);
    memset(body, 'x', n);
    play_begin(&p);
    struct client_request post = {
        .method = "POST", .target = "/", .type = "text/plain", .body = body, .n = n};
    assert_int_equal(client_open(&c, p.url, &(struct client_options){.deadline_ms = LONG_MS}, NULL), TARE_OK);
    if (client_ask(c, &post, &r, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_int_equal(r.status, 413);
    client_close(c);
    client_reply_release(&r);
    play_end(&p);
    free(body);
}

static void urls(void **state)
{
    (void)state;
    static const struct {
        const char *url, *text; /* NULL: good, and `text` is its plain form */
        bool good;
    } all[] = {
        {"http://a", "http://a", true},
        {"HTTP://a.b:8321/", "http://a.b:8321", true},
        {"http://[::1]:80/x//", "http://[::1]:80/x", true},
        {"a", "is no URL of a server", false},
        {"", "is no URL of a server", false},
        {"ftp://a", "is no URL of a server", false},
        {"http://", "has no good host", false},
        {"http:///x", "has no good host", false},
        {"http://a b/", "has no good host", false},
        {"http://a:99999/", "has no good host", false},
        {"http://me:pw@a/", "no password", false},
        {"http://a/x y", "no good path", false},
        {"http://a/\r\nX: y", "no good path", false},
        {"http://a/x?y", "no good path", false},
        {"http://a/#y", "no good path", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct client *c = NULL;
        tare_error err = TARE_ERROR_INIT;
        tare_status s = client_open(&c, all[i].url, &(struct client_options){0}, &err);
        assert_int_equal(s, all[i].good ? TARE_OK : TARE_INVALID);
        if (!strstr(all[i].good ? client_url(c) : err.text, all[i].text))
            fail_msg("%s: %s", all[i].url, err.text);
        assert_null(strstr(err.text, "pw@"));
        client_close(c);
    }
    static const struct {
        const char *url;
        bool good; /* with a token */
    } seen[] = {{"http://localhost", true},
                {"http://127.0.0.1:1", true},
                {"http://[::1]", true},
                {"http://a", false}};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        struct client *c = NULL;
        tare_status s = client_open(&c, seen[i].url, &(struct client_options){.token = "x"}, NULL);
        assert_int_equal(s, seen[i].good ? TARE_OK : TARE_INVALID);
        client_close(c);
    }
    static const char *const tokens[] = {"a b", "a\r\nX: y", "\x80"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct client *c = NULL;
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(
            client_open(&c, "http://localhost", &(struct client_options){.token = tokens[i]}, &err),
            TARE_INVALID);
        assert_null(strstr(err.text, tokens[i]));
    }
}

static void nobody_is_there(void **state)
{
    (void)state;
    struct play p = {.say = ""};
    struct client_reply r = CLIENT_REPLY_INIT;
    tare_error err = TARE_ERROR_INIT;
    struct client *c = NULL;
    play_begin(&p);
    play_end(&p);
    assert_int_equal(client_open(&c, p.url, &(struct client_options){0}, NULL), TARE_OK);
    assert_int_equal(client_ask(c, &get, &r, &err), TARE_IO);
    assert_non_null(strstr(err.text, "Connection refused"));
    client_close(c);
    client_reply_release(&r);
}

static void escapes(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    client_escape(&b, "a-b_c.d~9 &=%/\xc3\xa4");
    assert_string_equal(b.data, "a-b_c.d~9%20%26%3D%25%2F%C3%A4");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_replies),        cmocka_unit_test(a_question_is_as_it_should_be),
        cmocka_unit_test(bad_replies),         cmocka_unit_test(slow_servers),
        cmocka_unit_test(a_handshake_that_does_not_come),
        cmocka_unit_test(an_early_answer_is_heard), cmocka_unit_test(urls),
        cmocka_unit_test(nobody_is_there),     cmocka_unit_test(escapes),
    };
    if (!http_library()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
