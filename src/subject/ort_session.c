/* SPDX-License-Identifier: MIT
 * ort_session.c - see ort_session.h: making a session, and providers. What comes out of one is in ort_value.c. */
#include "subject/ort_session.h"

#include <time.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fmt.h"
#include "core/mem.h"
#include "model/profile/ort_profile.h"

/* ---- providers ---- */

struct provider_row {
    const char *short_name, *name;
    const char *append;  /* its name for the generic append; NULL: none needed, or a function of its own */
    const char *library; /* beside the runtime; NULL: compiled in */
    const char *memory;  /* what the runtime calls its memory, where that is not the host's */
};

static const struct provider_row providers[] = {
    {"cpu", "CPUExecutionProvider", NULL, NULL, NULL},
    {"cuda", "CUDAExecutionProvider", NULL, "libonnxruntime_providers_cuda.so", "Cuda"},
    {"tensorrt", "TensorrtExecutionProvider", NULL, "libonnxruntime_providers_tensorrt.so", "Cuda"},
    {"rocm", "ROCMExecutionProvider", "ROCM", "libonnxruntime_providers_rocm.so", NULL},
    {"migraphx", "MIGraphXExecutionProvider", "MIGraphX", "libonnxruntime_providers_migraphx.so", NULL},
    {"openvino", "OpenVINOExecutionProvider", "OpenVINO", "libonnxruntime_providers_openvino.so", NULL},
    {"dnnl", "DnnlExecutionProvider", "DNNL", "libonnxruntime_providers_dnnl.so", NULL},
    {"qnn", "QNNExecutionProvider", "QNN", "libonnxruntime_providers_qnn.so", NULL},
    {"xnnpack", "XnnpackExecutionProvider", "XNNPACK", NULL, NULL},
    {"webgpu", "WebGpuExecutionProvider", "WebGPU", NULL, NULL},
    {"acl", "ACLExecutionProvider", "ACL", NULL, NULL},
    {"azure", "AzureExecutionProvider", "AZURE", NULL, NULL},
};
enum { N_PROVIDERS = sizeof providers / sizeof *providers };

static const struct provider_row *find_provider(const char *name)
{
    for (size_t i = 0; i < N_PROVIDERS; i++) {
        if (strcasecmp(name, providers[i].short_name) == 0 || strcasecmp(name, providers[i].name) == 0)
            return &providers[i];
    }
    return NULL;
}

const char *ort_provider_short(const char *name)
{
    const struct provider_row *row = find_provider(name);
    return row ? row->short_name : NULL;
}

const char *ort_provider_memory(const char *provider)
{
    const struct provider_row *row = provider ? find_provider(provider) : NULL;
    return row ? row->memory : NULL;
}

typedef struct ort_status *append_function(struct ort_session_options *, const struct ort_provider_options *);

/* CUDA and TensorRT have options of their own, made and released around the call. */
static struct ort_status *append_with_options(struct ort_session_options *so, append_function *append,
                                              struct ort_status *(*make)(struct ort_provider_options **),
                                              void (*release)(struct ort_provider_options *))
{
    struct ort_provider_options *opts = NULL;
    struct ort_status *st = make(&opts);
    if (!st) st = append(so, opts);
    if (opts) release(opts);
    return st;
}

