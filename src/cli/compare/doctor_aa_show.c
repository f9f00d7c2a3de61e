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

static void text_kind(struct buf *out, const struct selftest_kind *k)
{
    for (int m = 0; k->comparisons && m < PAIRED_METRICS; m++) {
        const struct selftest_times *t = &k->by[m];
        char pair[16], launch[16], one[16], ten[16], found[16], made[24] = "", wrong[24] = "";
        percent(pair, sizeof pair, t->sd_pair);
        percent(launch, sizeof launch, t->sd_launch);
        percent(one, sizeof one, selftest_mde(t, 1, &rule));
        percent(ten, sizeof ten, selftest_mde(t, 10, &rule));
        seconds(found, sizeof found, t->detect_s);
        if (m == 0) {
            snprintf(made, sizeof made, "%" PRIu64, k->comparisons);
            snprintf(wrong, sizeof wrong, "%" PRIu64, k->alarms);
        }
        buf_printf(out, "  %-19s %5s %6s  %-4s %8s %9s %9s %9s %9s\n", m ? "" : k->name, made, wrong,
                   metric_words[m], pair, launch, one, ten, found);
    }
}

void doctor_aa_text(struct buf *out, const struct selftest *s)
{
    buf_printf(out, "  %-19s %5s %6s  %-4s %8s %9s %9s %9s %9s\n", "", "made", "wrong", "time", "a pair",
               "launches", "in 1 s", "in 10 s", "5 % within");
    for (size_t i = 0; i < s->n_kinds; i++) text_kind(out, &s->kind[i]);
    buf_printf(out,
               "  %" PRIu64 " comparisons: %" PRIu64 " regressed and %" PRIu64
               " improved, both wrong; %" PRIu64 " inconclusive; the machine was busy in %" PRIu64 "\n",
               s->comparisons, s->regressed, s->improved, s->inconclusive, s->contended);
}

void doctor_aa_meaning(const struct selftest *s, void (*tell)(struct buf *out, const char *text),
                       struct buf *out)
{
    struct buf text = BUF_INIT;
    char wall[16], cpu[16];
    selftest_sentence(s, &rule, &text);
    buf_add_str(&text, ".");
    if (s->contended * 4 > s->comparisons)
        buf_printf(&text, " Others used the processors in %" PRIu64 " of them: CPU time is then the witness.",
                   s->contended);
    if (!text.failed) tell(out, text.data);
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
        if (!text.failed) tell(out, text.data);
    }
    buf_release(&text);
}

static void json_times(struct json *j, const char *key, const struct selftest_times *t)
{
    json_key(j, key);
    json_object_begin(j);
    json_kv_double(j, "sd_pair", t->sd_pair);
    json_kv_double(j, "sd_launch", t->sd_launch);
    json_kv_double(j, "smallest_in_1s", selftest_mde(t, 1, &rule));
    json_kv_double(j, "smallest_in_10s", selftest_mde(t, 10, &rule));
    json_kv_double(j, "finds_5_percent_s", t->detect_s);
    json_object_end(j);
}

static void json_kind(struct json *j, const struct selftest_kind *k)
{
    json_object_begin(j);
    json_kv_string(j, "name", k->name);
    json_kv_double(j, "unit_s", k->unit_s);
    json_kv_uint(j, "comparisons", k->comparisons);
    json_kv_uint(j, "false_alarms", k->alarms);
    for (int m = 0; m < PAIRED_METRICS; m++) json_times(j, metric_keys[m], &k->by[m]);
    json_object_end(j);
}

void doctor_aa_json(struct json *j, const struct selftest *s)
{
    json_key(j, "selftest");
    if (!s) {
        json_put_null(j);
        return;
    }
    json_object_begin(j);
    json_kv_string(j, "measured", s->measured);
    json_kv_double(j, "spent_s", s->spent_s);
    json_kv_uint(j, "comparisons", s->comparisons);
    json_kv_uint(j, "regressed", s->regressed);
    json_kv_uint(j, "improved", s->improved);
    json_kv_uint(j, "inconclusive", s->inconclusive);
    json_kv_uint(j, "busy", s->contended);
    json_key(j, "false_alarm_rate");
    json_object_begin_flat(j);
    json_kv_double(j, "value", (double)(s->regressed + s->improved) / (double)s->comparisons);
    json_kv_double(j, "lo", s->rate_lo);
    json_kv_double(j, "hi", s->rate_hi);
    json_object_end(j);
    json_kv_bool(j, "alarming", selftest_alarming(s, &rule));
    json_key(j, "kinds");
    json_array_begin(j);
    for (size_t i = 0; i < s->n_kinds; i++) json_kind(j, &s->kind[i]);
    json_array_end(j);
    json_object_end(j);
}
