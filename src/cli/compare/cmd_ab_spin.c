/* SPDX-License-Identifier: MIT
 * cmd_ab_spin.c - `tare __ab-spin`: the work that `tare doctor --aa` compares with itself. With a number it does so
 * many steps and ends: a command. Without one it is a worker process that is told over descriptor 3. Prints nothing. */
#include <errno.h>
#include <stdlib.h>

#include "bench/ab.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"
#include "subject/subject.h"

static tare_status parse_steps(const char *text, uint64_t *out, tare_error *err)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno)
        return error_set(err, TARE_INVALID, "'%.40s': expected a number of steps", text);
    *out = v;
    return TARE_OK;
}

static tare_status spin_once(const char *text, tare_error *err)
{
    struct subject *s = NULL;
    struct instance *i = NULL;
    struct subject_cost cost;
    uint64_t steps = 0;
    tare_status status = parse_steps(text, &steps, err);
    if (status == TARE_OK) status = subject_open_spin(&s, steps, err);
    if (status == TARE_OK) status = s->ops->prepare(s, NULL, NULL, &i, err);
    if (status == TARE_OK) status = s->ops->run(i, 0, &cost, err);
    if (i) s->ops->finish(i);
    subject_close(s);
    return status;
}

static tare_status serve_spins(tare_error *err)
{
    char text[64];
    struct ab_request start;
    struct subject *s = NULL;
    uint64_t steps = 0;
    tare_status status = ab_worker_begin(AB_WORKER_FD, &start, text, sizeof text, err);
    if (status < 0) return status;
    void *pad = mem_new(1, start.n ? (size_t)start.n : 1); /* moves the table */
    status = parse_steps(text, &steps, err);
    if (status == TARE_OK) status = subject_open_spin(&s, steps, err);
    if (status < 0)
        ab_worker_refuse(AB_WORKER_FD, status, err->text);
    else
        status = ab_worker_serve(AB_WORKER_FD, s, NULL, NULL, err);
    subject_close(s);
    mem_free(pad);
    return status;
}

int cmd_ab_spin(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare __ab-spin [<steps>]",
        .about = "Work that tare doctor --aa compares with itself; started by it, useless alone.",
        .max_args = 1,
    };
    const struct opt rows[] = {OPT_END};
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    tare_status s = argc ? spin_once(argv[0], &cli->error) : serve_spins(&cli->error);
    return s < 0 ? cli_fail(cli) : CLI_GOOD;
}
