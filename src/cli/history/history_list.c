/* SPDX-License-Identifier: MIT
 * history_list.c - `tare history list`: a row per run with its number, and how that differs from the run before of the
 * same subject on the same host, judged as `tare compare` judges saved runs. The numbers are those of the documents. */
#include <string.h>

#include "analyze/compare/compare_saved.h"
#include "analyze/judge/launches.h"
#include "cli/history/history_question.h"
#include "core/arena.h"
#include "core/fmt.h"
#include "core/vec.h"
#include "report/text.h"

#define SHOWN "latency.p50"

struct kept {
    char id[ULID_SIZE];
    const char *kind, *created, *subject, *host, *hostname, *commit, *tags; /* may be NULL */
    struct run run;
    bool loaded;
};

struct listing {
    struct answer *answer;
    struct store *store;
    struct arena texts;
    VEC(struct kept) rows; /* newest first */
    size_t n;
};

static tare_status keep_row(struct listing *l, const struct store_run *r, tare_error *err)
{
    struct kept k = {.kind = arena_str(&l->texts, r->kind),
                     .created = arena_str(&l->texts, r->created),
                     .subject = arena_str(&l->texts, r->subject),
                     .host = arena_str(&l->texts, r->host),
                     .hostname = arena_str(&l->texts, r->hostname),
                     .commit = arena_str(&l->texts, r->commit),
                     .tags = arena_str(&l->texts, r->tags)};
    snprintf(k.id, sizeof k.id, "%s", r->id);
    return l->texts.failed ? error_nomem(err, "%zu runs", l->rows.n) : vec_push(&l->rows, k, err);
}

/* JSON has what the store knows without reading documents. */
static tare_status list_run(void *ctx, const struct store_run *r, tare_error *err)
{
    struct listing *l = ctx;
    l->n++;
    if (!l->answer->as_json) return keep_row(l, r, err);
    store_run_json(&l->answer->json, r);
    return TARE_OK;
}

/* ---- numbers ---- */

/* A document that cannot be read has no number; what is wrong with it is told by whoever shows it. */
static void load_documents(struct listing *l)
{
    for (size_t i = 0; i < l->rows.n; i++) {
        struct kept *k = &l->rows.items[i];
        struct buf text = BUF_INIT;
        if (store_document(l->store, k->id, &text, NULL) == TARE_OK)
            k->loaded = run_read(&k->run, k->id, text.data, text.len, NULL) == TARE_OK;
        buf_release(&text);
    }
}

