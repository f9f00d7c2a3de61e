/* SPDX-License-Identifier: MIT
 * test_loop.c - the loop without the server: held replies from another thread, clients that leave, deadlines, the end.
 * Also run under ThreadSanitizer. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "server/net/loop.h"

/* Holds what it is given until it is let go: /held waits for `open`, all else is answered at once. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct exchange *waiting;
    unsigned n_waiting;
    unsigned n_forgotten; /* replies in pieces that came to their end */
    bool open, ended;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

enum { PIECES = 5 };

static void wait_at_gate(struct exchange *x)
{
    x->next = gate.waiting;
    gate.waiting = x;
    gate.n_waiting++;
    pthread_cond_broadcast(&gate.change);
}

/* A piece was sent, or the client is gone. */
static void piece_sent(struct exchange *x, bool held)
{
    pthread_mutex_lock(&gate.lock);
    if (held) {
        wait_at_gate(x);
    } else {
        free(x->work);
        gate.n_forgotten++;
        pthread_cond_broadcast(&gate.change);
    }
    pthread_mutex_unlock(&gate.lock);
}

static void *keeper(void *ctx)
{
    pthread_mutex_lock(&gate.lock);
    while (!gate.ended || gate.waiting) {
        while (gate.waiting && gate.open) {
            struct exchange *x = gate.waiting;
            gate.waiting = x->next;
            x->reply.status = 200;
            x->reply.type = "text/plain";
            buf_printf(&x->reply.body, "held %s", x->head.query);
            if (x->more) x->last = ++*(unsigned *)x->work == PIECES;
            exchange_finish(x);
        }
        if (!gate.ended || gate.waiting) pthread_cond_wait(&gate.change, &gate.lock);
    }
    pthread_mutex_unlock(&gate.lock);
    return ctx;
}

static void admit(void *ctx, struct exchange *x)
{
    (void)ctx;
    x->body_max = 1000;
}

static void handle(void *ctx, struct exchange *x)
{
    (void)ctx;
    if (strcmp(x->head.path, "/pieces") == 0) {
        x->work = calloc(1, sizeof(unsigned));
        x->more = piece_sent;
    }
    if (strcmp(x->head.path, "/held") == 0 || x->more) {
        exchange_hold(x);
        pthread_mutex_lock(&gate.lock);
        wait_at_gate(x);
        pthread_mutex_unlock(&gate.lock);
        return;
    }
    x->reply.status = 200;
    x->reply.type = "text/plain";
    buf_printf(&x->reply.body, "%s %.*s", x->head.path, (int)x->body.len, x->body.data);
}

static struct loop *loop;
static pthread_t keeping;

static void open_gate(bool open, bool ended)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    gate.ended = ended;
    if (!open) gate.n_waiting = 0;
    pthread_cond_broadcast(&gate.change);
    pthread_mutex_unlock(&gate.lock);
}

static void wait_for_held(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.n_waiting < n) pthread_cond_wait(&gate.change, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

static void start(struct loop_times times)
{
    struct loop_options o = {
        .threads = 2, .connections_max = 500, .times = times, .app = {NULL, admit, handle}};
    struct sockaddr_in *at = (struct sockaddr_in *)&o.at;
    tare_error err = TARE_ERROR_INIT;
    at->sin_family = AF_INET;
    at->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open_gate(false, false);
    assert_int_equal(pthread_create(&keeping, NULL, keeper, NULL), 0);
    if (loop_open(&loop, &o, &err) != TARE_OK) fail_msg("%s", err.text);
}

static void finish(void)
{
    loop_stop(loop);
    loop_close(loop);
    open_gate(true, true);
    pthread_join(keeping, NULL);
    assert_int_equal(mem_live_blocks(), 0);
}

static int dial(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)loop_port(loop)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All until the server closes. */
static void hear(int fd, char *out, size_t size)
{
    size_t n = 0;
    for (ssize_t k; n < size - 1 && (k = recv(fd, out + n, size - 1 - n, 0)) > 0;) n += (size_t)k;
    out[n] = 0;
    close(fd);
}

#define ASK(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define ASK_LAST(target) "GET " target " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

static void replies_keep_their_order(void **state)
{
    char text[8192];
    start((struct loop_times)LOOP_TIMES);
    int fd = dial();
    say(fd, ASK("/held?1") ASK("/now")
                ASK("/held?2") "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" ASK_LAST(
                    "/held?3"));
    wait_for_held(1);
    open_gate(true, false);
    hear(fd, text, sizeof text);
    const char *at = text;
    static const char *const wanted[] = {"held 1", "/now ", "held 2", "/body hello", "held 3"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        at = strstr(at, wanted[i]);
        assert_non_null(at);
    }
    finish();
    (void)state;
}

/* Half of them leave before their reply is there; the others get it, and nothing leaks. */
static void clients_that_leave(void **state)
{
    enum { N = 200 };
    int fds[N];
    char text[4096];
    struct linger at_once = {1, 0};
    start((struct loop_times)LOOP_TIMES);
    for (int i = 0; i < N; i++) {
        fds[i] = dial();
        say(fds[i], ASK_LAST("/held?x"));
    }
    wait_for_held(N);
    for (int i = 0; i < N; i += 2) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fds[i]);
    }
    open_gate(true, false);
    for (int i = 1; i < N; i += 2) {
        hear(fds[i], text, sizeof text);
        assert_non_null(strstr(text, "held x"));
    }
    finish();
    (void)state;
}

