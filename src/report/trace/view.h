/* SPDX-License-Identifier: MIT
 * view.h - which nodes of a call tree a report shows, and in which order: a list of rows, parents before
 * their children. Also the flat view: one node per site, over all paths. Pure; prints nothing. */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "analyze/calls/calltree.h"
#include "report/trace/source.h"

#define TREE_SORT_MAP(X) X(TOTAL, "total") X(SELF, "self") X(COUNT, "count") X(MEAN, "mean") X(NAME, "name")
enum tree_sort {
#define X(name, text) TREE_SORT_##name,
    TREE_SORT_MAP(X)
#undef X
};

struct view_options {
    enum tree_sort sort;
    bool gross;       /* order and shares by what was read, not by net times */
    bool all_kinds;   /* counters and marks too, not only scopes */
    uint32_t depth;   /* levels shown; 0: all */
    double min_share; /* 0..1: leave out nodes with less of the whole */
};

struct view_row {
    uint32_t node;
    uint32_t depth; /* 0: directly below the root */
    bool last;      /* no sibling follows */
};

struct view {
    struct view_row *rows;
    size_t n;
    uint64_t hidden; /* nodes left out by depth or share */
    double whole_ns; /* what 100 % is; NAN when nothing was timed */
};

#define VIEW_INIT     \
    {                 \
        NULL, 0, 0, 0 \
    }

/* `source` gives the names, for sorting by name. */
tare_status view_build(struct view *out, const struct calltree *tree, const struct event_source *source,
                       const struct view_options *options, tare_error *err);
void view_release(struct view *v);
double view_share(const struct view *v, const struct call_node *node, bool gross);

/* The node after `i` when parents come before their children, 0 after the last. Begin with the root: i and *depth 0;
 * what is directly below it has depth 1. */
uint32_t calltree_next(const struct calltree *tree, uint32_t i, uint32_t *depth);

/* One child of the root per site. A call inside a call of the same site counts, but its time is already in
 * the outer one: total is of outermost calls, mean of all calls. Where several paths meet, percentiles and
 * the number of threads cannot be known from theirs: NAN and 0. Release with flat_release(). */
tare_status flat_build(struct calltree *out, const struct calltree *tree, uint32_t n_sites, tare_error *err);
void flat_release(struct calltree *flat);

#endif
