/* SPDX-License-Identifier: MIT
 * guard.c - see guard.h. After the fork the guard calls only what is safe there, and holds none of tare's files: a
 * reader of tare's output must see its end. */
#include "subject/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED_BYTES (GUARD_SLOTS * sizeof(pid_t))

static void close_but(unsigned fd)
{
    if (fd) syscall(SYS_close_range, 0U, fd - 1, 0U);
    syscall(SYS_close_range, fd + 1, ~0U, 0U);
}

static _Noreturn void stand_by(const struct guard *g, int end)
{
    char none;
    setsid(); /* no signal of the terminal is for it */
    prctl(PR_SET_NAME, "tare-guard");
    close_but((unsigned)end);
    while (read(end, &none, 1) < 0 && errno == EINTR) continue;
    for (size_t i = 0; i < GUARD_SLOTS; i++) {
        pid_t group = __atomic_load_n(&g->held[i], __ATOMIC_SEQ_CST);
        if (group > 1) kill(-group, SIGKILL);
    }
    _exit(0);
}

void guard_open(struct guard *g)
{
    int ends[2];
    *g = (struct guard)GUARD_INIT;
    void *shared = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return;
    g->held = shared;
    if (pipe2(ends, O_CLOEXEC) == 0) {
        g->pid = fork();
        if (g->pid == 0) stand_by(g, ends[0]);
        close(ends[0]);
        g->alive = ends[1];
    }
    if (g->pid > 0) return;
    g->pid = 0;
    guard_close(g);
}

void guard_hold(struct guard *g, unsigned slot, pid_t group)
{
    if (g->held && slot < GUARD_SLOTS) __atomic_store_n(&g->held[slot], group, __ATOMIC_SEQ_CST);
}

void guard_close(struct guard *g)
{
    for (size_t i = 0; g->held && i < GUARD_SLOTS; i++) __atomic_store_n(&g->held[i], 0, __ATOMIC_SEQ_CST);
    if (g->alive >= 0) close(g->alive);
    while (g->pid > 0 && waitpid(g->pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (g->held) munmap(g->held, SHARED_BYTES);
    *g = (struct guard)GUARD_INIT;
}
