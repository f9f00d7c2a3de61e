/* SPDX-License-Identifier: MIT
 * memory_held.c - see memory_held.h. */
#include "analyze/memory/memory_held.h"

#include <string.h>

void memory_held_release(struct memory_held *h)
{
    map_u64_release(&h->by_address);
    vec_release(&h->blocks);
    vec_release(&h->spare);
    vec_release(&h->ranges);
}

tare_status memory_held_put(struct memory_held *h, uint64_t address, struct held_block b, tare_error *err)
{
    tare_status s = TARE_OK;
    size_t place = h->spare.n ? *vec_last(&h->spare) : h->blocks.n;
    if (place == h->blocks.n) s = vec_reserve(&h->blocks, place + 1, err);
    if (s == TARE_OK) s = vec_reserve(&h->spare, h->blocks.n + 1, err); /* so that taking cannot fail */
    if (s == TARE_OK) s = map_u64_put(&h->by_address, address, place, err);
    if (s != TARE_OK) return s;
    if (place == h->blocks.n)
        h->blocks.n++;
    else
        h->spare.n--;
    h->blocks.items[place] = b;
    return TARE_OK;
}

bool memory_held_take(struct memory_held *h, uint64_t address, struct held_block *out)
{
    uint64_t place;
    if (!map_u64_remove(&h->by_address, address, &place)) return false;
    *out = h->blocks.items[place];
    h->spare.items[h->spare.n++] = (size_t)place;
    return true;
}

/* The first range that ends after `start`. */
static size_t first_after(const struct memory_held *h, uint64_t start)
{
    size_t lo = 0, hi = h->ranges.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (h->ranges.items[mid].end <= start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static tare_status insert(struct memory_held *h, size_t at, struct held_range r, tare_error *err)
{
    tare_status s = vec_reserve(&h->ranges, h->ranges.n + 1, err);
    if (s != TARE_OK) return s;
    struct held_range *items = h->ranges.items;
    memmove(items + at + 1, items + at, (h->ranges.n - at) * sizeof *items);
    items[at] = r;
    h->ranges.n++;
    return TARE_OK;
}

tare_status memory_held_map(struct memory_held *h, struct held_range r, tare_error *err)
{
    return r.start < r.end ? insert(h, first_after(h, r.start), r, err) : TARE_OK;
}

tare_status memory_held_unmap(struct memory_held *h, struct held_range *piece, bool *any, tare_error *err)
{
    uint64_t start = piece->start, end = piece->end;
    size_t at = first_after(h, start);
    *any = false;
    if (at == h->ranges.n || h->ranges.items[at].start >= end) return TARE_OK;
    struct held_range *r = &h->ranges.items[at], rest = *r;
    *piece = *r;
    if (piece->start < start) piece->start = start;
    if (piece->end > end) piece->end = end;
    if (r->start < piece->start &&
        r->end > piece->end) { /* a hole: what is behind it becomes a range of its own */
        rest.start = piece->end;
        tare_status s = insert(h, at + 1, rest, err);
        if (s != TARE_OK) return s;
        h->ranges.items[at].end = piece->start;
    } else if (r->start < piece->start) {
        r->end = piece->start;
    } else if (r->end > piece->end) {
        r->start = piece->end;
    } else {
        memmove(r, r + 1, (h->ranges.n - at - 1) * sizeof *r);
        h->ranges.n--;
    }
    *any = true;
    return TARE_OK;
}
