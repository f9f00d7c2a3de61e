/* SPDX-License-Identifier: MIT
 * bench_layers.c - `tare bench --layers`: after measuring, one more pass per case with the runtime's profiler on,
 * joined with what the graph costs. Whatever cannot be had is a warning and a reason in the document, never a failure:
 * the measurement itself was made already. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyze/layers/inspect.h"
#include "analyze/layers/layers.h"
#include "cli/bench/bench_args.h"
#include "cli/progress.h"
#include "core/mem.h"
#include "core/str.h"
#include "probe/gpu_record.h"
#include "probe/gpu_roof.h"
#include "probe/roof.h"
#include "subject/ort_session.h"
#include "subject/profiled.h"
#include "trace/reader.h"

enum { WARMUP_RUNS = 3, PROFILED_RUNS = 200 };

/* ---- the option ---- */

/* `--layers minilm.onnx` means the model and all layers; `--layers attention,mlp` means patterns. So a word that is an
 * option, a path or a file that is there is no value; `--layers=WORD` always is one. */
bool bench_layers_takes(const char *word)
{
    bool model = str_ends_with(word, ".onnx");
    return word[0] && word[0] != '-' && !model && !strchr(word, '/') && access(word, F_OK) != 0;
}

tare_status bench_layers_parse(void *args, const char *text, tare_error *err)
{
    struct bench_args *a = args;
    opt_list_release(&a->groups);
    if (opt_is_switch(text, &a->layers)) return TARE_OK;
    a->layers = true;
    if (!*text) return TARE_OK;
    tare_status s = opt_list_split(&a->groups, text, err);
    if (s < 0) return s;
    return a->groups.n ? TARE_OK : error_set(err, TARE_INVALID, "'%s' names no pattern", text);
}

/* ---- what graphs cost ---- */

struct profiling {
    struct cli *cli;
    const struct bench_args *a;
    struct run *run;
    struct run_case *c;
    struct profiled_pass pass;
    struct layers_shapes seen;
    struct inspected source, optimized;
    bool has_source, has_optimized;
    struct layers_gpu gpu; /* what the GPU did meanwhile */
    bool has_gpu;
};

/* The dimensions that this model has, as they were when it ran. */
static tare_status bind_dims(const struct profiling *l, const struct onnx_model *m, struct poly_binding **out,
                             size_t *n, tare_error *err)
{
    size_t k = 0;
    *out = mem_new(l->pass.dims.n, sizeof **out);
    if (!*out) return error_set(err, TARE_NOMEM, "out of memory for dimensions");
    for (size_t i = 0; i < l->pass.dims.n; i++) {
        const struct dim_value *d = &l->pass.dims.items[i];
        if (layers_has_dim(m, d->name)) (*out)[k++] = (struct poly_binding){d->name, d->value};
    }
    *n = k;
    return TARE_OK;
}

/* false: not known, and the user was told why. */
static bool cost_graph(struct profiling *l, struct inspected *out, const struct onnx_model *m,
                       const char *what)
{
    struct poly_binding *dims = NULL;
    struct inspect_options o = {.seen = l->seen.items, .n_seen = l->seen.n};
    tare_error why = TARE_ERROR_INIT;
    tare_status s = bind_dims(l, m, &dims, &o.n_dims, &why);
    o.dims = dims;
    if (s == TARE_OK) s = inspect_model(out, m, &o, &why);
    mem_free(dims);
    if (s == TARE_OK) return true;
    cli_warn(l->cli, "the cost of %s is unknown: %s", what, why.text);
    run_unknown(l->run, &l->c->unknown, "cost", "%s", why.text);
    return false;
}

static void cost_graphs(struct profiling *l)
{
    struct profiled_pass *p = &l->pass;
    const struct onnx_model *ran = p->has_optimized ? &p->optimized : &p->source;
    bool any = p->has_optimized || p->has_source;
    if (any && p->profile.events.n)
        layers_seen(&p->profile, ran, &l->run->arena, &l->seen, NULL); /* without: fewer shapes known */
    if (p->has_source)
        l->has_source = cost_graph(l, &l->source, &p->source, "the file's graph");
    else
        cli_warn(l->cli, "the file's graph cannot be read: %s", p->source_why);
    if (p->has_optimized)
        l->has_optimized = cost_graph(l, &l->optimized, &p->optimized, "the optimised graph");
    else
        cli_warn(l->cli, "the runtime did not give its optimised graph: %s", p->optimized_why);
}

/* Of the first case: its dimensions are told with it. */
static void record_graphs(struct profiling *l)
{
    struct run_subject *s = &l->run->subject;
    const struct inspected *ran = l->has_source ? &l->source : NULL;
    if (l->has_optimized) ran = &l->optimized;
    if (l->has_source && !s->as_file.known) inspect_record_static(&l->source, l->run, &s->as_file);
    if (l->has_optimized && !s->optimized.known) inspect_record_static(&l->optimized, l->run, &s->optimized);
    if (ran) l->c->cost = inspect_cost(ran, &ran->per_run);
}

