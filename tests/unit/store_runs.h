/* SPDX-License-Identifier: MIT
 * store_runs.h - runs for tests of the store: made, kept, listed. */
#ifndef TESTS_STORE_RUNS_H
#define TESTS_STORE_RUNS_H

#include "run_fixture.h"
#include "store_home.h"

/* Run i: ids and times that sort, one case more than asked. */
static void make_run(struct run *r, unsigned i, const char *subject, double median_ns)
{
    assert_int_equal(run_init(r, "bench", NULL), TARE_OK);
    fixture_host(r);
    r->subject.name = arena_str(&r->arena, subject);
    r->id = arena_printf(&r->arena, "01KB%022u", i);
    r->created = arena_printf(&r->arena, "2026-01-%02uT%02u:00:00.500Z", 1 + i / 24, i % 24);
    fixture_case(r, "batch=1", 1, median_ns, 60);
    fixture_case(r, "batch=8", 8, median_ns * 6, 60);
}

static void keep(struct store *s, unsigned i, const char *subject, double median_ns)
{
    struct run r;
    bool added = false;
    tare_error err = TARE_ERROR_INIT;
    char commit[41];
    snprintf(commit, sizeof commit, "%040u", i);
    make_run(&r, i, subject, median_ns);
    if (store_add_run(s, &r, &(struct store_context){.commit = commit, .branch = "main"}, &added, &err) !=
        TARE_OK)
        fail_msg("%s", err.text);
    assert_true(added);
    run_release(&r);
}

struct seen {
    size_t n;
    char ids[64][ULID_SIZE];
    char tags[64][80];
    struct store_run last;
};

static tare_status see(void *ctx, const struct store_run *run, tare_error *err)
{
    struct seen *s = ctx;
    (void)err;
    if (s->n < 64) {
        snprintf(s->ids[s->n], ULID_SIZE, "%s", run->id);
        snprintf(s->tags[s->n], 80, "%s", run->tags ? run->tags : "");
    }
    s->n++;
    return TARE_OK;
}

static struct seen list(struct store *s, struct store_filter f)
{
    struct seen seen = {.n = 0};
    tare_error err = TARE_ERROR_INIT;
    if (s->ops->list(s, &f, see, &seen, &err) != TARE_OK) fail_msg("%s", err.text);
    return seen;
}

#endif
