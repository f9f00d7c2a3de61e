/* SPDX-License-Identifier: MIT
 * pause.c - see pause.h. Each hold is SEIZE, INTERRUPT, DETACH: a thread that stayed seized would stop at each signal
 * until we look again. */
#include "sample/pause.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "core/clock.h"

/* A thread stops when it has a processor, which on a busy machine takes a while; one in an uninterruptible wait is not
 * waited for. */
#define USUAL_PATIENCE_NS UINT64_C(200000000)
enum { SPINS = 50, SETTLE_TRIES = 100 };

/* Ctrl-Z must not stop us while we hold somebody. */
static void block_stops(int how)
{
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    sigaddset(&stops, SIGTTIN);
    sigaddset(&stops, SIGTTOU);
    pthread_sigmask(how, &stops, NULL);
}

/* 1: it stands still, and *passed is the signal that it is about to get; 0: not yet; -1: it is gone. */
static int has_stopped(pid_t tid, int *passed)
{
    int status;
    pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return 0;
    if (got < 0 || !WIFSTOPPED(status)) return -1;
    *passed = status >> 16 ? 0 : WSTOPSIG(status);
    return 1;
}

/* It ran until after the last look at which it had not stopped. */
static int wait_stopped(struct pauses *p, pid_t tid)
{
    uint64_t begun = clock_raw_ns(), patience = p->patience_ns ? p->patience_ns : USUAL_PATIENCE_NS;
    int got;
    p->begun_ns = begun;
    for (unsigned i = 0; !(got = has_stopped(tid, &p->signal)) && p->begun_ns - begun < patience; i++) {
        p->begun_ns = clock_raw_ns();
        if (i < SPINS)
            sched_yield();
        else
            nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return got;
}

static bool let_go(pid_t tid, int passed)
{
    return ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)passed) == 0;
}

static bool is_late(const struct pauses *p, pid_t tid)
{
    for (size_t i = 0; i < p->late.n; i++)
        if (p->late.items[i] == tid) return true;
    return false;
}

bool pause_begin(struct pauses *p, pid_t tid)
{
    int got = -1;
    block_stops(SIG_BLOCK);
    if (!is_late(p, tid) && ptrace(PTRACE_SEIZE, tid, NULL, NULL) == 0) {
        got = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 ? wait_stopped(p, tid) : 0;
        if (got == 0) vec_push(&p->late, tid, NULL);
    }
    if (got == 1) return true;
    p->refused++;
    block_stops(SIG_UNBLOCK);
    return false;
}

void pause_end(struct pauses *p, pid_t tid)
{
    if (!let_go(tid, p->signal)) vec_push(&p->late, tid, NULL); /* it was killed: its end is told to us */
    block_stops(SIG_UNBLOCK);
    uint64_t took = clock_raw_ns() - p->begun_ns;
    p->held++;
    p->total_ns += took;
    if (took > p->longest_ns) p->longest_ns = took;
}

void pause_settle(struct pauses *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->late.n; i++) {
        int passed = 0, got = has_stopped(p->late.items[i], &passed);
        if (got == 0 || (got == 1 && !let_go(p->late.items[i], passed)))
            p->late.items[kept++] = p->late.items[i];
    }
    p->late.n = kept;
}

void pauses_release(struct pauses *p)
{
    for (unsigned i = 0; p->late.n && i < SETTLE_TRIES; i++) {
        pause_settle(p);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    vec_release(&p->late);
}
