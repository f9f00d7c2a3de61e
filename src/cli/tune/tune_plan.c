/* SPDX-License-Identifier: MIT
 * tune_plan.c - what there is to choose: the values of each setting, the cheapest first, which one is used today, and
 * what a point of that space is in words, options, parameters and as a worker process. Measures nothing. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/shell_words.h"
#include "cli/tune/tune_args.h"
#include "core/fmt.h"
#include "subject/ort_session.h"

enum { WAIT_S = 60 }; /* for one answer of a worker: what takes longer is no configuration to use */

/* ---- values ---- */

static void add_choice(struct tune_choices *c, struct tune_choice v)
{
    if (c->n < TUNE_VALUES_MAX) c->at[c->n++] = v;
}

/* In rising order, each once. */
static void add_number(struct tune_choices *c, int64_t v)
{
    size_t i = c->n;
    for (size_t k = 0; k < c->n; k++)
        if (c->at[k].number == v) return;
    if (c->n == TUNE_VALUES_MAX) return;
    for (; i > 0 && c->at[i - 1].number > v; i--) c->at[i] = c->at[i - 1];
    c->at[i] = (struct tune_choice){.number = v};
    c->n++;
}

static void add_powers(struct tune_choices *c, int64_t most)
{
    for (int64_t v = 1; v <= most && v > 0; v *= 2) add_number(c, v);
}

static void set_base(struct tune_choices *c, int64_t v)
{
    add_number(c, v);
    for (size_t i = 0; i < c->n; i++)
        if (c->at[i].number == v) c->base = (uint8_t)i;
}

static int64_t number_of(const struct run_map *params, const char *key)
{
    const struct run_value *v = run_map_get(params, key);
    return v && v->kind == RUN_INT ? v->i : 0;
}

/* ---- settings ---- */

/* What the user lists, what is used today first. */
static bool take_list(struct tune_choices *c, const struct grid_ints *asked)
{
    for (size_t i = 0; i < asked->values.n; i++) add_number(c, asked->values.items[i]);
    if (asked->values.n) set_base(c, asked->values.items[0]);
    return asked->values.n > 0;
}

static tare_status choose_batch(struct tune_plan *p, const struct run_map *params, tare_error *err)
{
    const struct tune_args *a = p->args;
    struct tune_choices *c = &p->of[TUNE_BATCH];
    bool latency = a->objective == OBJECTIVE_LATENCY;
    if (latency && p->grid.batch.values.n > 1)
        return error_set(err, TARE_INVALID,
                         "--batch %s: for the shortest run the work of a run stays: one batch",
                         a->setup.batch);
    if (take_list(c, &p->grid.batch)) return TARE_OK;
    int64_t today = number_of(params, "batch");
    set_base(c, today);
    if (today == 0) return tune_plan_leave(p, err, "batch: the model has no free dimension for it");
    if (latency) return tune_plan_leave(p, err, "batch: for the shortest run the work of a run stays");
    add_powers(c, (int64_t)a->max_batch);
    set_base(c, today);
    return TARE_OK;
}

static void choose_threads(struct tune_plan *p, const struct run *today)
{
    struct tune_choices *c = &p->of[TUNE_THREADS];
    if (take_list(c, &p->grid.threads)) return;
    int64_t now = number_of(&today->cases.at[0]->params, "threads"), most = now;
    struct known_f64 usable = today->host.cpu.usable;
    if (usable.known && usable.v >= 1) most = (int64_t)usable.v;
    add_powers(c, most);
    if (most > 0) add_number(c, most);
    set_base(c, now > 0 ? now : 1);
}

/* Those that this library has; whether one can be used is found by using it. Azure's computes elsewhere. */
static void add_providers(struct tune_plan *p, const struct run *today)
{
    struct tune_choices *c = &p->of[TUNE_PROVIDER];
    const struct run_value *ort = run_map_get(&today->config, "onnxruntime");
    const struct run_value *list = ort && ort->kind == RUN_MAP ? run_map_get(&ort->items, "providers") : NULL;
    for (size_t i = 0; list && list->kind == RUN_LIST && i < list->items.n; i++) {
        const struct run_map *row = &list->items.at[i].value.items;
        if (list->items.at[i].value.kind != RUN_MAP) continue;
        const struct run_value *name = run_map_get(row, "name"), *state = run_map_get(row, "state");
        if (!name || name->kind != RUN_TEXT || !state || state->kind != RUN_TEXT) continue;
        const char *word = ort_provider_short(name->s);
        if (!word || strcmp(state->s, "absent") == 0) continue;
        if (strcmp(word, "cpu") != 0 && strcmp(word, "azure") != 0)
            add_choice(c, (struct tune_choice){.word = word});
    }
}

