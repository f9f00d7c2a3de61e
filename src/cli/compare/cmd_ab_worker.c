/* SPDX-License-Identifier: MIT
 * cmd_ab_worker.c - one side of an interleaved comparison, told over descriptor 3 what to do; prints nothing.
 * `tare __ab-worker` loads a model, for `tare compare --ab`. `tare __ab-spin` is the work that `tare doctor --aa`
 * compares with itself: with a number it does so many steps and ends, as a command does. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/ab.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"
#include "probe/host.h"
#include "subject/subject.h"

/* ---- a model ---- */

static bool has_socket(void)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(AB_WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* What cannot be opened is said over the socket: the other end has the terminal. */
static tare_status serve_model(struct run *run, const char *text, tare_error *err)
{
    struct ab_spec spec;
    struct subject *subject = NULL;
    struct run_map chosen = {0};
    tare_status s = ab_spec_read(&spec, &run->arena, text, err);
    if (s == TARE_OK) s = host_read(run, "", err);
    if (s == TARE_OK) {
        struct ort_places places = cli_ort_places(spec.model.runtime);
        spec.model.places = &places;
        s = subject_open_onnx(&subject, &spec.model, err);
    }
    if (s < 0) {
        ab_worker_refuse(AB_WORKER_FD, s, err->text);
        return s;
    }
    struct case_record record = {.run = run, .params = &chosen};
    s = ab_worker_serve(AB_WORKER_FD, subject, &spec.params, &record, err);
    subject_close(subject);
    return s;
}

int cmd_ab_worker(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare __ab-worker",
        .about = "One side of tare compare --ab; started by it, useless alone.",
    };
    static char text[AB_SPEC_MAX];
    struct ab_request start;
    struct run run;
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    if (!has_socket()) return cli_usage_error(cli, "only tare compare --ab starts this");
    if (ab_worker_begin(AB_WORKER_FD, &start, text, sizeof text, &cli->error) < 0) return cli_fail(cli);
    void *pad = mem_new(1, start.n ? (size_t)start.n : 1); /* moves all that is allocated after it */
    tare_status s = run_init(&run, "compare", &cli->error);
    if (s == TARE_OK) {
        s = serve_model(&run, text, &cli->error);
        run_release(&run);
    }
    mem_free(pad);
    return s < 0 ? CLI_FAILED : CLI_GOOD; /* the reason went over the socket */
}

/* ---- work alone ---- */

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

/* The same for work without a model: its specification is a number of steps. */
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
    int rc = cli_options(cli, &usage, NULL, &argc, &argv);
    if (rc) return rc;
    tare_status s = argc ? spin_once(argv[0], &cli->error) : serve_spins(&cli->error);
    return s < 0 ? cli_fail(cli) : CLI_GOOD;
}
