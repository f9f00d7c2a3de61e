/* SPDX-License-Identifier: MIT
 * bodies.h - what is sent, as files say it: the bytes of a file each time, a line of a file each, in turn, or a
 * template (template.h), which may take lines; the path and the query of the address may be one, too. */
#ifndef LOAD_BODIES_H
#define LOAD_BODIES_H

#include "load/lines.h"
#include "load/source.h"
#include "load/template.h"

struct bodies_files {                     /* NULL: there is none */
    const char *whole, *lines, *template; /* whole: neither of the others */
    const char *url;                      /* of the service */
    uint64_t seed;                        /* of what templates take by chance */
};

struct bodies {
    struct file_view whole;
    struct lines lines;
    struct template *made, *target; /* NULL: none */
    uint64_t seed;
    const char *content_type;
};
#define BODIES_INIT {.whole = FILE_VIEW_INIT}

/* TARE_INVALID: a template that wants lines where there are none, or lines that nothing takes. Warm-up begins in the
 * middle of the lines. */
tare_status bodies_open(struct bodies *b, const struct bodies_files *files, tare_error *err);
void bodies_close(struct bodies *b);
/* Without a function where nothing is sent but the address. */
struct load_source bodies_source(struct bodies *b);

#endif
