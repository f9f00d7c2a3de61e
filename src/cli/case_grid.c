/* SPDX-License-Identifier: MIT
 * case_grid.c - see case_grid.h. */
#include "cli/case_grid.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "subject/ort_session.h"

enum { CASES_MAX = 4096, VALUES_MAX = 256, THREADS_MAX = 4096 };

/* ---- reading lists ---- */

static tare_status one_int(const char *text, size_t n, int64_t *out, tare_error *err)
{
    char digits[24], *end;
    if (n == 0) return error_set(err, TARE_INVALID, "expected numbers separated by commas: 1,8,32");
    if (n >= sizeof digits) return error_set(err, TARE_INVALID, "'%.*s' is too large", (int)n, text);
    memcpy(digits, text, n);
    digits[n] = 0;
    errno = 0;
    long long v = strtoll(digits, &end, 10);
    if (*end || errno || digits[0] == '+' || digits[0] == ' ')
        return error_set(err, TARE_INVALID, "'%s' is not a whole number%s", digits,
                         strpbrk(digits, "-:.") ? "; write them all, with commas: 1,2,4,8" : "");
    if (v < 1) return error_set(err, TARE_INVALID, "%lld: at least 1", v);
    *out = v;
    return TARE_OK;
}

/* A value that is named twice is refused: it would be one case, measured twice under the same name. */
tare_status grid_parse_ints(void *ints, const char *text, tare_error *err)
{
    struct grid_ints *out = ints;
    vec_clear(&out->values); /* a later option replaces an earlier one */
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        int64_t v = 0;
        tare_status s = one_int(p, n, &v, err);
        if (s != TARE_OK) return s;
        for (size_t i = 0; i < out->values.n; i++)
            if (out->values.items[i] == v)
                return error_set(err, TARE_INVALID, "%" PRId64 " is named twice", v);
        if (out->values.n == VALUES_MAX)
            return error_set(err, TARE_INVALID, "more than %d values", VALUES_MAX);
        if ((s = vec_push(&out->values, v, err)) != TARE_OK) return s;
        p += n;
        if (!*p) return TARE_OK;
    }
}

tare_status grid_parse_dim(void *grid, const char *text, tare_error *err)
{
    struct grid *s = grid;
    const char *eq = strchr(text, '=');
    if (!eq || eq == text) return error_set(err, TARE_INVALID, "expected NAME=VALUE, as in batch_size=8");
    struct grid_dim d = {.name = arena_str_n(&s->arena, text, (size_t)(eq - text))};
    if (!d.name) return error_nomem(err, "a dimension");
    tare_status status = grid_parse_ints(&d.values, eq + 1, err);
    for (size_t i = 0; i < s->dims.n && status == TARE_OK; i++)
        if (strcmp(s->dims.items[i].name, d.name) == 0)
            status = error_set(err, TARE_INVALID, "%s is named twice", d.name);
    if (status == TARE_OK) status = vec_push(&s->dims, d, err);
    if (status != TARE_OK) vec_release(&d.values.values);
    return status;
}

/* Words between commas, each once, into `out`; `usual` is said where there is none. */
static tare_status parse_words(struct grid *s, grid_words *out, const char *text, const char *usual,
                               tare_error *err)
{
    vec_clear(out); /* a later option replaces an earlier one */
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (n == 0) return error_set(err, TARE_INVALID, "expected names separated by commas: %s", usual);
        const char *word = arena_str_n(&s->arena, p, n);
        tare_status status = word ? vec_push(out, word, err) : error_nomem(err, "a name");
        if (status != TARE_OK) return status;
        p += n;
        if (!*p) return TARE_OK;
    }
}

tare_status grid_parse_providers(void *grid, const char *text, tare_error *err)
{
    struct grid *s = grid;
    return parse_words(s, &s->providers, text, "cpu,cuda", err);
}

tare_status grid_parse_ios(void *grid, const char *text, tare_error *err)
{
    struct grid *s = grid;
    tare_status status = parse_words(s, &s->ios, text, IO_HOST "," IO_GPU, err);
    for (size_t i = 0; status == TARE_OK && i < s->ios.n; i++) {
        const char *word = s->ios.items[i];
        if (strcmp(word, IO_HOST) != 0 && strcmp(word, IO_GPU) != 0)
            status = error_set(err, TARE_INVALID, "'%s' is neither " IO_HOST " nor " IO_GPU, word);
        if (i && strcmp(word, s->ios.items[0]) == 0)
            status = error_set(err, TARE_INVALID, "%s is named twice", word);
    }
    return status;
}

/* ---- combining ---- */

/* Position in every axis; an axis that was not asked for has one value, "not set". */
struct odometer {
    size_t at[6], size[6]; /* subject, provider, io, threads, seq, batch; dims count in dim_at */
    VEC(size_t) dim_at;
};
enum { SUBJECT, PROVIDER, IO, THREADS, SEQ, BATCH };

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static int64_t value_at(const struct grid_ints *v, size_t i)
{
    return v->values.n ? v->values.items[i] : 0;
}

