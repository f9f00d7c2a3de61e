/* SPDX-License-Identifier: MIT
 * pair_verdicts.c - what tare's own rule says of pairs that were recorded: for bench/compare_rules. Each line of stdin
 * is "n launch:ln launch:ln .."; launch -1: every pair is a launch of its own. Prints a verdict per line. */
#include <stdio.h>

#include "analyze/compare/paired.h"
#include "core/mem.h"

static int judge_line(size_t n)
{
    double *d = mem_new(n, sizeof *d);
    uint32_t *epoch = mem_new(n, sizeof *epoch);
    struct paired_rule rule = PAIRED_RULE_INIT;
    struct paired_result found;
    int launch = 0, bad = !d || !epoch;
    for (size_t i = 0; i < n && !bad; i++) {
        bad = scanf("%d:%lf", &launch, &d[i]) != 2;
        if (!bad) epoch[i] = launch < 0 ? 0 : (uint32_t)launch;
    }
    struct paired_series s = {d, launch < 0 ? NULL : epoch, n};
    if (!bad) bad = paired_judge(&s, &rule, &found, NULL) < 0;
    if (!bad) puts(paired_verdict_name(found.verdict));
    mem_free(d);
    mem_free(epoch);
    return bad;
}

int main(void)
{
    size_t n;
    while (scanf("%zu", &n) == 1)
        if (n == 0 || n > 1000000 || judge_line(n)) {
            fprintf(stderr, "pair_verdicts: a line that is none\n");
            return 1;
        }
    return 0;
}
