/* SPDX-License-Identifier: MIT
 * inspect_diverge.c - `tare inspect --diverge`: where two variants of a model begin to differ, as a table around the
 * place or as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/inspect/inspect_args.h"
#include "cli/progress.h"
#include "cli/output.h"
#include "core/file.h"
#include "core/fmt.h"
#include "report/text.h"
#include "subject/diverge.h"

enum { BEFORE = 4, AFTER = 4 }; /* rows around the first difference */

/* ---- a value that both models have ---- */

static void say_number(struct answer *a, const char *key, double v)
{
    answer_f64(a, key, v, NULL); /* what is not finite is null */
    if (isnan(v))
        answer_say(a, "-");
    else if (isinf(v))
        answer_say(a, "infinite");
    else
        answer_say(a, "%.3g", v);
}

static void say_node(struct answer *a, const char *name, const char *op)
{
    struct buf *b = answer_text(a);
    layer_name_text(b, *name ? name : "(no name)");
    buf_add_str(b, " (");
    text_plain(b, op, text_clip(op, 60));
    buf_add_char(b, ')');
}

static void say_names(struct buf *b, const struct diverge_point *p)
{
    layer_name_text(b, p->value);
    if (strcmp(p->value, p->twin) == 0) return;
    buf_add_str(b, " ~ ");
    layer_name_text(b, p->twin);
}

static const char *point_word(const struct diverge_point *p, bool first)
{
    if (first) return "first";
    return p->differs ? "differs" : "same";
}

static void say_point(struct answer *a, const struct diverge_point *p, bool first)
{
    answer_say(a, "%s", point_word(p, first));
    answer_str(a, "value", p->value, NULL);
    answer_str(a, "twin", p->twin, NULL);
    say_names(answer_text(a), p);
    answer_str(a, "node_a", p->node_a, NULL);
    answer_str(a, "op_a", p->op_a, NULL);
    say_node(a, p->node_a, p->op_a);
    answer_str(a, "node_b", p->node_b, NULL);
    answer_str(a, "op_b", p->op_b, NULL);
    if (strcmp(p->node_a, p->node_b) == 0 && strcmp(p->op_a, p->op_b) == 0)
        answer_say(a, "=");
    else
        say_node(a, p->node_b, p->op_b);
    answer_bool(a, "differs", p->differs, NULL);
    say_number(a, "rel_l2", p->rel_l2);
    say_number(a, "max_abs", p->max_abs);
    say_number(a, "cosine", p->cosine);
    answer_str(a, "why", p->why, NULL);
}

/* ---- the answer ---- */

/* JSON has all. In words: some before the first difference, that one, some after; without a difference, the last ones;
 * with --all, all of them. */
static void say_points(struct answer *out, const struct diverged *d, bool all)
{
    static const struct table_column heads[] = {{"", true},          {"value", true},   {"node of a", true},
                                                {"node of b", true}, {"rel L2", false}, {"max abs", false},
                                                {"cosine", false}};
    size_t n = d->points.n, at = d->first == SIZE_MAX ? n : d->first, from = 0, to = n;
    if (!all && !out->as_json) {
        if (at > BEFORE) from = at - BEFORE;
        if (n - at > AFTER) to = at + AFTER + 1;
    }
    if (from)
        answer_say(out, "%s%zu compared before these: the same%s\n", out->stream.style.dim, from,
                   out->stream.style.plain);
    answer_table(out, "points", heads, sizeof heads / sizeof *heads);
    for (size_t i = from; i < to; i++) {
        answer_object(out, NULL);
        say_point(out, &d->points.items[i], i == d->first);
        answer_object_end(out);
    }
    answer_table_end(out);
    if (to < n)
        answer_say(out, "%s%zu compared after these%s\n", out->stream.style.dim, n - to,
                   out->stream.style.plain);
}

static void say_no_difference(struct answer *out, const struct diverged *d, const struct inspect_args *a)
{
    const char *among = "";
    if (d->cut)
        among = " before the interruption";
    else if (d->points.n + d->skipped < d->common)
        among = " (--all compares all)";
    answer_say(out, "no difference beyond %.3g among the values that were compared%s\n", a->tolerance, among);
}

static void say_verdict(struct buf *b, const struct diverged *d, const struct inspect_args *a)
{
    const struct diverge_point *p = &d->points.items[d->first];
    const char *maker = *p->node_a ? p->node_a : p->op_a;
    buf_add_str(b, "first difference: ");
    text_plain(b, p->value, text_clip(p->value, 300));
    buf_add_str(b, ", made by ");
    text_plain(b, maker, text_clip(maker, 300));
    if (p->why) {
        buf_add_str(b, ": ");
        text_plain(b, p->why, strlen(p->why));
    } else {
        buf_printf(b, ": relative L2 error %.3g, more than %.3g", p->rel_l2, a->tolerance);
    }
    buf_add_str(b, d->cut ? "; interrupted, so there may be an earlier one\n" : "\n");
}

