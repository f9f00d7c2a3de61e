/* SPDX-License-Identifier: MIT
 * layers.c - see layers.h: times less the profiler's cost, joined with the graphs. Whatever cannot be joined keeps its
 * time and has unknown costs; nothing is dropped. */
#include "analyze/layers/layers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/layers/layer_parts.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/stats.h"
#include "model/cost/cost.h"

enum { LAYERS_MAX = RUN_LIST_MAX - 2 };
#define NODE_US_MAX 50.0 /* 1.31 takes 7 us a node, 1.20 up to 26 */

struct joining {
    struct run *run;
    struct run_case *c;
    const struct layers_input *in;
    struct layer_times times;
    struct source_map map;
    bool has_map;
    struct layer_near near;      /* groups by neighbours in the graph that ran, or in the file's */
    struct layer_nodes nodes;    /* slots in the optimised graph */
    struct map_str source_named; /* name -> node + 1 of the file's graph */
    struct run_layer **of_node;  /* per node of the graph that ran, or of the file's: its layer, or NULL */
    struct map_u64 layer_of;     /* node of a graph (its address) -> layer of its inspected + 1 */
    struct layer_gpu gpu;        /* with a record of the GPU */
    bool on_gpu;                 /* and it tells the times of nodes */
    double run_us, plain_us;     /* medians, with and without the profiler; NAN: unknown */
    double node_us;              /* what it costs per node in all */
    double inside_us;            /* of that: within the node's own event */
    double runtime_us;           /* what no node accounts for, corrected */
    double scale;                /* of what is left of the nodes: 1, or less where that is still too much */
    double sum_us;
    tare_error *err;
};

/* ---- what the profiler costs ---- */

static tare_status median_of(const struct layers_times *t, double *us, tare_error *err)
{
    double *x = stats_doubles(t->ns, t->n, err);
    tare_status s = x ? stats_median(x, t->n, us, err) : TARE_NOMEM;
    *us /= 1e3;
    mem_free(x);
    return s;
}

/* What the cheapest tenth of all nodes take at most: a Reshape does next to nothing, so that is the profiler. */
static tare_status cheap_node(const struct joining *j, double *out)
{
    size_t n = j->times.slots.n;
    double *x = mem_new(n, sizeof *x);
    if (!x) return error_nomem(j->err, "times of nodes");
    for (size_t i = 0; i < n; i++) {
        const struct layer_slot *slot = &j->times.slots.items[i];
        x[i] = slot->time_us * (double)j->times.runs / (double)slot->calls; /* of one call */
    }
    stats_sort(x, n);
    *out = stats_quantile_sorted(x, n, 0.1);
    mem_free(x);
    return TARE_OK;
}

static double own_time(const struct joining *j, const struct layer_slot *s, double inside_us)
{
    return fmax(s->time_us - inside_us * (double)s->calls / (double)j->times.runs, 0);
}

static double sum_own(const struct joining *j, double inside_us)
{
    double sum = 0;
    for (size_t i = 0; i < j->times.slots.n; i++) sum += own_time(j, &j->times.slots.items[i], inside_us);
    return sum;
}

/* What the profiler costs is what a run with it took longer than one without, over the nodes that ran: node_us, at most
 * NODE_US_MAX, since more than that is not the profiler but a disturbed machine (it stays, to be seen in `covered`).
 * Part of node_us lies within a node's own event: as much as the cheapest nodes, which do next to nothing, show; it is
 * subtracted from every node. The rest lies between nodes and is subtracted from the time that no event accounts for;
 * where there is less of that, the remainder is taken from all nodes in proportion (`scale`). */
static tare_status weigh_profiler(struct joining *j)
{
    double events = (double)j->times.events / (double)j->times.runs, raw = sum_own(j, 0);
    double between = j->run_us > raw ? j->run_us - raw : 0, cheap = 0;
    tare_status s = cheap_node(j, &cheap);
    if (s < 0) return s;
    j->node_us = j->run_us > j->plain_us ? (j->run_us - j->plain_us) / events : 0; /* either may be unknown */
    j->node_us = fmin(j->node_us, NODE_US_MAX);
    j->inside_us = fmin(cheap, j->node_us);
    double nodes = sum_own(j, j->inside_us), all = fmax(raw + between - j->node_us * events, 0);
    if (nodes > all) j->scale = all / nodes;
    j->runtime_us = all - nodes > 1e-3 ? all - nodes : 0;
    j->sum_us = nodes * j->scale + j->runtime_us;
    return TARE_OK;
}

