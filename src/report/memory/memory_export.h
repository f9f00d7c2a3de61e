/* SPDX-License-Identifier: MIT
 * memory_export.h - who allocated, in the formats of other tools, and as the profile document that flame graphs are
 * drawn from. Bytes are whole numbers in all of them; what is below one is left out. */
#ifndef REPORT_MEMORY_EXPORT_H
#define REPORT_MEMORY_EXPORT_H

#include "analyze/memory/memory_tree.h"
#include "report/sink.h"

/* name, what the file's name ends with, what it is, whether a terminal must not see it */
#define MEMORY_FORMAT_MAP(X)                                                                                  \
    X(pprof, ".heap.pb", "a heap profile for pprof: held at the peak and at the end, allocated, churn", true) \
    X(speedscope, ".memory.speedscope.json", "flame graphs for speedscope", false)                            \
    X(folded, ".memory.folded", "folded stacks with bytes, for flame graph tools", false)

struct memory_export {
    struct memory_profile *profile; /* its arena is used */
    const char *name;               /* of the whole: the command or the file */
    uint64_t start_unix_ns;
    enum memory_weight weight; /* of folded */
};
typedef tare_status memory_write_fn(struct stream *s, const struct memory_export *e);
#define X(name, extension, help, binary) memory_write_fn memory_write_##name;
MEMORY_FORMAT_MAP(X)
#undef X

/* One tare.profile/1 object of one process; no newline after it. */
tare_status memory_write_profile(struct stream *s, const struct memory_process *p, struct arena *a,
                                 enum memory_weight weight);

#endif
