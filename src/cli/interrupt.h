/* SPDX-License-Identifier: MIT
 * interrupt.h - SIGINT, SIGTERM and SIGHUP while something long is under way: the first of them asks for an orderly end
 * with what is there already, a second one ends tare at once. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>

enum { INTERRUPT_SIGNALS = 3 };

struct interrupt { /* what was set before */
    struct sigaction was[INTERRUPT_SIGNALS];
};

extern volatile sig_atomic_t interrupted; /* by the first signal since interrupt_catch() */

void interrupt_catch(struct interrupt *i);
void interrupt_restore(const struct interrupt *i);

#endif