/* ---- on a GPU ---- */

/* Its time on the processor is its time: it ran there, and has nothing on the GPU. */
static bool is_host_node(const struct joining *j, const struct layer_slot *s)
{
    size_t k = (size_t)(s - j->times.slots.items);
    return strncmp(s->event->provider, "CPU", 3) == 0 && j->gpu.slots[k].operations == 0;
}

/* Of a typical run: on the GPU where it is known to have run there, else on the host, less the profiler's cost. */
static double slot_time(const struct joining *j, const struct layer_slot *s)
{
    size_t k = (size_t)(s - j->times.slots.items);
    if (!j->on_gpu || is_host_node(j, s)) return own_time(j, s, j->inside_us) * j->scale;
    return j->gpu.slots[k].time_ns.value / 1e3;
}

/* What the whole takes: the case's own median, measured without any recording; else that of this pass. */
static double whole_us(const struct joining *j)
{
    const struct run_estimate *p50 = &j->c->latency_ns.p50;
    return j->c->latency_ns.known && p50->known ? p50->value / 1e3 : j->plain_us;
}

/* The rest of a run is when the GPU did nothing for it and no node ran on the processor either. */
static void weigh_gpu(struct joining *j)
{
    double host = 0, nodes = 0;
    for (size_t i = 0; i < j->times.slots.n; i++) {
        const struct layer_slot *s = &j->times.slots.items[i];
        nodes += slot_time(j, s);
        if (is_host_node(j, s)) host += slot_time(j, s);
    }
    double rest = whole_us(j) - j->gpu.busy_ns.value / 1e3 - host;
    j->runtime_us = rest > 1e-3 ? rest : 0;
    j->sum_us = nodes + j->gpu.outside_ns.value / 1e3 + j->runtime_us;
}

static struct run_estimate estimate_of(struct interval i, double by)
{
    struct run_estimate e = {.known = isfinite(i.value) && by > 0, .value = i.value / by};
    e.lo = known_if_finite(i.lo / by);
    e.hi = known_if_finite(i.hi / by);
    return e.known ? e : (struct run_estimate){0};
}

/* Busy over the median: the bounds of the one over the opposite bounds of the other. The recorded runs may be slower
 * than those of the median, but no run is busy for longer than it takes. */
static struct run_estimate busy_share(const struct joining *j)
{
    const struct run_estimate *p50 = &j->c->latency_ns.p50;
    struct interval busy = j->gpu.busy_ns;
    struct run_estimate e = estimate_of(busy, whole_us(j) * 1e3);
    if (e.known && j->c->latency_ns.known && p50->known && p50->lo.known && p50->hi.known) {
        e.lo = known_if_finite(busy.lo / p50->hi.v);
        e.hi = known_if_finite(busy.hi / p50->lo.v);
    }
    e.value = fmin(e.value, 1);
    e.lo.v = fmin(e.lo.v, 1);
    e.hi.v = fmin(e.hi.v, 1);
    return e;
}

static void record_pass(struct joining *j)
{
    struct run_gpu_pass *p = &j->c->gpu.pass;
    const struct layer_gpu *g = &j->gpu;
    j->c->gpu.known = true;
    j->c->gpu.kernel_ns = known_u64((uint64_t)(g->kernel_sum_ns + 0.5));
    j->c->gpu.copy_ns = known_u64((uint64_t)(g->copy_sum_ns + 0.5));
    j->c->gpu.copy_bytes = known_u64(g->copy_bytes - g->fill_bytes);
    *p = (struct run_gpu_pass){.known = true,
                               .runs = known_u64(g->runs),
                               .other_runs = known_u64(g->other_runs),
                               .busy_ns = estimate_of(g->busy_ns, 1),
                               .busy_share = busy_share(j),
                               .kernel_ns = known_f64(g->kernel_ns),
                               .copy_ns = known_f64(g->copy_ns),
                               .operations = known_u64(g->operations),
                               .copies = known_u64(g->copies),
                               .copy_bytes = known_u64(g->copy_bytes),
                               .joined = known_if_finite(g->joined),
                               .profiled_ratio = known_if_finite(g->profiled_ratio),
                               .recording = known_if_finite(j->plain_us / whole_us(j) - 1)};
}

