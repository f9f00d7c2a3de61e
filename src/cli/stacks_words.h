/* SPDX-License-Identifier: MIT
 * stacks_words.h - the words of --time, for each command that has it. */
#ifndef CLI_STACKS_WORDS_H
#define CLI_STACKS_WORDS_H

#include "analyze/stacks/stacks_sum.h"
#include "cli/opt.h"

static const struct opt_choice stacks_time_choices[] = {
    {"wall", STACKS_WALL, "all of it"},
    {"cpu", STACKS_CPU, "on processors"},
    {"gil", STACKS_GIL, "with the GIL of Python held"},
    {"idle", STACKS_IDLE, "neither on a processor nor ready for one"},
    {NULL, 0, NULL}};

#endif
