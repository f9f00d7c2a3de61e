/* SPDX-License-Identifier: MIT
 * place.h - on which processor a slice is measured. Processors of one machine differ from moment to moment: the other
 * half of a core works for somebody else, or does not (measured: 1.55 times, for a second or two at a time, each
 * processor by itself). A bench that stays where it began sees one such state and takes it for the machine. So each
 * slice begins on another processor that is idle, as the system itself might choose it. Private to src/bench and its
 * tests. */
#ifndef BENCH_PLACE_H
#define BENCH_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/rng.h"

struct places;

/* `root` as in probe/procfs.h. NULL: no memory, and nothing is moved. */
struct places *places_open(const char *root, uint64_t seed);
void places_close(struct places *p); /* NULL is fine */

/* Move a thread (0: the calling one; else the first of another process) to a processor that was idle since the last
 * look, is one of those it may use, of the same node and as fast by its type as the one it came from; then it may be
 * moved by the system as before. The processor; -1: it was left where it is, because there is no such one. */
int places_move(struct places *p, pid_t thread);

#endif
