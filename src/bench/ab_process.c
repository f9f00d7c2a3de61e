/* SPDX-License-Identifier: MIT
 * ab_process.c - a side that is a worker process: started afresh for every epoch with its environment and heap
 * shifted, asked for one measurement at a time. It leads a process group of its own, so that an interruption of
 * the comparison does not end it in the middle of a measurement; it ends when its socket does. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/ab.h"
#include "bench/ab_worker.h"
#include "bench/engine.h"
#include "core/banned.h"
#include "core/clock.h"
#include "core/mem.h"

#define LOOK_NS UINT64_C(200000000)  /* how often an interruption is looked for */
#define END_NS UINT64_C(2000000000) /* patience with a worker that was asked to end */
#define PAD_NAME "TARE_AB_PAD="

struct process_lane {
    struct ab_lane base;
    struct ab_process_options o;
    char *pad; /* PAD_NAME and room for AB_ENV_PAD_MAX */
    pid_t pid; /* 0: none */
    int fd;    /* -1: none */
};

/* ---- the process ---- */

/* Ours, handed on unread, and one more. Owned. */
static tare_status make_env(struct process_lane *l, uint32_t pad, char ***out, tare_error *err)
{
    size_t n = 0;
    while (environ && environ[n]) n++;
    char **env = mem_new(n + 2, sizeof *env);
    if (!env) return error_set(err, TARE_NOMEM, "out of memory for an environment");
    if (n) memcpy(env, environ, n * sizeof *env);
    size_t head = sizeof PAD_NAME - 1;
    memcpy(l->pad, PAD_NAME, head);
    memset(l->pad + head, 'x', pad);
    l->pad[head + pad] = 0;
    env[n] = l->pad;
    *out = env;
    return TARE_OK;
}

