/* SPDX-License-Identifier: MIT
 * path.h - where in a document we are, as a chain on the stack: cases[2].latency_ns.p50.value. Costs nothing
 * until an error wants its text. Private to src/run. */
#ifndef RUN_PATH_H
#define RUN_PATH_H

#include <stddef.h>

struct path {
    const struct path *up; /* NULL: the document itself */
    const char *key;       /* NULL: an item of a list */
    size_t index;
};

/* Writes at most size - 1 bytes and a NUL; a path too long keeps its beginning. Returns `out`. */
char *path_text(const struct path *p, char *out, size_t size);

size_t path_depth(const struct path *p); /* steps from the document */

/* The same without the first `skip` steps. */
char *path_text_below(const struct path *p, size_t skip, char *out, size_t size);

#endif
