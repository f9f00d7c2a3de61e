/* SPDX-License-Identifier: MIT
 * fold.c - see fold.h. */
#include "trace/fold.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "trace/extent.h"
#include "trace/wire.h"

/* A node at its largest: 24 varints, its batches, its histogram, its pairs. */
enum { NODE_BYTES_MAX = (24 + BATCHES_MAX + 2 * OCTAVES * SUBS + 3 * WEIGH_PAIRS) * 10 };
static_assert(NODE_BYTES_MAX < FOLD_BYTES / 2, "a node fits into a chunk with room to spare");

static const struct live_header *header(const struct fold *f)
{
    return (const struct live_header *)(const void *)f->base;
}

void fold_each_live(const char *trace, void (*fn)(const char *path, void *ctx), void *ctx)
{
    char path[PATH_MAX + NAME_MAX];
    const char *slash = strrchr(trace, '/'), *name = slash ? slash + 1 : trace;
    size_t folder = (size_t)(name - trace), n = strlen(name);
    if (folder >= PATH_MAX) return;
    snprintf(path, sizeof path, "%.*s", (int)folder, trace);
    DIR *d = opendir(folder ? path : ".");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, name, n) != 0 || strncmp(e->d_name + n, ".live-", 6) != 0) continue;
        snprintf(path + folder, sizeof path - folder, "%s", e->d_name);
        fn(path, ctx);
    }
    if (d) closedir(d);
}

bool fold_valid(const void *base, uint64_t bytes)
{
    const struct live_header *h = base;
    return bytes >= LIVE_HEADER_BYTES && memcmp(h->magic, LIVE_MAGIC, sizeof h->magic) == 0 &&
           h->major == TRACE_MAJOR && h->header_bytes >= LIVE_HEADER_OLD_BYTES &&
           h->header_bytes <= LIVE_HEADER_BYTES;
}

static void fold_begin(struct fold *f, struct enc *e)
{
    *e = (struct enc){f->out, f->out + sizeof f->out, false};
}

static bool fold_send(struct fold *f, const struct enc *e, enum chunk_type type)
{
    if (e->full) {
        f->damaged++;
        return true;
    }
    return f->emit(f->ctx, type, header(f)->process.uid, f->out, (size_t)(e->p - f->out));
}

/* A place of `bytes` bytes at reference `ref`, or NULL. */
static const void *at(const struct fold *f, uint32_t ref, uint64_t bytes)
{
    uint64_t offset = (uint64_t)ref * LIVE_ALIGN;
    if (offset < LIVE_HEADER_BYTES || offset > f->bytes || bytes > f->bytes - offset) return NULL;
    return f->base + offset;
}

bool fold_process(struct fold *f)
{
    const struct live_header *h = header(f);
    struct enc e;
    fold_begin(f, &e);
    enc_bytes(&e, &h->process, sizeof h->process);
    enc_str(&e, h->command, strnlen(h->command, sizeof h->command));
    return fold_send(f, &e, CHUNK_PROCESS);
}

/* The same, for what each belongs to one node only: links that run in circles, or lead twice to the same
 * place, end when they have claimed as many bytes as the file has. */
static const void *claim(struct fold *f, uint32_t ref, uint64_t bytes)
{
    const void *p = at(f, ref, bytes);
    if (!p || f->budget < bytes) return NULL;
    f->budget -= bytes;
    return p;
}

/* ---- sites ---- */

/* Entries are believed up to the first one that is not published, or is longer than what is left. */
static bool fold_sites(struct fold *f, const struct extent *x)
{
    struct enc e;
    fold_begin(f, &e);
    for (uint64_t pos = sizeof *x; pos + sizeof(struct site_entry) <= x->bytes;) {
        const struct site_entry *s = (const struct site_entry *)(const void *)((const char *)x + pos);
        uint32_t bytes = __atomic_load_n(&s->bytes, __ATOMIC_ACQUIRE);
        if (!bytes) break;
        if (bytes < sizeof *s + s->name_bytes + s->file_bytes || bytes > x->bytes - pos || bytes % 8) {
            f->damaged++;
            break;
        }
        enc_uints(&e, s->index, s->line, s->kind);
        enc_str(&e, s->text, s->name_bytes);
        enc_str(&e, s->text + s->name_bytes, s->file_bytes);
        pos += bytes;
    }
    return fold_send(f, &e, CHUNK_SITES);
}

/* ---- trees ---- */

