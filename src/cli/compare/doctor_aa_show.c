/* SPDX-License-Identifier: MIT
 * doctor_aa_show.c - a self-test for people and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/compare/doctor_aa.h"

static const struct paired_rule rule = PAIRED_RULE_INIT;
static const char *const metric_words[PAIRED_METRICS] = {"wall", "CPU"};
static const char *const metric_keys[PAIRED_METRICS] = {"wall", "cpu"};

static void percent(char *out, size_t size, double share)
{
    if (isnan(share))
        snprintf(out, size, "-");
    else
        snprintf(out, size, share >= 0.0995 ? "%.0f %%" : "%.2g %%", 100 * share);
}

static void seconds(char *out, size_t size, double s)
{
    if (isnan(s))
        snprintf(out, size, "-");
    else
        snprintf(out, size, s >= 9.95 ? "%.0f s" : "%.2g s", s);
}

/* One kind of work by one clock. Its words are a row of the table, whose first columns only the first clock fills. */
static void say_times(struct answer *a, const struct selftest_kind *k, int metric)
{
    const struct selftest_times *t = &k->by[metric];
    double one_s = selftest_mde(t, 1, &rule), ten_s = selftest_mde(t, 10, &rule);
    char pair[16], launch[16], one[16], ten[16], found[16];
    percent(pair, sizeof pair, t->sd_pair);
    percent(launch, sizeof launch, t->sd_launch);
    percent(one, sizeof one, one_s);
    percent(ten, sizeof ten, ten_s);
    seconds(found, sizeof found, t->detect_s);
    bool shown = k->comparisons > 0;
    if (shown && metric > 0) answer_say(a, "  %-19s %5s %6s", "", "", "");
    if (shown) answer_say(a, "  %-4s", metric_words[metric]);
    answer_object(a, metric_keys[metric]);
    answer_f64(a, "sd_pair", t->sd_pair, shown ? " %8s" : NULL, pair);
    answer_f64(a, "sd_launch", t->sd_launch, shown ? " %9s" : NULL, launch);
    answer_f64(a, "smallest_in_1s", one_s, shown ? " %9s" : NULL, one);
    answer_f64(a, "smallest_in_10s", ten_s, shown ? " %9s" : NULL, ten);
    answer_f64(a, "finds_5_percent_s", t->detect_s, shown ? " %9s\n" : NULL, found);
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
    char wall[16], cpu[16];
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
        seconds(wall, sizeof wall, k->by[PAIRED_WALL].detect_s);
        seconds(cpu, sizeof cpu, k->by[PAIRED_CPU].detect_s);
        buf_clear(&text);
        buf_printf(&text,
                   "%s: compare --ab finds a slowdown of 5 %% within %s by wall time, within %s by CPU time.",
                   k->name, wall, cpu);
        if (!text.failed) tell(a, text.data);
    }
    buf_release(&text);
}
