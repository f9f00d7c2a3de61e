/* SPDX-License-Identifier: MIT
 * bench_anchor.c - `tare bench --anchor`: after the bench, each of its cases is measured in turn with a frozen build
 * of the same thing. The ratio, which hardly knows how busy the machine is today, goes into the run, and with it into
 * the history, where `tare trend` follows it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/bench/bench_args.h"
#include "cli/compare/compare_args.h"
#include "cli/shell_words.h"
#include "core/str.h"
#include "report/text.h"

enum { HASH_SHOWN = 12 };

/* The measures whose ratios are kept. */
static const char *const kept[] = {"latency.p50", "cpu.time"};

/* ---- what may go together ---- */

static bool can_split(struct cli *cli, const char *line)
{
    struct arena room = ARENA_INIT;
    char **words = NULL;
    size_t n = 0;
    tare_status s = words_split(&room, line, &words, &n, &cli->error);
    if (s == TARE_OK && n == 0) s = error_set(&cli->error, TARE_INVALID, "'%s': no command to run", line);
    arena_release(&room);
    return s == TARE_OK;
}

/* Everything that can be refused is refused here, before the bench: the anchor's own turn comes after minutes of it. */
int bench_anchor_check(struct cli *cli, const struct bench_args *a)
{
    if (!a->anchor) return 0;
    bool model = compare_is_model(a->anchor);
    if (model && a->command)
        return cli_usage_error(cli, "--anchor %s is a model, but a command is measured", a->anchor);
    if (!model && !a->command)
        return cli_usage_error(cli, "--anchor %s is a command, but a model is measured", a->anchor);
    if (a->setup.runtimes.n > 1) return cli_usage_error(cli, "--anchor goes with one runtime: --ort once");
    if (a->concurrency > 1)
        return cli_usage_error(cli, "--anchor measures one run at a time: no --concurrency");
    if (!model && !a->call.shell && !can_split(cli, a->anchor))
        return cli_usage_error(cli, "--anchor %s", cli->error.text);
    if (model && access(a->anchor, R_OK) != 0)
        return cli_usage_error(cli, "--anchor %s: %s", a->anchor, strerror(errno));
    if (a->anchor_name && !store_name_ok(a->anchor_name))
        return cli_usage_error(cli, "--anchor-name %.80s: letters, digits and . _ - / make a name",
                               a->anchor_name);
    return 0;
}

/* ---- the two sides ---- */

/* A file that changes is another anchor, whatever its name. */
static tare_status name_anchor(const struct bench_args *a, struct run *run, const char **out, tare_error *err)
{
    char hash[65];
    if (a->anchor_name || a->command) {
        *out = a->anchor_name ? a->anchor_name : a->anchor;
        return TARE_OK;
    }
    tare_status s = subject_hash_file(a->anchor, hash, err);
    if (s < 0) return s;
    *out = arena_printf(&run->arena, "%s@%.*s", str_file_name(a->anchor), HASH_SHOWN, hash);
    return *out ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory for a name");
}

/* What was benched, as one text: the model's file, or the command's words again. */
static void add_benched(const struct bench_args *a, const char *model, struct buf *out)
{
    if (!a->command) buf_add_str(out, model);
    if (a->command && a->call.shell) buf_add_str(out, a->command[0]);
    for (size_t i = 0; a->command && !a->call.shell && a->command[i]; i++) {
        if (i) buf_add_char(out, ' ');
        words_quote(out, a->command[i]);
    }
}

static struct compare_args as_comparison(const struct bench_args *a, char **args)
{
    return (struct compare_args){.ab = true,
                                 .args = args,
                                 .n = PAIR_SIDES,
                                 .common = a->setup,
                                 .call = a->call,
                                 .budget = a->anchor_budget,
                                 .min_effect = -1};
}

/* ---- into the run ---- */

static void keep_ratios(struct run *run, struct run_case *to, const struct comparison_case *from,
                        const char *anchor)
{
    for (size_t i = 0; i < from->metrics.n; i++) {
        const struct comparison_metric *m = from->metrics.at[i];
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            if (strcmp(m->metric, kept[k]) != 0 || !m->ratio.known) continue;
            struct run_anchored *r = run_add_anchored(run, to);
            if (!r) return; /* the arena remembers */
            *r = (struct run_anchored){.ratio = m->ratio,
                                       .anchor = arena_str(&run->arena, anchor),
                                       .metric = kept[k],
                                       .confidence = m->confidence,
                                       .pairs = m->samples};
        }
    }
}

