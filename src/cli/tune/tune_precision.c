/* SPDX-License-Identifier: MIT
 * tune_precision.c - the model in lower precisions, made by ONNX Runtime's own tools where Python has them, each kept
 * only where its outputs on the user's inputs are surely good enough. Without inputs and a limit nothing is changed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/tune/tune_args.h"
#include "core/str.h"

static const char *const kinds[] = {"fp16", "int8"};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Half precision keeps the types of inputs and outputs, so that the same arrays go in. */
static char program[] =
    "import sys\n"
    "kind, source, to = sys.argv[1:]\n"
    "try:\n"
    "    import onnx\n"
    "    if kind == 'int8':\n"
    "        from onnxruntime.quantization import QuantType, quantize_dynamic\n"
    "        quantize_dynamic(source, to, weight_type=QuantType.QInt8)\n"
    "    else:\n"
    "        from onnxruntime.transformers.float16 import convert_float_to_float16\n"
    "        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), to)\n"
    "except Exception as e:\n"
    "    print()\n"
    "    print(type(e).__name__ + ': ' + str(e).splitlines()[0] if str(e) else type(e).__name__)\n"
    "    sys.exit(9)\n";

/* ---- making ---- */

/* The last line that a program wrote. */
static void last_line(int fd, char *out, size_t size)
{
    char text[4096];
    ssize_t n =
        pread(fd, text, sizeof text - 1, lseek(fd, 0, SEEK_END) > 4095 ? lseek(fd, 0, SEEK_END) - 4095 : 0);
    text[n > 0 ? n : 0] = 0;
    size_t end = strlen(text);
    while (end && (text[end - 1] == '\n' || text[end - 1] == ' ')) text[--end] = 0;
    const char *line = strrchr(text, '\n');
    snprintf(out, size, "%.200s", line ? line + 1 : text);
}

static bool is_newer(const char *path, const char *than)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(than, &b) == 0 && a.st_size > 0 && a.st_mtime >= b.st_mtime;
}

/* Under another name first, so that half a model is never found by the next search. False: `why` says it. */
static bool make_model(const struct tune_args *a, const char *kind, const char *path, char *why, size_t size)
{
    char room[4096], temp[4200], source[4096], name[4096], option[] = "-c", what[16];
    char log_path[] = "/tmp/tare-precision-XXXXXX";
    tare_error err = TARE_ERROR_INIT;
    int code = 0, log = mkstemp(log_path);
    const char *python = cli_python(room, sizeof room);
    snprintf(name, sizeof name, "%s", python); /* by its whole path: a virtual environment is known by it */
    snprintf(temp, sizeof temp, "%s.part", path);
    snprintf(source, sizeof source, "%s", a->model);
    snprintf(what, sizeof what, "%s", kind);
    char *words[] = {name, option, program, what, source, temp, NULL};
    if (log < 0) {
        snprintf(why, size, "no temporary file in /tmp");
        return false;
    }
    unlink(log_path);
    struct bench_program p = {python, words, log};
    tare_status s = bench_run_program(&p, &code, &err);
    if (s < 0)
        snprintf(why, size, "%.200s", err.text);
    else if (code != 0)
        last_line(log, why, size);
    bool made = s == TARE_OK && code == 0 && rename(temp, path) == 0;
    if (s == TARE_OK && code == 0 && !made) snprintf(why, size, "%.180s was not made", path);
    if (!made) unlink(temp);
    close(log);
    return made;
}

/* ---- judging ---- */

/* All of the inputs in one batch, whatever --batch is used today: of its first rows little can be shown. */
static tare_status gate_words(const struct tune_args *a, const char *kind, const char *path,
                              struct opt_list *words, tare_error *err)
{
    char variant[4200];
    struct model_args all = a->setup;
    all.batch = NULL;
    snprintf(variant, sizeof variant, "%s=%s", kind, path);
    tare_status s = tune_add_word(words, a->model, NULL, err);
    if (s == TARE_OK) s = tune_add_word(words, "--variant", variant, err);
    if (s == TARE_OK) s = tune_add_word(words, "--metric", accuracy_metric_row(a->metric)->name, err);
    if (s == TARE_OK) s = tune_add_word(words, "--budget", "200ms", err);
    if (s == TARE_OK) s = tune_add_word(words, "--min-runs", "1", err);
    if (s == TARE_OK) s = tune_add_word(words, "--max-runs", "3", err);
    return s == TARE_OK ? tune_add_setup(words, &all, err) : s;
}

