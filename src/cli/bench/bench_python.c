/* SPDX-License-Identifier: MIT
 * bench_python.c - `tare bench py:FILE.py:NAME`: what may be asked of a Python function, and which Python runs it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"

bool bench_python_named(const char *word)
{
    return strncmp(word, "py:", 3) == 0;
}

/* Lengths are one more dimension of the sweep. */
static int read_lengths(struct cli *cli, struct bench_args *a)
{
    struct buf text = BUF_INIT;
    if (!a->length) return 0;
    buf_printf(&text, "length=%s", a->length);
    tare_status s = buf_status(&text, &cli->error);
    if (s == TARE_OK) s = grid_parse_dim(&a->grid, text.data, &cli->error);
    buf_release(&text);
    return s == TARE_OK ? 0 : cli_usage_error(cli, "--length %s: %s", a->length, cli->error.text);
}

static int check_options(struct cli *cli, const struct bench_args *a)
{
    const struct {
        bool asked;
        const char *what;
    } rows[] = {
        {a->grid.seq.values.n, "--seq (texts have --length)"},
        {a->grid.dims.n, "--dim"},
        {a->grid.threads.values.n, "--threads (set OMP_NUM_THREADS, or what your framework reads)"},
        {a->grid.providers.n, "--provider"},
        {a->variants.n, "--variant"},
        {a->runtimes.n, "--ort"},
        {a->expect || a->validate, "--expect and --validate-accuracy"},
        {a->layers, "--layers"},
        {a->anchor, "--anchor"},
        {a->synth, "--synth"},
        {a->shell || a->prepare || a->ignore_failure, "--shell, --prepare and --ignore-failure"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].asked) return cli_usage_error(cli, "a Python function has no %s", rows[i].what);
    return 0;
}

int bench_python_choose(struct cli *cli, struct bench_args *a, int n, char **args)
{
    if (n > 1) return cli_usage_error(cli, "'%s': one Python function at a time", args[1]);
    const char *target = args[0] + 3, *colon = strrchr(target, ':');
    if (!colon || colon == target || !colon[1])
        return cli_usage_error(
            cli, "%s: expected py:FILE.py:NAME or py:MODULE:NAME, as in py:embed.py:encode", args[0]);
    int rc = check_options(cli, a);
    if (!rc) rc = read_lengths(cli, a);
    if (rc) return rc;
    if (a->inputs && access(a->inputs, R_OK) < 0)
        return cli_usage_error(cli, "--inputs %s: cannot be read", a->inputs);
    a->model = args[0];
    a->python = target;
    return 0;
}

/* TARE_PYTHON, else that of the active virtual environment, else the one on PATH. */
static const char *interpreter(char *room, size_t size)
{
    const char *chosen = getenv("TARE_PYTHON"), *env = getenv("VIRTUAL_ENV");
    if (chosen && *chosen) return chosen;
    if (env && *env && snprintf(room, size, "%s/bin/python3", env) < (int)size && access(room, X_OK) == 0)
        return room;
    return "python3";
}

tare_status bench_python_open(struct cli *cli, const struct bench_args *a, struct subject **out)
{
    char room[PATH_MAX];
    struct py_options o = {.target = a->python,
                           .python = interpreter(room, sizeof room),
                           .inputs = a->inputs,
                           .workers = a->plan.concurrency ? a->plan.concurrency : 1,
                           .timeout_ns = (uint64_t)a->timeout.ns,
                           .interrupted = a->plan.interrupted};
    tare_status s = subject_open_py(out, &o, &cli->error);
    if (s == TARE_IO) s = cli->error.status = TARE_UNSUPPORTED; /* no Python is no bad input */
    return s;
}
