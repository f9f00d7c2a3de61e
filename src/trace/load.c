/* SPDX-License-Identifier: MIT
 * load.c - opening a trace: walks the archive's chunks, folds in the live files beside it, and keeps an index.
 * Damage costs the damaged chunk and no more; it is counted and described, and only a file in which nothing
 * makes sense is an error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "core/buf.h"
#include "core/str.h"
#include "trace/chunks.h"
#include "trace/fold.h"
#include "trace/gpu.h"
#include "trace/loaded.h"
#include "trace/memory.h"

enum { TEXT_MAX = 4096, SITES_MAX = 1 << 20, PROCESSES_MAX = 1 << 20, LET_GO_BYTES = 16 << 20 };

void loss_note(struct trace *t, const char *format, ...)
{
    if (t->loss.first[0]) return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(t->loss.first, sizeof t->loss.first, format, ap);
    va_end(ap);
}

/* ---- payloads ---- */

bool stored_open(const struct stored *s, struct scratch *scratch, struct dec *out)
{
    *out = (struct dec){s->bytes, s->bytes + s->stored_bytes, false};
    if (s->codec == CODEC_PLAIN) return true;
    if (s->codec != CODEC_ZSTD || !s->plain_bytes || s->plain_bytes > CHUNK_BYTES_MAX) return false;
    if (scratch->cap < s->plain_bytes) {
        uint8_t *p = mem_resize(scratch->bytes, s->plain_bytes, 1);
        scratch->refused |= !p;
        if (!p) return false;
        scratch->bytes = p;
        scratch->cap = s->plain_bytes;
    }
    size_t n = ZSTD_decompress(scratch->bytes, s->plain_bytes, s->bytes, s->stored_bytes);
    scratch->refused |= ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation;
    if (ZSTD_isError(n) || n != s->plain_bytes) return false;
    *out = (struct dec){scratch->bytes, scratch->bytes + n, false};
    return true;
}

tare_status scratch_status(const struct scratch *s, tare_error *err)
{
    return s->refused ? error_nomem(err, "a chunk of the trace") : TARE_OK;
}

/* A NUL-terminated, valid UTF-8 copy owned by the trace; longer than any recorder writes is cut. */
static tare_status own_text(struct trace *t, const char *s, size_t n, const char **out, tare_error *err)
{
    struct buf b = BUF_INIT;
    str_add_utf8(&b, s, n < TEXT_MAX ? n : TEXT_MAX);
    char *text = buf_take(&b);
    if (!text) return error_nomem(err, "a name of %zu bytes", n);
    tare_status status = vec_push(&t->owned, text, err);
    if (status != TARE_OK) {
        mem_free(text);
        return status;
    }
    *out = text;
    return TARE_OK;
}

/* ---- finding processes and threads ---- */

/* The index of a process by its number in the file, made at first sight: chunks may come before its description. */
static tare_status process_of(struct trace *t, uint64_t uid, uint32_t *out, tare_error *err)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&t->process_index, uid, &at, err);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct loaded_process p = {.uid = uid, .parent = -1};
        p.pub.command = "";
        if (t->processes.n >= PROCESSES_MAX)
            return error_set(err, TARE_FORMAT, "more than %d processes", PROCESSES_MAX);
        s = vec_push(&t->processes, p, err);
        if (s != TARE_OK) return s;
        *at = t->processes.n;
    }
    *out = (uint32_t)(*at - 1);
    return TARE_OK;
}

static tare_status thread_of(struct trace *t, uint32_t process, uint32_t index, uint32_t *out,
                             tare_error *err)
{
    uint64_t *at;
    tare_status s = map_u64_ref(&t->thread_index, (uint64_t)process << 32 | index, &at, err);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct loaded_thread fresh = {.index = index, .slot = UINT32_MAX};
        fresh.pub.process = process;
        fresh.pub.name = "";
        s = vec_push(&t->threads, fresh, err);
        if (s != TARE_OK) return s;
        *at = t->threads.n;
    }
    *out = (uint32_t)(*at - 1);
    return TARE_OK;
}

/* ---- one function per chunk type: a malformed payload sets d->failed and changes as little as it can ---- */

static tare_status nonsense(struct dec *d)
{
    d->failed = true;
    return TARE_OK;
}

static tare_status load_process(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    struct loaded_process *p = &t->processes.items[s->process];
    struct process_info info = {0};
    size_t n;
    dec_copy(d, &info, sizeof info);
    const char *command = dec_str(d, &n);
    if (d->failed || info.uid != p->uid) return nonsense(d);
    p->info = info;
    p->described = true;
    return own_text(t, command, n, &p->pub.command, err);
}

