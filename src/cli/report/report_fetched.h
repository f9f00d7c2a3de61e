/* SPDX-License-Identifier: MIT
 * report_fetched.h - traces of a run that a server keeps, as files for as long as they are looked at. */
#ifndef CLI_REPORT_FETCHED_H
#define CLI_REPORT_FETCHED_H

#include "cli/kept.h"
#include "cli/output.h"
#include "core/arena.h"

enum { FETCHED_MAX = 256 };

struct fetched {
    char folder[512];
    char *paths[FETCHED_MAX];
    const struct store_upload *uploads[FETCHED_MAX];
    size_t n;
    struct arena texts;
};

/* `name`: of a run (kept.h). fetched_close() in any case. TARE_INVALID: there is no such run, or it has no trace. */
tare_status fetched_open(struct fetched *f, const struct history_args *where, const char *name,
                         tare_error *err);
void fetched_close(struct fetched *f);

#endif
