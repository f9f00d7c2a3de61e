/* SPDX-License-Identifier: MIT
 * cmd_history.c - `tare history`: what is kept of earlier runs, and keeping it in order. One row per word;
 * what a word may not be given is refused, so that no filter is silently without effect. */
#include <string.h>

#include "cli/command.h"
#include "cli/history/history_question.h"
#include "cli/output.h"
#include "core/suggest.h"
#include "report/text.h"
#include "store/care.h"

/* ---- show ---- */

static tare_status note_tags(void *ctx, const struct store_run *r, tare_error *err)
{
    struct cli *cli = ctx;
    (void)err;
    if (r->tags) cli_note(cli, "%s: tags: %s", r->id, r->tags);
    return TARE_OK;
}

static tare_status show_text(struct cli *cli, struct store *s, const char *id, const struct buf *text)
{
    struct run run;
    struct store_filter one = {.id_prefix = id};
    tare_status status = run_read(&run, id, text->data, text->len, &cli->error);
    if (status != TARE_OK) return status;
    const struct run *const runs[] = {&run};
    struct run_report report = {runs, 1};
    status = output_runs(cli, "-", &report, report_run_text);
    run_release(&run);
    return status == TARE_OK ? s->ops->list(s, &one, note_tags, cli, &cli->error) : status;
}

/* As JSON the document comes back byte for byte as it was kept. */
static int show_run(struct cli *cli, struct store *s, const struct history_question *q)
{
    char id[ULID_SIZE];
    struct buf text = BUF_INIT;
    tare_status status = store_find(s, q->argv[0], id, &cli->error);
    if (status == TARE_OK) status = store_document(s, id, &text, &cli->error);
    if (status == TARE_OK && q->json)
        cli_sink_exact(cli).write(cli, text.data, text.len, &cli->error);
    else if (status == TARE_OK)
        status = show_text(cli, s, id, &text);
    buf_release(&text);
    return status == TARE_OK ? CLI_GOOD : cli_fail(cli);
}

/* ---- tags and baselines ---- */

static int tag_or_untag(struct cli *cli, struct store *s, const struct history_question *a, bool on)
{
    char id[ULID_SIZE];
    tare_status status = store_find(s, a->argv[0], id, &cli->error);
    for (int i = 1; i < a->argc && status == TARE_OK; i++)
        status = s->ops->tag(s, id, a->argv[i], on, &cli->error);
    if (status != TARE_OK) return cli_fail(cli);
    cli_note(cli, "%s: %s", id, on ? "tagged" : "tag removed");
    return CLI_GOOD;
}

static int tag_run(struct cli *cli, struct store *s, const struct history_question *a)
{
    return tag_or_untag(cli, s, a, true);
}

static int untag_run(struct cli *cli, struct store *s, const struct history_question *a)
{
    return tag_or_untag(cli, s, a, false);
}

static tare_status note_pinned(void *ctx, const struct store_run *run, tare_error *err)
{
    struct buf *out = ctx;
    (void)err;
    buf_printf(out, "%s of %s, %.10s", run->kind ? run->kind : "run", run->subject ? run->subject : "?",
               run->created ? run->created : "");
    return TARE_OK;
}

static int pin_run(struct cli *cli, struct store *s, const struct history_question *a)
{
    char id[ULID_SIZE];
    tare_status status = store_find(s, a->argc > 1 ? a->argv[1] : "latest", id, &cli->error);
    if (status == TARE_OK) status = s->ops->pin(s, id, a->argv[0], !a->remove, &cli->error);
    struct buf what = BUF_INIT; /* the latest run may be of something else than was meant */
    if (status == TARE_OK)
        status = s->ops->list(s, &(struct store_filter){.id_prefix = id, .limit = 1}, note_pinned, &what,
                              &cli->error);
    if (status == TARE_OK)
        cli_note(cli, "%s (%s): %s baseline %s", id, what.data, a->remove ? "no longer" : "is now",
                 a->argv[0]);
    buf_release(&what);
    return status == TARE_OK ? CLI_GOOD : cli_fail(cli);
}

/* ---- prune ---- */

static tare_status note_gone(void *ctx, const struct store_run *run, tare_error *err)
{
    struct answer *a = ctx;
    (void)err;
    answer_str(a, NULL, run->id, "%s  %.10s  ", run->id, run->created);
    term_clean(answer_text(a), run->subject);
    answer_say(a, "\n");
    return TARE_OK;
}

