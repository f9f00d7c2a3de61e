/* SPDX-License-Identifier: MIT
 * finding.c - the table of rules, and what they share. The rules are in finding_sweep.c (several cases
 * against each other), finding_machine.c (was the machine fit to measure on), finding_case.c (one case
 * by itself), finding_launch.c (launches of a case), finding_layer.c (timed layers) and finding_graph.c (the
 * graph before it runs). */
#include "analyze/judge/finding.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* In the order of the report: what spoils the numbers first, then what to do about the workload. */
static const struct finding_rule rules[] = {
    {"outputs.not-finite", "critical", rule_nan},
    {"load.overloaded", "critical", rule_overloaded},
    {"memory.leak", "critical", rule_leak},
    {"memory.limit", "warn", rule_memory_limit},
    {"accuracy.changed", "warn", rule_accuracy},
    {"provider.fallback", "warn", rule_provider},
    {"provider.fallback", "warn", rule_layer_provider},
    {"provider.copies", "info", rule_copies},
    {"warmup.never-steady", "warn", rule_never_steady},
    {"launches.spread", "info", rule_launch_spread},
    {"launches.close", "info", rule_launch_close},
    {"machine.unstable", "warn", rule_unstable},
    {"machine.no-interval", "warn", rule_no_interval},
    {"machine.throttled", "warn", rule_throttled},
    {"machine.steal", "warn", rule_steal},
    {"machine.preempted", "warn", rule_preempted},
    {"latency.outliers", "info", rule_outliers},
    {"threads.oversubscribed", "warn", rule_threads_many},
    {"threads.slower", "warn", rule_threads_slower},
    {"threads.no-gain", "info", rule_threads_idle},
    {"batch.too-small", "warn", rule_batch_small},
    {"batch.diminishing-returns", "info", rule_batch_knee},
    {"memory.per-batch", "info", rule_batch_memory},
    {"input.long", "info", rule_long_input},
    {"variant", "info", rule_variants},
    {"layer.far-from-roof", "info", rule_far_from_roof},
    {"graph.foldable", "info", rule_foldable},
    {"graph.unfused", "info", rule_unfused},
    {"graph.transposes", "info", rule_transposes},
    {"attention.quadratic", "info", rule_quadratic},
    {"graph.precision", "info", rule_precision},
    {"embedding.size", "info", rule_embedding},
    {"memory.arena", "info", rule_arena},
    {"first-run.cost", "info", rule_first_run},
    {"load.cost", "info", rule_load},
    {"self.heavy", "warn", rule_self_heavy},
    {"machine.virtual", "info", rule_virtual},
};

tare_status findings_add(struct run *run, tare_error *err)
{
    struct judging j = {.run = run, .err = err};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        j.rule = &rules[i];
        tare_status s = rules[i].check(&j);
        if (s < 0) return s;
    }
    return j.failed || run->arena.failed ? error_set(err, TARE_NOMEM, "out of memory for the findings")
                                         : TARE_OK;
}

/* ---- writing one ---- */

__attribute__((format(printf, 2, 0))) static const char *format_text(struct judging *j, const char *format,
                                                                     va_list args)
{
    char text[600];
    vsnprintf(text, sizeof text, format, args);
    return arena_str(&j->run->arena, text);
}

struct run_finding *finding_start(struct judging *j, const struct run_case *c, const char *format, ...)
{
    struct run_finding *f = run_add_finding(j->run, j->rule->id, j->rule->severity);
    va_list args;
    if (!f) {
        j->failed = true;
        return NULL;
    }
    va_start(args, format);
    f->title = format_text(j, format, args);
    va_end(args);
    f->case_name = c ? c->name : NULL;
    return f;
}

void finding_action(struct judging *j, struct run_finding *f, const char *format, ...)
{
    va_list args;
    if (!f) return;
    va_start(args, format);
    f->action = format_text(j, format, args);
    va_end(args);
}

void finding_number(struct judging *j, struct run_finding *f, const char *key, double v)
{
    if (!f || !isfinite(v)) return;
    if (v == floor(v) && fabs(v) < 1e15)
        run_map_int(&j->run->arena, &f->evidence, key, (int64_t)v);
    else
        run_map_real(&j->run->arena, &f->evidence, key, v);
}

void finding_text(struct judging *j, struct run_finding *f, const char *key, const char *v)
{
    if (f && v) run_map_text(&j->run->arena, &f->evidence, key, v);
}

void finding_estimate(struct judging *j, struct run_finding *f, const char *key, struct run_estimate e)
{
    char name[64];
    if (!e.known) return;
    finding_number(j, f, key, e.value);
    snprintf(name, sizeof name, "%s_lo", key);
    if (e.lo.known) finding_number(j, f, name, e.lo.v);
    snprintf(name, sizeof name, "%s_hi", key);
    if (e.hi.known) finding_number(j, f, name, e.hi.v);
}

tare_status finding_sweeps(struct judging *j, const char *param, sweep_check_fn *check)
{
    struct sweeps s;
    tare_status st = sweeps_find(&s, j->run, param, false, j->err);
    if (st < 0) return st;
    for (size_t i = 0; i < s.n; i++) check(j, s.cases + s.start[i], s.start[i + 1] - s.start[i]);
    sweeps_release(&s);
    return TARE_OK;
}

/* ---- settings ---- */

bool map_number(const struct run_map *m, const char *key, double *out)
{
    const struct run_value *v = run_map_get(m, key);
    if (!v || (v->kind != RUN_INT && v->kind != RUN_REAL)) return false;
    *out = v->kind == RUN_INT ? (double)v->i : v->d;
    return true;
}

bool config_number(const struct run *run, const char *key, double *out)
{
    return map_number(&run->config, key, out);
}

bool config_is(const struct run *run, const char *key, const char *word)
{
    const struct run_value *v = run_map_get(&run->config, key);
    return v && v->kind == RUN_TEXT && v->s && strcmp(v->s, word) == 0;
}

const struct run_value *config_of_case(const struct run *run, const char *name, const struct run_case *c)
{
    const struct run_value *v = run_map_get(&run->config, name);
    return v && v->kind == RUN_MAP ? run_map_get(&v->items, *c->name ? c->name : "-") : NULL;
}

bool run_is_open_loop(const struct run *run)
{
    double rate;
    return config_is(run, "load", "open") || (config_number(run, "rate", &rate) && rate > 0);
}
