/* SPDX-License-Identifier: MIT
 * bench_baseline.c - `tare bench --baseline`: the run that was just made against an earlier one, in the same step. */
#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/output.h"

int bench_baseline(struct cli *cli, const struct bench_args *a, const struct run *run)
{
    const bool md = a->md != NULL, junit = a->junit != NULL;
    struct compare_args c = {.common = COMPARE_TEXTS_INIT,
                             .min_effect = -1,
                             .base = a->baseline,
                             .fail_on = a->fail_on,
                             .force = a->force,
                             .strict = a->strict,
                             .history = a->history,
                             .output_dir = a->history.output_dir,
                             .json = a->json,
                             .html = a->html,
                             .also = {{md ? "md" : NULL, a->md}, {junit ? "junit" : NULL, a->junit}}};
    c.quiet = output_is_answer(a->md) || output_is_answer(a->junit) || output_is_answer(a->csv);
    if (!c.quiet && !a->json) cli_write(cli, "\n", 1);
    return compare_with_run(cli, &c, run);
}