/* ---- the roof ---- */

static unsigned threads_of(const struct run_case *c)
{
    const struct run_value *v = run_map_get(&c->params, "threads");
    return v && v->kind == RUN_INT && v->i > 0 && v->i <= ROOF_THREADS_MAX ? (unsigned)v->i : 1;
}

/* Of the GPU that the case ran on: the first one, as the runtime takes it. After the recording has ended, which would
 * make it slower. */
static void find_gpu_roof(struct profiling *l, const char *cache_dir)
{
    struct gpu_roof roof;
    struct gpu_roof_options o = {.cache_dir = cache_dir, .fingerprint = l->run->host.fingerprint};
    tare_error why = TARE_ERROR_INIT;
    if (gpu_roof_measure(&roof, &o, &why) == TARE_OK) {
        gpu_roof_record(&roof, l->run);
        return;
    }
    cli_warn(l->cli, "no roofline of the GPU: %s", why.text);
    run_unknown(l->run, &l->c->unknown, "layers.roof_share", "%s", why.text);
}

/* Measured once, for the threads of the first case; other cases of as many threads are held against it too. */
static void find_roof(struct profiling *l)
{
    char dir[4096];
    struct roof roof;
    tare_error why = TARE_ERROR_INIT;
    struct roof_options o = {.threads = threads_of(l->c), .fingerprint = l->run->host.fingerprint};
    if (cli_cache_dir(dir, sizeof dir)) o.cache_dir = dir;
    if (!l->run->roof.known) {
        if (roof_measure(&roof, &o, &why) == TARE_OK) {
            roof_record(&roof, l->run);
        } else {
            cli_warn(l->cli, "no roofline: %s", why.text);
            run_unknown(l->run, &l->c->unknown, "layers.roof_share", "%s", why.text);
        }
    }
    if (l->c->gpu.pass.known && !l->run->gpu_roof.known) find_gpu_roof(l, o.cache_dir);
    roofline_apply(l->run, l->c); /* rates and bounds of speed need no roof */
}

/* ---- one case ---- */

static void say_why(struct profiling *l, const char *why)
{
    run_unknown(l->run, &l->c->unknown, "layers", "%s", why);
    run_unknown(l->run, &l->c->unknown, "profile", "%s", why);
    if (!l->c->cost.known) run_unknown(l->run, &l->c->unknown, "cost", "%s", why);
}

/* The measurement stays good: only memory that ran out ends the whole. */
static tare_status go_without(struct profiling *l, tare_status s, const char *why)
{
    cli_warn(l->cli, "%s: no layers: %s", l->c->name, why);
    say_why(l, why);
    return s == TARE_NOMEM ? error_set(&l->cli->error, s, "%s", why) : TARE_OK;
}

static const char *const gpu_parts[] = {"gpu", "gpu.pass", "gpu.kernel_ns", "gpu.copy_ns", "gpu.copy_bytes"};

/* The harness said of all this that nobody asked for it. */
static void drop_reasons(struct profiling *l)
{
    struct run_map *u = &l->c->unknown;
    run_map_drop(u, "layers");
    run_map_drop(u, "profile");
    for (size_t i = 0; l->c->gpu.pass.known && i < sizeof gpu_parts / sizeof *gpu_parts; i++)
        run_map_drop(u, gpu_parts[i]);
    if (l->c->cost.known)
        run_map_drop(u, "cost");
    else if (!l->pass.has_source && !l->pass.has_optimized)
        run_unknown(l->run, u, "cost", "no graph could be read: %s", l->pass.source_why);
}

/* ---- the GPU ---- */

/* A record of the GPU while the pass runs: of cases that run on one. CUPTI comes into the process only now, after
 * everything was measured. */
struct gpu_taking {
    struct gpu_recording of;
    char folder[64], path[96];
    bool on;
};

static bool runs_on_gpu(const struct bench_case *bc)
{
    return ort_provider_memory(bc->params.provider) != NULL;
}

static void go_without_gpu(struct profiling *l, const char *why)
{
    cli_warn(l->cli, "%s: times of layers are those of the host, not of the GPU: %s", l->c->name, why);
    run_unknown(l->run, &l->c->unknown, l->c->gpu.known ? "gpu.pass" : "gpu", "%s", why);
    run_unknown(l->run, &l->c->unknown, "layers.gpu_ns", "%s", why);
}

static void start_gpu(struct profiling *l, struct gpu_taking *r, const struct bench_case *bc)
{
    tare_error why = TARE_ERROR_INIT;
    if (!runs_on_gpu(bc)) return;
    snprintf(r->folder, sizeof r->folder, "/tmp/tare-gpu-XXXXXX");
    if (!mkdtemp(r->folder)) {
        go_without_gpu(l, "no temporary folder in /tmp");
        return;
    }
    snprintf(r->path, sizeof r->path, "%s/layers.tare", r->folder);
    r->on = gpu_record_start(&r->of, NULL, r->path, &why) == TARE_OK;
    if (!r->on) go_without_gpu(l, why.text);
}

