/* SPDX-License-Identifier: MIT
 * doctor_aa.c - see doctor_aa.h. Short comparisons of several kinds of work in turn, both sides the same, until the
 * time is spent. Counts every comparison that was finished. */
#include "cli/compare/doctor_aa.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "analyze/compare/compare_pairs.h"
#include "cli/compare/compare_args.h"
#include "cli/progress.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/fmt.h"
#include "core/vec.h"
#include "subject/subject.h"

#define LONGEST_NS UINT64_C(5000000000) /* one comparison: what is promised for units of 10 ms and less */
#define SHORTEST_NS UINT64_C(300000000) /* less is no comparison */
#define TRY_STEPS UINT64_C(100000)

static const struct {
    const char *name;
    uint64_t unit_ns;
    bool command; /* one launch is one measurement */
} kinds[] = {{"1 ms in a process", 1000000, false},
             {"5 ms in a process", 5000000, false},
             {"25 ms in a process", 25000000, false},
             {"command of 10 ms", 10000000, true}};
enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(KINDS <= (int)SELFTEST_KINDS_MAX, "one place for each kind");

struct testing {
    struct cli *cli;
    struct selftest *out;
    double step_ns;
    uint64_t began_ns, budget_ns;
    struct paired_rule rule;
    VEC(struct selftest_trial) trials;
    struct progress bar;
};

/* ---- how long a step takes ---- */

/* The shortest of twenty tries: what disturbs one only ever makes it longer. */
static tare_status weigh_step(double *step_ns, tare_error *err)
{
    struct subject *s = NULL;
    struct instance *i = NULL;
    struct subject_cost cost;
    uint64_t best = UINT64_MAX;
    tare_status status = subject_open_spin(&s, TRY_STEPS, err);
    if (status == TARE_OK) status = s->ops->prepare(s, NULL, NULL, &i, err);
    for (int k = 0; k < 20 && status == TARE_OK; k++) {
        uint64_t start = clock_raw_ns();
        status = s->ops->run(i, 0, &cost, err);
        uint64_t took = clock_raw_ns() - start;
        if (took < best) best = took;
    }
    if (i) s->ops->finish(i);
    subject_close(s);
    *step_ns = fmax((double)best / (double)TRY_STEPS, 0.01);
    return status;
}

/* ---- one comparison ---- */

static uint64_t left_ns(const struct testing *t)
{
    uint64_t spent = clock_raw_ns() - t->began_ns;
    return spent < t->budget_ns ? t->budget_ns - spent : 0;
}

static uint64_t share_of_time(const struct testing *t)
{
    uint64_t each = t->budget_ns / (3 * KINDS), left = left_ns(t);
    if (each > LONGEST_NS) each = LONGEST_NS;
    if (each < SHORTEST_NS) each = SHORTEST_NS;
    return each < left ? each : left;
}

/* The verdict as a user would have got it: all metrics together. */
static tare_status verdict_of(const struct testing *t, const struct pair_set *set, const struct ab_outcome *o,
                              enum paired_verdict *out, tare_error *err)
{
    struct comparison c;
    struct compare_pairs in = {.name = "self-test",
                               .set = set,
                               .stopped = ab_trial_stop_word(o->stopped),
                               .spent_s = (double)o->spent_ns / 1e9,
                               .few_launches = o->few_launches,
                               .failure = o->failure};
    tare_status s = comparison_init(&c, "interleaved", err);
    if (s < 0) return s;
    s = compare_pairs_add(&c, &in, &t->rule, err);
    if (s == TARE_OK) s = compare_finish(&c, t->rule.alpha, err);
    *out = PAIRED_INCONCLUSIVE;
    for (int v = PAIRED_INCONCLUSIVE; s == TARE_OK && v <= PAIRED_IMPROVED; v++)
        if (strcmp(c.verdict, paired_verdict_name((enum paired_verdict)v)) == 0)
            *out = (enum paired_verdict)v;
    comparison_release(&c);
    return s;
}

