/* SPDX-License-Identifier: MIT
 * gpu_tables.c - see gpu_tables.h. A number may be told again, with another meaning: the latest counts. */
#include "analyze/gpu/gpu_tables.h"

#include <string.h>

#include "core/str.h"

/* Valid UTF-8 without a NUL, whatever the program had for a name. */
const char *gpu_tables_clean(struct gpu_tables *t, const struct gpu_record *r)
{
    buf_clear(&t->text);
    str_add_utf8(&t->text, r->text, r->text_bytes);
    buf_add_char(&t->text, 0);
    return t->text.failed ? "" : t->text.data;
}

tare_status gpu_tables_name(struct gpu_tables *t, const char *text, uint32_t *out, tare_error *err)
{
    uint64_t *at;
    size_t bytes = strlen(text);
    tare_status s = map_str_ref(&t->name_index, text, bytes, &at, err);
    if (s != TARE_OK) return s;
    if (!*at) {
        s = vec_push(&t->names, map_str_find_key(&t->name_index, text, bytes), err);
        *at = t->names.n;
    }
    *out = (uint32_t)*at - 1;
    return s;
}

static tare_status add_name(struct gpu_tables *t, uint32_t process, const struct gpu_record *r,
                            tare_error *err)
{
    uint32_t at;
    tare_status s = gpu_tables_name(t, gpu_tables_clean(t, r), &at, err);
    return s == TARE_OK ? map_u64_put(&t->name_numbers, gpu_key(process, r->NAME.number), at + 1, err) : s;
}

tare_status gpu_tables_add(struct gpu_tables *t, uint32_t process, const struct gpu_record *r,
                           tare_error *err)
{
    tare_status s;
    switch (r->kind) {
    case GPU_NAME: return add_name(t, process, r, err);
    case GPU_LANE:
        s = vec_push(&t->lanes, *r, err);
        return s == TARE_OK ? map_u64_put(&t->lane_numbers, gpu_key(process, r->LANE.number), t->lanes.n, err)
                            : s;
    case GPU_SHAPE:
        s = vec_push(&t->shapes, *r, err);
        return s == TARE_OK
                   ? map_u64_put(&t->shape_numbers, gpu_key(process, r->SHAPE.number), t->shapes.n, err)
                   : s;
    default: return TARE_OK;
    }
}

void gpu_tables_release(struct gpu_tables *t)
{
    map_str_release(&t->name_index);
    vec_release(&t->names);
    vec_release(&t->lanes);
    vec_release(&t->shapes);
    map_u64_release(&t->name_numbers);
    map_u64_release(&t->lane_numbers);
    map_u64_release(&t->shape_numbers);
    buf_release(&t->text);
}
