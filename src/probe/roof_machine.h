/* SPDX-License-Identifier: MIT
 * roof_machine.h - how large a piece of memory must be to tell memory from caches, and may be without harm. Private to
 * src/probe. */
#ifndef PROBE_ROOF_MACHINE_H
#define PROBE_ROOF_MACHINE_H

#include "run/value.h"

/* Bytes of all last-level caches together; `root` as in procstat.h. Unknown: the system does not tell. */
struct known_u64 roof_cache_bytes(const char *root);

/* Four times the caches (32 MiB where unknown), at least 64 MiB, at most 1 GiB and an eighth of the memory that is
 * available. 0: that is less than twice the caches, and would say nothing about memory. */
size_t roof_working_set(struct known_u64 cache, struct known_u64 available);

#endif
