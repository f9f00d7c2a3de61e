/* SPDX-License-Identifier: MIT
 * pace.h - how often a sampler may look: as often as it was asked to, within what looking may take of a processor. */
#ifndef SAMPLE_PACE_H
#define SAMPLE_PACE_H

#include <stdint.h>

enum { PACE_ROUNDS = 9 };

struct pace {
    double hz, budget; /* rounds per second; share of a processor */
    double last[PACE_ROUNDS];
    uint64_t rounds, at_ns;
    double owed; /* ns of processor time that the budget has not paid for yet */
};

/* After a round that used so much processor time: how long until the next one. */
uint64_t pace_step(struct pace *p, uint64_t used_ns, uint64_t now_ns);

#endif