static tare_status note(struct testing *t, size_t kind, const struct pair_set *set,
                        const struct ab_outcome *o, tare_error *err)
{
    struct selftest_trial one = {
        .kind = kind, .spent_s = (double)o->spent_ns / 1e9, .contended = paired_contention(set).contended};
    tare_status s = verdict_of(t, set, o, &one.verdict, err);
    for (int m = 0; m < PAIRED_METRICS && s == TARE_OK; m++) {
        struct paired_result p;
        s = paired_metric_judge(set, (enum paired_metric)m, &t->rule, &p, err);
        if (s == TARE_OK) one.by[m] = (struct selftest_seen){p.error, p.sd_pair, p.sd_launch};
    }
    return s == TARE_OK ? vec_push(&t->trials, one, err) : s;
}

static tare_status measure_pair(struct testing *t, size_t kind, struct ab_lane *const *lane, tare_error *err)
{
    struct pair_set set = {0};
    struct ab_outcome o;
    struct ab_trial trial = {.lane = {lane[PAIR_A], lane[PAIR_B]},
                             .budget_ns = share_of_time(t),
                             .seed = ab_trial_seed(),
                             .rule = &t->rule};
    progress_time(&t->bar, "comparing the same with itself", t->budget_ns - left_ns(t), t->budget_ns);
    tare_status s = ab_trial_run(&trial, &set, &o, err);
    if (s == TARE_OK && set.n && !interrupted) s = note(t, kind, &set, &o, err);
    ab_pairs_release(&set);
    return s;
}

/* ---- the two kinds of sides ---- */

static uint64_t steps_of(const struct testing *t, size_t kind)
{
    return (uint64_t)((double)kinds[kind].unit_ns / t->step_ns) + 1;
}

/* Both sides are workers that spin for the same number of steps, as two launches of one model would. */
static tare_status compare_processes(struct testing *t, size_t kind, tare_error *err)
{
    static char name[] = "tare", verb[] = "__ab-spin";
    static char *argv[] = {name, verb, NULL};
    char spec[32];
    struct ab_lane *lane[PAIR_SIDES] = {NULL, NULL};
    struct ab_process_options o = {.name = kinds[kind].name,
                                   .exe = "/proc/self/exe",
                                   .argv = argv,
                                   .spec = spec,
                                   .interrupted = &interrupted};
    snprintf(spec, sizeof spec, "%llu", (unsigned long long)steps_of(t, kind));
    tare_status s = TARE_OK;
    for (int side = 0; s == TARE_OK && side < PAIR_SIDES; side++) s = ab_lane_process(&lane[side], &o, err);
    if (s == TARE_OK) s = measure_pair(t, kind, lane, err);
    for (int side = 0; side < PAIR_SIDES; side++) ab_lane_close(lane[side]);
    return s;
}

static tare_status compare_commands(struct testing *t, size_t kind, tare_error *err)
{
    char line[64];
    char *args[PAIR_SIDES] = {line, line};
    struct ab_lane *lane[PAIR_SIDES] = {NULL, NULL};
    struct compare_args a = {.common = MODEL_ARGS_INIT, .ab = true, .args = args, .n = PAIR_SIDES};
    struct compare_sides sides = {.arena = ARENA_INIT};
    snprintf(line, sizeof line, "/proc/self/exe __ab-spin %llu", (unsigned long long)steps_of(t, kind));
    tare_status s = compare_sides_read(t->cli, &a, &sides) ? TARE_DENIED : TARE_OK;
    for (int side = 0; s == TARE_OK && side < PAIR_SIDES; side++)
        s = compare_side_lane(&sides, side, 0, &lane[side], err);
    if (s == TARE_OK) s = measure_pair(t, kind, lane, err);
    for (int side = 0; side < PAIR_SIDES; side++) ab_lane_close(lane[side]);
    compare_sides_release(&sides);
    return s;
}

/* ---- all ---- */

static void name_kinds(struct selftest *out)
{
    const time_t now = (time_t)(clock_unix_ns() / 1000000000u);
    struct tm tm;
    *out = (struct selftest){.n_kinds = KINDS};
    for (size_t i = 0; i < KINDS; i++) {
        snprintf(out->kind[i].name, sizeof out->kind[i].name, "%s", kinds[i].name);
        out->kind[i].unit_s = (double)kinds[i].unit_ns / 1e9;
    }
    if (!gmtime_r(&now, &tm) || !strftime(out->measured, sizeof out->measured, "%Y-%m-%dT%H:%M:%SZ", &tm))
        snprintf(out->measured, sizeof out->measured, "1970-01-01T00:00:00Z");
}

