/* SPDX-License-Identifier: MIT
 * history_ask.c - `tare history list` and `show`: what is kept. Changes nothing. */
#include <string.h>

#include "cli/history/history_ask.h"
#include "cli/output.h"
#include "core/json.h"
#include "report/table.h"
#include "report/text.h"

/* ---- list ---- */

static void put_tags(struct json *j, const char *tags)
{
    json_key(j, "tags");
    json_array_begin_flat(j);
    while (tags && *tags) {
        size_t n = strcspn(tags, ",");
        json_put_string_n(j, tags, n);
        tags += n + (tags[n] == ',');
    }
    json_array_end(j);
}

static tare_status put_run(void *ctx, const struct store_run *r, tare_error *err)
{
    struct json *j = ctx;
    (void)err;
    json_object_begin(j);
    json_kv_string(j, "id", r->id);
    json_kv_string(j, "kind", r->kind);
    json_kv_string(j, "created", r->created);
    json_kv_string(j, "subject", r->subject);
    json_kv_string(j, "sha256", r->sha256);
    json_kv_string(j, "runtime", r->runtime);
    json_kv_string(j, "host", r->host);
    json_kv_string(j, "hostname", r->hostname);
    json_kv_string(j, "commit", r->commit);
    json_kv_string(j, "branch", r->branch);
    json_kv_uint(j, "cases", r->cases);
    json_kv_uint(j, "bytes", r->bytes);
    put_tags(j, r->tags);
    json_object_end(j);
    return TARE_OK;
}

static int list_json(struct cli *cli, struct store *s, const struct history_asked *a)
{
    struct buf out = BUF_INIT;
    struct json j;
    json_init(&j, &out, JSON_STYLE_PRETTY);
    json_object_begin(&j);
    json_kv_string(&j, "schema", "tare.history/1");
    json_kv_string(&j, "history", s->where);
    json_key(&j, "runs");
    json_array_begin(&j);
    tare_status status = s->ops->list(s, &a->filter, put_run, &j, &cli->error);
    json_array_end(&j);
    json_object_end(&j);
    if (status == TARE_OK) status = json_finish(&j, &cli->error);
    int rc = status == TARE_OK ? cli_put(cli, &out) : cli_fail(cli);
    buf_release(&out);
    return rc;
}

struct listed {
    struct table table;
    size_t n;
};

static void cell(struct table *t, const char *text, size_t max)
{
    struct buf *b = table_cell(t);
    if (text && *text)
        text_plain(b, text, text_clip(text, max));
    else
        buf_add_char(b, '-');
    table_cell_end(t);
}

static tare_status row(void *ctx, const struct store_run *r, tare_error *err)
{
    struct listed *l = ctx;
    char when[20];
    (void)err;
    snprintf(when, sizeof when, "%.10s %.5s", r->created, strlen(r->created) > 16 ? r->created + 11 : "");
    cell(&l->table, r->id, ULID_LEN);
    cell(&l->table, when, sizeof when);
    cell(&l->table, r->kind, 16);
    cell(&l->table, r->subject, 40);
    buf_printf(table_cell(&l->table), "%llu", (unsigned long long)r->cases);
    table_cell_end(&l->table);
    cell(&l->table, r->hostname ? r->hostname : r->host, 24);
    cell(&l->table, r->commit, 10);
    cell(&l->table, r->tags, 200);
    l->n++;
    return TARE_OK;
}

static int list_text(struct cli *cli, struct store *s, const struct history_asked *a)
{
    static const struct table_column columns[] = {{"id", true},      {"created (UTC)", true}, {"kind", true},
                                                  {"subject", true}, {"cases", false},        {"host", true},
                                                  {"commit", true},  {"tags", true}};
    struct listed l = {.n = 0};
    struct stream out;
    table_init(&l.table, columns, sizeof columns / sizeof *columns);
    tare_status status = s->ops->list(s, &a->filter, row, &l, &cli->error);
    if (status == TARE_OK && l.n) {
        stream_init(&out, cli_sink(cli), &cli->error);
        table_print(&l.table, &out, term_style(&cli->out_term, TERM_BOLD),
                    term_style(&cli->out_term, TERM_PLAIN));
        status = stream_finish(&out);
    }
    table_release(&l.table);
    if (status != TARE_OK) return cli_fail(cli);
    if (l.n == 0) cli_note(cli, "%s: no such run", s->where);
    if (a->filter.limit && l.n == a->filter.limit) cli_note(cli, "the newest %zu; --limit 0 lists all", l.n);
    return CLI_GOOD;
}

int history_list(struct cli *cli, struct store *s, const struct history_asked *a)
{
    return (a->json ? list_json : list_text)(cli, s, a);
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
int history_show(struct cli *cli, struct store *s, const struct history_asked *a)
{
    char id[ULID_SIZE];
    struct buf text = BUF_INIT;
    tare_status status = store_find(s, a->argv[0], id, &cli->error);
    if (status == TARE_OK) status = store_document(s, id, &text, &cli->error);
    if (status == TARE_OK && a->json)
        cli_write(cli, text.data, text.len);
    else if (status == TARE_OK)
        status = show_text(cli, s, id, &text);
    buf_release(&text);
    return status == TARE_OK ? CLI_GOOD : cli_fail(cli);
}
