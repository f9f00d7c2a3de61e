/* SPDX-License-Identifier: MIT
 * profile_json.h - a call tree as a tare.profile/1 document (docs/profile-format.md): what flame graphs are
 * drawn from. Columns, parents before their children, largest first. Adds nothing to the tree: a time that
 * is not known is null, one that could not be told from zero may be below it. */
#ifndef REPORT_PROFILE_JSON_H
#define REPORT_PROFILE_JSON_H

#include "analyze/calls/calltree.h"
#include "report/sink.h"
#include "report/trace/source.h"

#define PROFILE_SCHEMA "tare.profile/1"
#define PROFILE_NODES_MAX 500000 /* of each tree; beyond it the smallest are left out, and counted */
#define PROFILE_PLAIN_MAX 10000  /* of more nodes the columns are packed texts */
#define PROFILE_THREADS_MAX 24   /* with a tree of their own beside that of all threads */

struct profile_side {
    const struct event_source *source;
    const struct calltree *tree; /* of all threads */
};

/* The tree of one thread, released by the writer. */
typedef tare_status profile_thread_fn(void *ctx, uint32_t thread, struct calltree *out, tare_error *err);

struct profile_input {
    struct profile_side of, base; /* base.tree NULL: nothing to compare with */
    bool gross;                   /* times as read, the instrument's cost still in */
    uint32_t nodes_max;           /* 0: PROFILE_NODES_MAX */
    uint32_t plain_max;           /* 0: PROFILE_PLAIN_MAX */
    profile_thread_fn *thread;    /* NULL: all threads together only */
    void *thread_ctx;
};

/* One JSON object, no newline after it. */
tare_status profile_json_write(struct stream *s, const struct profile_input *in);

/* The same of opened traces. A trace without a single scope gives an empty profile. */
struct profile_wish {
    struct trace *of, *base; /* base may be NULL */
    bool gross;
    uint32_t nodes_max; /* 0: PROFILE_NODES_MAX */
};
tare_status profile_json_trace(struct stream *s, const struct profile_wish *w);

/* Does the trace hold a scope at all? Traces of `tare run` and `tare top` often hold samples only. */
bool profile_json_has_scopes(const struct trace *t);

#endif