/* Bounded text of what the library has, for the error of what it has not. */
static void list_providers(const struct ort *o, char *out, size_t size)
{
    char **names = NULL;
    int n = 0;
    size_t len = 0;
    out[0] = 0;
    if (!ort_done(o, o->call.GetAvailableProviders(&names, &n))) return;
    for (int i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", names[i]);
    ort_done(o, o->call.ReleaseAvailableProviders(names, n));
}

/* CUDA and TensorRT have calls of their own for their options; all others go by name. The CPU provider is
 * always there and cannot be added. What the library has is asked first, for the error text. */
static tare_status append_provider(const struct ort *o, struct ort_session_options *so, const char *name,
                                   tare_error *err)
{
    const struct provider_row *row = find_provider(name);
    char have[200];
    if (row && strcmp(row->short_name, "cpu") == 0) return TARE_OK;
    list_providers(o, have, sizeof have);
    struct ort_status *st;
    if (row && strcmp(row->short_name, "cuda") == 0 && o->call.AppendCuda)
        st = append_with_options(so, o->call.AppendCuda, o->call.CreateCudaOptions,
                                 o->call.ReleaseCudaOptions);
    else if (row && strcmp(row->short_name, "tensorrt") == 0 && o->call.AppendTensorrt)
        st = append_with_options(so, o->call.AppendTensorrt, o->call.CreateTensorrtOptions,
                                 o->call.ReleaseTensorrtOptions);
    else if (o->call.AppendProvider)
        st = o->call.AppendProvider(so, row && row->append ? row->append : name, NULL, NULL, 0);
    else
        return error_set(err, TARE_UNSUPPORTED,
                         "provider '%s': ONNX Runtime %s is too old to take one by name", name, o->version);
    bool gpu = strcmp(name, "cuda") == 0 || strcmp(name, "tensorrt") == 0;
    tare_status s = ort_check(o, st, err, "provider '%s' cannot be used (this library has: %s%s)", name, have,
                              gpu ? "; pip install onnxruntime-gpu has it" : "");
    if (s < 0 && err) err->status = TARE_UNSUPPORTED;
    return s < 0 ? TARE_UNSUPPORTED : TARE_OK;
}

/* Whether the provider's library lies beside the runtime. */
static bool library_there(const struct ort *o, const char *library)
{
    char path[PATH_MAX];
    const char *slash = strrchr(o->path, '/');
    if (!slash) return true; /* found by ld.so: unknown */
    int n = snprintf(path, sizeof path, "%.*s/%s", (int)(slash - o->path), o->path, library);
    return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0;
}

static void describe_provider(const struct ort *o, struct arena *a, struct run_map *list, const char *name)
{
    const struct provider_row *row = find_provider(name);
    struct run_value *v = run_map_set(a, list, NULL, (struct run_value){.kind = RUN_MAP});
    if (!v) return;
    run_map_text(a, &v->items, "name", name);
    if (row && strcmp(row->short_name, "cpu") == 0) {
        run_map_text(a, &v->items, "state", "usable");
    } else if (row && row->library && !library_there(o, row->library)) {
        run_map_text(a, &v->items, "state", "absent");
        run_map_textf(a, &v->items, "why", "compiled in, but %s is not beside the runtime", row->library);
    } else {
        run_map_text(a, &v->items, "state", "untried");
    }
}

void ort_describe_providers(const struct ort *o, struct arena *a, struct run_map *config)
{
    char **names = NULL;
    int n = 0;
    if (!ort_done(o, o->call.GetAvailableProviders(&names, &n))) return;
    struct run_value *list = run_map_set(a, config, "providers", (struct run_value){.kind = RUN_LIST});
    for (int i = 0; list && i < n; i++) describe_provider(o, a, &list->items, names[i]);
    ort_done(o, o->call.ReleaseAvailableProviders(names, n));
}

/* ---- options ---- */

static tare_status add_config(const struct ort *o, struct ort_session_options *so, const char *key,
                              const char *value, tare_error *err)
{
    return ort_check(o, o->call.AddSessionConfigEntry(so, key, value), err, "session option %s=%s", key,
                     value);
}

static tare_status add_config_entries(const struct ort *o, struct ort_session_options *so,
                                      const struct ort_session_spec *spec, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < spec->n_config; i++) {
        char key[200];
        const char *entry = spec->config[i], *equals = strchr(entry, '=');
        if (!equals || equals == entry || (size_t)(equals - entry) >= sizeof key)
            return error_set(err, TARE_INVALID, "session option '%s' is not KEY=VALUE", entry);
        snprintf(key, sizeof key, "%.*s", (int)(equals - entry), entry);
        s = add_config(o, so, key, equals + 1, err);
    }
    return s;
}

/* Threads of an idle session spin for a while, which costs its neighbours. 1.12 and up can stop them after each run,
 * which leaves the run itself as it is; before that, they may not spin at all. */
static tare_status stop_spinning(const struct ort *o, struct ort_session_options *so, tare_error *err)
{
    if (o->minor >= 12) return add_config(o, so, "session.force_spinning_stop", "1", err);
    return add_config(o, so, "session.intra_op.allow_spinning", "0", err);
}

static tare_status set_dims(const struct ort *o, struct ort_session_options *so,
                            const struct ort_session_spec *spec, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < spec->n_fixed; i++) {
        const struct dim_value *d = &spec->fixed[i];
        s = ort_check(o, o->call.AddFreeDimensionOverrideByName(so, d->name, d->value), err, "dimension '%s'",
                      d->name);
    }
    return s;
}

/* The graph as optimised, and the profiler. Keys that an older runtime does not know it keeps without effect. */
static tare_status set_records(const struct ort *o, struct ort_session_options *so,
                               const struct case_records *r, tare_error *err)
{
    tare_status s = TARE_OK;
    if (r->optimized)
        s = ort_check(o, o->call.SetOptimizedModelFilePath(so, r->optimized), err, "optimised graph");
    if (s == TARE_OK && r->optimized && r->weights) {
        s = add_config(o, so, "session.optimized_model_external_initializers_file_name", r->weights, err);
        if (s == TARE_OK)
            s = add_config(o, so, "session.optimized_model_external_initializers_min_size_in_bytes", "1024",
                           err);
    }
    if (s == TARE_OK && r->profile)
        s = ort_check(o, o->call.EnableProfiling(so, r->profile), err, "profiler");
    return s;
}

