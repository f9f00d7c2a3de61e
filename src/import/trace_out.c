/* SPDX-License-Identifier: MIT
 * trace_out.c - see trace_out.h. Chunks are as the recorder and the GPU library write them; the PROCESS chunk comes
 * last, since only then is it known when all began. */
#include "import/trace_out.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/ulid.h"
#include "trace/pack.h"
#include "trace/recorder.h"

enum {
    CHUNK_ROOM = 256 << 10,
    NAME_BYTES_MOST = 32 << 20, /* kept to tell names apart; then all are told again under new numbers */
    TABLE_MOST = 1 << 17,
    SITES_MOST = (1 << 20) - 2 /* beyond: one site for all the others */
};

struct trace_out_scopes {
    struct packer packer;
    struct raw_event events[PACK_SLOTS_MAX];
    size_t n;
    uint32_t depth;       /* of scopes that are open */
    struct extent extent; /* seq; spare[0]: depth before its first event */
    uint64_t last;        /* time of the latest event: none may be before it */
};

static void fail(struct trace_out *o, tare_status s)
{
    if (o->status == TARE_OK) o->status = s;
}

/* ---- chunks ---- */

static void write_chunk(struct trace_out *o, enum chunk_type type, const void *payload, size_t n)
{
    struct chunk_header h = archive_chunk_header(type, o->uid, payload, n);
    if (o->status < 0) return;
    tare_status s = file_write_all(o->file.fd, &h, sizeof h, o->file.name, o->err);
    if (s == TARE_OK) s = file_write_all(o->file.fd, payload, n, o->file.name, o->err);
    fail(o, s);
}

static tare_status write_header(struct trace_out *o)
{
    struct archive_header h = {.major = TRACE_MAJOR,
                               .minor = TRACE_MINOR,
                               .header_bytes = sizeof h,
                               .created_unix_ns = clock_unix_ns()};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    tare_status s = ulid_new(h.run_id, o->err);
    return s == TARE_OK ? file_write_all(o->file.fd, &h, sizeof h, o->file.name, o->err) : s;
}

tare_status trace_out_open(struct trace_out *o, const char *path, tare_error *err)
{
    *o = (struct trace_out){.file = FILE_OUT_INIT, .uid = process_random(), .err = err};
    o->room = mem_new(1, CHUNK_ROOM);
    o->scopes = mem_new(1, sizeof *o->scopes);
    tare_status s = o->room && o->scopes ? TARE_OK : error_nomem(err, "a trace");
    if (s == TARE_OK) s = file_out_open(&o->file, path, FILE_SHARED, err);
    if (s == TARE_OK) s = write_header(o);
    o->enc = (struct enc){o->room, o->room + CHUNK_ROOM, false};
    if (s < 0) trace_out_release(o);
    return s;
}

void trace_out_release(struct trace_out *o)
{
    file_out_close(&o->file);
    map_str_release(&o->names);
    map_str_release(&o->tables);
    map_str_release(&o->sites);
    mem_free(o->room);
    mem_free(o->scopes);
    o->room = NULL;
    o->scopes = NULL;
}

/* ---- GPU records ---- */

static void flush_gpu(struct trace_out *o)
{
    if (o->enc.p > o->room) write_chunk(o, CHUNK_GPU, o->room, (size_t)(o->enc.p - o->room));
    o->enc = (struct enc){o->room, o->room + CHUNK_ROOM, false};
    o->state = (struct gpu_state){{0}};
}

void trace_out_put(struct trace_out *o, const struct gpu_record *r)
{
    if (gpu_pack(&o->state, &o->enc, r)) return;
    flush_gpu(o);
    gpu_pack(&o->state, &o->enc, r);
}

uint64_t trace_out_name(struct trace_out *o, const char *text, size_t n)
{
    uint64_t *number;
    if (n > GPU_TEXT_MOST) n = GPU_TEXT_MOST;
    if (o->name_bytes > NAME_BYTES_MOST) {
        map_str_release(&o->names);
        o->name_bytes = 0;
    }
    tare_status s = map_str_ref(&o->names, text, n, &number, o->err);
    fail(o, s);
    if (s < 0) return 0;
    if (*number) return *number;
    o->name_bytes += n + 64; /* what the map needs beside the text */
    *number = ++o->next_name;
    struct gpu_record r = {.kind = GPU_NAME, .text = text, .text_bytes = n};
    r.NAME.number = *number;
    trace_out_put(o, &r);
    return o->next_name;
}

