/* SPDX-License-Identifier: MIT
 * cmd_top.c - `tare top`: the machine and its processes, live, once, or from a recording. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "cli/output.h"
#include "client/client.h"
#include "report/prom.h"
#include "store/store.h"
#include "top/top.h"

struct top_command {
    struct duration interval;
    int64_t pid;
    uint64_t iterations;
    bool once, json, prom;
    int sort;
    const char *filter;
    const char *server;
    struct opt_list alerts;
    struct top_view view;
    struct top_source from;
};

/* Can this terminal be drawn on? */
static int check_terminal(struct cli *cli)
{
    if (!cli->out_term.tty)
        return cli_usage_error(
            cli, "stdout is no terminal: --once prints one moment as text (also --json, --prom)");
    const char *term = secure_getenv("TERM");
    if (!term || !*term || strcmp(term, "dumb") == 0)
        return cli_usage_error(cli,
                               "TERM=%s: this terminal cannot be drawn on; --once prints one moment as text",
                               term ? term : "");
    return 0;
}

static int answer_once(struct cli *cli, struct top_command *a, struct top_data *d)
{
    struct answer out;
    if (top_observe(&a->view, d, &cli->error) < 0) return cli_fail(cli);
    cli_answer_begin(cli, &out, a->json);
    if (a->prom)
        prom_write(answer_text(&out), d->set, d->now);
    else
        top_say(&out, &a->view, d);
    return cli_answer_end(cli, &out);
}

static int watch_live(struct cli *cli, struct top_command *a, struct top_data *d)
{
    int ended_by;
    if (top_live(&a->view, d, a->iterations, &ended_by, &cli->error) < 0) return cli_fail(cli);
    return ended_by && ended_by != SIGINT ? 128 + ended_by : CLI_GOOD;
}

/* A server that takes longer is away: keys wait for it. */
static int open_server(struct cli *cli, struct top_command *a)
{
    const struct store_options o = {.token = history_token(), .wait_ms = 3000};
    if (!a->server) return 0;
    if (!client_is_url(a->server))
        return cli_usage_error(cli, "--server '%s' is no URL of a server: http:// or https:// stands first",
                               a->server);
    tare_status s = store_open(&a->from.server, a->server, &o, &cli->error);
    if (s == TARE_INVALID) return cli_usage_error(cli, "--server: %s", cli->error.text);
    return s == TARE_OK ? 0 : cli_fail(cli);
}

/* Both ways to look share how data is opened and closed. A recording that ends badly fails what went well so far. */
static int show_top(struct cli *cli, struct top_command *a)
{
    enum { FILE_WIDTH = 110 };
    char host[256] = "";
    struct top_view *v = &a->view;
    static struct top_data data; /* too large for a stack that may be small */
    int rc;
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "?");
    if (a->filter) snprintf(v->filter, sizeof v->filter, "%s", a->filter);
    v->host = host;
    v->sort = (enum top_sort)a->sort;
    v->interval_s = (double)a->interval.ns / 1e9;
    v->utf8 = cli->out_term.utf8;
    v->no_color = cli->color == COLOR_NEVER;
    v->width = cli->out_term.tty ? cli->out_term.width : FILE_WIDTH;
    a->from.program = (pid_t)a->pid;
    a->from.alerts = (const char *const *)a->alerts.items;
    a->from.n_alerts = a->alerts.n;
    if ((rc = open_server(cli, a)) != 0) return rc;
    tare_status opened = top_data_open(&data, &a->from, &cli->error);
    if (opened == TARE_OK && data.remote) v->host = top_remote_host(data.remote);
    if (data.tape.damaged)
        cli_warn(cli, "%s: damaged pieces left out: %" PRIu64, a->from.replay, data.tape.damaged);
    if (opened < 0) {
        bool input = a->from.replay || (a->from.server && opened != TARE_IO);
        rc = input ? cli_fail_input(cli) : cli_fail(cli);
    } else if (a->once) {
        rc = answer_once(cli, a, &data);
    } else {
        rc = watch_live(cli, a, &data);
    }
    top_view_release(v);
    if (top_data_close(&data, &cli->error) < 0 && rc == CLI_GOOD) rc = cli_fail(cli);
    store_close(a->from.server);
    return rc;
}

