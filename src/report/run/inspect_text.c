/* SPDX-License-Identifier: MIT
 * inspect_text.c - see inspect_report.h: what a graph costs without running it, in lines for people. Reads documents;
 * only tensors alive at the peak and the origin of dimensions come from the analysis itself, where it is at hand. */
#include <inttypes.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/text.h"

struct writer {
    struct stream *s;
    const struct run *run;
    const struct inspect_view *view;
};

typedef void line_fn(struct buf *b, const struct writer *w, const struct run_static *g);

static void plain(struct buf *b, const char *text)
{
    text_name(b, text, 200);
}

/* ---- counts ---- */

static void exact(struct buf *b, struct known_u64 v, const struct run_cost *c, const char *unit)
{
    if (v.known) buf_add_str(b, run_cost_bound(c));
    if (v.known)
        fmt_count(b, v.v);
    else
        buf_add_char(b, '-');
    buf_printf(b, " %s", unit);
}

static void add_more(struct buf *b, struct known_u64 v, const char *unit, const char *before)
{
    if (!v.known || !v.v) return;
    buf_add_str(b, before);
    fmt_si(b, (double)v.v, "");
    buf_printf(b, " %s", unit);
}

static int64_t pattern(const struct run_static *g, const char *key)
{
    const struct run_value *v = run_map_get(&g->patterns, key);
    return v && v->kind == RUN_INT ? v->i : 0;
}

/* ---- lines ---- */

static void graph_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    static const char *const keys[] = {"opset", "ir_version", "producer"};
    static const char *const words[] = {"opset ", "IR ", "made by "};
    (void)g;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct run_value *v = run_map_get(&w->run->config, keys[i]);
        if (!v || v->kind == RUN_NULL) continue;
        if (b->len) buf_add_str(b, ", ");
        buf_add_str(b, words[i]);
        run_value_text(b, v);
    }
    if (!g->nodes.known) return;
    if (b->len) buf_add_str(b, ", ");
    fmt_count(b, g->nodes.v);
    buf_add_str(b, g->nodes.v == 1 ? " node" : " nodes");
}

static bool was_asked(const struct inspected *whole, const char *name)
{
    for (size_t i = 0; whole && i < whole->dims.n; i++)
        if (strcmp(whole->dims.items[i].name, name) == 0) return i < whole->asked.n && whole->asked.items[i];
    return true;
}

static void dims_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    size_t by_default = 0;
    for (size_t i = 0; i < g->dims.n; i++) {
        const struct run_entry *e = &g->dims.at[i];
        bool asked = was_asked(w->view->whole, e->key);
        by_default += !asked;
        if (i) buf_add_str(b, ", ");
        plain(b, e->key);
        buf_add_char(b, '=');
        run_value_text(b, &e->value);
        if (!asked) buf_add_char(b, '*');
    }
    if (by_default) buf_add_str(b, " (* by default: set with --dim NAME=N, --batch N or --seq N)");
}

static void parameters_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    (void)w;
    if (!g->parameters.known) return;
    fmt_count(b, g->parameters.v);
    if (g->parameter_bytes.known) {
        buf_add_str(b, " in ");
        fmt_bytes(b, g->parameter_bytes.v);
    }
    for (size_t i = 0; i < g->bytes_by_type.n; i++) {
        const struct run_entry *e = &g->bytes_by_type.at[i];
        if (e->value.kind != RUN_INT || e->value.i < 0) continue;
        buf_add_str(b, i ? ", " : ": ");
        plain(b, e->key);
        buf_add_char(b, ' ');
        fmt_bytes(b, (uint64_t)e->value.i);
    }
}

/* FLOPs are 2 per MAC plus the simple operations. Divisions and functions have no agreed number of FLOPs, so they are
 * told beside them and never added. */
static void compute_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    const struct run_cost *c = &g->cost;
    (void)w;
    if (!c->known) return;
    exact(b, c->macs, c, "MACs");
    if (c->int_macs.known && c->int_macs.v) {
        buf_add_str(b, ", ");
        exact(b, c->int_macs, c, "integer MACs");
    }
    buf_add_str(b, ", ");
    exact(b, c->flops, c, "FLOPs");
    add_more(b, c->simple, "simple)", " (2 x MACs + ");
    add_more(b, c->division, "divisions and roots", "; ");
    add_more(b, c->transcendental, "transcendental", ", ");
    add_more(b, c->integer, "integer operations", ", ");
    bool masked = c->useful_macs.known && c->macs.known && c->int_macs.known &&
                  c->useful_macs.v < c->macs.v + c->int_macs.v;
    if (masked) add_more(b, c->useful_macs, "MACs that a causal mask leaves", "; ");
}

