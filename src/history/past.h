/* SPDX-License-Identifier: MIT
 * past.h - what the history says of earlier runs of the same subject on the same machine: the yardstick by which two
 * single runs are judged (analyze/compare/compare_saved.h). For `tare compare` and the server alike. */
#ifndef HISTORY_PAST_H
#define HISTORY_PAST_H

#include "analyze/compare/compare_saved.h"
#include "store/store.h"

struct history_past {
    struct store *store;
    const char *subject, *project; /* project NULL: any */
    char host[RUN_FINGERPRINT_SIZE];
    struct environment_runs but[2]; /* the runs that are compared are no yardstick for themselves */
    tare_error
        failed; /* out: the history could not be read, and nothing more was asked of it; status 0: it could */
};

/* The subject and the machine are those of the run that is judged. */
void history_past_of(struct history_past *p, const struct run *run);
/* For compare_past.values, with a struct history_past: logarithms, oldest first. */
tare_status history_past_values(void *ctx, const char *case_name, const char *metric,
                                struct compare_series *out, tare_error *err);

/* How each gate went over earlier runs, as a line of blocks in its evidence (`history`), unless they are few. */
void history_past_draw(struct history_past *p, struct comparison *c);

#endif
