/* SPDX-License-Identifier: MIT
 * onnx_run.c - running a prepared ONNX session, and what can be told after it. onnx_run() is the timed path: it
 * allocates nothing and looks at nothing but the runtime's answer. */
#include <math.h>
#include <string.h>

#include "core/clock.h"
#include "core/mem.h"
#include "subject/onnx_model.h"

/* ---- the timed path ---- */

static void release_loose(struct onnx_instance *i, struct onnx_worker *w)
{
    for (size_t k = 0; k < i->outputs.items.n; k++) {
        if (!w->loose[k] || !w->out[k]) continue;
        i->ort->call.ReleaseValue(w->out[k]);
        w->out[k] = NULL;
    }
}

static struct ort_status *call_run(struct onnx_instance *i, struct onnx_worker *w)
{
    return i->call_run(i->session, NULL, i->in_names, (const struct ort_value *const *)w->in,
                       i->inputs.items.n, i->out_names, i->outputs.items.n, w->out);
}

static bool same_shape(const struct ort *o, const struct ort_value *a, const struct ort_value *b)
{
    int64_t dims_a[TENSOR_RANK_MAX], dims_b[TENSOR_RANK_MAX];
    size_t rank_a = 0, rank_b = 0;
    int type_a, type_b;
    return ort_value_shape(o, a, &type_a, dims_a, &rank_a) &&
           ort_value_shape(o, b, &type_b, dims_b, &rank_b) && rank_a == rank_b &&
           memcmp(dims_a, dims_b, rank_a * sizeof *dims_a) == 0;
}

/* The outputs of this run have other shapes than those of the last: run once more with outputs the runtime allocates,
 * and let it allocate those that changed from now on. false: shapes did not change, so the failure is a real one. */
static bool retry_loose(struct onnx_instance *i, struct onnx_worker *w)
{
    size_t n = i->outputs.items.n;
    struct ort_value **old = mem_new(n, sizeof(struct ort_value *));
    bool changed = false;
    if (!old) return false;
    memcpy(old, w->out, n * sizeof(struct ort_value *));
    memset(w->out, 0, n * sizeof(struct ort_value *));
    struct ort_status *st = call_run(i, w);
    for (size_t k = 0; !st && k < n; k++) {
        if (!old[k] || same_shape(i->ort, old[k], w->out[k])) continue;
        changed = w->loose[k] = w->any_loose = true;
    }
    for (size_t k = 0; k < n; k++) {
        if (old[k]) i->ort->call.ReleaseValue(old[k]);
    }
    if (st) i->ort->call.ReleaseStatus(st);
    mem_free(old);
    return changed;
}

static tare_status run_failed(struct onnx_instance *i, struct onnx_worker *w, struct ort_status *st,
                              tare_error *err)
{
    bool reused = false;
    for (size_t k = 0; k < i->outputs.items.n; k++) reused = reused || (w->out[k] && !w->loose[k]);
    if (reused && retry_loose(i, w)) {
        i->ort->call.ReleaseStatus(st);
        return TARE_OK;
    }
    return ort_check(i->ort, st, err, "running %s", ((struct onnx_subject *)i->base.subject)->path);
}

tare_status onnx_run(struct instance *base, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    struct onnx_worker *w = &i->workers[worker];
    cost->known = false;
    if (w->any_loose) release_loose(i, w);
    struct ort_status *st = call_run(i, w);
    return st ? run_failed(i, w, st, err) : TARE_OK;
}

/* ---- its own cost ---- */

static struct ort_status *empty_run(struct ort_session *s,
                                    const struct ort_run_options *o, /* the runtime's type */
                                    const char *const *in_names, const struct ort_value *const *in,
                                    size_t n_in, const char *const *out_names, size_t n_out,
                                    struct ort_value **out)
{
    (void)s, (void)o, (void)in_names, (void)in, (void)n_in, (void)out_names, (void)n_out, (void)out;
    return NULL;
}

