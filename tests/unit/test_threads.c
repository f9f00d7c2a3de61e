/* SPDX-License-Identifier: MIT
 * test_threads.c - recording from many threads and from signal handlers: slots used again, scopes in thread-exit
 * destructors, ends in the wrong thread, stopping while others record. Also run under ThreadSanitizer. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "trace_fixture.h"
#include "analyze/calls/calltree.h"
#include "tare/tare.h"

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
enum { UNDER_TSAN = 1 };
#else
enum { UNDER_TSAN = 0 };
#endif

static struct folder here;

static void start(uint32_t mode, uint32_t weigh_one_in)
{
    tare_options o = TARE_OPTIONS_INIT;
    tare_error err = TARE_ERROR_INIT;
    o.path = here.trace;
    o.mode = mode;
    o.weigh_one_in = weigh_one_in;
    if (tare_start(&o, &err) != TARE_OK) fail_msg("%s", err.text);
}

static struct trace *stop(void)
{
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (tare_stop(&err) != TARE_OK || trace_open(&t, here.trace, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_string_equal(trace_loss(t)->first, "");
    folder_empty(here.path);
    return t;
}

/* Calls of all scopes named `name`, wherever they are in the tree. */
static uint64_t calls_of(struct trace *t, const char *name)
{
    struct calltree tree = CALLTREE_INIT;
    uint64_t n = 0;
    assert_int_equal(calltree_build(&tree, t, -1, NULL), TARE_OK);
    for (uint32_t i = 1; i < tree.n_nodes; i++)
        if (strcmp(trace_site(t, tree.nodes[i].site)->name, name) == 0) n += tree.nodes[i].count;
    calltree_release(&tree);
    return n;
}

static struct seen events_of(struct trace *t)
{
    struct seen s;
    assert_int_equal(see_events(t, &s, NULL), TARE_OK);
    assert_false(s.unnested || s.unordered);
    return s;
}

static void work(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("work");
        TARE_SCOPE("part");
        tare_count("items", 1);
    }
}

static void *worker(void *arg)
{
    work(*(const int *)arg);
    return NULL;
}

/* ---- many threads ---- */

static void threads_side_by_side(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    static int each = 5000;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        pthread_t thread[THREADS];
        start(mode, 64);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, worker, &each), 0);
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        struct trace *t = stop();
        assert_int_equal(trace_loss(t)->dropped, 0);
        assert_int_equal(calls_of(t, "work"), THREADS * each);
        assert_int_equal(calls_of(t, "part"), THREADS * each);
        assert_int_equal(calls_of(t, "items"), THREADS * each);
        assert_int_equal(trace_n_threads(t), THREADS);
        if (mode & TARE_EVENTS) events_of(t);
        trace_close(t);
    }
}

/* More threads one after another than there are fresh slots: later ones take over. */
static void threads_one_after_another(void **state)
{
    (void)state;
    enum { THREADS = 700 };
    static int each = 3;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        start(mode, 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, worker, &each), 0);
            pthread_join(thread, NULL);
        }
        struct trace *t = stop();
        assert_int_equal(trace_loss(t)->dropped, 0);
        assert_int_equal(calls_of(t, "work"), THREADS * each);
        if (mode & TARE_EVENTS) {
            assert_int_equal(trace_n_threads(t), THREADS);
            assert_int_equal(events_of(t).begins, 2 * THREADS * each);
        }
        trace_close(t);
    }
}

/* A thread that ends inside its scopes leaves nothing behind for the one that takes its slot. */
static void *ends_inside(void *unused)
{
    (void)unused;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "never ended", "", 0);
    tare_scope a, b;
    work(100); /* with every call weighed: it may end inside one */
    tare_begin(&a, site);
    tare_begin(&b, site);
    pthread_exit(NULL);
}

static void threads_that_end_inside_scopes(void **state)
{
    (void)state;
    enum { THREADS = 400 };
    static int each = 2;
    start(3, 1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, i % 2 ? worker : ends_inside, &each), 0);
        pthread_join(thread, NULL);
    }
    struct trace *t = stop();
    struct seen s = events_of(t);
    assert_int_equal(calls_of(t, "work"), THREADS / 2 * (100 + each));
    assert_true(s.synthetic >= THREADS / 2 && s.synthetic <= THREADS);
    assert_int_equal(trace_loss(t)->unclosed_scopes, s.synthetic);
    assert_int_equal(trace_loss(t)->foreign_scopes, 0);
    trace_close(t);
}

