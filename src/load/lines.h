/* SPDX-License-Identifier: MIT
 * lines.h - a file of inputs, a line per request; empty lines are none. In an order by chance, the same for the same
 * seed; when all were taken they begin anew. */
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
    VEC(struct line) all; /* in the order in which they are taken */
};
/* Maps the file. TARE_FORMAT: there is no line in it. */
tare_status lines_open(struct lines *l, const char *path, uint64_t seed, tare_error *err);
void lines_close(struct lines *l); /* a zeroed one is fine */
const struct line *lines_at(const struct lines *l, uint64_t number);

#endif
