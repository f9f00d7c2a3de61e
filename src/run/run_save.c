/* SPDX-License-Identifier: MIT
 * run_save.c - run documents into files. Never half a file, never over another. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "run/run.h"

enum { NAME_PART_MAX = 80, TRIES_MAX = 10000 };

/* A text as part of a file name: letters, digits, '.', '_' and '-'; anything else becomes one '-'. */
static void add_name_part(struct buf *to, const char *text)
{
    size_t start = to->len;
    for (const char *p = text; *p && to->len - start < NAME_PART_MAX; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     *p == '.' || *p == '_' || *p == '-';
        char c = plain ? *p : '-';
        bool first = to->len == start;
        if (first && (c == '.' || c == '-')) continue;
        if (c == '-' && to->data[to->len - 1] == '-') continue;
        buf_add_char(to, c);
        if (to->failed) return;
    }
    if (to->len == start) buf_add_str(to, "unnamed");
}

/* "2026-11-15T02:17:21.123Z" as 20261115-021721; its form was checked when the document was written. */
static void add_stamp(struct buf *to, const char *t)
{
    buf_printf(to, "%.4s%.2s%.2s-%.2s%.2s%.2s", t, t + 5, t + 8, t + 11, t + 14, t + 17);
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* `stem` plus "", "-2", "-3", ... plus ".json": the first that is free and stays free until we have it. */
static tare_status write_free_name(const char *stem, const struct buf *text, struct buf *path,
                                   tare_error *err)
{
    for (int i = 1; i <= TRIES_MAX; i++) {
        buf_clear(path);
        buf_add_str(path, stem);
        if (i > 1) buf_printf(path, "-%d", i);
        buf_add_str(path, ".json");
        tare_status s = buf_status(path, err);
        if (s < 0) return s;
        if (exists(path->data)) continue;
        s = file_write_atomic(path->data, text->data, text->len, FILE_NO_REPLACE, err);
        if (s == TARE_OK || !exists(path->data)) return s;
    }
    return error_set(err, TARE_IO, "%s.json: this name and %d more are taken", stem, TRIES_MAX - 1);
}

/* The folder is made; `stem` is to fit into `size` with a number and an ending. */
static tare_status make_stem(const struct run_file *f, size_t size, struct buf *stem, tare_error *err)
{
    tare_status s = file_make_folders(f->dir, err);
    if (s < 0) return s;
    buf_printf(stem, "%s/%s_", f->dir, f->kind);
    add_name_part(stem, f->subject);
    buf_add_char(stem, '_');
    add_stamp(stem, f->created);
    if ((s = buf_status(stem, err)) < 0) return s;
    if (size && stem->len + sizeof "-10000.json" > size)
        return error_set(err, TARE_INVALID, "%s.json: name too long", stem->data);
    return TARE_OK;
}

tare_status run_save_text(const struct run_file *f, const struct buf *text, char *path, size_t size,
                          tare_error *err)
{
    struct buf stem = BUF_INIT, name = BUF_INIT;
    tare_status s = make_stem(f, path ? size : 0, &stem, err);
    if (s == TARE_OK) s = write_free_name(stem.data, text, &name, err);
    if (s == TARE_OK && path) snprintf(path, size, "%s", name.data);
    buf_release(&name);
    buf_release(&stem);
    return s;
}

/* True: `name` with .json is free, and with `beside` it was, and is there now. */
static bool take(const struct buf *name, const char *beside)
{
    char path[4200];
    int n = snprintf(path, sizeof path, "%s.json", name->data);
    errno = n < (int)sizeof path ? EEXIST : ENAMETOOLONG;
    if (n >= (int)sizeof path || exists(path)) return false;
    snprintf(path, sizeof path, "%s%s", name->data, beside);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

tare_status run_reserve(const struct run_file *f, const char *beside, char *out, size_t size, tare_error *err)
{
    struct buf stem = BUF_INIT;
    tare_status s = make_stem(f, size, &stem, err);
    size_t n = stem.len;
    for (int i = 1; s == TARE_OK && i <= TRIES_MAX; i++) {
        if (i > 1) buf_printf(&stem, "-%d", i);
        s = buf_status(&stem, err);
        if (s == TARE_OK && take(&stem, beside)) break;
        if (s == TARE_OK && errno != EEXIST) s = error_errno(err, "%s%s: cannot make it", stem.data, beside);
        if (s == TARE_OK && i == TRIES_MAX)
            s = error_set(err, TARE_IO, "%s: all such names are taken", stem.data);
        stem.len = n;
    }
    if (s == TARE_OK) snprintf(out, size, "%s", stem.data);
    buf_release(&stem);
    return s;
}

tare_status run_save(const struct run *r, const char *dir, char *path, size_t size, tare_error *err)
{
    struct buf text = BUF_INIT;
    struct run_file f = {dir, r->kind, r->subject.name, r->created};
    tare_status s = run_write(r, &text, err);
    if (s == TARE_OK) s = run_save_text(&f, &text, path, size, err);
    buf_release(&text);
    return s;
}
