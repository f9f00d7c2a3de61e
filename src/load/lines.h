/* SPDX-License-Identifier: MIT
 * lines.h - a file of inputs, a line per request; empty lines are none. When all were taken they begin anew. */
#ifndef LOAD_LINES_H
#define LOAD_LINES_H

#include "core/file.h"
#include "core/vec.h"

struct line {
    const char *text; /* of the file: no NUL behind it */
    size_t n, number; /* number: of the line in the file, from 1 */
};

struct lines {
    const char *name; /* the path; borrowed */
    struct file_view file;
    VEC(struct line) all; /* in the order in which they are taken: that of the file, or shuffled */
};
/* Maps the file. TARE_FORMAT: there is no line in it. */
tare_status lines_open(struct lines *l, const char *path, tare_error *err);
void lines_shuffle(struct lines *l, uint64_t seed); /* the same order for the same seed */
void lines_close(struct lines *l);                  /* a zeroed one is fine */
const struct line *lines_at(const struct lines *l, uint64_t number);

#endif