static void choose_provider(struct tune_plan *p, const struct run *today)
{
    struct tune_choices *c = &p->of[TUNE_PROVIDER], *io = &p->of[TUNE_IO];
    bool gpu = false;
    for (size_t i = 0; i < p->grid.providers.n; i++)
        add_choice(c, (struct tune_choice){.word = p->grid.providers.items[i]});
    if (!c->n) {
        add_choice(c, (struct tune_choice){.word = "cpu"});
        add_providers(p, today);
    }
    for (size_t i = 0; i < c->n; i++) gpu = gpu || ort_provider_memory(c->at[i].word);
    for (size_t i = 0; i < p->grid.ios.n; i++)
        add_choice(io, (struct tune_choice){.word = p->grid.ios.items[i]});
    if (!io->n) add_choice(io, (struct tune_choice){.word = IO_HOST});
    if (!p->grid.ios.n && gpu) add_choice(io, (struct tune_choice){.word = IO_GPU});
}

/* Switches: what is used today first. The words are what the document calls them. */
static void choose_switch(struct tune_choices *c, bool on)
{
    add_choice(c, (struct tune_choice){.number = on});
    add_choice(c, (struct tune_choice){.number = !on});
}

static void choose_session(struct tune_plan *p)
{
    static const int levels[] = {99, 2, 1, 0};
    const struct model_args *m = &p->args->setup;
    struct tune_choices *c = &p->of[TUNE_LEVEL];
    bool found = false;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (levels[i] == (m->optimization < 0 ? 99 : m->optimization)) {
            c->base = (uint8_t)c->n;
            found = true;
        }
        add_choice(c, (struct tune_choice){.number = levels[i]});
    }
    if (!found) {
        c->base = (uint8_t)c->n;
        add_choice(c, (struct tune_choice){.number = m->optimization});
    }
    choose_switch(&p->of[TUNE_EXECUTION], m->parallel);
    choose_switch(&p->of[TUNE_ARENA], m->no_arena);
    choose_switch(&p->of[TUNE_PATTERN], m->no_pattern);
    add_choice(&p->of[TUNE_PRECISION], (struct tune_choice){.word = "as it is", .file = p->args->model});
}

/* The inputs' own dimensions, where they come from a file: other batches of the same shape are made up. */
static tare_status fix_dims(struct tune_plan *p, const struct run_map *params, tare_error *err)
{
    static const char *const known[] = {"batch", "seq", "threads", "optimization"};
    struct dim_value *dims = arena_new(&p->arena, params->n + p->grid.dims.n, sizeof *dims);
    if (!dims) return error_nomem(err, "dimensions");
    p->fixed = (struct case_params){.seq = number_of(params, "seq"), .workers = 1, .dims = dims};
    for (size_t i = 0; i < p->grid.dims.n; i++)
        dims[p->fixed.n_dims++] =
            (struct dim_value){p->grid.dims.items[i].name, p->grid.dims.items[i].values.values.items[0]};
    for (size_t i = 0; p->args->setup.inputs && !p->grid.dims.n && i < params->n; i++) {
        bool other = params->at[i].value.kind == RUN_INT;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            other = other && strcmp(params->at[i].key, known[k]) != 0;
        if (other)
            dims[p->fixed.n_dims++] =
                (struct dim_value){arena_str(&p->arena, params->at[i].key), params->at[i].value.i};
    }
    return p->arena.failed ? error_nomem(err, "dimensions") : TARE_OK;
}

/* ---- the space ---- */

/* How long a run with this batch takes at most, by what was seen: twice the batch, twice the time. 0: not known. */
static double expected_ns(const struct tune_plan *p, size_t batch)
{
    const struct tune_choices *c = &p->of[TUNE_BATCH];
    size_t i = batch;
    while (i > 0 && !(p->run_ns[i] > 0)) i--;
    if (!(p->run_ns[i] > 0)) return 0;
    return p->run_ns[i] * (double)c->at[batch].number / (double)c->at[i].number;
}