static void say_amounts(struct answer *out, const struct diverged *d)
{
    struct buf *b = answer_text(out);
    buf_printf(b, "%scompared %zu of %zu values in common", out->stream.style.dim, d->points.n, d->common);
    if (d->only_a || d->only_b) buf_printf(b, " (%zu only in a, %zu only in b)", d->only_a, d->only_b);
    if (d->skipped) buf_printf(b, ", %zu do not compare", d->skipped);
    buf_printf(b, "; %" PRIu64 " sessions, at most ", d->sessions);
    fmt_bytes(b, d->bytes_at_once);
    buf_printf(b, " of values at a time%s\n", out->stream.style.plain);
}

/* `first` is one of the points: only JSON has it a second time, for programs that want nothing else. */
static void say_diverged(struct answer *out, const struct diverged *d, const struct inspect_args *a)
{
    answer_str(out, "schema", "tare.diverge/1", NULL);
    answer_str(out, "a", a->models[0], NULL);
    answer_str(out, "b", a->models[1], NULL);
    answer_f64(out, "tolerance", a->tolerance, NULL);
    answer_bool(out, "complete", !d->cut, NULL);
    answer_uint(out, "common", d->common, NULL);
    answer_uint(out, "only_a", d->only_a, NULL);
    answer_uint(out, "only_b", d->only_b, NULL);
    answer_uint(out, "compared", d->points.n, NULL);
    answer_uint(out, "skipped", d->skipped, NULL);
    answer_uint(out, "sessions", d->sessions, NULL);
    answer_uint(out, "bytes_at_once", d->bytes_at_once, NULL);
    if (d->first == SIZE_MAX) {
        answer_null(out, "first", NULL);
    } else if (out->as_json) {
        answer_object(out, "first");
        say_point(out, &d->points.items[d->first], true);
        answer_object_end(out);
    }
    say_points(out, d, a->all);
    answer_say(out, "\n");
    if (d->first == SIZE_MAX)
        say_no_difference(out, d, a);
    else
        say_verdict(answer_text(out), d, a);
    say_amounts(out, d);
}

/* ---- all of it ---- */

/* Without optimisation unless asked: fused nodes have no values in common with those of the other model. */
static tare_status find_difference(struct cli *cli, const struct inspect_args *a, struct diverged *d)
{
    struct progress shown = PROGRESS_INIT(cli);
    struct interrupt was;
    struct onnx_options o[2];
    for (size_t i = 0; i < 2; i++)
        o[i] = (struct onnx_options){.path = a->models[i],
                                     .runtime = a->places[i].chosen,
                                     .inputs = a->inputs,
                                     .optimization = a->optimization < 0 ? 0 : (int)a->optimization,
                                     .places = &a->places[i]};
    struct diverge_options options = {.a = o[0],
                                      .b = o[1],
                                      .params = inspect_case(a),
                                      .tolerance = a->tolerance,
                                      .at_once = (size_t)a->at_once,
                                      .all = a->all,
                                      .progress = progress_at,
                                      .ctx = &shown,
                                      .interrupted = &interrupted};
    interrupt_catch(&was);
    tare_status s = diverge_find(d, &options, &cli->error);
    interrupt_restore(&was);
    progress_end(&shown);
    return s;
}

/* --output keeps the JSON, whatever is shown. */
static tare_status answer_diverged(struct cli *cli, const struct inspect_args *a, const struct diverged *d)
{
    struct buf json = BUF_INIT;
    struct answer out;
    struct report_style style = REPORT_STYLE_NONE;
    tare_status st = TARE_OK;
    if (a->output) {
        answer_begin(&out, sink_to_buf(&json), true, &style, &cli->error);
        say_diverged(&out, d, a);
        st = answer_end(&out);
    }
    if (st == TARE_OK && a->output)
        st = file_write_atomic(a->output, json.data, json.len, FILE_SHARED, &cli->error);
    buf_release(&json);
    if (st < 0) return st;
    cli_answer_begin(cli, &out, a->json);
    say_diverged(&out, d, a);
    return answer_end(&out);
}

/* A difference is a finding even if the search was cut short; no difference in a search that was cut short proves
 * nothing. */
int inspect_diverge(struct cli *cli, const struct inspect_args *a)
{
    struct diverged d = DIVERGED_INIT;
    tare_status s = find_difference(cli, a, &d);
    if (s != TARE_OK) {
        int rc = cli_fail(cli);
        return s == TARE_IO ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
    }
    s = answer_diverged(cli, a, &d);
    int rc = CLI_GOOD;
    if (s != TARE_OK)
        rc = cli_fail(cli);
    else if (d.first != SIZE_MAX)
        rc = CLI_FINDING;
    else if (d.cut)
        rc = CLI_FAILED;
    diverged_release(&d);
    return rc;
}
