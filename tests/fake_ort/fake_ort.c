/* SPDX-License-Identifier: MIT
 * fake_ort.c - see fake_ort.h. Slots above what the pretended version has end the process: tare must not call them. */
#include "fake_ort.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define UNUSED __attribute__((unused))

enum { SLOTS = 425 };

struct status {
    int code;
    char text[300];
};
struct options {
    int threads, level;
    bool no_arena, no_pattern, parallel, cuda;
};
struct session {
    struct fake_model model;
    struct options options;
    atomic_uint runs;
};
struct type_info {
    struct fake_io io;
};
struct value {
    int type;
    size_t rank, bytes;
    int64_t dims[FAKE_RANK];
    void *data;
    bool owned;
    bool on_device; /* its bytes are not for the host */
};
struct memory {
    int allocator;
    bool device;
};
struct binding {
    struct session *session;
    struct value *in[FAKE_IO], *out[FAKE_IO];
    bool to_device[FAKE_IO];
    bool waits; /* a run whose end nobody waited for yet */
};

/* ---- what every call may need ---- */

static struct status *fail(int code, const char *text)
{
    struct status *s = calloc(1, sizeof *s);
    s->code = code;
    snprintf(s->text, sizeof s->text, "%s", text);
    return s;
}

static void note(const char *what, const char *value)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const char *path = getenv("FAKE_ORT_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    pthread_mutex_lock(&lock);
    fprintf(f, "%s %s\n", what, value);
    fclose(f);
    pthread_mutex_unlock(&lock);
}

static void note_number(const char *what, long v)
{
    char text[32];
    snprintf(text, sizeof text, "%ld", v);
    note(what, text);
}

static void pass_time(unsigned us, bool spin)
{
    struct timespec start, now;
    if (us == 0) return;
    if (!spin) {
        struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
        while (nanosleep(&t, &t) < 0) {
        }
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < (long)us * 1000);
}

static char *copy(const char *s)
{
    return strdup(s);
}

static int get_code(const struct status *s)
{
    return s->code;
}
static const char *get_message(const struct status *s)
{
    return s->text;
}
static void release_any(void *p)
{
    free(p);
}

/* ---- environment and options ---- */

typedef void log_function(void *, int, const char *, const char *, const char *, const char *);

static struct status *create_env(log_function *log, void *param, int level, const char *id, void **out)
{
    (void)level;
    if (log) log(param, 2, "fake", id, "here", "the fake runtime warns for a test");
    *out = calloc(1, 16);
    return NULL;
}
static struct status *ok_env(const void *env)
{
    (void)env;
    return NULL;
}
static struct status *create_options(struct options **out)
{
    *out = calloc(1, sizeof **out);
    return NULL;
}
static struct status *make_run_options(void **out)
{
    *out = calloc(1, 16);
    return NULL;
}
static struct status *ok_run_options(const void *o)
{
    (void)o;
    return NULL;
}
static struct status *set_intra(struct options *o, int n)
{
    o->threads = n;
    note_number("intra_threads", n);
    return NULL;
}
static struct status *set_inter(struct options *o, int n)
{
    (void)o;
    note_number("inter_threads", n);
    return NULL;
}
static struct status *set_level(struct options *o, int n)
{
    o->level = n;
    note_number("optimization", n);
    return NULL;
}
static struct status *set_severity(struct options *o, int n)
{
    (void)o, (void)n;
    return NULL;
}
static struct status *no_arena(struct options *o)
{
    o->no_arena = true;
    note("arena", "off");
    return NULL;
}
static struct status *no_profiler(struct options *o, const char *prefix)
{
    (void)o, (void)prefix;
    return fail(9, "this runtime has no profiler");
}
static struct status *no_pattern(struct options *o)
{
    o->no_pattern = true;
    note("memory_pattern", "off");
    return NULL;
}
static struct status *set_mode(struct options *o, int n)
{
    o->parallel = n == 1;
    note_number("execution", n);
    return NULL;
}
static struct status *config_entry(struct options *o, const char *key, const char *value)
{
    char text[300];
    (void)o;
    if (strcmp(key, "session.refused") == 0) return fail(2, "Config key is refused");
    snprintf(text, sizeof text, "%s=%s", key, value);
    note("config", text);
    return NULL;
}
static struct status *free_dimension(struct options *o, const char *name, int64_t v)
{
    char text[200];
    (void)o;
    snprintf(text, sizeof text, "%s=%lld", name, (long long)v);
    note("override", text);
    return NULL;
}

