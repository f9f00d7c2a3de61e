/* SPDX-License-Identifier: MIT
 * bench_plan.c - from what the user asked for to what will be measured: the load, the sweep, the targets; then the
 * opened subjects: a command, a model file, its variants, the runtimes it shall run in, or a synthetic model, which is
 * written once and kept in the user's cache. Reads files that are needed later, to say early that they are missing;
 * measures nothing. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/compare/compare_saved.h"
#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/unit.h"
#include "model/synth/synth.h"
#include "report/sink.h"
#include "subject/ort_find.h"

/* ---- the load ---- */

static int read_rate(struct cli *cli, const struct bench_args *a, struct bench_plan *to)
{
    if (!a->rate) return 0;
    if (a->kind == KIND_SERVICE) { /* bench_http.c reads them: each is a case */
        to->load = BENCH_OPEN;
        to->rate = 1;
        return 0;
    }
    double v;
    if (!unit_parse(UNIT_FREQUENCY, a->rate, &v) || !(v > 0) || v > 1e9)
        return cli_usage_error(cli, "--rate %s: expected runs per second, as in 200/s", a->rate);
    to->rate = v;
    to->load = BENCH_OPEN;
    return 0;
}

static int read_warmup(struct cli *cli, const struct bench_args *a, struct bench_plan *to)
{
    if (!a->warmup || strcmp(a->warmup, "auto") == 0) return 0;
    char *end;
    long long v = strtoll(a->warmup, &end, 10);
    if (end == a->warmup || *end || v < 0 || v > 1000000000)
        return cli_usage_error(cli, "--warmup %s: expected auto or a number of runs", a->warmup);
    to->warmup_runs = v;
    return 0;
}