/* Where the record does not tell which node an operation belongs to, times of nodes stay those of the host, and the
 * document says why there are no others. */
static tare_status join_gpu(struct joining *j)
{
    tare_status s = layer_gpu_build(&j->gpu, j->in->gpu, j->in->profile, &j->times, j->err);
    if (s < 0) return s;
    j->on_gpu = !j->gpu.why[0];
    if (j->on_gpu) {
        weigh_gpu(j);
        record_pass(j);
        return TARE_OK;
    }
    run_unknown(j->run, &j->c->unknown, "layers.gpu_ns", "%s", j->gpu.why);
    run_unknown(j->run, &j->c->unknown, j->c->gpu.known ? "gpu.pass" : "gpu", "%s", j->gpu.why);
    return TARE_OK;
}

/* What the profiler cost is known only against runs without it. Where there are none, these are unknown with the
 * reason, never 0. */
static void record_profile(struct joining *j)
{
    struct run_profile *p = &j->c->profile;
    p->known = true;
    p->runs = known_u64(j->times.runs);
    p->dropped_events = known_u64(j->in->profile->unreadable);
    if (j->run_us >= 0) p->latency_ns = known_u64((uint64_t)(j->run_us * 1e3 + 0.5));
    if (j->plain_us > 0 && j->run_us >= 0) {
        p->overhead = known_f64(j->run_us / j->plain_us - 1);
        p->node_ns = known_u64((uint64_t)(j->node_us * 1e3 + 0.5));
        p->covered = known_f64(j->sum_us / (j->on_gpu ? whole_us(j) : j->plain_us));
        return;
    }
    static const char *const paths[] = {"profile.overhead", "profile.node_ns", "profile.covered"};
    for (size_t i = 0; i < 3; i++)
        run_unknown(j->run, &j->c->unknown, paths[i],
                    isnan(j->run_us) ? "the profile has no run that ended"
                                     : "no runs without the profiler were timed beside it");
}

/* ---- finding nodes ---- */

static const struct onnx_graph *graph_of(const struct onnx_model *m)
{
    return m ? &m->graph : NULL;
}

/* Whose nodes the layers are. NULL: unknown. */
static const struct onnx_graph *shown_graph(const struct joining *j)
{
    return graph_of(j->in->optimized_model ? j->in->optimized_model : j->in->source_model);
}

static tare_status index_layers(struct joining *j, const struct inspected *i)
{
    tare_status s = TARE_OK;
    for (size_t k = 0; i && s == TARE_OK && k < i->layers.n; k++)
        s = map_u64_put(&j->layer_of, (uint64_t)(uintptr_t)i->layers.items[k].at->node, k + 1, j->err);
    return s;
}

static const struct inspect_layer *layer_of(const struct joining *j, const struct inspected *i,
                                            const struct onnx_node *node)
{
    const uint64_t *at = i && node ? map_u64_find(&j->layer_of, (uint64_t)(uintptr_t)node) : NULL;
    return at ? &i->layers.items[*at - 1] : NULL;
}

static tare_status index_graphs(struct joining *j)
{
    const struct onnx_graph *source = graph_of(j->in->source_model),
                            *optimized = graph_of(j->in->optimized_model);
    tare_status s = layer_nodes_init(&j->nodes, &j->times, optimized, j->err);
    if (s == TARE_OK) s = layer_near_build(&j->near, optimized ? optimized : source, j->err);
    if (s == TARE_OK) s = layer_nodes_names(&j->source_named, source, j->err);
    if (s == TARE_OK && shown_graph(j)) {
        j->of_node = mem_new(shown_graph(j)->nodes.n, sizeof *j->of_node);
        if (!j->of_node) s = error_nomem(j->err, "a graph of %zu nodes", shown_graph(j)->nodes.n);
    }
    if (s == TARE_OK) s = index_layers(j, j->in->optimized);
    if (s == TARE_OK) s = index_layers(j, j->in->source);
    if (s == TARE_OK && source && optimized) {
        s = source_map_build(&j->map, source, optimized, j->err);
        j->has_map = s == TARE_OK;
    }
    return s;
}