static void add_part(struct buf *name, const char *key, const char *value)
{
    buf_printf(name, "%s%s=%s", name->len ? "," : "", key, value);
}

static void add_number(struct buf *name, const char *key, int64_t value)
{
    if (value) buf_printf(name, "%s%s=%" PRId64, name->len ? "," : "", key, value);
}

/* A walk over all combinations. */
struct building {
    const struct grid *asked;
    const struct grid_subject *subjects;
    struct grid_cases *out;
    struct odometer at;
    tare_error *err;
};

static tare_status name_case(struct building *w, struct bench_case *c, const struct grid_subject *subject)
{
    struct buf name = BUF_INIT;
    add_number(&name, "batch", c->params.batch);
    add_number(&name, "seq", c->params.seq);
    for (size_t i = 0; i < c->params.n_dims; i++)
        add_number(&name, c->params.dims[i].name, c->params.dims[i].value);
    add_number(&name, "threads", c->params.threads);
    if (w->asked->providers.n) add_part(&name, "provider", c->params.provider);
    if (w->asked->ios.n) add_part(&name, "io", c->params.io);
    if (subject->variant) add_part(&name, "variant", subject->variant);
    if (subject->runtime) add_part(&name, "runtime", subject->runtime);
    if (!name.len) buf_add_str(&name, "default");
    c->name = name.failed ? NULL : arena_str(&w->out->arena, name.data);
    buf_release(&name);
    return c->name ? TARE_OK : error_nomem(w->err, "a case");
}

static tare_status case_dims(struct building *w, struct case_params *p)
{
    const struct grid *g = w->asked;
    if (!g->dims.n) return TARE_OK;
    struct dim_value *v = arena_new(&w->out->arena, g->dims.n, sizeof *v);
    if (!v) return error_nomem(w->err, "a case");
    for (size_t i = 0; i < g->dims.n; i++)
        v[i] = (struct dim_value){g->dims.items[i].name,
                                  g->dims.items[i].values.values.items[w->at.dim_at.items[i]]};
    p->dims = v;
    p->n_dims = g->dims.n;
    return TARE_OK;
}

/* Nothing but a GPU can keep inputs and outputs on a GPU: of `--provider cpu,cuda --io host,gpu` the processor has
 * one. */
static bool has_place(const struct case_params *p)
{
    return !p->io || strcmp(p->io, IO_GPU) != 0 || ort_provider_memory(p->provider);
}

/* The combination that the odometer shows. */
static tare_status add_case(struct building *w)
{
    const struct grid *g = w->asked;
    const struct odometer *o = &w->at;
    if (w->out->cases.n == CASES_MAX) return error_set(w->err, TARE_INVALID, "more than %d cases", CASES_MAX);
    const struct grid_subject *subject = &w->subjects[o->at[SUBJECT]];
    struct bench_case c = {.subject = subject->subject};
    c.params.provider = g->providers.n ? g->providers.items[o->at[PROVIDER]] : NULL;
    c.params.io = g->ios.n ? g->ios.items[o->at[IO]] : NULL;
    if (!has_place(&c.params)) return TARE_OK;
    c.params.variant = subject->variant;
    c.params.threads = value_at(&g->threads, o->at[THREADS]);
    c.params.seq = value_at(&g->seq, o->at[SEQ]);
    c.params.batch = value_at(&g->batch, o->at[BATCH]);
    c.params.workers = g->workers;
    c.params.seed = g->seed;
    tare_status status = case_dims(w, &c.params);
    if (status == TARE_OK) status = name_case(w, &c, subject);
    return status == TARE_OK ? vec_push(&w->out->cases, c, w->err) : status;
}

/* The next combination, batch turning fastest. False: all were seen. */
static bool turn(const struct grid *s, struct odometer *o)
{
    for (int axis = BATCH; axis >= SEQ; axis--) {
        if (++o->at[axis] < o->size[axis]) return true;
        o->at[axis] = 0;
    }
    for (size_t i = s->dims.n; i-- > 0;) {
        if (++o->dim_at.items[i] < s->dims.items[i].values.values.n) return true;
        o->dim_at.items[i] = 0;
    }
    for (int axis = THREADS; axis >= SUBJECT; axis--) {
        if (++o->at[axis] < o->size[axis]) return true;
        o->at[axis] = 0;
    }
    return false;
}

/* Two cases of one name could not be told apart in the answer. */
static tare_status check_names(const struct grid_cases *s, tare_error *err)
{
    for (size_t i = 1; i < s->cases.n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->cases.items[i].name, s->cases.items[k].name) == 0)
                return error_set(
                    err, TARE_INVALID,
                    "two cases would be called %s: a variant, runtime or provider is named twice",
                    s->cases.items[i].name);
    return TARE_OK;
}

