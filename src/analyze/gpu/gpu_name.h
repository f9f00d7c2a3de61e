/* SPDX-License-Identifier: MIT
 * gpu_name.h - names of kernels as people read them: short, and the group they belong to. */
#ifndef ANALYZE_GPU_NAME_H
#define ANALYZE_GPU_NAME_H

#include "core/arena.h"

/* gpu_name.c */
const char *gpu_name_short(struct arena *a, const char *full);
const char *gpu_name_group(const char *full);
/* The first of n rows, at most 64, whose first member, a word in small letters, is in the text whatever its case there;
 * n: none. `size`: of a row. */
size_t gpu_name_first(const char *text, const void *rows, size_t size, size_t n);
#define GPU_GROUP_COMMUNICATION "communication"

#endif
