/* SPDX-License-Identifier: MIT
 * cmd_attach.c - `tare attach`: look into a process that already runs, without stopping or changing it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/attach/attach.h"
#include "cli/command.h"
#include "cli/output.h"
#include "core/fmt.h"
#include "sample/sampler.h"

struct attach_command {
    bool once, top, locals, json, consistent, native;
    double hz, budget; /* budget: percent of a processor */
    struct duration duration, interval;
    const char *output;
};

static int answer_once(struct cli *cli, pid_t pid, const struct attach_command *c)
{
    struct py_process p = PY_PROCESS_INIT;
    struct snapshot s = SNAPSHOT_INIT;
    struct answer out;
    const struct snapshot_wish wish = {.pid = pid, .locals = c->locals, .native = c->native};
    tare_status st = py_open(&p, peek_process(pid), &cli->error);
    bool python = st == TARE_OK;
    tare_error why = cli->error;
    if (st == TARE_UNSUPPORTED && c->native) st = TARE_OK; /* there is something to be seen all the same */
    if (st == TARE_UNSUPPORTED) error_set(&cli->error, st, "%s; --native shows native frames", why.text);
    if (st == TARE_OK) st = snapshot_take(&s, python ? &p : NULL, &wish, &cli->error);
    if (st == TARE_OK && c->native) st = attach_name_frames(&s, &cli->error);
    int rc;
    if (st == TARE_OK) {
        cli_answer_begin(cli, &out, c->json);
        attach_say_once(&out, pid, &s, why.text);
        rc = cli_answer_end(cli, &out);
    } else {
        rc = cli_fail(cli);
    }
    snapshot_release(&s);
    py_release(&p);
    return rc;
}

/* ---- recording ---- */

static bool is_stopped(void *ctx)
{
    (void)ctx;
    return interrupted != 0;
}

static int record(struct cli *cli, pid_t pid, const struct attach_command *c)
{
    char name[64];
    struct interrupt was;
    struct sampler_totals t = {0};
    snprintf(name, sizeof name, "attach-%d.tare", (int)pid);
    struct sampler_options o = {.pid = pid,
                                .trace = c->output ? c->output : name,
                                .hz = c->hz,
                                .budget = c->budget / 100,
                                .duration_ns = (uint64_t)c->duration.ns,
                                .consistent = c->consistent,
                                .native = c->native,
                                .stop = is_stopped};
    interrupt_catch(&was);
    tare_status s = sampler_run(&o, &t, &cli->error);
    interrupt_restore(&was);
    if (s < 0) return cli_fail(cli);
    double seconds = (double)t.wall_ns / 1e9, stacks = (double)t.samples;
    cli_note(cli, "%s of %" PRIu64 " process%s and %s in %s: %" PRIu64 " rounds, %s",
             show_count(stacks, "stack").s, t.processes, t.processes == 1 ? "" : "es",
             show_count((double)t.threads, "thread").s, show_time((double)t.wall_ns).s, t.rounds,
             show_rate(seconds > 0 ? (double)t.rounds / seconds : 0, NULL).s);
    if (stacks > 0)
        cli_note(
            cli,
            "%s of the stacks moved under the read and may be wrong, %s were broken; it took %s of a processor",
            show_percent((double)t.moved / stacks).s, show_percent((double)t.broken / stacks).s,
            show_percent((double)t.cost_ns / (double)(t.wall_ns ? t.wall_ns : 1)).s);
    cli_note(cli, "kept as %s: tare report --stacks %s", o.trace, o.trace);
    return CLI_GOOD;
}

static int read_pid(struct cli *cli, const char *text, pid_t *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || *end || end == text || v <= 0 || v > INT32_MAX)
        return cli_usage_error(cli, "'%s' is no number of a process", text);
    *out = (pid_t)v;
    return 0;
}

int cmd_attach(struct cli *cli, int argc, char **argv)
{
    static const struct opt_usage usage = {
        .synopsis = "tare attach [options] <pid>\n"
                    "tare attach --top [options] <pid>\n"
                    "tare attach --once [--locals] [--json] <pid>",
        .about = "Look into a Python process that already runs. Sample the stacks of all its threads and of the "
                 "processes it starts into a trace, until it ends, the time is over or Ctrl-C; with --top show "
                 "which functions take the time, wait and hold the GIL; with --once print "
                 "where each thread is now, who holds the GIL, what the others wait for. It is read from outside: "
                 "nothing is injected, and no thread is stopped unless --consistent asks for it.",
        .tail = "tare attach 4711                        until Ctrl-C, into attach-4711.tare\n"
                "tare attach --duration 30s -o a.tare 4711\n"
                "tare report --stacks a.tare             which functions the time went to\n"
                "tare attach --top 4711                  live table of functions\n"
                "tare attach --once 4711                 where is every thread right now\n"
                "tare attach --once --locals 4711        with the values of local variables",
        .min_args = 1,
        .max_args = 1,
        .args = OPT_ARGS_NONE,
    };
    struct attach_command c = {.hz = STACKS_HZ, .budget = STACKS_BUDGET, .interval = {2000000000}};
    const struct opt rows[] = {
        OPT_GROUP("recording"),
        OPT_TIME_IN(0, "duration", &c.duration, 1000000, INT64_C(86400000000000) * 365, "stop after this long",
                    .flags = OPT_NO_DEFAULT, .not_with = "once"),
        OPT_OUT('o', "output", &c.output, "<file>", "the trace (default: attach-<pid>.tare)", .not_with = "once top"),
        OPT_DOUBLE(0, "hz", &c.hz, 0.1, 10000, "looks per second, where the budget allows", .not_with = "once"),
        OPT_DOUBLE(0, "budget", &c.budget, 0.01, 100, "percent of one processor that looking may take",
                   .not_with = "once"),
        OPT_FLAG(0, "consistent", &c.consistent,
                 "hold each thread still for the moment in which it is read: no stack is torn, the program pays for it",
                 .not_with = "once"),
        OPT_GROUP("watching"),
        OPT_FLAG(0, "top", &c.top, "a table of functions, again and again; off a terminal once", .not_with = "once"),
        OPT_TIME_IN(0, "interval", &c.interval, 100000000, INT64_C(3600000000000), "between tables", .needs = "top"),
        OPT_GROUP("one look"),
        OPT_FLAG(0, "once", &c.once, "one look at all threads"),
        OPT_FLAG(0, "locals", &c.locals, "also the local variables of each function", .needs = "once"),
        OPT_FLAG(0, "json", &c.json, OPT_JSON_HELP, .needs = "once"),
        OPT_GROUP("native code"),
        OPT_FLAG(0, "native", &c.native,
                 "also frames of native code, of any program; threads on a processor are held still for a moment",
                 .not_with = "top"),
        OPT_END,
    };
    pid_t pid = 0;
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (!rc) rc = read_pid(cli, argv[0], &pid);
    if (rc) return rc;
    if (c.top)
        return attach_top(cli, &(struct attach_top){.pid = pid,
                                                    .hz = c.hz,
                                                    .budget = c.budget / 100,
                                                    .interval_ns = (uint64_t)c.interval.ns,
                                                    .duration_ns = (uint64_t)c.duration.ns,
                                                    .consistent = c.consistent});
    return c.once ? answer_once(cli, pid, &c) : record(cli, pid, &c);
}
