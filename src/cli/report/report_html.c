/* SPDX-License-Identifier: MIT
 * report_html.c - `tare report --html`: run documents and traces as one page. Two run documents are also compared, the
 * first being the base; two traces are one profile with its base. Measures nothing. */
#include <string.h>

#include "analyze/compare/compare_saved.h"
#include "analyze/judge/launches.h"
#include "cli/report/report_args.h"
#include "cli/input.h"

struct given { /* the files by kind, in the order they were named */
    char **runs, **traces;
    size_t n_runs, n_traces;
};

/* Runs to the beginning of argv, in place; traces into a list of their own. */
static tare_status sort_files(int argc, char **argv, struct given *g, struct arena *a, tare_error *err)
{
    char **traces = arena_new(a, (size_t)argc, sizeof *traces);
    *g = (struct given){.runs = argv, .traces = traces};
    if (!traces) return error_set(err, TARE_NOMEM, "out of memory for %d files", argc);
    for (int i = 0; i < argc; i++) {
        if (input_is_run(argv[i]))
            argv[g->n_runs++] = argv[i];
        else
            traces[g->n_traces++] = argv[i];
    }
    return TARE_OK;
}

/* ---- a comparison of two runs ---- */

/* Two runs that do not compare are no failure of the page: it shows both, and the user is told why that is all. */
static bool compared(struct cli *cli, struct comparison *c, const struct input_runs *runs, char **names)
{
    tare_error err = TARE_ERROR_INIT;
    struct compare_saved in = {.base = &runs->list[0],
                               .n_base = 1,
                               .new_ = &runs->list[1],
                               .n_new = 1,
                               .rule = BETWEEN_RULE_INIT,
                               .apart_ms = LAUNCHES_APART_MS};
    if (comparison_init(c, "saved", &err) == TARE_OK) {
        c->base.name = c->base.path = names[0];
        c->new_.name = c->new_.path = names[1];
        if (compare_saved(c, &in, &err) == TARE_OK) return true;
        comparison_release(c);
    }
    cli_warn(cli, "the page is without a comparison: %s", err.text);
    return false;
}

/* ---- the page ---- */

static tare_status add_runs(struct cli *cli, struct html_out *h, const struct input_runs *runs, char **names)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; i < runs->n && s == TARE_OK; i++) {
        s = html_out_run(h, names[i], runs->list[i], runs->n, &cli->error);
        if (s == TARE_OK) html_out_trace_beside(h, cli, runs->list[i], names[i]);
    }
    return s;
}

static int add_traces(struct cli *cli, struct html_out *h, const struct given *g)
{
    int rc = 0;
    if (g->n_traces == 2 && g->n_runs == 0) return html_out_trace_arg(h, cli, g->traces[1], g->traces[0]);
    for (size_t i = 0; i < g->n_traces && !rc; i++) rc = html_out_trace_arg(h, cli, g->traces[i], NULL);
    return rc;
}

static const char *title_of(const struct input_runs *runs, const struct given *g)
{
    return runs->n ? runs->list[0]->subject.name : g->traces[g->n_traces - 1];
}

static int write_page(struct cli *cli, const struct input_runs *runs, const struct given *g, const char *path,
                      bool gross)
{
    struct html_out h = HTML_OUT_INIT;
    struct comparison c;
    h.gross = gross;
    bool both = runs->n == 2 && g->n_traces == 0 && compared(cli, &c, runs, g->runs);
    tare_status s = both ? html_out_comparison(&h, &c, &cli->error) : TARE_OK;
    if (s == TARE_OK) s = add_runs(cli, &h, runs, g->runs);
    int rc = s == TARE_OK ? add_traces(cli, &h, g) : cli_fail(cli);
    if (!rc && html_out_write(cli, &h, path, title_of(runs, g)) < 0) rc = cli_fail(cli);
    html_out_release(&h);
    if (both) comparison_release(&c); /* before the runs it borrows from */
    return rc;
}

int report_html(struct cli *cli, int argc, char **argv, const char *path, bool gross)
{
    struct arena arena = ARENA_INIT;
    struct input_runs runs = {0};
    struct given g;
    int rc = sort_files(argc, argv, &g, &arena, &cli->error) == TARE_OK ? 0 : cli_fail(cli);
    if (!rc && g.n_runs) rc = input_runs_load(cli, &runs, g.runs, g.n_runs);
    if (!rc) {
        rc = write_page(cli, &runs, &g, path, gross);
        input_runs_release(&runs);
    }
    arena_release(&arena);
    return rc;
}