/* A site as it lies in a payload: its texts are not NUL-terminated. */
struct raw_site {
    uint64_t own;
    struct trace_site site;
    size_t name_bytes, file_bytes;
};

/* Sites of all processes that say the same become one: `kind/line/length of name/name file` is the key. */
static tare_status intern_site(struct trace *t, const struct raw_site *raw, uint32_t *out, tare_error *err)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, "%u/%u/%zu/", raw->site.kind, raw->site.line, raw->name_bytes);
    buf_add(&key, raw->site.name, raw->name_bytes);
    buf_add(&key, raw->site.file, raw->file_bytes);
    uint64_t *at = NULL;
    tare_status s = buf_status(&key, err);
    if (s == TARE_OK) s = map_str_ref(&t->site_index, key.data, key.len, &at, err);
    buf_release(&key);
    if (s != TARE_OK) return s;
    if (!*at) {
        struct trace_site copy = raw->site;
        s = own_text(t, raw->site.name, raw->name_bytes, &copy.name, err);
        if (s == TARE_OK) s = own_text(t, raw->site.file, raw->file_bytes, &copy.file, err);
        if (s == TARE_OK) s = vec_push(&t->sites, copy, err);
        if (s != TARE_OK) return s;
        *at = t->sites.n;
    }
    *out = (uint32_t)*at;
    return TARE_OK;
}

/* A process numbers its sites from 1; 0 would be "none", and more than a recorder gives out is damage. */
static tare_status load_sites(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    tare_status status = TARE_OK;
    while (status == TARE_OK && d->p < d->end && !d->failed) {
        struct raw_site raw = {.own = dec_uint(d)};
        raw.site.line = (uint32_t)dec_uint(d);
        raw.site.kind = (uint32_t)dec_uint(d);
        raw.site.name = dec_str(d, &raw.name_bytes);
        raw.site.file = dec_str(d, &raw.file_bytes);
        if (!raw.own || raw.own >= SITES_MAX || raw.site.kind > TARE_SITE_MARK || t->sites.n >= SITES_MAX)
            d->failed = true;
        if (d->failed) break;
        uint32_t index = 0;
        status = intern_site(t, &raw, &index, err);
        if (status == TARE_OK)
            status = map_u64_put(&t->site_numbers, (uint64_t)s->process << 32 | raw.own, index, err);
    }
    return status;
}

static void told_more(struct told_loss *to, const struct told_loss *now)
{
    if (now->lost > to->lost) to->lost = now->lost;
    if (now->abandoned > to->abandoned) to->abandoned = now->abandoned;
    if (now->foreign > to->foreign) to->foreign = now->foreign;
    if (now->damaged > to->damaged) to->damaged = now->damaged;
}

static tare_status load_thread(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    uint64_t index = dec_uint(d), slot = dec_uint(d), tid = dec_uint(d), threads = dec_uint(d);
    uint64_t lost = dec_uint(d), abandoned = dec_uint(d), foreign = dec_uint(d);
    size_t n;
    const char *name = dec_str(d, &n);
    if (d->failed || index >= UINT32_MAX || slot >= UINT32_MAX) return nonsense(d);
    uint32_t at;
    tare_status status = thread_of(t, s->process, (uint32_t)index, &at, err);
    if (status != TARE_OK) return status;
    struct loaded_thread *thread = &t->threads.items[at];
    thread->slot = (uint32_t)slot;
    thread->pub.tid = (uint32_t)tid;
    if (threads > thread->slot_threads) thread->slot_threads = (uint32_t)threads;
    told_more(&thread->told, &(struct told_loss){lost, abandoned, foreign, 0});
    return own_text(t, name, n, &thread->pub.name, err);
}

struct events_head events_head(struct dec *d)
{
    struct events_head h;
    h.thread = dec_uint(d);
    h.seq = dec_uint(d);
    h.shift = dec_uint(d);
    h.depth_before = dec_uint(d);
    h.depth_after = dec_uint(d);
    h.n_events = dec_uint(d);
    h.first = dec_uint(d);
    h.span = dec_uint(d);
    if (h.thread >= UINT32_MAX || h.shift > 16 || h.depth_after > UINT32_MAX) d->failed = true;
    return h;
}

