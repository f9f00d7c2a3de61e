/* SPDX-License-Identifier: MIT
 * roof_team.h - threads that do a piece of work at the same time, again and again, and how long the quickest time took
 * from the first start to the last end. Turns on processors of their own alternate with turns wherever the system puts
 * them: on a busy machine only the first get all threads running at once, and where some processors are halves of one
 * core only the system knows which to take. The best turn counts. Private to src/probe. */
#ifndef PROBE_ROOF_TEAM_H
#define PROBE_ROOF_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

struct roof_team;

/* Work of member `index` (from 0); called by all members at once. */
typedef void roof_work_fn(void *ctx, unsigned index);

tare_status roof_team_new(struct roof_team **out, unsigned threads, tare_error *err);
void roof_team_free(struct roof_team *t); /* NULL is fine */

struct roof_turn {
    uint64_t ns; /* from the first start to the last end */
    uint64_t
        cpu_ns; /* the longest that one of them needed of a processor: much less than ns when others got it */
};

/* Once. `pinned`: each on a processor of its own, as far as there are enough. */
struct roof_turn roof_team_do(struct roof_team *t, roof_work_fn *work, void *ctx, bool pinned);
/* Again and again, at least four times and until `budget_ns` is spent: the quickest. While even that was disturbed by
 * others it goes on, up to three times the budget. */
struct roof_turn roof_team_best(struct roof_team *t, roof_work_fn *work, void *ctx, uint64_t budget_ns);
bool roof_turn_is_quiet(struct roof_turn best); /* all had a processor all the time, but for 10 % */

#endif
