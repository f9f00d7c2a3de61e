/* SPDX-License-Identifier: MIT
 * made_live.h - live files made by hand, extent by extent: as made_trace.h for archives. */
#ifndef TESTS_MADE_LIVE_H
#define TESTS_MADE_LIVE_H

#include "made_trace.h"

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

FIXTURE void made_live_site(struct extent *x, size_t *at, uint32_t index, unsigned kind, const char *name)
{
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
    struct extent *x =
        made_extent(m, EXTENT_TREE, sizeof *h + (n + 1) * sizeof(struct node) + SUBS * sizeof(uint64_t));
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

#endif