/* Today's, and smaller ones, in any case. */
static bool is_too_long(const struct tune_plan *p, size_t batch)
{
    const struct tune_choices *c = &p->of[TUNE_BATCH];
    return batch > c->base && p->run_most_ns > 0 && expected_ns(p, batch) > p->run_most_ns;
}

void tune_plan_saw(struct tune_plan *p, const struct tune_point *at, double run_ns)
{
    double *known = &p->run_ns[at->at[TUNE_BATCH]];
    if (run_ns > 0 && (!(*known > 0) || run_ns < *known)) *known = run_ns;
}

tare_status tune_plan_leave_slow(struct tune_plan *p, tare_error *err)
{
    const struct tune_choices *c = &p->of[TUNE_BATCH];
    size_t i = 0;
    while (i < c->n && !is_too_long(p, i)) i++;
    if (i == c->n) return TARE_OK;
    return tune_plan_leave(p, err, "batch from %" PRId64 " on: a run may take %s, too long for this --budget",
                           c->at[i].number, show_time(expected_ns(p, i)).s);
}

static bool is_allowed(void *plan, const struct tune_point *at)
{
    const struct tune_plan *p = plan;
    if (is_too_long(p, at->at[TUNE_BATCH])) return false;
    bool device = strcmp(tune_chosen(p, at, TUNE_IO)->word, IO_GPU) == 0;
    return !device || ort_provider_memory(tune_chosen(p, at, TUNE_PROVIDER)->word);
}

void tune_plan_close(struct tune_plan *p)
{
    p->space = (struct tune_space){.knobs = p->knobs, .n = TUNE_SETTINGS, .allowed = is_allowed, .ctx = p};
    for (int s = 0; s < TUNE_SETTINGS; s++) {
        struct tune_choices *c = &p->of[s];
        if (!tune_varies(p->args, (enum tune_setting)s))
            *c = (struct tune_choices){.at = {c->at[c->base]}, .n = 1};
        bool ordered = s == TUNE_BATCH || s == TUNE_THREADS || s == TUNE_LEVEL;
        p->knobs[s] = (struct tune_knob){tune_setting_names[s], c->n, ordered, s == TUNE_BATCH};
        p->space.base.at[s] = p->of[s].base;
    }
}

static tare_status find_library(struct tune_plan *p, const struct run *today, tare_error *err)
{
    const struct run_value *ort = run_map_get(&today->config, "onnxruntime");
    const struct run_value *path = ort && ort->kind == RUN_MAP ? run_map_get(&ort->items, "library") : NULL;
    if (!path || path->kind != RUN_TEXT) return TARE_OK;
    p->runtime = arena_str(&p->arena, path->s);
    return p->runtime ? TARE_OK : error_nomem(err, "a path");
}

tare_status tune_plan_make(struct tune_plan *p, const struct tune_args *a, const struct run *today,
                           tare_error *err)
{
    const struct run_case *c = today->cases.at[0];
    p->args = a;
    p->grid = (struct grid)GRID_INIT;
    p->typical_ns = c->latency_ns.p50.known ? (uint64_t)c->latency_ns.p50.value : 0;
    tare_status s = model_args_grid(&a->setup, &p->grid, err);
    if (s == TARE_OK) s = find_library(p, today, err);
    if (s == TARE_OK) s = fix_dims(p, &c->params, err);
    if (s == TARE_OK) s = choose_batch(p, &c->params, err);
    if (s < 0) return s;
    choose_threads(p, today);
    choose_provider(p, today);
    choose_session(p);
    tune_plan_close(p);
    p->run_ns[p->of[TUNE_BATCH].base] = (double)p->typical_ns;
    return TARE_OK;
}

void tune_plan_release(struct tune_plan *p)
{
    grid_release(&p->grid);
    vec_release(&p->left);
    arena_release(&p->arena);
}

tare_status tune_plan_leave(struct tune_plan *p, tare_error *err, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = arena_str(&p->arena, text);
    return kept ? vec_push(&p->left, kept, err) : error_nomem(err, "a text");
}

/* ---- a point ---- */

const struct tune_choice *tune_chosen(const struct tune_plan *p, const struct tune_point *at,
                                      enum tune_setting s)
{
    return &p->of[s].at[at->at[s]];
}

