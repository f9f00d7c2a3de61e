/* SPDX-License-Identifier: MIT
 * ort_value.c - the second half of ort_session.h: names, types and shapes of what goes in and out of a session, values
 * copied out, statistics read back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subject/ort_session.h"

/* ---- inputs and outputs ---- */

void ort_ios_release(struct ort_ios *ios)
{
    vec_release(&ios->items);
    arena_release(&ios->texts);
}

/* Type and shape of a tensor; `texts` takes the names of its free dimensions. */
static tare_status read_tensor_info(const struct ort *o, const struct ort_tensor_info *ti, struct ort_io *io,
                                    struct arena *texts, tare_error *err)
{
    int type = 0;
    size_t rank = 0;
    tare_status s = ort_check(o, o->call.GetTensorElementType(ti, &type), err, "%s: element type", io->name);
    if (s == TARE_OK)
        s = ort_check(o, o->call.GetDimensionsCount(ti, &rank), err, "%s: dimensions", io->name);
    if (s < 0) return s;
    io->type = ort_type_to_onnx(type);
    io->has_shape = rank > 0 || !o->call.HasShape || o->call.HasShape(ti);
    if (rank > TENSOR_RANK_MAX)
        return error_set(err, TARE_UNSUPPORTED, "'%s' has %zu dimensions, at most %d are supported", io->name,
                         rank, TENSOR_RANK_MAX);
    io->rank = rank;
    if (!rank) return TARE_OK;
    struct ort_status *st = o->call.GetDimensions(ti, io->dims, rank);
    if (!st) st = o->call.GetSymbolicDimensions(ti, io->symbols, rank);
    s = ort_check(o, st, err, "%s: dimensions", io->name);
    for (size_t i = 0; s == TARE_OK && i < rank; i++)
        io->symbols[i] = arena_str(texts, io->symbols[i] ? io->symbols[i] : "");
    return s;
}

static tare_status read_info(const struct ort *o, struct ort_type_info *info, struct ort_io *io,
                             struct arena *texts, tare_error *err)
{
    const struct ort_tensor_info *ti = NULL;
    tare_status s = ort_check(o, o->call.GetOnnxTypeFromTypeInfo(info, &io->kind), err, "%s: kind", io->name);
    if (s < 0 || io->kind != ORT_TENSOR) return s;
    s = ort_check(o, o->call.CastTypeInfoToTensorInfo(info, &ti), err, "%s: shape", io->name);
    return s == TARE_OK && ti ? read_tensor_info(o, ti, io, texts, err) : s;
}

/* The two kinds of ends of a session. */
struct io_calls {
    struct ort_status *(*count)(const struct ort_session *, size_t *);
    struct ort_status *(*info)(const struct ort_session *, size_t, struct ort_type_info **);
    struct ort_status *(*name)(const struct ort_session *, size_t, struct ort_allocator *, char **);
};

static const char *read_name(const struct ort *o, const struct ort_session *s, const struct io_calls *c,
                             size_t i, struct arena *texts)
{
    struct ort_allocator *allocator = NULL;
    char *name = NULL;
    struct ort_status *st = o->call.GetAllocatorWithDefaultOptions(&allocator);
    if (!st) st = c->name(s, i, allocator, &name);
    if (!ort_done(o, st)) return NULL;
    const char *copy = arena_str(texts, name);
    ort_done(o, o->call.AllocatorFree(allocator, name));
    return copy;
}

static tare_status read_io(const struct ort *o, const struct ort_session *session, const struct io_calls *c,
                           struct ort_ios *out, tare_error *err)
{
    size_t i = out->items.n;
    struct ort_type_info *info = NULL;
    struct ort_io io = {.name = read_name(o, session, c, i, &out->texts)};
    if (!io.name)
        return error_set(err, out->texts.failed ? TARE_NOMEM : TARE_UNSUPPORTED,
                         "the name of input or output %zu cannot be read", i);
    tare_status s = ort_check(o, c->info(session, i, &info), err, "%s: type", io.name);
    if (s == TARE_OK) s = read_info(o, info, &io, &out->texts, err);
    if (info) o->call.ReleaseTypeInfo(info);
    if (s == TARE_OK && out->texts.failed) s = error_nomem(err, "'%s'", io.name);
    return s == TARE_OK ? vec_push(&out->items, io, err) : s;
}