static pthread_key_t key;

static void at_exit(void *arg)
{
    TARE_SCOPE("destructor");
    if (--*(int *)arg > 0) pthread_setspecific(key, arg); /* glibc asks up to four times */
}

static void *with_destructor(void *arg)
{
    pthread_setspecific(key, arg);
    work(5);
    return NULL;
}

static void scopes_in_thread_exit_destructors(void **state)
{
    (void)state;
    enum { THREADS = 50 };
    const int rounds = UNDER_TSAN ? 1 : 3; /* ThreadSanitizer itself is gone in the later rounds */
    assert_int_equal(pthread_key_create(&key, at_exit), 0);
    start(3, 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        int left = rounds;
        assert_int_equal(pthread_create(&thread, NULL, with_destructor, &left), 0);
        pthread_join(thread, NULL);
        assert_int_equal(left, 0);
    }
    struct trace *t = stop();
    pthread_key_delete(key);
    assert_int_equal(calls_of(t, "destructor") + trace_loss(t)->dropped, rounds * THREADS);
    assert_int_equal(calls_of(t, "work"), 5 * THREADS);
    trace_close(t);
}

/* ---- an end in another thread ---- */

static void *ends_it(void *arg)
{
    work(1); /* known here */
    tare_end(arg);
    return NULL;
}

static void an_end_in_another_thread_is_foreign(void **state)
{
    (void)state;
    tare_site *site = tare_site_new(TARE_SITE_SCOPE, "handed over", "", 0);
    tare_scope scope, outer;
    pthread_t thread;
    start(3, 0);
    tare_begin(&outer, site);
    tare_begin(&scope, site);
    assert_int_equal(pthread_create(&thread, NULL, ends_it, &scope), 0);
    pthread_join(thread, NULL);
    tare_end(&outer); /* the inner one was never ended here: abandoned */
    struct trace *t = stop();
    struct seen s = events_of(t);
    assert_int_equal(trace_loss(t)->foreign_scopes, 1);
    assert_int_equal(trace_loss(t)->abandoned_scopes, 1);
    assert_int_equal(s.begins, 4);
    assert_int_equal(s.synthetic, 1);
    trace_close(t);
}

/* ---- stopping while others record ---- */

static volatile int go_on;

static void *never_rests(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&go_on, __ATOMIC_RELAXED)) work(10);
    return NULL;
}

static void stopping_under_way(void **state)
{
    (void)state;
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    /* What is folded in is still being counted on: plain adds, one instruction each, which is what makes them safe
     * against signal handlers. A count may be one behind, and ThreadSanitizer is right to see it. */
    if (UNDER_TSAN) skip();
    go_on = 1;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, never_rests, NULL), 0);
    for (int k = 0; k < 20; k++) {
        start(1 + (uint32_t)k % 3, 4);
        nanosleep(&(struct timespec){0, 3000000}, NULL);
        work(10);
        struct trace *t = stop();
        assert_true(calls_of(t, "work") >= 10);
        events_of(t);
        trace_close(t);
    }
    __atomic_store_n(&go_on, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}

/* ---- signal handlers ---- */

static volatile uint64_t handled;

static void on_alarm(int unused)
{
    int saved = errno;
    (void)unused;
    {
        TARE_SCOPE("handler");
        TARE_SCOPE("within");
    }
    {
        TARE_SCOPE("second");
    }
    handled++;
    errno = saved;
}

static bool handle_alarms(int us, int flags)
{
    struct sigaction act = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | flags};
    struct itimerval every = {{0, us}, {0, us}};
    sigemptyset(&act.sa_mask);
    return sigaction(SIGALRM, &act, NULL) == 0 && setitimer(ITIMER_REAL, &every, NULL) == 0;
}

static void no_more_alarms(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
}

/* Records for so long, and on a busy machine until enough alarms came through (or none will). No asserts: a failing one
 * in a thread jumps to the stack of another, which ends the program without a word. */
