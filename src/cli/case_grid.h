/* SPDX-License-Identifier: MIT
 * case_grid.h - how a model and how a command is run, as `tare bench` and `tare compare` are told: the rows of their
 * command lines; and from lists of values to the cases of a bench: every combination, named by what varies. */
#ifndef CLI_CASE_GRID_H
#define CLI_CASE_GRID_H

#include "bench/bench.h"
#include "cli/opt.h"
#include "core/arena.h"

struct grid_ints {
    VEC(int64_t) values; /* empty: not asked for */
};

struct grid_dim {
    const char *name;
    struct grid_ints values;
};

struct grid_subject {
    struct subject *subject;
    const char *variant, *runtime; /* names; NULL: there is only one */
};

typedef VEC(const char *) grid_words;

struct grid { /* what was asked for */
    struct grid_ints batch, seq, threads;
    VEC(struct grid_dim) dims;
    grid_words providers, ios;
    struct arena arena; /* of names */
    unsigned workers;
    uint64_t seed;
};
#define GRID_INIT {.workers = 1}
void grid_release(struct grid *s);

struct grid_cases { /* what that makes */
    VEC(struct bench_case) cases;
    struct arena arena; /* of their names and dimensions */
};
void grid_cases_release(struct grid_cases *c);

/* For OPT_CALLBACK rows: "1,4,16" into a struct grid_ints, "NAME=1,4" into a struct grid, "cpu,cuda" and
 * "host,gpu" likewise. */
tare_status grid_parse_ints(void *ints, const char *text, tare_error *err);
tare_status grid_parse_dim(void *grid, const char *text, tare_error *err);
tare_status grid_parse_providers(void *grid, const char *text, tare_error *err);
tare_status grid_parse_ios(void *grid, const char *text, tare_error *err);

/* Every combination of `n` subjects, providers, places of inputs and outputs, threads, dims, seq and, fastest, batch.
 * Borrows from both; release the cases whatever the result. */
tare_status grid_build(const struct grid *asked, const struct grid_subject *subjects, size_t n,
                       struct grid_cases *out, tare_error *err);

/* ---- the command line. Lists stay texts, so that one side of a comparison may leave to both what it does not say
 * itself; they were read once already, so that a mistake is told where it stands ---- */

/* What a row is for; the kinds of a command's usage are some of these. */
enum {
    KIND_MODEL = 1,
    KIND_COMMAND = 2,
    KIND_PYTHON = 4,
    KIND_SAVED = 8,
    KIND_TRACES = 16,
    KIND_SERVICE = 32
};

struct model_args {
    const char *batch, *seq, *threads, *provider, *io, *inputs; /* NULL: not said */
    struct opt_list dims, runtimes, session_config;
    int64_t optimization; /* -1: the runtime's own */
    bool no_arena, no_pattern, parallel;
};
#define MODEL_ARGS_INIT {.optimization = -1}
void model_args_release(struct model_args *m);

struct command_args {
    bool shell, ignore_failure;
    const char *prepare;     /* NULL: nothing */
    struct duration timeout; /* of a run, and of loading a model; 0: none */
};

/* clang-format off */
#define OPT_SWEEP(m, seq_hint) \
    OPT_CALLBACK('b', "batch", model_parse_ints, &(m)->batch, "<n,..>", "batch sizes", \
                 .only_for = KIND_MODEL | KIND_PYTHON), \
    OPT_CALLBACK('s', "seq", model_parse_ints, &(m)->seq, "<n,..>", "sequence lengths", \
                 .only_for = KIND_MODEL, .hint = (seq_hint)), \
    OPT_CALLBACK('t', "threads", model_parse_ints, &(m)->threads, "<n,..>", \
                 "threads within one run (default: what this process may use)", .only_for = KIND_MODEL, \
                 .hint = "set OMP_NUM_THREADS, or what your framework reads"), \
    OPT_CALLBACK(0, "dim", model_parse_dim, &(m)->dims, "<name=n,..>", \
                 "any other free dimension of the model; may be repeated", .only_for = KIND_MODEL), \
    OPT_STRING(0, "provider", &(m)->provider, "<name,..>", "execution providers: cpu, cuda, ..", \
                 .only_for = KIND_MODEL), \
    OPT_STRING(0, "io", &(m)->io, "<host,gpu>", \
                 "inputs and outputs in host memory, copied in each run, or kept on the GPU", .only_for = KIND_MODEL), \
    OPT_LIST(0, "ort", &(m)->runtimes, "<path>", "which libonnxruntime; several are compared", \
                 .only_for = KIND_MODEL)
#define OPT_RUNTIME(m, more_inputs) \
    OPT_PATH(0, "inputs", &(m)->inputs, "<path>", \
                 "an .npz, an .npy, a folder of them, or an ONNX test_data_set" more_inputs, \
                 .only_for = KIND_MODEL | KIND_PYTHON | KIND_SERVICE), \
    OPT_INT_IN(0, "optimization", &(m)->optimization, -1, 99, \
                 "the runtime's graph optimisation level: 0, 1, 2, 99", .flags = OPT_NO_DEFAULT, \
                 .only_for = KIND_MODEL), \
    OPT_LIST(0, "session-config", &(m)->session_config, "<key=value>", "passed to the runtime", \
                 .only_for = KIND_MODEL), \
    OPT_FLAG(0, "no-arena", &(m)->no_arena, "let the runtime allocate without its arena", .only_for = KIND_MODEL), \
    OPT_FLAG(0, "no-memory-pattern", &(m)->no_pattern, "let the runtime not plan its memory ahead", \
                 .only_for = KIND_MODEL), \
    OPT_FLAG(0, "parallel", &(m)->parallel, "nodes that do not wait for each other run at the same time", \
                 .only_for = KIND_MODEL)
#define OPT_COMMANDS(c, where) \
    OPT_FLAG(0, "shell", &(c)->shell, "the command is a line for /bin/sh", .only_for = KIND_COMMAND, .hint = (where)), \
    OPT_STRING(0, "prepare", &(c)->prepare, "<line>", "shell line before each run, not timed", \
                 .only_for = KIND_COMMAND, .hint = (where)), \
    OPT_TIME_IN(0, "timeout", &(c)->timeout, 0, INT64_MAX, \
                 "end a run, or the loading of a model, that takes longer (models: 10m, loading 1h; requests: 30s)", \
                 .flags = OPT_NO_DEFAULT, \
                 .only_for = KIND_MODEL | KIND_COMMAND | KIND_PYTHON | KIND_SERVICE), \
    OPT_FLAG(0, "ignore-failure", &(c)->ignore_failure, "a non-zero exit status is no failure", \
                 .only_for = KIND_COMMAND, .hint = (where))
/* clang-format on */
tare_status model_parse_ints(void *text, const char *value, tare_error *err);
tare_status model_parse_dim(void *list, const char *value, tare_error *err);

/* What `own` says, and what `common` says where it says nothing. Borrows from both. */
struct model_args model_args_over(const struct model_args *own, const struct model_args *common);
/* Fill in the sweep; errors name the option. */
tare_status model_args_grid(const struct model_args *m, struct grid *out, tare_error *err);
/* For subject_open_onnx(): all but where runtimes are looked for, and what guards a load. */
struct onnx_options model_args_onnx(const struct model_args *m, const char *path, const char *runtime);

#endif
