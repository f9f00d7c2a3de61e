/* SPDX-License-Identifier: MIT
 * watch_load.c - see watch_load.h. */
#include "watch/watch_load.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"

/* Ours, and where its requests are recorded. Owned; the texts are not. */
static char **environment(char *trace)
{
    size_t n = 0, kept = 0;
    while (environ[n]) n++;
    char **env = mem_new(n + 2, sizeof *env);
    for (size_t i = 0; env && i < n; i++)
        if (strncmp(environ[i], "TARE_TRACE=", strlen("TARE_TRACE=")) != 0) env[kept++] = environ[i];
    if (env && trace) env[kept] = trace;
    return env;
}

/* Signals as a new process expects them, and the process group of all: Ctrl-C is for it, too. 0: not started. */
static pid_t spawn(char *const *argv, char *const *env, bool quiet)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, usual;
    pid_t pid = 0;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    if (posix_spawn_file_actions_init(&actions) != 0) return 0;
    if (posix_spawnattr_init(&attr) == 0) {
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setsigdefault(&attr, &usual);
        posix_spawnattr_setsigmask(&attr, &none);
        bool ready =
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
            (quiet ? posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
                   : posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)) == 0;
        if (!ready || posix_spawn(&pid, "/proc/self/exe", &actions, &attr, argv, env) != 0) pid = 0;
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* The user's words come last, so that his --wait wins. */
tare_status load_side_start(struct load_side *l, pid_t program, const char *trace, tare_error *err)
{
    static char self[] = "tare", command[] = "bench", wait[] = "--wait=" LOAD_SIDE_WAIT;
    char pid[32], place[4352];
    size_t n = 0;
    while (l->words[n]) n++;
    char **argv = mem_new(n + 5, sizeof *argv);
    snprintf(pid, sizeof pid, "--pid=%d", (int)program);
    snprintf(place, sizeof place, "TARE_TRACE=%s", trace ? trace : "");
    char **env = environment(trace ? place : NULL);
    if (argv && env) {
        char *const first[] = {self, command, wait, pid};
        memcpy(argv, first, sizeof first);
        memcpy(argv + 4, l->words, n * sizeof *argv);
        l->pid = spawn(argv, env, l->quiet);
        l->started = l->pid != 0;
    }
    mem_free(argv);
    mem_free(env);
    return l->started ? TARE_OK : error_set(err, TARE_IO, "cannot start the process that makes the load");
}

void load_side_ended(struct load_side *l, int status, pid_t program)
{
    l->pid = 0;
    l->ended = program && !l->stopped;
    l->status = status;
    l->ended_ns = clock_raw_ns();
    if (program) kill(program, SIGTERM);
}

bool load_side_expire(struct load_side *l, uint64_t now_ns, pid_t program)
{
    if (!l->ended_ns || now_ns - l->ended_ns < LOAD_SIDE_GRACE_NS) return false;
    l->ended_ns = 0;
    kill(program, SIGKILL);
    return true;
}

/* It tells what there is. Not by a second signal of the kind that the terminal may have sent to it as to all of the
 * group: that one would end it at once (cli.h). */
void load_side_stop(struct load_side *l)
{
    if (l->pid && !l->stopped) kill(l->pid, SIGHUP);
    l->stopped = l->stopped || l->pid;
}

int load_side_code(const struct load_side *l)
{
    return WIFEXITED(l->status) ? WEXITSTATUS(l->status) : 128 + WTERMSIG(l->status);
}
