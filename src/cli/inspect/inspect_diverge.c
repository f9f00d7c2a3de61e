/* SPDX-License-Identifier: MIT
 * inspect_diverge.c - `tare inspect --diverge`: where two variants of a model begin to differ, as a table around the
 * place or as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/inspect/inspect_args.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/output.h"
#include "core/file.h"
#include "core/json.h"
#include "core/str.h"
#include "report/table.h"
#include "report/text.h"
#include "subject/diverge.h"

enum { BEFORE = 4, AFTER = 4 }; /* rows around the first difference */

/* ---- JSON ---- */

static void put_point(struct json *j, const struct diverge_point *p)
{
    json_object_begin(j);
    json_kv_string(j, "value", p->value);
    json_kv_string(j, "twin", p->twin);
    json_kv_string(j, "node_a", p->node_a);
    json_kv_string(j, "op_a", p->op_a);
    json_kv_string(j, "node_b", p->node_b);
    json_kv_string(j, "op_b", p->op_b);
    json_kv_bool(j, "differs", p->differs);
    json_kv_double(j, "rel_l2", isfinite(p->rel_l2) ? p->rel_l2 : NAN); /* NAN is written as null */
    json_kv_double(j, "max_abs", isfinite(p->max_abs) ? p->max_abs : NAN);
    json_kv_double(j, "cosine", p->cosine);
    json_kv_string(j, "why", p->why);
    json_object_end(j);
}

static tare_status write_json(struct buf *out, const struct diverged *d, const struct inspect_args *a,
                              tare_error *err)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.diverge/1");
    json_kv_string(&j, "a", a->models[0]);
    json_kv_string(&j, "b", a->models[1]);
    json_kv_double(&j, "tolerance", a->tolerance);
    json_kv_bool(&j, "complete", !d->cut);
    json_kv_uint(&j, "common", d->common);
    json_kv_uint(&j, "only_a", d->only_a);
    json_kv_uint(&j, "only_b", d->only_b);
    json_kv_uint(&j, "compared", d->points.n);
    json_kv_uint(&j, "skipped", d->skipped);
    json_kv_uint(&j, "sessions", d->sessions);
    json_kv_uint(&j, "bytes_at_once", d->bytes_at_once);
    json_key(&j, "first");
    if (d->first == SIZE_MAX)
        json_put_null(&j);
    else
        put_point(&j, &d->points.items[d->first]);
    json_key(&j, "points");
    json_array_begin(&j);
    for (size_t i = 0; i < d->points.n; i++) put_point(&j, &d->points.items[i]);
    json_array_end(&j);
    json_object_end(&j);
    return json_finish(&j, err);
}

/* ---- text ---- */

static void number(struct table *t, double v)
{
    struct buf *b = table_cell(t);
    if (isnan(v))
        buf_add_char(b, '-');
    else if (isinf(v))
        buf_add_str(b, "infinite");
    else
        buf_printf(b, "%.3g", v);
    table_cell_end(t);
}

static void words(struct table *t, const char *text)
{
    layer_name_text(table_cell(t), *text ? text : "-");
    table_cell_end(t);
}

static void node(struct table *t, const char *name, const char *op)
{
    struct buf *b = table_cell(t);
    layer_name_text(b, *name ? name : "(no name)");
    buf_add_str(b, " (");
    text_plain(b, op, text_clip(op, 60));
    buf_add_char(b, ')');
    table_cell_end(t);
}

static void value(struct table *t, const struct diverge_point *p)
{
    struct buf *b = table_cell(t);
    layer_name_text(b, p->value);
    if (strcmp(p->value, p->twin) != 0) {
        buf_add_str(b, " ~ ");
        layer_name_text(b, p->twin);
    }
    table_cell_end(t);
}

static void point_cells(struct table *t, const struct diverge_point *p, bool first)
{
    words(t, first ? "first" : p->differs ? "differs" : "same");
    value(t, p);
    node(t, p->node_a, p->op_a);
    if (strcmp(p->node_a, p->node_b) == 0 && strcmp(p->op_a, p->op_b) == 0)
        words(t, "=");
    else
        node(t, p->node_b, p->op_b);
    number(t, p->rel_l2);
    number(t, p->max_abs);
    number(t, p->cosine);
}

