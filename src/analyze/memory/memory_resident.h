/* SPDX-License-Identifier: MIT
 * memory_resident.h - what resident memory is made of, as a table that adds up to the kernel's number. Bytes that a
 * program or an allocator has asked for need not be in RAM: what is too much by that is a row of its own, below 0. */
#ifndef ANALYZE_MEMORY_RESIDENT_H
#define ANALYZE_MEMORY_RESIDENT_H

#include "analyze/memory/memory_sum.h"

/* In the order of the table. */
#define MEMORY_PART_MAP(X)                                                                                             \
    X(MALLOC, "malloc, in use", "had from malloc and not freed")                                                       \
    X(FREE, "malloc, free", "held by malloc, not by the program: fragments, and what waits to be used again")         \
    X(ARENAS, "Python's arenas", "small objects of Python, and room that is free between them")                       \
    X(MAPS, "mapped by the program", "anonymous mappings of its own")                                                  \
    X(FILES, "files", "code and mapped files: pages that the kernel can drop and read again")                         \
    X(REST, "unaccounted", "stacks, loaders, other allocators: in RAM, and told by nobody")                           \
    X(ABSENT, "asked for, not in RAM", "pages of the rows above that were never touched, or were swapped out")
#define X(name, title, meaning) MEMORY_PART_##name,
enum memory_part { MEMORY_PART_MAP(X) MEMORY_PARTS };
#undef X

struct memory_resident {
    bool known;       /* else it was not read near the peak */
    bool malloc_told; /* else malloc did not tell: what the record has stands for it, and FREE is unknown */
    double part[MEMORY_PARTS]; /* NAN: unknown. Their sum, unknown ones left out, is `resident` */
    double resident;
};
struct memory_resident memory_resident(const struct memory_heap *h); /* a reading */

#endif
