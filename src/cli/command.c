/* SPDX-License-Identifier: MIT
 * command.c - the table of commands; command.h says how to add a row. No logic here. */
#include "cli/command.h"

#include <string.h>

#include "cli/opt.h"

const struct command command_table[] = {
    {"bench", cmd_bench, 0, "measure a model, a function or a command, sweep it, judge it"},
    {"compare", cmd_compare, 0, "is the new one slower? two sides measured in turn"},
    {"tune", cmd_tune, 0, "a better configuration of a model, with its proof, or none"},
    {"run", cmd_run, 0, "watch a program and the machine: what it used, what held it up"},
    {"attach", cmd_attach, CMD_PAGER, "where is every thread of a process that already runs"},
    {"top", cmd_top, 0, "the machine and its processes, live, once or from a recording"},
    {"doctor", cmd_doctor, 0, "what can be measured on this machine, what cannot and why"},
    {"report", cmd_report, CMD_LOOK | CMD_PAGER, "show what was measured: the latest run, a trace, a folder"},
    {"inspect", cmd_inspect, CMD_LOOK | CMD_PAGER, "what a model costs without running it; where two of them differ"},
    {"history", cmd_history, CMD_LOOK | CMD_PAGER, "earlier runs: list, show, tag, prune, import"},
    {"trend", cmd_trend, CMD_LOOK | CMD_PAGER, "a metric over the history, and where its level changed"},
    {"plan", cmd_plan, CMD_LOOK, "replicas for a rate of requests and a limit on response time"},
    {"export", cmd_export, CMD_LOOK, "write a trace in the format of another tool"},
    {"import", cmd_import, CMD_LOOK | CMD_PAGER, "take over a measurement that another tool made"},
    {"serve", cmd_serve, CMD_SHARE, "keep runs of many machines: dashboard, alerts, HTTP API"},
    {"push", cmd_push, CMD_SHARE, "send runs to a server: what waits, documents, the whole history"},
    {"token", cmd_token, CMD_SHARE, "who may ask a server: make, list, revoke tokens"},
    {"audit", cmd_audit, CMD_SHARE | CMD_PAGER, "who changed what on a server, and whether the list is whole"},
    {"init", cmd_init, CMD_MORE, "write the workflow of a CI service that guards speed"},
    {"synth", cmd_synth, CMD_MORE, "write a model of a known architecture with seeded weights"},
    {"completion", cmd_completion, CMD_MORE, "print a completion script for bash, zsh or fish"},
    {"help", cmd_help, CMD_MORE | CMD_PAGER, "explain tare or one of its commands"},
    {"version", cmd_version, CMD_MORE, "which tare this is and what it was built with"},
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
    enum { PYTHON_MOST = 16 };
    static struct opt_choice words[sizeof command_table / sizeof *command_table + PYTHON_MOST];
    size_t n = 0, python = 0;
    for (const struct command *c = command_table; c->name; c++)
        if (!(c->flags & CMD_PLUMBING)) words[n++] = (struct opt_choice){c->name, 0, c->summary};
    for (const struct python_word *w = python_words; w->name && python < PYTHON_MOST; w++, python++)
        if (!command_find(w->name)) words[n++] = (struct opt_choice){w->name, 0, w->help};
    words[n] = (struct opt_choice){0};
    return words;
}
