/* SPDX-License-Identifier: MIT
 * stacks_export.h - where the time of sampled threads went, in the formats of other tools. Times are whole nanoseconds
 * in all of them; paths of less than one are left out. */
#ifndef REPORT_STACKS_EXPORT_H
#define REPORT_STACKS_EXPORT_H

#include "analyze/stacks/stacks_sum.h"
#include "report/sink.h"

/* name, what the file's name ends with, what it is, whether a terminal must not see it */
#define STACKS_FORMAT_MAP(X)                                                                                  \
    X(pprof, ".stacks.pb", "a profile for pprof: samples and time", true)                                     \
    X(speedscope, ".stacks.speedscope.json", "flame graphs for speedscope", false)                            \
    X(folded, ".stacks.folded", "folded stacks with nanoseconds, for flame graph tools", false)               \
    X(prof, ".prof", "for pstats, snakeviz, gprof2dot: sampled times, calls are samples", true)

struct stacks_export {
    const struct stacks_profile *profile;
    const char *name; /* of the whole: the command or the file */
    enum stacks_time time;
    uint64_t start_unix_ns;
};
extern const char *const stacks_time_words[]; /* by enum stacks_time */

typedef tare_status stacks_write_fn(struct stream *s, const struct stacks_export *e);
#define X(name, extension, help, binary) stacks_write_fn stacks_write_##name;
STACKS_FORMAT_MAP(X)
#undef X

#endif
