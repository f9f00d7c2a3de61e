/* SPDX-License-Identifier: MIT
 * watch_witness.c - see watch_child.h. The process holds none of tare's files: a pipe must end when the program closes
 * it, not when tare does. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/procfs.h"
#include "watch/watch_child.h"

/* timeout(1) tells its child and then the group: by then both have arrived, on a busy machine too. */
#define SENDER_NS 5000000

static void close_all(void)
{
    if (syscall(SYS_close_range, 0U, ~0U, 0U) == 0) return;
    for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= 0; fd--) close(fd);
}

/* The witness's whole life: signals that are blocked stay pending in it, where the kernel shows them. */
static _Noreturn void stay_until_killed(pid_t tare)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "tare-witness");
    close_all();
    while (getppid() == tare) pause();
    _exit(0);
}

void witness_start(struct witness *w)
{
    pid_t tare = getpid(), pid = fork();
    if (pid == 0) stay_until_killed(tare);
    w->pid = pid > 0 ? pid : 0;
}

/* The signals that are pending for the process as a whole, as a mask. */
static bool read_pending(pid_t pid, uint64_t *out)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (!procfs_text("", path, text, sizeof text)) return false;
    const char *line = strstr(text, "\nShdPnd:");
    if (!line) return false;
    *out = strtoull(line + strlen("\nShdPnd:"), NULL, 16);
    return true;
}

bool witness_ask(struct witness *w, uint64_t *group)
{
    const struct timespec a_moment = {0, SENDER_NS};
    if (!w->pid) return false;
    nanosleep(&a_moment, NULL);
    bool known = read_pending(w->pid, group);
    if (known && *group == 0) return true;
    witness_end(w); /* only another one has not heard of it yet */
    witness_start(w);
    return known;
}

void witness_end(struct witness *w)
{
    if (!w->pid) return;
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) continue;
    w->pid = 0;
}
