/* SPDX-License-Identifier: MIT
 * onnx_memory.h - what a model's pointers point to: one arena for structs and lists, each distinct string
 * once (so equal names are equal pointers), the mapping of the file, the external files. Freed as a
 * whole. */
#ifndef MODEL_ONNX_MEMORY_H
#define MODEL_ONNX_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/file.h"
#include "model/onnx/external.h"
#include "model/onnx/onnx.h"

struct onnx_chunk;

struct onnx_string {
    const char *text; /* NULL: free */
    uint32_t hash, len;
};

struct onnx_memory {
    struct onnx_chunk *chunks;   /* newest first */
    struct onnx_chunk *text;     /* the chunk that strings go to */
    struct onnx_string *strings; /* open addressing */
    size_t n_strings, n_slots;   /* n_slots: a power of two, or 0 */
    uint64_t seed;
    struct file_view view; /* empty when the bytes are borrowed */
    struct external external;
};

struct onnx_memory *onnx_memory_new(void);
void onnx_memory_free(struct onnx_memory *m); /* NULL is fine */

/* Zeroed; NULL when out of memory. */
void *onnx_memory_get(struct onnx_memory *m, size_t n, size_t size);

/* A NUL-terminated copy, the same pointer for the same bytes; NULL when out of memory. */
const char *onnx_memory_str(struct onnx_memory *m, const char *s, size_t n);

/* The copy made earlier, or NULL when there is none. */
const char *onnx_memory_find(const struct onnx_memory *m, const char *s, size_t n);

/* An index over the initializers of a graph. TARE_INVALID when two have one name: *twice is the second. */
tare_status onnx_index_build(struct onnx_memory *m, struct onnx_graph *g, size_t *twice);

#endif
