/* SPDX-License-Identifier: MIT
 * runner_tree.c - see runner_tree.h. */
#include "server/jobs/runner_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/jobs/runner.h"

/* ---- results ---- */

static bool read_document(int dir, const char *name, struct buf *text)
{
    struct stat st;
    char piece[16384];
    ssize_t n = -1;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return false;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= DOCUMENT_MAX)
        while (text->len <= DOCUMENT_MAX && (n = read(fd, piece, sizeof piece)) > 0)
            buf_add(text, piece, (size_t)n);
    close(fd);
    return n == 0 && !text->failed && text->len <= DOCUMENT_MAX;
}

void tree_documents(int dir, const char *under,
                    void (*found)(void *ctx, const char *name, const struct buf *text), void *ctx)
{
    int fd = openat(dir, under, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    int n = 0;
    for (struct dirent *e; list && n < DOCUMENTS_MAX && (e = readdir(list));) {
        size_t length = strlen(e->d_name);
        struct buf text = BUF_INIT;
        if (length > 5 && length < 64 && strcmp(e->d_name + length - 5, ".json") == 0 &&
            read_document(fd, e->d_name, &text)) {
            found(ctx, e->d_name, &text);
            n++;
        }
        buf_release(&text);
    }
    if (list)
        closedir(list);
    else if (fd >= 0)
        close(fd);
}

/* ---- the end ---- */

enum { DEPTH_MAX = 64 };

struct removal {
    int top;
    unsigned moved;
};

static void empty(struct removal *r, int dir, unsigned depth);

/* A folder that lies too deep is moved to the top, where its turn comes again. */
static void remove_entry(struct removal *r, int dir, const char *name, unsigned depth)
{
    char other[32];
    if (unlinkat(dir, name, 0) == 0) return;
    fchmodat(dir, name, 0700, 0);
    if (depth >= DEPTH_MAX) {
        snprintf(other, sizeof other, ".deep-%u", r->moved++);
        renameat(dir, name, r->top, other);
        return;
    }
    int inner = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0) {
        empty(r, inner, depth + 1);
        close(inner);
    }
    unlinkat(dir, name, AT_REMOVEDIR);
}

static void empty(struct removal *r, int dir, unsigned depth)
{
    int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again >= 0 ? fdopendir(again) : NULL;
    if (!list && again >= 0) close(again);
    for (struct dirent *e; list && (e = readdir(list));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove_entry(r, dir, e->d_name, depth);
    if (list) closedir(list);
}

void tree_remove(const char *path, int dir)
{
    struct removal r = {dir, 0};
    fchmod(dir, 0700);
    for (int round = 0; round < 10000 && rmdir(path) < 0; round++) empty(&r, dir, 0);
    close(dir);
}
