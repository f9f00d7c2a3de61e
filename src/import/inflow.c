/* SPDX-License-Identifier: MIT
 * inflow.c - see inflow.h. zlib does the unpacking; several gzip members after one another are one file, as for
 * gunzip. */
#include "import/inflow.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/mem.h"

enum { ROOM = 128 << 10 };

struct inflow {
    const char *name;
    char *own_name;
    int fd; /* -1: bytes in memory */
    const uint8_t *bytes;
    size_t left;
    uint64_t passed; /* bytes of the file itself so far */
    z_stream z;
    bool packed, unpacking; /* unpacking: `z` is set up */
    bool ended;             /* the file itself */
    bool between;           /* gzip members: what follows is another or nothing */
    uint8_t room[ROOM];
};

/* More of the file itself into `room`. */
static tare_status fetch(struct inflow *f, tare_error *err)
{
    ssize_t n;
    if (f->fd < 0) {
        n = (ssize_t)(f->left < ROOM ? f->left : ROOM);
        memcpy(f->room, f->bytes, (size_t)n);
        f->bytes += n;
        f->left -= (size_t)n;
    } else {
        do n = read(f->fd, f->room, ROOM);
        while (n < 0 && errno == EINTR);
        if (n < 0) return error_errno(err, "%s: cannot read it", f->name);
    }
    f->passed += (uint64_t)n;
    f->ended = n == 0;
    f->z.next_in = f->room;
    f->z.avail_in = (uInt)n;
    return TARE_OK;
}

static tare_status begin(struct inflow *f, tare_error *err)
{
    tare_status s = fetch(f, err);
    if (s < 0) return s;
    f->packed = f->z.avail_in >= 2 && f->room[0] == 0x1f && f->room[1] == 0x8b;
    if (!f->packed) return TARE_OK;
    if (inflateInit2(&f->z, 15 + 16) != Z_OK) return error_nomem(err, "unpacking %s", f->name);
    f->unpacking = true;
    return TARE_OK;
}

static tare_status open_as(struct inflow **out, struct inflow *f, tare_error *err)
{
    tare_status s = begin(f, err);
    if (s < 0)
        inflow_close(f);
    else
        *out = f;
    return s;
}

tare_status inflow_open(struct inflow **out, const char *path, tare_error *err)
{
    struct stat st;
    struct inflow *f = mem_new(1, sizeof *f);
    if (!f) return error_nomem(err, "reading %s", path);
    memset(f, 0, offsetof(struct inflow, room));
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    f->own_name = mem_strdup(path);
    f->name = f->own_name;
    tare_status s = TARE_OK;
    if (!f->own_name)
        s = error_nomem(err, "reading %s", path);
    else if (f->fd < 0 || fstat(f->fd, &st) < 0)
        s = error_errno(err, "%s: cannot open it", path);
    else if (S_ISDIR(st.st_mode))
        s = error_set(err, TARE_INVALID, "%s: is a folder, not a file", path);
    if (s < 0) {
        inflow_close(f);
        return s;
    }
    return open_as(out, f, err);
}

tare_status inflow_of(struct inflow **out, const char *name, const void *bytes, size_t n, tare_error *err)
{
    struct inflow *f = mem_new(1, sizeof *f);
    if (!f) return error_nomem(err, "reading %s", name);
    memset(f, 0, offsetof(struct inflow, room));
    f->fd = -1;
    f->name = name;
    f->bytes = bytes;
    f->left = n;
    return open_as(out, f, err);
}

void inflow_close(struct inflow *f)
{
    if (!f) return;
    if (f->unpacking) inflateEnd(&f->z);
    if (f->fd >= 0) close(f->fd);
    mem_free(f->own_name);
    mem_free(f);
}

static tare_status damaged(const struct inflow *f, const char *why, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "%s: byte %" PRIu64 ": the gzip file is damaged: %s", f->name,
                     f->passed - f->z.avail_in, why);
}

/* Between members zeros may stand, as tapes and some file systems leave them; anything else there is damage. */
static tare_status next_member(struct inflow *f, tare_error *err)
{
    while (f->z.avail_in && !*f->z.next_in) {
        f->z.next_in++;
        f->z.avail_in--;
    }
    if (!f->z.avail_in) return TARE_OK;
    if (*f->z.next_in != 0x1f) return damaged(f, "something follows its end", err);
    f->between = false;
    return inflateReset(&f->z) == Z_OK ? TARE_OK : error_nomem(err, "unpacking %s", f->name);
}

static tare_status unpack(struct inflow *f, tare_error *err)
{
    int rc = inflate(&f->z, Z_NO_FLUSH);
    f->between = rc == Z_STREAM_END;
    if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return TARE_OK;
    if (rc == Z_MEM_ERROR) return error_nomem(err, "unpacking %s", f->name);
    return damaged(f, f->z.msg ? f->z.msg : "it cannot be unpacked", err);
}

static tare_status read_packed(struct inflow *f, void *bytes, size_t room, size_t *n, tare_error *err)
{
    tare_status s = TARE_OK;
    f->z.next_out = bytes;
    f->z.avail_out = (uInt)room;
    while (s == TARE_OK && f->z.avail_out == room) {
        if (!f->z.avail_in && !f->ended) s = fetch(f, err);
        if (s == TARE_OK && f->between) s = next_member(f, err);
        if (s < 0) break;
        if (!f->z.avail_in && f->ended) {
            if (!f->between) s = damaged(f, "it was cut off", err);
            break;
        }
        if (!f->between) s = unpack(f, err);
    }
    *n = room - f->z.avail_out;
    return s;
}

tare_status inflow_read(void *ctx, void *bytes, size_t room, size_t *n, tare_error *err)
{
    struct inflow *f = ctx;
    if (room > 1 << 20) room = 1 << 20; /* zlib counts in 32 bits */
    if (f->packed) return read_packed(f, bytes, room, n, err);
    tare_status s = f->z.avail_in || f->ended ? TARE_OK : fetch(f, err);
    *n = f->z.avail_in < room ? f->z.avail_in : room;
    memcpy(bytes, f->z.next_in, *n);
    f->z.next_in += *n;
    f->z.avail_in -= (uInt)*n;
    return s;
}
