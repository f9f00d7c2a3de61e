/* SPDX-License-Identifier: MIT
 * run_arg.c - see run_arg.h. */
#include "cli/run_arg.h"

#include "core/mem.h"

void run_args_release(struct run_args *a)
{
    for (size_t i = 0; i < a->n; i++) run_release(&a->runs[i]);
    mem_free(a->runs);
    mem_free(a->list);
    *a = (struct run_args)RUN_ARGS_INIT;
}

int run_args_load(struct cli *cli, struct run_args *out, char **paths, size_t n)
{
    tare_status s = TARE_OK;
    *out = (struct run_args)RUN_ARGS_INIT;
    out->runs = mem_new(n, sizeof *out->runs);
    out->list = mem_new(n, sizeof *out->list); /* NOLINT(bugprone-sizeof-expression): of pointers */
    if (!out->runs || !out->list)
        s = error_set(&cli->error, TARE_NOMEM, "out of memory for %zu documents", n);
    for (; s == TARE_OK && out->n < n; out->n++) {
        s = run_load(&out->runs[out->n], paths[out->n], &cli->error);
        if (s < 0) break;
        out->list[out->n] = &out->runs[out->n];
    }
    if (s == TARE_OK) return 0;
    run_args_release(out);
    int rc = cli_fail(cli);
    return s == TARE_NOMEM ? rc : CLI_USAGE; /* missing, unreadable, no run document: bad input */
}