static tare_status load_events(struct trace *t, const struct stored *stored, struct dec *d, tare_error *err)
{
    struct events_head h = events_head(d);
    if (d->failed || h.n_events > stored->plain_bytes) return nonsense(d);
    uint32_t at;
    tare_status s = thread_of(t, stored->process, (uint32_t)h.thread, &at, err);
    if (s != TARE_OK) return s;
    struct loaded_thread *thread = &t->threads.items[at];
    t->has_events = true;
    struct events_chunk chunk = {*stored, h.seq, h.depth_after, (h.first + h.span) << h.shift, h.n_events};
    return vec_push(&thread->chunks, chunk, err);
}

static tare_status load_pauses(struct trace *t, const struct stored *stored, struct dec *d, tare_error *err)
{
    uint64_t thread = dec_uint(d), seq = dec_uint(d);
    uint32_t at;
    if (d->failed || thread >= UINT32_MAX) return nonsense(d);
    tare_status s = thread_of(t, stored->process, (uint32_t)thread, &at, err);
    if (s != TARE_OK) return s;
    struct events_chunk chunk = {.stored = *stored, .seq = seq, .n_events = stored->plain_bytes};
    t->threads.items[at].pub.waits = true;
    return vec_push(&t->threads.items[at].pauses, chunk, err);
}

static tare_status load_clock(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    uint64_t n = dec_uint(d);
    if (n > LIVE_PAIRS) d->failed = true;
    for (uint64_t i = 0; i < n && !d->failed; i++) {
        struct clock_pair pair;
        dec_copy(d, &pair, sizeof pair);
        if (d->failed) break;
        tare_status status = vec_push(&t->processes.items[s->process].pairs, pair, err);
        if (status != TARE_OK) return status;
    }
    return TARE_OK;
}

static tare_status load_end(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    uint64_t closed = dec_uint(d), scopes = dec_uint(d), events = dec_uint(d), damaged = dec_uint(d);
    (void)err;
    if (d->failed) return TARE_OK;
    struct loaded_process *p = &t->processes.items[s->process];
    p->ended = true;
    p->pub.closed = closed == 1;
    uint64_t why = d->p < d->end ? dec_uint(d) : RECORD_END_UNTOLD, raw_ns = why ? dec_uint(d) : 0;
    if (!d->failed && why <= RECORD_END_KEPT) p->told_end = (struct told_end){raw_ns, why};
    told_more(&p->told, &(struct told_loss){.lost = scopes + events, .damaged = damaged});
    return TARE_OK;
}

static tare_status load_tree(struct trace *t, const struct stored *s, struct dec *d, tare_error *err)
{
    uint64_t slot = dec_uint(d), number = dec_uint(d);
    if (d->failed || slot >= UINT32_MAX || number >= UINT32_MAX) return nonsense(d);
    return vec_push(&t->trees, ((struct tree_chunk){*s, slot, number}), err);
}

/* All of it must be sound; of its contents only the clock is wanted now, gpu_read.c takes the rest. */
static tare_status load_gpu(struct trace *t, const struct stored *stored, struct dec *d, tare_error *err)
{
    struct gpu_state state = {{0}};
    struct gpu_record r;
    tare_status s = TARE_OK;
    while (s == TARE_OK && gpu_unpack(&state, d, &r)) {
        if (r.kind != GPU_CLOCK) continue;
        struct clock_pair pair = {.ticks = r.CLOCK.stamp, .raw_ns = r.CLOCK.raw_ns};
        s = vec_push(&t->processes.items[stored->process].pairs, pair, err);
    }
    return s;
}

/* All of it must be sound; memory_read.c takes what is in it. */
static tare_status load_memory(struct trace *t, const struct stored *stored, struct dec *d, tare_error *err)
{
    struct memory_state state = {{0}};
    struct memory_record r;
    struct memory_head head;
    (void)t, (void)stored, (void)err;
    if (memory_head(d, &head))
        while (memory_unpack(&state, d, &r)) continue;
    return TARE_OK;
}

/* NULL: chunks of the probes, which samples.h reads. */
static tare_status (*const loaders[])(struct trace *, const struct stored *, struct dec *, tare_error *) = {
    [CHUNK_PROCESS] = load_process, [CHUNK_SITES] = load_sites, [CHUNK_THREAD] = load_thread,
    [CHUNK_EVENTS] = load_events, [CHUNK_TREE] = load_tree, [CHUNK_CLOCK] = load_clock, [CHUNK_END] = load_end,
    [CHUNK_PAUSES] = load_pauses, [CHUNK_GPU] = load_gpu, [CHUNK_MEMORY] = load_memory,
    [CHUNK_SERIES] = NULL, [CHUNK_SAMPLE] = NULL, [CHUNK_SAMPLE_MARK] = NULL,
};