uint64_t trace_out_number(struct trace_out *o, struct gpu_record *r)
{
    uint64_t *number;
    r->v[0] = r->kind; /* so that a lane is no shape */
    if (o->tables.n > TABLE_MOST) map_str_release(&o->tables);
    tare_status s = map_str_ref(&o->tables, (const char *)r->v, sizeof r->v, &number, o->err);
    fail(o, s);
    if (s < 0) return 0;
    if (*number) return r->v[0] = *number;
    r->v[0] = *number = ++o->next_number[r->kind];
    trace_out_put(o, r);
    return r->v[0];
}

void trace_out_note(struct trace_out *o, const char *format, ...)
{
    char text[GPU_NOTE_MOST];
    va_list ap;
    va_start(ap, format);
    struct gpu_record r = gpu_note(text, format, ap);
    va_end(ap);
    trace_out_put(o, &r);
}

/* ---- scopes ---- */

static void flush_scopes(struct trace_out *o)
{
    struct trace_out_scopes *s = o->scopes;
    if (!s->n) return;
    s->extent.seq++;
    size_t bytes = pack_events(&s->packer, &s->extent, s->events, s->n, 0);
    if (bytes) write_chunk(o, CHUNK_EVENTS, s->packer.out, bytes);
    s->extent.spare[0] = s->depth;
    s->n = 0;
}

void trace_out_thread(struct trace_out *o, uint32_t tid, const char *name)
{
    uint8_t bytes[512];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    size_t n = strnlen(name, THREAD_NAME_MAX - 1);
    flush_scopes(o);
    o->scopes->depth = 0;
    o->scopes->last = 0;
    o->scopes->extent = (struct extent){.thread = o->threads++};
    enc_uints(&e, o->scopes->extent.thread, o->scopes->extent.thread, tid, 1, 0, 0, 0);
    enc_str(&e, name, n);
    write_chunk(o, CHUNK_THREAD, bytes, (size_t)(e.p - bytes));
}

static void add_event(struct trace_out *o, uint64_t at, unsigned kind, uint32_t site)
{
    struct trace_out_scopes *s = o->scopes;
    if (at < s->last) at = s->last;
    s->last = at;
    s->events[s->n++] = (struct raw_event){at, raw_what(kind, 0, 0, 0, site)};
    if (s->n == PACK_SLOTS_MAX) flush_scopes(o);
}

static uint32_t site_of(struct trace_out *o, const char *name)
{
    uint64_t *number;
    size_t n = strnlen(name, SITE_NAME_MAX);
    if (o->sites.n >= SITES_MOST && !map_str_find(&o->sites, name, n)) {
        name = "(other)";
        n = strlen(name);
    }
    tare_status s = map_str_ref(&o->sites, name, n, &number, o->err);
    fail(o, s);
    if (s < 0) return 1;
    if (*number) return (uint32_t)*number;
    *number = o->sites.n;
    uint8_t bytes[SITE_NAME_MAX + 64];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    enc_uints(&e, *number, 0, TARE_SITE_SCOPE);
    enc_str(&e, name, n);
    enc_str(&e, "", 0);
    write_chunk(o, CHUNK_SITES, bytes, (size_t)(e.p - bytes));
    return (uint32_t)*number;
}

void trace_out_begin(struct trace_out *o, uint64_t at, const char *name)
{
    uint32_t site = site_of(o, name);
    o->scopes->depth++;
    add_event(o, at, RAW_BEGIN, site);
}

void trace_out_end(struct trace_out *o, uint64_t at)
{
    if (!o->scopes->depth) return;
    o->scopes->depth--;
    add_event(o, at, RAW_END, 0);
}

/* ---- the end ---- */

static void write_process(struct trace_out *o, const struct trace_out_process *p)
{
    struct process_info info = {.uid = o->uid,
                                .pid = p->pid,
                                .begun_raw_ns = p->begun_ns,
                                .begun_unix_ns = p->begun_unix_ns,
                                .mode = MODE_GPU | MODE_IMPORTED | (o->threads ? TARE_EVENTS : 0),
                                .site_base = 1};
    uint8_t bytes[sizeof info + LIVE_COMMAND_MAX + 16];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    enc_bytes(&e, &info, sizeof info);
    enc_str(&e, p->command, strnlen(p->command, LIVE_COMMAND_MAX - 1));
    write_chunk(o, CHUNK_PROCESS, bytes, (size_t)(e.p - bytes));
}

tare_status trace_out_finish(struct trace_out *o, const struct trace_out_process *p)
{
    uint8_t bytes[64];
    struct enc e = {bytes, bytes + sizeof bytes, false};
    flush_scopes(o);
    flush_gpu(o);
    write_process(o, p);
    enc_uints(&e, 1, 0, 0, 0); /* closed, nothing lost */
    write_chunk(o, CHUNK_END, bytes, (size_t)(e.p - bytes));
    return o->status < 0 ? o->status : file_out_commit(&o->file, o->err);
}
