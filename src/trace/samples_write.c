/* SPDX-License-Identifier: MIT
 * samples_write.c - samples into the archive: each moment is one write(2) of whole chunks, so that a kill loses at
 * most the moment under way. Holds a file lock only for that write and never waits long for it: sampling goes on. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/buf.h"
#include "trace/recorder.h"
#include "trace/samples.h"
#include "trace/wire.h"

enum {
    LOCK_TRIES_MS = 20,
    TELL_AGAIN =
        512, /* all series once more after so many moments: damage in one place does not orphan the rest */
    SERIES_BYTES = 256 << 10 /* of a SERIES chunk, about */
};

struct samples_writer {
    int fd;
    char *path;
    char run_id[32];
    uint64_t uid;
    size_t told;    /* series the file knows */
    uint64_t since; /* moments since all series were told */
    uint64_t lost;  /* moments that could not be written */
    struct buf out;
};

/* ---- bytes ---- */

static void put_uint(struct buf *b, uint64_t v)
{
    uint8_t bytes[10];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    enc_uint(&e, v);
    buf_add(b, bytes, (size_t)(e.p - bytes));
}

static void put_text(struct buf *b, const char *s)
{
    size_t n = strlen(s);
    put_uint(b, n);
    buf_add(b, s, n);
}

/* Most values are whole, or whole hundredths or millionths: those become a varint if that gives back the very same
 * number, else the eight bytes of the double follow. */
static void put_value(struct buf *b, double v)
{
    static const double scale[] = {1, 100, 1e6};
    for (unsigned k = 0; k < 3; k++) {
        double scaled = v * scale[k];
        if (!(fabs(scaled) < 9007199254740992.0)) break;
        int64_t whole = llrint(scaled);
        if ((double)whole / scale[k] != v || (whole == 0 && signbit(v))) continue;
        put_uint(b, zigzag(whole) << 2 | k);
        return;
    }
    put_uint(b, 3);
    buf_add(b, &v, sizeof v);
}

static size_t chunk_begin(struct buf *b)
{
    struct chunk_header room = {0};
    size_t at = b->len;
    buf_add(b, &room, sizeof room);
    return at;
}

static void chunk_end(struct samples_writer *w, size_t at, enum chunk_type type)
{
    if (w->out.failed) return;
    const char *payload = w->out.data + at + sizeof(struct chunk_header);
    struct chunk_header h =
        archive_chunk_header(type, w->uid, payload, w->out.len - at - sizeof(struct chunk_header));
    memcpy(w->out.data + at, &h, sizeof h);
}

/* ---- the file ---- */