/* What can be decoded is loaded, the rest counted as damage. Chunks but events and trees are kept as they came, for
 * repacking. */
static tare_status load_chunk(struct trace *t, unsigned type, struct stored *s, uint64_t uid, tare_error *err)
{
    struct scratch scratch = {NULL, 0, false};
    struct dec d;
    tare_status status = process_of(t, uid, &s->process, err);
    if (status != TARE_OK) return status;
    bool ok = stored_open(s, &scratch, &d);
    if (!ok && (status = scratch_status(&scratch, err)) != TARE_OK) {
        mem_free(scratch.bytes);
        return status;
    }
    bool known = type && type < sizeof loaders / sizeof *loaders;
    t->loss.unknown_chunks += ok && !known; /* of a newer minor version */
    if (ok && known && loaders[type]) status = loaders[type](t, s, &d, err);
    if (ok && status == TARE_OK && !d.failed && type != CHUNK_EVENTS && type != CHUNK_TREE)
        status = vec_push(&t->meta, ((struct meta_chunk){*s, uid, (uint16_t)type}), err);
    mem_free(scratch.bytes);
    if (!ok || d.failed) {
        t->loss.damaged_chunks++;
        t->loss.damaged_bytes += s->stored_bytes;
        loss_note(t, "a chunk of type %u of process %llx cannot be decoded", type, (unsigned long long)uid);
    }
    return status;
}

/* ---- the archive ---- */

void trace_let_go(const struct trace *t, uint64_t *gone, uint64_t upto)
{
    upto &= ~(uint64_t)4095;
    if (upto < *gone + LET_GO_BYTES) return;
    madvise((void *)(uintptr_t)(t->archive.data + *gone), upto - *gone, MADV_DONTNEED);
    *gone = upto;
}

static void damage_at(struct trace *t, uint64_t pos, uint64_t bytes)
{
    t->loss.damaged_chunks++;
    t->loss.damaged_bytes += bytes;
    loss_note(t, "%llu bytes at offset %llu of %s are damaged or torn", (unsigned long long)bytes,
              (unsigned long long)pos, t->path);
}

/* A process that is killed while it appends leaves half a chunk; its live file still has what was in it. */
static void judge_torn_end(struct trace *t)
{
    if (t->torn_bytes && !t->live_files) damage_at(t, t->archive.size - t->torn_bytes, t->torn_bytes);
}

/* Damage in the middle is loss; at the very end it may be a chunk that was just being written, which is
 * judged when the live files are known. Chunks are let go of as they are passed, so that memory does not
 * grow with the file. */
static tare_status load_chunks(struct trace *t, struct chunks *from, tare_error *err)
{
    struct chunk c;
    uint64_t gone = 0;
    while (chunks_next(from, &c)) {
        if (c.damaged && from->pos == t->archive.size) {
            t->torn_bytes = c.damaged;
            continue;
        }
        if (c.damaged) {
            damage_at(t, c.pos, c.damaged);
            continue;
        }
        struct stored s = {c.bytes, c.header.stored_bytes, c.header.plain_bytes, c.header.codec, 0};
        tare_status status = load_chunk(t, c.header.type, &s, c.header.process, err);
        if (status != TARE_OK) return status;
        trace_let_go(t, &gone, from->pos);
    }
    return TARE_OK;
}

static tare_status load_archive(struct trace *t, tare_error *err)
{
    struct chunks chunks;
    tare_status s = file_map(t->path, &t->archive, err);
    if (s == TARE_OK) s = chunks_begin(&chunks, &t->archive, t->path, err);
    if (s != TARE_OK) return s;
    t->created_unix_ns = chunks.header.created_unix_ns;
    for (size_t i = 0; chunks.header.run_id[i]; i++) {
        char c = chunks.header.run_id[i];
        t->id[i] = c >= '0' && c <= 'Z' ? c : '?';
    }
    return load_chunks(t, &chunks, err);
}

/* ---- live files ---- */

struct keeping {
    struct trace *t;
    tare_error *err;
    tare_status status;
};

static bool keep_chunk(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    struct keeping *k = ctx;
    char *copy = mem_new(bytes, 1);
    k->status = copy ? vec_push(&k->t->owned, copy, k->err) : error_nomem(k->err, "a live file");
    if (k->status != TARE_OK) {
        mem_free(copy);
        return false;
    }
    memcpy(copy, payload, bytes);
    struct stored s = {(const uint8_t *)copy, (uint32_t)bytes, (uint32_t)bytes, CODEC_PLAIN, 0};
    k->status = load_chunk(k->t, type, &s, process, k->err);
    return k->status == TARE_OK;
}

