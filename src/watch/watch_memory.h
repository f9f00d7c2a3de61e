/* SPDX-License-Identifier: MIT
 * watch_memory.h - what makes a program load libtare-agent.so: the loader looks into the environment. */
#ifndef WATCH_WATCH_MEMORY_H
#define WATCH_WATCH_MEMORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { MEMORY_EVERY = 512 << 10 };

struct watch_memory {
    bool on;
    bool all;               /* each allocation */
    uint64_t every;         /* else: bytes between samples, on average */
    char library[PATH_MAX]; /* "" until watch_memory_find() */
};

/* If it is wanted: where the library is. TARE_INVALID: it cannot be done. */
tare_status watch_memory_find(struct watch_memory *m, tare_error *err);
/* Why the loader will not put the library in front of this program; NULL: nothing is known against it. */
const char *watch_memory_doubt(const char *program);
/* In the child: `trace` is its file, as it is. */
void watch_memory_environment(const struct watch_memory *m, const char *trace);

#endif
