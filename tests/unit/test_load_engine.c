/* SPDX-License-Identifier: MIT
 * test_load_engine.c - windows of load on a server of this process, which answers well, badly, late or not at all. What
 * is held is what became of each request, never how long it took. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "load/engine.h"

#define MS UINT64_C(1000000)
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* What the server does with a request. */
enum manner { ANSWERS, CLOSES_AFTER, SILENT, RESETS, HALF, FIRST_SILENT };

static struct server {
    int listening;
    unsigned port;
    const char *say;
    enum manner manner;
    int idle_closes; /* connections that are closed after their first answer, while idle */
    int requests, connections;
    pthread_t thread;
} server;

static bool read_request(int fd)
{
    char room[4096];
    size_t used = 0;
    while (used < sizeof room - 1) {
        ssize_t n = recv(fd, room + used, sizeof room - 1 - used, 0);
        if (n <= 0) return false;
        used += (size_t)n;
        room[used] = 0;
        if (strstr(room, "\r\n\r\n")) return true;
    }
    return false;
}

static void reset(int fd)
{
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    while (read_request(fd)) {
        int before = __atomic_fetch_add(&server.requests, 1, __ATOMIC_RELAXED);
        if (server.manner == SILENT || (server.manner == FIRST_SILENT && before == 0)) continue;
        if (server.manner == RESETS) reset(fd);
        if (server.manner == RESETS) break;
        size_t n = strlen(server.say);
        if (server.manner == HALF) n /= 2;
        if (send(fd, server.say, n, MSG_NOSIGNAL) < 0) break;
        bool drops = __atomic_sub_fetch(&server.idle_closes, 1, __ATOMIC_RELAXED) >= 0;
        if (drops || server.manner == CLOSES_AFTER || server.manner == HALF) break;
    }
    close(fd);
    return NULL;
}

static void *accept_all(void *unused)
{
    for (;;) {
        int fd = accept(server.listening, NULL, NULL);
        if (fd < 0) return unused;
        pthread_t thread;
        __atomic_add_fetch(&server.connections, 1, __ATOMIC_RELAXED);
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
        else
            close(fd);
    }
}

static void begin_server(enum manner manner, const char *say)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    server = (struct server){.manner = manner, .say = say};
    server.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(server.listening, 128), 0);
    assert_int_equal(getsockname(server.listening, (struct sockaddr *)&at, &n), 0);
    server.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, accept_all, NULL), 0);
}

static void end_server(void)
{
    shutdown(server.listening, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.listening);
}

/* One window on the server, on a fresh engine. */
static struct load_result result;

static void run_window(struct load_options o, struct load_window w)
{
    char url[64];
    struct load_engine *e = NULL;
    tare_error err = TARE_ERROR_INIT;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/x", server.port);
    o.url = url;
    if (load_open(&e, &o, &err) < 0) fail_msg("%s", err.text);
    if (load_run(e, &w, &result, &err) < 0) fail_msg("%s", err.text);
    load_close(e);
}

static size_t count_of(enum load_fault fault)
{
    size_t n = 0;
    for (size_t i = 0; i < result.outcomes.n; i++) n += result.outcomes.items[i].fault == fault;
    return n;
}

static const struct load_window some = {.concurrency = 3, .most = 30, .window_ns = UINT64_MAX / 4};

/* ---- what must work ---- */

static void closed_loop(void **state)
{
    (void)state;
    begin_server(ANSWERS, OK);
    run_window((struct load_options){.timeout_ns = 20000 * MS}, some);
    assert_int_equal(result.outcomes.n, 30);
    assert_int_equal(count_of(LOAD_NONE), 30);
    assert_in_range(result.connected, 1, 3);
    assert_int_equal(server.requests, 30);
    for (size_t i = 0; i < result.outcomes.n; i++) {
        const struct load_outcome *o = &result.outcomes.items[i];
        assert_true(o->planned <= o->sent && o->sent <= o->first_byte && o->first_byte <= o->end);
        assert_int_equal(o->status, 200);
        assert_int_equal(o->bytes, 5);
    }
    assert_string_equal(result.failure, "");
    end_server();
}