/* ---- providers ---- */

static struct status *get_providers(char ***out, int *n)
{
    const char *list = getenv("FAKE_ORT_PROVIDERS");
    char text[400], *save = NULL;
    snprintf(text, sizeof text, "%s", list ? list : "CPUExecutionProvider");
    char **names = calloc(16, sizeof *names);
    *n = 0;
    for (char *p = strtok_r(text, ",", &save); p && *n < 16; p = strtok_r(NULL, ",", &save))
        names[(*n)++] = copy(p);
    *out = names;
    return NULL;
}
static struct status *free_providers(char **names, int n)
{
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
    return NULL;
}
static struct status *create_provider_options(void **out)
{
    *out = calloc(1, 16);
    return NULL;
}
static struct status *append_provider(struct options *o, const void *options)
{
    (void)options;
    if (getenv("FAKE_ORT_CUDA")) {
        o->cuda = true;
        note("provider", "cuda");
        return NULL;
    }
    return fail(11, "Failed to load library libonnxruntime_providers_cuda.so with error: no such file");
}
static struct status *append_named(struct options *o, const char *name, const char *const *keys,
                                   const char *const *values, size_t n)
{
    (void)o, (void)keys, (void)values, (void)n;
    char text[200];
    if (strcmp(name, "XNNPACK") == 0) {
        note("provider", name);
        return NULL;
    }
    snprintf(text, sizeof text, "%s execution provider is not enabled in this build.", name);
    return fail(2, text);
}

/* ---- sessions ---- */

static struct status *create_session(const void *env, const char *path, const struct options *o,
                                     struct session **out)
{
    (void)env;
    struct session *s = calloc(1, sizeof *s);
    s->options = *o;
    const char *bad = fake_model_read(&s->model, path);
    if (!bad && s->model.fail_load[0]) bad = s->model.fail_load;
    if (bad) {
        struct status *st = fail(strstr(bad, "Protobuf") ? 7 : strstr(bad, "exist") ? 3 : 1, bad);
        free(s);
        return st;
    }
    pass_time(s->model.load_us, s->model.spin);
    note("session", "created");
    *out = s;
    return NULL;
}
static void release_session(struct session *s)
{
    if (s) note("session", "released");
    free(s);
}
static struct status *input_count(const struct session *s, size_t *n)
{
    *n = s->model.n_in;
    return NULL;
}
static struct status *output_count(const struct session *s, size_t *n)
{
    *n = s->model.n_out;
    return NULL;
}
static struct status *info_of(const struct fake_io *io, struct type_info **out)
{
    *out = calloc(1, sizeof **out);
    (*out)->io = *io;
    return NULL;
}
static struct status *input_info(const struct session *s, size_t i, struct type_info **out)
{
    return info_of(&s->model.in[i], out);
}
static struct status *output_info(const struct session *s, size_t i, struct type_info **out)
{
    return info_of(&s->model.out[i], out);
}
static struct status *input_name(const struct session *s, size_t i, void *allocator, char **out)
{
    (void)allocator;
    *out = copy(s->model.in[i].name);
    return NULL;
}
static struct status *output_name(const struct session *s, size_t i, void *allocator, char **out)
{
    (void)allocator;
    *out = copy(s->model.out[i].name);
    return NULL;
}
static struct status *kind_of(const struct type_info *t, int *out)
{
    *out = t->io.kind;
    return NULL;
}
static struct status *cast_info(const struct type_info *t, const struct type_info **out)
{
    *out = t->io.kind == 1 ? t : NULL;
    return NULL;
}
static struct status *element_type(const struct type_info *t, int *out)
{
    *out = t->io.type;
    return NULL;
}
static struct status *dim_count(const struct type_info *t, size_t *n)
{
    *n = t->io.rank;
    return NULL;
}
static struct status *get_dims(const struct type_info *t, int64_t *out, size_t n)
{
    memcpy(out, t->io.dims, n * sizeof *out);
    return NULL;
}
static struct status *get_symbols(const struct type_info *t, const char **out, size_t n)
{
    for (size_t i = 0; i < n; i++) out[i] = t->io.symbols[i];
    return NULL;
}
static bool has_shape(const struct type_info *t)
{
    (void)t;
    return true;
}

