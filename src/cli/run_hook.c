/* SPDX-License-Identifier: MIT
 * run_hook.c - see run_hook.h. */
#include "cli/run_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
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

static pid_t spawn(const char *command, int text)
{
    static char shell[] = "/bin/sh", flag[] = "-c";
    char *line = strdupa(command), *argv[] = {shell, flag, line, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    pid_t pid = 0;
    if (posix_spawn_file_actions_init(&actions) != 0) return 0;
    if (posix_spawnattr_init(&attr) == 0) {
        bool ready = set_attributes(&attr) == 0 &&
                     posix_spawn_file_actions_adddup2(&actions, text, STDIN_FILENO) == 0 &&
                     posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO) == 0;
        if (!ready || posix_spawn(&pid, shell, &actions, &attr, argv, environ) != 0) pid = 0;
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

pid_t hooks_start(struct hooks *h, const struct buf *json)
{
    struct hook *place = NULL;
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
        if (!h->running[i].pid) place = &h->running[i];
    int text = place && !json->failed ? open_text(json) : -1;
    pid_t pid = text >= 0 ? spawn(h->command, text) : 0;
    if (text >= 0) close(text);
    h->started += pid != 0;
    h->bad += pid == 0;
    if (pid) *place = (struct hook){pid, clock_raw_ns() + HOOK_LIMIT_NS};
    return pid;
}

static struct hook *find(struct hooks *h, pid_t pid)
{
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
        if (h->running[i].pid == pid) return &h->running[i];
    return NULL;
}

bool hooks_ended(struct hooks *h, pid_t pid, int status)
{
    struct hook *it = pid > 0 ? find(h, pid) : NULL;
    if (!it) return false;
    it->pid = 0;
    h->bad += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return true;
}

bool hooks_is_ours(const struct hooks *h, pid_t pid)
{
    for (size_t i = 0; i < HOOKS_AT_ONCE; i++)
        if (h->running[i].pid == pid) return pid > 0;
    return false;
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