/* The whole way through the table of functions, around a run that does nothing; the fastest of some batches. */
uint64_t onnx_overhead_ns(struct instance *base)
{
    enum { BATCHES = 9, RUNS = 512 };
    struct onnx_instance *i = (struct onnx_instance *)base;
    ort_run_function *real = i->call_run;
    struct subject_cost cost = {0};
    uint64_t best = UINT64_MAX;
    bool loose = i->workers[0].any_loose;
    i->workers[0].any_loose = false;
    i->call_run = empty_run;
    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = clock_raw_ns();
        for (int k = 0; k < RUNS; k++) base->subject->ops->run(base, 0, &cost, NULL);
        uint64_t took = clock_raw_ns() - start;
        if (took < best) best = took;
    }
    i->call_run = real;
    i->workers[0].any_loose = loose;
    return (best + RUNS - 1) / RUNS;
}

/* ---- afterwards ---- */

static uint64_t bad_floats(const float *p, uint64_t n)
{
    uint64_t bad = 0;
    for (uint64_t i = 0; i < n; i++) bad += !isfinite(p[i]);
    return bad;
}

/* Elements that are no finite number, of types that can have such. */
static uint64_t count_bad(const struct ort *o, struct ort_value *v)
{
    struct tensor t = {0};
    uint64_t bad = 0, n;
    size_t bytes;
    if (!v || !ort_value_shape(o, v, &t.type, t.dims, &t.rank)) return 0;
    if (!tensor_is_float(t.type) || !tensor_bytes(t.type, t.dims, t.rank, &n, &bytes) || n == 0) return 0;
    struct ort_status *st = o->call.GetTensorMutableData(v, &t.data);
    if (st) {
        o->call.ReleaseStatus(st);
        return 0;
    }
    if (t.type == ONNX_FLOAT) return bad_floats(t.data, n);
    for (uint64_t i = 0; i < n; i++) bad += !isfinite(tensor_value(&t, i));
    return bad;
}

static void report_arena(struct onnx_instance *i, struct run *run, struct run_case *c)
{
    struct ort_arena_use use;
    if (ort_arena_stats(i->ort, i->session, &run->arena, &c->memory.arena, &use)) {
        c->memory.known = true;
        if (use.held && use.most_used <= use.held) {
            c->memory.fragmentation = known_f64(1 - (double)use.most_used / (double)use.held);
            return;
        }
        run_unknown(run, &c->unknown, "memory.fragmentation",
                    "the runtime's statistics lack TotalAllocated and MaxInUse");
        return;
    }
    const char *why = "the session's allocator keeps no statistics";
    if (i->ort->api < 23) why = "ONNX Runtime tells allocator statistics from 1.23 on";
    if (i->no_arena) why = "the arena is turned off";
    run_unknown(run, &c->unknown, "memory.arena", "%s", why);
    run_unknown(run, &c->unknown, "memory.fragmentation", "%s", why);
}

tare_status onnx_report(struct instance *base, struct run *run, struct run_case *c, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    uint64_t bad = 0;
    report_arena(i, run, c);
    for (size_t k = 0; k < i->outputs.items.n; k++) bad += count_bad(i->ort, i->workers[0].out[k]);
    c->nan_outputs = known_u64(bad);
    if (i->placed) {
        struct run_map placement = {0};
        if (ort_placement(i->ort, i->session, &run->arena, &placement)) {
            run_map_set(&run->arena, &c->params, "placement",
                        (struct run_value){.kind = RUN_MAP, .items = placement});
        }
    }
    return run->arena.failed ? error_set(err, TARE_NOMEM, "out of memory to report a case") : TARE_OK;
}

tare_status onnx_copy_outputs(struct instance *base, struct tensor_set *out, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    struct tensor_set set = TENSOR_SET_INIT;
    tare_status s = TARE_OK;
    for (size_t k = 0; s == TARE_OK && k < i->outputs.items.n; k++) {
        struct tensor t;
        if (!i->workers[0].out[k]) {
            s = error_set(err, TARE_INVALID, "output '%s' is not there: nothing ran yet",
                          i->outputs.items.items[k].name);
            break;
        }
        s = ort_value_copy(i->ort, i->workers[0].out[k], i->outputs.items.items[k].name, &t, err);
        if (s == TARE_OK) s = tensor_set_take(&set, &t, err);
    }
    if (s < 0) {
        tensor_set_release(&set);
        return s;
    }
    *out = set;
    return TARE_OK;
}
