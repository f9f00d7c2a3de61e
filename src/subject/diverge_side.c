/* SPDX-License-Identifier: MIT
 * diverge_side.c - see diverge_parts.h. Never writes a file: the model with more outputs exists in memory only. */
#include "subject/diverge_parts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "model/onnx/onnx_write.h"

/* ---- the graph ---- */

static tare_status index_graph(struct diverge_side *s, tare_error *err)
{
    const struct onnx_graph *g = &s->model.graph;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < g->nodes.n; i++) {
        const struct onnx_node *n = &g->nodes.items[i];
        for (size_t k = 0; st == TARE_OK && k < n->outputs.n; k++) {
            const char *name = n->outputs.items[k];
            if (*name) st = map_str_put(&s->producers, name, strlen(name), i, err);
        }
    }
    for (size_t i = 0; st == TARE_OK && i < g->outputs.n; i++) {
        const char *name = g->outputs.items[i].name;
        st = map_str_put(&s->outputs, name, strlen(name), i, err);
    }
    return st;
}

enum { FOLDER_SINCE = 21 }; /* minor version of the runtime that has the option */

/* A model given as bytes has no folder of its own: external data is found through this option. */
static tare_status set_config(struct diverge_side *s, tare_error *err)
{
    char real[PATH_MAX];
    struct buf b = BUF_INIT;
    const struct onnx_graph *g = &s->model.graph;
    bool external = false;
    for (size_t i = 0; i < g->initializers.n; i++) external |= g->initializers.items[i].external != NULL;
    if (external && s->subject->ort->minor < FOLDER_SINCE)
        return error_set(
            err, TARE_UNSUPPORTED,
            "%s: its weights are in another file, which needs ONNX Runtime 1.%d or newer here; this is %s",
            s->subject->path, FOLDER_SINCE, s->subject->ort->version);
    if (!realpath(s->subject->path, real)) return error_errno(err, "%s", s->subject->path);
    *strrchr(real, '/') = 0;
    buf_printf(&b, "session.model_external_initializers_file_folder_path=%s", *real ? real : "/");
    s->folder = buf_take(&b);
    if (!s->folder) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < s->subject->config.n; i++)
        st = vec_push(&s->config, s->subject->config.items[i], err);
    return st == TARE_OK ? vec_push(&s->config, s->folder, err) : st;
}

tare_status diverge_side_open(struct diverge_side *s, const struct onnx_options *o,
                              const struct case_params *p, tare_error *err)
{
    struct subject *subject = NULL;
    tare_status st = subject_open_onnx(&subject, o, err);
    if (st < 0) return st;
    s->subject = (struct onnx_subject *)subject;
    s->provider = p->provider;
    st = onnx_open(&s->model, o->path, err);
    if (st == TARE_OK) st = index_graph(s, err);
    if (st == TARE_OK) st = set_config(s, err);
    if (st == TARE_OK)
        st = ort_check(s->subject->ort,
                       s->subject->ort->call.CreateCpuMemoryInfo(ORT_ALLOCATOR_ARENA, 0, &s->cpu), err,
                       "memory description");
    return st;
}

void diverge_side_close(struct diverge_side *s)
{
    for (size_t i = 0; i < s->values.n; i++) s->subject->ort->call.ReleaseValue(s->values.items[i]);
    if (s->cpu) s->subject->ort->call.ReleaseMemoryInfo(s->cpu);
    vec_release(&s->values);
    vec_release(&s->names);
    vec_release(&s->config);
    mem_free(s->folder);
    tensor_set_release(&s->inputs);
    map_str_release(&s->producers);
    map_str_release(&s->outputs);
    onnx_close(&s->model);
    if (s->subject) subject_close(&s->subject->base);
    *s = (struct diverge_side)DIVERGE_SIDE_INIT;
}

/* ---- inputs ---- */

static tare_status make_values(struct diverge_side *s, tare_error *err)
{
    const struct ort *o = s->subject->ort;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < s->inputs.items.n; i++) {
        const struct tensor *t = &s->inputs.items.items[i];
        struct ort_value *v = NULL;
        st = ort_value_over(o, s->cpu, t, &v, err);
        if (st == TARE_OK) st = vec_push(&s->values, v, err);
        if (st < 0 && v) o->call.ReleaseValue(v);
        if (st == TARE_OK) st = vec_push(&s->names, t->name, err);
    }
    return st;
}

/* The inputs are those that a bench of the same case would get, made by the same code; the session around
 * them is dropped at once. The number of threads is fixed here for all sessions to come: another one may
 * round otherwise. */
tare_status diverge_side_make_inputs(struct diverge_side *s, const struct case_params *p, tare_error *err)
{
    struct run run;
    struct run_map params = {0};
    struct instance *base = NULL;
    tare_status st = run_init(&run, "inspect", err);
    if (st < 0) return st;
    st = onnx_prepare(&s->subject->base, p, &(struct case_record){&run, &params}, &base, err);
    if (st == TARE_OK) {
        struct onnx_worker *w = &((struct onnx_instance *)base)->workers[0];
        s->inputs = w->inputs; /* ours from now on */
        w->inputs = (struct tensor_set)TENSOR_SET_INIT;
        onnx_finish(base);
    }
    s->threads = p->threads > 0 ? p->threads : onnx_thread_budget(&run);
    run_release(&run);
    return st == TARE_OK ? make_values(s, err) : st;
}