/* The k-th node of the file that a node of the optimised graph stands for. */
static const struct onnx_node *covered_node(const struct joining *j, const struct layer_cover *c, size_t k)
{
    return &j->in->source_model->graph.nodes.items[j->map.covered[c->first + k]];
}

/* The node of the file that has this name; NULL: none. */
static const struct onnx_node *source_node(const struct joining *j, const char *name)
{
    const uint64_t *at = map_str_find(&j->source_named, name, strlen(name));
    return at ? &j->in->source_model->graph.nodes.items[*at - 1] : NULL;
}

/* ---- costs ---- */

static void put_scaled(struct known_u64 *to, struct known_u64 v, double times)
{
    double scaled = (double)v.v * times;
    if (!v.known || scaled > 9e18) return;
    *to = known_u64(times > 1 - 1e-9 && times < 1 + 1e-9 ? v.v : (uint64_t)(scaled + 0.5));
}

/* `times`: how often it runs in one run of the model. */
static void put_cost(struct run_layer *l, const struct inspected *i, const struct cost *c, double times)
{
    struct run_cost n = inspect_cost(i, c);
    struct known_u64 bytes = {n.bytes_read.known && n.bytes_written.known,
                              n.bytes_read.v + n.bytes_written.v};
    put_scaled(&l->macs, n.macs, times);
    put_scaled(&l->int_macs, n.int_macs, times);
    put_scaled(&l->flops, n.flops, times);
    put_scaled(&l->bytes, bytes, times);
}

/* Known as a whole, or all covered nodes of the file are and their sum is taken. */
static tare_status put_source_cost(struct joining *j, struct run_layer *l, size_t node)
{
    const struct inspected *i = j->in->source;
    const struct layer_cover *cover = &j->map.of[node];
    struct poly_space *space = inspect_shapes(i)->space;
    struct cost sum;
    cost_zero(&sum, space);
    for (size_t k = 0; k < cover->n; k++) {
        const struct inspect_layer *layer = layer_of(j, i, covered_node(j, cover, k));
        if (!layer || !layer->cost.known || layer->at->n_bodies) return TARE_OK;
        cost_add(&sum, &layer->cost, space);
    }
    if (cover->n) put_cost(l, i, &sum, 1);
    return poly_space_status(space, j->err);
}

static tare_status put_node_cost(struct joining *j, struct run_layer *l, size_t node)
{
    const struct onnx_graph *g = graph_of(j->in->optimized_model);
    const struct inspect_layer *layer = layer_of(j, j->in->optimized, &g->nodes.items[node]);
    if (layer && layer->parameters) l->parameters = inspect_number(j->in->optimized, layer->parameters);
    if (layer && layer->cost.known) {
        if (!layer->at->n_bodies)
            put_cost(l, j->in->optimized, &layer->cost, 1); /* bodies are layers of their own */
        return poly_space_status(inspect_shapes(j->in->optimized)->space, j->err);
    }
    return j->has_map && j->in->source ? put_source_cost(j, l, node) : TARE_OK;
}

/* A node inside of a body: that of its name in a body of the node around it, as often as it ran. */
static tare_status put_body_cost(struct joining *j, struct run_layer *l, const struct layer_slot *slot)
{
    const struct inspected *i = j->in->optimized;
    size_t outer = slot->parent;
    if (!i || j->times.slots.items[outer].parent != SIZE_MAX) return TARE_OK; /* bodies of bodies: unknown */
    size_t node = layer_nodes_find(&j->nodes, &j->times, outer);
    const struct onnx_graph *g = graph_of(j->in->optimized_model);
    const struct inspect_layer *around = node == SIZE_MAX ? NULL : layer_of(j, i, &g->nodes.items[node]);
    for (size_t b = 0; around && b < around->at->n_bodies; b++) {
        const struct infer_scope *body = around->at->bodies[b];
        for (size_t k = 0; k < body->n_nodes; k++) {
            const struct infer_node *n = &body->nodes[k];
            struct cost cost;
            if (strcmp(n->node->name, slot->event->node) != 0) continue;
            tare_status s = cost_of_node(&cost, inspect_shapes(i), n, j->err);
            if (s == TARE_OK && cost.known && n->n_bodies == 0)
                put_cost(l, i, &cost, (double)slot->calls / (double)j->times.runs);
            return s;
        }
    }
    return TARE_OK;
}

