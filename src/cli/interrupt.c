/* SPDX-License-Identifier: MIT
 * interrupt.c - see interrupt.h. */
#include "cli/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t interrupted;

static const int signals[INTERRUPT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

void interrupt_catch(struct interrupt *i)
{
    struct sigaction now = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    interrupted = 0;
    for (int k = 0; k < INTERRUPT_SIGNALS; k++) sigaction(signals[k], &now, &i->was[k]);
}

void interrupt_restore(const struct interrupt *i)
{
    for (int k = 0; k < INTERRUPT_SIGNALS; k++) sigaction(signals[k], &i->was[k], NULL);
}
