/* SPDX-License-Identifier: MIT
 * roof_team.h - threads that do a piece of work at the same time, again and again, and how long the quickest time took
 * from the first start to the last end. Not pinned: neither are the threads of the runtimes whose roof this is, and a
 * repetition that a migration spoils is not the best one. Private to src/probe. */
#ifndef PROBE_ROOF_TEAM_H
#define PROBE_ROOF_TEAM_H

#include <stdint.h>

#include "core/error.h"

struct roof_team;

/* Work of member `index` (from 0); called by all members at once. */
typedef void roof_work_fn(void *ctx, unsigned index);

tare_status roof_team_new(struct roof_team **out, unsigned threads, tare_error *err);
void roof_team_free(struct roof_team *t); /* NULL is fine */

/* Once: ns from the first start to the last end. */
uint64_t roof_team_do(struct roof_team *t, roof_work_fn *work, void *ctx);
/* Again and again, at least `least` times and until `budget_ns` is spent: the shortest. */
uint64_t roof_team_best(struct roof_team *t, roof_work_fn *work, void *ctx, unsigned least,
                        uint64_t budget_ns);

#endif
