/* SPDX-License-Identifier: MIT
 * spin.h - a subject that is nothing but work: a chain of dependent steps over a small table in memory. For testing
 * a machine with a thing that is known to be the same on both sides. */
#ifndef SUBJECT_SPIN_H
#define SUBJECT_SPIN_H

#include "subject/subject.h"

/* So many steps a run, some nanoseconds each. */
tare_status subject_open_spin(struct subject **out, uint64_t steps, tare_error *err);

#endif
