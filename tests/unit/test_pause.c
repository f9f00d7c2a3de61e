/* SPDX-License-Identifier: MIT
 * test_pause.c - a process of our own held still and let go: it stands still meanwhile, goes on afterwards, gets its
 * signals, and may end at any moment. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample/pause.h"

struct shared {
    atomic_ulong count, signals;
};
static struct shared *shared;

static void on_signal(int signal_)
{
    (void)signal_;
    atomic_fetch_add(&shared->signals, 1);
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static pid_t spinning(void)
{
    atomic_store(&shared->count, 0);
    atomic_store(&shared->signals, 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGUSR1, on_signal);
        for (;;) atomic_fetch_add(&shared->count, 1);
    }
    assert_true(pid > 0);
    while (!atomic_load(&shared->count)) nap();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, __WALL) < 0) nap();
}

static bool goes_on(void)
{
    unsigned long before = atomic_load(&shared->count);
    for (unsigned i = 0; i < 4000 && atomic_load(&shared->count) == before; i++) nap();
    return atomic_load(&shared->count) != before;
}

static void holds_and_lets_go(void **state)
{
    struct pauses p = {0};
    pid_t pid = spinning();
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        if (!pause_begin(&p, pid)) continue; /* a machine so busy that it had no turn in 0.2 s */
        unsigned long before = atomic_load(&shared->count);
        nap();
        assert_true(atomic_load(&shared->count) == before);
        pause_end(&p, pid);
        assert_true(goes_on());
    }
    assert_true(p.held > 0 && p.total_ns >= p.longest_ns && p.longest_ns >= 4000000);
    pauses_release(&p);
    end(pid);
}

static void signals_pass(void **state)
{
    struct pauses p = {0};
    pid_t pid = spinning();
    (void)state;
    for (unsigned long i = 1; i <= 20; i++) {
        kill(pid, SIGUSR1);
        if (pause_begin(&p, pid)) pause_end(&p, pid);
        pause_settle(&p);
        for (unsigned k = 0; k < 4000 && atomic_load(&shared->signals) < i; k++) nap();
        assert_true(atomic_load(&shared->signals) == i);
    }
    pauses_release(&p);
    end(pid);
}

static void who_ends_or_is_not_there_is_refused(void **state)
{
    struct pauses p = {0};
    pid_t pid = spinning();
    (void)state;
    if (pause_begin(&p, pid)) {
        kill(pid, SIGKILL);
        pause_end(&p, pid);
    }
    end(pid);
    assert_false(pause_begin(&p, pid));
    assert_true(p.refused >= 1);
    pauses_release(&p);
    assert_int_equal(p.late.n, 0);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_and_lets_go),
        cmocka_unit_test(signals_pass),
        cmocka_unit_test(who_ends_or_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