static tare_status read_ios(const struct ort *o, const struct ort_session *session, const struct io_calls *c,
                            struct ort_ios *out, tare_error *err)
{
    struct ort_ios ios = {.items = VEC_INIT};
    size_t n = 0;
    tare_status s = ort_check(o, c->count(session, &n), err, "counting inputs and outputs");
    while (s == TARE_OK && ios.items.n < n) s = read_io(o, session, c, &ios, err);
    if (s < 0) {
        ort_ios_release(&ios);
        return s;
    }
    *out = ios;
    return TARE_OK;
}

tare_status ort_inputs(const struct ort *o, const struct ort_session *s, struct ort_ios *out, tare_error *err)
{
    const struct io_calls c = {o->call.SessionGetInputCount, o->call.SessionGetInputTypeInfo,
                               o->call.SessionGetInputName};
    return read_ios(o, s, &c, out, err);
}

tare_status ort_outputs(const struct ort *o, const struct ort_session *s, struct ort_ios *out,
                        tare_error *err)
{
    const struct io_calls c = {o->call.SessionGetOutputCount, o->call.SessionGetOutputTypeInfo,
                               o->call.SessionGetOutputName};
    return read_ios(o, s, &c, out, err);
}

/* ---- values ---- */

bool ort_value_shape(const struct ort *o, const struct ort_value *v, int *type, int64_t *dims, size_t *rank)
{
    struct ort_tensor_info *ti = NULL;
    int kind = 0, element = 0;
    struct ort_status *st = v ? o->call.GetValueType(v, &kind) : NULL;
    if (!st && kind == ORT_TENSOR) st = o->call.GetTensorTypeAndShape(v, &ti);
    if (!st && ti) st = o->call.GetTensorElementType(ti, &element);
    if (!st && ti) st = o->call.GetDimensionsCount(ti, rank);
    bool good = !st && ti && *rank <= TENSOR_RANK_MAX;
    if (good && *rank) st = o->call.GetDimensions(ti, dims, *rank);
    *type = ort_type_to_onnx(element);
    if (ti) o->call.ReleaseTensorTypeAndShapeInfo(ti);
    return ort_done(o, st) && good;
}

bool ort_value_same_shape(const struct ort *o, const struct ort_value *a, const struct ort_value *b)
{
    int64_t dims_a[TENSOR_RANK_MAX], dims_b[TENSOR_RANK_MAX];
    size_t rank_a = 0, rank_b = 0;
    int type_a, type_b;
    return ort_value_shape(o, a, &type_a, dims_a, &rank_a) &&
           ort_value_shape(o, b, &type_b, dims_b, &rank_b) && rank_a == rank_b &&
           memcmp(dims_a, dims_b, rank_a * sizeof *dims_a) == 0;
}

tare_status ort_value_over(const struct ort *o, const struct ort_memory_info *cpu, const struct tensor *t,
                           struct ort_value **out, tare_error *err)
{
    return ort_check(o,
                     o->call.CreateTensorWithData(cpu, t->data, t->bytes, t->dims, t->rank,
                                                  ort_type_from_onnx(t->type), out),
                     err, "input '%s'", t->name);
}

