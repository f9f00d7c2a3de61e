/* SPDX-License-Identifier: MIT
 * cmd_import.c - `tare import`: a measurement that another tool made: as a run document and a table of layers, or as a
 * trace. One row per format in `importers`. Nothing is measured here, so nothing is said of this machine. */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "analyze/layers/inspect.h"
#include "analyze/layers/layers.h"
#include "cli/case_grid.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/inspect/import_torch.h"
#include "cli/output.h"
#include "core/mem.h"
#include "core/str.h"
#include "model/profile/ort_profile.h"
#include "report/run/inspect_report.h"

struct import_args {
    const char *model;       /* NULL: not at hand */
    struct grid grid;        /* of --dim */
    struct duration latency; /* of a run without the profiler; 0: unknown */
    int64_t skip;            /* -1: one, if there are others */
    struct opt_list groups;
    uint64_t top;
    const char *csv, *output, *output_dir;
    bool json, no_save;
};
#define IMPORT_ARGS_INIT {.grid = GRID_INIT, .skip = -1, .top = 10, .output_dir = "tare-results"}

struct importer {
    const char *name, *help;                                                     /* of the option */
    unsigned kind;                                                               /* of the usage */
    int (*take)(struct cli *cli, const struct import_args *a, const char *path); /* the exit code */
};

/* ---- profiles of ONNX Runtime ---- */

struct profile_import {
    struct cli *cli;
    const struct import_args *a;
    const char *path;
    struct run *run;
    struct run_case *c;
    struct ort_profile profile;
    struct onnx_model model;
    struct inspected cost;
    bool has_model, has_cost;
};