static bool already_ended(struct trace *t, uint64_t uid)
{
    const uint64_t *at = map_u64_find(&t->process_index, uid);
    return at && *at && t->processes.items[*at - 1].ended;
}

/* A process that was killed, or ran out of disk, while it folded its live file in: the live file has it all. */
static void forget_trees(struct trace *t, uint64_t uid)
{
    const uint64_t *at = map_u64_find(&t->process_index, uid);
    size_t kept = 0;
    for (size_t i = 0; at && *at && i < t->trees.n; i++)
        if (t->trees.items[i].stored.process != *at - 1) t->trees.items[kept++] = t->trees.items[i];
    if (at && *at) t->trees.n = kept;
}

/* A live file of this trace becomes the chunks that its process did not live to archive. */
static void load_live_view(struct keeping *k, const struct file_view *f)
{
    struct trace *t = k->t;
    const struct live_header *h = (const struct live_header *)(const void *)f->data;
    if (!fold_valid(f->data, f->size) || strncmp(h->run_id, t->id, sizeof h->run_id) != 0) return;
    if (already_ended(t, h->process.uid)) return; /* folded in, but killed before it was removed */
    t->live_files++;
    forget_trees(t, h->process.uid);
    struct fold *fold = mem_new(1, sizeof *fold);
    if (!fold) {
        k->status = error_nomem(k->err, "a live file");
        return;
    }
    fold->base = (const char *)f->data;
    fold->bytes = f->size;
    fold->emit = keep_chunk;
    fold->ctx = k;
    if (fold_process(fold)) fold_rest(fold);
    mem_free(fold);
}

static void load_live_file(const char *path, void *ctx)
{
    struct keeping *k = ctx;
    struct file_view f = FILE_VIEW_INIT;
    if (k->status == TARE_OK && file_map(path, &f, NULL) == TARE_OK) load_live_view(k, &f);
    file_unmap(&f);
}

/* ---- opening and closing ---- */

bool loaded_site(const struct trace *t, uint32_t process, uint64_t own, uint32_t *out)
{
    int64_t at = process;
    for (size_t hops = 0; at >= 0 && hops <= t->processes.n; hops++) {
        const struct loaded_process *p = &t->processes.items[at];
        const uint64_t *site = map_u64_find(&t->site_numbers, (uint64_t)at << 32 | own);
        if (site) {
            *out = (uint32_t)*site - 1;
            return true;
        }
        if (own >= p->info.site_base) return false;
        at = p->parent; /* numbered before the fork */
    }
    return false;
}

/* Live files come after the archive: they hold what a process that was killed, or still runs, has not
 * folded in, and their trees replace older ones of the same process. */
tare_status trace_open(struct trace **out, const char *path, tare_error *err)
{
    struct trace *t = mem_new(1, sizeof *t);
    if (!t) return error_nomem(err, "a trace");
    tare_status s = TARE_OK;
    t->path = mem_strdup(path);
    if (!t->path) s = error_nomem(err, "a trace");
    if (s == TARE_OK) s = load_archive(t, err);
    if (s == TARE_OK) {
        struct keeping live = {t, err, TARE_OK};
        fold_each_live(t->path, load_live_file, &live);
        s = live.status;
    }
    judge_torn_end(t);
    if (s == TARE_OK) s = trace_finish(t, err);
    if (s == TARE_OK)
        *out = t;
    else
        trace_close(t);
    return s;
}

void trace_close(struct trace *t)
{
    if (!t) return;
    for (size_t i = 0; i < t->owned.n; i++) mem_free(t->owned.items[i]);
    for (size_t i = 0; i < t->processes.n; i++) vec_release(&t->processes.items[i].pairs);
    for (size_t i = 0; i < t->threads.n; i++) {
        vec_release(&t->threads.items[i].chunks);
        vec_release(&t->threads.items[i].pauses);
    }
    vec_release(&t->owned);
    vec_release(&t->processes);
    vec_release(&t->threads);
    vec_release(&t->sites);
    vec_release(&t->trees);
    vec_release(&t->meta);
    map_str_release(&t->site_index);
    map_u64_release(&t->site_numbers);
    map_u64_release(&t->process_index);
    map_u64_release(&t->thread_index);
    map_u64_release(&t->slot_index);
    file_unmap(&t->archive);
    mem_free(t->path);
    mem_free(t);
}
