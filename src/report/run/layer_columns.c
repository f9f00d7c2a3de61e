/* SPDX-License-Identifier: MIT
 * layer_columns.c - see layer_columns.h. Prints nothing by itself. */
#include "report/run/layer_columns.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/map.h"
#include "report/run/run_report.h"
#include "report/text.h"

#define U64(column, title, kind, field, timed, weighed) \
    {column, title, kind, offsetof(struct run_layer, field), false, timed, weighed}
#define F64(column, title, kind, field, timed, weighed) \
    {column, title, kind, offsetof(struct run_layer, field), true, timed, weighed}

const struct layer_column layer_columns[] = {
    U64("name", "layer", LAYER_NAME, name, true, true),
    U64("op", "op", LAYER_TEXT, op, true, true),
    U64("group", "group", LAYER_TEXT, group, false, false),
    U64("provider", "provider", LAYER_TEXT, provider, false, false),
    U64("output", "output", LAYER_TEXT, output, false, true),
    U64("nodes", "nodes", LAYER_COUNT, nodes, false, false),
    U64("calls", "calls", LAYER_COUNT, calls, false, false),
    U64("total_ns", "profiled", LAYER_NS, total_ns, false, false),
    F64("time_ns", "time", LAYER_NS, time_ns, true, false),
    F64("share", "share", LAYER_SHARE, share, true, false),
    U64("parameters", "params", LAYER_COUNT, parameters, false, true),
    U64("macs", "MACs", LAYER_COUNT, macs, true, true),
    U64("int_macs", "int MACs", LAYER_COUNT, int_macs, true, true),
    {"mac_share", "of MACs", LAYER_MAC_SHARE, 0, true, false, true},
    U64("flops", "FLOPs", LAYER_COUNT, flops, false, false),
    U64("bytes", "bytes", LAYER_BYTES, bytes, false, true),
    U64("output_bytes", "output bytes", LAYER_BYTES, output_bytes, false, false),
    F64("intensity", "FLOP/B", LAYER_RATIO, intensity, true, true),
    F64("rate", "reached", LAYER_RATE, rate, true, false),
    F64("bandwidth", "moved", LAYER_BANDWIDTH, bandwidth, true, false),
    U64("bound", "bound by", LAYER_TEXT, bound, true, false),
    F64("roof_share", "of roof", LAYER_SHARE, roof_share, true, false),
    F64("speedup_if_free", "if removed", LAYER_RATIO, speedup_if_free, true, false),
    {NULL, NULL, LAYER_TEXT, 0, false, false, false},
};

const struct layer_column *layer_column_find(const char *name)
{
    for (const struct layer_column *c = layer_columns; c->column; c++)
        if (strcmp(c->column, name) == 0) return c;
    return NULL;
}

/* ---- values ---- */

bool layer_is_text(const struct layer_column *column)
{
    return column->kind == LAYER_TEXT || column->kind == LAYER_NAME;
}

const char *layer_text(const struct layer_column *column, const struct run_layer *l)
{
    return *(const char *const *)(const void *)((const char *)l + column->at);
}

static double all_macs(const struct run_case *c)
{
    return (c->cost.macs.known ? (double)c->cost.macs.v : 0) +
           (c->cost.int_macs.known ? (double)c->cost.int_macs.v : 0);
}

static bool mac_share(const struct run_case *c, const struct run_layer *l, double *out)
{
    double total = all_macs(c);
    if (!c->cost.known || total <= 0 || !l->macs.known) return false;
    *out = ((double)l->macs.v + (l->int_macs.known ? (double)l->int_macs.v : 0)) / total;
    return true;
}

bool layer_number(const struct layer_column *column, const struct run_case *c, const struct run_layer *l,
                  double *out)
{
    const void *at = (const char *)l + column->at;
    if (layer_is_text(column)) return false;
    if (column->kind == LAYER_MAC_SHARE) return mac_share(c, l, out);
    if (column->real) {
        const struct known_f64 *v = at;
        *out = v->v;
        return v->known;
    }
    const struct known_u64 *v = at;
    *out = (double)v->v;
    return v->known;
}

/* ---- for people ---- */

