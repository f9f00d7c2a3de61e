/* SPDX-License-Identifier: MIT
 * lanes.h - calls that waited (asyncio tasks, greenlets, coroutines) as whole bars beside their thread: the thread's
 * own track has what ran, in pieces; a lane has a call from its begin to its end. Calls that overlap get lanes of their
 * own, calls within one another share one, and a lane is used again. What never waited has no bar. */
#ifndef REPORT_EXPORT_LANES_H
#define REPORT_EXPORT_LANES_H

#include "core/map.h"
#include "core/vec.h"
#include "report/trace/source.h"
#include "trace/reader.h"

struct lane {
    uint32_t open;    /* bars that have begun and not ended */
    uint64_t last_ns; /* when one ended last */
};

/* An open scope of the thread; lane 0: it has no bar. */
struct lane_scope {
    uint32_t lane;
    bool hidden;
    uint64_t began_ns;
};

struct lanes {
    VEC(struct lane) all; /* lane n is all.items[n - 1] */
    VEC(struct lane_scope) scopes;
    struct map_u64 waiting; /* number of a pause -> site << 32 | lane */
    uint64_t now_ns;        /* of the latest event */
    size_t unended;         /* how far lanes_unended() went through `waiting` */
    struct map_u64 hidden;  /* numbers of begins, see lanes_look() */
    uint64_t begins;        /* so far */
    VEC(uint64_t) looked;   /* numbers of the begins that are open, while looking */
    tare_error *err;
};

/* What an event means for the lanes. A bar is known for one when its call goes on for the first time, so its begin may
 * lie before bars that were told of already. */
enum lane_change { LANE_NOTHING, LANE_BEGIN, LANE_END };
struct lane_step {
    enum lane_change change;
    uint32_t lane, site; /* lane: of the scope that begins or ends, also without a change; 0: it has no bar */
    uint64_t at_ns;
    bool hidden; /* the scope that begins or ends is not to be drawn on its thread */
};

void lanes_release(struct lanes *l);
void lanes_clear(struct lanes *l); /* before the next thread */
/* Before its events, for who draws begins as they come: finds the pieces of calls of which it is not known how long
 * they ran, as it was noticed late that they waited (TRACE_LATE). They have their bar, and nothing on the thread. */
tare_status lanes_look(struct lanes *l, const struct event_source *s, uint32_t thread, tare_error *err);
tare_status lanes_event(struct lanes *l, const struct trace_event *e, struct lane_step *out, tare_error *err);
/* After the last event: the next bar whose call never ended. False: there is none. */
bool lanes_unended(struct lanes *l, struct lane_step *out);

#endif
