/* SPDX-License-Identifier: MIT
 * onnx_case.c - from a model and a case to a session that is ready to run: threads, provider, dimensions, inputs and
 * output slots for every worker. Whatever it chose by itself it writes into the case's parameters. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/clock.h"
#include "core/mem.h"
#include "probe/procfs.h"
#include "subject/onnx_model.h"

/* ---- threads ---- */

/* The first processor of the core that this one belongs to; itself when the kernel does not say. */
static int core_of(int cpu)
{
    char path[96], text[4096];
    uint64_t first;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    procfs_text("", path, text, sizeof text);
    return procfs_number(text, &first) ? (int)first : cpu;
}

/* Cores with at least one processor that we may run on. */
static int64_t physical_cores(void)
{
    cpu_set_t mine, cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof mine, &mine) < 0) return 0;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        int core = CPU_ISSET(i, &mine) ? core_of(i) : -1;
        if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &cores);
    }
    return CPU_COUNT(&cores);
}

int64_t onnx_thread_budget(const struct run *run)
{
    int64_t cores = physical_cores();
    struct known_f64 usable = run->host.cpu.usable;
    if (usable.known && (cores == 0 || usable.v < (double)cores)) cores = (int64_t)usable.v;
    return cores > 0 ? cores : 1;
}

/* ---- session ---- */

struct ort_session_spec onnx_session_spec(const struct onnx_subject *s)
{
    return (struct ort_session_spec){.model = s->path,
                                     .threads = 1,
                                     .optimization = s->optimization,
                                     .no_arena = s->no_arena,
                                     .no_pattern = s->no_pattern,
                                     .parallel = s->parallel,
                                     .config = s->config.items,
                                     .n_config = s->config.n};
}

tare_status onnx_load(struct onnx_subject *s, const struct ort_session_spec *spec, struct ort_session **out,
                      tare_error *err)
{
    guard_call(&s->loading);
    tare_status st = ort_session_open(s->ort, spec, out, err);
    guard_call(&s->loading);
    return st;
}

/* Dimensions become constants: they must be known before the session is, so one is made to ask. */
static tare_status fix_dims(struct onnx_subject *s, const struct case_params *p,
                            struct ort_session_spec *spec, struct free_dims *dims, tare_error *err)
{
    struct ort_ios inputs = {.items = VEC_INIT};
    struct ort_session *session = NULL;
    struct ort_session_spec plain = onnx_session_spec(s);
    struct dim_value *fixed = NULL;
    plain.optimization = 0;
    tare_status st = onnx_load(s, &plain, &session, err);
    if (st == TARE_OK) st = ort_inputs(s->ort, session, &inputs, err);
    if (st == TARE_OK) st = free_dims_resolve(dims, &inputs, p, NULL, err);
    if (st == TARE_OK) {
        fixed = mem_new(dims->chosen.n, sizeof *fixed);
        if (!fixed) st = error_set(err, TARE_NOMEM, "out of memory");
    }
    for (size_t i = 0; st == TARE_OK && i < dims->chosen.n; i++) {
        const struct chosen_dim *c = &dims->chosen.items[i];
        if (strchr(c->name, '.')) continue; /* has no name in the model */
        fixed[spec->n_fixed++] = (struct dim_value){c->name, c->value};
    }
    spec->fixed = fixed;
    if (session) s->ort->call.ReleaseSession(session);
    ort_ios_release(&inputs);
    return st;
}

struct filling { /* what sessions and the inputs of all workers are made of */
    struct onnx_subject *subject;
    const struct case_params *params;
    int64_t threads;
    const struct tensor **files; /* NULL: made up */
    struct free_dims dims;
};

static tare_status open_session(const struct filling *f, struct ort_session **out, tare_error *err)
{
    struct onnx_subject *s = f->subject;
    const struct case_params *p = f->params;
    struct ort_session_spec spec = onnx_session_spec(s);
    struct free_dims dims = FREE_DIMS_INIT;
    tare_status st = TARE_OK;
    spec.threads = f->threads;
    spec.provider = p->provider;
    spec.no_spin = p->has_neighbours;
    if (p->records) spec.records = *p->records;
    if (s->fix_dims) st = fix_dims(s, p, &spec, &dims, err);
    if (st == TARE_OK) st = onnx_load(s, &spec, out, err);
    mem_free((void *)(uintptr_t)spec.fixed);
    free_dims_release(&dims);
    return st;
}

/* ---- inputs ---- */

static int64_t limit_of(const struct onnx_subject *s, const char *input)
{
    for (size_t i = 0; i < s->limits.n; i++) {
        if (strcmp(s->limits.items[i].name, input) == 0) return s->limits.items[i].value;
    }
    return 0;
}