static tare_status keep_accuracy(struct tune_plan *p, const struct run_accuracy *of, struct tune_choice *to,
                                 tare_error *err)
{
    struct run_accuracy *kept = arena_new(&p->arena, 1, sizeof *kept);
    if (!kept) return error_nomem(err, "a score");
    *kept = *of;
    kept->metric = arena_str(&p->arena, of->metric);
    kept->dataset = arena_str(&p->arena, of->dataset);
    kept->output = of->output ? arena_str(&p->arena, of->output) : NULL;
    to->accuracy = kept;
    return p->arena.failed ? error_nomem(err, "a score") : TARE_OK;
}

/* The second case is the variant's. Only a score that surely holds is good enough: what a few examples cannot show is
 * refused like what they disprove. */
static tare_status judge_model(struct tune_plan *p, const char *kind, const char *path,
                               const struct run *measured, tare_error *err)
{
    const struct run_case *c = measured->cases.n > 1 ? measured->cases.at[1] : NULL;
    struct run_target row = {0};
    if (!c || c->failure || !c->accuracy.score.known)
        return tune_plan_leave(p, err, "precision %s: its outputs could not be compared: %s", kind,
                               c && c->failure ? c->failure : "no score");
    tare_status s = target_judge(p->args->gate, c, &row, err);
    if (s < 0) return s;
    const struct run_estimate *e = &c->accuracy.score;
    unsigned long long n = c->accuracy.examples.known ? c->accuracy.examples.v : 0;
    if (strcmp(row.verdict, "pass") != 0)
        return tune_plan_leave(p, err, "precision %s: %s %.4g (%.4g to %.4g) over %llu examples %s %s%.6g",
                               kind, c->accuracy.metric, e->value, e->lo.known ? e->lo.v : -1.0,
                               e->hi.known ? e->hi.v : 1.0, n,
                               strcmp(row.verdict, "fail") == 0 ? "does not keep" : "does not show",
                               target_op_text(p->args->gate->op), p->args->gate->value);
    struct tune_choice v = {.word = kind, .file = arena_str(&p->arena, path)};
    s = v.file ? keep_accuracy(p, &c->accuracy, &v, err) : error_nomem(err, "a path");
    struct tune_choices *to = &p->of[TUNE_PRECISION];
    if (s == TARE_OK) to->at[to->n++] = v;
    return s;
}

/* What the child said of a model that cannot run stands on stderr already; the search goes on without it. */
static int try_kind(struct cli *cli, struct tune_plan *p, const char *kind)
{
    const struct tune_args *a = p->args;
    char path[4096], why[256] = "";
    struct opt_list words = OPT_LIST_INIT;
    struct run measured = {0};
    const char *file = str_file_name(a->model);
    int stem = (int)(str_ends_with(file, ".onnx") ? strlen(file) - 5 : strlen(file));
    int n = snprintf(path, sizeof path, "%s/%.*s.%s.onnx", a->history.output_dir, stem, file, kind);
    tare_status s = TARE_OK;
    if (n < 0 || (size_t)n >= sizeof path) snprintf(why, sizeof why, "its path is too long");
    if (!why[0] && !is_newer(path, a->model)) make_model(a, kind, path, why, sizeof why);
    if (why[0]) {
        s = tune_plan_leave(p, &cli->error, "precision %s: cannot be made: %s", kind, why);
        return s == TARE_OK ? 0 : cli_fail(cli);
    }
    s = gate_words(a, kind, path, &words, &cli->error);
    int rc = s == TARE_OK ? bench_child(cli, &words, &measured) : cli_fail(cli);
    if (rc && s == TARE_OK) {
        s = tune_plan_leave(p, &cli->error, "precision %s: it does not run", kind);
        rc = 0;
    } else if (s == TARE_OK) {
        s = judge_model(p, kind, path, &measured, &cli->error);
    }
    opt_list_release(&words);
    run_release(&measured);
    return s == TARE_OK ? rc : cli_fail(cli);
}

int tune_precision(struct cli *cli, struct tune_plan *p)
{
    const char *why = NULL;
    if (!tune_varies(p->args, TUNE_PRECISION)) return 0;
    if (!p->args->gate) why = "it changes outputs; --accuracy and --inputs let it be tried";
    if (p->args->gate && p->args->no_save)
        why = "its models are files in --output-dir, and --no-save forbids them";
    if (why) return tune_plan_leave(p, &cli->error, "precision: %s", why) == TARE_OK ? 0 : cli_fail(cli);
    int rc = 0;
    for (int i = 0; !rc && i < KINDS && !interrupted; i++) rc = try_kind(cli, p, kinds[i]);
    tune_plan_close(p);
    return rc;
}