enum { NAME_COLUMNS = 56 };

/* The end of a long name tells more than its beginning. */
void layer_name_text(struct buf *b, const char *name)
{
    size_t n = strlen(name), skip = n > NAME_COLUMNS ? n - (NAME_COLUMNS - 3) : 0;
    while (((unsigned char)name[skip] >> 6) == 2) skip++; /* whole characters */
    if (skip) buf_add_str(b, "...");
    text_plain(b, name + skip, n - skip);
}

/* A layer with integer MACs does not do floating-point operations: its rate is one of operations. */
void layer_cell(struct buf *b, const struct layer_column *column, const struct run_case *c,
                const struct run_layer *l)
{
    double v;
    if (layer_is_text(column)) {
        const char *text = layer_text(column, l);
        if (column->kind == LAYER_NAME)
            layer_name_text(b, text && *text ? text : "-");
        else
            text_name(b, text ? text : "-", 60);
        return;
    }
    if (!layer_number(column, c, l, &v)) {
        buf_add_char(b, '-');
        return;
    }
    switch (column->kind) {
    case LAYER_COUNT: fmt_si(b, v, ""); break;
    case LAYER_BYTES: fmt_bytes(b, v); break;
    case LAYER_NS: fmt_duration(b, v); break;
    case LAYER_SHARE:
    case LAYER_MAC_SHARE: fmt_share(b, v); break;
    case LAYER_RATE: fmt_si(b, v, l->int_macs.known && l->int_macs.v ? "OP/s" : "FLOP/s"); break;
    case LAYER_BANDWIDTH: fmt_si(b, v, "B/s"); break;
    default: fmt_number(b, v); break;
    }
}

bool layer_is_timed(const struct run_case *c)
{
    for (size_t i = 0; i < c->layers.n; i++)
        if (c->layers.at[i]->time_ns.known) return true;
    return false;
}

static bool is_worth(const struct layer_column *column, const struct run_case *c)
{
    double v;
    for (size_t i = 0; i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        if (layer_is_text(column) ? layer_text(column, l) != NULL : layer_number(column, c, l, &v) && v != 0)
            return true;
    }
    return false;
}

size_t layer_columns_shown(const struct run_case *c, const struct layer_column *out[LAYER_COLUMNS_MAX])
{
    size_t n = 0;
    bool timed = layer_is_timed(c);
    for (const struct layer_column *k = layer_columns; k->column; k++)
        if ((timed ? k->timed : k->weighed) && is_worth(k, c)) out[n++] = k;
    return n;
}

/* ---- order ---- */

struct sort_key {
    const struct run_layer *layer;
    const char *text;
    double number;
    size_t at;
};

