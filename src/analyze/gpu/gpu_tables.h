/* SPDX-License-Identifier: MIT
 * gpu_tables.h - what records of a GPU refer to by number: names, streams, launch shapes. Numbers are those of a
 * process; they become indices here, and a name has the same index in every process. */
#ifndef ANALYZE_GPU_TABLES_H
#define ANALYZE_GPU_TABLES_H

#include "core/buf.h"
#include "core/map.h"
#include "core/vec.h"
#include "trace/gpu.h"

#define GPU_NONE UINT32_MAX /* a number that was never told: its record was lost */

struct gpu_tables {
    struct map_str name_index; /* text -> index + 1 */
    VEC(const char *) names;   /* valid UTF-8, as the program had them */
    VEC(struct gpu_record) lanes, shapes;
    struct map_u64 name_numbers, lane_numbers, shape_numbers; /* gpu_key() -> index + 1 */
    struct buf text;                                          /* a name being cleaned */
};

static inline uint64_t gpu_key(uint32_t process, uint64_t number)
{
    return (uint64_t)process << 32 | (uint32_t)number;
}

/* The index behind a number, or GPU_NONE. */
static inline uint32_t gpu_index(const struct map_u64 *m, uint32_t process, uint64_t number)
{
    const uint64_t *at = map_u64_find(m, gpu_key(process, number));
    return at ? (uint32_t)*at - 1 : GPU_NONE;
}

/* NAME, LANE and SHAPE; other records are none of its business. */
tare_status gpu_tables_add(struct gpu_tables *t, uint32_t process, const struct gpu_record *r,
                           tare_error *err);
tare_status gpu_tables_name(struct gpu_tables *t, const char *text, uint32_t *out, tare_error *err);
/* The text of a record without what is no text. It stays until the next call; "" without memory. */
const char *gpu_tables_clean(struct gpu_tables *t, const struct gpu_record *r);
void gpu_tables_release(struct gpu_tables *t);

#endif
