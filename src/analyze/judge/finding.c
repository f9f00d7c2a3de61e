/* SPDX-License-Identifier: MIT
 * finding.c - the table of rules, and what they share. The rules are in finding_sweep.c (several cases
 * against each other), finding_machine.c (was the machine fit to measure on), finding_case.c (one case
 * by itself, and its launches), finding_layer.c (timed layers) and finding_graph.c (the graph before it runs). */
#include "analyze/judge/finding.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define IN_RUN(i, s, name, a) {.id = i, .severity = s, .action = a, .in_run = find_##name},
#define IN_CASE(i, s, name, a) {.id = i, .severity = s, .action = a, .in_case = find_##name},
#define IN_SWEEP(i, s, name, p, a) {.id = i, .severity = s, .action = a, .in_sweep = find_##name, .param = p},
#define IN_SWEEP_ANY(i, s, name, p, a)                                                              \
    {.id = i, .severity = s, .action = a, .in_sweep = find_##name, .param = p, .any_load = true},
#define BY_FIGURE(i, s, a) {.id = i, .severity = s, .action = a, .in_run = find_worst},
#define ELSEWHERE(i, s, a) {.id = i, .severity = s, .action = a},
static const struct finding_rule rules[] = {
    FINDING_MAP(IN_RUN, IN_CASE, IN_SWEEP, IN_SWEEP_ANY, BY_FIGURE, ELSEWHERE){.id = NULL},
};

const struct finding_rule *finding_rule(const char *id)
{
    const struct finding_rule *r = rules;
    while (strcmp(r->id, id) != 0) r++; /* whoever asks knows the map */
    return r;
}

static void check_sweeps(struct judging *j)
{
    const struct finding_rule *r = j->rule;
    struct sweeps s;
    if (!r->any_load && run_is_open_loop(j->run)) return;
    j->failed |= sweeps_find(&s, j->run, r->param, strcmp(r->param, "variant") == 0, NULL) < 0;
    for (size_t i = 0; i < s.n; i++) r->in_sweep(j, s.cases + s.start[i], s.start[i + 1] - s.start[i]);
    sweeps_release(&s);
}

static struct run_finding *add_to_run(void *to, const char *id, const char *severity)
{
    return run_add_finding(to, id, severity);
}

struct judging judging_of_run(struct run *run)
{
    return (struct judging){.run = run, .arena = &run->arena, .add = add_to_run, .to = run};
}

struct judging judging_as(struct run *run, const char *id)
{
    struct judging j = judging_of_run(run);
    j.rule = finding_rule(id);
    return j;
}

tare_status findings_add(struct run *run, tare_error *err)
{
    struct judging j = judging_of_run(run);
    for (j.rule = rules; j.rule->id; j.rule++) {
        const struct finding_rule *r = j.rule;
        if (r->in_run) r->in_run(&j);
        if (r->in_sweep) check_sweeps(&j);
        for (size_t i = 0; r->in_case && i < run->cases.n; i++) r->in_case(&j, run->cases.at[i]);
        j.rule = r; /* one rule may have spoken as another */
    }
    return j.failed || run->arena.failed ? error_nomem(err, "the findings") : TARE_OK;
}

/* ---- writing one ---- */

__attribute__((format(printf, 2, 0))) static const char *format_text(struct judging *j, const char *format,
                                                                     va_list args)
{
    char text[600];
    vsnprintf(text, sizeof text, format, args);
    return arena_str(j->arena, text);
}

struct run_finding *finding_start(struct judging *j, const struct run_case *c, const char *format, ...)
{
    struct run_finding *f = j->add(j->to, j->rule->id, j->rule->severity);
    va_list args;
    if (!f) {
        j->failed = true;
        return NULL;
    }
    va_start(args, format);
    f->title = format_text(j, format, args);
    va_end(args);
    f->action = j->rule->action;
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
        run_map_int(j->arena, &f->evidence, key, (int64_t)v);
    else
        run_map_real(j->arena, &f->evidence, key, v);
}

void finding_gain(struct run_finding *f, double share)
{
    if (f && isfinite(share)) f->gain = known_f64(fmin(fmax(share, 0), 1));
}

void finding_number_list(struct judging *j, struct run_finding *f, const struct evidence *all)
{
    for (; all->key; all++) finding_number(j, f, all->key, all->v);
}

void finding_text(struct judging *j, struct run_finding *f, const char *key, const char *v)
{
    if (f && v) run_map_text(j->arena, &f->evidence, key, v);
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

/* ---- settings ---- */

bool config_number(const struct run *run, const char *key, double *out)
{
    return map_number(&run->config, key, out);
}

bool run_is_open_loop(const struct run *run)
{
    const struct run_value *v = run_map_get(&run->config, "load");
    double rate;
    if (v && v->kind == RUN_TEXT && v->s && strcmp(v->s, "open") == 0) return true;
    return config_number(run, "rate", &rate) && rate > 0;
}

/* ---- what several files of rules share ---- */

struct worst find_worst_case(const struct run *run, figure_fn *figure, double limit)
{
    struct worst w = {.of = run->cases.n};
    for (size_t i = 0; i < run->cases.n; i++) {
        double v = figure(run, run->cases.at[i]);
        if (!(v > limit)) continue;
        w.above++;
        if (w.c && v <= w.figure) continue;
        w.c = run->cases.at[i];
        w.figure = v;
    }
    return w;
}

double memory_room(const struct run *run)
{
    return fmin(OR_NAN(run->host.cgroup.memory_limit_bytes),
                OR_NAN(run->host.memory_bytes)); /* of one, that one */
}