static int prune_runs(struct cli *cli, struct store *s, const struct history_question *q)
{
    struct answer a;
    struct store_prune what = {
        .keep = q->keep, .older_ms = q->older_ms, .dry_run = q->dry_run, .gone = note_gone, .ctx = &a};
    if (!q->keep && !q->older_ms)
        return cli_usage_error(cli,
                               "say what may go: --keep <n> of each subject, --older-than <age>, or both");
    cli_answer_begin(cli, &a, q->json);
    answer_str(&a, "schema", "tare.history/1", NULL);
    answer_list(&a, "removed");
    tare_status status = store_prune(s, &what, &cli->error);
    answer_list_end(&a);
    answer_uint(&a, "kept_for_their_tags", what.pinned, NULL);
    answer_bool(&a, "dry_run", what.dry_run, NULL);
    if (status != TARE_OK) a.stream.status = status; /* half a list is none */
    int rc = cli_answer_end(cli, &a);
    if (rc != CLI_GOOD) return rc;
    cli_note(cli, "%llu %s%s", (unsigned long long)what.removed, what.removed == 1 ? "run" : "runs",
             q->dry_run ? " would go" : " removed");
    if (what.pinned) cli_note(cli, "%llu kept for their tags", (unsigned long long)what.pinned);
    return CLI_GOOD;
}

/* ---- the words ---- */

enum { LIST = 1, SHOW = 2, TAG = 4, UNTAG = 8, BASELINE = 16, PRUNE = 32, IMPORT = 64, EXPORT = 128 };
static const struct opt_kind kinds[] = {
    {LIST, "list", "this is list"}, {SHOW, "show", "this is show"}, {TAG, "tag", "this is tag"},
    {UNTAG, "untag", "this is untag"}, {BASELINE, "baseline", "this is baseline"}, {PRUNE, "prune", "this is prune"},
    {IMPORT, "import", "this is import"}, {EXPORT, "export", "this is export"}, {0, NULL, NULL},
};

static const struct word {
    const char *name, *args;
    int min, max; /* arguments; -1: any number */
    unsigned kind;
    history_fn *run;
} words[] = {
    {"list", "", 0, 0, LIST, history_list},
    {"show", "<id>", 1, 1, SHOW, show_run},
    {"tag", "<id> <name>...", 2, -1, TAG, tag_run},
    {"untag", "<id> <name>...", 2, -1, UNTAG, untag_run},
    {"baseline", "<name> [<id>]", 1, 2, BASELINE, pin_run},
    {"prune", "", 0, 0, PRUNE, prune_runs},
    {"import", "<file or folder>...", 1, -1, IMPORT, history_import},
    {"export", "<folder>, or --jsonl <file>", 0, 1, EXPORT, history_export},
};
static const struct opt_choice offered[] = {
    {"list", 0, "what is kept, newest first"},      {"show", 0, "one run, as tare report does"},
    {"tag", 0, "give a run a name"},                {"untag", 0, "take it off"},
    {"baseline", 0, "what later runs compare with"}, {"prune", 0, "let old runs go"},
    {"import", 0, "take documents over"},           {"export", 0, "write the documents"},
    {NULL, 0, NULL},
};
enum { N_WORDS = sizeof words / sizeof *words };
#define ALL_WORDS "list, show, tag, untag, baseline, prune, import or export"

static const struct word *find_word(struct cli *cli, const char *text)
{
    const char *names[N_WORDS];
    if (strcmp(text, "ls") == 0) return &words[0];
    for (size_t i = 0; i < N_WORDS; i++) {
        if (strcmp(words[i].name, text) == 0) return &words[i];
        names[i] = words[i].name;
    }
    const char *best = suggest_among(text, names, N_WORDS);
    if (best)
        cli_usage_error(cli, "there is no 'tare history %.40s'; did you mean tare history %s?", text, best);
    else
        cli_usage_error(cli, "there is no 'tare history %.40s'; there are: " ALL_WORDS, text);
    return NULL;
}

