/* SPDX-License-Identifier: MIT
 * perf_map.h - names of code that is made at run time, as programs tell perf of it: /tmp/perf-PID.map. */
#ifndef SAMPLE_PERF_MAP_H
#define SAMPLE_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/arena.h"
#include "core/vec.h"

struct perf_map_entry {
    uint64_t start, end;
    const char *name;
};
struct perf_map {
    struct arena arena;
    VEC(struct perf_map_entry) items; /* ascending */
    uint64_t bytes;                   /* of the file when it was read */
    uint64_t asked_ns;
};
/* NULL: it has no name. The file is read again when it has grown, at most once a second. */
const char *perf_map_find(struct perf_map *m, pid_t pid, uint64_t address);
/* Its text, which is changed; for perf_map_find() and tests. */
void perf_map_parse(struct perf_map *m, char *text);
void perf_map_release(struct perf_map *m);

#endif
