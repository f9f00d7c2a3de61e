/* SPDX-License-Identifier: MIT
 * tune_answer.c - what was searched and confirmed, as a document and as an answer. Nothing is recommended that was not
 * confirmed; "leave it as it is" is an answer like any other. Measures nothing. */
#include <math.h>
#include <string.h>

#include "cli/shell_words.h"
#include "cli/html_out.h"
#include "cli/tune/tune_args.h"
#include "core/clock.h"
#include "core/fmt.h"

/* ---- the document ---- */

/* The document starts as that of what is used today; its case was only looked at, with layers and another warm-up. */
tare_status tune_begin(struct tuning *t, const struct tune_bound *bound)
{
    struct run *run = t->run;
    const struct tune_args *a = t->plan->args;
    run->kind = "tune";
    run->findings.n = run->targets.n = 0;
    run->subject.as_file = run->subject.optimized = (struct run_static){0};
    static const char *const looked[] = {"precision", "warmup", "min_runs",
                                         "interleaved"}; /* of the look alone */
    for (size_t i = 0; i < sizeof looked / sizeof *looked; i++) run_map_drop(&run->config, looked[i]);
    if (a->name) run->subject.name = a->name;
    run_map_real(&run->arena, &run->config, "budget_s", (double)a->budget.ns / 1e9);
    run_map_text(&run->arena, &run->config, "objective", objective_names[a->objective]);
    run_map_int(&run->arena, &run->config, "seed", (int64_t)(a->seed & INT64_MAX));
    run_map_real(&run->arena, &run->config, "min_gain", a->min_gain);
    tune_bound_record(bound, run);
    return run->arena.failed ? error_nomem(&t->cli->error, "the document") : TARE_OK;
}

tare_status tune_record_trials(struct tuning *t)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < t->trials.n; i++) {
        struct tune_trial *trial = &t->trials.items[i];
        struct run_case *c = run_add_case(t->run, trial->name);
        if (!c) return error_nomem(&t->cli->error, "a case");
        c->params = trial->params;
        if (!trial->params.n) tune_params(t->plan, &trial->at, t->params, t->run, &c->params);
        s = ab_member_record(&trial->member, t->run, c, tune_units(t, trial), &t->cli->error);
        const struct run_accuracy *score = tune_chosen(t->plan, &trial->at, TUNE_PRECISION)->accuracy;
        if (score) c->accuracy = *score;
        c->refused = trial->over ? trial->over : c->failure;
    }
    return s;
}

/* How many could not be used, and the first reason of each kind. */
static void find_refused(struct tuning *t)
{
    size_t over = 0, failed = 0;
    const struct tune_trial *first_over = NULL, *first_failed = NULL;
    for (size_t i = 0; i < t->trials.n; i++) {
        const struct tune_trial *trial = &t->trials.items[i];
        bool is_failed = trial->member.failed < 0;
        failed += is_failed;
        over += !is_failed && trial->over;
        if (is_failed && !first_failed) first_failed = trial;
        if (!is_failed && trial->over && !first_over) first_over = trial;
    }
    struct arena *a = &t->run->arena;
    struct run_finding *f = failed ? run_add_finding(t->run, "tune.failed", "info") : NULL;
    if (f)
        f->title =
            arena_printf(a, "%s of %zu could not be measured; %s: %s", show_count(failed, "configuration").s,
                         t->trials.n, first_failed->name, first_failed->member.failure);
    f = over ? run_add_finding(t->run, "tune.over-limit", "info") : NULL;
    if (f)
        f->title = arena_printf(a, "%s of %zu over a limit; %s: %s", show_count(over, "configuration").s,
                                t->trials.n, first_over->name, first_over->over);
}

/* A budget is kept within a tenth; where it is not, by how much and for what. A loader's process says it itself. */
static void find_overrun(struct tuning *t)
{
    uint64_t now = clock_raw_ns(), all = (uint64_t)t->plan->args->budget.ns;
    uint64_t proof = t->proof_ns ? t->proof_ns : now;
    if (!t->looked_ns || (double)(now - t->began_ns) <= 1.1 * (double)all) return;
    struct run_finding *f = run_add_finding(t->run, "tune.noted", "info");
    if (f)
        f->title = arena_printf(
            &t->run->arena, "took %s of a budget of %s: looking %s, the search %s, the proof %s%s",
            show_time((double)(now - t->began_ns)).s, show_time((double)all).s,
            show_time((double)(t->looked_ns - t->began_ns)).s, show_time((double)(proof - t->looked_ns)).s,
            show_time((double)(now - proof)).s,
            t->proof_ns ? "; a proof that was begun gets its least pairs" : "");
}

