/* SPDX-License-Identifier: MIT
 * memory_group.h - the sites of a process summed up by line, function, scope or library. A stack counts as the own of
 * one group, and with callees once for each group that is in it: who calls itself is counted once. */
#ifndef ANALYZE_MEMORY_GROUP_H
#define ANALYZE_MEMORY_GROUP_H

#include "analyze/memory/memory_sum.h"

/* The own of a line or a function is what its innermost frame of Python allocated, native code below it included; in a
 * stack without Python the innermost named frame of the library that allocates, `operator new` left out, or its place.
 * Of a scope: the innermost. Of a library: that of the innermost frame. */
#define MEMORY_BY_MAP(X)                                                        \
    X(LINE, "line", "by line: where it was allocated, and below it")            \
    X(FUNCTION, "function", "by function")                                      \
    X(STACK, "stack", "by the whole stack")                                     \
    X(SCOPE, "scope", "by scope of tare")                                       \
    X(LIBRARY, "library", "by library, or package of Python")
#define X(name, word, help) MEMORY_BY_##name,
enum memory_by { MEMORY_BY_MAP(X) MEMORY_BYS };
#undef X
extern const char *const memory_by_words[];

struct memory_group {
    const char *name;       /* of a library or a scope; else NULL, and the frame tells */
    struct memory_site own; /* its frame: one of the group's; NULL: the stack, or the scope, is unknown */
    struct memory_bytes peak_below, end_below, allocated_below, churn_below; /* with callees */
};

struct memory_groups {
    enum memory_by by;
    struct memory_group *all; /* most own bytes at the peak first, then with callees */
    size_t n;
};

/* In the arena. */
tare_status memory_group(const struct memory_process *p, enum memory_by by, struct arena *a,
                         struct memory_groups *out, tare_error *err);
/* "numpy" of a file below site-packages, "python" of its own files, "program" of other files of Python, the file's name
 * of a native library; "unknown". Valid as long as the arena. */
const char *memory_library(const struct memory_frame_named *f, struct arena *a);

#endif
