/* SPDX-License-Identifier: MIT
 * compare_out.c - the end of every way of comparing: the document is kept, then shown, and its verdict becomes the exit
 * code. */
#include <string.h>

#include "cli/compare_args.h"
#include "cli/report_out.h"
#include "cli/trace_arg.h"
#include "report/comparison_report.h"

static tare_status save(struct cli *cli, const struct compare_args *a, const struct comparison *c)
{
    char path[4096];
    struct buf text = BUF_INIT;
    const char *slash = strrchr(c->new_.name, '/');
    struct run_file file = {a->output_dir, "compare", slash && slash[1] ? slash + 1 : c->new_.name,
                            c->created};
    if (a->no_save) return TARE_OK;
    tare_status s = comparison_write(c, &text, &cli->error);
    if (s == TARE_OK) s = run_save_text(&file, &text, path, sizeof path, &cli->error);
    if (s == TARE_OK && !a->json) cli_note(cli, "kept as %s", path);
    buf_release(&text);
    return s;
}

static tare_status show(struct cli *cli, const struct compare_args *a, const struct comparison *c)
{
    struct comparison_report r = {c, report_out_style(cli)};
    struct stream s;
    stream_init(&s, cli_sink(cli), &cli->error);
    comparison_format_find(a->json ? "json" : "text")->write(&s, &r);
    return stream_finish(&s);
}

static int exit_code(const struct compare_args *a, const char *verdict)
{
    if (strcmp(verdict, "regressed") == 0) return CLI_FINDING;
    bool open = strcmp(verdict, "inconclusive") == 0 || strcmp(verdict, "unverified") == 0;
    return open && a->strict ? CLI_FAILED : CLI_GOOD;
}

int compare_answer(struct cli *cli, const struct compare_args *a, struct comparison *c)
{
    tare_status kept = save(cli, a, c);
    tare_error why = cli->error;
    tare_status shown = show(cli, a, c); /* measured is measured: a full disk does not take the answer away */
    if (kept < 0) cli->error = why;
    return kept < 0 || shown < 0 ? cli_fail(cli) : exit_code(a, c->verdict);
}