static int64_t chosen_number(const struct tune_plan *p, const struct tune_point *at, enum tune_setting s)
{
    return tune_chosen(p, at, s)->number;
}

const char *tune_model(const struct tune_plan *p, const struct tune_point *at)
{
    return tune_chosen(p, at, TUNE_PRECISION)->file;
}

static void add_part(struct buf *b, const char *text)
{
    buf_printf(b, "%s%s", b->len ? "," : "", text);
}

/* What varies, and the switches that are not the runtime's own. */
const char *tune_name(struct tune_plan *p, const struct tune_point *at)
{
    struct buf b = BUF_INIT;
    int64_t batch = chosen_number(p, at, TUNE_BATCH), level = chosen_number(p, at, TUNE_LEVEL);
    if (batch) buf_printf(&b, "batch=%" PRId64, batch);
    buf_printf(&b, "%sthreads=%" PRId64, b.len ? "," : "", chosen_number(p, at, TUNE_THREADS));
    if (p->of[TUNE_PROVIDER].n > 1) buf_printf(&b, ",provider=%s", tune_chosen(p, at, TUNE_PROVIDER)->word);
    if (p->of[TUNE_IO].n > 1) buf_printf(&b, ",io=%s", tune_chosen(p, at, TUNE_IO)->word);
    if (at->at[TUNE_PRECISION]) buf_printf(&b, ",precision=%s", tune_chosen(p, at, TUNE_PRECISION)->word);
    if (chosen_number(p, at, TUNE_EXECUTION)) add_part(&b, "parallel");
    if (level != 99) buf_printf(&b, ",optimization=%" PRId64, level);
    if (chosen_number(p, at, TUNE_ARENA)) add_part(&b, "no-arena");
    if (chosen_number(p, at, TUNE_PATTERN)) add_part(&b, "no-memory-pattern");
    const char *name = b.failed ? NULL : arena_str(&p->arena, b.data);
    buf_release(&b);
    return name;
}

/* Settings that are the same for all come first, as the user gave them. */
void tune_options(const struct tune_plan *p, const struct tune_point *at, struct buf *out)
{
    int64_t batch = chosen_number(p, at, TUNE_BATCH), level = chosen_number(p, at, TUNE_LEVEL);
    const char *provider = tune_chosen(p, at, TUNE_PROVIDER)->word;
    if (batch) buf_printf(out, " --batch %" PRId64, batch);
    buf_printf(out, " --threads %" PRId64, chosen_number(p, at, TUNE_THREADS));
    if (p->of[TUNE_PROVIDER].n > 1 || strcmp(provider, "cpu") != 0)
        buf_printf(out, " --provider %s", provider);
    if (p->of[TUNE_IO].n > 1) buf_printf(out, " --io %s", tune_chosen(p, at, TUNE_IO)->word);
    if (chosen_number(p, at, TUNE_EXECUTION)) buf_add_str(out, " --parallel");
    if (level != 99) buf_printf(out, " --optimization %" PRId64, level);
    if (chosen_number(p, at, TUNE_ARENA)) buf_add_str(out, " --no-arena");
    if (chosen_number(p, at, TUNE_PATTERN)) buf_add_str(out, " --no-memory-pattern");
}

/* What `tare bench` says of the same configuration: parameters make two cases the same one. */
void tune_params(const struct tune_plan *p, const struct tune_point *at, const struct run_map *today,
                 struct run *run, struct run_map *out)
{
    struct arena *a = &run->arena;
    const char *provider = tune_chosen(p, at, TUNE_PROVIDER)->word;
    int64_t batch = chosen_number(p, at, TUNE_BATCH), level = chosen_number(p, at, TUNE_LEVEL);
    static const char *const own[] = {"io", "optimization", "execution", "arena", "memory_pattern"};
    for (size_t i = 0; i < today->n; i++) run_map_set(a, out, today->at[i].key, today->at[i].value);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) run_map_drop(out, own[i]);
    if (batch) run_map_int(a, out, "batch", batch);
    run_map_int(a, out, "threads", chosen_number(p, at, TUNE_THREADS));
    run_map_text(a, out, "provider", provider);
    if (at->at[TUNE_PRECISION]) run_map_text(a, out, "precision", tune_chosen(p, at, TUNE_PRECISION)->word);
    if (ort_provider_memory(provider)) run_map_text(a, out, "io", tune_chosen(p, at, TUNE_IO)->word);
    if (p->args->setup.optimization >= 0 || level != 99) run_map_int(a, out, "optimization", level);
    if (chosen_number(p, at, TUNE_EXECUTION)) run_map_text(a, out, "execution", "parallel");
    if (chosen_number(p, at, TUNE_ARENA)) run_map_bool(a, out, "arena", false);
    if (chosen_number(p, at, TUNE_PATTERN)) run_map_bool(a, out, "memory_pattern", false);
}