/* ---- values ---- */

static struct status *memory_info(int allocator, int memory, void **out)
{
    (void)memory;
    struct memory *m = calloc(1, sizeof *m);
    m->allocator = allocator;
    *out = m;
    return NULL;
}
static struct status *named_memory(const char *name, int allocator, int device, int memory, void **out)
{
    (void)device, (void)memory;
    struct memory *m = calloc(1, sizeof *m);
    if (strcmp(name, "Cuda") != 0 && strcmp(name, "Cpu") != 0) {
        free(m);
        return fail(2, "Specified device is not supported.");
    }
    *m = (struct memory){allocator, strcmp(name, "Cuda") == 0};
    *out = m;
    return NULL;
}
static struct status *default_allocator(void **out)
{
    static int it;
    *out = &it;
    return NULL;
}
static struct status *allocator_free(void *allocator, void *p)
{
    (void)allocator;
    free(p);
    return NULL;
}
static struct status *tensor_with_data(const void *info, void *data,
                                       size_t bytes, /* the interface's own arguments */
                                       const int64_t *dims, size_t rank, int type, struct value **out)
{
    (void)info;
    size_t want = fake_type_bytes(type);
    for (size_t i = 0; i < rank; i++) want *= (size_t)dims[i];
    if (want != bytes || rank > FAKE_RANK) return fail(2, "not enough space for the tensor");
    struct value *v = calloc(1, sizeof *v);
    *v = (struct value){.type = type, .rank = rank, .bytes = bytes, .data = data};
    memcpy(v->dims, dims, rank * sizeof *dims);
    *out = v;
    return NULL;
}
static void release_value(struct value *v)
{
    if (v && v->owned) free(v->data);
    free(v);
}
static struct status *value_kind(const struct value *v, int *out)
{
    (void)v;
    *out = 1;
    return NULL;
}
static struct status *has_value(const struct value *v, int *out)
{
    *out = v != NULL;
    return NULL;
}
static struct status *value_data(struct value *v, void **out)
{
    if (v->on_device) return fail(1, "fake_ort: the host looks into the device's memory");
    *out = v->data;
    return NULL;
}
static struct status *value_info(const struct value *v, struct type_info **out)
{
    struct fake_io io = {.kind = 1, .type = v->type, .rank = v->rank};
    memcpy(io.dims, v->dims, sizeof io.dims);
    return info_of(&io, out);
}

/* ---- running ---- */

/* The value that a name of the model's inputs has in this run; 1 when no input has it. */
static int64_t bound_dim(const struct fake_model *m, const char *symbol, const struct value *const *in)
{
    for (size_t i = 0; i < m->n_in; i++) {
        for (size_t d = 0; d < m->in[i].rank; d++) {
            if (strcmp(m->in[i].symbols[d], symbol) == 0) return in[i]->dims[d];
        }
    }
    return 1;
}

static struct status *check_input(const struct fake_io *io, const struct value *v)
{
    char text[200];
    bool good = v->type == io->type && v->rank == io->rank;
    for (size_t d = 0; good && d < io->rank; d++) good = io->dims[d] < 0 || io->dims[d] == v->dims[d];
    if (good) return NULL;
    snprintf(text, sizeof text, "Got invalid dimensions for input: %s", io->name);
    return fail(2, text);
}

static unsigned sum_inputs(const struct fake_model *m, const struct value *const *in)
{
    unsigned sum = 0;
    for (size_t i = 0; i < m->n_in; i++) {
        for (size_t k = 0; k < in[i]->bytes; k++) sum += ((const uint8_t *)in[i]->data)[k];
    }
    return sum % 251;
}

static void put_element(struct value *v, size_t k, double x)
{
    void *d = v->data;
    switch (v->type) {
    case 1: ((float *)d)[k] = (float)x; break;
    case 11: ((double *)d)[k] = x; break;
    case 7: ((int64_t *)d)[k] = (int64_t)x; break;
    case 6: ((int32_t *)d)[k] = (int32_t)x; break;
    default: ((uint8_t *)d)[k] = (uint8_t)(int64_t)x; break;
    }
}

