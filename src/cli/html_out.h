/* SPDX-License-Identifier: MIT
 * html_out.h - `--html FILE`, as every command spells it: documents are gathered, then written as one page, whole or
 * not at all. What is added is borrowed until the page is released, but for traces, which the page opens and closes. */
#ifndef CLI_HTML_OUT_H
#define CLI_HTML_OUT_H

#include "cli/cli.h"
#include "core/vec.h"
#include "report/html.h"
#include "core/arena.h"
#include "run/comparison.h"
#include "trace/reader.h"
#include "trace/samples.h"

struct memory_profile;

/* Beside the answer. */
#define OPT_HTML_HELP "also as a page with plots: one file, no network"
#define OPT_HTML(ptr) OPT_OUT(0, "html", ptr, "<file>", OPT_HTML_HELP)

struct html_out {
    struct arena arena; /* what the items point to */
    VEC(struct html_item) items;
    VEC(struct trace *) traces;
    VEC(struct samples *) samples;
    VEC(struct memory_profile *) memories;
    bool quiet; /* do not tell where the page went */
    bool gross; /* profiles of traces as read, the cost of tare still in them */
};
#define HTML_OUT_INIT                            \
    {                                            \
        ARENA_INIT, VEC_INIT, VEC_INIT, VEC_INIT, VEC_INIT, false, false \
    }
void html_out_release(struct html_out *h);

/* Before anything is measured: can a page be written there? `path` NULL: none was asked for. 0, or the exit code after
 * the user was told. */
int html_out_check(struct cli *cli, const char *path);

tare_status html_out_run(struct html_out *h, const char *name, const struct run *run, size_t n_runs,
                         tare_error *err); /* one of n_runs, which share the page's samples */
tare_status html_out_comparison(struct html_out *h, const struct comparison *c, tare_error *err);
/* A document that is text already, copied. */
tare_status html_out_text(struct html_out *h, const char *kind, const char *name, const struct buf *text,
                          tare_error *err);
/* What a trace holds: samples over time, and the profile of its scopes, against those of `base` unless NULL. 0, or the
 * exit code after the user was told. */
int html_out_trace_arg(struct html_out *h, struct cli *cli, const char *path, const char *base);
/* Who allocated and who held it, of a trace of `tare run --memory`: its processes, as numbers and as flame graphs. */
int html_out_memory(struct html_out *h, struct cli *cli, const char *path);
/* Where these traces are of the ranks of one job: what their GPUs did, on one timeline. */
int html_out_job(struct html_out *h, struct cli *cli, char **paths, size_t n, bool *is_job);
/* What one trace holds; nobody is told of anything. */
tare_status html_out_trace(struct html_out *h, const char *path, tare_error *err);
/* The same of the trace of a run that is on the page already; one that cannot be read is told and left out. */
void html_out_trace_file(struct html_out *h, struct cli *cli, const char *path);
/* The trace that a run document at `path` names beside itself, if it is there. */
void html_out_trace_beside(struct html_out *h, struct cli *cli, const struct run *run, const char *path);

/* All that was gathered into `path`. */
tare_status html_out_write(struct cli *cli, const struct html_out *h, const char *path, const char *title);
/* Runs alone: the whole of it. */
tare_status html_out_runs(struct cli *cli, const char *path, const struct run *const *runs, size_t n);

#endif