/* Without the optimised graph (a profile alone): nodes that kept their name and operator cost what they do in the
 * file. */
static tare_status put_file_cost(struct joining *j, struct run_layer *l, const struct ort_event *e)
{
    const struct inspected *i = j->in->source;
    const struct onnx_node *node = source_node(j, e->node);
    const struct inspect_layer *layer = layer_of(j, i, node);
    if (!layer || strcmp(node->op, e->op) != 0 || !layer->cost.known || layer->at->n_bodies) return TARE_OK;
    l->nodes = known_u64(1);
    if (layer->parameters) l->parameters = inspect_number(i, layer->parameters);
    put_cost(l, i, &layer->cost, 1);
    return poly_space_status(inspect_shapes(i)->space, j->err);
}

/* ---- names ---- */

static bool tells_something(const struct joining *j, const char *name)
{
    return strpbrk(name, "/.") || source_node(j, name);
}

/* The one covered node that does the same: the Conv of a Conv with its BatchNormalization and Relu. NULL: none, or
 * several. */
static const struct onnx_node *same_work(const struct joining *j, const char *op, const struct layer_cover *c)
{
    const struct onnx_node *found = NULL;
    const char *plain = strncmp(op, "Fused", 5) == 0 ? op + 5 : op;
    for (size_t i = 0; i < c->n; i++) {
        const struct onnx_node *n = covered_node(j, c, i);
        if (strcmp(n->op, plain) != 0) continue;
        if (found) return NULL;
        found = n;
    }
    return found;
}

/* "SkipLayerNormalization_token_5" says nothing of where it is: the path of what it stands for does. */
static void name_source(const struct joining *j, const struct ort_event *e, size_t node, struct buf *b)
{
    const struct layer_cover *c = &j->map.of[node];
    const struct onnx_node *same = same_work(j, e->op, c);
    if (!same && (c->n == 0 || tells_something(j, e->node))) return;
    if (same || c->n == 1) {
        source_node_label(same ? same : covered_node(j, c, 0), b);
        return;
    }
    source_common_path(&j->map, graph_of(j->in->source_model), node, b);
    if (b->len) buf_printf(b, "/%s", e->op);
}

static const char *name_of(const struct joining *j, const struct ort_event *e, size_t node)
{
    struct buf b = BUF_INIT;
    if (node != SIZE_MAX && j->has_map && !source_node(j, e->node)) name_source(j, e, node, &b);
    const char *name = arena_str(&j->run->arena, b.len && !b.failed ? b.data : e->node);
    buf_release(&b);
    return name;
}

/* By the nodes around it, where its own name says nothing; NULL: these do not tell either. */
static const char *near_group(const struct joining *j, const struct run_layer *l, size_t node)
{
    const char *name = l->name ? l->name : "";
    if (layers_group_told(name, l->op)) return NULL;
    if (!j->in->optimized_model) {
        const struct onnx_node *found = source_node(j, name);
        node = found ? (size_t)(found - j->in->source_model->graph.nodes.items) : SIZE_MAX;
    }
    return layer_near_group(&j->near, node);
}

/* The group of the first covered node that has a telling one: a fusion belongs where its first part did. */
static const char *group_of(const struct joining *j, const struct run_layer *l, size_t node)
{
    struct arena *a = &j->run->arena;
    const char *near = near_group(j, l, node);
    if (near) return near;
    const char *group = layers_group_of(a, l->name ? l->name : "", l->op), *found = NULL;
    const struct layer_cover *c = node != SIZE_MAX && j->has_map ? &j->map.of[node] : NULL;
    bool vague = strcmp(group, "other") == 0 || strcmp(group, "residual") == 0;
    if (!c || !vague) return group;
    for (size_t k = c->n; k-- > 0 && !found;) { /* last first: this begins at the inputs */
        struct buf label = BUF_INIT;
        const struct onnx_node *n = covered_node(j, c, k);
        source_node_label(n, &label);
        const char *g = layers_group_of(a, label.data, n->op);
        if (strcmp(g, "other") != 0 && strcmp(g, "residual") != 0) found = g;
        buf_release(&label);
    }
    if (!found && c->n == 0 && c->anchor != SIZE_MAX) return "layout";
    return found ? found : group;
}

/* ---- layers ---- */

