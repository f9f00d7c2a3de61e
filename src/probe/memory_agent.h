/* SPDX-License-Identifier: MIT
 * memory_agent.h - what makes a program load libtare-agent.so: the loader looks into the environment. */
#ifndef PROBE_MEMORY_AGENT_H
#define PROBE_MEMORY_AGENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { MEMORY_EVERY = 512 << 10 };

struct memory_agent {
    bool on;
    bool all;               /* each allocation */
    uint64_t every;         /* else: bytes between samples, on average */
    char library[PATH_MAX]; /* "" until memory_agent_find() */
};

/* If it is wanted: where the library is. TARE_INVALID: it cannot be done. */
tare_status memory_agent_find(struct memory_agent *m, tare_error *err);
/* Why the loader will not put the library in front of this program; NULL: nothing is known against it. */
const char *memory_agent_doubt(const char *program);
/* In the child: `trace` is its file, as it is. */
void memory_agent_environment(const struct memory_agent *m, const char *trace);

#endif