/* "trace" of "runs/trace.json". */
static const char *bare_name(struct arena *a, const char *path)
{
    const char *name = str_file_name(path), *dot = strrchr(name, '.');
    return arena_str_n(a, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static void describe_profile(struct profile_import *i)
{
    const struct ort_profile *p = &i->profile;
    struct arena *a = &i->run->arena;
    struct run_map *c = &i->run->config;
    i->run->subject.type = "onnx";
    i->run->subject.name = bare_name(a, i->path);
    i->run->subject.path = arena_str(a, i->path);
    if (i->a->model) run_describe_model(i->run, i->a->model);
    run_map_text(a, c, "imported", "ort-profile");
    run_map_text(a, c, "file", i->path);
    run_map_int(a, c, "lines", (int64_t)p->lines);
    run_map_int(a, c, "unreadable", (int64_t)p->unreadable);
    run_map_bool(a, c, "truncated", p->truncated);
    if (p->load_us >= 0) i->c->load_ns = known_u64((uint64_t)p->load_us * 1000);
    if (p->runs_us.n) i->c->first_run_ns = known_u64((uint64_t)p->runs_us.items[0] * 1000);
}

static void warn_profile(const struct profile_import *i)
{
    const struct ort_profile *p = &i->profile;
    if (p->truncated)
        cli_warn(i->cli, "%s: the end is missing: cut off, or at the runtime's limit of a million events",
                 i->path);
    if (p->unreadable)
        cli_warn(i->cli, "%s: %" PRIu64 " of %" PRIu64 " lines could not be read", i->path, p->unreadable,
                 p->lines);
    if (!p->runs_us.n) cli_warn(i->cli, "%s: no run was finished: all of it counts as one run", i->path);
}

/* Given by the user, else as the profile saw it; false: unknown, and with it every cost. */
static bool find_dim(const struct profile_import *i, const struct inspected *first,
                     const struct layers_shapes *seen, struct poly_binding *b)
{
    for (size_t k = 0; k < i->a->grid.dims.n; k++) {
        const struct grid_dim *d = &i->a->grid.dims.items[k];
        if (strcmp(d->name, b->name) != 0) continue;
        b->value = d->values.values.items[0];
        return true;
    }
    return layers_dim_seen(first, b->name, seen, &b->value);
}

/* Costs are of what ran or are not told: once with symbols, to find the dimensions, then with those. */
static tare_status find_cost(struct profile_import *i)
{
    struct inspected first = INSPECTED_INIT;
    struct layers_shapes seen = {0};
    VEC(struct poly_binding) dims = VEC_INIT;
    struct inspect_options o = {0};
    tare_error *err = &i->cli->error;
    const char *missing = NULL;
    tare_status s = inspect_model(&first, &i->model, &o, err);
    if (s == TARE_OK) s = layers_seen(&i->profile, &i->model, &i->run->arena, &seen, err);
    for (size_t k = 0; s == TARE_OK && k < first.dims.n; k++) {
        struct poly_binding b = {first.dims.items[k].name, 1};
        if (!find_dim(i, &first, &seen, &b))
            missing = first.dims.items[k].name;
        else
            s = vec_push(&dims, b, err);
    }
    if (s == TARE_OK && missing)
        cli_warn(i->cli, "%s: the profile does not tell '%s': no costs (--dim %s=N)", i->a->model, missing,
                 missing);
    o = (struct inspect_options){.dims = dims.items, .n_dims = dims.n, .seen = seen.items, .n_seen = seen.n};
    if (s == TARE_OK && !missing) s = inspect_model(&i->cost, &i->model, &o, err);
    i->has_cost = s == TARE_OK && !missing;
    if (i->has_cost) inspect_record_static(&i->cost, i->run, &i->run->subject.as_file);
    inspected_release(&first);
    vec_release(&dims);
    return s == TARE_OK ? s : cli_name_file(err, i->a->model);
}

static tare_status check_dims(const struct profile_import *i)
{
    for (size_t k = 0; k < i->a->grid.dims.n; k++) {
        const struct grid_dim *d = &i->a->grid.dims.items[k];
        if (d->values.values.n > 1)
            return error_set(&i->cli->error, TARE_INVALID, "--dim %s: one value, not a list", d->name);
        if (!layers_has_dim(&i->model, d->name))
            return error_set(&i->cli->error, TARE_INVALID, "--dim %s: %s has no such free dimension", d->name,
                             i->a->model);
    }
    return TARE_OK;
}

static tare_status open_model(struct profile_import *i)
{
    if (!i->a->model) return TARE_OK;
    tare_status s = onnx_open(&i->model, i->a->model, &i->cli->error);
    i->has_model = s == TARE_OK;
    if (s == TARE_OK) s = check_dims(i);
    return s == TARE_OK ? find_cost(i) : s;
}

static uint64_t skipped(const struct profile_import *i)
{
    if (i->a->skip >= 0) return (uint64_t)i->a->skip;
    return i->profile.runs_us.n > 2 ? 1 : 0; /* the first run allocates and plans: it is like no other */
}

static tare_status join_profile(struct profile_import *i)
{
    uint64_t plain = (uint64_t)i->a->latency.ns;
    struct layers_input in = {.profile = &i->profile,
                              .source_model = i->has_model ? &i->model : NULL,
                              .source = i->has_cost ? &i->cost : NULL,
                              .plain = {&plain, plain ? 1 : 0},
                              .skip_runs = skipped(i)};
    tare_status s = layers_join(i->run, i->c, &in, &i->cli->error);
    if (s < 0) return error_wrap(&i->cli->error, "%s", i->path);
    const struct opt_list *g = &i->a->groups;
    layers_group(i->run, i->c, g->n ? (const char *const *)g->items : NULL, g->n);
    i->c->warmup_runs = known_u64(in.skip_runs);
    return TARE_OK;
}

/* The file is read and described before the model is opened: what is wrong with it is told first. */
static tare_status read_profile(struct cli *cli, const struct import_args *a, const char *path,
                                struct run *run)
{
    struct profile_import i = {.cli = cli,
                               .a = a,
                               .path = path,
                               .run = run,
                               .profile = ORT_PROFILE_INIT,
                               .model = ONNX_MODEL_INIT,
                               .cost = INSPECTED_INIT};
    tare_status s = ort_profile_load(&i.profile, path, &cli->error);
    if (s == TARE_OK && !(i.c = run_add_case(run, bare_name(&run->arena, path))))
        s = error_set(&cli->error, TARE_NOMEM, "out of memory for a document");
    if (s == TARE_OK) describe_profile(&i);
    if (s == TARE_OK) warn_profile(&i);
    if (s == TARE_OK) s = open_model(&i);
    if (s == TARE_OK) s = join_profile(&i);
    inspected_release(&i.cost);
    onnx_close(&i.model);
    ort_profile_release(&i.profile);
    return s;
}

/* With `--csv -` the table is the answer: nothing else may go to stdout then. */
static tare_status answer_import(struct cli *cli, const struct import_args *a, const struct run *run)
{
    char path[4096];
    const struct run *const runs[] = {run};
    struct run_report r = {runs, 1};
    tare_status s = a->no_save ? TARE_OK : run_save(run, a->output_dir, path, sizeof path, &cli->error);
    if (s == TARE_OK && !a->no_save && !a->json) cli_note_last(cli, "kept as %s", path);
    if (s == TARE_OK && a->csv) s = output_runs(cli, a->csv, &r, report_layers_csv);
    if (s != TARE_OK || output_is_answer(a->csv)) return s;
    if (a->json) return output_runs(cli, "-", &r, report_run_json);
    struct output out;
    struct layer_view view = LAYER_VIEW_INIT;
    view.top = a->top;
    output_open(cli, &out, NULL);
    run_subject_text(&out.stream.out, run);
    buf_add_char(&out.stream.out, '\n');
    layer_text_write(&out.stream, run, &view);
    return output_close(cli, &out);
}

static int take_profile(struct cli *cli, const struct import_args *a, const char *path)
{
    struct run run;
    tare_status s = run_init(&run, "import", &cli->error);
    if (s != TARE_OK) return cli_fail(cli);
    s = read_profile(cli, a, path, &run);
    run_explain_host(&run, RUN_BY_IMPORT); /* the measurement is another machine's, as far as we know */
    for (size_t i = 0; i < run.cases.n; i++) run_explain_case(&run, run.cases.at[i], RUN_BY_IMPORT);
    bool bad_input = s == TARE_IO; /* a file that cannot be read */
    if (s == TARE_OK) s = answer_import(cli, a, &run);
    run_release(&run);
    if (s == TARE_OK) return CLI_GOOD;
    int rc = cli_fail(cli);
    return bad_input ? CLI_USAGE : rc;
}

/* ---- files of torch.profiler ---- */

static int take_torch(struct cli *cli, const struct import_args *a, const char *path)
{
    struct import_torch t = {.path = path, .output = a->output, .output_dir = a->output_dir, .json = a->json};
    return import_torch(cli, &t);
}

/* ---- all formats ---- */

enum { KIND_LAYERS = 1, KIND_TRACE = 2 };
static const struct opt_kind kinds[] = {
    {KIND_LAYERS, "profiles of ONNX Runtime", "this is a profile of ONNX Runtime"},
    {KIND_TRACE, "files of torch.profiler", "this is a file of torch.profiler"},
    {0, NULL, NULL}};

enum { ORT_PROFILE, TORCH_PROFILE };
static const struct importer importers[] = {
    [ORT_PROFILE] = {"ort-profile", "a file of ONNX Runtime's profiler", KIND_LAYERS, take_profile},
    [TORCH_PROFILE] = {"torch-profile", "a file of torch.profiler, .json or .json.gz", KIND_TRACE, take_torch},
};
enum { N_IMPORTERS = sizeof importers / sizeof *importers };

/* Without an option: torch.profiler writes an object, also packed; ONNX Runtime a list. */
static const struct importer *guess_importer(const char *path)
{
    unsigned char head[256];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, head, sizeof head) : -1;
    if (fd >= 0) close(fd);
    ssize_t i = 0;
    while (i < n && strchr(" \t\r\n", head[i])) i++;
    bool object = i < n && head[i] == '{', packed = n > 1 && head[0] == 0x1f && head[1] == 0x8b;
    if (object || packed) return &importers[TORCH_PROFILE];
    return i < n && head[i] == '[' ? &importers[ORT_PROFILE] : NULL;
}

static tare_status parse_groups(void *list, const char *text, tare_error *err)
{
    return opt_list_split(list, text, err);
}

static const struct opt_usage usage = {
    .synopsis = "tare import [options] --ort-profile <file>\n"
                "tare import [options] --torch-profile <file>\n"
                "tare import [options] <file>",
    .about = "Take over a measurement that another tool made. A profile of ONNX Runtime becomes a table of layers and "
             "a run document: with the model beside it layers also get their cost; with the latency of a run without "
             "the profiler its cost is taken off. A file of torch.profiler becomes a trace: kernels, copies, calls, "
             "operators, modules and Python frames, for tare report --gpu, tare report, tare export and tare compare "
             "--gpu. Without an option the file itself tells which it is.",
    .tail = "tare import --ort-profile onnxruntime_profile_2026-11-01_12-00-00.json --model minilm.onnx\n"
            "tare import --torch-profile train.pt.trace.json.gz -o train.tare\n"
            "Exit status: 0 good, 2 bad input, 3 could not write it.",
    .max_args = 1,
    .args = OPT_ARGS_FILES,
    .kinds = kinds,
};

/* Every importer has an option of its own: its rows come from the table. */
static int import_read(struct cli *cli, struct import_args *a, int argc, char **argv)
{
    const char *paths[N_IMPORTERS] = {NULL};
    const struct opt common[] = {
        OPT_OUT('o', "output", &a->output, "<file>", "the trace (default: a new one in --output-dir)",
                 .only_for = KIND_TRACE),
        OPT_PATH(0, "model", &a->model, "<file>", "the model that ran, for costs", .only_for = KIND_LAYERS),
        OPT_CALLBACK(0, "dim", grid_parse_dim, &a->grid, "<name=n>",
                     "a free dimension of the model (default: as the file tells it)", .only_for = KIND_LAYERS),
        OPT_TIME_IN(0, "latency", &a->latency, 0, INT64_MAX, "of a run without the profiler, to take its cost off",
                 .flags = OPT_NO_DEFAULT, .only_for = KIND_LAYERS),
        OPT_INT_IN(0, "skip", &a->skip, 0, 1000000, "runs at the start to leave out (default: 1 of more than 2)",
                 .flags = OPT_NO_DEFAULT, .only_for = KIND_LAYERS),
        OPT_CALLBACK(0, "layers", parse_groups, &a->groups, "<pattern,..>", "groups of layers, as of tare bench",
                 .only_for = KIND_LAYERS),
        OPT_UINT_IN(0, "top", &a->top, 0, RUN_LIST_MAX, "layers shown; 0: all", .only_for = KIND_LAYERS),
        OPT_JSON(&a->json),
        OPT_OUT(0, "csv", &a->csv, "<file>", "all layers as CSV; - is stdout", .only_for = KIND_LAYERS),
        OPT_STRING(0, "output-dir", &a->output_dir, "<dir>", "where the run document or the trace goes",
                 .flags = OPT_DIR),
        OPT_FLAG(0, "no-save", &a->no_save, "keep no run document", .only_for = KIND_LAYERS),
        OPT_END,
    };
    enum { N_COMMON = sizeof common / sizeof *common };
    struct opt rows[N_IMPORTERS + N_COMMON];
    for (size_t i = 0; i < N_IMPORTERS; i++)
        rows[i] = (struct opt)OPT_PATH(0, importers[i].name, &paths[i], "<file>", importers[i].help);
    memcpy(rows + N_IMPORTERS, common, sizeof common);
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    const struct importer *how = NULL;
    const char *path = NULL;
    for (size_t i = 0; i < N_IMPORTERS; i++) {
        if (!paths[i]) continue;
        if (how)
            return cli_usage_error(cli, "--%s and --%s: one file at a time", how->name, importers[i].name);
        how = &importers[i];
        path = paths[i];
    }
    if (how && argc) return cli_usage_error(cli, "--%s and %s: one file at a time", how->name, argv[0]);
    if (!how && !argc)
        return cli_usage_error(cli, "nothing to import: name a file, or --%s or --%s and a file",
                               importers[0].name, importers[1].name);
    if (!how) {
        path = argv[0];
        how = guess_importer(path);
    }
    if (!how && access(path, R_OK) != 0) return error_errno(&cli->error, "%s", path), cli_fail_input(cli);
    if (!how)
        return cli_usage_error(
            cli,
            "%s: is neither a profile of ONNX Runtime nor of torch.profiler (a run document of tare: "
            "tare history import)",
            path);
    rc = cli_check_kind(cli, &usage, rows, how->kind);
    return rc ? rc : how->take(cli, a, path);
}

int cmd_import(struct cli *cli, int argc, char **argv)
{
    struct import_args a = IMPORT_ARGS_INIT;
    int rc = import_read(cli, &a, argc, argv);
    opt_list_release(&a.groups);
    grid_release(&a.grid);
    return rc;
}
