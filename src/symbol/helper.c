/* SPDX-License-Identifier: MIT
 * helper.c - see helper.h. The child's own processor time ends it, by a signal's default action. */
#include "symbol/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* What it has of its parent, which may be large, and some more. Sanitizers want memory as they like, and end where
 * there is none. */
static void limit_memory(uint64_t more)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return;
    rlim_t now = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    setrlimit(RLIMIT_AS, &(struct rlimit){now, now});
#else
    (void)more;
#endif
}

/* It never returns. */
static void serve(const struct helper_work *w, int fd)
{
    static char question[HELPER_BYTES], answer[HELPER_BYTES];
    const struct itimerval limit = {.it_value = {w->cpu_ms / 1000, (suseconds_t)(w->cpu_ms % 1000) * 1000}};
    signal(SIGPROF, SIG_DFL);
    signal(SIGXCPU, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    setrlimit(RLIMIT_CPU, &(struct rlimit){w->cpu_s, w->cpu_s});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    limit_memory(w->memory_more);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t n = recv(fd, question, sizeof question - 1, 0);
        if (n <= 0) _exit(0);
        question[n] = 0;
        setitimer(ITIMER_PROF, &limit, NULL);
        size_t bytes = w->fn(w->ctx, question, (size_t)n, answer, sizeof answer - 1);
        setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
        if (send(fd, answer, bytes, MSG_NOSIGNAL) < 0) _exit(0);
    }
}

void helper_end(struct helper *h)
{
    if (!h->pid) return;
    close(h->fd);
    kill(h->pid, SIGKILL);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR) continue;
    h->pid = 0;
}

static bool has_child(struct helper *h, const struct helper_work *w)
{
    int ends[2];
    if (h->pid) return true;
    if (h->deaths >= w->deaths_most || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    h->pid = fork();
    if (h->pid == 0) {
        close(ends[0]);
        serve(w, ends[1]);
    }
    close(ends[1]);
    h->fd = ends[0];
    if (h->pid > 0) return true;
    close(h->fd);
    h->pid = 0;
    return false;
}

static bool wait_for(int fd, uint32_t wall_ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    do n = poll(&p, 1, wall_ms ? (int)wall_ms : -1);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

ssize_t helper_ask(struct helper *h, const struct helper_work *w, const void *question, size_t bytes,
                   char answer[HELPER_BYTES])
{
    if (bytes >= HELPER_BYTES || !has_child(h, w)) return -1;
    ssize_t n = send(h->fd, question, bytes, MSG_NOSIGNAL);
    if (n > 0 && !wait_for(h->fd, w->wall_ms)) n = -1;
    if (n > 0) {
        do n = recv(h->fd, answer, HELPER_BYTES - 1, 0);
        while (n < 0 && errno == EINTR);
    }
    if (n > 0) return n;
    h->deaths++;
    helper_end(h);
    return -1;
}