static tare_status repeat_kinds(struct testing *t, tare_error *err)
{
    struct interrupt was;
    tare_status s = TARE_OK;
    interrupt_catch(&was);
    for (size_t i = 0; s == TARE_OK && !interrupted && (i == 0 || left_ns(t) >= SHORTEST_NS); i++)
        s = kinds[i % KINDS].command ? compare_commands(t, i % KINDS, err)
                                     : compare_processes(t, i % KINDS, err);
    bool ended = interrupted;
    interrupt_restore(&was);
    progress_end(&t->bar);
    if (s < 0 && !(ended && t->trials.n)) return s;
    return t->trials.n ? TARE_OK : error_set(err, TARE_DENIED, "interrupted before the first comparison ended");
}

tare_status doctor_aa_measure(struct cli *cli, uint64_t budget_ns, struct selftest *out)
{
    struct testing t = {.cli = cli,
                        .out = out,
                        .budget_ns = budget_ns,
                        .began_ns = clock_raw_ns(),
                        .rule = PAIRED_RULE_INIT,
                        .trials = VEC_INIT,
                        .bar = PROGRESS_INIT(cli)};
    name_kinds(out);
    tare_status s = weigh_step(&t.step_ns, &cli->error);
    if (s == TARE_OK) s = repeat_kinds(&t, &cli->error);
    out->spent_s = (double)(clock_raw_ns() - t.began_ns) / 1e9;
    if (s == TARE_OK) s = selftest_sum_up(out, t.trials.items, t.trials.n, &t.rule, &cli->error);
    vec_release(&t.trials);
    return s;
}

/* ---- kept ---- */