static void put_histogram(struct fold *f, struct enc *e, const struct node *n)
{
    for (unsigned o = 0; o < OCTAVES; o++) {
        const uint64_t *slab = n->octave[o] ? claim(f, n->octave[o], SUBS * sizeof *slab) : NULL;
        for (unsigned s = 0; slab && s < SUBS; s++) {
            uint64_t count = __atomic_load_n(&slab[s], __ATOMIC_RELAXED);
            if (!count) continue;
            enc_uint(e, 1 + o * SUBS + s);
            enc_uint(e, count);
        }
    }
    enc_uint(e, 0);
}

static void put_pairs(struct fold *f, struct enc *e, const struct node *n)
{
    const struct weigh_pairs *p = n->pairs ? claim(f, n->pairs, sizeof *p) : NULL;
    uint32_t count = p ? p->seen : 0;
    if (count > WEIGH_PAIRS) count = WEIGH_PAIRS;
    enc_uint(e, count);
    for (uint32_t i = 0; i < count; i++) enc_uints(e, p->pair[i].off, p->pair[i].on, p->pair[i].scopes);
}

static void put_node(struct fold *f, struct enc *e, const struct node *n, uint32_t parent)
{
    int64_t min = n->count ? (int64_t)n->min : 0, max = n->count ? (int64_t)n->max : 0;
    uint32_t batches = n->n_batches < BATCHES_MAX ? n->n_batches : BATCHES_MAX;
    enc_uints(e, parent, n->site, n->kind, n->count, zigzag((int64_t)n->total), zigzag(min), zigzag(max));
    enc_uints(e, n->off_count, n->off_total, n->off_scopes, n->abandoned, n->batch_size, batches);
    for (uint32_t i = 0; i < batches; i++) enc_uint(e, n->batch[i]);
    put_histogram(f, e, n);
    put_pairs(f, e, n);
}

struct walk {
    struct enc e;
    uint32_t slot, number; /* of the next node */
    uint32_t in_chunk;
};

static void walk_open(struct fold *f, struct walk *w)
{
    fold_begin(f, &w->e);
    enc_uints(&w->e, w->slot, w->number);
    w->in_chunk = 0;
}

static bool walk_put(struct fold *f, struct walk *w, const struct node *n, uint32_t depth)
{
    if (w->e.end - w->e.p < NODE_BYTES_MAX) {
        if (!fold_send(f, &w->e, CHUNK_TREE)) return false;
        walk_open(f, w);
    }
    f->numbers[depth] = w->number++;
    put_node(f, &w->e, n, depth ? f->numbers[depth - 1] : 0);
    w->in_chunk++;
    return true;
}

/* Preorder over child and next links. */
static bool fold_tree(struct fold *f, const struct extent *x, const struct slot_header *slot)
{
    struct walk w = {.slot = x->thread};
    uint32_t ref = slot->root, depth = 0, last_depth = sizeof f->numbers / sizeof f->numbers[0] - 1;
    walk_open(f, &w);
    while (ref) {
        const struct node *n = claim(f, ref, sizeof *n);
        if (!n || depth > last_depth) {
            f->damaged++;
            break;
        }
        if (!walk_put(f, &w, n, depth)) return false;
        uint32_t child = __atomic_load_n(&n->child, __ATOMIC_ACQUIRE);
        if (child) {
            ref = child;
            depth++;
            continue;
        }
        while (n && depth && !n->next) { /* up to the nearest ancestor with a sibling left */
            n = at(f, n->parent, sizeof *n);
            depth--;
        }
        ref = n && depth ? n->next : 0;
    }
    return fold_send(f, &w.e, CHUNK_TREE);
}

static bool fold_slot(struct fold *f, const struct extent *x, const struct slot_header *slot)
{
    struct enc e;
    fold_begin(f, &e);
    enc_uints(&e, slot->thread, x->thread, slot->tid, slot->threads);
    enc_uints(&e, slot->lost, slot->abandoned, slot->foreign);
    const char *given = slot->given ? at(f, slot->given, THREAD_NAME_MAX) : NULL;
    if (given && given[0])
        enc_str(&e, given, strnlen(given, THREAD_NAME_MAX));
    else
        enc_str(&e, slot->name, strnlen(slot->name, sizeof slot->name));
    return fold_send(f, &e, CHUNK_THREAD) && fold_tree(f, x, slot);
}

/* ---- events ---- */

/* The chunk is copied before it is packed: the program may be writing to it, and the helper may recycle it. If `seq` is
 * the same afterwards, the copy is of one life of the chunk. */