static tare_status read_gpu(struct profiling *l, const struct gpu_taking *r, tare_error *err)
{
    const struct profiled_pass *p = &l->pass;
    struct layers_window *windows = mem_new(p->windows.n, sizeof *windows);
    struct layers_gpu_source from = {.profile = &p->profile,
                                     .profile_start = p->profile_start_ns,
                                     .windows = windows,
                                     .n_windows = p->windows.n};
    tare_status s = windows ? trace_open(&from.trace, r->path, err) : error_nomem(err, "runs");
    for (size_t i = 0; s == TARE_OK && i < p->windows.n; i++)
        windows[i] = (struct layers_window){p->windows.items[i].start_ns, p->windows.items[i].end_ns,
                                            p->windows.items[i].profiled};
    if (s == TARE_OK) s = layers_gpu_read(&l->gpu, &from, err);
    trace_close(from.trace);
    mem_free(windows);
    return s;
}

static void end_gpu(struct profiling *l, struct gpu_taking *r, bool wanted)
{
    tare_error why = TARE_ERROR_INIT;
    if (r->on) {
        tare_status s = gpu_record_stop(&r->of, &why);
        if (s == TARE_OK && wanted) s = read_gpu(l, r, &why);
        l->has_gpu = s == TARE_OK && wanted;
        if (s < 0) go_without_gpu(l, why.text);
    }
    if (r->path[0]) unlink(r->path);
    if (r->folder[0]) rmdir(r->folder);
}

static tare_status join_layers(struct profiling *l, tare_error *err)
{
    const struct profiled_pass *p = &l->pass;
    struct layers_input in = {.profile = &p->profile,
                              .source_model = p->has_source ? &p->source : NULL,
                              .optimized_model = p->has_optimized ? &p->optimized : NULL,
                              .source = l->has_source ? &l->source : NULL,
                              .optimized = l->has_optimized ? &l->optimized : NULL,
                              .profiled = {p->profiled_ns.items, p->profiled_ns.n},
                              .plain = {p->plain_ns.items, p->plain_ns.n},
                              .gpu = l->has_gpu ? &l->gpu : NULL,
                              .skip_runs = p->warmup_runs};
    tare_status s = layers_join(l->run, l->c, &in, err);
    const struct opt_list *groups = &l->a->groups;
    if (s == TARE_OK)
        layers_group(l->run, l->c, groups->n ? (const char *const *)groups->items : NULL, groups->n);
    return s;
}

/* Costs first, then times: the join needs the shapes that only costing knows. The roof comes last, because it bounds
 * what was joined. */
static tare_status profile_case(struct profiling *l, const struct bench_case *bc)
{
    struct profiled_options o = {.params = bc->params,
                                 .folder = secure_getenv("TMPDIR"),
                                 .warmup_runs = WARMUP_RUNS,
                                 .runs = PROFILED_RUNS,
                                 .budget_ns = (uint64_t)l->a->budget.ns,
                                 .interrupted = &interrupted};
    tare_error why = TARE_ERROR_INIT;
    struct gpu_taking gpu = {0};
    start_gpu(l, &gpu, bc);
    tare_status s = profiled_run(&l->pass, bc->subject, &o, l->run, &why);
    end_gpu(l, &gpu, s == TARE_OK);
    if (s != TARE_OK) return go_without(l, s, why.text);
    cost_graphs(l);
    record_graphs(l);
    s = join_layers(l, &why);
    if (s != TARE_OK) return go_without(l, s, why.text);
    drop_reasons(l);
    find_roof(l);
    return TARE_OK;
}

/* Each case stands for itself: one that failed, or that an interrupt left without its turn, says so in the document. */
tare_status bench_layers(struct cli *cli, const struct bench_args *a, const struct grid_cases *cases,
                         struct run *run)
{
    struct progress shown = PROGRESS_INIT(cli);
    struct interrupt was;
    tare_status s = TARE_OK;
    sig_atomic_t before =
        interrupted; /* while measuring: who wanted an end then wants no pass of minutes now */
    interrupt_catch(&was);
    if (before) interrupted = before;
    for (size_t i = 0; s == TARE_OK && i < run->cases.n && i < cases->cases.n; i++) {
        struct profiling l = {.cli = cli,
                              .a = a,
                              .run = run,
                              .c = run->cases.at[i],
                              .pass = PROFILED_PASS_INIT,
                              .source = INSPECTED_INIT,
                              .optimized = INSPECTED_INIT,
                              .gpu = LAYERS_GPU_INIT};
        progress_at(&shown, "profiling layers", i, run->cases.n);
        if (run->cases.at[i]->failure)
            say_why(&l, "the case failed");
        else if (interrupted)
            say_why(&l, "interrupted before its layers were profiled");
        else
            s = profile_case(&l, &cases->cases.items[i]);
        inspected_release(&l.source);
        inspected_release(&l.optimized);
        profiled_release(&l.pass);
        layers_gpu_release(&l.gpu);
    }
    interrupt_restore(&was);
    progress_end(&shown);
    return s;
}