static uint64_t busy_for(int ms, int n)
{
    enum { ALARMS = 100, PATIENCE_MS = 60000 };
    struct timespec from, now;
    uint64_t calls = 0;
    long took_ms;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        work(n);
        calls += (uint64_t)n;
        clock_gettime(CLOCK_MONOTONIC, &now);
        took_ms = (now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000;
    } while (took_ms < ms || (handled <= ALARMS && took_ms < PATIENCE_MS));
    return calls;
}

static uint64_t hot_loop(int flags)
{
    handled = 0;
    uint64_t calls = handle_alarms(200, flags) ? busy_for(400, 100) : 0;
    no_more_alarms();
    return calls;
}

/* Weighing leaves a handler's scopes out like others, so it is off where they are counted one by one. */
static void check_hot_loop(uint32_t mode, uint64_t calls)
{
    struct trace *t = stop();
    uint64_t lost = trace_loss(t)->dropped;
    uint64_t in_handlers = calls_of(t, "handler") + calls_of(t, "within") + calls_of(t, "second");
    assert_true(handled > 100);
    assert_true(in_handlers <= 3 * handled && in_handlers + lost >= 3 * handled);
    uint64_t in_loop = calls_of(t, "work") + calls_of(t, "part");
    assert_true(in_loop <= 2 * calls && in_loop + lost >= 2 * calls);
    assert_int_equal(trace_loss(t)->abandoned_scopes, 0);
    assert_int_equal(trace_loss(t)->foreign_scopes, 0);
    assert_int_equal(trace_n_threads(t), 1);
    if (mode & TARE_EVENTS) events_of(t);
    trace_close(t);
}

/* What a handler does that fills up the chunk in which the code below it has taken a place: the event gets there, and
 * not into a chunk that the helper has archived and cleared. */
static void a_place_is_written_to_late(void **state)
{
    (void)state;
#ifdef TARE_NO_INLINE
    skip(); /* the places are the library's own affair */
#else
    enum { FILLS = 500 }; /* more than the first chunk, and fewer than the two */
    start(TARE_EVENTS, 0);
    tare_site *mark = tare_site_new(TARE_SITE_MARK, "late", "test", 1);
    tare_site_mark(mark, "at once");
    work(1);
    uint64_t place = tare_event_(tare_self_), ticks = tare_ticks_(0), limit = tare_self_->limit;
    assert_true(place != 0);
    work(FILLS);
    assert_true(tare_self_->limit != limit);
    nanosleep(&(struct timespec){0, 200000000}, NULL); /* the helper has archived what it was given */
    tare_publish_(place, 4 | mark->id << 32, ticks);
    work(2 * FILLS);
    struct trace *t = stop();
    struct seen s = events_of(t);
    assert_int_equal(trace_loss(t)->dropped, 0);
    assert_int_equal(s.marks, 2);
    trace_close(t);
#endif
}

static void signal_handlers_nest_anywhere(void **state)
{
    (void)state;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        start(mode, 0);
        check_hot_loop(mode, hot_loop(0));
    }
}

struct two_stacks {
    char *second;
    uint64_t calls; /* 0: it could not be arranged */
};

/* With the handler's stack above the thread's own, so that addresses alone would mislead. */
static void *hot_on_two_stacks(void *arg)
{
    struct two_stacks *on = arg;
    stack_t ss = {.ss_sp = on->second, .ss_size = 256 << 10};
    if (sigaltstack(&ss, NULL) < 0) return NULL;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    on->calls = hot_loop(SA_ONSTACK);
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
    return NULL;
}

static void handlers_on_a_stack_of_their_own(void **state)
{
    (void)state;
    enum { STACK = 4 << 20 };
    char *both =
        mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert_true(both != MAP_FAILED);
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL); /* they are for that thread */
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstack(&attr, both, STACK), 0);
    for (uint32_t mode = 1; mode <= 3; mode++) {
        struct two_stacks on = {both + STACK, 0};
        start(mode, 0);
        assert_int_equal(pthread_create(&thread, &attr, hot_on_two_stacks, &on), 0);
        pthread_join(thread, NULL);
        assert_true(on.calls > 0);
        check_hot_loop(mode, on.calls);
    }
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    pthread_attr_destroy(&attr);
    munmap(both, 2 * STACK);
}