static bool fold_events(struct fold *f, const struct extent *x)
{
    struct extent head = *x;
    head.seq = __atomic_load_n(&x->seq, __ATOMIC_ACQUIRE);
    if (!head.seq) return true; /* recycled: its events are archived */
    size_t slots = (head.bytes - sizeof head) / sizeof f->events[0];
    if (slots > PACK_SLOTS_MAX) slots = PACK_SLOTS_MAX;
    const struct raw_event *e = (const struct raw_event *)(const void *)(x + 1);
    for (size_t i = 0; i < slots; i++) /* each load comes before the next look at seq */
        f->events[i] = (struct raw_event){__atomic_load_n(&e[i].ticks, __ATOMIC_ACQUIRE),
                                          __atomic_load_n(&e[i].what, __ATOMIC_ACQUIRE)};
    if (!extent_lives_on(x, head.seq)) return true; /* recycled just now */
    size_t bytes = pack_events(&f->packer, &head, f->events, slots, f->shift);
    uint64_t uid = header(f)->process.uid;
    if (!bytes) return true;
    if (f->packer.pauses_bytes &&
        !f->emit(f->ctx, CHUNK_PAUSES, uid, f->packer.pauses, f->packer.pauses_bytes))
        return false;
    return f->emit(f->ctx, CHUNK_EVENTS, uid, f->packer.out, bytes);
}

/* ---- memory ---- */

/* The payload as it stands, head and all, up to what is published; copied, as the program may be writing to it, with
 * loads that the last look at `seq` stays behind: if it is the same, the copy is of one life of the extent. */
static bool fold_memory(struct fold *f, const struct extent *x)
{
    uint64_t seq = __atomic_load_n(&x->seq, __ATOMIC_ACQUIRE);
    uint64_t used = __atomic_load_n(&x->spare[0], __ATOMIC_ACQUIRE);
    const uint8_t *from = (const uint8_t *)(x + 1);
    struct enc e;
    if (!seq || !used) return true; /* not used yet, or its records are archived */
    if (used > x->bytes - sizeof *x) {
        f->damaged++;
        return true;
    }
    fold_begin(f, &e);
    for (uint64_t i = 0; i < used && !e.full; i++) {
        uint8_t byte = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
        enc_bytes(&e, &byte, 1);
    }
    if (!extent_lives_on(x, seq)) return true;
    return fold_send(f, &e, CHUNK_MEMORY);
}

/* ---- all of it ---- */

static bool fold_extent(struct fold *f, const struct extent *x)
{
    const struct slot_header *slot = (const struct slot_header *)(const void *)(x + 1);
    switch (x->type) {
    case EXTENT_SITES: return fold_sites(f, x);
    case EXTENT_EVENTS: return fold_events(f, x);
    case EXTENT_MEMORY: return fold_memory(f, x);
    case EXTENT_TREE: /* only the first extent of a slot starts with a header; the others are reached by links */
        if (!x->spare[1] || x->bytes < sizeof *x + sizeof *slot || !slot->root ||
            !__atomic_load_n(&slot->threads, __ATOMIC_ACQUIRE)) /* killed before it had a thread */
            return true;
        return fold_slot(f, x, slot);
    }
    f->damaged++;
    return true;
}

bool fold_clock(struct fold *f)
{
    const struct live_header *h = header(f);
    uint32_t n = h->n_pairs < LIVE_PAIRS ? h->n_pairs : LIVE_PAIRS;
    struct enc e;
    fold_begin(f, &e);
    enc_uint(&e, n);
    enc_bytes(&e, h->pairs, n * sizeof h->pairs[0]);
    return fold_send(f, &e, CHUNK_CLOCK);
}

static bool fold_end(struct fold *f)
{
    const struct live_header *h = header(f);
    struct enc e;
    fold_begin(f, &e);
    enc_uints(&e, f->closed, h->lost_scopes, h->lost_events, f->damaged);
    if (h->end.why && h->header_bytes >= sizeof *h) enc_uints(&e, h->end.why, h->end.raw_ns);
    return fold_send(f, &e, CHUNK_END);
}

bool fold_rest(struct fold *f)
{
    uint64_t used = __atomic_load_n(&header(f)->used, __ATOMIC_ACQUIRE);
    if (used > f->bytes) used = f->bytes;
    f->budget = used;
    for (uint64_t pos = LIVE_HEADER_BYTES; pos + sizeof(struct extent) <= used;) {
        const struct extent *x = (const struct extent *)(const void *)(f->base + pos);
        if (x->magic != EXTENT_MAGIC || x->bytes < sizeof *x || x->bytes % LIVE_ALIGN ||
            x->bytes > used - pos) {
            f->damaged++;
            break;
        }
        if (!fold_extent(f, x)) return false;
        pos += x->bytes;
    }
    return fold_clock(f) && fold_end(f);
}