tare_status grid_build(const struct grid *asked, const struct grid_subject *subjects, size_t n,
                       struct grid_cases *out, tare_error *err)
{
    struct building w = {.asked = asked, .subjects = subjects, .out = out, .err = err};
    w.at =
        (struct odometer){.size = {n, at_least_one(asked->providers.n), at_least_one(asked->ios.n),
                                   at_least_one(asked->threads.values.n), at_least_one(asked->seq.values.n),
                                   at_least_one(asked->batch.values.n)}};
    tare_status status = TARE_OK;
    for (size_t i = 0; i < asked->dims.n && status == TARE_OK; i++)
        status = vec_push(&w.at.dim_at, (size_t)0, err);
    do {
        if (status == TARE_OK) status = add_case(&w);
    } while (status == TARE_OK && turn(asked, &w.at));
    if (status == TARE_OK && !out->cases.n)
        status = error_set(err, TARE_INVALID,
                           "--io " IO_GPU " needs a provider with memory of its own, as in --provider cuda");
    for (size_t i = 0; i < out->cases.n; i++) out->cases.items[i].params.has_neighbours = out->cases.n > 1;
    vec_release(&w.at.dim_at);
    return status == TARE_OK ? check_names(out, err) : status;
}

void grid_cases_release(struct grid_cases *c)
{
    vec_release(&c->cases);
    arena_release(&c->arena);
}

void grid_release(struct grid *s)
{
    for (size_t i = 0; i < s->dims.n; i++) vec_release(&s->dims.items[i].values.values);
    vec_release(&s->batch.values);
    vec_release(&s->seq.values);
    vec_release(&s->threads.values);
    vec_release(&s->dims);
    vec_release(&s->providers);
    vec_release(&s->ios);
    arena_release(&s->arena);
    *s = (struct grid)GRID_INIT;
}

/* ---- the command line ---- */

void model_args_release(struct model_args *m)
{
    opt_list_release(&m->dims);
    opt_list_release(&m->runtimes);
    opt_list_release(&m->session_config);
}

tare_status model_parse_ints(void *text, const char *value, tare_error *err)
{
    struct grid_ints read = {VEC_INIT};
    tare_status s = grid_parse_ints(&read, value, err);
    vec_release(&read.values);
    if (s == TARE_OK) *(const char **)text = value;
    return s;
}

/* One more of the list. Its commas are its own, so that it is no OPT_LIST, which settings split. */
tare_status model_parse_dim(void *list, const char *value, tare_error *err)
{
    const struct opt row = {.type = OPT_TYPE_LIST, .to.list = list};
    struct grid read = GRID_INIT;
    tare_status s = grid_parse_dim(&read, value, err);
    grid_release(&read);
    return s == TARE_OK ? opt_set(&row, value, err) : s;
}

struct model_args model_args_over(const struct model_args *own, const struct model_args *common)
{
    struct model_args m = *own;
    if (!m.batch) m.batch = common->batch;
    if (!m.seq) m.seq = common->seq;
    if (!m.threads) m.threads = common->threads;
    if (!m.provider) m.provider = common->provider;
    if (!m.io) m.io = common->io;
    if (!m.inputs) m.inputs = common->inputs;
    if (!m.dims.n) m.dims = common->dims;
    if (!m.runtimes.n) m.runtimes = common->runtimes;
    if (!m.session_config.n) m.session_config = common->session_config;
    return m;
}

tare_status model_args_grid(const struct model_args *m, struct grid *out, tare_error *err)
{
    tare_status s = m->batch ? grid_parse_ints(&out->batch, m->batch, err) : TARE_OK;
    if (s == TARE_OK && m->seq) s = grid_parse_ints(&out->seq, m->seq, err);
    if (s == TARE_OK && m->threads) s = grid_parse_ints(&out->threads, m->threads, err);
    for (size_t i = 0; s == TARE_OK && i < out->threads.values.n; i++)
        if (out->threads.values.items[i] > THREADS_MAX)
            s = error_set(err, TARE_INVALID, "--threads %s: at most %d", m->threads, THREADS_MAX);
    for (size_t i = 0; s == TARE_OK && i < m->dims.n; i++)
        if ((s = grid_parse_dim(out, m->dims.items[i], err)) < 0)
            error_wrap(err, "--dim %s", m->dims.items[i]);
    if (s == TARE_OK && m->provider && (s = grid_parse_providers(out, m->provider, err)) < 0)
        error_wrap(err, "--provider %s", m->provider);
    if (s == TARE_OK && m->io && (s = grid_parse_ios(out, m->io, err)) < 0) error_wrap(err, "--io %s", m->io);
    return s;
}

struct onnx_options model_args_onnx(const struct model_args *m, const char *path, const char *runtime)
{
    return (struct onnx_options){.path = path,
                                 .runtime = runtime,
                                 .inputs = m->inputs,
                                 .session_config = (const char *const *)m->session_config.items,
                                 .n_session_config = m->session_config.n,
                                 .optimization = (int)m->optimization,
                                 .no_arena = m->no_arena,
                                 .no_pattern = m->no_pattern,
                                 .parallel = m->parallel};
}
