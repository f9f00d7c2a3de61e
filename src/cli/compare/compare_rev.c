/* SPDX-License-Identifier: MIT
 * compare_rev.c - two git revisions side by side: a worktree of each in a folder of ours, built there, removed at the
 * end. The working tree of the user is never touched. Both paths are equally long, because the length of argv moves
 * a program's stack. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/compare/compare_args.h"
#include "core/clock.h"
#include "core/file.h"
#include "subject/peer.h"

#define LOOK_NS 5000000L                    /* how often an end or an interruption is looked for */
#define PATIENCE_NS UINT64_C(2000000000) /* with a program that was asked to end */

enum heed { HEED, HEEDLESS }; /* does an interruption end it? Not what cleans up */

/* True: it ended. False: it was ended, with all that it had started. */
static bool see_through(pid_t pid, enum heed heed, int *status)
{
    uint64_t until = UINT64_MAX;
    for (;;) {
        pid_t got = waitpid(pid, status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR)) break;
        bool asked = until != UINT64_MAX;
        if (!asked && heed == HEED && interrupted) {
            kill(-pid, SIGTERM);
            until = clock_raw_ns() + PATIENCE_NS;
        }
        if (asked && clock_raw_ns() >= until) kill(-pid, SIGKILL);
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
    if (until == UINT64_MAX) return true;
    kill(-pid, SIGKILL); /* what its children left */
    return false;
}

/* Run a program to its end in `dir` (NULL: here), its words on our stderr. */
static tare_status run_here(const char *const *argv, const char *dir, enum heed heed, tare_error *err)
{
    pid_t pid;
    int status = 0;
    /* A group of its own: the whole build can be ended, and a Ctrl-C that ends us does not end the cleaning up. */
    struct spawn_options apart = {.exe = argv[0], .env = environ, .dir = dir, .out = 2};
    memcpy(&apart.argv, &argv, sizeof argv); /* not const, though nobody writes to it */
    errno = spawn_apart(&pid, &apart);
    if (errno) return error_errno(err, "%s: cannot be started", argv[0]);
    if (!see_through(pid, heed, &status)) return error_set(err, TARE_DENIED, "interrupted");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TARE_OK;
    return error_set(err, TARE_INVALID, "%s %s failed", argv[0], argv[1] ? argv[1] : "");
}

static tare_status split_range(const char *range, struct compare_trees *t, tare_error *err)
{
    const char *dots = strstr(range, "..");
    if (!dots || dots == range || strstr(dots + 2, "..") || dots[2] == '.')
        return error_set(err, TARE_INVALID, "--ab-rev %s: expected BASE..NEW, as in main..HEAD", range);
    int a = snprintf(t->revision[PAIR_A], sizeof t->revision[PAIR_A], "%.*s", (int)(dots - range), range);
    int b = snprintf(t->revision[PAIR_B], sizeof t->revision[PAIR_B], "%s", dots[2] ? dots + 2 : "HEAD");
    if (a >= (int)sizeof t->revision[PAIR_A] || b >= (int)sizeof t->revision[PAIR_B])
        return error_set(err, TARE_INVALID, "--ab-rev: a revision's name is too long");
    if (t->revision[PAIR_A][0] == '-' || t->revision[PAIR_B][0] == '-')
        return error_set(err, TARE_INVALID, "--ab-rev %s: a revision begins with -", range);
    return TARE_OK;
}

/* A folder of ours beside the documents, by its whole path: git runs elsewhere than the builds do. */
static tare_status make_root(const char *dir, struct compare_trees *t, tare_error *err)
{
    char here[4096] = "";
    tare_status s = file_make_folders(dir, err);
    if (s < 0) return s;
    if (dir[0] != '/' && !getcwd(here, sizeof here)) return error_errno(err, "working directory");
    char *path = t->root;
    int n = snprintf(path, sizeof t->root, "%s%s%s/ab-XXXXXX", here, here[0] ? "/" : "", dir);
    if (n < 0 || (size_t)n + 8 >= sizeof t->root) {
        t->root[0] = 0;
        return error_set(err, TARE_INVALID, "%s: name too long", dir);
    }
    if (!mkdtemp(path)) {
        s = error_errno(err, "%s: cannot make a folder for the revisions", dir);
        t->root[0] = 0;
        return s;
    }
    return TARE_OK;
}

static tare_status check_out(struct compare_trees *t, int which, tare_error *err)
{
    size_t n = strlen(t->root);
    memcpy(t->path[which], t->root, n);
    memcpy(t->path[which] + n, which == PAIR_A ? "/a" : "/b", 3);
    const char *argv[] = {"git",          "worktree",         "add", "--detach", "--quiet",
                          t->path[which], t->revision[which], NULL};
    tare_status s = run_here(argv, NULL, HEED, err);
    if (s == TARE_OK) return TARE_OK;
    if (s != TARE_DENIED) t->path[which][0] = 0; /* nothing to remove */
    return error_wrap(err, "--ab-rev: revision %s", t->revision[which]);
}

static tare_status build(const char *line, const struct compare_trees *t, int which, tare_error *err)
{
    const char *argv[] = {"/bin/sh", "-c", line, NULL};
    tare_status s = run_here(argv, t->path[which], HEED, err);
    if (s == TARE_OK || interrupted) return s;
    return error_set(err, TARE_INVALID, "--build '%.200s' failed for revision %s", line, t->revision[which]);
}

tare_status compare_trees_make(struct cli *cli, const struct compare_args *a, struct compare_trees *t)
{
    tare_error *err = &cli->error;
    tare_status s = split_range(a->revisions, t, err);
    if (s == TARE_OK) s = make_root(a->history.output_dir, t, err);
    for (int i = 0; s == TARE_OK && i < PAIR_SIDES; i++) {
        s = check_out(t, i, err);
        if (s == TARE_OK && a->build) {
            cli_note(cli, "building %s", t->revision[i]);
            s = build(a->build, t, i, err);
        }
    }
    return s;
}

void compare_trees_remove(struct compare_trees *t)
{
    for (int i = 0; t->root[0] && i < PAIR_SIDES; i++) {
        const char *argv[] = {"git", "worktree", "remove", "--force", t->path[i], NULL};
        if (!t->path[i][0] || access(t->path[i], F_OK) != 0) continue; /* git undid it itself */
        run_here(argv, NULL, HEEDLESS, NULL);
    }
    if (t->root[0]) rmdir(t->root);
}