/* A preset sets the load; what the user asked for beside it stays. */
static int apply_scenario(struct cli *cli, const struct bench_args *a, struct bench_planned *p)
{
    const struct bench_preset *preset = NULL;
    if (!a->scenario) return 0;
    if (bench_preset_apply(&p->plan, a->scenario, &preset, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "%s", cli->error.text);
    if (preset->needs_rate && !a->rate)
        return cli_usage_error(cli, "--scenario %s needs --rate, as in --rate 200/s", preset->name);
    if (a->rate && !preset->needs_rate)
        return cli_usage_error(cli, "--scenario %s has no --rate", preset->name);
    p->plan.concurrency = (unsigned)a->concurrency;
    if (!a->command) p->preset_batch = preset->batch;
    return 0;
}

/* What one unit is called, where the user does not say it. A Python function counts calls, unless it has items. */
static const char *usual_unit(const struct bench_args *a, bool built_in)
{
    if (built_in) return "texts";
    if (a->kind == KIND_COMMAND) return "runs";
    if (a->kind == KIND_SERVICE) return "requests";
    if (a->kind == KIND_MODEL) return "samples";
    return a->setup.inputs || a->setup.batch ? "items" : "calls";
}

/* The options that are numbers of the plan already; a limit on latency is judged by p95, so its tail must be known. */
static struct bench_plan asked_plan(const struct bench_args *a, bool built_in)
{
    struct bench_plan p = BENCH_PLAN_INIT;
    p.budget_ns = (uint64_t)a->budget.ns;
    p.precision = a->precision;
    p.percentile = a->percentile / 100.0;
    if (a->min_runs) p.min_runs = a->min_runs;
    p.min_runs_firm = a->min_runs != 0;
    if (a->latency_limit.ns) p.tail = 0.95;
    p.max_runs = a->max_runs;
    p.arrivals = (enum load_arrivals)a->arrivals;
    p.concurrency = a->kind == KIND_SERVICE ? 1 : (unsigned)a->concurrency;
    p.per_run = (int64_t)a->per_run;
    p.seed = a->seed;
    p.service_pid = (pid_t)a->http.pid;
    p.unit = a->unit ? a->unit : usual_unit(a, built_in);
    p.interrupted = &interrupted;
    return p;
}

/* ---- the sweep ---- */

/* Lengths of texts are one more dimension. */
static int add_lengths(struct cli *cli, const struct bench_args *a, struct grid *to)
{
    struct buf text = BUF_INIT;
    if (!a->length) return 0;
    buf_printf(&text, "length=%s", a->length);
    tare_status s = buf_status(&text, &cli->error);
    if (s == TARE_OK) s = grid_parse_dim(to, text.data, &cli->error);
    buf_release(&text);
    return s == TARE_OK ? 0 : cli_usage_error(cli, "--length %s: %s", a->length, cli->error.text);
}

/* What the user asked for, and where he did not, the sweep of the built-in model or the batch of the scenario. */
static int plan_grid(struct cli *cli, const struct bench_args *a, bool built_in, struct bench_planned *p)
{
    struct model_args m = a->setup; /* borrowed */
    char batch[24];
    snprintf(batch, sizeof batch, "%lld", (long long)p->preset_batch);
    if (!m.batch && built_in) m.batch = "1,4,8,16,32";
    if (!m.batch && p->preset_batch) m.batch = batch;
    if (!m.seq && built_in) m.seq = "128";
    p->grid.workers = p->plan.concurrency;
    p->grid.seed = p->plan.seed;
    if (model_args_grid(&m, &p->grid, &cli->error) < 0) return cli_usage_error(cli, "%s", cli->error.text);
    return add_lengths(cli, a, &p->grid);
}

/* ---- what it is judged by ---- */

/* A rate of texts against a bench of images would be found out only after minutes of measuring. */
static int read_targets(struct cli *cli, const struct bench_args *a, struct bench_planned *p)
{
    for (size_t i = 0; i < a->targets.n; i++) {
        struct target t;
        if (target_parse(&t, a->targets.items[i], &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s", cli->error.text);
        if (target_check_unit(&t, p->plan.unit, &cli->error) != TARE_OK)
            return cli_usage_error(cli, "--target %s: %s", a->targets.items[i], cli->error.text);
        if (vec_push(&p->targets, t, &cli->error) != TARE_OK) return cli_fail(cli);
        p->plan.tail = fmax(p->plan.tail, measure_find(t.metric)->quantile);
    }
    return 0;
}

static int check_baseline(struct cli *cli, const struct bench_args *a)
{
    struct compare_limit l;
    if (!a->baseline.n && a->fail_on.n && !a->fail_on.from_layer)
        return cli_usage_error(cli, "--fail-on has nothing to compare with: there is no --baseline");
    if (!a->baseline.n && a->fail_on.n) /* tare.yaml holds it for all runs */
        cli_note(cli, "fail-on of the settings has nothing to compare with: there is no --baseline");
    for (size_t i = 0; i < a->fail_on.n; i++)
        if (compare_limit_parse(&l, a->fail_on.items[i], NULL, &cli->error) < 0)
            return cli_usage_error(cli, "--fail-on %s", cli->error.text);
    return a->baseline.n ? compare_runs_check(cli, &a->baseline, &a->history, NULL) : 0;
}

static int check_files(struct cli *cli, const struct bench_args *a)
{
    const struct accuracy_metric_row *metric = accuracy_metric_row((enum accuracy_metric)a->metric);
    if (a->expect && a->kind == KIND_MODEL && !a->setup.inputs)
        return cli_usage_error(cli, "--expect needs --inputs");
    if (!a->expect && metric->needs_labels)
        return cli_usage_error(cli, "--metric %s needs labels: give them with --expect", metric->name);
    if (a->python && a->setup.inputs && access(a->setup.inputs, R_OK) < 0)
        return cli_usage_error(cli, "--inputs %s: cannot be read", a->setup.inputs);
    for (size_t i = 0; i < a->variants.n; i++) {
        const char *text = a->variants.items[i], *eq = strchr(text, '=');
        if (!eq || eq == text || !eq[1])
            return cli_usage_error(cli, "--variant %s: expected NAME=FILE, as in int8=model-int8.onnx", text);
    }
    int rc = html_out_check(cli, a->html);
    return rc || a->no_save || a->launch_document ? rc : output_dir_check(cli, &a->history);
}

/* It takes as long as it took. */
static void take_replay(const struct bench_replay *replay, struct bench_plan *to)
{
    const struct moments *m = &replay->moments;
    to->replay = replay;
    to->load = BENCH_OPEN;
    to->rate = 1;
    to->budget_ns = m->at.items[m->at.n - 1] + 1;
}

int bench_make_plan(struct cli *cli, const struct bench_args *a, bool built_in, struct bench_planned *out)
{
    *out = (struct bench_planned){.args = a, .synth = built_in ? "minilm-l6" : a->synth, .grid = GRID_INIT};
    out->service = (struct bench_service){.asking = ASKING_INIT, .protocol = {.kserve = KSERVE_LOAD_INIT}};
    out->plan = asked_plan(a, built_in);
    int rc = bench_anchor_check(cli, a);
    if (!rc) rc = check_files(cli, a);
    if (!rc && a->expect) rc = bench_expected_read(cli, a, &out->expected);
    if (!rc) rc = read_rate(cli, a, &out->plan);
    if (!rc) rc = read_warmup(cli, a, &out->plan);
    if (!rc) rc = apply_scenario(cli, a, out);
    if (!rc) rc = plan_grid(cli, a, built_in, out);
    if (!rc && a->http.find_rate) rc = bench_find_limits(cli, a, &out->limits, &out->service.protocol.slo);
    if (!rc && a->kind == KIND_SERVICE) rc = bench_service_plan(cli, a, &out->expected, &out->service);
    if (!rc && a->expect && a->kind == KIND_SERVICE)
        out->plan.window_done = (struct bench_window_done){bench_answers_done, &out->service.answers};
    if (!rc && a->http.replay) take_replay(&out->service.replay, &out->plan);
    if (!rc && a->llm.on)
        out->plan.streams = (struct bench_streams){&out->service.protocol.pool, &out->service.protocol.slo};
    if (!rc) rc = read_targets(cli, a, out);
    if (!rc) rc = check_baseline(cli, a);
    return rc;
}

void bench_planned_release(struct bench_planned *p)
{
    vec_release(&p->targets);
    bench_expected_release(&p->expected);
    grid_release(&p->grid);
    bench_service_release(&p->service);
}

/* ==== opened subjects ==== */

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

/* Whole or not at all: the next bench takes whatever lies in the cache for good. */
static tare_status write_model(struct cli *cli, struct ow *w, const char *path)
{
    struct file_out file = FILE_OUT_INIT;
    uint64_t bytes = 0, data = 0;
    tare_status s = ow_size(w, NULL, &bytes, &data);
    if (s == TARE_OK && bytes > OW_FILE_MAX)
        s = error_set(&cli->error, TARE_INVALID,
                      "too large for one file: write it with tare synth and name that file");
    if (s == TARE_OK) s = file_out_open(&file, path, FILE_SHARED, &cli->error);
    if (s != TARE_OK) return s;
    struct progress_count count = {PROGRESS_INIT(cli), "writing the model", 0, bytes};
    struct progress_sink to = {sink_to_file(&file), &count};
    s = ow_write(w, &(struct ow_target){.file = {progress_sink_write, &to}});
    progress_end(&count.bar);
    if (s == TARE_OK) s = file_out_commit(&file, &cli->error);
    file_out_close(&file);
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
    for (size_t i = 0; i < a->setup.runtimes.n; i++)
        same += strcmp(version_part(a->setup.runtimes.items[i]), version_part(path)) == 0;
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

/* The runtime neither comes back nor can be asked to: cases measured before it are lost with the process. */
static void give_up(void *cli, const char *text)
{
    error_set(&((struct cli *)cli)->error, TARE_DENIED, "%s", text);
    _exit(cli_fail(cli));
}

static tare_status open_model(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                              const char *path, struct grid_subject named)
{
    struct ort_places places = cli_ort_places(named.runtime);
    struct onnx_options o = model_args_onnx(&a->setup, path, named.runtime);
    o.places = &places;
    o.guard = (struct guard_options){.timeout_ns = (uint64_t)a->call.timeout.ns,
                                     .interrupted = &interrupted,
                                     .give_up = give_up,
                                     .ctx = cli};
    struct subject *subject = NULL;
    tare_status status = subject_open_onnx(&subject, &o, &cli->error);
    if (status != TARE_OK) return status;
    named.runtime = a->setup.runtimes.n > 1 ? runtime_name(a, named.runtime) : NULL;
    return add_subject(cli, s, subject, named);
}

/* One model in each of the runtimes asked for. */
static tare_status open_everywhere(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                                   const char *path, const char *variant)
{
    if (!a->setup.runtimes.n) return open_model(cli, a, s, path, (struct grid_subject){NULL, variant, NULL});
    tare_status status = TARE_OK;
    for (size_t i = 0; i < a->setup.runtimes.n && status == TARE_OK; i++)
        status =
            open_model(cli, a, s, path, (struct grid_subject){NULL, variant, a->setup.runtimes.items[i]});
    return status;
}

static tare_status open_variant(struct cli *cli, const struct bench_args *a, struct bench_subjects *s,
                                const char *text)
{
    const char *eq = strchr(text, '='); /* there: bench_plan.c checked */
    const char *name = arena_str_n(&s->arena, text, (size_t)(eq - text));
    return name ? open_everywhere(cli, a, s, eq + 1, name) : error_nomem(&cli->error, "a variant");
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
    if (p->args->kind != KIND_MODEL) return TARE_OK;
    if (p->synth) return make_synthetic(cli, p->synth, out);
    *out = mem_strdup(p->args->model);
    return *out ? TARE_OK : error_set(&cli->error, TARE_NOMEM, "out of memory");
}

/* ---- Python functions and commands ---- */

static tare_status open_python(struct cli *cli, const struct bench_planned *p, struct subject **out)
{
    char room[PATH_MAX];
    const struct bench_args *a = p->args;
    struct py_options o = {.target = a->python,
                           .python = cli_python(room, sizeof room),
                           .inputs = a->setup.inputs,
                           .workers = p->plan.concurrency ? p->plan.concurrency : 1,
                           .timeout_ns = (uint64_t)a->call.timeout.ns,
                           .interrupted = p->plan.interrupted};
    tare_status s = subject_open_py(out, &o, &cli->error);
    if (s == TARE_IO) s = cli->error.status = TARE_UNSUPPORTED; /* no Python is no bad input */
    return s;
}

static tare_status open_command(struct cli *cli, const struct bench_planned *p, struct subject **out)
{
    const struct bench_args *a = p->args;
    struct command_options o = {.argv = a->command,
                                .shell = a->call.shell,
                                .prepare = a->call.prepare,
                                .timeout_ns = (uint64_t)a->call.timeout.ns,
                                .ignore_failure = a->call.ignore_failure,
                                .interrupted = p->plan.interrupted};
    return subject_open_command(out, &o, &cli->error);
}

tare_status bench_open(struct cli *cli, const struct bench_planned *p, const char *model,
                       struct bench_subjects *s)
{
    struct subject *one = NULL;
    if (p->args->kind == KIND_MODEL) return open_models(cli, p->args, model, s);
    tare_status status = TARE_OK;
    if (p->args->kind == KIND_SERVICE)
        status = bench_service_open(p, &one, &cli->error);
    else
        status = (p->args->kind == KIND_PYTHON ? open_python : open_command)(cli, p, &one);
    return status == TARE_OK ? add_subject(cli, s, one, (struct grid_subject){0}) : status;
}

void bench_close(struct bench_subjects *s)
{
    for (size_t i = 0; i < s->opened.n; i++) subject_close(s->opened.items[i]);
    vec_release(&s->opened);
    vec_release(&s->named);
    arena_release(&s->arena);
}
