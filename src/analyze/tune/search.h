/* SPDX-License-Identifier: MIT
 * search.h - which configurations to measure next, and which is the best of those measured. Ask and tell: the caller
 * measures a block of configurations in turns, the base among them, and tells what each cost. What the machine did to
 * a whole block is common to all in it and drops out. Pure and repeatable: the same seed and the same answers give the
 * same questions, so that a search is resumed by telling it again what is known.
 *
 * How: costs are logarithms of a smooth surface over the knobs (a Gaussian process whose mean may be a caller's model),
 * each block shifted as a whole, each measurement noisy (surface.c). Next is what is expected to improve most; when
 * three fifths of the budget are spent, or little is left to hope for, what lies one step from the best; and then the
 * best few again and again, halving them. */
#ifndef ANALYZE_TUNE_SEARCH_H
#define ANALYZE_TUNE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"

enum { TUNE_KNOBS_MAX = 16, TUNE_VALUES_MAX = 64, TUNE_BLOCK_MAX = 8, TUNE_MEASURED_MAX = 256 };

struct tune_knob {
    const char *name;
    size_t n;     /* values, the cheapest first: among equals the cheapest is chosen */
    bool ordered; /* numbers: neighbours are alike; else words */
    bool grows;   /* more of it never helps to keep a limit: what is over a limit stays so with more of it */
};

struct tune_point { /* the number of each knob's value */
    uint8_t at[TUNE_KNOBS_MAX];
};

struct tune_space {
    const struct tune_knob *knobs;
    size_t n;
    struct tune_point base;                                   /* what is used today */
    bool (*allowed)(void *ctx, const struct tune_point *p);   /* NULL: every combination is */
    double (*predict)(void *ctx, const struct tune_point *p); /* ln of the cost; NULL: no model */
    void *ctx;
};

struct tune_limits {
    size_t most;  /* measurements in all, those of the base included; at most TUNE_MEASURED_MAX */
    double equal; /* costs this close are equal: 0.01 */
    bool
        near; /* measurements are dear: the first look is at what differs from the base in one knob, by one step */
    uint64_t seed;
};

enum tune_outcome { TUNE_MEASURED, TUNE_OVER_LIMIT, TUNE_FAILED };

struct tune_block {
    struct tune_point at[TUNE_BLOCK_MAX]; /* the first is the base */
    size_t n;                             /* 0: the search is over */
};

struct tune_answer { /* to one question of the block */
    enum tune_outcome outcome;
    double cost; /* time per unit of work, above 0, where it was measured (also over a limit) */
};

struct tune_tried { /* a configuration and what is known of it */
    struct tune_point at;
    enum tune_outcome outcome;
    size_t n;              /* measurements */
    struct interval ratio; /* cost / that of the base, 95 %; an estimate of the surface, not a proof */
};

struct tune_search;
/* Borrows the space. TARE_INVALID: no knob, too many, a base that is not in the space or not allowed. */
tare_status tune_search_new(struct tune_search **out, const struct tune_space *space,
                            const struct tune_limits *limits, tare_error *err);
void tune_search_free(struct tune_search *s); /* NULL is fine */

tare_status tune_search_ask(struct tune_search *s, struct tune_block *out, tare_error *err);
/* In the order of the block; a measurement that was not made is TUNE_FAILED. */
tare_status tune_search_tell(struct tune_search *s, const struct tune_block *block,
                             const struct tune_answer *answers, tare_error *err);

/* All that were tried, the best first, those that failed or are over a limit last; *best is the number of the one to
 * use: the cheapest of those that equal the first. An array of *n, the caller's to free with mem_free(). */
tare_status tune_search_tried(struct tune_search *s, struct tune_tried **out, size_t *n, size_t *best,
                              tare_error *err);

/* Takes back to the base what does not help: each knob without which, by the surface, no more is lost than the search
 * can tell apart (10 % at most), all together. What is left may never have been measured: see whether it is as good. */
void tune_search_simplify(struct tune_search *s, struct tune_point *at);

#endif