static void find_left(struct tuning *t)
{
    struct run_finding *again = t->retaken ? run_add_finding(t->run, "tune.noted", "info") : NULL;
    if (again)
        again->title = arena_printf(&t->run->arena, "%s taken again: the load of others shifted meanwhile",
                                    show_count(t->retaken, "pair").s);
    for (size_t i = 0; i < t->plan->left.n; i++) {
        struct run_finding *f = run_add_finding(t->run, "tune.not-touched", "info");
        if (f) f->title = arena_printf(&t->run->arena, "not touched: %s", t->plan->left.items[i]);
    }
}

/* Limits of what is used today and of what is recommended. */
static tare_status judge_limits(struct tuning *t, size_t number)
{
    const struct tune_args *a = t->plan->args;
    const struct run_case *c = t->run->cases.at[number];
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < a->n_targets; i++) {
        const struct target *limit = &a->targets[i];
        if (limit == a->gate && !c->accuracy.score.known)
            continue; /* nothing that changes outputs was changed */
        struct run_target *row = run_add_target(t->run, arena_str(&t->run->arena, limit->metric),
                                                target_op_text(limit->op), limit->value);
        if (!row) return error_nomem(&t->cli->error, "a target");
        row->unit = measure_unit(measure_find(limit->metric));
        row->case_name = c->name;
        s = target_judge(limit, c, row, &t->cli->error);
    }
    return s;
}

/* ---- the proof ---- */

static bool is_gain(const struct tuning *t)
{
    return t->has_proof && !t->refusal &&
           (t->proof.verdict == CONFIRM_CONFIRMED || t->proof.verdict == CONFIRM_LIKELY);
}

static void add_common(struct buf *b, const struct tune_plan *p)
{
    const struct model_args *m = &p->args->setup;
    if (p->fixed.seq) buf_printf(b, " --seq %lld", (long long)p->fixed.seq);
    for (size_t i = 0; i < p->fixed.n_dims; i++)
        buf_printf(b, " --dim %s=%lld", p->fixed.dims[i].name, (long long)p->fixed.dims[i].value);
    for (size_t i = 0; i < m->runtimes.n; i++) {
        buf_add_str(b, " --ort ");
        words_quote(b, m->runtimes.items[i]);
    }
    for (size_t i = 0; i < m->session_config.n; i++) {
        buf_add_str(b, " --session-config ");
        words_quote(b, m->session_config.items[i]);
    }
}

/* Both sides in turns, where a run is the same work on both; else the same search, which goes on from what it knows and
 * takes the pairs anew. */
static void add_command(struct buf *b, const struct tuning *t)
{
    struct buf side = BUF_INIT;
    const struct tune_point *at[] = {&t->trials.items[0].at, &t->trials.items[t->best].at};
    const struct tune_plan *p = t->plan;
    if (p->args->kind == KIND_PYTHON || at[0]->at[TUNE_BATCH] != at[1]->at[TUNE_BATCH]) {
        buf_add_str(b, p->args->line.failed ? "" : p->args->line.data);
        return;
    }
    buf_add_str(b, "tare compare --ab ");
    words_quote(b, tune_model(p, at[0]));
    if (at[1]->at[TUNE_PRECISION] != at[0]->at[TUNE_PRECISION]) {
        buf_add_char(b, ' ');
        words_quote(b, tune_model(p, at[1]));
    }
    for (int i = 0; i < 2; i++) {
        buf_clear(&side);
        tune_options(p, at[i], &side);
        buf_printf(b, " --%c ", i ? 'b' : 'a');
        words_quote(b, side.failed ? "" : side.data + strspn(side.data, " "));
    }
    buf_release(&side);
    add_common(b, p);
}

static const char *proof_command(struct tuning *t)
{
    struct buf b = BUF_INIT;
    add_command(&b, t);
    const char *text = b.failed || !b.len ? NULL : arena_str(&t->run->arena, b.data);
    buf_release(&b);
    return text;
}

