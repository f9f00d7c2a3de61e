/* SPDX-License-Identifier: MIT
 * cmd_inspect.c - `tare inspect`: what models cost without running them. A runtime is looked for only when asked to
 * optimise or to run. Keeps nothing unless told where. */
#include <inttypes.h>
#include <string.h>

#include "analyze/judge/judge.h"
#include "analyze/layers/inspect.h"
#include "analyze/layers/layers.h"
#include "cli/command.h"
#include "cli/html_out.h"
#include "cli/inspect/inspect_args.h"
#include "cli/output.h"
#include "core/mem.h"
#include "probe/host.h"
#include "report/run/inspect_report.h"
#include "subject/profiled.h"

/* ---- the command line ---- */

/* The column of each value of sort_words; NULL: none. */
static const char *const sort_columns[] = {NULL,        "mac_share", "bytes", "parameters", "flops",
                                           "intensity", "name",      "op",    NULL};
enum { SORT_ORDER = 8 };
static const struct opt_choice sort_words[] = {
    {"usual", 0, "by MACs, or bytes where there are none"},
    {"macs", 1, "multiply-accumulates"},
    {"bytes", 2, "bytes moved"},
    {"params", 3, "parameters"},
    {"flops", 4, "operations"},
    {"intensity", 5, "operations per byte"},
    {"name", 6, "the alphabet"},
    {"op", 7, "the operator"},
    {"order", SORT_ORDER, "as they run"},
    {NULL, 0, NULL}};

enum { COST = 1, DIVERGE = 2 };
static const struct opt_kind kinds[] = {{COST, "tare inspect without --diverge", "without --diverge"},
                                        {DIVERGE, "--diverge", "--diverge has no use for it"},
                                        {0, NULL, NULL}};

static const struct opt_usage usage = {
    .synopsis = "tare inspect [options] <model.onnx>...\n"
                "tare inspect --diverge [options] <a.onnx> <b.onnx>",
    .about = "What a model costs, without running it: parameters, multiply-accumulates and other operations, bytes "
             "moved, activation memory, layer by layer, for the dimensions asked for or as formulas. Several models "
             "are set side by side. With --diverge both models are run, and the first layer is found whose outputs "
             "differ.",
    .tail = "tare inspect minilm.onnx --batch 8 --seq 256\n"
            "tare inspect minilm.onnx --symbolic\n"
            "tare inspect minilm.onnx --optimized           the graph as ONNX Runtime makes it\n"
            "tare inspect fp32.onnx int8.onnx               side by side\n"
            "tare inspect --diverge fp32.onnx int8.onnx --inputs x.npz\n"
            "Exit status: 0 good, 1 the models differ, 2 bad input, 3 could not run it.",
    .min_args = 1,
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

static tare_status read_dims(struct inspect_args *a, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < a->grid.dims.n; i++) {
        const struct grid_dim *d = &a->grid.dims.items[i];
        if (d->values.values.n > 1)
            return error_set(err, TARE_INVALID, "--dim %s: one value, not a list", d->name);
        struct poly_binding b = {d->name, d->values.values.items[0]};
        s = vec_push(&a->bindings, b, err);
        if (s == TARE_OK) s = vec_push(&a->dims, ((struct dim_value){b.name, b.value}), err);
    }
    if (s == TARE_OK && a->batch) s = vec_push(&a->bindings, ((struct poly_binding){"batch", a->batch}), err);
    if (s == TARE_OK && a->seq) s = vec_push(&a->bindings, ((struct poly_binding){"seq", a->seq}), err);
    return s;
}

static tare_status read_patterns(struct inspect_args *a, tare_error *err)
{
    if (!a->layers) return TARE_OK;
    a->pattern_text = mem_strdup(a->layers);
    if (!a->pattern_text) return error_set(err, TARE_NOMEM, "out of memory");
    char *rest = a->pattern_text, *word;
    tare_status s = TARE_OK;
    while (s == TARE_OK && (word = strsep(&rest, ",")))
        s = *word ? vec_push(&a->patterns, (const char *)word, err)
                  : error_set(err, TARE_INVALID, "--layers %s: an empty pattern", a->layers);
    return s;
}

