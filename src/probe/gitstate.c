/* SPDX-License-Identifier: MIT
 * gitstate.c - see gitstate.h. The files are not trusted: lengths are bounded, names are checked. */
#include "probe/gitstate.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/run.h"

#define LINKS 5 /* symbolic refs that point to others */

struct folders {
    char own[PATH_MAX];    /* HEAD is here */
    char common[PATH_MAX]; /* branches are here: the same but in worktrees */
};

static bool join(char out[PATH_MAX], const char *folder, const char *name)
{
    int n =
        name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name) : snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

/* The first line, without its end. False: no such file, or longer than that. */
static bool read_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    if (!join(path, folder, name)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    out[n] = 0;
    size_t end = strcspn(out, "\r\n");
    if (end == (size_t)n && end == size - 1) return false;
    out[end] = 0;
    return true;
}

static bool is_hash(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdef", text[i])) return false;
    return n == 40 || n == 64;
}

/* .git is a folder, or in worktrees and submodules a file that names it. */
static bool git_folder(const char *folder, struct folders *out)
{
    char path[PATH_MAX], line[PATH_MAX];
    struct stat st;
    if (!join(path, folder, ".git") || stat(path, &st) < 0) return false;
    if (S_ISDIR(st.st_mode))
        snprintf(out->own, sizeof out->own, "%s", path);
    else if (!read_line(folder, ".git", line, sizeof line) || strncmp(line, "gitdir: ", 8) != 0 ||
             !join(out->own, folder, line + 8))
        return false;
    if (!read_line(out->own, "commondir", line, sizeof line) || !join(out->common, out->own, line))
        snprintf(out->common, sizeof out->common, "%s", out->own);
    return true;
}

static bool find_git(const char *folder, struct folders *out)
{
    char at[PATH_MAX], path[PATH_MAX];
    struct stat st;
    if (!realpath(folder, at)) return false;
    while (!join(path, at, ".git") || stat(path, &st) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || !at[1]) return false;
        slash[slash == at] = 0;
    }
    return git_folder(at, out); /* one that is broken hides those above it, as with git itself */
}

/* "<hash> refs/heads/main" lines; a line that begins otherwise is a comment or a peeled tag. */
static bool packed_ref(const struct folders *f, const char *name, char commit[65])
{
    char path[PATH_MAX], line[4096];
    FILE *in = join(path, f->common, "packed-refs") ? fopen(path, "re") : NULL;
    bool found = false;
    while (in && !found && fgets(line, sizeof line, in)) {
        size_t n = strcspn(line, " ");
        line[strcspn(line, "\r\n")] = 0;
        found = n < strlen(line) && is_hash(line, n) && strcmp(line + n + 1, name) == 0;
        if (found) snprintf(commit, 65, "%.*s", (int)n, line);
    }
    if (in) fclose(in);
    return found;
}

static void follow(const struct folders *f, const char *text, char commit[65], int links)
{
    char line[512];
    if (is_hash(text, strlen(text))) {
        snprintf(commit, 65, "%s", text);
        return;
    }
    const char *name = strncmp(text, "ref: ", 5) == 0 ? text + 5 : "";
    if (strncmp(name, "refs/", 5) != 0 || strstr(name, "..") || links == 0) return;
    if (read_line(f->own, name, line, sizeof line) || read_line(f->common, name, line, sizeof line))
        follow(f, line, commit, links - 1);
    else
        packed_ref(f, name, commit);
}

void gitstate_read(struct gitstate *out, const char *folder)
{
    static const char heads[] = "ref: refs/heads/";
    struct folders f;
    char head[512];
    *out = (struct gitstate){{0}, {0}};
    if (!find_git(folder, &f) || !read_line(f.own, "HEAD", head, sizeof head)) return;
    follow(&f, head, out->commit, LINKS);
    size_t n = strlen(heads);
    if (out->commit[0] && strncmp(head, heads, n) == 0 && strlen(head + n) < sizeof out->branch)
        snprintf(out->branch, sizeof out->branch, "%.255s", head + n);
}

void gitstate_describe(struct run *run)
{
    struct gitstate git;
    gitstate_read(&git, ".");
    if (git.commit[0]) run_map_text(&run->arena, &run->config, "git_commit", git.commit);
    if (git.branch[0]) run_map_text(&run->arena, &run->config, "git_branch", git.branch);
}
