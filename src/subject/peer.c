/* SPDX-License-Identifier: MIT
 * peer.c - see peer.h. */
#include "subject/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"

#define LOOK_NS UINT64_C(200000000) /* how often an interruption is looked for */
#define END_NS UINT64_C(2000000000) /* patience with a process that was asked to end */

/* ---- starting ---- */

static int add_actions(posix_spawn_file_actions_t *a, const struct spawn_options *o)
{
    int code = posix_spawn_file_actions_addopen(a, 0, "/dev/null", O_RDONLY, 0);
    for (unsigned i = 0; code == 0 && i < o->n_fds; i++)
        code = posix_spawn_file_actions_adddup2(a, o->fds[i], PEER_FD + (int)i);
    if (code == 0 && o->dir) code = posix_spawn_file_actions_addchdir_np(a, o->dir);
    if (code) return code;
    return o->out >= 0 ? posix_spawn_file_actions_adddup2(a, o->out, 1)
                       : posix_spawn_file_actions_addopen(a, 1, "/dev/null", O_WRONLY, 0);
}

/* In a group of its own: Ctrl-C at the terminal reaches tare only, which decides when the worker ends, and
 * a kill of the group takes along what the worker started. */
int spawn_apart(pid_t *pid, const struct spawn_options *o)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    if ((code = posix_spawnattr_init(&attr)) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    code = add_actions(&actions, o);
    if (code == 0) code = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    if (code == 0) code = posix_spawnattr_setpgroup(&attr, 0);
    if (code == 0) code = posix_spawnp(pid, o->exe, &actions, &attr, o->argv, o->env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* Its ends are moved above all descriptors that it will have, so that none is overwritten before it is used. */
static tare_status open_lane(int *ours, int *theirs, unsigned lanes, tare_error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_errno(err, "no socket for a worker");
    *ours = pair[0];
    *theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, PEER_FD + (int)lanes);
    tare_status s = *theirs < 0 ? error_errno(err, "no socket for a worker") : TARE_OK;
    close(pair[1]);
    return s;
}

static void close_all(int *fds, unsigned n)
{
    for (unsigned i = 0; fds && i < n; i++)
        if (fds[i] >= 0) close(fds[i]);
    mem_free(fds);
}

static int *no_descriptors(unsigned n)
{
    int *fds = mem_new(n, sizeof *fds);
    for (unsigned i = 0; fds && i < n; i++) fds[i] = -1;
    return fds;
}

/* Our copies of its ends are closed at once, whether it started or not: otherwise its death would not be
 * seen as the end of the socket. */
tare_status peer_start(struct peer *p, struct spawn_options o, tare_error *err)
{
    int *theirs = no_descriptors(o.n_fds);
    p->ended = p->killed = false;
    p->n = o.n_fds;
    p->fds = no_descriptors(o.n_fds);
    tare_status s = p->fds && theirs ? TARE_OK : error_nomem(err, "a worker");
    for (unsigned i = 0; s == TARE_OK && i < o.n_fds; i++)
        s = open_lane(&p->fds[i], &theirs[i], o.n_fds, err);
    o.fds = theirs;
    if (s == TARE_OK && (errno = spawn_apart(&p->pid, &o)) != 0) {
        s = error_errno(err, "%s: no worker could be started", o.exe);
        p->pid = 0;
    }
    close_all(theirs, o.n_fds);
    if (s < 0) peer_stop(p);
    return s;
}

/* ---- ending ---- */

static bool wait_for(struct peer *p, uint64_t patience_ns)
{
    uint64_t until = clock_raw_ns() + patience_ns;
    for (;;) {
        pid_t got = waitpid(p->pid, &p->status, patience_ns ? WNOHANG : 0);
        if (got == p->pid || (got < 0 && errno != EINTR)) return true;
        if (patience_ns && clock_raw_ns() >= until) return false;
        if (patience_ns) nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

static void see_off(struct peer *p, uint64_t patience_ns)
{
    pthread_mutex_lock(&p->lock);
    if (p->pid && !p->ended && !(patience_ns && wait_for(p, patience_ns))) {
        p->killed = true;
        kill(-p->pid, SIGKILL);
        wait_for(p, 0);
    }
    p->ended = true;
    pthread_mutex_unlock(&p->lock);
}

void peer_stop(struct peer *p)
{
    close_all(p->fds, p->n);
    p->fds = NULL;
    p->n = 0;
    see_off(p, END_NS);
    p->pid = 0;
}

void peer_kill(struct peer *p)
{
    see_off(p, 0);
}

bool peer_alive(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    bool alive = p->pid && !p->ended;
    pthread_mutex_unlock(&p->lock);
    return alive;
}

tare_status peer_died(struct peer *p, tare_error *err)
{
    if (!p->pid) return error_set(err, TARE_DENIED, "%s is gone", p->what);
    see_off(p, END_NS);
    if (p->killed) return error_set(err, TARE_DENIED, "%s stopped answering", p->what);
    if (WIFSIGNALED(p->status))
        return error_set(err, TARE_DENIED, "%s was killed by signal %d (%s)", p->what, WTERMSIG(p->status),
                         strsignal(WTERMSIG(p->status)));
    return error_set(err, TARE_DENIED, "%s ended early with exit code %d", p->what, WEXITSTATUS(p->status));
}

/* ---- asking ---- */

bool peer_say(struct peer *p, unsigned lane, const void *bytes, size_t n)
{
    ssize_t sent;
    if (lane >= p->n) return false;
    do sent = send(p->fds[lane], bytes, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n;
}

/* What it started may have its sockets still: that they are open does not say that anybody answers. */
bool peer_over(struct peer *p)
{
    siginfo_t info = {.si_pid = 0};
    pthread_mutex_lock(&p->lock);
    bool over =
        !p->pid || p->ended ||
        (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p->pid);
    pthread_mutex_unlock(&p->lock);
    return over;
}

/* Waits in short steps, since an interruption is only a flag and what the peer started may keep the socket
 * open after its death. After the end was seen there is one more look: a last packet may have come before
 * it. */
static tare_status await_packet(struct peer *p, unsigned lane, const struct peer_patience *w, tare_error *err)
{
    uint64_t start = clock_raw_ns(), limit = w->timeout_ns ? start + w->timeout_ns : UINT64_MAX;
    uint64_t asked = 0; /* when the interruption was seen */
    bool over = false;
    for (;;) {
        struct pollfd f = {p->fds[lane], POLLIN, 0};
        uint64_t now = clock_raw_ns(), rest = limit > now ? limit - now : 0;
        struct timespec step = {0, (long)(rest < LOOK_NS ? rest : LOOK_NS)};
        int ready = ppoll(&f, 1, &step, NULL);
        now = clock_raw_ns();
        if (ready > 0) return TARE_OK;
        if (ready < 0 && errno != EINTR) return error_errno(err, "waiting for %s", p->what);
        if (over) return peer_died(p, err); /* looked once more: its last words were read before */
        over = peer_over(p);
        if (w->interrupted && *w->interrupted && !asked) asked = now;
        if (asked && now - asked >= w->grace_ns) return error_set(err, TARE_DENIED, "interrupted");
        if (now >= limit)
            return error_set(err, TARE_DENIED, "no answer after %g s", (double)w->timeout_ns / 1e9);
    }
}

tare_status peer_hear(struct peer *p, unsigned lane, const struct peer_patience *w, struct peer_packet *out,
                      tare_error *err)
{
    if (lane >= p->n) return peer_died(p, err);
    tare_status s = await_packet(p, lane, w, err);
    if (s < 0) return s;
    ssize_t n;
    do n = recv(p->fds[lane], out->bytes, out->size, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return peer_died(p, err);
    out->got = (size_t)n;
    return TARE_OK;
}
