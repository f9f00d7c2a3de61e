/* SPDX-License-Identifier: MIT
 * bench_open.c - from what the user named to opened subjects: a command, a model file, its variants, the runtimes it
 * shall run in, or a synthetic model, which is written once and kept in the user's cache. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/mem.h"
#include "model/synth/synth.h"
#include "report/sink.h"
#include "subject/ort_find.h"

/* ---- a synthetic model ---- */

/* Where it is kept. Owned. */
static tare_status cache_path(const char *arch, char **out, tare_error *err)
{
    char dir[PATH_MAX];
    struct buf b = BUF_INIT;
    if (!cli_cache_dir(dir, sizeof dir)) snprintf(dir, sizeof dir, "/tmp/tare-%u", (unsigned)geteuid());
    buf_printf(&b, "%s/%s", dir, TARE_VERSION);
    tare_status s = buf_status(&b, err);
    if (s == TARE_OK) s = file_make_folders(b.data, err);
    buf_printf(&b, "/%s.onnx", arch);
    if (s == TARE_OK && !(*out = buf_take(&b))) s = error_set(err, TARE_NOMEM, "out of memory");
    buf_release(&b);
    return s;
}

static tare_status write_model(struct cli *cli, struct ow *w, const char *path)
{
    struct sink_file file = SINK_FILE_INIT;
    uint64_t bytes = 0, data = 0;
    tare_status s = ow_size(w, NULL, &bytes, &data);
    if (s == TARE_OK && bytes > OW_FILE_MAX)
        s = error_set(&cli->error, TARE_INVALID,
                      "too large for one file: write it with tare synth and name that file");
    if (s == TARE_OK) s = sink_file_open(&file, path, &cli->error);
    if (s != TARE_OK) return s;
    struct progress bar;
    uint64_t done = 0;
    struct progress_sink to = {sink_to_file(&file), &bar, &done};
    progress_begin(&bar, cli->err, &cli->err_term, "writing the model", bytes);
    s = ow_write(w, &(struct ow_target){.file = {progress_sink_write, &to}});
    progress_end(&bar);
    if (s == TARE_OK) s = sink_file_commit(&file, &cli->error);
    sink_file_close(&file);
    return s;
}

static tare_status make_synthetic(struct cli *cli, const char *name, char **path)
{
    const struct synth_arch *arch = synth_find(name);
    struct synth_config config = {.opset = 17};
    struct ow w;
    if (!arch)
        return error_set(&cli->error, TARE_INVALID, "--synth %s: no such architecture (tare synth --list)",
                         name);
    tare_status s = cache_path(name, path, &cli->error);
    if (s != TARE_OK || access(*path, R_OK) == 0) return s;
    s = synth_resolve(arch, &config, &cli->error);
    if (s != TARE_OK) return s;
    s = synth_build(&w, arch, &config, &cli->error);
    if (s == TARE_OK) s = write_model(cli, &w, *path);
    ow_release(&w);
    return s;
}

/* ---- models ---- */

static const char *version_part(const char *path)
{
    const char *so = strstr(path, ".so.");
    return so && so[4] ? so + 4 : path;
}

/* What tells the runtimes asked for apart: "1.30.0" of libonnxruntime.so.1.30.0, or the whole path. */
static const char *runtime_name(const struct bench_args *a, const char *path)
{
    unsigned same = 0;
    for (size_t i = 0; i < a->runtimes.n; i++)
        same += strcmp(version_part(a->runtimes.items[i]), version_part(path)) == 0;
    return same > 1 ? path : version_part(path);
}

/* Takes the subject over, whatever the result. */
static tare_status add_subject(struct cli *cli, struct bench_subjects *s, struct subject *subject,
                               struct grid_subject named)
{
    named.subject = subject;
    tare_status status = vec_push(&s->opened, subject, &cli->error);
    if (status != TARE_OK) {
        subject_close(subject);
        return status;
    }
    return vec_push(&s->named, named, &cli->error);
}

static tare_status open_model(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                              const char *path, struct grid_subject named)
{
    struct ort_places places = cli_ort_places(named.runtime);
    struct onnx_options o = {.path = path,
                             .runtime = named.runtime,
                             .inputs = a->inputs,
                             .session_config = (const char *const *)a->session_config.items,
                             .n_session_config = a->session_config.n,
                             .optimization = (int)a->optimization,
                             .no_arena = a->no_arena,
                             .places = &places};
    struct subject *subject = NULL;
    tare_status status = subject_open_onnx(&subject, &o, &cli->error);
    if (status != TARE_OK) return status;
    named.runtime = a->runtimes.n > 1 ? runtime_name(a, named.runtime) : NULL;
    return add_subject(cli, s, subject, named);
}

