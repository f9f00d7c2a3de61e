/* SPDX-License-Identifier: MIT
 * test_store.c - the conformance suite of the history: what every backend must do, as functions of its ops. Backends
 * are in store_fixture.h; what only a file can go wrong with is in test_store_file.c. */
#include <math.h>

#include "analyze/judge/judge.h"
#include "store/care.h"
#include "store_fixture.h"
#include "store_runs.h"

#define ID(i) "01KB00000000000000000000" i /* two digits */

/* ---- the suite ---- */

static void documents_come_back(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct run r;
    struct buf text = BUF_INIT, back = BUF_INIT;
    bool added = false;
    make_run(&r, 1, "minilm", 1e6);
    run_write(&r, &text, NULL);
    assert_int_equal(store_add_run(s, &r, NULL, &added, NULL), TARE_OK);
    assert_true(added);
    assert_int_equal(store_add_run(s, &r, NULL, &added, NULL), TARE_OK); /* the same again */
    assert_false(added);
    assert_int_equal(store_document(s, r.id, &back, NULL), TARE_OK);
    assert_int_equal(back.len, text.len);
    assert_memory_equal(back.data, text.data, text.len);
    run_release(&r);
    make_run(&r, 2, "minilm", 1e6); /* a text of its own comes back as it is */
    buf_clear(&text);
    buf_clear(&back);
    buf_add_str(&text, "  {\"any\": \"text\"}\n\n");
    struct store_context c = {.text = {text.data, text.len}};
    assert_int_equal(store_add_run(s, &r, &c, &added, NULL), TARE_OK);
    assert_int_equal(store_document(s, r.id, &back, NULL), TARE_OK);
    assert_string_equal(back.data, text.data);
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(store_document(s, ID("99"), &back, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, ID("99")));
    run_release(&r);
    buf_release(&text);
    buf_release(&back);
    store_close(s);
}

static void lists_are_filtered(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    for (unsigned i = 1; i <= 30; i++) keep(s, i, i % 3 ? "minilm" : "it's \"odd\"; --", 1e6);
    struct seen all = list(s, (struct store_filter){0});
    assert_int_equal(all.n, 30);
    assert_string_equal(all.ids[0], ID("30"));
    assert_string_equal(all.ids[29], ID("01"));
    assert_int_equal(list(s, (struct store_filter){.limit = 7}).n, 7);
    assert_int_equal(list(s, (struct store_filter){.subject = "minilm"}).n, 20);
    assert_int_equal(list(s, (struct store_filter){.subject = "it's \"odd\"; --"}).n, 10);
    assert_int_equal(list(s, (struct store_filter){.host = "box"}).n, 30);
    assert_int_equal(list(s, (struct store_filter){.host = "other"}).n, 0);
    assert_int_equal(list(s, (struct store_filter){.commit = "000000000000000000000000000000000000002"}).n,
                     10);
    assert_int_equal(list(s, (struct store_filter){.commit = "0"}).n, 30);
    assert_int_equal(list(s, (struct store_filter){.commit = "%"}).n, 0);
    assert_int_equal(list(s, (struct store_filter){.id_prefix = "01KB0000000000000000000000"}).n, 0);
    assert_int_equal(list(s, (struct store_filter){.id_prefix = "01KB000000000000000000002"}).n, 10);
    /* 2026-01-02T00:00Z is run 24 less half a second */
    assert_int_equal(list(s, (struct store_filter){.since_ms = INT64_C(1767312000000)}).n, 7);
    char id[ULID_SIZE];
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(store_find(s, "latest", id, &err), TARE_OK);
    assert_string_equal(id, ID("30"));
    assert_int_equal(store_find(s, "01kb0000000000000000000007", id, &err), TARE_OK);
    assert_string_equal(id, ID("07"));
    assert_int_equal(store_find(s, "01KB", id, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "several"));
    assert_int_equal(store_find(s, "%", id, &err), TARE_INVALID);
    assert_int_equal(store_find(s, "", id, &err), TARE_INVALID);
    store_close(s);
}

/* Page by page the same as all at once, also where runs have the same time. */
static void lists_go_on_from_a_run(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    for (unsigned i = 0; i < 5; i++) keep(s, i, i == 3 ? "other" : "minilm", 1e6);
    struct seen all = list(s, (struct store_filter){.subject = "minilm"}), page;
    assert_int_equal(all.n, 4);
    for (size_t i = 0; i + 1 < all.n; i++) {
        page = list(s, (struct store_filter){.subject = "minilm", .before = all.ids[i], .limit = 1});
        assert_int_equal(page.n, 1);
        assert_string_equal(page.ids[0], all.ids[i + 1]);
    }
    assert_int_equal(list(s, (struct store_filter){.subject = "minilm", .before = all.ids[3]}).n, 0);
    assert_int_equal(list(s, (struct store_filter){.before = ID("99")}).n, 0);
    store_close(s);
}