static bool is_cpu(const struct ort_session_spec *spec)
{
    return !spec->provider || strcasecmp(spec->provider, "cpu") == 0;
}

/* The user's own entries come after ours, so that they win. Every step names what it sets, since the
 * runtime's messages often do not. */
static tare_status set_options(const struct ort *o, struct ort_session_options *so,
                               const struct ort_session_spec *spec, tare_error *err)
{
    int level = spec->optimization < 0 ? 99 : spec->optimization;
    if (level > 2 && level != 99)
        return error_set(err, TARE_INVALID, "optimisation level %d: there are 0, 1, 2 and 99 (all)", level);
    tare_status s = ort_check(o, o->call.SetSessionLogSeverityLevel(so, 3), err, "log level");
    if (s == TARE_OK) s = ort_check(o, o->call.SetIntraOpNumThreads(so, (int)spec->threads), err, "threads");
    int nodes = spec->parallel ? (int)spec->threads : 1;
    if (s == TARE_OK) s = ort_check(o, o->call.SetInterOpNumThreads(so, nodes), err, "inter-op threads");
    if (s == TARE_OK && spec->parallel)
        s = ort_check(o, o->call.SetSessionExecutionMode(so, ORT_PARALLEL), err, "execution mode");
    if (s == TARE_OK)
        s = ort_check(o, o->call.SetSessionGraphOptimizationLevel(so, level), err, "optimisation level %d",
                      level);
    if (s == TARE_OK && spec->no_arena) s = ort_check(o, o->call.DisableCpuMemArena(so), err, "arena");
    if (s == TARE_OK && spec->no_pattern)
        s = ort_check(o, o->call.DisableMemPattern(so), err, "memory pattern");
    if (s == TARE_OK && spec->no_spin) s = stop_spinning(o, so, err);
    if (s == TARE_OK && !is_cpu(spec) && o->minor >= 24)
        s = add_config(o, so, "session.record_ep_graph_assignment_info", "1", err);
    if (s == TARE_OK) s = add_config_entries(o, so, spec, err);
    if (s == TARE_OK) s = set_dims(o, so, spec, err);
    if (s == TARE_OK) s = set_records(o, so, &spec->records, err);
    if (s == TARE_OK && !is_cpu(spec)) s = append_provider(o, so, spec->provider, err);
    return s;
}

tare_status ort_session_open(const struct ort *o, const struct ort_session_spec *spec,
                             struct ort_session **out, tare_error *err)
{
    struct ort_session_options *so = NULL;
    struct ort_session *session = NULL;
    tare_status s = ort_check(o, o->call.CreateSessionOptions(&so), err, "%s: session options", spec->model);
    if (s == TARE_OK) s = set_options(o, so, spec, err);
    if (s == TARE_OK) {
        struct ort_status *st =
            spec->bytes ? o->call.CreateSessionFromArray(o->env, spec->bytes, spec->n_bytes, so, &session)
                        : o->call.CreateSession(o->env, spec->model, so, &session);
        s = ort_check(o, st, err, "%s", spec->model);
    }
    if (so) o->call.ReleaseSessionOptions(so);
    if (s < 0) return s;
    *out = session;
    return TARE_OK;
}

tare_status ort_session_profile(const struct ort *o, struct ort_session *session, struct ort_profile *out,
                                tare_error *err)
{
    struct ort_allocator *allocator = NULL;
    char *file = NULL;
    tare_status s =
        ort_check(o, o->call.GetAllocatorWithDefaultOptions(&allocator), err, "the default allocator");
    if (s == TARE_OK)
        s = ort_check(o, o->call.SessionEndProfiling(session, allocator, &file), err, "the profile's end");
    if (s < 0) return s;
    if (!file) return error_set(err, TARE_UNSUPPORTED, "the runtime names no profile");
    s = ort_profile_load(out, file, err);
    unlink(file);
    ort_done(o, o->call.AllocatorFree(allocator, file));
    return s;
}

/* ---- a runtime that does not come back ---- */

#define LOOK_NS 100000000ull
#define RUN_MOST_NS 600000000000ull   /* without --timeout: a Loop may have 2^62 turns, and nobody waits for them */
#define LOAD_MOST_NS 3600000000000ull /* likewise */
#define GRACE_NS 1000000000ull /* after an interrupt: a run of usual length ends by itself */
#define DEAF_NS 5000000000ull  /* after it was asked to end */