/* One model in each of the runtimes asked for. */
static tare_status open_everywhere(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                                   const char *path, const char *variant)
{
    if (!a->runtimes.n) return open_model(cli, a, s, path, (struct grid_subject){NULL, variant, NULL});
    tare_status status = TARE_OK;
    for (size_t i = 0; i < a->runtimes.n && status == TARE_OK; i++)
        status = open_model(cli, a, s, path, (struct grid_subject){NULL, variant, a->runtimes.items[i]});
    return status;
}

static tare_status open_variant(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                                const char *text)
{
    const char *eq = strchr(text, '='); /* there: bench_plan.c checked */
    char *name = mem_strndup(text, (size_t)(eq - text));
    tare_status status =
        name ? vec_push(&s->names, name, &cli->error) : error_set(&cli->error, TARE_NOMEM, "out of memory");
    if (status != TARE_OK) {
        mem_free(name);
        return status;
    }
    return open_everywhere(cli, a, s, eq + 1, name);
}

static tare_status open_models(struct cli *cli, const struct bench_args *a, const char *model,
                               struct bench_subjects *s)
{
    tare_status status = open_everywhere(cli, a, s, model, a->variants.n ? "base" : NULL);
    for (size_t i = 0; i < a->variants.n && status == TARE_OK; i++)
        status = open_variant(cli, a, s, a->variants.items[i]);
    return status;
}

tare_status bench_model_file(struct cli *cli, const struct bench_planned *p, char **out)
{
    *out = NULL;
    if (p->args->kind != BENCH_MODEL) return TARE_OK;
    if (p->synth) return make_synthetic(cli, p->synth, out);
    *out = mem_strdup(p->args->model);
    return *out ? TARE_OK : error_set(&cli->error, TARE_NOMEM, "out of memory");
}

/* ---- Python functions and commands ---- */

/* TARE_PYTHON, else that of the active virtual environment, else the one on PATH. */
static const char *interpreter(char *room, size_t size)
{
    const char *chosen = secure_getenv("TARE_PYTHON"), *env = secure_getenv("VIRTUAL_ENV");
    if (chosen && *chosen) return chosen;
    if (env && *env && snprintf(room, size, "%s/bin/python3", env) < (int)size && access(room, X_OK) == 0)
        return room;
    return "python3";
}

static tare_status open_python(struct cli *cli, const struct bench_planned *p, struct subject **out)
{
    char room[PATH_MAX];
    const struct bench_args *a = p->args;
    struct py_options o = {.target = a->python,
                           .python = interpreter(room, sizeof room),
                           .inputs = a->inputs,
                           .workers = p->plan.concurrency ? p->plan.concurrency : 1,
                           .timeout_ns = (uint64_t)a->timeout.ns,
                           .interrupted = p->plan.interrupted};
    tare_status s = subject_open_py(out, &o, &cli->error);
    if (s == TARE_IO) s = cli->error.status = TARE_UNSUPPORTED; /* no Python is no bad input */
    return s;
}

static tare_status open_command(struct cli *cli, const struct bench_planned *p, struct subject **out)
{
    const struct bench_args *a = p->args;
    struct command_options o = {.argv = a->command,
                                .shell = a->shell,
                                .prepare = a->prepare,
                                .timeout_ns = (uint64_t)a->timeout.ns,
                                .ignore_failure = a->ignore_failure,
                                .interrupted = p->plan.interrupted};
    return subject_open_command(out, &o, &cli->error);
}

tare_status bench_open(struct cli *cli, const struct bench_planned *p, const char *model,
                       struct bench_subjects *s)
{
    struct subject *one = NULL;
    if (p->args->kind == BENCH_MODEL) return open_models(cli, p->args, model, s);
    tare_status status = (p->args->kind == BENCH_PYTHON ? open_python : open_command)(cli, p, &one);
    return status == TARE_OK ? add_subject(cli, s, one, (struct grid_subject){0}) : status;
}

void bench_close(struct bench_subjects *s)
{
    for (size_t i = 0; i < s->opened.n; i++) subject_close(s->opened.items[i]);
    for (size_t i = 0; i < s->names.n; i++) mem_free(s->names.items[i]);
    vec_release(&s->opened);
    vec_release(&s->names);
    vec_release(&s->named);
}
