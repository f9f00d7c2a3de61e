/* SPDX-License-Identifier: MIT
 * memory_resident.c - see memory_resident.h. */
#include "analyze/memory/memory_resident.h"

struct memory_resident memory_resident(const struct memory_heap *h)
{
    struct memory_resident r = {
        .known = h->known, .malloc_told = h->held > 0, .resident = (double)h->resident};
    if (!h->known) return r;
    /* Objects in Python's arenas are in the record, and so are the arenas: they are counted once, as arenas. */
    double recorded = fmax(0, h->program.sum - (double)h->arenas);
    r.part[MEMORY_PART_MALLOC] = r.malloc_told ? (double)h->used : recorded;
    double held = r.malloc_told ? (double)h->held : (double)h->pools;
    r.part[MEMORY_PART_FREE] = held > 0 ? fmax(0, held - r.part[MEMORY_PART_MALLOC]) : NAN;
    r.part[MEMORY_PART_ARENAS] = (double)h->arenas;
    r.part[MEMORY_PART_MAPS] = (double)h->maps;
    r.part[MEMORY_PART_FILES] = (double)h->file;
    double told = 0;
    for (int i = 0; i < MEMORY_PART_REST; i++) told += isnan(r.part[i]) ? 0 : r.part[i];
    r.part[MEMORY_PART_REST] = fmax(0, r.resident - told);
    r.part[MEMORY_PART_ABSENT] = fmin(0, r.resident - told);
    return r;
}
