/* SPDX-License-Identifier: MIT
 * history_ask.c - `tare history list` and `show`: what is kept. Changes nothing. */
#include <string.h>

#include "cli/history/history_ask.h"
#include "cli/output.h"
#include "report/text.h"

/* ---- list ---- */

static void say_cell(struct answer *a, const char *text, size_t max)
{
    struct buf *b = answer_text(a); /* empty: "-" */
    if (text) text_plain(b, text, text_clip(text, max));
}

static void list_tags(struct answer *a, const char *tags)
{
    answer_list_flat(a, "tags");
    while (tags && *tags) {
        char one[STORE_NAME_MAX + 1];
        size_t n = strcspn(tags, ",");
        snprintf(one, sizeof one, "%.*s", (int)n, tags);
        answer_str(a, NULL, one, NULL);
        tags += n + (tags[n] == ',');
    }
    answer_list_end(a);
}

struct listing {
    struct answer answer;
    size_t n;
};

static tare_status list_run(void *ctx, const struct store_run *r, tare_error *err)
{
    struct listing *l = ctx;
    struct answer *a = &l->answer;
    (void)err;
    answer_object(a, NULL);
    answer_str(a, "id", r->id, "%s", r->id);
    answer_say(a, "%.10s %.5s", r->created, strlen(r->created) > 16 ? r->created + 11 : "");
    answer_str(a, "kind", r->kind, NULL);
    say_cell(a, r->kind, 16);
    answer_str(a, "created", r->created, NULL);
    answer_str(a, "subject", r->subject, NULL);
    say_cell(a, r->subject, 40);
    answer_say(a, "%llu", (unsigned long long)r->cases);
    answer_str(a, "sha256", r->sha256, NULL);
    answer_str(a, "runtime", r->runtime, NULL);
    answer_str(a, "host", r->host, NULL);
    answer_str(a, "hostname", r->hostname, NULL);
    say_cell(a, r->hostname ? r->hostname : r->host, 24);
    answer_str(a, "commit", r->commit, NULL);
    say_cell(a, r->commit, 10);
    answer_str(a, "branch", r->branch, NULL);
    answer_uint(a, "cases", r->cases, NULL);
    answer_uint(a, "bytes", r->bytes, NULL);
    list_tags(a, r->tags);
    say_cell(a, r->tags, 200);
    answer_object_end(a);
    l->n++;
    return TARE_OK;
}

int history_list(struct cli *cli, struct store *s, const struct history_question *q)
{
    static const struct table_column columns[] = {{"id", true},      {"created (UTC)", true}, {"kind", true},
                                                  {"subject", true}, {"cases", false},        {"host", true},
                                                  {"commit", true},  {"tags", true}};
    struct listing l = {.n = 0};
    struct answer *a = &l.answer;
    cli_answer_begin(cli, a, q->json);
    answer_str(a, "schema", "tare.history/1", NULL);
    answer_str(a, "history", s->where, NULL);
    answer_table(a, "runs", columns, sizeof columns / sizeof *columns);
    tare_status status = s->ops->list(s, &q->filter, list_run, &l, &cli->error);
    answer_table_end(a);
    if (status != TARE_OK) a->stream.status = status; /* half a list is none */
    int rc = cli_answer_end(cli, a);
    if (rc != CLI_GOOD || q->json) return rc;
    if (l.n == 0) cli_note(cli, "%s: no such run", s->where);
    if (q->filter.limit && l.n == q->filter.limit) cli_note(cli, "the newest %zu; --limit 0 lists all", l.n);
    return rc;
}

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
    struct run_report report = {runs, 1, cli_style(cli)};
    status = output_runs(cli, "-", &report, report_run_text);
    run_release(&run);
    return status == TARE_OK ? s->ops->list(s, &one, note_tags, cli, &cli->error) : status;
}

/* As JSON the document comes back byte for byte as it was kept. */
int history_show(struct cli *cli, struct store *s, const struct history_question *q)
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
