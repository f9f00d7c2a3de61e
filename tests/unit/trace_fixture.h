/* SPDX-License-Identifier: MIT
 * trace_fixture.h - traces for tests and for the corpora of the fuzzers: archives and live files built chunk by
 * chunk, a folder of their own for recordings, and a summary of what a trace delivers. Needs no cmocka: what
 * must not happen here aborts. */
#ifndef TESTS_TRACE_FIXTURE_H
#define TESTS_TRACE_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/crc.h"
#include "core/mem.h"
#include "trace/fold.h"
#include "trace/pack.h"
#include "trace/reader.h"
#include "trace/site_entry.h"
#include "trace/wire.h"

#define FIXTURE __attribute__((unused)) static

#define MUST(ok)                                                              \
    do {                                                                      \
        if (!(ok)) {                                                          \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #ok);  \
            abort();                                                          \
        }                                                                     \
    } while (0)

/* ---- bytes ---- */

enum { MADE_MAX = 4 << 20 };

struct made {
    uint8_t *bytes;
    size_t n;
    struct enc e; /* the payload being written */
    uint8_t payload[1 << 20];
};

enum { MADE_UID = 77, MADE_RAW_NS = 1000000000, MADE_TICKS = 5000000 };

FIXTURE struct made *made_new(void)
{
    struct made *m = calloc(1, sizeof *m);
    MUST(m);
    m->bytes = calloc(1, MADE_MAX);
    MUST(m->bytes);
    return m;
}

FIXTURE void made_free(struct made *m)
{
    free(m->bytes);
    free(m);
}

FIXTURE void made_add(struct made *m, const void *bytes, size_t n)
{
    MUST(m->n + n <= MADE_MAX);
    if (n) memcpy(m->bytes + m->n, bytes, n);
    m->n += n;
}

