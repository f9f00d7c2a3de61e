/* SPDX-License-Identifier: MIT
 * finding_launch.c - rules about several launches of one case (`tare bench --repeat`): how much of the spread is
 * between launches, and whether they were far enough apart to be evidence of their own. */
#include <math.h>

#include "analyze/judge/finding.h"
#include "analyze/judge/launches.h"

#define HIDDEN 3 /* times the spread that one launch's own interval makes expect */

static void check_spread(struct judging *j, const struct run_case *c)
{
    struct launches_spread s = launches_spread(c);
    if (c->launches.n < 2 || !isfinite(s.between)) return;
    bool hidden = isfinite(s.within) && s.between > HIDDEN * s.within && s.between > 0.01;
    struct run_finding *f = NULL;
    if (isfinite(s.within))
        f = finding_start(j, c, "the median varies by %s between %zu launches; within one it is known to %s",
                          show_percent(s.between).s, c->launches.n, show_percent(s.within).s);
    else
        f = finding_start(j, c, "the median varies by %s between %zu launches", show_percent(s.between).s,
                          c->launches.n);
    if (f && hidden) f->severity = "warn";
    finding_number(j, f, "launches", (double)c->launches.n);
    finding_number(j, f, "sd_between", s.between);
    finding_number(j, f, "sd_within", s.within);
    finding_action(
        j, f,
        hidden ? "the interval of a single launch hides this: compare several launches, or tare compare --ab"
               : "the numbers above are medians over launches, and so are their intervals");
}

tare_status rule_launch_spread(struct judging *j)
{
    for (size_t i = 0; i < j->run->cases.n; i++) check_spread(j, j->run->cases.at[i]);
    return TARE_OK;
}

/* All cases were launched together: one finding is enough. */
tare_status rule_launch_close(struct judging *j)
{
    const struct run_case *c = j->run->cases.n ? j->run->cases.at[0] : NULL;
    struct launches_spread s = c ? launches_spread(c) : (struct launches_spread){.apart_ms = -1};
    if (s.apart_ms < 0 || s.apart_ms >= LAUNCHES_APART_MS) return TARE_OK;
    struct run_finding *f =
        finding_start(j, NULL, "launches began %.3g s apart: closer than %d s they share the machine's mood",
                      (double)s.apart_ms / 1000, LAUNCHES_APART_MS / 1000);
    finding_number(j, f, "apart_s", (double)s.apart_ms / 1000);
    finding_action(j, f, "--pause %ds makes each of them evidence of its own for tare compare",
                   LAUNCHES_APART_MS / 1000);
    return TARE_OK;
}
