/* SPDX-License-Identifier: MIT
 * static_table.c - graphs side by side: a row per quantity that at least one of them has. */
#include <string.h>

#include "core/fmt.h"
#include "report/run/inspect_report.h"
#include "report/table.h"

enum static_unit { UNIT_COUNT, UNIT_BYTES, UNIT_RATIO };

struct static_row {
    const char *title;
    enum static_unit unit;
    bool bound; /* a sum over nodes: see run_cost_bound */
    bool (*get)(const struct static_side *s, double *out);
};

static bool known(struct known_u64 v, double *out)
{
    *out = (double)v.v;
    return v.known;
}

#define FIELD(name, expression)                                    \
    static bool get_##name(const struct static_side *s, double *v) \
    {                                                              \
        return known(s->expression, v);                            \
    }
FIELD(file, file_bytes)
FIELD(nodes, graph->nodes)
FIELD(parameters, graph->parameters)
FIELD(parameter_bytes, graph->parameter_bytes)
FIELD(macs, graph->cost.macs)
FIELD(per_run, graph->cost_per_run.macs)
FIELD(int_macs, graph->cost.int_macs)
FIELD(flops, graph->cost.flops)
FIELD(simple, graph->cost.simple)
FIELD(division, graph->cost.division)
FIELD(transcendental, graph->cost.transcendental)
FIELD(integer, graph->cost.integer)
FIELD(sum, graph->activation_sum)
FIELD(peak, graph->activation_peak)
FIELD(arena, graph->activation_arena)
FIELD(unknown, graph->unknown_nodes)
#undef FIELD

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
    return get_per_run(s, v) && get_macs(s, &all) && *v != all;
}

static bool get_intensity(const struct static_side *s, double *v)
{
    double flops, moved;
    if (!get_flops(s, &flops) || !get_moved(s, &moved) || moved <= 0) return false;
    *v = flops / moved;
    return true;
}

static const struct static_row rows[] = {
    {"file", UNIT_BYTES, false, get_file},
    {"nodes", UNIT_COUNT, false, get_nodes},
    {"cost unknown of", UNIT_COUNT, false, get_unknown},
    {"parameters", UNIT_COUNT, false, get_parameters},
    {"parameter bytes", UNIT_BYTES, false, get_parameter_bytes},
    {"MACs", UNIT_COUNT, true, get_macs},
    {"  not foldable", UNIT_COUNT, true, get_folded},
    {"integer MACs", UNIT_COUNT, true, get_int_macs},
    {"FLOPs", UNIT_COUNT, true, get_flops},
    {"  simple", UNIT_COUNT, true, get_simple},
    {"divisions, roots", UNIT_COUNT, true, get_division},
    {"transcendental", UNIT_COUNT, true, get_transcendental},
    {"integer operations", UNIT_COUNT, true, get_integer},
    {"bytes moved", UNIT_BYTES, true, get_moved},
    {"FLOP per byte", UNIT_RATIO, false, get_intensity},
    {"activations, sum", UNIT_BYTES, false, get_sum},
    {"activations, peak", UNIT_BYTES, false, get_peak},
    {"activations, planned", UNIT_BYTES, false, get_arena},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* Zero everywhere says nothing. */
static bool is_worth(const struct static_row *row, const struct static_side *sides, size_t n)
{
    double v;
    for (size_t i = 0; i < n; i++)
        if (row->get(&sides[i], &v) && v != 0) return true;
    return false;
}

static void value_cell(struct buf *b, const struct static_row *row, const struct static_side *side)
{
    double v;
    if (!row->get(side, &v)) {
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
    if (!row->get(side, &v) || !row->get(first, &of) || of <= 0) {
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