FIXTURE void made_header(struct made *m)
{
    struct archive_header h = {.major = TRACE_MAJOR, .minor = TRACE_MINOR, .header_bytes = sizeof h, .features = FEATURE_ZSTD};
    memcpy(h.magic, ARCHIVE_MAGIC, sizeof h.magic);
    memcpy(h.run_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", 27);
    made_add(m, &h, sizeof h);
}

FIXTURE void made_chunk_header(struct made *m, struct chunk_header h, const void *stored)
{
    h.magic = CHUNK_MAGIC;
    h.crc = 0;
    h.crc = crc32c(crc32c(0, &h, sizeof h), stored, h.stored_bytes);
    made_add(m, &h, sizeof h);
    made_add(m, stored, h.stored_bytes);
}

FIXTURE void made_chunk(struct made *m, unsigned type, uint64_t uid, const void *payload, size_t n)
{
    struct chunk_header h = {.type = (uint16_t)type, .stored_bytes = (uint32_t)n, .plain_bytes = (uint32_t)n, .process = uid};
    made_chunk_header(m, h, payload);
}

FIXTURE struct enc *made_open(struct made *m)
{
    m->e = (struct enc){m->payload, m->payload + sizeof m->payload, false};
    return &m->e;
}

FIXTURE void made_close(struct made *m, unsigned type, uint64_t uid)
{
    MUST(!m->e.full);
    made_chunk(m, type, uid, m->payload, (size_t)(m->e.p - m->payload));
}

/* ---- the chunks of a process; a tick is 0.5 ns ---- */

FIXTURE struct process_info made_info(uint64_t uid)
{
    struct process_info p = {.uid = uid, .pid = 4242, .parent_pid = 1, .start_time = 1, .mode = 3, .tsc = 1, .site_base = 1};
    p.begun_raw_ns = MADE_RAW_NS;
    p.begun_unix_ns = UINT64_C(1700000000000000000);
    p.inside = (struct weight_ticks){20 * 256, 20 * 256, 20 * 256, 0};
    p.outside = (struct weight_ticks){30 * 256, 30 * 256, 30 * 256, 0};
    p.skipped = (struct weight_ticks){4 * 256, 4 * 256, 4 * 256, 0};
    return p;
}

FIXTURE void made_process(struct made *m, const struct process_info *p)
{
    struct enc *e = made_open(m);
    enc_bytes(e, p, sizeof *p);
    enc_str(e, "made", 4);
    made_close(m, CHUNK_PROCESS, p->uid);
}

FIXTURE void made_site(struct made *m, uint64_t uid, uint32_t own, unsigned kind, const char *name)
{
    struct enc *e = made_open(m);
    enc_uint(e, own);
    enc_uint(e, 10 + own);
    enc_uint(e, kind);
    enc_str(e, name, strlen(name));
    enc_str(e, "made.c", 6);
    made_close(m, CHUNK_SITES, uid);
}

FIXTURE void made_thread(struct made *m, uint64_t uid, uint32_t index, uint64_t lost)
{
    struct enc *e = made_open(m);
    uint64_t fields[7] = {index, index, 100 + index, 1, lost, 0, 0};
    for (int i = 0; i < 7; i++) enc_uint(e, fields[i]);
    enc_str(e, "worker", 6);
    made_close(m, CHUNK_THREAD, uid);
}

FIXTURE struct clock_pair made_pair(uint64_t after_ns)
{
    return (struct clock_pair){.ticks = MADE_TICKS + after_ns * 2, .raw_ns = MADE_RAW_NS + after_ns};
}

FIXTURE void made_clock(struct made *m, uint64_t uid, const struct clock_pair *pairs, uint32_t n)
{
    struct enc *e = made_open(m);
    enc_uint(e, n);
    if (n) enc_bytes(e, pairs, n * sizeof *pairs);
    made_close(m, CHUNK_CLOCK, uid);
}

FIXTURE void made_end(struct made *m, uint64_t uid)
{
    struct enc *e = made_open(m);
    enc_uint(e, 1);
    for (int i = 0; i < 3; i++) enc_uint(e, 0);
    made_close(m, CHUNK_END, uid);
}

/* Events of thread `index`: raw slots as a recorder leaves them. */
FIXTURE size_t made_events(struct made *m, uint64_t uid, uint32_t index, uint64_t seq, const struct raw_event *raw, size_t slots)
{
    struct packer *p = calloc(1, sizeof *p);
    MUST(p);
    struct extent x = {.thread = index, .seq = seq};
    size_t n = pack_events(p, &x, raw, slots, 0);
    if (n) made_chunk(m, CHUNK_EVENTS, uid, p->out, n);
    free(p);
    return n;
}

FIXTURE struct raw_event raw(unsigned kind, uint32_t site, uint64_t after_ns)
{
    return (struct raw_event){MADE_TICKS + after_ns * 2, raw_what(kind, 0, 0, 0, site)};
}

struct made_node {
    uint32_t parent, site, kind;
    uint64_t count;
    int64_t total;
    uint64_t off_count, off_total, off_scopes;
    const struct weigh_pair *pairs;
    uint32_t n_pairs;
};

FIXTURE void made_node(struct enc *e, const struct made_node *n)
{
    uint64_t mean = n->count ? (uint64_t)n->total / n->count : 0;
    enc_uint(e, n->parent);
    enc_uint(e, n->site);
    enc_uint(e, n->kind);
    enc_uint(e, n->count);
    enc_int(e, n->total);
    enc_int(e, (int64_t)mean);
    enc_int(e, (int64_t)mean);
    enc_uint(e, n->off_count);
    enc_uint(e, n->off_total);
    enc_uint(e, n->off_scopes);
    enc_uint(e, 0); /* abandoned */
    enc_uint(e, 1); /* batches of one call: none */
    enc_uint(e, 0);
    if (n->count && n->kind == TARE_SITE_SCOPE) {
        unsigned octave = bucket_octave(mean);
        enc_uint(e, 1 + octave * SUBS + bucket_sub(mean, octave));
        enc_uint(e, n->count);
    }
    enc_uint(e, 0);
    enc_uint(e, n->n_pairs);
    for (uint32_t i = 0; i < n->n_pairs; i++) {
        enc_uint(e, n->pairs[i].off);
        enc_uint(e, n->pairs[i].on);
        enc_uint(e, n->pairs[i].scopes);
    }
}

/* A tree of slot `slot`: nodes[0] is the root. */
FIXTURE void made_tree(struct made *m, uint64_t uid, uint32_t slot, const struct made_node *nodes, size_t n)
{
    struct enc *e = made_open(m);
    enc_uint(e, slot);
    enc_uint(e, 0);
    for (size_t i = 0; i < n; i++) made_node(e, &nodes[i]);
    made_close(m, CHUNK_TREE, uid);
}

/* ---- a live file, small: header, then extents ---- */

FIXTURE struct live_header *made_live(struct made *m)
{
    struct live_header *h = (struct live_header *)(void *)m->bytes;
    memcpy(h->magic, LIVE_MAGIC, sizeof h->magic);
    h->major = TRACE_MAJOR;
    h->minor = TRACE_MINOR;
    h->header_bytes = sizeof *h;
    memcpy(h->run_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", 27);
    h->process = made_info(MADE_UID);
    h->n_pairs = 2;
    h->pairs[0] = made_pair(0);
    h->pairs[1] = made_pair(1000000);
    memcpy(h->command, "live", 5);
    h->used = m->n = LIVE_HEADER_BYTES;
    return h;
}

FIXTURE struct extent *made_extent(struct made *m, unsigned type, size_t bytes)
{
    struct extent *x = (struct extent *)(void *)(m->bytes + m->n);
    bytes = (sizeof *x + bytes + LIVE_ALIGN - 1) / LIVE_ALIGN * LIVE_ALIGN;
    MUST(m->n + bytes <= MADE_MAX);
    x->magic = EXTENT_MAGIC;
    x->type = (uint16_t)type;
    x->bytes = bytes;
    m->n += bytes;
    ((struct live_header *)(void *)m->bytes)->used = m->n;
    return x;
}

FIXTURE uint32_t made_ref(const struct made *m, const void *p)
{
    return (uint32_t)((size_t)((const uint8_t *)p - m->bytes) / LIVE_ALIGN);
}

FIXTURE void made_live_site(struct made *m, struct extent *x, size_t *at, uint32_t index, unsigned kind, const char *name)
{
    (void)m;
    struct site_entry *s = (struct site_entry *)(void *)((char *)(x + 1) + *at);
    size_t n = strlen(name), bytes = (sizeof *s + n + 7) & ~(size_t)7;
    s->index = index;
    s->line = 10 + index;
    s->kind = (uint16_t)kind;
    s->name_bytes = (uint16_t)n;
    memcpy(s->text, name, n);
    s->bytes = (uint32_t)bytes;
    *at += bytes;
}

/* A slot with a root and `n` scopes of site 1 below one another; returns the nodes. */
FIXTURE struct node *made_live_slot(struct made *m, uint32_t slot, uint32_t n)
{
    struct slot_header *h;
    struct extent *x = made_extent(m, EXTENT_TREE, sizeof *h + (n + 1) * sizeof(struct node) + SUBS * sizeof(uint64_t));
    x->thread = slot;
    x->spare[1] = 1;
    h = (struct slot_header *)(x + 1);
    struct node *nodes = (struct node *)(h + 1);
    h->root = made_ref(m, nodes);
    h->threads = 1;
    h->thread = slot;
    memcpy(h->name, "live", 4);
    for (uint32_t i = 0; i <= n; i++) {
        nodes[i].parent = i ? made_ref(m, &nodes[i - 1]) : 0;
        nodes[i].child = i < n ? made_ref(m, &nodes[i + 1]) : 0;
        nodes[i].site = i ? 1 : 0;
        nodes[i].count = i ? 3 : 0;
        nodes[i].total = 3000;
        nodes[i].min = nodes[i].max = 1000;
        nodes[i].batch_size = nodes[i].batch_next = 1;
        if (!i) continue;
        nodes[i].octave[bucket_octave(1000)] = made_ref(m, &nodes[n + 1]);
        ((uint64_t *)(void *)&nodes[n + 1])[bucket_sub(1000, bucket_octave(1000))] = 3;
    }
    return nodes;
}

/* ---- folders and files ---- */

struct folder {
    char path[200];
    char trace[240];
};

FIXTURE void folder_empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name) < 0) rmdir(name);
    }
    if (d) closedir(d);
}

