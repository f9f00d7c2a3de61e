/* SPDX-License-Identifier: MIT
 * inspect_options.c - the command line of `tare inspect`: rows, and what may not go together. */
#include <string.h>

#include "cli/html_out.h"
#include "cli/inspect/inspect_args.h"
#include "cli/output.h"
#include "core/mem.h"

enum {
    SORT_USUAL,
    SORT_MACS,
    SORT_BYTES,
    SORT_PARAMETERS,
    SORT_FLOPS,
    SORT_INTENSITY,
    SORT_NAME,
    SORT_OP,
    SORT_ORDER
};

static const struct sort_row {
    const char *column;
} sort_columns[] = {
    [SORT_MACS] = {"mac_share"}, [SORT_BYTES] = {"bytes"},         [SORT_PARAMETERS] = {"parameters"},
    [SORT_FLOPS] = {"flops"},    [SORT_INTENSITY] = {"intensity"}, [SORT_NAME] = {"name"},
    [SORT_OP] = {"op"},
};

static const struct opt_choice sort_words[] = {
    {"usual", SORT_USUAL, "by MACs, or bytes where there are none"},
    {"macs", SORT_MACS, "multiply-accumulates"},
    {"bytes", SORT_BYTES, "bytes moved"},
    {"params", SORT_PARAMETERS, "parameters"},
    {"flops", SORT_FLOPS, "operations"},
    {"intensity", SORT_INTENSITY, "operations per byte"},
    {"name", SORT_NAME, "the alphabet"},
    {"op", SORT_OP, "the operator"},
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

/* ---- what does not fit into one row ---- */

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

int inspect_args_read(struct cli *cli, struct inspect_args *a, int argc, char **argv)
{
    const struct opt rows[] = {
        OPT_GROUP("Dimensions"),
        OPT_CALLBACK(0, "dim", grid_parse_dim, &a->grid, "<name=n>", "a free dimension by its name (repeatable)"),
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(INT, 0, "batch", sint, &a->batch, "the batch, whatever the model calls it"),
                 .lo = 1, .hi = INT64_MAX),
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(INT, 0, "seq", sint, &a->seq, "the sequence length, likewise"), .lo = 1,
                 .hi = INT64_MAX),
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
        OPT_WITH(OPT_NO_DEFAULT, OPT_ROW_(INT, 0, "threads", sint, &a->threads, "within a run"), .lo = 0, .hi = 4096),
        OPT_WITH(OPT_NO_DEFAULT,
                 OPT_ROW_(INT, 0, "optimization", sint, &a->optimization,
                          "level of --optimized (default all) and --diverge (default 0)"),
                 .lo = -1, .hi = 99),
        OPT_UINT(0, "seed", &a->seed, "of synthetic inputs"),
        OPT_GROUP("Two models"),
        OPT_FLAG(0, "diverge", &a->diverge, "run both and find the first layer that differs"),
        OPT_DOUBLE(0, "tolerance", &a->tolerance, 0, 1e9, "relative L2 error that still counts as the same"),
        OPT_UINT_IN(0, "at-once", &a->at_once, 1, 4096, "inner values held in memory at a time"),
        OPT_GROUP("The answer"),
        OPT_JSON(&a->json),
        OPT_PATH(0, "csv", &a->csv, "<file>", "layers as CSV; - is stdout",
                 .only_for = COST),
        OPT_PATH(0, "html", &a->html, "<file>", OPT_HTML_HELP, .only_for = COST),
        OPT_PATH('o', "output", &a->output, "<file>", "keep the JSON in this file too"),
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

void inspect_args_release(struct inspect_args *a)
{
    vec_release(&a->bindings);
    vec_release(&a->dims);
    vec_release(&a->patterns);
    mem_free(a->pattern_text);
    opt_list_release(&a->runtimes);
    grid_release(&a->grid);
}

struct layer_view inspect_layer_view(const struct inspect_args *a)
{
    const char *column = a->sort == SORT_ORDER ? NULL : sort_columns[a->sort].column;
    return (struct layer_view){.top = a->all ? 0 : (size_t)a->top,
                               .sort = column ? layer_column_find(column) : NULL,
                               .in_order = a->sort == SORT_ORDER};
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