static void open_loop_keeps_its_plan(void **state)
{
    (void)state;
    enum { N = 40 };
    uint64_t arrivals[N];
    for (size_t i = 0; i < N; i++) arrivals[i] = i * MS;
    begin_server(ANSWERS, OK);
    run_window((struct load_options){.timeout_ns = 20000 * MS, .connections = 2},
               (struct load_window){.arrivals = arrivals, .n_arrivals = N, .window_ns = N * MS});
    assert_int_equal(count_of(LOAD_NONE), N);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(result.outcomes.items[i].planned - result.began_ns, arrivals[i]);
    assert_in_range(result.most_open, 1, 2);
    end_server();
}

static void a_connection_for_each(void **state)
{
    (void)state;
    begin_server(ANSWERS, OK);
    run_window((struct load_options){.timeout_ns = 20000 * MS, .fresh = true}, some);
    assert_int_equal(count_of(LOAD_NONE), 30);
    assert_int_equal(result.connected, 30);
    end_server();
}

static void a_server_that_closes_each(void **state)
{
    (void)state;
    begin_server(CLOSES_AFTER, "HTTP/1.1 200 OK\r\n\r\nuntil the end");
    run_window((struct load_options){.timeout_ns = 20000 * MS}, some);
    assert_int_equal(count_of(LOAD_NONE), 30);
    assert_int_equal(result.connected, 30);
    end_server();
}

/* Whoever closes an idle connection costs no request, whether it is seen before the next one is sent or after. */
static void idle_connections_that_end(void **state)
{
    (void)state;
    begin_server(ANSWERS, OK);
    server.idle_closes = 10;
    run_window((struct load_options){.timeout_ns = 20000 * MS}, some);
    assert_int_equal(count_of(LOAD_NONE), 30);
    assert_true(result.connected >= 11);
    end_server();
}

/* ---- what must be told ---- */

static void expect_fault(enum manner manner, const char *say, struct load_options o, enum load_fault fault)
{
    begin_server(manner, say);
    if (!o.timeout_ns) o.timeout_ns = 20000 * MS;
    run_window(o, (struct load_window){.concurrency = 1, .most = 2, .window_ns = UINT64_MAX / 4});
    if (count_of(fault) != 2)
        fail_msg("%u of 2 %s: %s, %s", (unsigned)count_of(fault), load_fault_word(fault),
                 load_fault_word(result.outcomes.items[0].fault), result.failure);
    assert_string_not_equal(result.failure, "");
    end_server();
}

static void faults(void **state)
{
    (void)state;
    expect_fault(SILENT, OK, (struct load_options){.timeout_ns = 30 * MS}, LOAD_TIMEOUT);
    assert_true(result.outcomes.items[0].end - result.outcomes.items[0].planned >= 30 * MS);
    expect_fault(RESETS, OK, (struct load_options){0}, LOAD_RESET);
    expect_fault(HALF, OK, (struct load_options){0}, LOAD_CUT);
    expect_fault(ANSWERS, "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", (struct load_options){0},
                 LOAD_STATUS);
    assert_non_null(strstr(result.failure, "status 500"));
    assert_non_null(strstr(result.failure, "oops"));
    expect_fault(ANSWERS, OK, (struct load_options){.expect_status = 201}, LOAD_STATUS);
    expect_fault(ANSWERS, OK, (struct load_options){.expect_body = "other"}, LOAD_BODY);
    expect_fault(ANSWERS, OK, (struct load_options){.body_max = 4}, LOAD_TOO_LARGE);
    expect_fault(ANSWERS, "220 mail ESMTP\r\n", (struct load_options){0}, LOAD_INVALID);
}

static void nobody_is_there(void **state)
{
    (void)state;
    begin_server(ANSWERS, OK);
    end_server(); /* the port is free now */
    run_window((struct load_options){.timeout_ns = 5000 * MS},
               (struct load_window){.concurrency = 1, .window_ns = UINT64_MAX / 4});
    assert_true(result.hopeless);
    assert_int_equal(count_of(LOAD_REFUSED), result.outcomes.n);
    assert_non_null(strstr(result.failure, "refused"));
}

static void queued_requests_time_out_too(void **state)
{
    (void)state;
    static const uint64_t arrivals[] = {0, 0, 0};
    begin_server(SILENT, OK);
    run_window((struct load_options){.timeout_ns = 50 * MS, .connections = 1},
               (struct load_window){.arrivals = arrivals, .n_arrivals = 3, .window_ns = MS});
    assert_int_equal(count_of(LOAD_TIMEOUT), 3);
    assert_true(result.outcomes.items[2].flags & LOAD_QUEUED);
    end_server();
}

