/* SPDX-License-Identifier: MIT
 * api_compare.c - two kept runs held against each other, as `tare compare` does: earlier runs of the same subject on
 * the same machine are the yardstick. A run of another project is as absent as one that never was. */
#include <string.h>

#include "analyze/judge/launches.h"
#include "history/good.h"
#include "history/past.h"
#include "server/route.h"

struct pair {
    struct run runs[2]; /* base, new */
    const char *ids[2]; /* of the base also "@name", a baseline of the new one's subject */
    bool read[2];
    char pinned[ULID_SIZE];
    bool force; /* also where numbers do not compare */
};

static tare_status read_ids(struct exchange *x, struct pair *p, tare_error *err)
{
    const char *names[] = {"base", "new"}, *word = NULL;
    for (int i = 0; i < 2; i++) {
        tare_status s = exchange_query(x, names[i], &p->ids[i], err);
        if (s != TARE_OK) return s;
        bool named = i == 0 && p->ids[i] && p->ids[i][0] == '@' &&
                     (store_name_ok(p->ids[i] + 1) || good_branch(p->ids[i]));
        if (!p->ids[i] || (!ulid_is_valid(p->ids[i]) && !named))
            return error_set(err, TARE_INVALID, "%s: the id of a run is needed", names[i]);
    }
    tare_status s = exchange_query(x, "force", &word, err);
    if (s == TARE_OK && word && strcmp(word, "1") != 0)
        s = error_set(err, TARE_INVALID, "force: is 1, or not there");
    p->force = word != NULL;
    return s;
}

static tare_status find_base(struct store *s, const struct exchange *x, struct pair *p, tare_error *err)
{
    struct store_pin pin = {p->ids[0] + 1, p->runs[1].subject.name, x->project[0] ? x->project : NULL};
    struct history_past here = {.store = s};
    history_past_of(&here, &p->runs[1]);
    struct good_ask good = {pin.subject, good_branch(p->ids[0]), here.host, pin.project, NULL};
    if (p->ids[0][0] != '@') return TARE_OK;
    p->ids[0] = p->pinned;
    if (good.branch) return good_run(s, &good, p->pinned, err);
    return store_baseline_of(s, &pin, p->pinned, err);
}

/* The new run is read first: it tells whose baseline a name means. TARE_INVALID: there is no such run. */
static tare_status read_run(struct store *s, const struct exchange *x, struct pair *p, int i, tare_error *err)
{
    struct buf text = BUF_INIT;
    bool ours = true;
    tare_status status = i == 0 ? find_base(s, x, p, err) : TARE_OK;
    const char *id = p->ids[i];
    if (status != TARE_OK) return status;
    if (x->project[0]) status = s->ops->in_project(s, id, x->project, &ours, err);
    if (status == TARE_OK && !ours) status = TARE_INVALID;
    if (status == TARE_OK) status = store_document(s, id, &text, err);
    if (status == TARE_OK) status = run_read(&p->runs[i], id, text.data, text.len, err);
    p->read[i] = status == TARE_OK;
    buf_release(&text);
    return status;
}

static tare_status judge(struct store *s, const struct exchange *x, const struct pair *p,
                         struct comparison *c, tare_error *err)
{
    const struct run *base = &p->runs[0], *new_ = &p->runs[1];
    struct history_past past = {
        .store = s, .project = x->project[0] ? x->project : NULL, .but = {{&base, 1}, {&new_, 1}}};
    struct compare_saved in = {.base = &base,
                               .n_base = 1,
                               .new_ = &new_,
                               .n_new = 1,
                               .rule = BETWEEN_RULE_INIT,
                               .apart_ms = LAUNCHES_APART_MS,
                               .force = p->force,
                               .past = {history_past_values, &past}};
    history_past_of(&past, new_);
    c->base.name = arena_str(&c->arena, base->id);
    c->new_.name = arena_str(&c->arena, new_->id);
    c->reproduce = arena_printf(&c->arena, "tare compare --history %s %s %s%s", SERVER_STORE, base->id, new_->id,
                                p->force ? " --force" : "");
    tare_status status = compare_saved(c, &in, err);
    return status == TARE_OK && past.failed.status != TARE_OK
               ? error_set(err, past.failed.status, "%s", past.failed.text)
               : status;
}

static void tell(struct server *sv, struct store *s, struct exchange *x, const struct pair *p)
{
    tare_error err = TARE_ERROR_INIT;
    struct comparison c = {0};
    tare_status status = comparison_init(&c, "saved", &err);
    if (status == TARE_OK) status = judge(s, x, p, &c, &err);
    if (status == TARE_OK) status = comparison_write_page(&c, &x->reply.body, &err);
    if (status == TARE_OK)
        reply_json(x, 200);
    else if (status == TARE_INVALID || status == TARE_DENIED)
        reply_problem(x, status == TARE_DENIED ? 409 : 422, "%s", err.text);
    else
        steps_failed(sv, x, &err);
    comparison_release(&c); /* before the runs it borrows from */
}

static void answer_comparison(struct server *sv, struct store *s, struct exchange *x)
{
    tare_error err = TARE_ERROR_INIT;
    struct pair p = {.force = false};
    tare_status status = read_ids(x, &p, &err);
    if (status != TARE_OK) {
        reply_refused(x, 400, &err);
        return;
    }
    for (int i = 1; i >= 0 && status == TARE_OK; i--) status = read_run(s, x, &p, i, &err);
    if (status == TARE_OK)
        tell(sv, s, x, &p);
    else if (status == TARE_INVALID)
        reply_problem(x, 404, "there is no such run: %s", p.read[1] ? "base" : "new");
    else
        steps_failed(sv, x, &err);
    for (int i = 0; i < 2; i++)
        if (p.read[i]) run_release(&p.runs[i]);
}

static const struct query_word compare_query[] = {
    {"base", "the id of the run it is held against, or @name, a baseline of its subject, or @good:BRANCH; needed"},
    {"new", "the id of the run that is judged; needed"},
    {"force", "1: also where the surroundings differ so that numbers do not compare"},
    {NULL, NULL}};

const struct steps compare_get = {.read = answer_comparison, .query = compare_query, .replies = "200,404,409,422"};