static int spawn_with(struct process_lane *l, int theirs, char **env)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int code = posix_spawn_file_actions_init(&actions);
    if (code) return code;
    if ((code = posix_spawnattr_init(&attr)) != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    code = posix_spawn_file_actions_adddup2(&actions, theirs, AB_WORKER_FD);
    if (code == 0) code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (code == 0) code = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (code == 0) code = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    if (code == 0) code = posix_spawnattr_setpgroup(&attr, 0);
    if (code == 0) code = posix_spawn(&l->pid, l->o.exe, &actions, &attr, l->o.argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static tare_status spawn(struct process_lane *l, uint32_t pad, tare_error *err)
{
    int pair[2];
    char **env = NULL;
    tare_status s = make_env(l, pad, &env, err);
    if (s < 0) return s;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        mem_free(env);
        return error_errno(err, "no socket for a worker");
    }
    int code = spawn_with(l, pair[1], env);
    mem_free(env);
    close(pair[1]);
    if (code == 0) {
        l->fd = pair[0];
        return TARE_OK;
    }
    l->pid = 0;
    close(pair[0]);
    errno = code;
    return error_errno(err, "%s: no worker could be started", l->o.exe);
}

static bool gone(struct process_lane *l, int *status, uint64_t patience_ns)
{
    uint64_t until = clock_raw_ns() + patience_ns;
    for (;;) {
        pid_t got = waitpid(l->pid, status, patience_ns ? WNOHANG : 0);
        if (got == l->pid || (got < 0 && errno != EINTR)) return true;
        if (patience_ns && clock_raw_ns() >= until) return false;
        if (patience_ns) nanosleep(&(struct timespec){0, 200000}, NULL);
    }
}

static void let_go(struct process_lane *l)
{
    int status = 0;
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
    if (l->pid && !gone(l, &status, END_NS)) {
        kill(-l->pid, SIGKILL);
        gone(l, &status, 0);
    }
    l->pid = 0;
}

/* It ended by itself: say how. */
static tare_status died(struct process_lane *l, tare_error *err)
{
    int status = 0;
    close(l->fd);
    l->fd = -1;
    if (!gone(l, &status, END_NS)) {
        kill(-l->pid, SIGKILL);
        gone(l, &status, 0);
        l->pid = 0;
        return error_set(err, TARE_DENIED, "its worker process stopped answering");
    }
    l->pid = 0;
    if (WIFSIGNALED(status))
        return error_set(err, TARE_DENIED, "its worker process was killed by signal %d (%s)",
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    return error_set(err, TARE_DENIED, "its worker process ended early with exit code %d",
                     WEXITSTATUS(status));
}

/* ---- asking ---- */

static tare_status await(struct process_lane *l, tare_error *err)
{
    uint64_t limit = l->o.timeout_ns ? clock_raw_ns() + l->o.timeout_ns : UINT64_MAX;
    for (;;) {
        struct pollfd p = {l->fd, POLLIN, 0};
        struct timespec step = {0, (long)LOOK_NS};
        int ready = ppoll(&p, 1, &step, NULL);
        if (ready > 0) return TARE_OK;
        if (ready < 0 && errno != EINTR) return error_errno(err, "waiting for its worker process");
        if (l->o.interrupted && *l->o.interrupted) return error_set(err, TARE_DENIED, "interrupted");
        if (clock_raw_ns() >= limit)
            return error_set(err, TARE_DENIED, "no answer after %g s", (double)l->o.timeout_ns / 1e9);
    }
}

static tare_status hear(struct process_lane *l, struct ab_reply *r, tare_error *err)
{
    tare_status s = await(l, err);
    if (s < 0) return s;
    ssize_t n;
    do n = recv(l->fd, r, sizeof *r, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return died(l, err);
    if (n != (ssize_t)sizeof *r || r->magic != AB_MAGIC)
        return error_set(err, TARE_DENIED, "its worker process sent %zd bytes that are no answer", n);
    r->text[sizeof r->text - 1] = 0;
    if (r->status < 0) return error_set(err, (tare_status)r->status, "%s", r->text);
    return TARE_OK;
}

static bool say(struct process_lane *l, const void *bytes, size_t n)
{
    ssize_t sent;
    do sent = send(l->fd, bytes, n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)n;
}

static tare_status request(struct process_lane *l, uint32_t kind, uint64_t n, tare_error *err)
{
    struct ab_request q = {AB_MAGIC, kind, n};
    if (l->fd < 0) return error_set(err, TARE_DENIED, "its worker process is gone");
    return say(l, &q, sizeof q) ? TARE_OK : died(l, err);
}

static tare_status ask(struct process_lane *l, uint32_t kind, uint64_t n, struct ab_reply *r, tare_error *err)
{
    tare_status s = request(l, kind, n, err);
    return s < 0 ? s : hear(l, r, err);
}

/* ---- ops ---- */

static tare_status lane_launch(struct ab_lane *base, const struct ab_layout *layout, tare_error *err)
{
    struct process_lane *l = (struct process_lane *)base;
    tare_status s = spawn(l, layout->env_pad, err);
    if (s == TARE_OK) s = request(l, AB_ASK_START, layout->heap_pad, err);
    if (s == TARE_OK && !say(l, l->o.spec, strlen(l->o.spec))) s = died(l, err);
    return s;
}

static tare_status lane_ready(struct ab_lane *base, struct ab_launched *out, tare_error *err)
{
    struct ab_reply r;
    tare_status s = hear((struct process_lane *)base, &r, err);
    if (s < 0) return s;
    *out = (struct ab_launched){r.load_ns, r.warmup_runs, r.typical_ns};
    return TARE_OK;
}

static tare_status lane_measure(struct ab_lane *base, uint64_t repeats, const struct ab_layout *layout,
                                struct pair_side *out, tare_error *err)
{
    struct ab_reply r;
    (void)layout; /* it was laid out when it was launched */
    tare_status s = ask((struct process_lane *)base, AB_ASK_RUN, repeats, &r, err);
    if (s < 0) return s;
    *out = (struct pair_side){
        .wall_ns = r.wall_ns, .cpu_ns = r.cpu_ns, .involuntary = r.involuntary, .voluntary = r.voluntary};
    return TARE_OK;
}

static void lane_stop(struct ab_lane *base, uint64_t *rss_peak)
{
    struct process_lane *l = (struct process_lane *)base;
    struct ab_reply r;
    if (l->fd >= 0 && ask(l, AB_ASK_END, 0, &r, NULL) == TARE_OK && rss_peak) *rss_peak = r.rss_peak;
    let_go(l);
}

static void lane_close(struct ab_lane *base)
{
    struct process_lane *l = (struct process_lane *)base;
    let_go(l);
    mem_free(l->pad);
    mem_free(l);
}

static const struct ab_lane_ops process_ops = {false,        lane_launch, lane_ready,
                                               lane_measure, lane_stop,   lane_close};

tare_status ab_lane_process(struct ab_lane **out, const struct ab_process_options *o, tare_error *err)
{
    if (strlen(o->spec) >= AB_SPEC_MAX)
        return error_set(err, TARE_INVALID, "%s: too many settings for one worker", o->name);
    struct process_lane *l = mem_new(1, sizeof *l);
    char *pad = mem_new(1, sizeof PAD_NAME + AB_ENV_PAD_MAX);
    if (!l || !pad) {
        mem_free(l);
        mem_free(pad);
        return error_set(err, TARE_NOMEM, "out of memory for one side");
    }
    l->base = (struct ab_lane){&process_ops, o->name};
    l->o = *o;
    l->pad = pad;
    l->fd = -1;
    *out = &l->base;
    return TARE_OK;
}