static void tags_and_baselines(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    char id[ULID_SIZE];
    for (unsigned i = 1; i <= 4; i++) keep(s, i, i < 4 ? "minilm" : "other", 1e6);
    assert_int_equal(s->ops->tag(s, ID("02"), "release", true, NULL), TARE_OK);
    assert_int_equal(s->ops->tag(s, ID("02"), "release", true, NULL), TARE_OK); /* twice is once */
    assert_int_equal(s->ops->pin(s, ID("01"), "main", true, NULL), TARE_OK);
    assert_int_equal(s->ops->pin(s, ID("04"), "main", true, NULL), TARE_OK); /* of another subject */
    assert_int_equal(list(s, (struct store_filter){.tag = "main"}).n, 2);
    assert_int_equal(s->ops->pin(s, ID("03"), "main", true, NULL), TARE_OK); /* moves */
    assert_int_equal(store_baseline(s, "main", "minilm", id, NULL), TARE_OK);
    assert_string_equal(id, ID("03"));
    assert_int_equal(store_baseline(s, "main", "other", id, NULL), TARE_OK);
    assert_string_equal(id, ID("04"));
    assert_int_equal(store_baseline(s, "main", "nobody", id, NULL), TARE_INVALID);
    struct seen seen = list(s, (struct store_filter){.tag = "release"});
    assert_int_equal(seen.n, 1);
    assert_string_equal(seen.tags[0], "release");
    assert_string_equal(list(s, (struct store_filter){.tag = "baseline:main", .subject = "minilm"}).tags[0],
                        "baseline:main");
    assert_int_equal(s->ops->tag(s, ID("02"), "release", false, NULL), TARE_OK);
    assert_int_equal(s->ops->tag(s, ID("02"), "release", false, NULL), TARE_INVALID);
    assert_int_equal(s->ops->pin(s, ID("01"), "main", false, NULL), TARE_INVALID);
    assert_int_equal(s->ops->tag(s, ID("77"), "x", true, NULL), TARE_INVALID);
    static const char *const bad[] = {"", "a b", "a,b", "a:b", "\xc3\xa4", "'"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(s->ops->tag(s, ID("02"), bad[i], true, NULL), TARE_INVALID);
    store_close(s);
}

static struct store_points series(struct store *s, struct store_query q, uint64_t last)
{
    struct store_points p = {VEC_INIT};
    tare_error err = TARE_ERROR_INIT;
    if (store_series(s, &q, last, &p, &err) != TARE_OK) fail_msg("%s", err.text);
    return p;
}

static void series_are_in_time_order(const struct store_ops *ops)
{
    static const unsigned order[] = {5, 1, 4, 2, 3};
    struct store *s = open_with(ops);
    struct store_query q = {
        .subject = "minilm", .case_name = "batch=1", .metric = "latency.p50", .anchor = ""};
    for (size_t i = 0; i < 5; i++) keep(s, order[i], "minilm", 1e6 * order[i]);
    keep(s, 9, "other", 1e6);
    struct store_points p = series(s, q, 0);
    assert_int_equal(p.at.n, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct store_point *at = &p.at.items[i];
        assert_true(fabs(at->value / (1e6 * (double)(i + 1)) - 1) < 0.02);
        assert_true(at->lo.known && at->lo.v <= at->value && at->hi.known && at->value <= at->hi.v);
        assert_true(at->samples.known && at->samples.v == 60);
        assert_int_equal(at->commit[39], '1' + (char)i);
        assert_string_equal(at->branch, "main");
    }
    vec_release(&p.at);
    p = series(s, q, 2);
    assert_int_equal(p.at.n, 2);
    assert_string_equal(p.at.items[1].run, ID("05"));
    vec_release(&p.at);
    q.metric = "accuracy"; /* not measured: no point, not zero */
    p = series(s, q, 0);
    assert_int_equal(p.at.n, 0);
    vec_release(&p.at);
    q = (struct store_query){.subject = "minilm", .metric = "latency.p50"};
    struct store_points none = {VEC_INIT};
    assert_int_equal(store_series(s, &q, 0, &none, NULL), TARE_INVALID); /* two cases fit */
    store_close(s);
}

static void hosts_and_anchors_apart(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct store_ratio ratio = {.case_name = "batch=1",
                                .metric = "latency.p50",
                                .anchor = "v1.0",
                                .ln = run_estimate(0.02, 0.01, 0.03),
                                .samples = known_u64(80)};
    struct store_context c = {.ratios = &ratio, .n_ratios = 1};
    struct store_query q = {.subject = "minilm", .case_name = "batch=1", .metric = "latency.p50"};
    struct run r;
    keep(s, 1, "minilm", 1e6);
    make_run(&r, 2, "minilm", 1e6);
    r.host.fingerprint = "h1-00000000000000aa";
    assert_int_equal(store_add_run(s, &r, &c, NULL, NULL), TARE_OK);
    run_release(&r);
    q.host = "h1-00000000000000aa";
    q.anchor = "v1.0";
    struct store_points p = series(s, q, 0);
    assert_int_equal(p.at.n, 1);
    assert_true(p.at.items[0].value == 0.02 && p.at.items[0].hi.v == 0.03 && p.at.items[0].samples.v == 80);
    vec_release(&p.at);
    q.anchor = "";
    p = series(s, q, 0);
    assert_int_equal(p.at.n, 1);
    assert_true(p.at.items[0].value > 1e5);
    vec_release(&p.at);
    ratio.ln.value = NAN;
    make_run(&r, 3, "minilm", 1e6);
    assert_int_equal(store_add_run(s, &r, &c, NULL, NULL), TARE_INVALID);
    run_release(&r);
    assert_int_equal(list(s, (struct store_filter){0}).n, 2);
    store_close(s);
}

struct names {
    size_t n;
    int64_t id[64];
    uint64_t points;
};

static tare_status see_name(void *ctx, const struct store_series_name *name, tare_error *err)
{
    struct names *s = ctx;
    (void)err;
    assert_true(s->n < 64);
    s->id[s->n++] = name->id;
    s->points += name->points;
    return TARE_OK;
}

static struct names names(struct store *s, struct store_query q)
{
    struct names seen = {.n = 0};
    tare_error err = TARE_ERROR_INIT;
    if (s->ops->names(s, &q, see_name, &seen, &err) != TARE_OK) fail_msg("%s", err.text);
    return seen;
}

/* Two projects measured the same on the same machine: it is one series, and each sees its own points of it. */
static void series_of_a_project(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    static const char *const projects[] = {"nlp", "nlp", "ads", NULL};
    struct store_query q = {.subject = "minilm", .case_name = "batch=1", .metric = "latency.p50", .anchor = ""};
    for (unsigned i = 0; i < 4; i++) {
        struct run r;
        make_run(&r, i, "minilm", 1e6);
        struct store_context c = {.project = projects[i]};
        assert_int_equal(store_add_run(s, &r, &c, NULL, NULL), TARE_OK);
        run_release(&r);
    }
    keep(s, 7, "other", 1e6);
    assert_int_equal(names(s, q).points, 4);
    struct names all = names(s, (struct store_query){0}), nlp = names(s, (struct store_query){.project = "nlp"});
    assert_int_equal(nlp.n * 2, all.n);
    assert_int_equal(names(s, (struct store_query){.project = "none"}).n, 0);
    assert_int_equal(names(s, (struct store_query){.after = all.id[0], .limit = 3}).n, 3);
    assert_int_equal(names(s, (struct store_query){.after = all.id[0], .limit = 1}).id[0], all.id[1]);
    assert_int_equal(names(s, (struct store_query){.after = all.id[all.n - 1]}).n, 0);
    q.project = "nlp";
    assert_int_equal(names(s, q).points, 2);
    struct store_points p = series(s, q, 0);
    assert_int_equal(p.at.n, 2);
    assert_string_equal(p.at.items[1].run, ID("01"));
    vec_release(&p.at);
    store_close(s);
}

/* What a document says of an anchor is in the history by itself, and so survives export and import. */
static void anchors_of_the_document(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct store_query q = {
        .subject = "minilm", .case_name = "batch=1", .metric = "latency.p50", .anchor = "v1.0"};
    struct run r;
    make_run(&r, 1, "minilm", 1e6);
    static const struct run_anchored given[] = {
        {.anchor = "v1.0", .metric = "latency.p50", .ratio = {true, 1.5, {true, 1.2}, {0}}, .pairs = {true, 80}},
        {.anchor = "v1.0", .metric = "cpu.time", .ratio = {true, 0, {0}, {0}}},      /* has no logarithm */
        {.anchor = "v1.0", .metric = "no.such.metric", .ratio = {true, 1, {0}, {0}}}, /* of a later tare */
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct run_anchored *a = run_add_anchored(&r, r.cases.at[0]);
        assert_non_null(a);
        *a = given[i];
    }
    assert_int_equal(store_add_run(s, &r, NULL, NULL, NULL), TARE_OK);
    run_release(&r);
    struct store_points p = series(s, q, 0);
    assert_int_equal(p.at.n, 1);
    const struct store_point *at = &p.at.items[0];
    assert_true(fabs(at->value - log(1.5)) < 1e-12 && at->lo.known && fabs(at->lo.v - log(1.2)) < 1e-12);
    assert_true(!at->hi.known && at->samples.v == 80);
    vec_release(&p.at);
    q.metric = "cpu.time";
    p = series(s, q, 0);
    assert_int_equal(p.at.n, 0);
    vec_release(&p.at);
    store_close(s);
}

static tare_status count_gone(void *ctx, const struct store_run *run, tare_error *err)
{
    size_t *n = ctx;
    (void)err;
    assert_true(strlen(run->id) == ULID_SIZE - 1 && run->created[0] == '2' && run->subject[0]);
    ++*n;
    return TARE_OK;
}

static const struct store_ops *real_ops;

static tare_status end_without_room(struct store *s, bool commit, tare_error *err)
{
    real_ops->end(s, false, NULL);
    return commit ? error_set(err, TARE_IO, "no room") : TARE_OK;
}

/* A change that fails at its very end has removed nothing, and nothing is told of. */
static void pruning_tells_what_is_gone(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct store_ops failing = *s->ops;
    size_t told = 0;
    for (unsigned i = 1; i <= 5; i++) keep(s, i, "minilm", 1e6);
    struct store_prune p = {.keep = 2, .gone = count_gone, .ctx = &told};
    const struct store_ops *good = s->ops;
    real_ops = good;
    failing.end = end_without_room;
    s->ops = &failing;
    assert_int_equal(store_prune(s, &p, NULL), TARE_IO);
    s->ops = good;
    assert_int_equal(told, 0);
    assert_int_equal(p.removed, 0);
    assert_int_equal(list(s, (struct store_filter){0}).n, 5);
    assert_int_equal(store_prune(s, &p, NULL), TARE_OK);
    assert_int_equal(told, 3);
    assert_int_equal(list(s, (struct store_filter){0}).n, 2);
    store_close(s);
}

static void pruning(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    struct store_query q = {
        .subject = "minilm", .case_name = "batch=1", .metric = "latency.p50", .anchor = ""};
    for (unsigned i = 1; i <= 10; i++) keep(s, i, i % 2 ? "minilm" : "other", 1e6);
    assert_int_equal(s->ops->tag(s, ID("01"), "keep", true, NULL), TARE_OK);
    struct store_prune p = {.keep = 2, .dry_run = true};
    assert_int_equal(store_prune(s, &p, NULL), TARE_OK);
    assert_int_equal(p.removed, 5);
    assert_int_equal(p.pinned, 1);
    assert_int_equal(list(s, (struct store_filter){0}).n, 10);
    p.dry_run = false;
    assert_int_equal(store_prune(s, &p, NULL), TARE_OK);
    struct seen left = list(s, (struct store_filter){0});
    assert_int_equal(left.n, 5); /* 10, 9, 8, 7 and the tagged 1 */
    assert_string_equal(left.ids[4], ID("01"));
    struct store_points points = series(s, q, 0);
    assert_int_equal(points.at.n, 3);
    vec_release(&points.at);
    p = (struct store_prune){.keep = 1,
                             .older_ms = INT64_C(1767225600000)}; /* nothing is as old as 2026-01-01 */
    assert_int_equal(store_prune(s, &p, NULL), TARE_OK);
    assert_int_equal(p.removed, 0);
    p = (struct store_prune){0};
    assert_int_equal(store_prune(s, &p, NULL), TARE_INVALID);
    assert_int_equal(s->ops->remove(s, ID("77"), NULL), TARE_INVALID);
    keep(s, 3, "minilm", 1e6); /* what went may come again */
    store_close(s);
}

/* Old ones go in slices, oldest first; a tag or a baseline keeps its run, and no time at all is still one run. */
static void what_is_old_goes(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    tare_error err = TARE_ERROR_INIT;
    for (unsigned i = 1; i <= 30; i++) keep(s, i, "minilm", 1e6);
    assert_int_equal(s->ops->tag(s, ID("02"), "release", true, &err), TARE_OK);
    assert_int_equal(s->ops->pin(s, ID("03"), "main", true, &err), TARE_OK);
    /* 2026-01-02T00:00Z is run 24 less half a second */
    struct store_expiry e = {.before_ms = INT64_C(1767312000000)};
    assert_int_equal(s->ops->expire(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 1);
    assert_true(e.more);
    assert_int_equal(list(s, (struct store_filter){.id_prefix = ID("01")}).n, 0);
    e.most_ns = UINT64_C(60000000000);
    assert_int_equal(s->ops->expire(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 20);
    assert_false(e.more);
    struct seen left = list(s, (struct store_filter){0});
    assert_int_equal(left.n, 9);
    assert_string_equal(left.ids[6], ID("24"));
    assert_string_equal(left.ids[7], ID("03"));
    assert_string_equal(left.ids[8], ID("02"));
    assert_int_equal(s->ops->expire(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 0);
    store_close(s);
}

static void health(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    tare_error err = TARE_ERROR_INIT;
    struct store_health h;
    for (unsigned i = 1; i <= 3; i++) keep(s, i, "minilm", 1e6);
    assert_int_equal(store_check(s, &h, &err), TARE_OK);
    assert_string_equal(h.trouble, "");
    assert_int_equal(h.runs, 3);
    assert_true(h.schema >= 2 && h.bytes > 0);
    store_close(s);
}

static void changes_are_one_or_none(const struct store_ops *ops)
{
    struct store *s = open_with(ops);
    keep(s, 1, "minilm", 1e6);
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    keep(s, 2, "minilm", 1e6);
    keep(s, 3, "minilm", 1e6);
    assert_int_equal(s->ops->end(s, false, NULL), TARE_OK);
    assert_int_equal(list(s, (struct store_filter){0}).n, 1);
    assert_int_equal(s->ops->begin(s, NULL), TARE_OK);
    keep(s, 2, "minilm", 1e6);
    assert_int_equal(s->ops->end(s, true, NULL), TARE_OK);
    store_close(s);
    s = open_with(ops); /* and it lasts */
    assert_int_equal(list(s, (struct store_filter){0}).n, 2);
    store_close(s);
}

static void a_second_writer_waits_or_is_told(const struct store_ops *ops)
{
    struct store *a = open_with(ops), *b = open_with(ops);
    tare_error err = TARE_ERROR_INIT;
    struct run r;
    assert_int_equal(a->ops->begin(a, NULL), TARE_OK);
    keep(a, 1, "minilm", 1e6);
    make_run(&r, 2, "minilm", 1e6);
    assert_int_equal(store_add_run(b, &r, NULL, NULL, &err), TARE_BUSY);
    assert_non_null(strstr(err.text, b->where));
    assert_int_equal(list(b, (struct store_filter){0}).n, 0); /* readers are not kept waiting */
    assert_int_equal(a->ops->end(a, true, NULL), TARE_OK);
    assert_int_equal(store_add_run(b, &r, NULL, NULL, &err), TARE_OK);
    assert_int_equal(list(a, (struct store_filter){0}).n, 2);
    run_release(&r);
    store_close(a);
    store_close(b);
}

static void memory_runs_out(const struct store_ops *ops)
{
    struct store_options o = {.create = true};
    long before = mem_live_blocks();
    struct run r;
    make_run(&r, 1, "minilm", 1e6);
    long with_run = mem_live_blocks();
    for (long n = 0;; n++) {
        struct store *s = NULL;
        struct buf text = BUF_INIT;
        mem_fail_after(n);
        tare_status status = ops->open(&s, path, &o, NULL);
        if (status == TARE_OK) status = store_add_run(s, &r, NULL, NULL, NULL);
        if (status == TARE_OK) status = store_document(s, r.id, &text, NULL);
        mem_fail_after(-1);
        buf_release(&text);
        store_close(s);
        assert_int_equal(mem_live_blocks(), with_run);
        if (status == TARE_OK) break;
        assert_int_equal(status, TARE_NOMEM);
        assert_true(n < 500);
    }
    run_release(&r);
    assert_int_equal(mem_live_blocks(), before);
}

struct jobs_seen {
    char text[600];
};

static tare_status see_job(void *ctx, const struct store_job *j, tare_error *err)
{
    struct jobs_seen *seen = ctx;
    size_t n = strlen(seen->text);
    (void)err;
    snprintf(seen->text + n, sizeof seen->text - n, "%s %s %s %s %s %s %s %s %lld %lld %lld;", j->id,
             j->project ? j->project : "-", j->token, j->owner, j->operation, j->state, j->request,
             j->record ? j->record : "-", (long long)j->created_ms, (long long)j->started_ms, (long long)j->ended_ms);
    return TARE_OK;
}

static const char *jobs_of(struct store *s, struct store_job_filter f)
{
    static struct jobs_seen seen;
    seen.text[0] = 0;
    tare_error err = TARE_ERROR_INIT;
    if (s->ops->jobs(s, &f, see_job, &seen, &err) != TARE_OK) fail_msg("%s", err.text);
    return seen.text;
}

static void jobs_and_what_became_of_them(const struct store_ops *ops)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *s = open_with(ops);
    struct store_job a = {.id = "A1", .token = "t", .owner = "h", .operation = "o", .state = "queued",
                          .request = "{}", .created_ms = 5};
    struct store_job b = {.id = "B2", .project = "nlp", .token = "u", .owner = "g", .operation = "p",
                          .state = "queued", .request = "{}", .created_ms = 6};
    assert_int_equal(s->ops->job_add(s, &a, &err), TARE_OK);
    assert_int_equal(s->ops->job_add(s, &b, &err), TARE_OK);
    assert_int_not_equal(s->ops->job_add(s, &a, &err), TARE_OK);
    assert_string_equal(jobs_of(s, (struct store_job_filter){0}),
                        "B2 nlp u g p queued {} - 6 0 0;A1 - t h o queued {} - 5 0 0;");
    assert_string_equal(jobs_of(s, (struct store_job_filter){.project = "nlp"}), "B2 nlp u g p queued {} - 6 0 0;");
    assert_string_equal(jobs_of(s, (struct store_job_filter){.id = "A1", .project = "nlp"}), "");
    assert_string_equal(jobs_of(s, (struct store_job_filter){.limit = 1}), "B2 nlp u g p queued {} - 6 0 0;");
    struct store_job done = {.id = "A1", .state = "done", .record = "{\"exit\":0}", .started_ms = 7, .ended_ms = 8};
    assert_int_equal(s->ops->job_change(s, &done, &err), TARE_OK);
    done.id = "C3";
    assert_int_equal(s->ops->job_change(s, &done, &err), TARE_INVALID);
    assert_int_equal(s->ops->jobs_lose(s, "h", 9, &err), TARE_OK); /* what ended stays as it was; others' too */
    assert_string_equal(jobs_of(s, (struct store_job_filter){0}),
                        "B2 nlp u g p queued {} - 6 0 0;A1 - t h o done {} {\"exit\":0} 5 7 8;");
    assert_int_equal(s->ops->jobs_lose(s, "g", 9, &err), TARE_OK);
    assert_string_equal(jobs_of(s, (struct store_job_filter){.id = "B2"}), "B2 nlp u g p lost {} - 6 0 9;");
    store_close(s);
}

static tare_status see_alert(void *ctx, const struct store_alert *a, tare_error *err)
{
    struct jobs_seen *seen = ctx;
    size_t n = strlen(seen->text);
    (void)err;
    snprintf(seen->text + n, sizeof seen->text - n, "%s %s %s %d %d %lld %g %s;", a->rule, a->project, a->about,
             a->firing, a->told, (long long)a->since_ms, a->value, a->run ? a->run : "-");
    return TARE_OK;
}

static tare_status see_silence(void *ctx, const struct store_silence *q, tare_error *err)
{
    struct jobs_seen *seen = ctx;
    size_t n = strlen(seen->text);
    (void)err;
    snprintf(seen->text + n, sizeof seen->text - n, "%s %s %s %s %s %s %lld %lld;", q->id, q->project,
             q->rule ? q->rule : "-", q->about ? q->about : "-", q->why ? q->why : "-", q->who,
             (long long)q->created_ms, (long long)q->until_ms);
    return TARE_OK;
}

static const char *silences_of(struct store *s, int64_t now_ms)
{
    static struct jobs_seen seen;
    seen.text[0] = 0;
    assert_int_equal(s->ops->silences(s, now_ms, see_silence, &seen, NULL), TARE_OK);
    return seen.text;
}

static void alerts_and_silences(const struct store_ops *ops)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *s = open_with(ops);
    struct jobs_seen seen = {""};
    struct store_alert a = {"r>1", "", "h", true, false, 5, 1.5, NULL}, b = {"r>1", "p", "h", true, true, 6, 2, "01K"};
    assert_int_equal(s->ops->alert_put(s, &a, &err), TARE_OK);
    assert_int_equal(s->ops->alert_put(s, &b, &err), TARE_OK);
    b = (struct store_alert){"r>1", "p", "h", false, true, 7, 0.5, NULL}; /* the same one, as it is now */
    assert_int_equal(s->ops->alert_put(s, &b, &err), TARE_OK);
    assert_int_equal(s->ops->alerts(s, see_alert, &seen, &err), TARE_OK);
    assert_string_equal(seen.text, "r>1  h 1 0 5 1.5 -;r>1 p h 0 1 7 0.5 -;");

    struct store_silence all = {"A", "", NULL, NULL, NULL, "t", 1, 100}, one = {"B", "p", "r>1", "h", "w", "u", 2, 50};
    bool ended = true;
    assert_int_equal(s->ops->silence_add(s, &all, &err), TARE_OK);
    assert_int_equal(s->ops->silence_add(s, &one, &err), TARE_OK);
    assert_string_equal(silences_of(s, 49), "A  - - - t 1 100;B p r>1 h w u 2 50;");
    assert_string_equal(silences_of(s, 50), "A  - - - t 1 100;");
    struct store_silence end = {.id = "A", .project = "p", .until_ms = 60}; /* another's */
    assert_int_equal(s->ops->silence_end(s, &end, &ended, &err), TARE_OK);
    assert_false(ended);
    end.project = NULL;
    assert_int_equal(s->ops->silence_end(s, &end, &ended, &err), TARE_OK);
    assert_true(ended);
    assert_string_equal(silences_of(s, 60), "");
    assert_int_equal(s->ops->silence_end(s, &end, &ended, &err), TARE_OK); /* it is over */
    assert_false(ended);
    store_close(s);
}

CONFORMS(documents_come_back)
CONFORMS(lists_are_filtered)
CONFORMS(lists_go_on_from_a_run)
CONFORMS(series_of_a_project)
CONFORMS(tags_and_baselines)
CONFORMS(series_are_in_time_order)
CONFORMS(hosts_and_anchors_apart)
CONFORMS(anchors_of_the_document)
CONFORMS(pruning)
CONFORMS(pruning_tells_what_is_gone)
CONFORMS(changes_are_one_or_none)
CONFORMS(what_is_old_goes)
CONFORMS(health)
CONFORMS(a_second_writer_waits_or_is_told)
CONFORMS(memory_runs_out)
CONFORMS(jobs_and_what_became_of_them)
CONFORMS(alerts_and_silences)

struct tokens_seen {
    char text[200];
};

static tare_status see_token(void *ctx, const struct store_token *t, tare_error *err)
{
    struct tokens_seen *seen = ctx;
    size_t n = strlen(seen->text);
    (void)err;
    snprintf(seen->text + n, sizeof seen->text - n, "%s %s %s %s %d %lld %lld %lld;", t->id, t->name ? t->name : "-",
             t->project ? t->project : "-", t->scopes, t->hash[31], (long long)t->expires_ms, (long long)t->revoked_ms,
             (long long)t->used_ms);
    return TARE_OK;
}

static void tokens(const struct store_ops *ops)
{
    tare_error err = TARE_ERROR_INIT;
    struct tokens_seen seen = {""};
    int64_t before = 0, after = 0;
    struct store *s = open_with(ops), *other = open_with(ops);
    struct store_token a = {.id = "a1", .scopes = "read,ingest", .created_ms = 1, .hash = {[31] = 7}};
    struct store_token b = {.id = "b2", .name = "CI", .project = "nlp", .scopes = "read",
                            .created_ms = 2, .expires_ms = 9};
    assert_int_equal(other->ops->version(other, &before, &err), TARE_OK);
    assert_int_equal(s->ops->token_add(s, &a, &err), TARE_OK);
    assert_int_equal(s->ops->token_add(s, &b, &err), TARE_OK);
    assert_int_not_equal(s->ops->token_add(s, &a, &err), TARE_OK);
    assert_int_equal(other->ops->version(other, &after, &err), TARE_OK);
    assert_true(before != after);
    assert_int_equal(s->ops->token_revoke(s, "a1", 5, &err), TARE_OK);
    assert_int_equal(s->ops->token_revoke(s, "a1", 6, &err), TARE_INVALID);
    assert_int_equal(s->ops->token_revoke(s, "c3", 6, &err), TARE_INVALID);
    assert_int_equal(s->ops->token_used(s, "b2", 7, &err), TARE_OK);
    assert_int_equal(s->ops->token_used(s, "b2", 8, &err), TARE_OK);
    assert_int_equal(other->ops->tokens(other, see_token, &seen, &err), TARE_OK);
    assert_string_equal(seen.text, "a1 - - read,ingest 7 0 5 0;b2 CI nlp read 0 9 0 8;");
    store_close(other);
    store_close(s);
}

static tare_status see_entry(void *ctx, const struct store_audit *e, tare_error *err)
{
    struct tokens_seen *seen = ctx;
    size_t n = strlen(seen->text);
    (void)err;
    snprintf(seen->text + n, sizeof seen->text - n, "%lld %s %s %u %d;", (long long)e->seq, e->who ? e->who : "-",
             e->what, e->status, e->hash[31]);
    return TARE_OK;
}

static const char *entries(struct store *s, struct store_audit_filter f)
{
    static struct tokens_seen seen;
    tare_error err = TARE_ERROR_INIT;
    seen.text[0] = 0;
    assert_int_equal(s->ops->audits(s, &f, see_entry, &seen, &err), TARE_OK);
    return seen.text;
}

static void the_audit_is_added_to(const struct store_ops *ops)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *s = open_with(ops);
    struct store_audit a = {.seq = 1, .at_ms = 5, .what = "one", .project = "nlp", .status = 201, .hash = {[31] = 7}};
    struct store_audit b = {.seq = 2, .at_ms = 4, .who = "me", .what = "two", .status = 404, .hash = {[31] = 8}};
    assert_string_equal(entries(s, (struct store_audit_filter){0}), "");
    assert_int_equal(s->ops->audit_add(s, &a, &err), TARE_OK);
    assert_int_not_equal(s->ops->audit_add(s, &a, &err), TARE_OK); /* each number once */
    assert_int_equal(s->ops->audit_add(s, &b, &err), TARE_OK);
    assert_string_equal(entries(s, (struct store_audit_filter){0}), "1 - one 201 7;2 me two 404 8;");
    assert_string_equal(entries(s, (struct store_audit_filter){.newest_first = true, .limit = 1}), "2 me two 404 8;");
    assert_string_equal(entries(s, (struct store_audit_filter){.newest_first = true, .before = 2}), "1 - one 201 7;");
    assert_string_equal(entries(s, (struct store_audit_filter){.project = "nlp"}), "1 - one 201 7;");
    int64_t seq = -1;
    assert_int_equal(s->ops->audit_seq(s, false, &seq, &err), TARE_OK);
    assert_int_equal(seq, 0);
    assert_int_equal(s->ops->audit_seq(s, true, &seq, &err), TARE_OK);
    assert_int_equal(s->ops->audit_seq(s, true, &seq, &err), TARE_OK);
    assert_int_equal(seq, 2);
    assert_int_equal(s->ops->begin(s, &err), TARE_OK);
    assert_int_equal(s->ops->audit_seq(s, true, &seq, &err), TARE_OK);
    assert_int_equal(seq, 3);
    a.seq = 3;
    assert_int_equal(s->ops->audit_add(s, &a, &err), TARE_OK);
    assert_int_equal(s->ops->end(s, false, &err), TARE_OK);
    assert_string_equal(entries(s, (struct store_audit_filter){.newest_first = true, .limit = 1}), "2 me two 404 8;");
    assert_int_equal(s->ops->audit_seq(s, false, &seq, &err), TARE_OK);
    assert_int_equal(seq, 2); /* taken back with the rest */
    store_close(s);
}

static void projects(const struct store_ops *ops)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *s = open_with(ops);
    struct run r;
    char id[ULID_SIZE];
    bool yes = false, added = false;
    make_run(&r, 1, "minilm", 1e6);
    snprintf(id, sizeof id, "%s", r.id);
    assert_int_equal(store_add_run(s, &r, &(struct store_context){.project = "nlp"}, &added, &err), TARE_OK);
    run_release(&r);
    keep(s, 2, "minilm", 1e6);
    assert_int_equal(list(s, (struct store_filter){0}).n, 2);
    assert_int_equal(list(s, (struct store_filter){.project = "nlp"}).n, 1);
    assert_int_equal(list(s, (struct store_filter){.project = "nlp", .subject = "other"}).n, 0);
    assert_int_equal(list(s, (struct store_filter){.project = "ads"}).n, 0);
    assert_int_equal(s->ops->in_project(s, id, "nlp", &yes, &err), TARE_OK);
    assert_true(yes);
    assert_int_equal(s->ops->in_project(s, id, "ads", &yes, &err), TARE_OK);
    assert_false(yes);
    assert_int_equal(s->ops->remove(s, id, &err), TARE_OK);
    assert_int_equal(list(s, (struct store_filter){.project = "nlp"}).n, 0);
    store_close(s);
}

CONFORMS(tokens)
CONFORMS(the_audit_is_added_to)
CONFORMS(projects)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(postgresql_is_here),
        TEST(documents_come_back),
        TEST(lists_are_filtered),
        TEST(lists_go_on_from_a_run),
        TEST(series_of_a_project),
        TEST(tags_and_baselines),
        TEST(series_are_in_time_order),
        TEST(hosts_and_anchors_apart),
        TEST(anchors_of_the_document),
        TEST(pruning),
        TEST(pruning_tells_what_is_gone),
        TEST(changes_are_one_or_none),
        TEST(what_is_old_goes),
        TEST(health),
        TEST(a_second_writer_waits_or_is_told),
        TEST(memory_runs_out),
        TEST(jobs_and_what_became_of_them),
        TEST(alerts_and_silences),
        TEST(tokens),
        TEST(the_audit_is_added_to),
        TEST(projects),
    };
    return cmocka_run_group_tests(tests, find_postgres, end_postgres);
}