int cmd_top(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare top [options]\n"
                    "tare top --once [--json | --prom]\n"
                    "tare top --replay <file>",
        .about = "Show what the machine and its processes do: processors, memory, disks, networks, GPUs, "
                 "temperatures, waiting times, processes and alerts. On a terminal it is drawn anew at every "
                 "interval until q is pressed (? lists the keys); with --once the answer is about one moment.",
        .tail = "tare top                               live\n"
                "tare top --pid 4711                    one program and all it started\n"
                "tare top --once --json | jq .derived   for scripts\n"
                "tare top --once --prom                 for Prometheus\n"
                "tare top --server URL --host gpu7      another host, which runs tare run --push\n"
                "tare top --record night.tare           live, and kept\n"
                "tare top --replay night.tare           again, with pause and seeking\n",
    };
    static const struct opt_choice sorts[] = {{"cpu", TOP_SORT_CPU, "processor time"},
                                              {"memory", TOP_SORT_MEMORY, "memory in RAM"},
                                              {"pid", TOP_SORT_PID, "number"},
                                              {"io", TOP_SORT_IO, "bytes read and written"},
                                              {NULL, 0, NULL}};
    struct top_command a = {
        .interval = {1000000000}, .sort = TOP_SORT_CPU, .view = {.cores = true, .speed = 1}};
    const struct opt rows[] = {
        OPT_TIME_IN('i', "interval", &a.interval, 100000000, INT64_C(3600000000000), "time between two moments"),
        OPT_INT_IN('p', "pid", &a.pid, 0, INT32_MAX, "watch this process and all it started",
                 .flags = OPT_NO_DEFAULT),
        OPT_ENUM('s', "sort", &a.sort, sorts, "order of the processes"),
        OPT_FLAG('t', "tree", &a.view.tree, "processes as a tree"),
        OPT_STRING('f', "filter", &a.filter, "<text>", "only processes with this text in name, command or user"),
        OPT_LIST(0, "alert", &a.alerts, "<rule>", "an alert beside the default ones: 'cpu>90% for 5s'"),
        OPT_UINT_IN('n', "iterations", &a.iterations, 0, UINT64_MAX, "leave after so many moments",
                 .flags = OPT_NO_DEFAULT),
        OPT_GROUP("one moment"),
        OPT_FLAG(0, "once", &a.once, "sample for one interval, print, exit", .not_with = "iterations"),
        OPT_FLAG(0, "json", &a.json, OPT_JSON_HELP, .needs = "once"),
        OPT_FLAG(0, "prom", &a.prom, "print the answer as Prometheus text", .needs = "once", .not_with = "json"),
        OPT_GROUP("other hosts"),
        OPT_STRING(0, "server", &a.server, "<url>", "a host that sends metrics to this server (with TARE_TOKEN)",
                   .flags = OPT_NO_ENV, .not_with = "record replay pid"),
        OPT_STRING(0, "host", &a.from.host, "<name>", "which one, where there are several", .flags = OPT_NO_ENV,
                   .needs = "server"),
        OPT_GROUP("recordings"),
        OPT_OUT(0, "record", &a.from.record, "<file>", "also write what is seen to a trace"),
        OPT_PATH(0, "replay", &a.from.replay, "<file>", "show a recording of tare top or tare run",
                 .not_with = "record pid", .hint = "a recording is over"),
        OPT_DOUBLE(0, "speed", &a.view.speed, 0.1, 60, "how fast a recording is played"),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (!rc && !a.once) rc = check_terminal(cli);
    if (!rc) rc = show_top(cli, &a);
    opt_list_release(&a.alerts);
    return rc;
}