/* Shall this run end, or go on after all? */
static void ask_to_end(const struct ort_guard *g, struct guarded *c, bool end)
{
    const struct ort_calls *call = &g->ort->call;
    ort_done(g->ort, (end ? call->RunOptionsSetTerminate : call->RunOptionsUnsetTerminate)(c->run));
    c->asked = end;
}

/* Why this call should not go on; false: it may. Loading cannot be asked, and ending the process would lose what was
 * measured before it: a user who wants that interrupts twice. */
static bool is_overdue(const struct ort_guard *g, struct guarded *c, uint64_t lasted, uint64_t stopping)
{
    if (c->run && stopping > GRACE_NS && lasted > GRACE_NS) {
        snprintf(c->why, sizeof c->why, "interrupted");
        return true;
    }
    uint64_t most = g->o.timeout_ns;
    if (!most) most = c->run ? RUN_MOST_NS : LOAD_MOST_NS;
    if (lasted <= most) return false;
    snprintf(c->why, sizeof c->why, "takes longer than %s%s%s", g->o.timeout_ns ? "--timeout " : "",
             show_time((double)most).s, g->o.timeout_ns ? "" : " (see --timeout)");
    return true;
}

static void end_call(struct ort_guard *g, struct guarded *c, uint64_t lasted)
{
    if (c->run && !c->asked) {
        ask_to_end(g, c, true);
        c->since_ns += lasted; /* from now on: how long it is deaf */
    } else if (g->o.give_up && (!c->run || lasted > DEAF_NS)) {
        char text[600];
        snprintf(text, sizeof text, "%.400s: %s: %s", g->o.name, c->run ? "a run" : "loading", c->why);
        g->o.give_up(g->o.ctx, text);
    }
}

static void look_at(struct ort_guard *g, struct guarded *c, uint64_t now, uint64_t stopping)
{
    uint32_t calls = atomic_load_explicit(&c->calls, memory_order_acquire);
    if (calls % 2 == 0 || calls != c->seen) {
        c->seen = calls;
        c->since_ns = now;
        if (c->asked) ask_to_end(g, c, false); /* it ended by itself just then */
        return;
    }
    if (c->asked || is_overdue(g, c, now - c->since_ns, stopping)) end_call(g, c, now - c->since_ns);
}

static void *watch_calls(void *arg)
{
    struct ort_guard *g = arg;
    uint64_t asked_to_stop = 0;
    while (!atomic_load(&g->stop)) {
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
        uint64_t now = clock_raw_ns();
        bool stopping = g->o.interrupted && *g->o.interrupted;
        if (!stopping || !asked_to_stop) asked_to_stop = stopping ? now : 0;
        pthread_mutex_lock(&g->lock);
        for (size_t i = 0; i < g->all.n; i++)
            look_at(g, g->all.items[i], now, stopping ? now - asked_to_stop : 0);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

/* The user's signals are for the thread that measures. */
tare_status guard_start(struct ort_guard *g, const struct ort *ort, const struct guard_options *o,
                        tare_error *err)
{
    sigset_t all, was;
    if (!o->timeout_ns && !o->interrupted) return TARE_OK;
    g->ort = ort;
    g->o = *o;
    pthread_mutex_init(&g->lock, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int failed = pthread_create(&g->thread, NULL, watch_calls, g);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    g->started = !failed;
    return failed ? error_set(err, TARE_DENIED, "no thread to watch the runtime with") : TARE_OK;
}

void guard_stop(struct ort_guard *g)
{
    if (!g->started) return;
    atomic_store(&g->stop, true);
    pthread_join(g->thread, NULL);
    pthread_mutex_destroy(&g->lock);
    vec_release(&g->all);
    g->started = false;
}

tare_status guard_add(struct ort_guard *g, struct guarded *c, tare_error *err)
{
    if (!g->started) return TARE_OK;
    pthread_mutex_lock(&g->lock);
    tare_status s = vec_push(&g->all, c, err);
    pthread_mutex_unlock(&g->lock);
    return s;
}

void guard_remove(struct ort_guard *g, struct guarded *c)
{
    if (!g->started) return;
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->all.n; i++)
        if (g->all.items[i] == c) g->all.items[i--] = g->all.items[--g->all.n];
    pthread_mutex_unlock(&g->lock);
}

bool guard_ended(struct ort_guard *g, struct guarded *c, char *why, size_t size)
{
    if (!g->started) return false;
    pthread_mutex_lock(&g->lock);
    bool ended = c->asked;
    snprintf(why, size, "%s", c->why);
    if (ended) ask_to_end(g, c, false);
    pthread_mutex_unlock(&g->lock);
    return ended;
}
