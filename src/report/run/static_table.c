/* SPDX-License-Identifier: MIT
 * static_table.c - graphs side by side: a row per quantity that at least one of them has. */
#include <stddef.h>
#include <string.h>

#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/table.h"

enum static_unit { UNIT_COUNT, UNIT_BYTES, UNIT_RATIO };

struct static_row {
    const char *title;
    enum static_unit unit;
    bool bound;                                            /* a sum over nodes: see run_cost_bound */
    size_t at;                                             /* offset of a known_u64 in struct run_static */
    bool (*get)(const struct static_side *s, double *out); /* NULL: the field at `at` */
};

static bool known(struct known_u64 v, double *out)
{
    *out = (double)v.v;
    return v.known;
}

static bool get_file(const struct static_side *s, double *v)
{
    return known(s->file_bytes, v);
}

static bool get_moved(const struct static_side *s, double *v)
{
    const struct run_cost *c = &s->graph->cost;
    *v = (double)c->bytes_read.v + (double)c->bytes_written.v;
    return c->bytes_read.known && c->bytes_written.known;
}

/* Only where it differs from the graph as it stands. */
static bool get_folded(const struct static_side *s, double *v)
{
    double all;
    return known(s->graph->cost_per_run.macs, v) && known(s->graph->cost.macs, &all) && *v != all;
}

static bool get_intensity(const struct static_side *s, double *v)
{
    double flops, moved;
    if (!known(s->graph->cost.flops, &flops) || !get_moved(s, &moved) || moved <= 0) return false;
    *v = flops / moved;
    return true;
}

#define FIELD(title, unit, bound, member) {title, unit, bound, offsetof(struct run_static, member), NULL}
static const struct static_row rows[] = {
    {"file", UNIT_BYTES, false, 0, get_file},
    FIELD("nodes", UNIT_COUNT, false, nodes),
    FIELD("cost unknown of", UNIT_COUNT, false, unknown_nodes),
    FIELD("parameters", UNIT_COUNT, false, parameters),
    FIELD("parameter bytes", UNIT_BYTES, false, parameter_bytes),
    FIELD("MACs", UNIT_COUNT, true, cost.macs),
    {"  not foldable", UNIT_COUNT, true, 0, get_folded},
    FIELD("integer MACs", UNIT_COUNT, true, cost.int_macs),
    FIELD("FLOPs", UNIT_COUNT, true, cost.flops),
    FIELD("  simple", UNIT_COUNT, true, cost.simple),
    FIELD("divisions, roots", UNIT_COUNT, true, cost.division),
    FIELD("transcendental", UNIT_COUNT, true, cost.transcendental),
    FIELD("integer operations", UNIT_COUNT, true, cost.integer),
    {"bytes moved", UNIT_BYTES, true, 0, get_moved},
    {"FLOP per byte", UNIT_RATIO, false, 0, get_intensity},
    FIELD("activations, sum", UNIT_BYTES, false, activation_sum),
    FIELD("activations, peak", UNIT_BYTES, false, activation_peak),
    FIELD("activations, planned", UNIT_BYTES, false, activation_arena),
};
#undef FIELD
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool row_value(const struct static_row *row, const struct static_side *side, double *out)
{
    if (row->get) return row->get(side, out);
    return known(*(const struct known_u64 *)(const void *)((const char *)side->graph + row->at), out);
}

/* Zero everywhere says nothing. */
static bool is_worth(const struct static_row *row, const struct static_side *sides, size_t n)
{
    double v;
    for (size_t i = 0; i < n; i++)
        if (row_value(row, &sides[i], &v) && v != 0) return true;
    return false;
}

static void value_cell(struct buf *b, const struct static_row *row, const struct static_side *side)
{
    double v;
    if (!row_value(row, side, &v)) {
        buf_add_char(b, '-');
        return;
    }
    if (row->bound) buf_add_str(b, run_cost_bound(&side->graph->cost));
    if (row->unit == UNIT_BYTES)
        fmt_bytes(b, v);
    else if (row->unit == UNIT_COUNT && v < 9e15)
        fmt_count(b, (uint64_t)v);
    else
        fmt_number(b, v);
}

static void ratio_cell(struct buf *b, const struct static_row *row, const struct static_side *side,
                       const struct static_side *first)
{
    double v, of;
    if (!row_value(row, side, &v) || !row_value(row, first, &of) || of <= 0) {
        buf_add_char(b, '-');
        return;
    }
    buf_add_str(b, v == of ? "x 1" : "x ");
    if (v != of) fmt_number(b, v / of);
}

void static_table_write(struct stream *s, const struct static_side *sides, size_t n)
{
    struct table_column heads[2 * STATIC_SIDES_MAX] = {{"", true}};
    struct table t;
    uint32_t columns = 1;
    if (n > STATIC_SIDES_MAX) n = STATIC_SIDES_MAX;
    for (size_t i = 0; i < n; i++) {
        heads[columns++] = (struct table_column){sides[i].title, false};
        if (i) heads[columns++] = (struct table_column){"ratio", false};
    }
    table_init(&t, heads, columns);
    for (size_t r = 0; r < N_ROWS; r++) {
        if (!is_worth(&rows[r], sides, n)) continue;
        buf_add_str(table_cell(&t), rows[r].title);
        for (size_t i = 0; i < n; i++) {
            value_cell(table_cell(&t), &rows[r], &sides[i]);
            if (!i) continue;
            ratio_cell(table_cell(&t), &rows[r], &sides[i], &sides[0]);
        }
    }
    table_end(&t, s, s->style.bold);
}