static int check_numbers(struct cli *cli, const struct inspect_args *a)
{
    if (a->diverge && a->n != 2)
        return cli_usage_error(cli, "--diverge compares two models; %zu named", a->n);
    if (a->diverge && a->runtimes.n > 2)
        return cli_usage_error(cli, "--ort: at most one for each of the two models");
    if (a->diverge) return 0;
    if (a->runtimes.n > 1) return cli_usage_error(cli, "--ort: one runtime at a time");
    if (a->output && a->n > 1)
        return cli_usage_error(cli, "-o writes one document: name one model, or use --json for several");
    if (a->json && output_is_answer(a->csv))
        return cli_usage_error(cli, "--json and --csv - cannot both go to stdout");
    return 0;
}

/* Lists as what they mean, and where to look for a runtime. */
static int read_lists(struct cli *cli, struct inspect_args *a)
{
    if (read_dims(a, &cli->error) != TARE_OK || read_patterns(a, &cli->error) != TARE_OK)
        return cli_fail(cli);
    for (size_t i = 0; i < 2; i++) {
        const char *chosen = a->runtimes.n ? a->runtimes.items[0] : NULL;
        if (a->runtimes.n > i) chosen = a->runtimes.items[i];
        a->places[i] = cli_ort_places(chosen);
    }
    return 0;
}

