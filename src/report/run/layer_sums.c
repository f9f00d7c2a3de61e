/* SPDX-License-Identifier: MIT
 * layer_sums.c - see layer_sums.h. */
#include "report/run/layer_sums.h"

#include <stdlib.h>
#include <string.h>

#include "core/map.h"

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

void layer_sums_release(struct layer_sums *s)
{
    vec_release(&s->items);
}