static struct status *write_output(const struct session *s, size_t o, unsigned run,
                                   const struct value *const *in, struct value **out)
{
    const struct fake_model *m = &s->model;
    const struct fake_io *io = &m->out[o];
    struct value want = {
        .type = io->type, .rank = io->rank, .bytes = fake_type_bytes(io->type), .owned = true};
    for (size_t d = 0; d < io->rank; d++) {
        want.dims[d] = io->dims[d] >= 0 ? io->dims[d] : bound_dim(m, io->symbols[d], in);
        if (d == 0 && o == 0 && m->shape_change && run >= m->shape_change) want.dims[d]++;
        want.bytes *= (size_t)want.dims[d];
    }
    if (*out && memcmp((*out)->dims, want.dims, sizeof want.dims) != 0) {
        return fail(1, "OrtValue shape verification failed. Current shape and requested shape differ");
    }
    if (!*out) {
        want.data = calloc(1, want.bytes + 8);
        *out = malloc(sizeof want);
        **out = want;
    }
    unsigned sum = sum_inputs(m, in);
    size_t n = fake_type_bytes(io->type) ? want.bytes / fake_type_bytes(io->type) : 0;
    for (size_t k = 0; k < n; k++)
        put_element(*out, k, o == 0 && k < m->nan ? (double)NAN : sum + (double)k + 1000.0 * (double)o);
    return NULL;
}

static void grow(const struct fake_model *m)
{
    static void *volatile kept; /* never freed, but reachable: a leak that leak checkers do not see */
    if (!m->grow_kib) return;
    void **block = malloc((size_t)m->grow_kib << 10);
    memset(block, 1, (size_t)m->grow_kib << 10);
    *block = kept;
    kept = block;
}

/* What `times` lines say of this session and this batch: the product of all that fit. */
static double factor_of(const struct session *s, int64_t batch)
{
    const struct options *o = &s->options;
    const struct {
        const char *knob;
        long value;
    } is[] = {{"threads", o->threads},       {"optimization", o->level},     {"parallel", o->parallel},
              {"no_arena", o->no_arena},     {"no_pattern", o->no_pattern},  {"batch", (long)batch},
              {"cuda", o->cuda}};
    double f = 1;
    for (size_t i = 0; i < s->model.n_times; i++)
        for (size_t k = 0; k < sizeof is / sizeof *is; k++)
            if (strcmp(s->model.times[i].knob, is[k].knob) == 0 && s->model.times[i].value == is[k].value)
                f *= s->model.times[i].factor;
    return f;
}

/* A kernel that dies of this configuration, as one that runs out of memory does. */
static void maybe_die(const struct session *s, int64_t batch)
{
    if (s->model.die_batch && batch >= (int64_t)s->model.die_batch) abort();
}

static void take_time(const struct session *s, unsigned run, int64_t batch)
{
    const struct fake_model *m = &s->model;
    unsigned us = m->n_schedule ? m->schedule[(run - 1) % m->n_schedule] : 0;
    us = (unsigned)(us * factor_of(s, batch));
    if (run <= m->slow_runs) us *= m->slow_factor;
    if (run == 1) us += m->first_us;
    pass_time(us, m->spin);
}

static struct status *run_session(struct session *s,
                                  const void *options UNUSED, /* the interface's own arguments */
                                  const char *const *in_names, const struct value *const *in, size_t n_in,
                                  const char *const *out_names, size_t n_out, struct value **out)
{
    const struct fake_model *m = &s->model;
    unsigned run = atomic_fetch_add(&s->runs, 1) + 1;
    struct status *st =
        n_in != m->n_in || n_out != m->n_out ? fail(2, "wrong number of inputs or outputs") : NULL;
    for (size_t i = 0; !st && i < n_in; i++) {
        if (strcmp(in_names[i], m->in[i].name) != 0) st = fail(2, "Invalid Feed Input Name");
        if (!st) st = check_input(&m->in[i], in[i]);
    }
    if (!st && m->fail_run && run == m->fail_run)
        st = fail(6, "Non-zero status code returned while running Fake node.");
    if (st) return st;
    int64_t batch = n_in && in[0]->rank ? in[0]->dims[0] : 1;
    maybe_die(s, batch);
    take_time(s, run, batch);
    grow(m);
    for (size_t o = 0; !st && o < n_out; o++) {
        st = strcmp(out_names[o], m->out[o].name) != 0 ? fail(2, "Invalid Output Name")
                                                       : write_output(s, o, run, in, &out[o]);
    }
    return st;
}

