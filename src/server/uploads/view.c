/* SPDX-License-Identifier: MIT
 * view.c - see uploads.h: starts this very program as `tare __trace-view`, which bounds itself. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "server/uploads/uploads.h"

/* Everything until the end of the pipe, or the deadline. */
static tare_status gather(int from, struct buf *out, tare_error *err)
{
    uint64_t end = clock_raw_ns() + VIEW_SECONDS * UINT64_C(1000000000);
    char piece[65536];
    for (;;) {
        uint64_t now = clock_raw_ns();
        struct pollfd p = {.fd = from, .events = POLLIN};
        if (now >= end) return error_set(err, TARE_BUSY, "the trace takes too long to look at");
        if (poll(&p, 1, (int)((end - now) / 1000000) + 1) <= 0) continue;
        ssize_t n = read(from, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? error_errno(err, "the view of a trace") : buf_status(out, err);
        buf_add(out, piece, (size_t)n);
        if (out->len > VIEW_REPLY_MAX) return error_set(err, TARE_NOMEM, "the trace shows too much at once");
    }
}

static tare_status judge(int rc, const struct buf *said, tare_error *err)
{
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == 0) return TARE_OK;
    if (WIFEXITED(rc) && WEXITSTATUS(rc) == 2)
        return error_set(err, TARE_INVALID, "%.300s", said->len ? said->data : "it is no trace");
    return error_set(err, TARE_NOMEM, "the trace needs more memory or time than it may have");
}

static tare_status start(const struct view_wish *w, const int out[2], pid_t *pid, tare_error *err)
{
    char name[] = "tare", word[] = "__trace-view", kind[16], most[24];
    char *const none[] = {NULL};
    snprintf(kind, sizeof kind, "%s", w->kind);
    snprintf(most, sizeof most, "%llu", (unsigned long long)w->most);
    char *const argv[] = {name, word, kind, most, NULL};
    posix_spawn_file_actions_t a;
    posix_spawnattr_t how;
    sigset_t empty;
    sigemptyset(&empty);
    posix_spawn_file_actions_init(&a);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &empty);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_adddup2(&a, w->trace, 0);
    posix_spawn_file_actions_adddup2(&a, out[1], 1);
    posix_spawn_file_actions_addopen(&a, 2, "/dev/null", O_WRONLY, 0);
    errno = posix_spawn(pid, "/proc/self/exe", &a, &how, argv, none);
    posix_spawn_file_actions_destroy(&a);
    posix_spawnattr_destroy(&how);
    return errno ? error_errno(err, "no process to look at a trace") : TARE_OK;
}

tare_status view_make(const struct view_wish *w, struct buf *out, tare_error *err)
{
    int pipe_[2], rc = 0;
    pid_t pid = 0;
    if (pipe2(pipe_, O_CLOEXEC) < 0) return error_errno(err, "the view of a trace");
    tare_status status = start(w, pipe_, &pid, err);
    close(pipe_[1]);
    bool started = status == TARE_OK;
    if (started) status = gather(pipe_[0], out, err);
    close(pipe_[0]);
    if (started && status != TARE_OK) kill(pid, SIGKILL);
    while (started && waitpid(pid, &rc, 0) < 0 && errno == EINTR) continue;
    return status == TARE_OK ? judge(rc, out, err) : status;
}
