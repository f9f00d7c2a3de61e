/* SPDX-License-Identifier: MIT
 * memory_told.h - what a process tells once, by number: names, modules, functions, stacks; and frames made of it. */
#ifndef ANALYZE_MEMORY_TOLD_H
#define ANALYZE_MEMORY_TOLD_H

#include "analyze/memory/memory_sum.h"
#include "core/map.h"
#include "core/vec.h"

struct memory_told {
    struct map_u64 number[MEMORY_STACK + 1]; /* by kind: number -> place in `records` */
    VEC(struct memory_record) records;       /* their texts are in the arena */
    VEC(size_t) modules;                     /* places of those in `records` */
};

void memory_told_release(struct memory_told *t);
tare_status memory_told_add(struct memory_told *t, const struct memory_record *r, struct arena *a,
                            tare_error *err);
/* All frames, once all is told; NULL where there is none, or no memory: the arena knows. */
struct memory_frame_named *memory_told_frames(const struct memory_told *t, struct arena *a);
/* The innermost frame of a stack; NULL: it was not told. */
const struct memory_frame_named *memory_told_frame(const struct memory_told *t,
                                                   const struct memory_frame_named *all, uint64_t stack);

/* ---- names of native functions: for the frames of stacks, each looked up once, in place ---- */

struct memory_names;
struct memory_names *memory_names_new(struct arena *arena, tare_error *err);
tare_status memory_names_stack(struct memory_names *x, const struct memory_frame_named *f, tare_error *err);
void memory_names_restart(struct memory_names *x); /* before frames that may lie where others lay */
void memory_names_free(struct memory_names *x);    /* NULL is fine */

#endif