/* An optional output may be empty, and sequences and maps have no bytes to copy. */
tare_status ort_value_copy(const struct ort *o, struct ort_value *v, const char *name, struct tensor *out,
                           tare_error *err)
{
    int64_t dims[TENSOR_RANK_MAX];
    size_t rank = 0;
    int type = 0, there = 1;
    void *data = NULL;
    struct tensor t;
    if (v && o->call.HasValue) {
        tare_status known = ort_check(o, o->call.HasValue(v, &there), err, "output '%s'", name);
        if (known < 0) return known;
    }
    if (!there || !ort_value_shape(o, v, &type, dims, &rank))
        return error_set(err, TARE_UNSUPPORTED, "output '%s' is no tensor; only tensors can be compared",
                         name);
    tare_status s = tensor_make(&t, &(struct tensor_spec){name, type, dims, rank}, err);
    if (s < 0) return s;
    s = t.bytes ? ort_check(o, o->call.GetTensorMutableData(v, &data), err, "output '%s'", name) : TARE_OK;
    if (s < 0) {
        tensor_release(&t);
        return s;
    }
    if (t.bytes) memcpy(t.data, data, t.bytes);
    *out = t;
    return TARE_OK;
}

/* ---- statistics ---- */

static bool whole_number(const char *text, int64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    *out = strtoll(text, &end, 10);
    return *end == 0;
}

static void take_stats(const struct ort *o, const struct ort_key_values *kv, struct arena *a,
                       struct run_map *to)
{
    const char *const *keys = NULL, *const *values = NULL;
    size_t n = 0;
    o->call.GetKeyValuePairs(kv, &keys, &values, &n);
    for (size_t i = 0; i < n; i++) {
        int64_t v;
        if (whole_number(values[i], &v)) run_map_int(a, to, keys[i], v);
    }
}

static uint64_t stat_of(const struct run_map *m, const char *key)
{
    const struct run_value *v = run_map_get(m, key);
    return v && v->kind == RUN_INT && v->i > 0 ? (uint64_t)v->i : 0;
}

static struct ort_status *describe_memory(const struct ort *o, const char *name, struct ort_memory_info **out)
{
    return name ? o->call.CreateMemoryInfo(name, ORT_ALLOCATOR_ARENA, 0, 0, out)
                : o->call.CreateCpuMemoryInfo(ORT_ALLOCATOR_ARENA, 0, out);
}

bool ort_arena_stats(const struct ort *o, const struct ort_arena_of *of, struct arena *a,
                     struct run_map *arena, struct ort_arena_use *use)
{
    struct ort_memory_info *info = NULL;
    struct ort_allocator *allocator = NULL;
    struct ort_key_values *kv = NULL;
    if (!o->call.AllocatorGetStats || !o->call.GetKeyValuePairs) return false;
    struct ort_status *st = describe_memory(o, of->memory, &info);
    if (!st) st = o->call.CreateAllocator(of->session, info, &allocator);
    if (!st) st = o->call.AllocatorGetStats(allocator, &kv);
    if (!st) take_stats(o, kv, a, arena);
    if (kv) o->call.ReleaseKeyValuePairs(kv);
    if (allocator) o->call.ReleaseAllocator(allocator);
    if (info) o->call.ReleaseMemoryInfo(info);
    ort_done(o, st);
    *use = (struct ort_arena_use){stat_of(arena, "TotalAllocated"), stat_of(arena, "MaxInUse")};
    return arena->n > 0;
}

static void count_subgraph(const struct ort *o, const struct ort_ep_subgraph *g, struct arena *a,
                           struct run_map *to)
{
    const char *name = NULL;
    const struct ort_ep_node *const *nodes = NULL;
    size_t n = 0;
    struct ort_status *st = o->call.EpSubgraphGetEpName(g, &name);
    if (!st) st = o->call.EpSubgraphGetNodes(g, &nodes, &n);
    if (ort_done(o, st) && name) run_map_int(a, to, name, (int64_t)(stat_of(to, name) + n));
}

void ort_placement(const struct ort *o, const struct ort_session *s, struct arena *a,
                   struct run_map *placement)
{
    const struct ort_ep_subgraph *const *graphs = NULL;
    size_t n = 0;
    if (!o->call.SessionGetEpGraphAssignmentInfo) return;
    if (!ort_done(o, o->call.SessionGetEpGraphAssignmentInfo(s, &graphs, &n))) return;
    for (size_t i = 0; i < n; i++) count_subgraph(o, graphs[i], a, placement);
}
