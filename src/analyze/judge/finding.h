/* SPDX-License-Identifier: MIT
 * finding.h - how rules are written: a row in finding.c and a check function in one of finding_*.c. A
 * check adds findings through finding_start() and stays silent when what it needs is unknown. Private to
 * src/analyze. */
#ifndef ANALYZE_FINDING_H
#define ANALYZE_FINDING_H

#include "analyze/judge/judge.h"
#include "analyze/judge/show.h"
#include "analyze/judge/sweep.h"

struct judging;

struct finding_rule {
    const char *id, *severity;
    tare_status (*check)(struct judging *j);
};

struct judging {
    struct run *run;
    const struct finding_rule *rule; /* the one being checked */
    bool failed;                     /* no memory for a finding */
    tare_error *err;
};

/* A finding of the current rule, of case `c` (NULL: of the whole run) with its title. NULL: no memory. */
struct run_finding *finding_start(struct judging *j, const struct run_case *c, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Each does nothing when `f` is NULL. */
void finding_action(struct judging *j, struct run_finding *f, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void finding_number(struct judging *j, struct run_finding *f, const char *key, double v);
void finding_text(struct judging *j, struct run_finding *f, const char *key, const char *v);
/* key, key_lo, key_hi */
void finding_estimate(struct judging *j, struct run_finding *f, const char *key, struct run_estimate e);

/* Calls `check` for each sweep over `param`. */
typedef void sweep_check_fn(struct judging *j, const struct run_case *const *cases, size_t n);
tare_status finding_sweeps(struct judging *j, const char *param, sweep_check_fn *check);

/* ---- settings the harness wrote into run->config ---- */

bool map_number(const struct run_map *m, const char *key, double *out); /* any map of a document */
bool config_number(const struct run *run, const char *key, double *out);
bool config_is(const struct run *run, const char *key, const char *word);
/* config.NAME.CASE, where the harness notes things per case; NULL: nothing noted. */
const struct run_value *config_of_case(const struct run *run, const char *name, const struct run_case *c);
bool run_is_open_loop(const struct run *run); /* then throughput is what was offered, not what is possible */

/* ---- the rules, by file ---- */

tare_status rule_batch_small(struct judging *j), rule_batch_knee(struct judging *j),
    rule_batch_memory(struct judging *j), rule_long_input(struct judging *j),
    rule_threads_slower(struct judging *j), rule_threads_idle(struct judging *j),
    rule_variants(struct judging *j); /* finding_sweep.c */

tare_status rule_threads_many(struct judging *j), rule_unstable(struct judging *j),
    rule_no_interval(struct judging *j), rule_steal(struct judging *j), rule_throttled(struct judging *j),
    rule_preempted(struct judging *j), rule_outliers(struct judging *j), rule_virtual(struct judging *j),
    rule_self_heavy(struct judging *j); /* finding_machine.c */

tare_status rule_nan(struct judging *j), rule_never_steady(struct judging *j);

tare_status rule_leak(struct judging *j), rule_memory_limit(struct judging *j),
    rule_first_run(struct judging *j), rule_load(struct judging *j), rule_arena(struct judging *j),
    rule_provider(struct judging *j), rule_accuracy(struct judging *j),
    rule_overloaded(struct judging *j); /* finding_case.c */

tare_status rule_launch_spread(struct judging *j),
    rule_launch_close(struct judging *j); /* finding_launch.c */

tare_status rule_far_from_roof(struct judging *j), rule_transposes(struct judging *j),
    rule_layer_provider(struct judging *j), rule_copies(struct judging *j); /* finding_layer.c */

tare_status rule_foldable(struct judging *j), rule_unfused(struct judging *j),
    rule_quadratic(struct judging *j), rule_precision(struct judging *j),
    rule_embedding(struct judging *j); /* finding_graph.c */

/* ---- what rules about layers and graphs share: finding_graph.c ---- */

/* The graph as it ran if that is known, else as the file has it. NULL: neither. */
const struct run_static *finding_graph(const struct run *run);
double graph_bytes(const struct run_static *s); /* read and written by one run; NAN: unknown */
const char *op_without_domain(const char *op);  /* "com.microsoft.FusedConv" -> "FusedConv" */
/* A share becomes a severity: a possible gain of a fifth is worth a warning. */
const char *gain_severity(double share);

#endif