/* What a runtime computes once, when it loads the model, is not part of a run. */
static void folded_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    const struct run_cost *all = &g->cost, *run = &g->cost_per_run;
    int64_t nodes = pattern(g, "foldable_nodes");
    (void)w;
    if (!run->known || !all->macs.known || !run->macs.known || run->macs.v == all->macs.v) return;
    exact(b, run->macs, run, "MACs");
    if (nodes > 0) buf_printf(b, " without %" PRId64 " nodes", nodes);
    buf_add_str(b, " that are the same in every run, which runtimes compute once");
}

static void moved_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    const struct run_cost *c = &g->cost;
    (void)w;
    if (!c->known || !c->bytes_read.known || !c->bytes_written.known) return;
    double moved = (double)c->bytes_read.v + (double)c->bytes_written.v;
    const char *bound = run_cost_bound(c);
    buf_add_str(b, bound);
    fmt_bytes(b, c->bytes_read.v);
    buf_add_str(b, " read, ");
    fmt_bytes(b, c->bytes_written.v);
    buf_add_str(b, " written, at least");
    if (!c->flops.known || moved <= 0 || *bound) return;
    buf_add_str(b, "; ");
    fmt_number(b, (double)c->flops.v / moved);
    buf_add_str(b, " FLOPs per byte");
}

enum { ALIVE_SHOWN = 3 };

static void add_alive(struct buf *b, const struct inspected *whole)
{
    if (!whole || !whole->memory.n_alive) return;
    buf_add_str(b, ", alive ");
    for (size_t i = 0; i < whole->memory.n_alive && i < ALIVE_SHOWN; i++) {
        if (i) buf_add_str(b, " + ");
        layer_name_text(b, whole->memory.alive[i].name);
        buf_add_char(b, ' ');
        fmt_bytes(b, whole->memory.alive[i].bytes);
    }
    if (whole->memory.n_alive > ALIVE_SHOWN)
        buf_printf(b, " + %zu more", whole->memory.n_alive - ALIVE_SHOWN);
}

/* What the runtime's own allocator held at most, over the cases that were run. */
static void add_measured(struct buf *b, const struct run *run)
{
    int64_t most = 0;
    for (size_t i = 0; i < run->cases.n; i++) {
        const struct run_value *v = run_map_get(&run->cases.at[i]->memory.arena, "MaxInUse");
        if (v && v->kind == RUN_INT && v->i > most) most = v->i;
    }
    if (!most) return;
    buf_add_str(b, "; the runtime's arena used ");
    fmt_bytes(b, (uint64_t)most);
}

static void activations_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    if (!g->activation_peak.known) return;
    fmt_bytes(b, g->activation_peak.v);
    buf_add_str(b, " of activations at the peak");
    if (g->activation_peak_node) {
        buf_add_str(b, " (in ");
        plain(b, g->activation_peak_node);
        add_alive(b, w->view->whole);
        buf_add_char(b, ')');
    }
    if (g->activation_arena.known) {
        buf_add_str(b, ", ");
        fmt_bytes(b, g->activation_arena.v);
        buf_add_str(b, " in a planned arena");
    }
    if (g->activation_sum.known) {
        buf_add_str(b, ", ");
        fmt_bytes(b, g->activation_sum.v);
        buf_add_str(b, " in all");
    }
    add_measured(b, w->run);
}

static void unknown_line(struct buf *b, const struct writer *w, const struct run_static *g)
{
    (void)w;
    if (!g->unknown_nodes.known || !g->unknown_nodes.v) return;
    fmt_count(b, g->unknown_nodes.v);
    buf_add_str(b, " of ");
    fmt_count(b, g->nodes.v);
    buf_add_str(b, " nodes");
    for (size_t i = 0; i < g->unknown_ops.n && i < 12; i++) {
        buf_add_str(b, i ? ", " : ": ");
        plain(b, g->unknown_ops.at[i].key);
        buf_add_char(b, ' ');
        run_value_text(b, &g->unknown_ops.at[i].value);
    }
    if (g->unknown_ops.n > 12) buf_printf(b, ", and %zu operators more", g->unknown_ops.n - 12);
    buf_add_str(b, "; totals are lower bounds");
}

static const struct line {
    const char *name;
    line_fn *fill;
} lines[] = {
    {"graph", graph_line},        {"dimensions", dims_line}, {"parameters", parameters_line},
    {"compute", compute_line},    {"folded", folded_line},   {"moved", moved_line},
    {"memory", activations_line}, {"unknown", unknown_line},
};