/* Some before, the first, some after; without a difference, the last ones. --all: all of them. */
static void write_points(struct stream *s, const struct report_style *style, const struct diverged *d,
                         bool all)
{
    static const struct table_column heads[] = {{"", true},          {"value", true},   {"node of a", true},
                                                {"node of b", true}, {"rel L2", false}, {"max abs", false},
                                                {"cosine", false}};
    size_t n = d->points.n, at = d->first == SIZE_MAX ? n : d->first;
    size_t from = all || at < BEFORE ? 0 : at - BEFORE, to = all || n - at < AFTER + 1 ? n : at + AFTER + 1;
    struct table t;
    table_init(&t, heads, sizeof heads / sizeof *heads);
    if (from)
        buf_printf(&s->out, "%s%zu compared before these: the same%s\n", style->dim, from, style->plain);
    for (size_t i = from; i < to; i++) point_cells(&t, &d->points.items[i], i == d->first);
    table_print(&t, s, style->bold, style->plain);
    if (to < n) buf_printf(&s->out, "%s%zu compared after these%s\n", style->dim, n - to, style->plain);
    table_release(&t);
}

static void write_verdict(struct buf *b, const struct diverged *d, const struct inspect_args *a)
{
    if (d->first == SIZE_MAX) {
        buf_printf(b, "no difference beyond %.3g among the values that were compared%s\n", a->tolerance,
                   d->cut                                 ? " before the interruption"
                   : d->points.n + d->skipped < d->common ? " (--all compares all)"
                                                          : "");
        return;
    }
    const struct diverge_point *p = &d->points.items[d->first];
    buf_add_str(b, "first difference: ");
    text_plain(b, p->value, text_clip(p->value, 300));
    buf_add_str(b, ", made by ");
    text_plain(b, *p->node_a ? p->node_a : p->op_a, text_clip(*p->node_a ? p->node_a : p->op_a, 300));
    if (p->why) {
        buf_add_str(b, ": ");
        text_plain(b, p->why, strlen(p->why));
    } else {
        buf_printf(b, ": relative L2 error %.3g, more than %.3g", p->rel_l2, a->tolerance);
    }
    buf_add_str(b, d->cut ? "; interrupted, so there may be an earlier one\n" : "\n");
}

static void write_text(struct stream *s, const struct report_style *style, const struct diverged *d,
                       const struct inspect_args *a)
{
    struct buf *b = &s->out;
    write_points(s, style, d, a->all);
    buf_add_char(b, '\n');
    write_verdict(b, d, a);
    buf_printf(b, "%scompared %zu of %zu values in common", style->dim, d->points.n, d->common);
    if (d->only_a || d->only_b) buf_printf(b, " (%zu only in a, %zu only in b)", d->only_a, d->only_b);
    if (d->skipped) buf_printf(b, ", %zu do not compare", d->skipped);
    buf_printf(b, "; %" PRIu64 " sessions, at most ", d->sessions);
    str_add_bytes(b, d->bytes_at_once);
    buf_printf(b, " of values at a time%s\n", style->plain);
}

/* ---- all of it ---- */

static tare_status find(struct cli *cli, const struct inspect_args *a, struct diverged *d)
{
    struct progress_line shown = PROGRESS_LINE_INIT(cli->err, &cli->err_term);
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
                                      .progress = progress_line_at,
                                      .ctx = &shown,
                                      .interrupted = &interrupted};
    interrupt_catch(&was);
    tare_status s = diverge_find(d, &options, &cli->error);
    interrupt_restore(&was);
    progress_line_end(&shown);
    return s;
}

static tare_status answer(struct cli *cli, const struct inspect_args *a, const struct diverged *d)
{
    struct buf json = BUF_INIT;
    struct stream s;
    tare_status st = TARE_OK;
    if (a->json || a->output) st = write_json(&json, d, a, &cli->error);
    if (st == TARE_OK && a->output) st = file_write_atomic(a->output, json.data, json.len, 0, &cli->error);
    if (st == TARE_OK && a->json) {
        cli_write(cli, json.data, json.len);
    } else if (st == TARE_OK) {
        struct report_style style = cli_style(cli);
        stream_init(&s, cli_sink(cli), &cli->error);
        write_text(&s, &style, d, a);
        st = stream_finish(&s);
    }
    buf_release(&json);
    return st;
}

int inspect_diverge(struct cli *cli, const struct inspect_args *a)
{
    struct diverged d = DIVERGED_INIT;
    tare_status s = find(cli, a, &d);
    if (s != TARE_OK) {
        int rc = cli_fail(cli);
        return s == TARE_IO ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
    }
    s = answer(cli, a, &d);
    int rc = s != TARE_OK ? cli_fail(cli) : d.first != SIZE_MAX ? CLI_FINDING : d.cut ? CLI_FAILED : CLI_GOOD;
    diverged_release(&d);
    return rc;
}