/* The case that the run recommends, or its first. */
static const struct run_case *case_of(const struct kept *k)
{
    const char *name = k->run.recommendation.known ? k->run.recommendation.case_name : NULL;
    if (!k->loaded || !k->run.cases.n) return NULL;
    for (size_t i = 0; name && i < k->run.cases.n; i++)
        if (strcmp(k->run.cases.at[i]->name, name) == 0) return k->run.cases.at[i];
    return k->run.cases.at[0];
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The run before of the same thing; NULL: none is listed. */
static const struct kept *before(const struct listing *l, size_t i)
{
    const struct kept *k = &l->rows.items[i];
    for (size_t j = i + 1; j < l->rows.n; j++) {
        const struct kept *older = &l->rows.items[j];
        if (older->loaded && is_same(older->subject, k->subject) && is_same(older->kind, k->kind) &&
            is_same(older->host, k->host))
            return older;
    }
    return NULL;
}

static const struct comparison_metric *find_metric(const struct comparison *c, const char *name)
{
    for (size_t i = 0; i < c->cases.n; i++) {
        const struct comparison_case *at = c->cases.at[i];
        for (size_t m = 0; strcmp(at->name, name) == 0 && m < at->metrics.n; m++)
            if (strcmp(at->metrics.at[m]->metric, SHOWN) == 0) return at->metrics.at[m];
    }
    return NULL;
}

static void say_change(struct answer *a, const struct kept *old, const struct kept *new_, const char *name)
{
    const struct run *base[] = {&old->run}, *next[] = {&new_->run};
    struct compare_saved in = {.base = base,
                               .n_base = 1,
                               .new_ = next,
                               .n_new = 1,
                               .rule = BETWEEN_RULE_INIT,
                               .apart_ms = LAUNCHES_APART_MS};
    struct comparison c;
    const struct comparison_metric *m = NULL;
    bool made = comparison_init(&c, "saved", NULL) == TARE_OK;
    if (made && compare_saved(&c, &in, NULL) == TARE_OK) m = find_metric(&c, name);
    if (m && m->ratio.known)
        answer_say(a, "%+.1f %%", 100 * (m->ratio.value - 1));
    else
        answer_say(a, "-");
    answer_say(a, "%s", m ? m->verdict : "-");
    if (made) comparison_release(&c);
}

/* ---- the table ---- */

static void say_cell(struct answer *a, const char *text, size_t max)
{
    struct buf *b = answer_text(a); /* empty: "-" */
    if (text) text_plain(b, text, text_clip(text, max));
}

static void say_number(struct answer *a, const struct run_case *c)
{
    struct run_estimate e;
    struct buf *b = answer_text(a);
    if (c && measure_named(c, SHOWN, &e)) fmt_duration(b, e.value);
}

/* As many characters of an id as tell the rows apart, and not fewer than 10, which are its time. */
static int id_columns(const struct listing *l)
{
    size_t most = 10;
    for (size_t i = 1; i < l->rows.n; i++) { /* in the order of time, which for ids is that of the alphabet */
        const char *a = l->rows.items[i - 1].id, *b = l->rows.items[i].id;
        size_t same = 0;
        while (a[same] && a[same] == b[same]) same++;
        if (same + 1 > most) most = same + 1;
    }
    return (int)most;
}

static void say_row(struct listing *l, size_t i, int columns)
{
    struct answer *a = l->answer;
    const struct kept *k = &l->rows.items[i], *old = before(l, i);
    const struct run_case *c = case_of(k);
    const char *created = k->created ? k->created : "";
    answer_say(a, "%.*s", columns, k->id);
    answer_say(a, "%.10s %.5s", created, strlen(created) > 16 ? created + 11 : "");
    say_cell(a, k->kind, 16);
    say_cell(a, k->subject, 32);
    say_cell(a, c && k->run.cases.n > 1 ? c->name : NULL, 24);
    say_number(a, c);
    if (old && c) {
        say_change(a, old, k, c->name);
    } else {
        answer_say(a, "-");
        answer_say(a, "-");
    }
    say_cell(a, k->hostname ? k->hostname : k->host, 16);
    say_cell(a, k->commit, 10);
    say_cell(a, k->tags, 60);
}

static void release(struct listing *l)
{
    for (size_t i = 0; i < l->rows.n; i++)
        if (l->rows.items[i].loaded) run_release(&l->rows.items[i].run);
    vec_release(&l->rows);
    arena_release(&l->texts);
}

int history_list(struct cli *cli, struct store *s, const struct history_question *q)
{
    static const struct table_column columns[] = {
        {"id", true},    {"created (UTC)", true}, {"kind", true},    {"subject", true}, {"case", true},  {"p50", false},
        {"change", false}, {"verdict", true},       {"host", true}, {"commit", true},  {"tags", true}};
    struct answer a;
    struct listing l = {.answer = &a, .store = s, .texts = ARENA_INIT};
    cli_answer_begin(cli, &a, q->json);
    answer_str(&a, "schema", "tare.history/1", NULL);
    answer_str(&a, "history", s->where, NULL);
    answer_table(&a, "runs", columns, sizeof columns / sizeof *columns);
    tare_status status = s->ops->list(s, &q->filter, list_run, &l, &cli->error);
    if (status == TARE_OK) load_documents(&l);
    for (size_t i = 0, n = status == TARE_OK ? l.rows.n : 0; i < n; i++) say_row(&l, i, id_columns(&l));
    static const char *const spare[] = {"kind", "commit", "host", "tags", NULL};
    a.table.spare = spare;
    answer_table_drop_empty(&a);
    answer_table_end(&a);
    release(&l);
    if (status != TARE_OK) a.stream.status = status; /* half a list is none */
    int rc = cli_answer_end(cli, &a);
    if (rc != CLI_GOOD || q->json) return rc;
    if (l.n == 0) cli_note(cli, "%s: no such run", s->where);
    if (q->filter.limit && l.n == q->filter.limit) cli_note(cli, "the newest %zu; --limit 0 lists all", l.n);
    return rc;
}
