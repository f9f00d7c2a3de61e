/* SPDX-License-Identifier: MIT
 * onnx_subject.c - an ONNX model as a subject: finds a runtime, reads from the file what inputs must look like, and
 * describes both for the document. Holds neither the model nor its mapping while cases are measured. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "model/infer/infer.h"
#include "subject/onnx_model.h"

/* ---- describing ---- */

static tare_status hash_fd(int fd, EVP_MD_CTX *md, const char *path, tare_error *err)
{
    enum { PART = 1 << 18 };
    unsigned char *part = mem_new(PART, 1);
    if (!part) return error_set(err, TARE_NOMEM, "%s: out of memory to hash it", path);
    tare_status s = TARE_OK;
    for (;;) {
        ssize_t n = read(fd, part, PART);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) s = error_errno(err, "%s", path);
        if (n <= 0) break;
        EVP_DigestUpdate(md, part, (size_t)n);
    }
    mem_free(part);
    return s;
}

/* The file alone, in parts: weights in other files are not in it. */
tare_status subject_hash_file(const char *path, char out[65], tare_error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return error_errno(err, "%s", path);
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    tare_status s = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL)
                        ? hash_fd(fd, md, path, err)
                        : error_set(err, TARE_NOMEM, "%s: out of memory to hash it", path);
    if (s == TARE_OK) {
        EVP_DigestFinal_ex(md, digest, &n);
        for (unsigned i = 0; i < n; i++) snprintf(out + 2 * (size_t)i, 3, "%02x", digest[i]);
    }
    EVP_MD_CTX_free(md);
    close(fd);
    return s;
}

static void describe_runtime(struct onnx_subject *s, struct run *run)
{
    struct arena *a = &run->arena;
    struct run_map m = {0};
    run_map_text(a, &m, "library", s->ort->path);
    run_map_text(a, &m, "version", s->ort->version);
    run_map_text(a, &m, "found_by", s->found_by);
    if (s->ort->call.GetBuildInfoString) run_map_text(a, &m, "build", s->ort->call.GetBuildInfoString());
    ort_describe_providers(s->ort, a, &m);
    run_map_set(a, &run->config, "onnxruntime", (struct run_value){.kind = RUN_MAP, .items = m});
}

/* The hash is made once: runs of several cases describe the same file. */
static tare_status onnx_describe(struct subject *base, struct run *run, tare_error *err)
{
    struct onnx_subject *s = (struct onnx_subject *)base;
    struct arena *a = &run->arena;
    tare_status st = s->sha256[0] ? TARE_OK : subject_hash_file(s->path, s->sha256, err);
    if (st < 0) return st;
    run->subject.type = "onnx";
    run_describe_model(run, s->path);
    run->subject.sha256 = arena_str(a, s->sha256);
    run->subject.size_bytes = known_u64(s->file_bytes);
    run->subject.runtime = (struct run_runtime){true, "onnxruntime", arena_str(a, s->ort->version)};
    describe_runtime(s, run);
    run_map_text(a, &run->config, "inputs", s->inputs_path ? s->inputs_path : "generated");
    if (s->reader_says[0]) run_map_text(a, &run->config, "model_unread", s->reader_says);
    struct run_value *list = NULL;
    if (s->config.n)
        list = run_map_set(a, &run->config, "session_config", (struct run_value){.kind = RUN_LIST});
    for (size_t i = 0; list && i < s->config.n; i++) run_map_text(a, &list->items, NULL, s->config.items[i]);
    return a->failed ? error_set(err, TARE_NOMEM, "out of memory to describe %s", s->path) : TARE_OK;
}

static int64_t onnx_units(const struct instance *i)
{
    int64_t batch = ((const struct onnx_instance *)i)->batch;
    return batch > 0 ? batch : 1;
}

static void onnx_close_subject(struct subject *base)
{
    struct onnx_subject *s = (struct onnx_subject *)base;
    guard_stop(&s->guard);
    ort_close(s->ort);
    vec_release(&s->limits);
    vec_release(&s->config);
    tensor_set_release(&s->files);
    arena_release(&s->texts);
    mem_free(s);
}

static bool onnx_is_lost(struct instance *base)
{
    return ((const struct onnx_instance *)base)->overdue;
}

static const struct subject_ops onnx_ops = {
    .type = "onnx",
    .describe = onnx_describe,
    .prepare = onnx_prepare,
    .run = onnx_run,
    .report = onnx_report,
    .outputs = onnx_copy_outputs,
    .units = onnx_units,
    .finish = onnx_finish,
    .close = onnx_close_subject,
    .overhead_ns = onnx_overhead_ns,
    .is_lost = onnx_is_lost,
};

/* ---- opening ---- */

static tare_status copy_limits(struct onnx_subject *s, const struct onnx_model *m, tare_error *err)
{
    size_t n = m->graph.inputs.n;
    struct infer_bound *bounds = mem_new(n, sizeof *bounds);
    tare_status st =
        bounds ? infer_input_bounds(m, bounds, n, err) : error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; st == TARE_OK && i < n; i++) {
        if (bounds[i].limit <= 0) continue;
        struct dim_value limit = {arena_str(&s->texts, m->graph.inputs.items[i].name), bounds[i].limit};
        st = vec_push(&s->limits, limit, err);
    }
    mem_free(bounds);
    return st == TARE_OK && s->texts.failed ? error_nomem(err, "names of inputs") : st;
}