static void record_proof(struct tuning *t, struct run_proof *to)
{
    const struct confirm_result *r = &t->proof;
    static const char *const words[] = {
        [CONFIRM_GOING_ON] = "inconclusive", [CONFIRM_CONFIRMED] = "pass", [CONFIRM_LIKELY] = "pass",
        [CONFIRM_NO_GAIN] = "fail",          [CONFIRM_WORSE] = "fail",     [CONFIRM_NOT_SHOWN] = "inconclusive",
    };
    static const char *const metrics[] = {
        [OBJECTIVE_THROUGHPUT] = "throughput", [OBJECTIVE_LATENCY] = "latency.p50", [OBJECTIVE_MEMORY] = "memory.peak"};
    int objective = t->plan->args->objective;
    struct confirm_rule rule = CONFIRM_RULE_INIT;
    const char *found = r->verdict == CONFIRM_GOING_ON ? "too few pairs" : confirm_verdict_name(r->verdict);
    if (t->refusal) found = "refused";
    struct interval g = r->gain;
    if (objective != OBJECTIVE_THROUGHPUT) g = (struct interval){1 / g.value, 1 / g.hi, 1 / g.lo};
    *to = (struct run_proof){.known = true,
                             .against = t->trials.items[0].name,
                             .metric = metrics[objective],
                             .ratio = g.value,
                             .ratio_lo = known_if_finite(g.lo),
                             .ratio_hi = known_if_finite(g.hi),
                             .confidence = known_f64(rule.level),
                             .verdict = t->refusal ? "fail" : words[r->verdict],
                             .found = found,
                             .pairs = known_u64(r->pairs),
                             .cpu = run_estimate_of(r->cpu),
                             .memory = run_estimate_of(r->memory),
                             .command = proof_command(t)};
    if (objective == OBJECTIVE_MEMORY) to->memory = run_estimate_of(g);
}

static void add_ratio(struct buf *b, const char *what, struct interval i)
{
    if (isfinite(i.value) && isfinite(i.hi)) buf_printf(b, ", %s %.2f x (%.2f to %.2f)", what, i.value, i.lo, i.hi);
}

static void proof_text(struct buf *b, const struct tuning *t)
{
    const struct confirm_result *r = &t->proof;
    bool memory = t->plan->args->objective == OBJECTIVE_MEMORY;
    static const char *const what[] = {
        [OBJECTIVE_THROUGHPUT] = "as many samples per second", [OBJECTIVE_LATENCY] = "as fast a run",
        [OBJECTIVE_MEMORY] = "less memory"};
    if (r->verdict == CONFIRM_GOING_ON) {
        buf_printf(b, "%s fitted into the budget, which is too few to judge by", show_count(r->pairs, "pair").s);
        return;
    }
    buf_printf(b, "%.2f x (%.2f to %.2f, 95 %%) %s, %s by %s", r->gain.value, r->gain.lo, r->gain.hi,
               what[t->plan->args->objective], confirm_verdict_name(r->verdict), show_count(r->pairs, "pair").s);
    add_ratio(b, "processor time", r->cpu);
    add_ratio(b, memory ? "time" : "memory", r->memory);
    if (r->uses_more_cpu) buf_add_str(b, "; the gain is bought with processor time");
}

/* Why it should be left as it is. */
static void leave_text(struct buf *b, const struct tuning *t)
{
    buf_printf(b, "leave it as it is: ");
    if (t->refusal) {
        buf_add_str(b, t->refusal);
        return;
    }
    if (interrupted && !t->has_proof) {
        buf_printf(b, "it was interrupted after %s, before anything was proved",
                   show_count(t->trials.n, "configuration").s);
        return;
    }
    if (t->trials.n == 1) {
        buf_add_str(b, "no setting has a second value that may be tried");
        return;
    }
    if (t->best == 0) {
        buf_printf(b, "nothing better among %s", show_count(t->trials.n, "configuration").s);
        return;
    }
    buf_printf(b, "the best of %zu, %s, is not shown to be %.0f %% better: ", t->trials.n,
               t->trials.items[t->best].name, 100 * t->plan->args->min_gain);
    if (t->has_proof)
        proof_text(b, t);
    else
        buf_add_str(b, t->proof_failure);
}

/* What keeps the limits is recommended over what does not, whatever it costs; else only a confirmed gain is. */
static tare_status recommend_found(struct tuning *t, bool *changed)
{
    struct buf why = BUF_INIT;
    bool forced = t->trials.items[0].over && t->best && t->has_proof && !t->refusal;
    *changed = t->best && (is_gain(t) || forced);
    if (t->trials.items[0].over && *changed)
        buf_printf(&why, "what is used today does not do: %s; ", t->trials.items[0].over);
    if (*changed)
        proof_text(&why, t);
    else
        leave_text(&why, t);
    struct run_recommendation *r = &t->run->recommendation;
    *r = (struct run_recommendation){.known = true,
                                     .objective = objective_names[t->plan->args->objective],
                                     .case_name = t->trials.items[*changed ? t->best : 0].name,
                                     .why = why.failed ? NULL : arena_str(&t->run->arena, why.data)};
    if (t->has_proof) record_proof(t, &r->proof);
    if (t->has_proof && !*changed) r->proof.of = t->trials.items[t->best].name;
    buf_release(&why);
    return r->why ? TARE_OK : error_nomem(&t->cli->error, "the recommendation");
}