static tare_status make_input(struct onnx_instance *i, const struct filling *f, unsigned worker, size_t k,
                              tare_error *err)
{
    struct onnx_worker *w = &i->workers[worker];
    struct tensor t;
    const struct ort_io *io = &i->inputs.items.items[k];
    struct input_spec spec = {.io = io,
                              .dims = free_dims_of(&f->dims, &i->inputs, k),
                              .bound = limit_of(f->subject, io->name),
                              .seq = f->dims.seq > 0 ? f->dims.seq : 1,
                              .seed = f->params->seed * 0x9E3779B97F4A7C15u + worker * UINT64_C(1000003) + k};
    tare_status s = f->files ? input_fit(&t, &spec, f->files[k], worker, err) : input_make(&t, &spec, err);
    if (s == TARE_OK) s = tensor_set_take(&w->inputs, &t, err);
    if (s < 0) return s;
    return ort_value_over(i->ort, i->cpu, vec_last(&w->inputs.items), &w->in[k], err);
}

static tare_status make_worker(struct onnx_instance *i, const struct filling *f, unsigned worker,
                               tare_error *err)
{
    struct onnx_worker *w = &i->workers[worker];
    size_t n_in = i->inputs.items.n, n_out = i->outputs.items.n;
    w->in = mem_new(n_in, sizeof(struct ort_value *));
    w->out = mem_new(n_out, sizeof(struct ort_value *));
    w->loose = mem_new(n_out, sizeof *w->loose);
    if (!w->in || !w->out || !w->loose) return error_nomem(err, "a worker");
    for (size_t k = 0; k < n_out; k++) {
        const struct ort_io *io = &i->outputs.items.items[k];
        if (io->kind != ORT_TENSOR || io->type == ONNX_STRING) w->loose[k] = w->any_loose = true;
    }
    tare_status s = ort_check(i->ort, i->ort->call.CreateRunOptions(&w->calls.run), err, "run options");
    if (s == TARE_OK) s = guard_add(&f->subject->guard, &w->calls, err);
    for (size_t k = 0; s == TARE_OK && k < n_in; k++) s = make_input(i, f, worker, k, err);
    return s;
}

static tare_status make_workers(struct onnx_instance *i, const struct filling *f, tare_error *err)
{
    unsigned n = f->params->workers ? f->params->workers : 1;
    tare_status s = TARE_OK;
    i->workers = mem_new(n, sizeof *i->workers);
    if (!i->workers) return error_nomem(err, "%u workers", n);
    i->n_workers = n;
    for (unsigned w = 0; s == TARE_OK && w < n; w++) s = make_worker(i, f, w, err);
    return s;
}

static tare_status make_names(struct onnx_instance *i, tare_error *err)
{
    i->in_names = mem_new(i->inputs.items.n, sizeof(char *));
    i->out_names = mem_new(i->outputs.items.n, sizeof(char *));
    if (!i->in_names || !i->out_names) return error_set(err, TARE_NOMEM, "out of memory");
    for (size_t k = 0; k < i->inputs.items.n; k++) i->in_names[k] = i->inputs.items.items[k].name;
    for (size_t k = 0; k < i->outputs.items.n; k++) i->out_names[k] = i->outputs.items.items[k].name;
    return TARE_OK;
}

static tare_status make_inputs(struct onnx_instance *i, struct filling *f, tare_error *err)
{
    const struct onnx_subject *s = f->subject;
    tare_status st = TARE_OK;
    for (size_t k = 0; st == TARE_OK && k < i->inputs.items.n; k++)
        st = input_check_kind(&i->inputs.items.items[k], err);
    if (st == TARE_OK && s->inputs_path) {
        f->files = mem_new(i->inputs.items.n, sizeof(struct tensor *));
        st = f->files ? input_match(&i->inputs, &s->files, f->files, err)
                      : error_set(err, TARE_NOMEM, "out of memory");
    }
    if (st == TARE_OK) st = free_dims_resolve(&f->dims, &i->inputs, f->params, f->files, err);
    if (st == TARE_OK) st = make_workers(i, f, err);
    if (st < 0 && s->inputs_path && err) st = error_wrap(err, "%s", s->inputs_path);
    return st;
}

/* ---- what was chosen ---- */