FIXTURE void folder_new(struct folder *f)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%.150s/tare-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    MUST(mkdtemp(f->path));
    snprintf(f->trace, sizeof f->trace, "%s/t.tare", f->path);
}

FIXTURE void folder_remove(struct folder *f)
{
    folder_empty(f->path);
    rmdir(f->path);
}

FIXTURE int folder_count(const struct folder *f, const char *part)
{
    DIR *d = opendir(f->path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, part) != NULL;
    if (d) closedir(d);
    return n;
}

FIXTURE void file_put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    MUST(fd >= 0);
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, (const char *)bytes + done, n - done);
        MUST(w > 0);
        done += (size_t)w;
    }
    close(fd);
}

/* The whole file, to be freed; *n gets its size. */
FIXTURE uint8_t *file_get(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    MUST(fd >= 0 && fstat(fd, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    MUST(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return bytes;
}

/* ---- what a trace delivers ---- */

struct seen {
    uint64_t begins, ends, synthetic, counts, marks, weighed;
    int64_t value;
    uint64_t hash;      /* of kinds, sites and values in order, without times */
    uint64_t last_ns;
    uint32_t depth, deepest;
    bool unordered, unnested;
    char text[256];     /* of the last mark */
};

FIXTURE void seen_mix(struct seen *s, uint64_t v)
{
    s->hash = (s->hash ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    s->hash ^= s->hash >> 29;
}

FIXTURE int seen_event(void *ctx, const struct trace_event *e)
{
    struct seen *s = ctx;
    if (e->time_ns < s->last_ns) s->unordered = true;
    s->last_ns = e->time_ns;
    seen_mix(s, (uint64_t)e->kind << 40 | e->site);
    switch (e->kind) {
    case TRACE_BEGIN:
        s->begins++;
        s->weighed += (e->flags & TRACE_WEIGHED) != 0;
        if (++s->depth > s->deepest) s->deepest = s->depth;
        break;
    case TRACE_END:
        s->ends++;
        s->synthetic += (e->flags & TRACE_SYNTHETIC) != 0;
        if (!s->depth--) s->unnested = true;
        break;
    case TRACE_COUNT:
        s->counts++;
        s->value = (int64_t)((uint64_t)s->value + (uint64_t)e->value);
        seen_mix(s, (uint64_t)e->value);
        break;
    default:
        s->marks++;
        snprintf(s->text, sizeof s->text, "%s", e->text);
        for (const char *p = e->text; *p; p++) seen_mix(s, (unsigned char)*p);
    }
    return 0;
}

/* All events of all threads; a thread must start and end at depth 0. */
FIXTURE tare_status see_events(struct trace *t, struct seen *s, tare_error *err)
{
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < trace_n_threads(t); i++) {
        s->last_ns = 0;
        tare_status status = trace_events(t, i, seen_event, s, err);
        if (status != TARE_OK) return status;
        if (s->depth) s->unnested = true;
    }
    return TARE_OK;
}

#endif
