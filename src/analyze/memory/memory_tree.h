/* SPDX-License-Identifier: MIT
 * memory_tree.h - the stacks of a process as one tree: what flame graphs and other tools are given. */
#ifndef ANALYZE_MEMORY_TREE_H
#define ANALYZE_MEMORY_TREE_H

#include "analyze/memory/memory_sum.h"

/* What a path weighs: bytes. */
#define MEMORY_WEIGHT_MAP(X)                                                              \
    X(PEAK, "peak", "held at the peak")                                                   \
    X(END, "end", "held when the record ends")                                            \
    X(GROWN, "grown", "grew while it was recorded, the beginning and the end left out")   \
    X(ALLOCATED, "allocated", "allocated in all")                                         \
    X(CHURN, "churn", "freed within 1 ms of its allocation")
#define X(name, word, meaning) MEMORY_WEIGHT_##name,
enum memory_weight { MEMORY_WEIGHT_MAP(X) MEMORY_WEIGHTS };
#undef X
extern const char *const memory_weight_words[], *const memory_weight_meanings[];

struct memory_tree_frame {   /* a function and a line of it */
    const char *name, *file; /* file NULL: unknown */
    uint64_t line;           /* 0: unknown */
};
struct memory_tree_node {
    int64_t parent; /* place of the caller's, before this one; -1: outermost */
    size_t frame;
    struct memory_bytes self[MEMORY_WEIGHTS], total[MEMORY_WEIGHTS];
    double allocations; /* of the path itself */
};
struct memory_tree {
    struct memory_tree_frame *frames;
    size_t n_frames;
    struct memory_tree_node *nodes;
    size_t n_nodes;
};

/* In the arena. */
tare_status memory_tree(const struct memory_process *p, struct arena *a, struct memory_tree *out,
                        tare_error *err);

#endif