/* Half of them leave before the first piece; the others get all, without a length, until the end; each is told of. */
static void replies_in_pieces(void **state)
{
    enum { N = 100 };
    int fds[N];
    char text[4096];
    struct linger at_once = {1, 0};
    start((struct loop_times)LOOP_TIMES);
    gate.n_forgotten = 0;
    for (int i = 0; i < N; i++) {
        fds[i] = dial();
        say(fds[i], ASK("/pieces?p") ASK("/never")); /* what is sent behind it is never read */
    }
    wait_for_held(N);
    for (int i = 0; i < N; i += 2) {
        setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(fds[i]);
    }
    open_gate(true, false);
    for (int i = 1; i < N; i += 2) {
        hear(fds[i], text, sizeof text);
        assert_null(strstr(text, "Content-Length"));
        const char *body = strstr(text, "\r\n\r\n");
        assert_non_null(body);
        assert_string_equal(body + 4, "held pheld pheld pheld pheld p");
    }
    pthread_mutex_lock(&gate.lock);
    while (gate.n_forgotten < N) pthread_cond_wait(&gate.change, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    finish();
    (void)state;
}

/* The loop ends while a piece is on its way: it is the last. */
static void the_end_ends_replies_in_pieces(void **state)
{
    char text[4096];
    pthread_t stopping;
    start((struct loop_times)LOOP_TIMES);
    int fd = dial(), idle = dial();
    say(fd, ASK("/pieces?p"));
    wait_for_held(1);
    assert_int_equal(pthread_create(&stopping, NULL, (void *(*)(void *))(void (*)(void))loop_stop, loop), 0);
    hear(idle, text, sizeof text);
    open_gate(true, false);
    hear(fd, text, sizeof text);
    assert_non_null(strstr(text, "held p"));
    pthread_join(stopping, NULL);
    loop_close(loop);
    open_gate(true, true);
    pthread_join(keeping, NULL);
    assert_int_equal(mem_live_blocks(), 0);
    (void)state;
}

static void the_end_waits_for_held_replies(void **state)
{
    enum { N = 50 };
    int fds[N];
    char text[4096];
    pthread_t stopping;
    start((struct loop_times)LOOP_TIMES);
    for (int i = 0; i < N; i++) {
        fds[i] = dial();
        say(fds[i], ASK("/held?y"));
    }
    int idle = dial();
    wait_for_held(N);
    assert_int_equal(pthread_create(&stopping, NULL, (void *(*)(void *))(void (*)(void))loop_stop, loop), 0);
    hear(idle, text, sizeof text); /* goes at once */
    assert_string_equal(text, "");
    open_gate(true, false);
    for (int i = 0; i < N; i++) {
        hear(fds[i], text, sizeof text);
        assert_non_null(strstr(text, "held y"));
    }
    pthread_join(stopping, NULL);
    loop_close(loop);
    open_gate(true, true);
    pthread_join(keeping, NULL);
    (void)state;
}

static void idle_connections_end(void **state)
{
    char text[4096];
    struct loop_times times = LOOP_TIMES;
    times.idle = 20;
    start(times);
    hear(dial(), text, sizeof text);
    assert_string_equal(text, "");
    finish();
    (void)state;
}

static void deadlines(void **state)
{
    char text[4096];
    struct loop_times times = LOOP_TIMES;
    times.head = times.window = times.linger = 20;
    start(times);
    int held = dial(); /* a held reply has no deadline: it waits for a disk */
    say(held, ASK_LAST("/held?z"));
    wait_for_held(1);
    static const char *const halves[] = {
        "GET / HTTP/1.1\r\nHos", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nx",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        int fd = dial();
        say(fd, halves[i]);
        hear(fd, text, sizeof text);
        assert_memory_equal(text, "HTTP/1.1 408 ", 13);
    }
    open_gate(true, false);
    hear(held, text, sizeof text);
    assert_non_null(strstr(text, "held z"));
    finish();
    (void)state;
}

static void addresses(void **state)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&s;
    char text[INET6_ADDRSTRLEN];
    v6->sin6_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, "2001:db8::1:2", &v6->sin6_addr), 1);
    struct address a = address_of(&s), g = address_group(&a);
    address_text(&g, text);
    assert_string_equal(text, "2001:db8::");
    assert_false(address_is_loopback(&a));
    assert_int_equal(inet_pton(AF_INET6, "::1", &v6->sin6_addr), 1);
    a = address_of(&s);
    assert_true(address_is_loopback(&a));
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.1.2.3", &v6->sin6_addr), 1);
    a = address_of(&s), g = address_group(&a);
    address_text(&g, text);
    assert_string_equal(text, "10.1.2.3");
    (void)state;
}

int main(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(addresses),          cmocka_unit_test(replies_keep_their_order),
        cmocka_unit_test(clients_that_leave), cmocka_unit_test(the_end_waits_for_held_replies),
        cmocka_unit_test(replies_in_pieces),  cmocka_unit_test(the_end_ends_replies_in_pieces),
        cmocka_unit_test(deadlines), cmocka_unit_test(idle_connections_end),
    };
    const struct CMUnitTest without[] = {cmocka_unit_test(addresses)};
    return http_library() ? cmocka_run_group_tests(with, NULL, NULL)
                          : cmocka_run_group_tests(without, NULL, NULL);
}