/* Keys of a document are printable ASCII of at most RUN_KEY_MAX bytes; names in models are anything. */
static void dim_key(const struct filling *f, const struct chosen_dim *c, char key[RUN_KEY_MAX])
{
    const char *name = c->name;
    size_t n = 0;
    if (c->class == DIM_BATCH && c->value == f->dims.batch) name = "batch";
    if (c->class == DIM_SEQ && c->value == f->dims.seq) name = "seq";
    for (; name[n] && n < RUN_KEY_MAX - 1; n++) key[n] = name[n] > 32 && name[n] < 127 ? name[n] : '_';
    key[n] = 0;
}

/* Dimensions that neither the user nor a file gave a value. */
static void record_defaults(const struct filling *f, struct run *run)
{
    struct run_map dims = {0};
    char key[RUN_KEY_MAX];
    for (size_t i = 0; !f->files && i < f->dims.chosen.n; i++) {
        const struct chosen_dim *c = &f->dims.chosen.items[i];
        dim_key(f, c, key);
        if (!c->asked && !run_map_get(&dims, key)) run_map_int(&run->arena, &dims, key, c->value);
    }
    if (dims.n)
        run_map_set(&run->arena, &run->config, RUN_DIMS_BY_DEFAULT,
                    (struct run_value){.kind = RUN_MAP, .items = dims});
}

/* Parameters are what makes two cases the same one in a comparison: only what was chosen goes in, under
 * the same key whatever the model calls it. A key that is there already is not set again. */
static void record_params(const struct filling *f, const struct case_record *to)
{
    struct arena *a = &to->run->arena;
    int weights = f->subject->weight_type;
    const char *precision = weights == ONNX_UNDEFINED ? NULL : onnx_type_precision(weights);
    if (f->dims.batch > 0) run_map_int(a, to->params, "batch", f->dims.batch);
    if (f->dims.seq > 0) run_map_int(a, to->params, "seq", f->dims.seq);
    run_map_int(a, to->params, "threads", f->threads);
    run_map_text(a, to->params, "precision", precision);
    run_map_text(a, to->params, "provider", f->params->provider ? f->params->provider : "cpu");
    if (ort_provider_memory(f->params->provider))
        run_map_text(a, to->params, "io", f->params->io ? f->params->io : IO_HOST);
    if (f->params->variant) run_map_text(a, to->params, "variant", f->params->variant);
    if (f->subject->optimization >= 0) run_map_int(a, to->params, "optimization", f->subject->optimization);
    if (f->subject->parallel) run_map_text(a, to->params, "execution", "parallel");
    if (f->subject->no_arena) run_map_bool(a, to->params, "arena", false);
    if (f->subject->no_pattern) run_map_bool(a, to->params, "memory_pattern", false);
    for (size_t i = 0; i < f->dims.chosen.n; i++) {
        char key[RUN_KEY_MAX];
        dim_key(f, &f->dims.chosen.items[i], key);
        if (!run_map_get(to->params, key)) run_map_int(a, to->params, key, f->dims.chosen.items[i].value);
    }
    record_defaults(f, to->run);
}

/* ---- all of it ---- */

static bool wants_device(const struct case_params *p)
{
    return p->io && strcmp(p->io, IO_GPU) == 0;
}

/* Before anything is loaded. */
static tare_status check_io(const struct case_params *p, tare_error *err)
{
    const char *provider = p->provider ? p->provider : "cpu";
    if (p->io && !wants_device(p) && strcmp(p->io, IO_HOST) != 0)
        return error_set(err, TARE_INVALID, "io '%s': " IO_HOST " or " IO_GPU, p->io);
    if (!wants_device(p) || ort_provider_memory(provider)) return TARE_OK;
    return error_set(err, TARE_UNSUPPORTED,
                     "io=" IO_GPU ": provider '%s' has no memory of its own to keep inputs and "
                     "outputs in",
                     provider);
}

static tare_status fill_instance(struct onnx_instance *i, struct filling *f, tare_error *err)
{
    tare_status st = open_session(f, &i->session, err);
    if (st == TARE_OK) st = ort_inputs(i->ort, i->session, &i->inputs, err);
    if (st == TARE_OK) st = ort_outputs(i->ort, i->session, &i->outputs, err);
    if (st == TARE_OK)
        st = ort_check(i->ort, i->ort->call.CreateCpuMemoryInfo(ORT_ALLOCATOR_ARENA, 0, &i->cpu), err,
                       "memory description");
    if (st == TARE_OK) st = make_names(i, err);
    if (st == TARE_OK) st = make_inputs(i, f, err);
    if (st == TARE_OK && wants_device(f->params))
        st = onnx_bind(i, ort_provider_memory(f->params->provider), err);
    i->batch = f->dims.batch;
    return st;
}