/* Unknown ones last; of equals, the order of the document. */
static int compare_keys(const void *left, const void *right)
{
    const struct sort_key *a = left, *b = right;
    int by_text = a->text && b->text ? strcmp(a->text, b->text) : (b->text != NULL) - (a->text != NULL);
    if (by_text) return by_text;
    if (a->number != b->number) return a->number > b->number ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Unknown numbers sort as -1, below any known one, because none of these quantities is negative. */
tare_status layer_order_make(struct layer_order *out, const struct run_case *c, const struct layer_column *by,
                             size_t top, tare_error *err)
{
    size_t n = c->layers.n, shown = top && top < n ? top : n;
    struct sort_key *keys = mem_new(n, sizeof *keys);
    *out = (struct layer_order){.items = VEC_INIT, .left_out = n - shown};
    if (!keys) return error_nomem(err, "%zu layers", n);
    for (size_t i = 0; i < n; i++) {
        const struct run_layer *l = c->layers.at[i];
        keys[i] = (struct sort_key){l, by && layer_is_text(by) ? layer_text(by, l) : NULL, -1, i};
        double v;
        if (by && layer_number(by, c, l, &v)) keys[i].number = v;
    }
    if (by) qsort(keys, n, sizeof *keys, compare_keys);
    tare_status s = vec_reserve(&out->items, shown, err);
    for (size_t i = 0; s == TARE_OK && i < shown; i++) s = vec_push(&out->items, keys[i].layer, err);
    mem_free(keys);
    return s;
}

void layer_order_release(struct layer_order *o)
{
    vec_release(&o->items);
}

void layer_table(struct table *t, const struct run_case *c, const struct layer_order *order)
{
    const struct layer_column *columns[LAYER_COLUMNS_MAX];
    struct layer_rows rows = {c, order->items.items, order->items.n};
    layer_rows_table(t, &rows, columns, layer_columns_shown(c, columns));
}

void layer_rows_table(struct table *t, const struct layer_rows *rows, const struct layer_column **columns,
                      size_t n)
{
    struct table_column heads[LAYER_COLUMNS_MAX] = {{NULL, false}};
    for (size_t i = 0; i < n; i++)
        heads[i] = (struct table_column){columns[i]->title, layer_is_text(columns[i])};
    static const char *const spare[] = {"FLOP/B", "moved", "int MACs", "if removed", "reached",
                                        "params", "bytes", "MACs",     "output",     NULL};
    table_init(t, heads, (uint32_t)n);
    t->spare = spare;
    for (size_t r = 0; r < rows->n; r++)
        for (size_t i = 0; i < n; i++) layer_cell(table_cell(t), columns[i], rows->c, rows->layers[r]);
}

const struct layer_column *layer_default_order(const struct run_case *c)
{
    if (layer_is_timed(c)) return layer_column_find("time_ns");
    return layer_column_find(all_macs(c) > 0 ? "mac_share" : "bytes");
}

/* ---- sums ---- */

static void add_u64(struct known_u64 *to, struct known_u64 more)
{
    if (!more.known) return;
    *to = known_u64(to->v > UINT64_MAX - more.v ? UINT64_MAX : to->v + more.v);
}

static void add_f64(struct known_f64 *to, struct known_f64 more)
{
    if (more.known) *to = known_f64(to->v + more.v);
}

static void add_layer(struct run_layer *to, const struct run_layer *l)
{
    add_u64(&to->nodes, l->nodes.known ? l->nodes : known_u64(1));
    add_u64(&to->calls, l->calls);
    add_u64(&to->total_ns, l->total_ns);
    add_u64(&to->flops, l->flops);
    add_u64(&to->bytes, l->bytes);
    add_u64(&to->macs, l->macs);
    add_u64(&to->int_macs, l->int_macs);
    add_u64(&to->parameters, l->parameters);
    add_u64(&to->output_bytes, l->output_bytes);
    add_f64(&to->time_ns, l->time_ns);
    add_f64(&to->share, l->share);
}

static int compare(double a, double b)
{
    return a > b ? -1 : a < b;
}

static int compare_sums(const void *left, const void *right)
{
    const struct run_layer *a = left, *b = right;
    int order = compare(a->time_ns.v, b->time_ns.v);
    if (!order)
        order = compare((double)a->macs.v + (double)a->int_macs.v, (double)b->macs.v + (double)b->int_macs.v);
    if (!order) order = compare((double)a->bytes.v, (double)b->bytes.v);
    if (!order) order = compare((double)a->nodes.v, (double)b->nodes.v);
    return order ? order : strcmp(a->name, b->name);
}

/* The map holds index + 1, not a pointer: the rows move when the list grows. */
tare_status layer_sums_make(struct layer_sums *out, const struct run_case *c, const struct layer_column *by,
                            tare_error *err)
{
    struct map_str seen = MAP_STR_INIT;
    tare_status s = TARE_OK;
    *out = (struct layer_sums){VEC_INIT};
    for (size_t i = 0; s == TARE_OK && i < c->layers.n; i++) {
        const struct run_layer *l = c->layers.at[i];
        const char *key = layer_text(by, l);
        uint64_t *at = NULL;
        if (!key) key = "-";
        s = map_str_ref(&seen, key, strlen(key), &at, err);
        if (s == TARE_OK && !*at) {
            s = vec_push(&out->items, ((struct run_layer){.name = key}), err);
            *at = out->items.n;
        }
        if (s == TARE_OK) add_layer(&out->items.items[*at - 1], l);
    }
    if (out->items.n) qsort(out->items.items, out->items.n, sizeof *out->items.items, compare_sums);
    map_str_release(&seen);
    return s;
}
