/* SPDX-License-Identifier: MIT
 * sink.c - see sink.h. Never leaves a half-written file under the name the user asked for. */
#include "report/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"

/* ---- into memory ---- */

static tare_status write_buf(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct buf *b = ctx;
    buf_add(b, bytes, n);
    return buf_status(b, err);
}

struct sink sink_to_buf(struct buf *b)
{
    return (struct sink){write_buf, b};
}

/* ---- into a file ---- */

static tare_status write_file(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct sink_file *f = ctx;
    return file_write_all(f->fd, bytes, n, f->name, err);
}

struct sink sink_to_file(struct sink_file *f)
{
    return (struct sink){write_file, f};
}

/* A name beside the target that nobody has: created, open. */
static tare_status open_temp(struct sink_file *f, tare_error *err)
{
    for (unsigned n = 0; n < 1000 && f->fd < 0; n++) {
        struct buf name = BUF_INIT;
        buf_printf(&name, "%s.%ld-%u.tmp", f->path, (long)getpid(), n);
        f->temp = buf_take(&name);
        if (!f->temp) return error_set(err, TARE_NOMEM, "%s: out of memory", f->name);
        f->fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0) break;
        int code = errno;
        mem_free(f->temp);
        f->temp = NULL; /* not ours: never to be removed */
        errno = code;
        if (code != EEXIST) break;
    }
    return f->fd < 0 ? error_errno(err, "%s: cannot create", f->name) : TARE_OK;
}

/* The path to rename to: an existing link is followed, so that the link survives. */
static tare_status final_path(struct sink_file *f, const char *path, tare_error *err)
{
    char real[PATH_MAX];
    f->path = mem_strdup(realpath(path, real) ? real : path);
    return f->path ? TARE_OK : error_set(err, TARE_NOMEM, "%s: out of memory", path);
}

tare_status sink_file_open(struct sink_file *f, const char *path, tare_error *err)
{
    *f = (struct sink_file)SINK_FILE_INIT;
    f->name = path;
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return error_set(err, TARE_INVALID, "%s: is a directory; name a file to write", path);
    if (!*path) return error_set(err, TARE_INVALID, "the name of the file to write is empty");
    if (exists && !S_ISREG(st.st_mode)) {
        f->fd = open(path, O_WRONLY | O_CLOEXEC);
        return f->fd < 0 ? error_errno(err, "%s: cannot open for writing", path) : TARE_OK;
    }
    if (exists && access(path, W_OK) < 0) return error_errno(err, "%s: cannot be overwritten", path);
    tare_status s = final_path(f, path, err);
    if (s == TARE_OK) s = open_temp(f, err);
    if (s < 0) sink_file_close(f);
    return s;
}

/* The new name outlives a power cut only when its folder is on disk too. */
static tare_status sync_folder(const struct sink_file *f, tare_error *err)
{
    const char *slash = strrchr(f->path, '/');
    char *folder = slash ? mem_strndup(f->path, (size_t)(slash - f->path) + 1) : mem_strdup(".");
    if (!folder) return error_set(err, TARE_NOMEM, "%s: out of memory", f->name);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mem_free(folder);
    if (fd < 0) return TARE_OK; /* a folder that may be written but not read: nothing to sync by */
    tare_status s = TARE_OK;
    if (fsync(fd) < 0 && errno != EINVAL) s = error_errno(err, "%s: cannot sync its folder", f->name);
    close(fd);
    return s;
}

tare_status sink_file_commit(struct sink_file *f, tare_error *err)
{
    tare_status s = TARE_OK;
    if (f->temp && fsync(f->fd) < 0) s = error_errno(err, "%s: cannot write to disk", f->name);
    int fd = f->fd;
    f->fd = -1;
    if (close(fd) < 0 && s == TARE_OK) s = error_errno(err, "%s: cannot finish writing", f->name);
    if (s == TARE_OK && f->temp && rename(f->temp, f->path) < 0)
        s = error_errno(err, "%s: cannot put the finished file in place", f->name);
    if (s == TARE_OK) {
        mem_free(f->temp);
        f->temp = NULL;
        if (f->path) s = sync_folder(f, err);
    }
    sink_file_close(f);
    return s;
}

void sink_file_close(struct sink_file *f)
{
    if (f->fd >= 0) close(f->fd);
    if (f->temp) unlink(f->temp);
    mem_free(f->temp);
    mem_free(f->path);
    *f = (struct sink_file)SINK_FILE_INIT;
}

/* ---- the stream ---- */

void stream_init(struct stream *s, struct sink to, tare_error *err)
{
    *s = (struct stream){.to = to, .out = BUF_INIT, .err = err, .style = REPORT_STYLE_NONE};
}

tare_status stream_flush(struct stream *s)
{
    if (s->status == TARE_OK && s->out.failed) s->status = buf_status(&s->out, s->err);
    if (s->status == TARE_OK && s->out.len > 0)
        s->status = s->to.write(s->to.ctx, s->out.data, s->out.len, s->err);
    if (s->status == TARE_OK) s->written += s->out.len;
    buf_clear(&s->out);
    return s->status;
}

tare_status stream_finish(struct stream *s)
{
    stream_flush(s);
    buf_release(&s->out);
    return s->status;
}

void stream_add_uint(struct stream *s, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    buf_add(&s->out, digits + at, sizeof digits - at);
}

void stream_add_int(struct stream *s, int64_t v)
{
    if (v < 0) buf_add_char(&s->out, '-');
    stream_add_uint(s, v < 0 ? -(uint64_t)v : (uint64_t)v);
}