/* ---- binding: inputs are copied when they are bound, outputs are written again until they are bound anew ---- */

static struct status *create_binding(struct session *s, struct binding **out)
{
    *out = calloc(1, sizeof **out);
    (*out)->session = s;
    return NULL;
}
static void release_binding(struct binding *b)
{
    for (size_t i = 0; i < FAKE_IO; i++) {
        release_value(b->in[i]);
        release_value(b->out[i]);
    }
    free(b);
}
static int io_named(const struct fake_io *io, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(io[i].name, name) == 0) return (int)i;
    return -1;
}
static struct status *bind_input(struct binding *b, const char *name, const struct value *v)
{
    int at = io_named(b->session->model.in, b->session->model.n_in, name);
    if (at < 0) return fail(2, "Invalid Feed Input Name");
    struct value *mine = malloc(sizeof *mine);
    *mine = *v;
    mine->data = malloc(v->bytes + 8);
    memcpy(mine->data, v->data, v->bytes);
    mine->owned = mine->on_device = true;
    release_value(b->in[at]);
    b->in[at] = mine;
    note("bind", name);
    return NULL;
}
static struct status *bind_output(struct binding *b, const char *name, const struct memory *to)
{
    int at = io_named(b->session->model.out, b->session->model.n_out, name);
    if (at < 0) return fail(2, "Invalid Output Name");
    release_value(b->out[at]);
    b->out[at] = NULL;
    b->to_device[at] = to->device;
    return NULL;
}
static struct status *run_bound(struct session *s, const void *options, struct binding *b)
{
    const struct fake_model *m = &s->model;
    const char *in[FAKE_IO], *out[FAKE_IO];
    if (!options) return fail(2, "run options are not optional here");
    if (b->waits) return fail(1, "fake_ort: the run before was not waited for");
    for (size_t i = 0; i < m->n_in; i++) in[i] = m->in[i].name;
    for (size_t i = 0; i < m->n_out; i++) out[i] = m->out[i].name;
    struct status *st = run_session(s, options, in, (const struct value *const *)b->in, m->n_in, out, m->n_out,
                                    b->out);
    for (size_t i = 0; i < m->n_out; i++)
        if (b->out[i]) b->out[i]->on_device = b->to_device[i];
    b->waits = !st;
    note("run", b->to_device[0] ? "device" : "host");
    return st;
}
static struct status *wait_outputs(struct binding *b)
{
    b->waits = false;
    return NULL;
}
static struct status *wait_inputs(struct binding *b)
{
    (void)b;
    return NULL;
}
static struct status *bound_values(const struct binding *b, void *allocator, struct value ***out, size_t *n)
{
    (void)allocator;
    *n = b->session->model.n_out;
    *out = calloc(*n + 1, sizeof **out);
    for (size_t i = 0; i < *n; i++) {
        if (!b->out[i]) continue;
        struct value *v = malloc(sizeof *v);
        *v = *b->out[i];
        v->data = malloc(v->bytes + 8);
        memcpy(v->data, b->out[i]->data, v->bytes);
        (*out)[i] = v;
    }
    return NULL;
}

/* ---- allocator statistics, placement ---- */

static struct status *create_allocator(const struct session *s, const void *info, void **out)
{
    (void)s, (void)info;
    *out = calloc(1, 16);
    return NULL;
}
static struct status *allocator_stats(const void *allocator, void **out)
{
    (void)allocator;
    *out = calloc(1, 16);
    return NULL;
}
static void key_values(const void *kv, const char *const **keys, const char *const **values, size_t *n)
{
    static const char *const k[] = {"InUse", "TotalAllocated", "MaxInUse", "NumAllocs", "Odd"};
    static const char *const v[] = {"1000", "4000", "3000", "17", "not a number"};
    (void)kv;
    *keys = k;
    *values = v;
    *n = 5;
}
static struct status *placement(const struct session *s, const void *const **out, size_t *n)
{
    static const int graphs[2];
    static const void *const all[] = {&graphs[0], &graphs[1]};
    (void)s;
    *out = all;
    *n = 2;
    return NULL;
}
static struct status *placement_name(const void *graph, const char **out)
{
    (void)graph;
    *out = "CUDAExecutionProvider";
    return NULL;
}
static struct status *placement_nodes(const void *graph, const void *const **out, size_t *n)
{
    (void)graph;
    *out = NULL;
    *n = 3;
    return NULL;
}
static const char *build_info(void)
{
    return "fake build";
}