static void say_unknown(struct run *run, const char *why)
{
    for (size_t i = 0; i < run->cases.n; i++)
        if (run->cases.at[i]->anchored.n == 0)
            run_map_text(&run->arena, &run->cases.at[i]->unknown, "anchored", arena_str(&run->arena, why));
}

/* The cases of the bench again, as the two sides of an interleaved comparison; cases of both come in the same order. */
static tare_status measure_ratios(struct cli *cli, const struct bench_planned *p, struct compare_args *c,
                                  struct run *run, const char *anchor)
{
    struct compare_sides sides = {.arena = ARENA_INIT};
    struct comparison found = {0};
    struct grid_cases cases = {0};
    const struct grid_subject either = {0};
    tare_status s = grid_build(&p->grid, &either, 1, &cases, &cli->error);
    if (s == TARE_OK) {
        int rc =
            p->args->command ? compare_sides_read(cli, c, &sides) : compare_sides_of(cli, c, &cases, &sides);
        s = rc ? TARE_DENIED : comparison_init(&found, "interleaved", &cli->error);
    }
    if (s == TARE_OK) s = compare_ab_measure(cli, c, &sides, &found);
    for (size_t i = 0; s == TARE_OK && i < found.cases.n && i < run->cases.n; i++)
        keep_ratios(run, run->cases.at[i], found.cases.at[i], anchor);
    comparison_release(&found);
    compare_sides_release(&sides);
    grid_cases_release(&cases);
    return s;
}

/* A comparison takes its sides as words of a command line: the anchor first, so that the ratio is of this to that. */
static tare_status compare_with_anchor(struct cli *cli, const struct bench_planned *p, const char *model,
                                       struct run *run)
{
    const struct bench_args *a = p->args;
    const char *anchor = NULL;
    struct buf frozen = BUF_INIT, benched = BUF_INIT;
    if (interrupted) return error_set(&cli->error, TARE_DENIED, "interrupted before it was measured");
    buf_add_str(&frozen, a->anchor);
    add_benched(a, model, &benched);
    tare_status s = buf_status(&frozen, &cli->error);
    if (s == TARE_OK) s = buf_status(&benched, &cli->error);
    if (s == TARE_OK) s = name_anchor(a, run, &anchor, &cli->error);
    if (s == TARE_OK) {
        char *args[PAIR_SIDES] = {frozen.data, benched.data};
        struct compare_args c = as_comparison(a, args);
        s = measure_ratios(cli, p, &c, run, anchor);
    }
    buf_release(&frozen);
    buf_release(&benched);
    return s;
}

tare_status bench_anchor(struct cli *cli, const struct bench_planned *p, const char *model, struct run *run)
{
    tare_status s = compare_with_anchor(cli, p, model, run);
    if (s == TARE_NOMEM) return s;
    if (s < 0) cli_warn(cli, "no ratio to the anchor: %s", cli->error.text);
    say_unknown(run, s < 0 ? cli->error.text : "not reached: interrupted");
    return TARE_OK;
}

/* ---- for people ---- */

static void show_ratio(struct buf *out, const struct run_case *c, const struct run_anchored *r)
{
    buf_add_str(out, "anchor     ");
    text_plain(out, c->name, text_clip(c->name, 60));
    buf_printf(out, "  %s  %.3f x ", r->metric, r->ratio.value);
    text_plain(out, r->anchor, text_clip(r->anchor, 60));
    if (r->ratio.lo.known && r->ratio.hi.known)
        buf_printf(out, " (%.3f to %.3f)", r->ratio.lo.v, r->ratio.hi.v);
    buf_add_char(out, '\n');
}

void bench_anchor_show(struct cli *cli, const struct run *run)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < run->cases.n; i++)
        for (size_t k = 0; k < run->cases.at[i]->anchored.n; k++)
            show_ratio(&out, run->cases.at[i], run->cases.at[i]->anchored.at[k]);
    if (out.len && !out.failed) cli_write(cli, out.data, out.len);
    buf_release(&out);
}
