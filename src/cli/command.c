/* SPDX-License-Identifier: MIT
 * command.c - the table of commands; command.h says how to add a row. No logic here. */
#include "cli/command.h"

#include <string.h>

#include "cli/opt.h"

const struct command command_table[] = {
    {"bench", cmd_bench, 0, "weigh a model or a command, sweep it, judge it"},
    {"run", cmd_run, 0, "watch a program and the machine: what it used, what held it up"},
    {"top", cmd_top, 0, "the machine and its processes, live, once or from a recording"},
    {"compare", cmd_compare, 0, "is the new one slower? two sides measured in turn"},
    {"tune", cmd_tune, 0, "a better configuration of a model, with its proof, or none"},
    {"inspect", cmd_inspect, CMD_PAGER, "what a model costs without running it; where two of them differ"},
    {"doctor", cmd_doctor, 0, "what can be measured on this machine, what cannot and why"},
    {"history", cmd_history, CMD_PAGER, "what is kept of earlier runs: list, show, tag, prune, import"},
    {"trend", cmd_trend, CMD_PAGER, "a metric over the history, and where its level changed"},
    {"report", cmd_report, CMD_PAGER, "print a trace as a call tree, or saved runs as tables"},
    {"plan", cmd_plan, 0, "replicas for a rate of requests and a limit on response time"},
    {"export", cmd_export, 0, "write a trace in the format of another tool"},
    {"import", cmd_import, CMD_PAGER, "take over a measurement that another tool made"},
    {"serve", cmd_serve, 0, "keep runs of many machines, and answer questions by HTTP"},
    {"push", cmd_push, 0, "send runs to a server: what waits, documents, the whole history"},
    {"token", cmd_token, 0, "who may ask a server: make, list, revoke tokens"},
    {"audit", cmd_audit, CMD_PAGER, "who changed what on a server, and whether the list is whole"},
    {"synth", cmd_synth, 0, "write a model of a known architecture with seeded weights"},
    {"completion", cmd_completion, 0, "print a completion script for bash or zsh"},
    {"help", cmd_help, CMD_PAGER, "explain tare or one of its commands"},
    {"version", cmd_version, 0, "which tare this is and what it was built with"},
    {"__ab-spin", cmd_ab_spin, CMD_PLUMBING, "a piece of work for doctor --aa"},
    {"__ab-worker", cmd_ab_worker, CMD_PLUMBING, "one side of compare --ab"},
    {"__complete", cmd_complete, CMD_PLUMBING, "answer the completion scripts"},
    {"__trace-view", cmd_trace_view, CMD_PLUMBING, "what a server shows of a trace that was sent"},
    {"__webhook", cmd_webhook, CMD_PLUMBING, "takes one alert of run --webhook to its URL"},
    {NULL, NULL, 0, NULL},
};

const struct command *command_find(const char *name)
{
    for (const struct command *c = command_table; c->name; c++)
        if (strcmp(c->name, name) == 0) return c;
    return NULL;
}

const struct opt_choice *command_words(void)
{
    static struct opt_choice words[sizeof command_table / sizeof *command_table];
    size_t n = 0;
    for (const struct command *c = command_table; c->name; c++)
        if (!(c->flags & CMD_PLUMBING)) words[n++] = (struct opt_choice){c->name, 0, c->summary};
    words[n] = (struct opt_choice){0};
    return words;
}
