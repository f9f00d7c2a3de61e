/* SPDX-License-Identifier: MIT
 * cmd_ab_worker.c - `tare __ab-worker`: one side of an interleaved comparison, started by `tare compare --ab` for
 * each launch. Told over descriptor 3 what to load; prints nothing. */
#include <sys/socket.h>
#include <unistd.h>

#include "bench/ab.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"
#include "probe/host.h"

static const struct opt_usage usage = {
    .synopsis = "tare __ab-worker",
    .about = "One side of tare compare --ab; started by it, useless alone.",
};

static bool has_socket(void)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(AB_WORKER_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

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
    const struct opt rows[] = {OPT_END};
    static char text[AB_SPEC_MAX];
    struct ab_request start;
    struct run run;
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
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