static const char *shape_text(struct arena *a, const struct ort_event *e)
{
    struct buf b = BUF_INIT;
    if (!e->n_outputs || e->outputs[0].type == ONNX_UNDEFINED) return NULL;
    buf_printf(&b, "%s[", onnx_type_name(e->outputs[0].type));
    for (size_t i = 0; i < e->outputs[0].rank; i++)
        buf_printf(&b, "%s%lld", i ? "," : "", (long long)e->outputs[0].dims[i]);
    buf_add_char(&b, ']');
    const char *text = b.failed ? NULL : arena_str(a, b.data);
    buf_release(&b);
    return text;
}

static void put_times(const struct joining *j, struct run_layer *l, const struct layer_slot *slot)
{
    double own = slot_time(j, slot);
    l->calls = known_u64(slot->calls);
    if (slot->total_us < INT64_MAX / 1000) l->total_ns = known_u64((uint64_t)slot->total_us * 1000);
    l->time_ns = known_f64(own * 1e3);
    if (j->sum_us > 0) l->share = known_f64(own / j->sum_us);
    if (!j->on_gpu) return;
    const struct layer_gpu_slot *g = &j->gpu.slots[slot - j->times.slots.items];
    l->gpu_ns = estimate_of(g->time_ns, 1);
    l->operations = known_u64(g->operations);
}

static const char *full_name(struct joining *j, const struct layer_slot *slot, size_t node)
{
    struct arena *a = &j->run->arena;
    if (slot->parent == SIZE_MAX) return name_of(j, slot->event, node);
    return arena_printf(a, "%s > %s", j->times.slots.items[slot->parent].event->node, slot->event->node);
}

/* For the edges between layers. Without the optimised graph, that of the file which kept its name. */
static void put_node(struct joining *j, struct run_layer *l, const struct layer_slot *slot, size_t node)
{
    if (!j->of_node || slot->parent != SIZE_MAX) return;
    if (!j->in->optimized_model) {
        const struct onnx_node *found = source_node(j, slot->event->node);
        node = found ? (size_t)(found - shown_graph(j)->nodes.items) : SIZE_MAX;
    }
    if (node != SIZE_MAX) j->of_node[node] = l;
}

/* Only nodes of the main graph are found in the optimised graph. What is nested in a loop or a branch gets its cost
 * from that body, and without an optimised graph the file's node of that name must do. */
static tare_status add_slot(struct joining *j, size_t k)
{
    const struct layer_slot *slot = &j->times.slots.items[k];
    const struct ort_event *e = slot->event;
    size_t node = slot->parent == SIZE_MAX ? layer_nodes_find(&j->nodes, &j->times, k) : SIZE_MAX;
    struct run_layer *l = run_add_layer(j->run, j->c, "");
    if (!l) return error_nomem(j->err, "layers");
    l->name = full_name(j, slot, node);
    l->op = arena_str(&j->run->arena, e->op);
    l->provider = e->provider[0] ? arena_str(&j->run->arena, e->provider) : NULL;
    l->output = shape_text(&j->run->arena, e);
    if (e->output_bytes) l->output_bytes = known_u64(e->output_bytes);
    l->group = group_of(j, l, node);
    if (node != SIZE_MAX && j->has_map) l->nodes = known_u64(j->map.of[node].n);
    put_times(j, l, slot);
    put_node(j, l, slot, node);
    if (slot->parent != SIZE_MAX) return put_body_cost(j, l, slot);
    return node != SIZE_MAX ? put_node_cost(j, l, node) : put_file_cost(j, l, e);
}

static tare_status add_runtime(struct joining *j)
{
    struct run_layer *l = run_add_layer(j->run, j->c, LAYERS_RUNTIME);
    if (!l) return error_nomem(j->err, "layers");
    l->group = layers_group_of(&j->run->arena, l->name, NULL);
    l->time_ns = known_f64(j->runtime_us * 1e3);
    if (j->sum_us > 0) l->share = known_f64(j->runtime_us / j->sum_us);
    return TARE_OK;
}

