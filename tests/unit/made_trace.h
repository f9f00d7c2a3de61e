/* SPDX-License-Identifier: MIT
 * made_trace.h - archives made by hand, chunk by chunk, for tests and for the corpora of the fuzzers. Needs no cmocka:
 * what must not happen here aborts. */
#ifndef TESTS_MADE_TRACE_H
#define TESTS_MADE_TRACE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/crc.h"
#include "trace/pack.h"
#include "trace/reader.h"
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
    struct archive_header h = {
        .major = TRACE_MAJOR, .minor = TRACE_MINOR, .header_bytes = sizeof h, .features = FEATURE_ZSTD};
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
    struct chunk_header h = {
        .type = (uint16_t)type, .stored_bytes = (uint32_t)n, .plain_bytes = (uint32_t)n, .process = uid};
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
    struct process_info p = {
        .uid = uid, .pid = 4242, .parent_pid = 1, .start_time = 1, .mode = 3, .tsc = 1, .site_base = 1};
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
FIXTURE size_t made_events(struct made *m, uint32_t index, uint64_t seq,
                           const struct raw_event *raw, size_t slots)
{
    struct packer *p = calloc(1, sizeof *p);
    MUST(p);
    struct extent x = {.thread = index, .seq = seq};
    size_t n = pack_events(p, &x, raw, slots, 0);
    if (p->pauses_bytes) made_chunk(m, CHUNK_PAUSES, MADE_UID, p->pauses, p->pauses_bytes);
    if (n) made_chunk(m, CHUNK_EVENTS, MADE_UID, p->out, n);
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

#endif