static bool converts(int from, int to)
{
    bool whole = (from == ONNX_INT32 || from == ONNX_INT64) && (to == ONNX_INT32 || to == ONNX_INT64);
    return from == to || whole || (tensor_is_float(from) && tensor_is_float(to));
}

static tare_status share_input(struct diverge_side *s, const struct tensor *t, int type, tare_error *err)
{
    struct tensor copy;
    tare_status st = tensor_make(&copy, &(struct tensor_spec){t->name, type, t->dims, t->rank}, err);
    if (st < 0) return st;
    if (type == t->type) memcpy(copy.data, t->data, t->bytes);
    for (uint64_t i = 0, n = type == t->type ? 0 : tensor_elements(t); i < n; i++)
        tensor_set_value(&copy, i, tensor_value(t, i));
    return tensor_set_take(&s->inputs, &copy, err);
}

/* Both sides must see the same numbers, or every difference would be one of the inputs. A half-precision
 * twin gets them rounded to its type; a kind that cannot hold them is refused. */
tare_status diverge_side_share_inputs(struct diverge_side *s, const struct diverge_side *with,
                                      tare_error *err)
{
    const struct onnx_graph *g = &s->model.graph;
    const char *path = s->subject->path, *other = with->subject->path;
    tare_status st = TARE_OK;
    s->threads = with->threads;
    for (size_t i = 0; st == TARE_OK && i < g->inputs.n; i++) {
        const struct onnx_value *v = &g->inputs.items[i];
        const struct tensor *t = tensor_find(&with->inputs, v->name);
        if (!t)
            st = error_set(err, TARE_INVALID, "%s: its input '%s' is not among those of %s", path, v->name,
                           other);
        else if (!converts(t->type, v->type))
            st = error_set(err, TARE_INVALID, "%s: its input '%s' is %s, but %s in %s", path, v->name,
                           onnx_type_name(v->type), onnx_type_name(t->type), other);
        else
            st = share_input(s, t, v->type, err);
    }
    return st == TARE_OK ? make_values(s, err) : st;
}

/* ---- values ---- */

/* Values that are outputs already need no addition. The model's bytes may go once the session is made. */
static tare_status open_session(const struct diverge_side *s, const char *const *names, size_t n,
                                struct ort_session **out, tare_error *err)
{
    struct onnx_amended model = ONNX_AMENDED_INIT;
    const char **more = mem_new(n, sizeof *more);
    size_t n_more = 0;
    if (!more) return error_set(err, TARE_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (!map_str_find(&s->outputs, names[i], strlen(names[i]))) more[n_more++] = names[i];
    tare_status st = onnx_amend_outputs(&model, s->subject->path, more, n_more, err);
    if (st == TARE_OK) {
        struct ort_session_spec spec = onnx_session_spec(s->subject);
        spec.bytes = model.bytes;
        spec.n_bytes = model.n;
        spec.threads = s->threads;
        spec.provider = s->provider;
        spec.config = s->config.items;
        spec.n_config = s->config.n;
        st = ort_session_open(s->subject->ort, &spec, out, err);
    }
    onnx_amended_release(&model);
    mem_free(more);
    return st;
}

struct fetching {
    const char *const *names;
    size_t n;
    struct ort_value **values;
    struct tensor *out;
};

/* Releases each value as soon as it is copied. */
static tare_status copy_values(const struct ort *o, const struct fetching *f, tare_error *err)
{
    tare_status st = TARE_OK;
    for (size_t i = 0; i < f->n; i++) {
        f->out[i] = (struct tensor){0};
        if (!f->values[i]) continue;
        if (st == TARE_OK) {
            st = ort_value_copy(o, f->values[i], f->names[i], &f->out[i], err);
            if (st < 0) f->out[i] = (struct tensor){0};
            if (st == TARE_UNSUPPORTED) st = TARE_OK;
        }
        o->call.ReleaseValue(f->values[i]);
    }
    for (size_t i = 0; st < 0 && i < f->n; i++)
        if (f->out[i].data) tensor_release(&f->out[i]);
    return st;
}

static tare_status run_session(const struct diverge_side *s, struct ort_session *session,
                               const struct fetching *f, tare_error *err)
{
    const struct ort *o = s->subject->ort;
    const struct ort_value *const *in = (const struct ort_value *const *)s->values.items;
    return ort_check(o,
                     o->call.Run(session, NULL, s->names.items, in, s->values.n, f->names, f->n, f->values),
                     err, "running %s", s->subject->path);
}

tare_status diverge_side_fetch(const struct diverge_side *s, const char *const *names, size_t n,
                               struct tensor *out, tare_error *err)
{
    struct ort_session *session = NULL;
    struct fetching f = {names, n, mem_new(n, sizeof(struct ort_value *)), out};
    if (!f.values) return error_set(err, TARE_NOMEM, "out of memory");
    tare_status st = open_session(s, names, n, &session, err);
    if (st == TARE_OK) st = run_session(s, session, &f, err);
    if (st == TARE_OK) st = copy_values(s->subject->ort, &f, err);
    if (session) s->subject->ort->call.ReleaseSession(session);
    mem_free(f.values);
    return st;
}