static void handlers_while_weighing(void **state)
{
    (void)state;
    handled = 0;
    start(3, 2);
    assert_true(handle_alarms(150, 0));
    uint64_t calls = busy_for(600, 100);
    no_more_alarms();
    struct trace *t = stop();
    uint64_t lost = trace_loss(t)->dropped;
    assert_true(handled > 100);
    assert_int_equal(trace_n_threads(t), 1); /* never taken for a new thread */
    assert_true(calls_of(t, "work") <= calls && calls_of(t, "work") + lost >= calls);
    assert_int_equal(trace_loss(t)->foreign_scopes, 0);
    events_of(t);
    trace_close(t);
}

/* New names in handlers, in the mode without a tree: the lock that numbers them may be held by the code below. */
static tare_site *names[4000];
static volatile unsigned next_name;

static void use_next_name(void)
{
    unsigned i = __atomic_fetch_add(&next_name, 1, __ATOMIC_RELAXED);
    if (i < sizeof names / sizeof *names) {
        tare_scope s;
        tare_begin(&s, names[i]);
        tare_end(&s);
    }
}

static void on_alarm_names(int unused)
{
    int saved = errno;
    (void)unused;
    use_next_name();
    errno = saved;
}

static void new_names_in_handlers(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        snprintf(name, sizeof name, "new %u", i);
        names[i] = tare_site_new(TARE_SITE_SCOPE, name, "", 0);
    }
    struct sigaction act = {.sa_handler = on_alarm_names, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, 50}, {0, 50}};
    for (uint32_t mode = 1; mode <= 3; mode++) {
        next_name = 0;
        start(mode, 0);
        assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
        assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
        while (next_name < sizeof names / sizeof *names) use_next_name();
        no_more_alarms();
        struct trace *t = stop();
        uint64_t calls = 0;
        struct calltree tree = CALLTREE_INIT;
        assert_int_equal(calltree_build(&tree, t, -1, NULL), TARE_OK);
        for (uint32_t i = 1; i < tree.n_nodes; i++) calls += tree.nodes[i].count;
        calltree_release(&tree);
        assert_true(calls <= sizeof names / sizeof *names);
        assert_true(calls + trace_loss(t)->dropped >= sizeof names / sizeof *names);
        trace_close(t);
    }
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(&here);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&here);
    return 0;
}

/* ---- names ---- */

static pthread_barrier_t named, stopped;

static void *names_itself_late(void *stays)
{
    {
        TARE_SCOPE("before it has a name");
    }
    pthread_setname_np(pthread_self(), stays ? "stays" : "ends");
    if (!stays) return NULL;
    pthread_barrier_wait(&named);
    pthread_barrier_wait(&stopped);
    return NULL;
}

static void a_name_given_after_the_first_scope(void **state)
{
    (void)state;
    for (uint32_t mode = 1; mode <= 3; mode++) {
        pthread_t ends, stays;
        pthread_barrier_init(&named, NULL, 2);
        pthread_barrier_init(&stopped, NULL, 2);
        start(mode, 0);
        pthread_create(&ends, NULL, names_itself_late, NULL);
        pthread_join(ends, NULL);
        pthread_create(&stays, NULL, names_itself_late, &named);
        pthread_barrier_wait(&named);
        struct trace *t = stop();
        pthread_barrier_wait(&stopped);
        pthread_join(stays, NULL);
        assert_int_equal(trace_n_threads(t), 2);
        assert_string_equal(trace_thread(t, 0)->name, "ends");
        assert_string_equal(trace_thread(t, 1)->name, "stays");
        trace_close(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_given_after_the_first_scope),
        cmocka_unit_test(threads_side_by_side),
        cmocka_unit_test(threads_one_after_another),
        cmocka_unit_test(threads_that_end_inside_scopes),
        cmocka_unit_test(scopes_in_thread_exit_destructors),
        cmocka_unit_test(an_end_in_another_thread_is_foreign),
        cmocka_unit_test(stopping_under_way),
        cmocka_unit_test(signal_handlers_nest_anywhere),
        cmocka_unit_test(a_place_is_written_to_late),
        cmocka_unit_test(handlers_on_a_stack_of_their_own),
        cmocka_unit_test(handlers_while_weighing),
        cmocka_unit_test(new_names_in_handlers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
