/* SPDX-License-Identifier: MIT
 * appender.c - whole chunks into an archive: see appender.h. Holds the file's lock only for a write and never waits
 * long for it: whoever measures must go on. */
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "trace/appender.h"
#include "trace/recorder.h"
#include "trace/wire.h"

enum { LOCK_TRIES_MS = 20 };

/* ---- bytes ---- */

void appender_uint(struct appender *a, uint64_t v)
{
    uint8_t bytes[10];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    enc_uint(&e, v);
    buf_add(&a->out, bytes, (size_t)(e.p - bytes));
}

void appender_text(struct appender *a, const char *s, size_t n)
{
    appender_uint(a, n);
    buf_add(&a->out, s, n);
}

size_t appender_begin(struct appender *a)
{
    struct chunk_header room = {0};
    size_t at = a->out.len;
    buf_add(&a->out, &room, sizeof room);
    return at;
}

void appender_end(struct appender *a, size_t at, enum chunk_type type)
{
    if (a->out.failed) return;
    const char *payload = a->out.data + at + sizeof(struct chunk_header);
    struct chunk_header h =
        archive_chunk_header(type, a->uid, payload, a->out.len - at - sizeof(struct chunk_header));
    memcpy(a->out.data + at, &h, sizeof h);
}

/* ---- the file ---- */

/* Without the lock the append is still whole; only a failed one could not be taken back safely. */
tare_status appender_write(struct appender *a, tare_error *err)
{
    struct iovec v[2] = {{a->out.data, a->out.len}, {a->out.data, 0}}; /* no second part */
    tare_status s = buf_status(&a->out, err);
    if (s == TARE_OK && a->out.len && !archive_write(a->fd, archive_lock(a->fd, LOCK_TRIES_MS), v))
        s = error_errno(err, "%s: cannot write to the trace", a->path);
    buf_clear(&a->out);
    return s;
}

/* Who writes: also what makes other programs join this trace instead of putting it aside. */
static tare_status put_process(struct appender *a, const struct appender_options *o, tare_error *err)
{
    uint32_t pid = o->pid ? o->pid : (uint32_t)getpid();
    struct process_info info = {.uid = a->uid,
                                .pid = pid,
                                .parent_pid = o->pid ? 0 : (uint32_t)getppid(),
                                .start_time = process_start_time(pid),
                                .begun_raw_ns = clock_raw_ns(),
                                .begun_unix_ns = clock_unix_ns(),
                                .mode = o->mode,
                                .tsc = o->tsc,
                                .site_base = 1};
    char command[LIVE_COMMAND_MAX];
    process_command(command, sizeof command, o->pid);
    size_t at = appender_begin(a);
    buf_add(&a->out, &info, sizeof info);
    appender_text(a, command, strlen(command));
    appender_end(a, at, CHUNK_PROCESS);
    return appender_write(a, err);
}

/* Readers take the samples of one process. Whoever comes second at the same time is told, not left out in silence. */
static tare_status be_the_only_sampler(const struct appender *a, tare_error *err)
{
    uint32_t other = archive_sampler(a->fd);
    if (!other) return TARE_OK;
    return error_set(err, TARE_BUSY, "%s: process %u samples into this trace at the moment; name another",
                     a->path, other);
}

static void let_go(struct appender *a)
{
    if (a->fd >= 0) close(a->fd);
    buf_release(&a->out);
    mem_free(a->path);
    *a = (struct appender){.fd = -1, .out = BUF_INIT};
}

tare_status appender_open(struct appender *a, const struct appender_options *o, tare_error *err)
{
    *a = (struct appender){.fd = -1, .out = BUF_INIT};
    a->uid = process_random();
    if (o->run_id) memcpy(a->run_id, o->run_id, strnlen(o->run_id, sizeof a->run_id - 1));
    a->path = mem_strdup(o->path);
    tare_status s = a->path ? TARE_OK : error_nomem(err, "a trace");
    if (s == TARE_OK && (a->fd = archive_open(o->path, a->run_id, err)) < 0) s = (tare_status)a->fd;
    if (s == TARE_OK && o->sampler) s = be_the_only_sampler(a, err);
    if (s == TARE_OK) s = put_process(a, o, err);
    if (s != TARE_OK) let_go(a);
    return s;
}

tare_status appender_close(struct appender *a, uint64_t lost, tare_error *err)
{
    const uint64_t told[] = {1, 0, lost, 0}; /* closed; no scopes, moments lost, nothing damaged */
    size_t at = appender_begin(a);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) appender_uint(a, told[i]);
    appender_end(a, at, CHUNK_END);
    tare_status s = appender_write(a, err);
    let_go(a);
    return s;
}