static int read_args(struct cli *cli, struct inspect_args *a, int argc, char **argv)
{
    const struct opt rows[] = {
        OPT_GROUP("Dimensions"),
        OPT_CALLBACK(0, "dim", grid_parse_dim, &a->grid, "<name=n>", "a free dimension by its name (repeatable)"),
        OPT_INT_IN(0, "batch", &a->batch, 1, INT64_MAX, "the batch, whatever the model calls it",
                 .flags = OPT_NO_DEFAULT),
        OPT_INT_IN(0, "seq", &a->seq, 1, INT64_MAX, "the sequence length, likewise", .flags = OPT_NO_DEFAULT),
        OPT_FLAG(0, "symbolic", &a->symbolic, "totals as formulas of the free dimensions too",
                 .only_for = COST),
        OPT_GROUP("Layers"),
        OPT_UINT_IN('n', "top", &a->top, 1, 1000000000, "layers shown"),
        OPT_FLAG('a', "all", &a->all, "all of them; with --diverge, compare all values"),
        OPT_ENUM('s', "sort", &a->sort, sort_words, "their order",
                 .only_for = COST),
        OPT_STRING(0, "layers", &a->layers, "<pattern,..>", "group layers by parts of their names, or globs",
                 .only_for = COST),
        OPT_GROUP("With ONNX Runtime"),
        OPT_FLAG(0, "optimized", &a->optimized, "also the graph as the runtime optimises it",
                 .only_for = COST),
        OPT_FLAG(0, "run", &a->run, "run once where shapes cannot be known otherwise", .only_for = COST),
        OPT_PATH(0, "inputs", &a->inputs, "<path>", "for --run and --diverge, as in tare bench; else synthetic ones",
                 .needs = "run diverge"),
        OPT_LIST(0, "ort", &a->runtimes, "<path>", "which libonnxruntime; --diverge takes one for each"),
        OPT_STRING(0, "provider", &a->provider, "<name>", "execution provider (default cpu)"),
        OPT_INT_IN(0, "threads", &a->threads, 0, 4096, "within a run", .flags = OPT_NO_DEFAULT),
        OPT_INT_IN(0, "optimization", &a->optimization, -1, 99,
                 "level of --optimized (default all) and --diverge (default 0)", .flags = OPT_NO_DEFAULT),
        OPT_UINT(0, "seed", &a->seed, "of synthetic inputs"),
        OPT_GROUP("Two models"),
        OPT_FLAG(0, "diverge", &a->diverge, "run both and find the first layer that differs"),
        OPT_DOUBLE(0, "tolerance", &a->tolerance, 0, 1e9, "relative L2 error that still counts as the same"),
        OPT_UINT_IN(0, "at-once", &a->at_once, 1, 4096, "inner values held in memory at a time"),
        OPT_GROUP("The answer"),
        OPT_JSON(&a->json),
        OPT_OUT(0, "csv", &a->csv, "<file>", "layers as CSV; - is stdout",
                 .only_for = COST),
        OPT_OUT(0, "html", &a->html, "<file>", OPT_HTML_HELP, .only_for = COST),
        OPT_OUT('o', "output", &a->output, "<file>", "keep the JSON in this file too"),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    a->models = argv;
    a->n = (size_t)argc;
    rc = cli_check_kind(cli, &usage, rows, a->diverge ? DIVERGE : COST);
    if (!rc) rc = check_numbers(cli, a);
    if (!rc) rc = html_out_check(cli, a->html);
    return rc ? rc : read_lists(cli, a);
}

static void release_args(struct inspect_args *a)
{
    vec_release(&a->bindings);
    vec_release(&a->dims);
    vec_release(&a->patterns);
    mem_free(a->pattern_text);
    opt_list_release(&a->runtimes);
    grid_release(&a->grid);
}

struct case_params inspect_case(const struct inspect_args *a)
{
    return (struct case_params){.batch = a->batch,
                                .seq = a->seq,
                                .threads = a->threads,
                                .provider = a->provider,
                                .dims = a->dims.items,
                                .n_dims = a->dims.n,
                                .workers = 1,
                                .seed = a->seed};
}

/* ---- models ---- */

struct item { /* one model */
    const char *path;
    struct onnx_model model;
    struct inspected whole;
    struct run run;
};

struct items {
    struct item *all;
    const struct run **runs;
    size_t n;
};

static void item_release(struct item *i)
{
    inspected_release(&i->whole);
    onnx_close(&i->model);
    run_release(&i->run);
}

/* ---- describing ---- */

/* Nothing of this depends on the machine, so the document says nothing of it. */
static void describe(struct item *i)
{
    struct arena *a = &i->run.arena;
    struct run_map *config = &i->run.config;
    const struct onnx_model *m = &i->model;
    i->run.subject.type = "onnx";
    run_describe_model(&i->run, i->path);
    i->run.subject.size_bytes = known_u64(m->file_bytes);
    run_map_int(a, config, "ir_version", m->ir_version);
    run_map_int(a, config, "opset", onnx_opset(m, ""));
    if (m->producer && *m->producer)
        run_map_textf(a, config, "producer", "%s%s%s", m->producer, *m->producer_version ? " " : "",
                      m->producer_version);
}

/* One case: the dimensions, named by them. */
static struct run_case *add_case(struct item *i)
{
    const struct run_map *dims = &i->run.subject.as_file.dims;
    struct buf name = BUF_INIT;
    for (size_t k = 0; k < dims->n; k++)
        if (dims->at[k].value.kind == RUN_INT)
            buf_printf(&name, "%s%s=%" PRId64, k ? "," : "", dims->at[k].key, dims->at[k].value.i);
    struct run_case *c = name.failed ? NULL : run_add_case(&i->run, name.data);
    buf_release(&name);
    for (size_t k = 0; c && k < dims->n; k++)
        run_map_set(&i->run.arena, &c->params, dims->at[k].key, dims->at[k].value);
    return c;
}

static tare_status record(struct item *i, const struct inspect_args *a, tare_error *err)
{
    inspect_record_static(&i->whole, &i->run, &i->run.subject.as_file);
    struct run_case *c = add_case(i);
    if (!c) return error_set(err, TARE_NOMEM, "%s: out of memory", i->path);
    run_explain_host(&i->run, RUN_BY_INSPECT);
    run_explain_case(&i->run, c, RUN_BY_INSPECT);
    tare_status s = inspect_record_layers(&i->whole, &i->run, c, err);
    if (s == TARE_OK) layers_group(&i->run, c, a->patterns.items, a->patterns.n);
    return s;
}

/* ---- with a runtime ---- */

static tare_status open_subject(struct subject **out, const struct item *i, const struct inspect_args *a,
                                int optimization, tare_error *err)
{
    struct onnx_options o = {.path = i->path,
                             .runtime = a->places[0].chosen,
                             .inputs = a->inputs,
                             .optimization = optimization,
                             .places = &a->places[0]};
    return subject_open_onnx(out, &o, err);
}

/* One pass in a runtime. A run of its own takes what describes the machine, which the answer does not. */
static tare_status run_pass(struct profiled_pass *pass, struct item *i, const struct inspect_args *a,
                            const struct profiled_options *o, tare_error *err)
{
    struct subject *subject = NULL;
    struct interrupt was;
    struct run here; /* the machine decides how many threads there are */
    tare_status s = run_init(&here, "inspect", err);
    if (s != TARE_OK) return s;
    s = host_read(&here, "", err);
    if (s == TARE_OK) s = open_subject(&subject, i, a, o->runs ? 0 : (int)a->optimization, err);
    if (s == TARE_OK) s = subject->ops->describe(subject, &here, err);
    if (s == TARE_OK) {
        const struct run_runtime *rt = &here.subject.runtime;
        i->run.subject.runtime =
            (struct run_runtime){rt->known, rt->name, arena_str(&i->run.arena, rt->version)};
        interrupt_catch(&was);
        s = profiled_run(pass, subject, o, &here, err);
        interrupt_restore(&was);
    }
    if (subject) subject_close(subject);
    run_release(&here);
    return s;
}

/* The analysis knows a graph; its errors get the file's name. */
static tare_status analyze(struct inspected *out, const struct item *i, const struct onnx_model *m,
                           const struct inspect_options *o, tare_error *err)
{
    tare_status s = inspect_model(out, m, o, err);
    return s == TARE_OK ? s : cli_name_file(err, i->path);
}

static struct inspect_options options_of(const struct inspect_args *a)
{
    return (struct inspect_options){.dims = a->bindings.items, .n_dims = a->bindings.n};
}

/* A pass in a runtime, and what it told: dimensions are those of the user's inputs where there are some; shapes and the
 * contents of small inputs only of a run that was asked for. */
struct seen_pass {
    const struct inspect_args *a;
    struct profiled_pass pass;
    struct arena arena;
    struct layers_shapes shapes;
    VEC(struct onnx_tensor) contents;
    VEC(struct poly_binding) dims;
};

/* Tensors of the runtime as those of a file: the analysis knows only the latter. */
static tare_status read_pass(struct seen_pass *r, const struct item *i, tare_error *err)
{
    struct profiled_pass *pass = &r->pass;
    tare_status s = layers_seen(&pass->profile, &i->model, &r->arena, &r->shapes, err);
    for (size_t k = 0; s == TARE_OK && k < pass->dims.n; k++)
        s = vec_push(&r->dims, ((struct poly_binding){pass->dims.items[k].name, pass->dims.items[k].value}),
                     err);
    for (size_t k = 0; s == TARE_OK && r->a->run && k < pass->inputs.items.n; k++) {
        struct tensor *t = &pass->inputs.items.items[k];
        struct onnx_tensor o = {.name = t->name,
                                .type = t->type,
                                .elements = tensor_elements(t),
                                .raw = t->data,
                                .raw_bytes = t->bytes};
        o.dims.items = t->dims;
        o.dims.n = t->rank;
        s = vec_push(&r->contents, o, err);
    }
    return s;
}

static tare_status weigh_seen(struct inspected *out, const struct item *i, const struct onnx_model *m,
                              const struct seen_pass *r, tare_error *err)
{
    struct inspect_options o = options_of(r->a);
    if (r->a->inputs) o.dims = r->dims.items, o.n_dims = r->dims.n;
    o.seen = r->shapes.items;
    o.n_seen = r->shapes.n;
    o.contents = r->contents.items;
    o.n_contents = r->contents.n;
    return analyze(out, i, m, &o, err);
}

static void release_seen(struct seen_pass *r)
{
    vec_release(&r->contents);
    vec_release(&r->dims);
    arena_release(&r->arena);
    profiled_release(&r->pass);
}

static bool needs_run(const struct inspected *w, const struct inspect_args *a)
{
    if (a->inputs && w->dims.n) return true;
    return w->unknown_nodes || inspect_shapes(w)->n_unknown || w->total.at_most;
}

/* Shapes that a run without optimisation sees, so that its values are those of the file. */
static tare_status see_shapes(struct cli *cli, struct item *i, const struct inspect_args *a)
{
    struct profiled_options o = {.params = inspect_case(a), .runs = 1, .interrupted = &interrupted};
    struct seen_pass seen = {.a = a, .pass = PROFILED_PASS_INIT, .arena = ARENA_INIT};
    struct inspected better = INSPECTED_INIT;
    if (!needs_run(&i->whole, a)) {
        cli_note(cli, "%s: every shape is known without a run", i->path);
        return TARE_OK;
    }
    tare_status s = run_pass(&seen.pass, i, a, &o, &cli->error);
    if (s == TARE_OK) s = read_pass(&seen, i, &cli->error);
    if (s == TARE_OK) s = weigh_seen(&better, i, &i->model, &seen, &cli->error);
    if (s == TARE_OK) {
        inspected_release(&i->whole);
        i->whole = better;
    }
    release_seen(&seen);
    return s;
}

/* The optimised graph has the inputs of the file, and with them its dimensions. */
static tare_status optimize(struct cli *cli, struct item *i, const struct inspect_args *a)
{
    struct inspected whole = INSPECTED_INIT;
    struct profiled_options o = {.params = inspect_case(a), .interrupted = &interrupted};
    struct seen_pass seen = {.a = a, .pass = PROFILED_PASS_INIT, .arena = ARENA_INIT};
    tare_status s = run_pass(&seen.pass, i, a, &o, &cli->error);
    if (s == TARE_OK && !seen.pass.has_optimized)
        s = error_set(&cli->error, TARE_UNSUPPORTED, "%s: no optimised graph: %s", i->path,
                      seen.pass.optimized_why);
    if (s == TARE_OK) s = read_pass(&seen, i, &cli->error);
    if (s == TARE_OK) s = weigh_seen(&whole, i, &seen.pass.optimized, &seen, &cli->error);
    if (s == TARE_OK) inspect_record_static(&whole, &i->run, &i->run.subject.optimized);
    inspected_release(&whole);
    release_seen(&seen);
    return s;
}

/* ---- one model ---- */

static tare_status inspect_item(struct cli *cli, struct item *i, const struct inspect_args *a)
{
    struct inspect_options o = options_of(a);
    tare_error *err = &cli->error;
    tare_status s = run_init(&i->run, "inspect", err);
    if (s == TARE_OK) s = onnx_open(&i->model, i->path, err);
    if (s == TARE_OK) s = analyze(&i->whole, i, &i->model, &o, err);
    if (s == TARE_OK) describe(i);
    if (s == TARE_OK && a->run) s = see_shapes(cli, i, a);
    if (s == TARE_OK) s = record(i, a, err);
    if (s == TARE_OK && a->optimized) s = optimize(cli, i, a);
    if (s == TARE_OK) s = findings_add(&i->run, err);
    if (s == TARE_OK && i->run.arena.failed) s = error_set(err, TARE_NOMEM, "%s: out of memory", i->path);
    return s;
}

/* ---- the answer ---- */

/* The order asked for. */
static struct layer_view layer_view(const struct inspect_args *a)
{
    const char *column = sort_columns[a->sort];
    return (struct layer_view){.top = a->all ? 0 : (size_t)a->top,
                               .sort = column ? layer_column_find(column) : NULL,
                               .in_order = a->sort == SORT_ORDER};
}

static tare_status write_text(struct cli *cli, const struct inspect_args *a, const struct items *items)
{
    struct inspect_view view = {layer_view(a), a->symbolic, &items->all[0].whole};
    struct output o;
    output_open(cli, &o, NULL);
    if (items->n > 1)
        report_inspect_compare(&o.stream, items->runs, items->n);
    else
        report_inspect_text(&o.stream, items->runs[0], &view);
    return output_close(cli, &o);
}

static tare_status answer_inspect(struct cli *cli, const struct inspect_args *a, const struct items *items)
{
    struct run_report r = {items->runs, items->n};
    tare_status s = TARE_OK;
    if (a->output) s = output_runs(cli, a->output, &r, report_run_json);
    if (s == TARE_OK && a->csv) s = output_runs(cli, a->csv, &r, report_layers_csv);
    if (s == TARE_OK && a->html) s = html_out_runs(cli, a->html, items->runs, items->n);
    if (s != TARE_OK || output_is_answer(a->csv) || output_is_answer(a->output)) return s;
    return a->json ? output_runs(cli, "-", &r, report_run_json) : write_text(cli, a, items);
}

/* An item counts before it is inspected, so that what a failure leaves of it is released too. */
static int inspect_all(struct cli *cli, const struct inspect_args *a)
{
    struct items items = {mem_new(a->n, sizeof(struct item)), mem_new(a->n, sizeof(struct run *)), 0};
    tare_status s = items.all && items.runs ? TARE_OK : error_set(&cli->error, TARE_NOMEM, "out of memory");
    while (s == TARE_OK && items.n < a->n) {
        struct item *i = &items.all[items.n];
        *i = (struct item){.path = a->models[items.n], .model = ONNX_MODEL_INIT, .whole = INSPECTED_INIT};
        items.runs[items.n++] = &i->run;
        s = inspect_item(cli, i, a);
    }
    bool read = s == TARE_OK;
    if (s == TARE_OK) s = answer_inspect(cli, a, &items);
    int rc = s == TARE_OK ? CLI_GOOD : cli_fail(cli);
    for (size_t i = 0; i < items.n; i++) item_release(&items.all[i]);
    mem_free(items.all);
    mem_free(items.runs);
    return s == TARE_IO && !read ? CLI_USAGE : rc; /* a file that cannot be read is bad input */
}

int cmd_inspect(struct cli *cli, int argc, char **argv)
{
    struct inspect_args a = INSPECT_ARGS_INIT;
    int rc = read_args(cli, &a, argc, argv);
    if (!rc) rc = a.diverge ? inspect_diverge(cli, &a) : inspect_all(cli, &a);
    release_args(&a);
    return rc;
}
