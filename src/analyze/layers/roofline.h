/* SPDX-License-Identifier: MIT
 * roofline.h - each timed layer against the measured roof: intensity, rate reached, bound by compute or memory, share
 * of what the roof allows, and the most that the whole could gain were this layer free (Amdahl). Pure: fills fields of
 * run->cases[]->layers from what is there already and run->roof. */
#ifndef ANALYZE_ROOFLINE_H
#define ANALYZE_ROOFLINE_H

#include "run/run.h"

void roofline_apply(struct run *run, struct run_case *c);

#endif