static struct ab_spec spec_of(const struct tune_plan *p, const struct tune_point *at)
{
    const char *provider = tune_chosen(p, at, TUNE_PROVIDER)->word;
    struct ab_spec s = {.model = model_args_onnx(&p->args->setup, tune_model(p, at), p->runtime),
                        .params = p->fixed};
    s.model.inputs = NULL; /* made up in any batch */
    s.model.optimization = (int)chosen_number(p, at, TUNE_LEVEL);
    s.model.parallel = chosen_number(p, at, TUNE_EXECUTION) != 0;
    s.model.no_arena = chosen_number(p, at, TUNE_ARENA) != 0;
    s.model.no_pattern = chosen_number(p, at, TUNE_PATTERN) != 0;
    s.params.batch = chosen_number(p, at, TUNE_BATCH);
    s.params.threads = chosen_number(p, at, TUNE_THREADS);
    s.params.provider = strcmp(provider, "cpu") == 0 ? NULL : provider;
    if (ort_provider_memory(provider)) s.params.io = tune_chosen(p, at, TUNE_IO)->word;
    return s;
}

tare_status tune_lane(struct tune_plan *p, const struct tune_point *at, struct ab_lane **out, tare_error *err)
{
    static char name[] = "tare", verb[] = "__ab-worker";
    static char *argv[] = {name, verb, NULL};
    struct ab_spec spec = spec_of(p, at);
    struct buf text = BUF_INIT;
    tare_status s = ab_spec_write(&spec, &text, err);
    const char *kept = s == TARE_OK ? arena_str(&p->arena, text.data) : NULL;
    buf_release(&text);
    if (s < 0) return s;
    if (!kept) return error_nomem(err, "a specification");
    struct ab_process_options o = {.name = p->args->model,
                                   .exe = "/proc/self/exe",
                                   .argv = argv,
                                   .spec = kept,
                                   .timeout_ns = (uint64_t)WAIT_S * 1000000000,
                                   .interrupted = &interrupted};
    return ab_lane_process(out, &o, err);
}

/* ---- the same search again ---- */

static void add_values(struct buf *b, const struct tune_plan *p, int setting)
{
    const struct tune_choices *c = &p->of[setting];
    buf_printf(b, ";%s:%u", p->knobs[setting].name, c->base);
    for (size_t i = 0; i < c->n; i++) {
        buf_add_char(b, ',');
        if (c->at[i].word)
            buf_add_str(b, c->at[i].word);
        else
            buf_printf(b, "%" PRId64, c->at[i].number);
    }
}

const char *tune_key(struct tune_plan *p, const struct run *today)
{
    const struct tune_args *a = p->args;
    struct buf b = BUF_INIT;
    buf_printf(&b, "model %s;host %s;runtime %s;for %s;seq %" PRId64 ";seed %" PRIu64,
               today->subject.sha256 ? today->subject.sha256 : a->model,
               today->host.fingerprint ? today->host.fingerprint : "?",
               today->subject.runtime.version ? today->subject.runtime.version : "?",
               objective_names[a->objective], p->fixed.seq, a->seed);
    for (size_t i = 0; i < p->fixed.n_dims; i++)
        buf_printf(&b, ";%s=%" PRId64, p->fixed.dims[i].name, p->fixed.dims[i].value);
    for (size_t i = 0; i < a->n_targets; i++)
        buf_printf(&b, ";%s%s%.17g", a->targets[i].metric, target_op_text(a->targets[i].op),
                   a->targets[i].value);
    for (size_t i = 0; i < a->setup.session_config.n; i++)
        buf_printf(&b, ";%s", a->setup.session_config.items[i]);
    for (int s = 0; s < TUNE_SETTINGS; s++) add_values(&b, p, s);
    const char *key = b.failed ? NULL : arena_str(&p->arena, b.data);
    buf_release(&b);
    return key;
}