static ssize_t write_once(int fd, const struct buf *b)
{
    ssize_t n;
    do n = write(fd, b->data, b->len);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Without the lock the append is still whole; only a failed one could not be taken back safely. */
static tare_status put_out(struct samples_writer *w, tare_error *err)
{
    tare_status s = buf_status(&w->out, err);
    if (s != TARE_OK) return s;
    bool locked = archive_lock(w->fd, LOCK_TRIES_MS);
    struct quiet q;
    process_quiet(&q);
    off_t end = locked ? lseek(w->fd, 0, SEEK_END) : -1;
    ssize_t n = write_once(w->fd, &w->out);
    if (n != (ssize_t)w->out.len) {
        if (n >= 0) errno = ENOSPC; /* a short write to a file */
        s = error_errno(err, "%s: cannot write samples", w->path);
        if (n > 0 && end >= 0 && ftruncate(w->fd, end) < 0) s = TARE_IO; /* a torn tail: readers skip it */
    }
    process_unquiet(&q);
    if (locked) flock(w->fd, LOCK_UN);
    return s;
}

/* Who samples: also what makes other programs join this trace instead of putting it aside. */
static tare_status put_process(struct samples_writer *w, tare_error *err)
{
    struct process_info info = {.uid = w->uid,
                                .pid = (uint32_t)getpid(),
                                .parent_pid = (uint32_t)getppid(),
                                .start_time = process_start_time((uint32_t)getpid()),
                                .begun_raw_ns = clock_raw_ns(),
                                .begun_unix_ns = clock_unix_ns(),
                                .site_base = 1};
    char command[LIVE_COMMAND_MAX];
    process_command(command, sizeof command);
    buf_clear(&w->out);
    size_t at = chunk_begin(&w->out);
    buf_add(&w->out, &info, sizeof info);
    put_text(&w->out, command);
    chunk_end(w, at, CHUNK_PROCESS);
    return put_out(w, err);
}

/* Readers take the samples of one process. Whoever comes second at the same time is told, not left out in silence. */
static tare_status be_the_only_one(const struct samples_writer *w, tare_error *err)
{
    uint32_t other = archive_sampler(w->fd);
    if (!other) return TARE_OK;
    return error_set(err, TARE_BUSY, "%s: process %u samples into this trace at the moment; name another",
                     w->path, other);
}

static void writer_free(struct samples_writer *w)
{
    if (w->fd >= 0) close(w->fd);
    buf_release(&w->out);
    mem_free(w->path);
    mem_free(w);
}

tare_status samples_create(struct samples_writer **out, const char *path, const char *run_id, tare_error *err)
{
    struct samples_writer *w = mem_new(1, sizeof *w);
    if (!w) return error_nomem(err, "a trace");
    w->fd = -1;
    w->out = (struct buf)BUF_INIT;
    w->uid = process_random();
    if (run_id) memcpy(w->run_id, run_id, strnlen(run_id, sizeof w->run_id - 1));
    w->path = mem_strdup(path);
    tare_status s = w->path ? TARE_OK : error_nomem(err, "a trace");
    if (s == TARE_OK && (w->fd = archive_open(path, w->run_id, err)) < 0) s = (tare_status)w->fd;
    if (s == TARE_OK) s = be_the_only_one(w, err);
    if (s == TARE_OK) s = put_process(w, err);
    if (s == TARE_OK)
        *out = w;
    else
        writer_free(w);
    return s;
}

const char *samples_run_id(const struct samples_writer *w)
{
    return w->run_id;
}

/* ---- moments ---- */

static void put_series(struct samples_writer *w, const struct series_set *set, size_t from)
{
    while (from < set->items.n && !w->out.failed) {
        size_t at = chunk_begin(&w->out);
        for (; from < set->items.n && w->out.len - at < SERIES_BYTES; from++) {
            const struct series *s = &set->items.items[from];
            put_uint(&w->out, from);
            put_text(&w->out, metric_table[s->metric].name);
            put_text(&w->out, s->label);
        }
        chunk_end(w, at, CHUNK_SERIES);
    }
}

static void put_sample(struct samples_writer *w, const struct sample *s)
{
    size_t at = chunk_begin(&w->out), next = 0;
    put_uint(&w->out, s->at_ns);
    for (size_t i = 0; i < s->values.n; i++) {
        if (!isfinite(s->values.items[i])) continue;
        put_uint(&w->out, i - next);
        put_value(&w->out, s->values.items[i]);
        next = i + 1;
    }
    chunk_end(w, at, CHUNK_SAMPLE);
}

tare_status samples_append(struct samples_writer *w, const struct series_set *set, const struct sample *s,
                           tare_error *err)
{
    if (s->values.n > set->items.n)
        return error_set(err, TARE_INVALID, "a sample of %zu values, but %zu series", s->values.n,
                         set->items.n);
    if (s->values.n > CHUNK_BYTES_MAX / 20)
        return error_set(err, TARE_INVALID, "%zu series are more than a trace holds", s->values.n);
    bool again = w->since >= TELL_AGAIN;
    buf_clear(&w->out);
    put_series(w, set, again ? 0 : w->told);
    put_sample(w, s);
    tare_status status = put_out(w, err);
    w->lost += status != TARE_OK;
    if (status != TARE_OK) return status;
    w->told = set->items.n;
    w->since = again ? 0 : w->since + 1;
    return TARE_OK;
}

tare_status samples_mark(struct samples_writer *w, uint64_t at_ns, enum sample_mark_kind kind,
                         const char *text, tare_error *err)
{
    enum { TEXT_MOST = 64 << 10 };
    size_t n = strlen(text);
    buf_clear(&w->out);
    size_t at = chunk_begin(&w->out);
    put_uint(&w->out, at_ns);
    put_uint(&w->out, kind);
    if (n > TEXT_MOST) n = TEXT_MOST;
    put_uint(&w->out, n);
    buf_add(&w->out, text, n);
    chunk_end(w, at, CHUNK_SAMPLE_MARK);
    return put_out(w, err);
}

tare_status samples_close(struct samples_writer *w, tare_error *err)
{
    if (!w) return TARE_OK;
    buf_clear(&w->out);
    size_t at = chunk_begin(&w->out);
    const uint64_t told[] = {1, 0, w->lost, 0}; /* closed; no scopes, moments lost, nothing damaged */
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) put_uint(&w->out, told[i]);
    chunk_end(w, at, CHUNK_END);
    tare_status s = put_out(w, err);
    writer_free(w);
    return s;
}
