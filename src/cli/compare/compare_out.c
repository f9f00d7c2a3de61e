/* SPDX-License-Identifier: MIT
 * compare_out.c - the end of every way of comparing: the document is kept, then shown, and its verdict becomes the exit
 * code. */
#include <string.h>

#include "cli/compare/compare_args.h"
#include "cli/html_out.h"
#include "cli/output.h"
#include "core/str.h"
#include "report/compare/comparison_report.h"

static tare_status save_comparison(struct cli *cli, const struct compare_args *a, const struct comparison *c)
{
    char path[4096];
    struct buf text = BUF_INIT;
    struct run_file file = {a->history.output_dir, "compare", str_file_name(c->new_.name), c->created};
    if (a->no_save) return TARE_OK;
    tare_status s = comparison_write(c, &text, &cli->error);
    if (s == TARE_OK) s = run_save_text(&file, &text, path, sizeof path, &cli->error);
    if (s == TARE_OK && !a->json && a->format != 1) cli_note_last(cli, "kept as %s", path);
    buf_release(&text);
    return s;
}

const struct opt_choice compare_format_words[] = {{"text", 0, "for people"},
                                                  {"json", 1, "the document"},
                                                  {"md", 2, "Markdown, for a pull request or a job summary"},
                                                  {"junit", 3, "metrics as test cases"},
                                                  {"github", 4, "annotations of a GitHub workflow"},
                                                  {NULL, 0, NULL}};

/* One format into a file; path NULL or "-": the answer. */
static tare_status compare_write(struct cli *cli, const char *path, const struct comparison *c,
                                 const struct comparison_format *format)
{
    struct comparison_report r = {c, REPORT_STYLE_NONE};
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s < 0) return s;
    if (!o.is_file) r.style = cli_style(cli);
    format->write(&o.stream, &r);
    return output_close(cli, &o);
}

/* The comparison, then the runs of the base, then the new ones; what they are called tells them apart. */
static tare_status write_page(struct cli *cli, const char *path, const struct comparison *c,
                              const struct compare_saved_sides *saved)
{
    struct html_out h = HTML_OUT_INIT;
    tare_status s = html_out_comparison(&h, c, &cli->error);
    static const char *const names[PAIR_SIDES] = {"base", "new"};
    size_t n = saved ? saved->side[PAIR_A].n + saved->side[PAIR_B].n : 0;
    for (int side = 0; n && side < PAIR_SIDES; side++)
        for (size_t i = 0; s == TARE_OK && i < saved->side[side].n; i++)
            s = html_out_run(&h, names[side], saved->side[side].runs[i], n, &cli->error);
    if (s == TARE_OK) s = html_out_write(cli, &h, path, c->new_.name);
    html_out_release(&h);
    return s;
}

static tare_status show_comparison(struct cli *cli, const struct compare_args *a, const struct comparison *c,
                                   const struct compare_saved_sides *saved)
{
    const char *format = a->json ? "json" : compare_format_words[a->format].name;
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < sizeof a->also / sizeof *a->also; i++)
        if (a->also[i].format)
            s = compare_write(cli, a->also[i].path, c, comparison_format_find(a->also[i].format));
    if (s == TARE_OK && a->html) s = write_page(cli, a->html, c, saved);
    tare_status shown = a->quiet ? s : compare_write(cli, a->output, c, comparison_format_find(format));
    return s < 0 ? s : shown;
}

static int exit_code(const struct compare_args *a, const char *verdict)
{
    if (strcmp(verdict, "regressed") == 0) return CLI_FINDING;
    bool open = strcmp(verdict, "inconclusive") == 0 || strcmp(verdict, "unverified") == 0;
    return open && a->strict ? CLI_FAILED : CLI_GOOD;
}

int compare_answer(struct cli *cli, const struct compare_args *a, const struct comparison *c,
                   const struct compare_saved_sides *saved)
{
    tare_status kept =
        saved ? TARE_OK : save_comparison(cli, a, c); /* saved runs tell it again at any time */
    tare_error why = cli->error;
    tare_status shown = show_comparison(
        cli, a, c, saved); /* measured is measured: a full disk does not take the answer away */
    if (kept < 0) cli->error = why;
    return kept < 0 || shown < 0 ? cli_fail(cli) : exit_code(a, c->verdict);
}
