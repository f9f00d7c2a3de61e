/* SPDX-License-Identifier: MIT
 * watch_hook.c - see watch_hook.h. */
#include "watch/watch_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"

/* The alert in memory that reads like a file: nobody can block on it, however slowly it is read. */
static int open_text(const struct buf *json)
{
    int fd = memfd_create("tare-alert", MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (file_write_all(fd, json->data, json->len, "alert", NULL) == TARE_OK && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    close(fd);
    return -1;
}

/* A group of its own, so that its time limit ends all of it; signals as a new process expects them. */
static int set_attributes(posix_spawnattr_t *a)
{
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigdefault(a, &usual);
    posix_spawnattr_setsigmask(a, &none);
    return posix_spawnattr_setpgroup(a, 0);
}

/* 0: not started. */
static pid_t spawn(const char *exe, char *const *argv, int in, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return 0;
    if (posix_spawnattr_init(&attr) == 0) {
        bool ready = set_attributes(&attr) == 0 &&
                     posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO) == 0 &&
                     posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0;
        if (!ready || posix_spawn(&pid, exe, &actions, &attr, argv, environ) != 0) pid = 0;
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* ---- the two kinds: each gives a process, 0 when there is none, and in *said what it will have written ---- */

static pid_t start_command(const struct hooks *h, const struct buf *json, int *said)
{
    static char shell[] = "/bin/sh", flag[] = "-c";
    char *line = strdupa(h->command), *argv[] = {shell, flag, line, NULL};
    int text = json->failed ? -1 : open_text(json);
    *said = -1;
    if (text < 0) return 0;
    pid_t pid = spawn(shell, argv, text, STDERR_FILENO);
    close(text);
    return pid;
}

static pid_t start_webhook(const struct hooks *h, const struct buf *json, int *said)
{
    static char self[] = "tare", task[] = "__webhook";
    char *argv[] = {self, task, NULL};
    struct buf text = BUF_INIT;
    pid_t pid = 0;
    buf_printf(&text, "%s\n%s", h->url, json ? json->data : "");
    int in = text.failed || (json && json->failed) ? -1 : open_text(&text);
    *said = memfd_create("tare-webhook", MFD_CLOEXEC);
    if (in >= 0 && *said >= 0) pid = spawn("/proc/self/exe", argv, in, *said);
    if (in >= 0) close(in);
    buf_release(&text);
    return pid;
}

/* What it had written, once, as one line. */
static void read_said(int *said, char *out, size_t size)
{
    ssize_t n = *said >= 0 ? pread(*said, out, size - 1, 0) : 0;
    out[n > 0 ? n : 0] = 0;
    if (*said >= 0) close(*said);
    *said = -1;
}

/* The process of a delivery is started as for an alert, but without one: it then checks the URL and ends. */
tare_status hooks_check_url(const char *url, tare_error *err)
{
    const struct hooks h = {.url = url};
    char why[sizeof h.why];
    int said, status = 0;
    if (strpbrk(url, "\n\r")) return error_set(err, TARE_INVALID, "a URL is one line");
    pid_t pid = start_webhook(&h, NULL, &said), got = -1;
    while (pid && (got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) continue;
    read_said(&said, why, sizeof why);
    if (!pid) return error_set(err, TARE_IO, "cannot start the process that delivers alerts");
    if (why[0] == 0) return TARE_OK;
    bool usage = got != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 2);
    return error_set(err, usage ? TARE_INVALID : TARE_UNSUPPORTED, "%s", why);
}

/* ---- starting and ending ---- */

/* The place of a running process; pid 0: a free one. NULL: there is none. */
static struct hook *find_hook(struct hooks *h, pid_t pid)
{
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
        if (h->running[i].pid == pid) return &h->running[i];
    return NULL;
}

static void count_bad(struct hooks *h, bool to_url, const char *why)
{
    h->bad++;
    h->undelivered += to_url;
    if (to_url && !h->why[0]) snprintf(h->why, sizeof h->why, "%s", why);
}

typedef pid_t start_fn(const struct hooks *h, const struct buf *json, int *said);

/* Start one of a kind, if there is a place for it. 0: none was started, which is counted as a failure. */
static pid_t start_hook(struct hooks *h, const struct buf *json, start_fn *kind)
{
    struct hook *place = find_hook(h, 0);
    int said = -1;
    pid_t pid = place ? kind(h, json, &said) : 0;
    h->started += pid != 0;
    if (pid) {
        *place = (struct hook){pid, clock_raw_ns() + HOOK_LIMIT_NS, said};
        return pid;
    }
    if (said >= 0) close(said);
    count_bad(h, kind == start_webhook, place ? "no process could be started" : "too many at once");
    return 0;
}

size_t hooks_start(struct hooks *h, const struct buf *json, pid_t pids[HOOK_KINDS])
{
    size_t n = 0;
    pid_t command = h->command ? start_hook(h, json, start_command) : 0;
    pid_t webhook = h->url ? start_hook(h, json, start_webhook) : 0;
    if (command) pids[n++] = command;
    if (webhook) pids[n++] = webhook;
    return n;
}

void hooks_ended(struct hooks *h, pid_t pid, int status)
{
    struct hook *it = pid > 0 ? find_hook(h, pid) : NULL;
    if (!it) return;
    char why[sizeof h->why];
    bool to_url = it->said >= 0;
    read_said(&it->said, why, sizeof why);
    it->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        count_bad(h, to_url, why[0] ? why : "ended before there was an answer");
}

bool hooks_is_ours(struct hooks *h, pid_t pid)
{
    return pid > 0 && find_hook(h, pid);
}

size_t hooks_running(const struct hooks *h)
{
    size_t n = 0;
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++) n += h->running[i].pid != 0;
    return n;
}

void hooks_expire(struct hooks *h, uint64_t now_ns)
{
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
        if (h->running[i].pid && now_ns >= h->running[i].until_ns) kill(-h->running[i].pid, SIGKILL);
}