static void an_interruption_leaves_them_open(void **state)
{
    (void)state;
    static volatile sig_atomic_t stop;
    static const uint64_t arrivals[] = {0, 0, 3600000 * MS};
    stop = 1;
    begin_server(SILENT, OK);
    run_window((struct load_options){.timeout_ns = 20000 * MS, .interrupted = &stop},
               (struct load_window){.arrivals = arrivals, .n_arrivals = 3, .window_ns = 3600001 * MS});
    assert_true(result.interrupted);
    assert_int_equal(count_of(LOAD_OPEN), result.outcomes.n);
    end_server();
}

static void too_many_connections(void **state)
{
    (void)state;
    unsigned n = 0;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(load_connections(4000000000U, &n, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "open files"));
    assert_int_equal(load_connections(0, &n, &err), TARE_OK);
    assert_true(n > 0);
}

/* What stands behind the end of an answer is no other answer; its connection is not used again. */
static void more_than_was_announced(void **state)
{
    (void)state;
    begin_server(ANSWERS, OK "more");
    run_window((struct load_options){0}, some);
    end_server();
    assert_int_equal(count_of(LOAD_NONE), 30);
    assert_int_equal(result.surplus, 30);
    assert_int_equal(result.connected, 30);
}

/* However long a window is, what is kept of it stays as large: evenly over all of it, and the counts are of all. */
static void memory_does_not_grow_with_requests(void **state)
{
    (void)state;
    enum { KEEP = 64, MANY = 3000 };
    struct load_window w = {.concurrency = 3, .most = MANY, .window_ns = UINT64_MAX / 4};
    begin_server(ANSWERS, OK);
    run_window((struct load_options){.keep = KEEP}, w);
    end_server();
    assert_int_equal(result.counts.due, MANY);
    assert_int_equal(result.counts.answered, MANY);
    assert_int_equal(result.counts.statuses[200], MANY);
    assert_true(result.outcomes.cap <= KEEP);
    assert_int_equal(result.one_in, 64);
    assert_int_equal(result.outcomes.n, (MANY + 63) / 64);
    uint64_t longest = 0;
    for (size_t i = 0; i < result.outcomes.n; i++) {
        const struct load_outcome *o = &result.outcomes.items[i];
        assert_int_equal(o->number, 64 * i);
        assert_true(load_took(o) <= result.counts.longest);
        if (o->end > longest) longest = o->end;
    }
    assert_true(result.counts.last_answer >= longest);
}

/* One that is never answered holds back those after it, and no longer than until it is given up. */
static void one_stays_open_while_others_come(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static uint64_t arrivals[MANY];
    for (size_t i = 0; i < MANY; i++) arrivals[i] = i * MS / 50;
    begin_server(FIRST_SILENT, OK);
    run_window((struct load_options){.keep = 64, .timeout_ns = 300 * MS, .connections = 8},
               (struct load_window){.arrivals = arrivals, .n_arrivals = MANY, .window_ns = 60 * MS});
    end_server();
    assert_int_equal(result.counts.due, MANY);
    assert_int_equal(result.counts.answered + result.counts.failed, MANY);
    assert_int_equal(result.counts.open, 0);
    assert_true(result.outcomes.n <= 64);
    for (size_t i = 1; i < result.outcomes.n; i++)
        assert_true(result.outcomes.items[i].planned >= result.outcomes.items[i - 1].planned);
}

static int release(void **state)
{
    (void)state;
    load_result_release(&result);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_loop),
        cmocka_unit_test(open_loop_keeps_its_plan),
        cmocka_unit_test(a_connection_for_each),
        cmocka_unit_test(a_server_that_closes_each),
        cmocka_unit_test(idle_connections_that_end),
        cmocka_unit_test(faults),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(queued_requests_time_out_too),
        cmocka_unit_test(an_interruption_leaves_them_open),
        cmocka_unit_test(too_many_connections),
        cmocka_unit_test(more_than_was_announced),
        cmocka_unit_test(memory_does_not_grow_with_requests),
        cmocka_unit_test(one_stays_open_while_others_come),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, release);
}
