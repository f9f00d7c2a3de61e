/* SPDX-License-Identifier: MIT
 * confirm.h - is the better configuration really better? Pairs of measurements, base and candidate in turns, looked at
 * a few times; a gain is named only where it would be one under any plausible noise. Strict at every early look,
 * because looking often finds gains that are not there. Pure; docs/tuning.md has the rates of wrong answers. */
#ifndef ANALYZE_TUNE_CONFIRM_H
#define ANALYZE_TUNE_CONFIRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"

enum confirm_verdict {
    CONFIRM_GOING_ON,  /* more pairs are wanted */
    CONFIRM_CONFIRMED, /* surely at least the threshold */
    CONFIRM_LIKELY,    /* surely a gain, and by the measurement at least the threshold */
    CONFIRM_NO_GAIN,   /* surely less than the threshold */
    CONFIRM_WORSE,     /* surely slower */
    CONFIRM_NOT_SHOWN  /* all pairs are used up and none of these holds: keep the base */
};
const char *confirm_verdict_name(enum confirm_verdict v);

struct confirm_rule {
    double threshold;   /* a gain below this is not worth a change: 0.10 is 10 % more work in the same time */
    double alpha;       /* one-sided chance of a wrong bound */
    double level;       /* of the interval that is stated */
    size_t least, most; /* pairs */
    double more_cpu;    /* from this on a gain is said to be bought with processor time */
};
#define CONFIRM_RULE_INIT                                                                                    \
    {                                                                                                        \
        .threshold = 0.10, .alpha = 0.007, .level = 0.95, .least = 8, .most = 20, .more_cpu = 0.15            \
    }

/* Of pair i: ln(candidate / base). NULL: not measured. Pairs of one launch share what that launch was given, so the
 * bounds come from launches and pairs; epoch NULL: each pair is a launch of its own. */
struct confirm_pairs {
    const double *wall, *cpu, *memory;
    size_t n;
    const uint32_t *epoch; /* number of its launch, rising */
};

struct confirm_result {
    enum confirm_verdict verdict;
    struct interval gain;        /* of speed, base / candidate: above 1 is faster */
    struct interval cpu, memory; /* candidate / base; NAN where not measured */
    bool uses_more_cpu;          /* surely, and by more than rule.more_cpu */
    size_t pairs, next;          /* next: at so many look again; 0: no more are wanted */
};

tare_status confirm_judge(const struct confirm_pairs *p, const struct confirm_rule *r,
                          struct confirm_result *out, tare_error *err);

#endif