/* What was chosen is written down only when all of it is ready to run. */
tare_status onnx_prepare(struct subject *base, const struct case_params *p, const struct case_record *to,
                         struct instance **out, tare_error *err)
{
    struct onnx_subject *s = (struct onnx_subject *)base;
    struct filling f = {.subject = s, .params = p, .dims = FREE_DIMS_INIT};
    tare_status st = check_io(p, err);
    if (st < 0) return st;
    struct onnx_instance *i = mem_new(1, sizeof *i);
    if (!i) return error_nomem(err, "a case");
    i->base.subject = base;
    i->ort = s->ort;
    i->call_run = s->ort->call.Run;
    i->call_bound = s->ort->call.RunWithBinding;
    i->call_wait = s->ort->call.SynchronizeBoundOutputs;
    i->placed = p->provider && strcasecmp(p->provider, "cpu") != 0;
    i->memory = ort_provider_memory(p->provider);
    i->no_arena = s->no_arena;
    f.threads = p->threads > 0 ? p->threads : onnx_thread_budget(to->run);
    st = fill_instance(i, &f, err);
    if (st == TARE_OK) record_params(&f, to);
    if (st == TARE_OK && to->run->arena.failed) st = error_nomem(err, "a case");
    mem_free(f.files);
    free_dims_release(&f.dims);
    if (st < 0) {
        onnx_finish(&i->base);
        return st;
    }
    *out = &i->base;
    return TARE_OK;
}

static void release_values(const struct ort *o, struct ort_value **values, size_t n)
{
    for (size_t k = 0; values && k < n; k++) {
        if (values[k]) o->call.ReleaseValue(values[k]);
    }
    mem_free(values);
}

/* Takes an instance that is made only in part, too. The guard goes first: it may still want to stop a run
 * through these options. The session goes after the values that it made. */
void onnx_finish(struct instance *base)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    for (unsigned w = 0; i->workers && w < i->n_workers; w++) {
        guard_remove(&((struct onnx_subject *)base->subject)->guard, &i->workers[w].calls);
        if (i->workers[w].calls.run) i->ort->call.ReleaseRunOptions(i->workers[w].calls.run);
        onnx_unbind(i, &i->workers[w]);
        release_values(i->ort, i->workers[w].in, i->inputs.items.n);
        release_values(i->ort, i->workers[w].out, i->outputs.items.n);
        mem_free(i->workers[w].loose);
        tensor_set_release(&i->workers[w].inputs);
    }
    mem_free(i->workers);
    mem_free(i->in_names);
    mem_free(i->out_names);
    if (i->cpu) i->ort->call.ReleaseMemoryInfo(i->cpu);
    if (i->device) i->ort->call.ReleaseMemoryInfo(i->device);
    if (i->session) i->ort->call.ReleaseSession(i->session);
    ort_ios_release(&i->inputs);
    ort_ios_release(&i->outputs);
    mem_free(i);
}

/* ==== running it ====
 * onnx_run() is the timed path: it looks at nothing but the runtime's answer. */

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
    return i->call_run(i->session, w->calls.run, i->in_names, (const struct ort_value *const *)w->in,
                       i->inputs.items.n, i->out_names, i->outputs.items.n, w->out);
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
        if (!old[k] || ort_value_same_shape(i->ort, old[k], w->out[k])) continue;
        changed = w->loose[k] = w->any_loose = true;
    }
    for (size_t k = 0; k < n; k++) {
        if (old[k]) i->ort->call.ReleaseValue(old[k]);
    }
    ort_done(i->ort, st);
    mem_free(old);
    return changed;
}

static tare_status run_failed(struct onnx_instance *i, struct onnx_worker *w, struct ort_status *st,
                              tare_error *err)
{
    struct onnx_subject *s = (struct onnx_subject *)i->base.subject;
    char why[96];
    bool reused = false;
    if (guard_ended(&s->guard, &w->calls, why, sizeof why)) {
        i->ort->call.ReleaseStatus(st);
        i->overdue = true;
        return error_set(err, TARE_DENIED, "%s: a run: %s", s->path, why);
    }
    if (w->bound) {
        if (!onnx_bound_retry(i, w)) return ort_check(i->ort, st, err, "running %s", s->path);
        i->ort->call.ReleaseStatus(st);
        return TARE_OK;
    }
    for (size_t k = 0; k < i->outputs.items.n; k++) reused = reused || (w->out[k] && !w->loose[k]);
    if (reused && retry_loose(i, w)) {
        i->ort->call.ReleaseStatus(st);
        return TARE_OK;
    }
    return ort_check(i->ort, st, err, "running %s", s->path);
}