/* A file that the runtime refuses too is refused now, with both reasons; one that only we refuse is run. */
static tare_status ask_runtime(struct onnx_subject *s, tare_error *err)
{
    struct ort_session_spec spec = onnx_session_spec(s);
    struct ort_session *session = NULL;
    tare_error why = TARE_ERROR_INIT;
    spec.optimization = 0;
    tare_status st = onnx_load(s, &spec, &session, &why);
    if (st == TARE_FORMAT && strstr(s->reader_says, "is not an ONNX model"))
        return error_set(err, st, "%s", s->reader_says);
    if (st < 0) return error_set(err, st, "%s (and tare's own reader: %s)", why.text, s->reader_says);
    s->ort->call.ReleaseSession(session);
    return TARE_OK;
}

static bool is_initializer(const struct onnx_graph *g, const char *name)
{
    for (size_t i = 0; i < g->initializers.n; i++)
        if (strcmp(g->initializers.items[i].name, name) == 0) return true;
    return false;
}

/* Before any file with data is looked at: what is in it is no tensor either, and would be called damaged. */
static tare_status check_kinds(const struct onnx_subject *s, const struct onnx_model *m, tare_error *err)
{
    for (size_t i = 0; i < m->graph.inputs.n; i++) {
        const struct onnx_value *v = &m->graph.inputs.items[i];
        bool tensor = !*v->kind || strcmp(v->kind, "tensor") == 0;
        if ((tensor && v->type != ONNX_STRING) || is_initializer(&m->graph, v->name)) continue;
        return error_set(err, TARE_UNSUPPORTED, "%s: input '%.80s' is %s: %s inputs are not supported",
                         s->path, v->name, tensor ? "a tensor of text" : "no tensor",
                         tensor ? "text" : v->kind);
    }
    return TARE_OK;
}

static tare_status read_model(struct onnx_subject *s, tare_error *err)
{
    struct onnx_model m = ONNX_MODEL_INIT;
    tare_error why = TARE_ERROR_INIT;
    tare_status st = onnx_open(&m, s->path, &why);
    if (st == TARE_NOMEM || st == TARE_IO) return error_set(err, st, "%s", why.text);
    if (st < 0) {
        snprintf(s->reader_says, sizeof s->reader_says, "%.199s", why.text);
        return TARE_OK; /* the runtime will be asked */
    }
    s->weight_type = m.weight_type;
    st = check_kinds(s, &m, err);
    if (st == TARE_OK) st = copy_limits(s, &m, err);
    onnx_close(&m);
    return st;
}

static tare_status find_runtime(struct onnx_subject *s, const struct onnx_options *o, tare_error *err)
{
    struct ort_places places = o->places ? *o->places : (struct ort_places){0};
    struct ort_candidates found = ORT_CANDIDATES_INIT;
    if (o->runtime) places.chosen = o->runtime;
    tare_status st = ort_open_found(&s->ort, &places, &found, err);
    for (size_t i = 0; st == TARE_OK && i < found.items.n; i++) {
        if (strcmp(found.items.items[i].path, s->ort->path) == 0) s->found_by = found.items.items[i].source;
    }
    ort_candidates_release(&found);
    return st;
}

static tare_status start_guard(struct onnx_subject *s, const struct guard_options *o, tare_error *err)
{
    struct guard_options named = *o;
    named.name = s->path;
    tare_status st = guard_start(&s->guard, s->ort, &named, err);
    return st == TARE_OK ? guard_add(&s->guard, &s->loading, err) : st;
}

static tare_status copy_options(struct onnx_subject *s, const struct onnx_options *o, tare_error *err)
{
    s->optimization = o->optimization;
    s->no_arena = o->no_arena;
    s->no_pattern = o->no_pattern;
    s->parallel = o->parallel;
    s->fix_dims = o->fix_dims;
    s->path = arena_str(&s->texts, o->path);
    s->inputs_path = arena_str(&s->texts, o->inputs);
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < o->n_session_config; i++)
        st = vec_push(&s->config, arena_str(&s->texts, o->session_config[i]), err);
    return s->texts.failed ? error_nomem(err, "%s", o->path) : st;
}

static tare_status check_file(struct onnx_subject *s, tare_error *err)
{
    struct stat st;
    if (stat(s->path, &st) < 0) return error_errno(err, "%s", s->path);
    if (S_ISDIR(st.st_mode))
        return error_set(err, TARE_INVALID, "%s: a folder, not a model: name the .onnx file in it", s->path);
    if (!S_ISREG(st.st_mode)) return error_set(err, TARE_INVALID, "%s: no regular file", s->path);
    if (st.st_size == 0) return error_set(err, TARE_FORMAT, "%s: the file is empty", s->path);
    s->file_bytes = (uint64_t)st.st_size;
    return TARE_OK;
}

/* In the order in which a user wants to hear: the file, its inputs, then the runtime. */
tare_status subject_open_onnx(struct subject **out, const struct onnx_options *o, tare_error *err)
{
    struct onnx_subject *s = mem_new(1, sizeof *s);
    if (!s) return error_set(err, TARE_NOMEM, "out of memory to open %s", o->path);
    s->base.ops = &onnx_ops;
    tare_status st = copy_options(s, o, err);
    if (st == TARE_OK) st = check_file(s, err);
    if (st == TARE_OK) st = read_model(s, err);
    if (st == TARE_OK && o->inputs) st = tensor_load(&s->files, o->inputs, TENSOR_INPUTS, err);
    if (st == TARE_OK) st = find_runtime(s, o, err);
    /* A file that is no model is worse than no runtime. */
    if (st < 0 && st != TARE_NOMEM && s->reader_says[0])
        st = error_set(err, TARE_FORMAT, "%s (and there is no ONNX Runtime that could say more)",
                       s->reader_says);
    if (st == TARE_OK) st = start_guard(s, &o->guard, err);
    if (st == TARE_OK && s->reader_says[0]) st = ask_runtime(s, err);
    if (st < 0) {
        onnx_close_subject(&s->base);
        return st;
    }
    *out = &s->base;
    return TARE_OK;
}