/* Copies of inputs and outputs, which no node makes. */
static tare_status add_outside(struct joining *j)
{
    struct run_layer *l = run_add_layer(j->run, j->c, LAYERS_OUTSIDE);
    if (!l) return error_nomem(j->err, "layers");
    l->group = layers_group_of(&j->run->arena, l->name, NULL);
    l->gpu_ns = estimate_of(j->gpu.outside_ns, 1);
    l->time_ns = known_f64(j->gpu.outside_ns.value);
    if (j->sum_us > 0) l->share = known_f64(j->gpu.outside_ns.value / 1e3 / j->sum_us);
    return TARE_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct run_layer *x = *(const struct run_layer *const *)a, *y = *(const struct run_layer *const *)b;
    double tx = x->time_ns.known ? x->time_ns.v : -1, ty = y->time_ns.known ? y->time_ns.v : -1;
    return tx > ty ? -1 : tx < ty;
}

/* A document holds so many and no more: the least of them become one. */
static void fold_rest(struct joining *j)
{
    size_t n = j->c->layers.n;
    struct run_layer rest = {0};
    if (n <= LAYERS_MAX) return;
    for (size_t i = LAYERS_MAX; i < n; i++) {
        const struct run_layer *l = j->c->layers.at[i];
        rest.calls = known_u64(rest.calls.v + l->calls.v);
        rest.total_ns = known_u64(rest.total_ns.v + l->total_ns.v);
        rest.time_ns = known_f64(rest.time_ns.v + l->time_ns.v);
        rest.share = known_f64(rest.share.v + l->share.v);
    }
    rest.name = arena_printf(&j->run->arena, "(%zu more)", n - LAYERS_MAX);
    rest.group = "other";
    *j->c->layers.at[LAYERS_MAX] = rest;
    j->c->layers.n = LAYERS_MAX + 1;
}

/* The cost of the profiler must be known before the slots are added, since it is taken off their times. Layers are
 * sorted before the rest is folded: the least of them go. */
static tare_status join_profile(struct joining *j)
{
    tare_status s = layer_times_build(&j->times, j->in->profile, j->in->skip_runs, j->err);
    if (s < 0) return s;
    if (j->times.events == 0)
        return error_set(j->err, TARE_INVALID, "the profile has no node in a run after the first %llu",
                         (unsigned long long)j->in->skip_runs);
    j->run_us = j->times.median_us; /* for files without times of ours */
    if (j->in->profiled.n) s = median_of(&j->in->profiled, &j->run_us, j->err);
    if (s == TARE_OK && j->in->plain.n) s = median_of(&j->in->plain, &j->plain_us, j->err);
    if (s == TARE_OK) s = weigh_profiler(j);
    if (s == TARE_OK && j->in->gpu) s = join_gpu(j);
    if (s == TARE_OK) record_profile(j);
    if (s == TARE_OK) s = index_graphs(j);
    for (size_t k = 0; s == TARE_OK && k < j->times.slots.n; k++) s = add_slot(j, k);
    if (s == TARE_OK && !isnan(j->run_us)) s = add_runtime(j);
    if (s == TARE_OK && j->on_gpu && j->gpu.outside_ns.value > 0) s = add_outside(j);
    if (s < 0) return s;
    qsort(j->c->layers.at, j->c->layers.n, sizeof(struct run_layer *), by_time);
    fold_rest(j);
    if (j->of_node) s = layer_graph_record(j->run, j->c, shown_graph(j), j->of_node, j->err);
    if (s < 0) return s;
    return j->run->arena.failed ? error_nomem(j->err, "layers") : TARE_OK;
}

tare_status layers_join(struct run *run, struct run_case *c, const struct layers_input *in, tare_error *err)
{
    struct joining j = {.run = run,
                        .c = c,
                        .in = in,
                        .times = LAYER_TIMES_INIT,
                        .map = SOURCE_MAP_INIT,
                        .near = LAYER_NEAR_INIT,
                        .nodes = LAYER_NODES_INIT,
                        .source_named = MAP_STR_INIT,
                        .layer_of = MAP_U64_INIT,
                        .gpu = LAYER_GPU_INIT,
                        .scale = 1,
                        .plain_us = NAN,
                        .err = err};
    tare_status s = join_profile(&j);
    layer_times_release(&j.times);
    layer_gpu_release(&j.gpu);
    source_map_release(&j.map);
    layer_near_release(&j.near);
    layer_nodes_release(&j.nodes);
    map_str_release(&j.source_named);
    map_u64_release(&j.layer_of);
    mem_free(j.of_node);
    return s;
}