/* False: nothing is kept. A fingerprint becomes part of a name, so only plain ones. */
static bool cache_file(const char *fingerprint, char *out, size_t size)
{
    char dir[PATH_MAX];
    if (!fingerprint || !*fingerprint || !cli_cache_dir(dir, sizeof dir)) return false;
    for (const char *c = fingerprint; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-') return false;
    return (size_t)snprintf(out, size, "%s/selftest-%s.txt", dir, fingerprint) < size;
}

bool doctor_aa_recall(const char *fingerprint, struct selftest *out)
{
    char path[PATH_MAX + 128];
    struct file_view view = FILE_VIEW_INIT;
    if (!cache_file(fingerprint, path, sizeof path) || file_map(path, &view, NULL) < 0) return false;
    bool good = selftest_read(out, fingerprint, (int64_t)(clock_unix_ns() / 1000000000u),
                              (const char *)view.data, view.size);
    file_unmap(&view);
    return good;
}

void doctor_aa_keep(const char *fingerprint, const struct selftest *s)
{
    char path[PATH_MAX + 128], dir[PATH_MAX];
    struct buf text = BUF_INIT;
    if (!cache_file(fingerprint, path, sizeof path) || !cli_cache_dir(dir, sizeof dir)) return;
    if (file_make_folders(dir, NULL) < 0) return;
    selftest_write(s, fingerprint, (int64_t)(clock_unix_ns() / 1000000000u), &text);
    if (!text.failed) (void)file_write_atomic(path, text.data, text.len, 0, NULL);
    buf_release(&text);
}

/* ---- for people and as JSON ---- */

static const struct paired_rule rule = PAIRED_RULE_INIT;
static const char *const metric_words[PAIRED_METRICS] = {"wall", "CPU"};
static const char *const metric_keys[PAIRED_METRICS] = {"wall", "cpu"};

static struct shown percent(double share)
{
    struct shown out = {"-"};
    if (!isnan(share))
        snprintf(out.s, sizeof out.s, share >= 0.0995 ? "%.0f %%" : "%.2g %%", 100 * share);
    return out;
}

static struct shown seconds(double s)
{
    struct shown out = {"-"};
    if (!isnan(s)) snprintf(out.s, sizeof out.s, s >= 9.95 ? "%.0f s" : "%.2g s", s);
    return out;
}

/* One kind of work by one clock. Its words are a row of the table, whose first columns only the first clock fills. */
static void say_times(struct answer *a, const struct selftest_kind *k, int metric)
{
    const struct selftest_times *t = &k->by[metric];
    double one_s = selftest_mde(t, 1, &rule), ten_s = selftest_mde(t, 10, &rule);
    bool shown = k->comparisons > 0;
    if (shown && metric > 0) answer_say(a, "  %-19s %5s %6s", "", "", "");
    if (shown) answer_say(a, "  %-4s", metric_words[metric]);
    answer_object(a, metric_keys[metric]);
    answer_f64(a, "sd_pair", t->sd_pair, shown ? " %8s" : NULL, percent(t->sd_pair).s);
    answer_f64(a, "sd_launch", t->sd_launch, shown ? " %9s" : NULL, percent(t->sd_launch).s);
    answer_f64(a, "smallest_in_1s", one_s, shown ? " %9s" : NULL, percent(one_s).s);
    answer_f64(a, "smallest_in_10s", ten_s, shown ? " %9s" : NULL, percent(ten_s).s);
    answer_f64(a, "finds_5_percent_s", t->detect_s, shown ? " %9s\n" : NULL, seconds(t->detect_s).s);
    answer_object_end(a);
}

static void say_kind(struct answer *a, const struct selftest_kind *k)
{
    bool shown = k->comparisons > 0;
    answer_object(a, NULL);
    answer_str(a, "name", k->name, shown ? "  %-19s" : NULL, k->name);
    answer_f64(a, "unit_s", k->unit_s, NULL);
    answer_uint(a, "comparisons", k->comparisons, shown ? " %5" PRIu64 : NULL, k->comparisons);
    answer_uint(a, "false_alarms", k->alarms, shown ? " %6" PRIu64 : NULL, k->alarms);
    for (int m = 0; m < PAIRED_METRICS; m++) say_times(a, k, m);
    answer_object_end(a);
}

void doctor_aa_say(struct answer *a, const struct selftest *s)
{
    answer_str(a, "measured", s->measured, NULL);
    answer_f64(a, "spent_s", s->spent_s, NULL);
    answer_uint(a, "comparisons", s->comparisons, NULL);
    answer_uint(a, "regressed", s->regressed, NULL);
    answer_uint(a, "improved", s->improved, NULL);
    answer_uint(a, "inconclusive", s->inconclusive, NULL);
    answer_uint(a, "busy", s->contended, NULL);
    answer_object_flat(a, "false_alarm_rate");
    answer_f64(a, "value", (double)(s->regressed + s->improved) / (double)s->comparisons, NULL);
    answer_f64(a, "lo", s->rate_lo, NULL);
    answer_f64(a, "hi", s->rate_hi, NULL);
    answer_object_end(a);
    answer_bool(a, "alarming", selftest_alarming(s, &rule), NULL);
    answer_say(a, "  %-19s %5s %6s  %-4s %8s %9s %9s %9s %9s\n", "", "made", "wrong", "time", "a pair",
               "launches", "in 1 s", "in 10 s", "5 % within");
    answer_list(a, "kinds");
    for (size_t i = 0; i < s->n_kinds; i++) say_kind(a, &s->kind[i]);
    answer_list_end(a);
    answer_say(a,
               "  %" PRIu64 " comparisons: %" PRIu64 " regressed and %" PRIu64
               " improved, both wrong; %" PRIu64 " inconclusive; the machine was busy in %" PRIu64 "\n",
               s->comparisons, s->regressed, s->improved, s->inconclusive, s->contended);
}

void doctor_aa_meaning(const struct selftest *s, void (*tell)(struct answer *a, const char *text),
                       struct answer *a)
{
    struct buf text = BUF_INIT;
    selftest_sentence(s, &rule, &text);
    buf_add_str(&text, ".");
    if (s->contended * 4 > s->comparisons)
        buf_printf(&text, " Others used the processors in %" PRIu64 " of them: CPU time is then the witness.",
                   s->contended);
    if (!text.failed) tell(a, text.data);
    for (size_t i = 0; i < s->n_kinds; i++) {
        const struct selftest_kind *k = &s->kind[i];
        if (!k->comparisons || isnan(k->by[PAIRED_WALL].detect_s) || isnan(k->by[PAIRED_CPU].detect_s))
            continue;
        buf_clear(&text);
        buf_printf(&text,
                   "%s: compare --ab finds a slowdown of 5 %% within %s by wall time, within %s by CPU time.",
                   k->name, seconds(k->by[PAIRED_WALL].detect_s).s, seconds(k->by[PAIRED_CPU].detect_s).s);
        if (!text.failed) tell(a, text.data);
    }
    buf_release(&text);
}