static const struct opt_usage usage = {
    .synopsis = "tare history [list] [options]\ntare history show <id>\ntare history tag|untag <id> <name>...\n"
                "tare history baseline <name> [<id>]\ntare history prune [options]\n"
                "tare history import <file or folder>...\ntare history export <folder>",
    .about = "Look at what is kept of earlier runs and keep it in order. Every tare bench adds its run: the whole "
             "document, the commit, and the numbers that tare trend asks for. An id may be cut short as long as it "
             "is clear, or be 'latest'. Nothing with a tag or a baseline's name is ever pruned.",
    .tail = "tare history list --subject minilm --since 30d\n"
            "tare history show latest --json > run.json\n"
            "tare history baseline main              the latest run is what main compares with\n"
            "tare history prune --keep 200 --older-than 90d --dry-run",
    .max_args = OPT_ANY,
    .args = OPT_ARGS_FILES,
    .words = offered,
    .kinds = kinds,
};

/* The word and what it is given; options that are not for it are refused. */
static int read_asked(struct cli *cli, struct history_question *a, const struct word **out, int argc, char **argv)
{
    const struct opt rows[] = {
        OPT_HISTORY(&a->where),
        OPT_SERVER(&a->where),
        OPT_HISTORY_DIR(&a->where),
        OPT_JSON(&a->json),
        OPT_GROUP("list and export"),
        OPT_STRING(0, "subject", &a->filter.subject, "<name>", "only runs of this subject", .only_for = LIST | EXPORT),
        OPT_STRING(0, "host", &a->filter.host, "<name>", "only of this host, by name or fingerprint",
                 .only_for = LIST | EXPORT),
        OPT_STRING(0, "tag", &a->filter.tag, "<name>", "only runs with this tag or baseline's name",
                 .only_for = LIST | EXPORT),
        OPT_CALLBACK(0, "since", history_parse_since, &a->filter.since_ms, "<when>",
                     "only runs after a date (2026-11-01) or of an age (30d)", .only_for = LIST | EXPORT),
        OPT_UINT(0, "limit", &a->filter.limit, "list the newest so many; 0: all"),
        OPT_OUT(0, "jsonl", &a->jsonl, "<file>", "export as one document a line; - is stdout",
                 .only_for = EXPORT),
        OPT_GROUP("prune"),
        OPT_UINT_IN(0, "keep", &a->keep, 1, UINT64_MAX, "the newest so many of each subject stay",
                 .flags = OPT_NO_DEFAULT | OPT_NO_ENV, .only_for = PRUNE),
        OPT_CALLBACK(0, "older-than", history_parse_since, &a->older_ms, "<age>", "what is younger stays: 90d",
                 .only_for = PRUNE),
        OPT_FLAG(0, "dry-run", &a->dry_run, "only say what would go", .only_for = PRUNE),
        OPT_GROUP("others"),
        OPT_FLAG(0, "remove", &a->remove, "baseline: take the name off the run", .only_for = BASELINE),
        OPT_STRING(0, "commit", &a->commit, "<hash>", "import: the commit that was measured", .only_for = IMPORT),
        OPT_STRING(0, "branch", &a->branch, "<name>", "import: its branch", .only_for = IMPORT),
        OPT_END,
    };
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc) return rc;
    const struct word *w = *out = argc ? find_word(cli, argv[0]) : &words[0];
    if (!w) return CLI_USAGE;
    a->argc = argc ? argc - 1 : 0;
    a->argv = argv + 1;
    if ((rc = cli_check_kind(cli, &usage, rows, w->kind)) != 0) return rc;
    if (a->argc >= w->min && (w->max < 0 || a->argc <= w->max)) return 0;
    return cli_usage_error(cli, "%stare history %s%s%s", *w->args ? "expected: " : "", w->name,
                           *w->args ? " " : " takes nothing more", w->args);
}

int cmd_history(struct cli *cli, int argc, char **argv)
{
    struct history_question a = {.where = HISTORY_ARGS_INIT, .filter.limit = 50};
    struct store *store = NULL;
    const struct word *w = NULL;
    int rc = read_asked(cli, &a, &w, argc, argv);
    if (rc || !w) return rc;
    if (w->kind == EXPORT) a.filter.limit = 0; /* all of them */
    rc = history_open(cli, &a.where, w->kind == IMPORT, &store);
    if (rc == 0) rc = w->run(cli, store, &a);
    store_close(store);
    return rc;
}