/* ---- all of it ---- */

static void write_lines(const struct writer *w)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct buf value = BUF_INIT;
        lines[i].fill(&value, w, &w->run->subject.as_file);
        text_line(w->s, lines[i].name, &value);
    }
}

/* Entries from `i` on that have the same reason: quantities of one kind are unknown together. */
static size_t same_reason(const struct run_map *why, size_t i)
{
    size_t n = 1;
    while (i + n < why->n && why->at[i + n].value.kind == RUN_TEXT &&
           strcmp(why->at[i + n].value.s, why->at[i].value.s) == 0)
        n++;
    return n;
}

static const char formulas_key[] = "formulas"; /* its reason stands below them */

static void write_reasons(const struct writer *w)
{
    const struct run_map *why = &w->run->subject.as_file.unknown;
    struct buf *b = &w->s->out;
    for (size_t i = 0, told = 0, n = 1; i < why->n && told < 8; i += n) {
        n = 1;
        if (why->at[i].value.kind != RUN_TEXT || strcmp(why->at[i].key, formulas_key) == 0) continue;
        n = same_reason(why, i);
        told++;
        for (size_t k = 0; k < n; k++) buf_printf(b, "%s%s", k ? ", " : "- ", why->at[i + k].key);
        buf_add_str(b, ": ");
        plain(b, why->at[i].value.s);
        buf_add_char(b, '\n');
    }
}

static void write_formulas(const struct writer *w)
{
    const struct run_map *f = &w->run->subject.as_file.formulas;
    if (!w->view->symbolic) return;
    text_heading(w->s, "formulas");
    if (!f->n) buf_add_str(&w->s->out, "none: nothing about this graph depends on a free dimension\n");
    for (size_t i = 0; i < f->n; i++) {
        const struct run_value *v = &f->at[i].value;
        const char *text = v->kind == RUN_TEXT && v->s ? v->s : "-";
        buf_printf(&w->s->out, "%s%-15s%s", w->s->style.dim, f->at[i].key, w->s->style.plain);
        text_plain(&w->s->out, text, strlen(text));
        buf_add_char(&w->s->out, '\n');
    }
    const struct run_value *why = run_map_get(&w->run->subject.as_file.unknown, formulas_key);
    if (!why || why->kind != RUN_TEXT) return;
    buf_add_str(&w->s->out, "- ");
    plain(&w->s->out, why->s);
    buf_add_char(&w->s->out, '\n');
}

static void write_optimized(const struct writer *w)
{
    const struct run_subject *subject = &w->run->subject;
    struct static_side sides[] = {{"as in the file", &subject->as_file, {0}},
                                  {"as optimised", &subject->optimized, {0}}};
    if (!subject->optimized.known) return;
    buf_add_char(&w->s->out, '\n');
    static_table_write(w->s, sides, 2);
}

void report_static_text(struct stream *s, const struct run *run, const struct inspect_view *view)
{
    struct writer w = {s, run, view};
    if (!run->subject.as_file.known) return;
    write_lines(&w);
    write_reasons(&w);
    write_formulas(&w);
    write_optimized(&w);
    stream_poll(s);
}

void report_inspect_text(struct stream *s, const struct run *run, const struct inspect_view *view)
{
    struct buf subject = BUF_INIT;
    run_subject_text(&subject, run);
    text_line(s, "subject", &subject);
    report_static_text(s, run, view);
    layer_text_write(s, run, &view->layers);
    run_findings_text(s, run);
    stream_poll(s);
}

/* ---- several ---- */

void report_inspect_compare(struct stream *s, const struct run *const *runs, size_t n)
{
    static const struct inspect_view view = INSPECT_VIEW_INIT;
    struct static_side sides[STATIC_SIDES_MAX] = {{NULL, NULL, {0}}};
    size_t shown = n < STATIC_SIDES_MAX ? n : STATIC_SIDES_MAX;
    for (size_t i = 0; i < shown; i++) {
        const struct run_subject *subject = &runs[i]->subject;
        struct buf dims = BUF_INIT;
        struct writer w = {s, runs[i], &view};
        dims_line(&dims, &w, &subject->as_file);
        text_line(s, subject->name, &dims);
        sides[i] = (struct static_side){subject->name, &subject->as_file, subject->size_bytes};
    }
    buf_add_char(&s->out, '\n');
    static_table_write(s, sides, shown);
    if (shown < n)
        buf_printf(&s->out, "%s%zu models more: there is room for %d side by side%s\n", s->style.dim,
                   n - shown, STATIC_SIDES_MAX, s->style.plain);
    stream_poll(s);
}
