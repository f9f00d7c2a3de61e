/* SPDX-License-Identifier: MIT
 * pack.c - see pack.h. The slots may come from the file of a program that was killed, or that is still
 * writing: nothing in them is trusted, and every slot is read once. */
#include "trace/pack.h"

#include <string.h>

#include "trace/wire.h"

/* The parts of raw_what(). */
#define what_kind(what) ((unsigned)(what)&0xff)
#define what_flags(what) ((unsigned)((what) >> 8) & 0xff)
#define what_extra(what) ((unsigned)((what) >> 16) & 0xff)
#define what_bytes(what) ((unsigned)((what) >> 24) & 0xff)
#define what_site(what) ((uint32_t)((what) >> 32))

static int well_formed(uint64_t what, size_t slots_left)
{
    unsigned kind = what_kind(what), extra = what_extra(what);
    if (kind < RAW_BEGIN || kind > RAW_RESUME || extra >= slots_left) return 0;
    if (kind == RAW_COUNT) return extra == 1;
    if (kind == RAW_MARK) return extra == (what_bytes(what) + 7) / 8;
    return extra == 0;
}

/* Collect the published events, sorted by time. They are nearly sorted: only signal handlers disturb. */
static uint32_t collect(uint16_t *order, const struct raw_event *e, size_t slots, unsigned *pauses)
{
    uint32_t n = 0;
    for (size_t i = 0; i < slots; i++) {
        uint64_t ticks = __atomic_load_n(&e[i].ticks, __ATOMIC_ACQUIRE), what = e[i].what;
        if (!what || !well_formed(what, slots - i)) continue;
        if (ticks) {
            uint32_t k = n++;
            for (; order && k > 0 && e[order[k - 1]].ticks > ticks; k--) order[k] = order[k - 1];
            if (order) order[k] = (uint16_t)i;
        }
        *pauses |= (what_kind(what) == RAW_RESUME) | (what_flags(what) & RAW_FLAG_PAUSED);
        i += what_extra(what);
    }
    return n;
}

uint32_t pack_count(const struct raw_event *e, size_t slots)
{
    unsigned pauses = 0;
    return collect(NULL, e, slots, &pauses);
}

bool pack_is_whole(const struct raw_event *e, size_t slots)
{
    for (size_t i = 0; i < slots; i++) {
        if (!__atomic_load_n(&e[i].ticks, __ATOMIC_ACQUIRE)) return false;
        if (e[i].what == RAW_UNUSED) return true;
        i += what_extra(e[i].what);
    }
    return true;
}

/* ---- the site list ---- */

static uint32_t table_find(const struct packer *p, uint32_t site)
{
    uint32_t h = site * UINT32_C(2654435761) % PACK_TABLE;
    while (p->key[h] && p->key[h] != site + 1) h = (h + 1) % PACK_TABLE;
    return h;
}

static void note_site(struct packer *p, uint32_t site)
{
    uint32_t h = table_find(p, site);
    if (!p->key[h]) {
        p->key[h] = site + 1;
        p->place[h] = (uint16_t)p->n_sites;
        p->uses[p->n_sites] = 0;
        p->sites[p->n_sites++] = site;
    }
    p->uses[p->place[h]]++;
}

/* Bring the most used sites to the front, where a token names them in five bits. */
static void rank_sites(struct packer *p)
{
    for (uint32_t i = 0; i < PACK_SHORT_SITES && i < p->n_sites; i++) {
        uint32_t best = i;
        for (uint32_t k = i + 1; k < p->n_sites; k++)
            if (p->uses[k] > p->uses[best]) best = k;
        uint32_t site = p->sites[i];
        uint16_t uses = p->uses[i];
        p->sites[i] = p->sites[best];
        p->uses[i] = p->uses[best];
        p->sites[best] = site;
        p->uses[best] = uses;
        p->place[table_find(p, p->sites[i])] = (uint16_t)i;
        p->place[table_find(p, p->sites[best])] = (uint16_t)best;
    }
}

static void list_sites(struct packer *p, const struct raw_event *e)
{
    memset(p->key, 0, sizeof p->key);
    p->n_sites = 0;
    for (uint32_t i = 0; i < p->n_events; i++) {
        uint64_t what = e[p->order[i]].what;
        if (what_kind(what) != RAW_END) note_site(p, what_site(what));
    }
    if (p->n_sites > PACK_SHORT_SITES) rank_sites(p);
}

static uint32_t place_of(const struct packer *p, uint32_t site)
{
    return p->place[table_find(p, site)];
}

/* ---- tokens ---- */

/* How many bytes hold a time, the short ones asked for first: they are nearly all. 4: more than three. */
static inline unsigned time_bytes(uint64_t v)
{
    if (v < 1 << 8) return 1;
    if (v < 1 << 16) return 2;
    return v < 1 << 24 ? 3 : 4;
}

/* Weighed begins are rare and have an operation of their own, so that the five bits of the site are free here. */
static void put_begin(struct packer *p, struct enc *out, uint64_t what, uint64_t delta)
{
    uint32_t place = place_of(p, what_site(what));
    if (what_flags(what) & RAW_FLAG_WEIGHED) {
        enc_bytes(out, &(uint8_t){0xc0 | OP_BEGIN_WEIGHED}, 1);
        enc_uint(out, delta);
        enc_uint(out, place);
        return;
    }
    unsigned size = time_bytes(delta); /* 4: a varint */
    uint8_t code = place < PACK_SHORT_SITES ? (uint8_t)place : PACK_SHORT_SITES;
    enc_bytes(out, &(uint8_t){(uint8_t)((size - 1) << 5 | code)}, 1);
    if (size < 4)
        enc_bytes(out, &delta, size);
    else
        enc_uint(out, delta);
    if (code == PACK_SHORT_SITES) enc_uint(out, place);
}