tare_status onnx_run(struct instance *base, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    struct onnx_worker *w = &i->workers[worker];
    cost->known = false;
    if (w->any_loose && !w->bound) release_loose(i, w);
    guard_call(&w->calls);
    struct ort_status *st = w->bound ? onnx_bound_run(i, w) : call_run(i, w);
    guard_call(&w->calls);
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

static struct ort_status *empty_bound(struct ort_session *s, const struct ort_run_options *o,
                                      const struct ort_io_binding *b)
{
    (void)s, (void)o, (void)b;
    return NULL;
}

static struct ort_status *empty_wait(struct ort_io_binding *b)
{
    (void)b;
    return NULL;
}

/* The whole way through the table of functions, around a run that does nothing; the fastest of some batches. */
uint64_t onnx_overhead_ns(struct instance *base)
{
    enum { BATCHES = 9, RUNS = 512 };
    struct onnx_instance *i = (struct onnx_instance *)base;
    ort_run_function *real = i->call_run;
    ort_run_bound_function *real_bound = i->call_bound;
    ort_wait_function *real_wait = i->call_wait;
    struct subject_cost cost = {0};
    uint64_t best = UINT64_MAX;
    bool loose = i->workers[0].any_loose;
    i->workers[0].any_loose = false;
    i->call_run = empty_run;
    i->call_bound = empty_bound;
    i->call_wait = empty_wait;
    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = clock_raw_ns();
        for (int k = 0; k < RUNS; k++) base->subject->ops->run(base, 0, &cost, NULL);
        uint64_t took = clock_raw_ns() - start;
        if (took < best) best = took;
    }
    i->call_run = real;
    i->call_bound = real_bound;
    i->call_wait = real_wait;
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
    if (!ort_done(o, o->call.GetTensorMutableData(v, &t.data))) return 0;
    if (t.type == ONNX_FLOAT) return bad_floats(t.data, n);
    for (uint64_t i = 0; i < n; i++) bad += !isfinite(tensor_value(&t, i));
    return bad;
}

/* Fragmentation is the share of what the arena holds that was never in use at once. Where the runtime does
 * not tell, the nearest cause is said: the arena off, the version, the allocator. */
static void report_arena(struct onnx_instance *i, struct run *run, struct run_case *c)
{
    struct ort_arena_use use;
    struct ort_arena_of host = {i->session, NULL};
    if (ort_arena_stats(i->ort, &host, &run->arena, &c->memory.arena, &use)) {
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

/* Of the session alone: other cases that are loaded beside it have their own. */
static void report_gpu_memory(struct onnx_instance *i, struct run *run, struct run_case *c)
{
    struct ort_arena_use use = {0};
    struct ort_arena_of device = {i->session, i->memory};
    if (!i->memory) return;
    if (ort_arena_stats(i->ort, &device, &run->arena, &c->memory.gpu_arena, &use) && use.most_used) {
        c->memory.known = true;
        c->memory.gpu_peak = known_u64(use.most_used);
        if (use.held) c->memory.gpu_held = known_u64(use.held);
        return;
    }
    const char *why = i->ort->api < 23 ? "ONNX Runtime tells allocator statistics from 1.23 on"
                                       : "the session's allocator on the GPU keeps no statistics";
    run_unknown(run, &c->unknown, "memory.gpu_peak", "%s", why);
    run_unknown(run, &c->unknown, "memory.gpu_held", "%s", why);
    run_unknown(run, &c->unknown, "memory.gpu_arena", "%s", why);
}

tare_status onnx_report(struct instance *base, struct run *run, struct run_case *c, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    uint64_t bad = 0;
    report_arena(i, run, c);
    report_gpu_memory(i, run, c);
    tare_status s = i->device ? onnx_bound_fetch(i, err) : TARE_OK;
    if (s < 0) return s;
    for (size_t k = 0; k < i->outputs.items.n; k++) bad += count_bad(i->ort, i->workers[0].out[k]);
    c->nan_outputs = known_u64(bad);
    if (i->placed) ort_placement(i->ort, i->session, &run->arena, &c->placement);
    return run->arena.failed ? error_set(err, TARE_NOMEM, "out of memory to report a case") : TARE_OK;
}

/* The runtime's values are overwritten by the next run: hence copies. *out is touched only when all of
 * them are there. */
tare_status onnx_copy_outputs(struct instance *base, struct tensor_set *out, tare_error *err)
{
    struct onnx_instance *i = (struct onnx_instance *)base;
    struct tensor_set set = TENSOR_SET_INIT;
    tare_status s = i->device ? onnx_bound_fetch(i, err) : TARE_OK;
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
