/* SPDX-License-Identifier: MIT
 * watch_places.h - where the trace and the document of a `tare run` go. Both have one name, which is taken before the
 * program starts, so that no other run can have it. */
#ifndef WATCH_WATCH_PLACES_H
#define WATCH_WATCH_PLACES_H

#include <limits.h>
#include <stdbool.h>

#include "cli/cli.h"
#include "run/run.h"

struct watch_options;

struct watch_places {
    bool beside;               /* the trace lies beside the document */
    char stem[PATH_MAX];       /* of both, when tare chose the name; "": it did not */
    char trace[PATH_MAX];      /* "": none */
    char named[PATH_MAX + 16]; /* as TARE_TRACE spells it: absolute, with %% for % */
};

/* --trace, else as the document is called, else TARE_TRACE, else a new name where documents are kept. 0, or the exit
 * code after the user was told; a name that cannot be taken is no more than a warning. */
int places_choose(struct watch_places *p, struct cli *cli, const struct watch_options *a,
                  const struct run *run);
/* Write the document. Its path to `path`, unless the user named it. */
tare_status places_save(const struct watch_places *p, const struct watch_options *a, const struct run *run,
                        char path[PATH_MAX], tare_error *err);
void places_leave(const struct watch_places *p); /* a name that was taken and not used is free again */

const char *places_file(const char *path);       /* what follows the last slash */
const char *places_subject(const char *program); /* what a program is called in documents */

#endif