static void put_end(struct enc *out, uint64_t what, uint64_t delta)
{
    int abandoned = what_flags(what) & RAW_FLAG_ABANDONED;
    if (abandoned || delta >= 1 << 28) {
        enc_bytes(out, &(uint8_t){(uint8_t)(0xc0 | (abandoned ? OP_END_ABANDONED : OP_END_LONG))}, 1);
        enc_uint(out, delta);
        return;
    }
    unsigned size = delta < 1 << 4 ? 0 : time_bytes(delta >> 4); /* above its four low bits */
    enc_bytes(out, &(uint8_t){(uint8_t)(0x80 | size << 4 | (delta & 15))}, 1);
    uint64_t high = delta >> 4;
    enc_bytes(out, &high, size);
}

static void put_count(struct packer *p, struct enc *out, const struct raw_event *e, uint64_t delta)
{
    enc_bytes(out, &(uint8_t){0xc0 | OP_COUNT}, 1);
    enc_uint(out, delta);
    enc_uint(out, place_of(p, what_site(e->what)));
    enc_int(out, (int64_t)e[1].what);
}

static void put_mark(struct packer *p, struct enc *out, const struct raw_event *e, uint64_t delta)
{
    unsigned bytes = what_bytes(e->what);
    enc_bytes(out, &(uint8_t){0xc0 | OP_MARK}, 1);
    enc_uint(out, delta);
    enc_uint(out, place_of(p, what_site(e->what)));
    enc_uint(out, bytes);
    for (unsigned i = 0; i < bytes; i += 8) enc_bytes(out, &e[1 + i / 8].what, bytes - i < 8 ? bytes - i : 8);
}

static void put_event(struct packer *p, struct enc *out, const struct raw_event *e, uint64_t delta)
{
    switch (what_kind(e->what)) {
    case RAW_BEGIN: put_begin(p, out, e->what, delta); break;
    case RAW_END: put_end(out, e->what, delta); break;
    case RAW_COUNT: put_count(p, out, e, delta); break;
    case RAW_MARK: put_mark(p, out, e, delta); break;
    }
}

/* Scopes open after these events; ends without a begin belong to scopes lost before. */
static uint64_t depth_after(const struct packer *p, const struct raw_event *e, uint64_t depth)
{
    for (uint32_t i = 0; i < p->n_events; i++) {
        unsigned kind = what_kind(e[p->order[i]].what);
        if (kind == RAW_BEGIN) depth++;
        if (kind == RAW_END && depth) depth--;
    }
    return depth;
}

static void put_head(struct packer *p, struct enc *out, const struct extent *x, const struct raw_event *e,
                     unsigned shift)
{
    uint64_t first = e[p->order[0]].ticks >> shift, last = e[p->order[p->n_events - 1]].ticks >> shift;
    enc_uints(out, x->thread, x->seq, shift, x->spare[0], depth_after(p, e, x->spare[0]));
    enc_uints(out, p->n_events, first, last - first, p->n_sites);
    for (uint32_t i = 0; i < p->n_sites; i++) enc_uint(out, p->sites[i]);
}

/* Takes what RAW_RESUME says, and which ends are pauses, out of the events and into p->pauses: readers that know
 * nothing of it see ends and begins. */
static void take_pauses(struct packer *p, const struct extent *x, const struct raw_event *e)
{
    struct enc out = {p->pauses, p->pauses + sizeof p->pauses, false};
    uint32_t kept = 0, told = 0;
    enc_uint(&out, x->thread);
    enc_uint(&out, x->seq);
    const uint8_t *none = out.p;
    for (uint32_t i = 0; i < p->n_events; i++) {
        uint64_t what = e[p->order[i]].what;
        bool resume = what_kind(what) == RAW_RESUME;
        if (resume || (what_kind(what) == RAW_END && what_flags(what) & RAW_FLAG_PAUSED)) {
            enc_uint(&out, kept - told);
            enc_uint(&out, (uint64_t)what_site(what) << 1 | !!(what_flags(what) & RAW_FLAG_WAITED));
            told = kept;
        }
        if (!resume) p->order[kept++] = p->order[i];
    }
    p->n_events = kept;
    p->pauses_bytes = out.p > none && !out.full ? (size_t)(out.p - p->pauses) : 0;
}

/* Pauses go first, as they take events out; sites are listed after that, since the head has only those
 * that are left. Times are differences in units of 2^shift ticks, each from the rounded one before it, so
 * that rounding does not add up. */
size_t pack_events(struct packer *p, const struct extent *x, const struct raw_event *e, size_t slots,
                   unsigned shift)
{
    if (slots > PACK_SLOTS_MAX) slots = PACK_SLOTS_MAX;
    unsigned pauses = 0;
    p->n_events = collect(p->order, e, slots, &pauses);
    p->pauses_bytes = 0;
    if (pauses) take_pauses(p, x, e);
    if (!p->n_events) return 0;
    list_sites(p, e);
    struct enc out = {p->out, p->out + sizeof p->out, false};
    uint64_t last = e[p->order[0]].ticks >> shift;
    put_head(p, &out, x, e, shift);
    for (uint32_t i = 0; i < p->n_events; i++) {
        const struct raw_event *at = &e[p->order[i]];
        uint64_t now = at->ticks >> shift;
        put_event(p, &out, at, now - last);
        last = now;
    }
    return out.full ? 0 : (size_t)(out.p - p->out);
}
