/* SPDX-License-Identifier: MIT
 * arrivals.h - when requests are due: all moments are made before the first is sent, so that no answer can move them.
 * The same seed gives the same moments. Pure, but for reading the file of a replay. */
#ifndef LOAD_ARRIVALS_H
#define LOAD_ARRIVALS_H

#include <stdint.h>

#include "core/vec.h"

#define LOAD_ARRIVALS_MAP(X)                                                           \
    X(POISSON, "poisson", "by chance, as many users who know nothing of each other")   \
    X(CONSTANT, "constant", "evenly")                                                  \
    X(BURSTY, "bursty", "by chance, and in bursts: gaps vary three times as much")     \
    X(RAMP, "ramp", "by chance, at a rate that rises from a tenth to the whole")

enum load_arrivals {
#define X(name, word, help) ARRIVALS_##name,
    LOAD_ARRIVALS_MAP(X)
#undef X
        ARRIVALS_KINDS
};

const char *arrivals_word(enum load_arrivals kind); /* "poisson" */

enum { ARRIVALS_MOST = 1 << 24 };
#define BURSTY_CV 3.0    /* standard deviation of a gap / its mean: gamma distributed */
#define RAMP_START 0.1   /* of the rate */

struct moments {
    VEC(uint64_t) at; /* ns from the beginning, ascending */
};

struct arrivals {
    enum load_arrivals kind;
    double rate; /* per second; of a ramp: at the end */
    uint64_t window_ns, seed;
    uint64_t most; /* moments; 0: ARRIVALS_MOST */
};
/* What is left out of the window is no moment; a window without any gives none. */
tare_status arrivals_make(const struct arrivals *a, struct moments *out, tare_error *err);

/* The moments of a log or CSV: in each line the first thing that is a time: RFC 3339, as web servers log them
 * (10/Oct/2026:13:55:36 +0200), or a number of s, ms, us or ns since 1970, told apart by its size, or of s since
 * anything. Lines without one are counted in *skipped; a first line without is a header. They begin at 0, in order;
 * `speed` 2 goes through them in half the time. */
struct replay {
    const char *name; /* for errors */
    const char *text;
    size_t n;
    double speed;
};
tare_status arrivals_replay(const struct replay *r, struct moments *out, size_t *skipped, tare_error *err);

#endif
