/* SPDX-License-Identifier: MIT
 * bodies.h - requests whose bodies come from a file: the whole of it each time, or a line each, in turn. */
#ifndef LOAD_BODIES_H
#define LOAD_BODIES_H

#include "core/file.h"
#include "core/vec.h"
#include "load/source.h"

struct body_line {
    size_t from, n;
};

struct bodies {
    struct file_view file;
    VEC(struct body_line) lines; /* that are not empty; none: the file as a whole */
};
#define BODIES_INIT {FILE_VIEW_INIT, VEC_INIT}

/* TARE_INVALID: no line in it, where there shall be some. Warm-up begins in the middle of the lines. */
tare_status bodies_open(struct bodies *b, const char *path, bool by_line, tare_error *err);
void bodies_close(struct bodies *b);
struct load_source bodies_source(struct bodies *b, const char *path);

#endif