/* ---- the answer ---- */

static void say_found(struct tuning *t, const struct tune_bound *bound, bool changed)
{
    struct buf b = BUF_INIT;
    const struct run_recommendation *r = &t->run->recommendation;
    tune_bound_text(&b, bound);
    buf_printf(&b, "tried      %s in %zu measurements", show_count(t->trials.n, "configuration").s, t->measurements);
    if (t->recalled) buf_printf(&b, "; %zu more are from an earlier search", t->recalled);
    buf_printf(&b, "\ntoday      %s\n", t->trials.items[0].name);
    if (changed)
        buf_printf(&b, "use        %s\nproof      %s\n", r->case_name, r->why);
    else if (!t->nothing_fits)
        buf_printf(&b, "answer     %s\n", r->why);
    else
        buf_printf(&b, "answer     nothing keeps the limits; nearest is %s: %s\n", t->trials.items[t->best].name,
                   t->trials.items[t->best].over ? t->trials.items[t->best].over : "it failed");
    if (changed && t->apply) buf_printf(&b, "apply      %s\n", t->apply);
    if (r->proof.known && r->proof.command) buf_printf(&b, "again      %s\n", r->proof.command);
    buf_add_char(&b, '\n');
    if (!b.failed) cli_write(t->cli, b.data, b.len);
    buf_release(&b);
}

static int answer(struct tuning *t, const struct tune_bound *bound, bool changed)
{
    const struct tune_args *a = t->plan->args;
    struct cli *cli = t->cli;
    const struct run *const runs[] = {t->run};
    struct run_report r = {runs, 1};
    bool replaced = false;
    tare_status s = a->no_save ? TARE_OK : output_keep(cli, &a->history, t->run, a->json);
    if (s == TARE_OK) tune_part_remove(t);
    for (size_t i = 0; i < RUN_FORMATS && s == TARE_OK; i++) {
        if (!a->also[i]) continue;
        replaced = replaced || output_is_answer(a->also[i]);
        s = output_runs(cli, a->also[i], &r, run_formats[i].write);
    }
    if (s == TARE_OK && a->html) s = html_out_runs(cli, a->html, runs, 1);
    if (!replaced && !a->json) say_found(t, bound, changed);
    run_format_fn *format = a->json ? report_run_json : report_run_text;
    tare_status shown = replaced ? TARE_OK : output_runs(cli, "-", &r, format);
    if (s != TARE_OK || shown != TARE_OK) return cli_fail(cli);
    return t->nothing_fits || targets_missed(t->run) ? CLI_FINDING : CLI_GOOD;
}

/* ---- all of it ---- */

int tune_conclude(struct tuning *t, const struct tune_bound *bound)
{
    bool changed = false;
    tare_status s = tune_record_trials(t);
    find_refused(t);
    find_left(t);
    find_overrun(t);
    if (s == TARE_OK && !t->nothing_fits) s = recommend_found(t, &changed);
    if (s == TARE_OK && interrupted) run_map_bool(&t->run->arena, &t->run->config, "interrupted", true);
    size_t used = changed || t->nothing_fits ? t->best : 0;
    if (s == TARE_OK) s = judge_limits(t, used);
    return s == TARE_OK ? answer(t, bound, changed) : cli_fail(t->cli);
}

int tune_answer_bound(struct tuning *t, const struct tune_bound *bound)
{
    const struct tune_args *a = t->plan->args;
    const struct run *const runs[] = {t->run};
    struct run_report r = {runs, 1};
    struct buf b = BUF_INIT;
    tune_bound_text(&b, bound);
    const char *before = "to try     ";
    if (t->to_try) buf_printf(&b, "%s%s", before, t->to_try);
    for (int s = 0; s < TUNE_SETTINGS; s++)
        if (t->plan->of[s].n > 1) {
            buf_printf(&b, "%s%s", before, t->plan->knobs[s].name);
            before = ", ";
        }
    buf_add_char(&b, '\n');
    if (!a->explain) buf_add_str(&b, "answer     leave it as it is: not even the roof would be a gain\n");
    tare_status s = buf_status(&b, &t->cli->error);
    if (s == TARE_OK && !a->explain && !a->no_save) s = output_keep(t->cli, &a->history, t->run, a->json);
    if (s == TARE_OK && a->json) s = output_runs(t->cli, "-", &r, report_run_json);
    if (s == TARE_OK && !a->json) cli_write(t->cli, b.data, b.len);
    buf_release(&b);
    return s == TARE_OK ? CLI_GOOD : cli_fail(t->cli);
}
