/* SPDX-License-Identifier: MIT
 * spill_sort.h - more items than memory holds, in order: they are sorted in blocks, blocks that are full go to a file
 * without a name, and all blocks are merged when they are read back. Equal items come in any order: let the comparison
 * tell all apart. */
#ifndef CORE_SPILL_SORT_H
#define CORE_SPILL_SORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct spill_sort;
struct spill_options {
    size_t item_bytes;
    size_t block; /* items in memory */
    int (*compare)(const void *, const void *);
    const char *folder; /* where the file goes, if one is needed; borrowed */
};
tare_status spill_sort_new(struct spill_sort **out, const struct spill_options *o, tare_error *err);
void spill_sort_free(struct spill_sort *s); /* NULL is fine */

tare_status spill_sort_add(struct spill_sort *s, const void *item, tare_error *err);
/* The next one in order; false at the end. The first call ends the adding. */
tare_status spill_sort_next(struct spill_sort *s, void *item, bool *any, tare_error *err);

#endif