/* ---- the table ---- */

static void beyond(void)
{
    fputs("fake_ort: a slot beyond this version, or one that the fake does not have, was called\n", stderr);
    abort();
}

typedef void any_function(void);
#define AT(slot, function) [slot] = (any_function *)(function)
static any_function *const implemented[SLOTS] = {
    AT(1, get_code),          AT(2, get_message),       AT(93, release_any),      AT(4, create_env),
    AT(6, ok_env),            AT(92, release_any),      AT(7, create_session),    AT(95, release_session),
    AT(9, run_session),       AT(10, create_options),   AT(100, release_any),     AT(19, no_arena),
    AT(17, no_pattern),       AT(13, set_mode),         AT(14, no_profiler),      AT(11, no_profiler),
    AT(22, set_severity),     AT(23, set_level),        AT(24, set_intra),        AT(25, set_inter),
    AT(124, free_dimension),  AT(130, config_entry),    AT(125, get_providers),   AT(126, free_providers),
    AT(204, append_provider), AT(205, create_provider_options), AT(208, release_any),
    AT(170, append_provider), AT(171, create_provider_options), AT(174, release_any),
    AT(216, append_named),    AT(30, input_count),      AT(31, output_count),     AT(33, input_info),
    AT(34, output_info),      AT(36, input_name),       AT(37, output_name),      AT(56, kind_of),
    AT(55, cast_info),        AT(98, release_any),      AT(99, release_any),      AT(60, element_type),
    AT(61, dim_count),        AT(62, get_dims),         AT(63, get_symbols),      AT(390, has_shape),
    AT(39, make_run_options), AT(97, release_any),      AT(46, ok_run_options),   AT(47, ok_run_options),
    AT(68, named_memory),     AT(133, run_bound),       AT(134, create_binding),  AT(135, release_binding),
    AT(136, bind_input),      AT(138, bind_output),     AT(140, bound_values),    AT(202, wait_inputs),
    AT(203, wait_outputs),
    AT(69, memory_info),      AT(94, release_any),      AT(78, default_allocator), AT(76, allocator_free),
    AT(131, create_allocator), AT(132, release_any),    AT(319, allocator_stats), AT(298, key_values),
    AT(300, release_any),     AT(49, tensor_with_data), AT(67, value_kind),       AT(192, has_value),
    AT(51, value_data),       AT(65, value_info),       AT(96, release_value),    AT(407, placement),
    AT(408, placement_name),  AT(409, placement_nodes), AT(254, build_info),
};

/* Last slot of each API version, as in the real releases. */
static const int last_slot[] = {0,   101, 118, 124, 126, 149, 157, 161, 169, 191, 203,
                                209, 218, 224, 238, 254, 265, 275, 279, 279, 284, 284,
                                317, 389, 414, 418, 418, 421, 423, 424, 424};

static const char *version(void)
{
    const char *v = getenv("FAKE_ORT_VERSION");
    return v ? v : "1.99.0";
}

static const void *get_api(uint32_t api)
{
    static any_function *table[SLOTS];
    long minor = strtol(version() + 2, NULL, 10);
    if (api == 0 || (long)api > minor) {
        fputs("fake_ort: an API version that this library does not have was asked for\n", stderr);
        return NULL;
    }
    int last = minor <= 30 ? last_slot[minor] : SLOTS - 1;
    for (int i = 0; i < SLOTS; i++) table[i] = i <= last && implemented[i] ? implemented[i] : beyond;
    return table;
}

struct api_base {
    const void *(*get_api)(uint32_t);
    const char *(*version)(void);
};

EXPORT const struct api_base *OrtGetApiBase(void);
const struct api_base *OrtGetApiBase(void)
{
    static const struct api_base base = {get_api, version};
    return &base;
}
