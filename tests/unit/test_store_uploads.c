/* SPDX-License-Identifier: MIT
 * test_store_uploads.c - files of runs, and whose baseline a run is: what every backend must do with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/mem.h"
#include "store/care.h"
#include "store_fixture.h"

static const char *add_run(struct store *s, const char *project)
{
    static char id[ULID_SIZE];
    struct run run;
    bool added = false;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    run.subject.type = "command";
    run.subject.name = "x";
    assert_non_null(run_add_case(&run, "one"));
    if (store_add_run(s, &run, &(struct store_context){.project = project}, &added, &err) != TARE_OK)
        fail_msg("%s", err.text);
    assert_true(added);
    snprintf(id, sizeof id, "%s", run.id);
    run_release(&run);
    return id;
}

static enum store_kept add_piece(struct store *s, const char *project, const void *bytes, size_t n,
                                 char hash[STORE_HEX_SIZE])
{
    enum store_kept kept = STORE_LACKING;
    tare_error err = TARE_ERROR_INIT;
    store_hash(bytes, n, hash);
    struct store_piece p = {
        .project = project, .hash = hash, .body = {bytes, n}, .heard_ms = 1000, .quota = 2 * STORE_PIECE_BYTES};
    if (s->ops->files.piece_add(s, &p, &kept, &err) != TARE_OK) fail_msg("%s", err.text);
    return kept;
}

static enum store_kept add_file(struct store *s, const char *run, const char *name,
                                const char (*hashes)[STORE_HEX_SIZE], size_t n)
{
    enum store_kept kept = STORE_CROWDED;
    tare_error err = TARE_ERROR_INIT;
    struct store_upload_new u = {.run = run, .name = name, .hashes = hashes, .n = n, .now_ms = 2000};
    if (s->ops->files.upload_add(s, &u, &kept, &err) != TARE_OK) fail_msg("%s", err.text);
    return kept;
}

static tare_status tell(void *ctx, const struct store_upload *u, tare_error *err)
{
    (void)err;
    buf_printf(ctx, "%s %llu/%llu %.8s\n", u->name, (unsigned long long)u->bytes, (unsigned long long)u->pieces,
               u->id);
    return TARE_OK;
}

static void list(struct store *s, struct store_upload_query q, struct buf *out)
{
    tare_error err = TARE_ERROR_INIT;
    buf_clear(out);
    buf_add_str(out, "");
    if (s->ops->files.uploads(s, &q, tell, out, &err) != TARE_OK) fail_msg("%s", err.text);
}

static tare_status keep_number(void *ctx, const struct store_upload *u, tare_error *err)
{
    (void)err;
    ((struct store_upload *)ctx)->number = u->number;
    return TARE_OK;
}

static void files_are_kept_and_come_back(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    struct store_upload u = {0};
    tare_error err = TARE_ERROR_INIT;
    char hashes[2][STORE_HEX_SIZE], *full = mem_new(1, STORE_PIECE_BYTES);
    assert_non_null(full);
    memset(full, 'a', STORE_PIECE_BYTES);
    const char *run = add_run(s, "nlp");
    assert_int_equal(add_piece(s, "nlp", full, STORE_PIECE_BYTES, hashes[0]), STORE_NEW);
    assert_int_equal(add_piece(s, "nlp", "end\0.", 5, hashes[1]), STORE_NEW);
    assert_int_equal(add_piece(s, "nlp", "end\0.", 5, hashes[1]), STORE_SAME);
    const char(*all)[STORE_HEX_SIZE] = (const char(*)[STORE_HEX_SIZE])hashes;
    assert_int_equal(add_file(s, run, "a.tare", all, 2), STORE_NEW);
    assert_int_equal(add_file(s, run, "a.tare", all, 2), STORE_SAME);
    assert_int_equal(add_file(s, run, "a.tare", all, 1), STORE_OTHER);
    assert_int_equal(add_file(s, run, "b.tare", all + 1, 1), STORE_NEW);
    list(s, (struct store_upload_query){.run = run}, &text);
    assert_non_null(strstr(text.data, "a.tare 4194309/2 "));
    assert_non_null(strstr(text.data, "b.tare 5/1 "));
    struct store_upload_query all_of_it = {.run = run};
    assert_int_equal(s->ops->files.uploads(s, &all_of_it, keep_number, &u, &err), TARE_OK);
    buf_clear(&text);
    assert_int_equal(s->ops->files.piece(s, &u, 0, &text, &err), TARE_OK);
    assert_int_equal(text.len, 5);
    assert_memory_equal(text.data, "end\0.", 5);
    assert_int_equal(s->ops->files.piece(s, &u, 1, &text, &err), TARE_INVALID);
    mem_free(full);
    buf_release(&text);
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

/* What one did not send cannot be had by its hash, and a short piece stands at the end only. */
static void pieces_of_others_are_not_there(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    struct buf text = BUF_INIT;
    char hash[2][STORE_HEX_SIZE];
    tare_error err = TARE_ERROR_INIT;
    enum store_kept kept;
    const char(*all)[STORE_HEX_SIZE] = (const char(*)[STORE_HEX_SIZE])hash;
    add_piece(s, "theirs", "secret", 6, hash[0]);
    add_piece(s, "theirs", "other", 5, hash[1]);
    const char *run = add_run(s, "ours");
    assert_int_equal(add_file(s, run, "a", all, 1), STORE_LACKING);
    assert_int_equal(add_piece(s, "ours", "secret", 6, hash[0]), STORE_NEW);
    assert_int_equal(add_piece(s, "ours", "other", 5, hash[1]), STORE_NEW);
    assert_int_equal(add_file(s, run, "a", all, 2), STORE_LACKING); /* the first is too short */
    assert_int_equal(add_file(s, run, "a", all, 1), STORE_NEW);
    list(s, (struct store_upload_query){.run = run, .project = "theirs"}, &text);
    assert_string_equal(text.data, "");
    struct store_upload_new u = {.run = "01KA3QZ4M6S1V7W8X9Y0000000", .name = "a", .hashes = all, .n = 1};
    assert_int_equal(s->ops->files.upload_add(s, &u, &kept, &err), TARE_INVALID);
    buf_release(&text);
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

static void a_project_has_its_quota(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    char hash[STORE_HEX_SIZE], *full = mem_new(1, STORE_PIECE_BYTES);
    assert_non_null(full);
    for (int i = 0; i < 2; i++) {
        full[0] = (char)('a' + i);
        assert_int_equal(add_piece(s, "p", full, STORE_PIECE_BYTES, hash), STORE_NEW);
    }
    assert_int_equal(add_piece(s, "p", "x", 1, hash), STORE_CROWDED);
    assert_int_equal(add_piece(s, "p", full, STORE_PIECE_BYTES, hash), STORE_SAME);
    assert_int_equal(add_piece(s, "q", "x", 1, hash), STORE_NEW);
    mem_free(full);
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

/* Files go with their run; pieces of no file when they were not heard of for long; what a file needs stays. */
static void files_go_with_their_run(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    struct store_health h;
    char hash[3][STORE_HEX_SIZE], run[ULID_SIZE];
    tare_error err = TARE_ERROR_INIT;
    const char(*all)[STORE_HEX_SIZE] = (const char(*)[STORE_HEX_SIZE])hash;
    snprintf(run, sizeof run, "%s", add_run(s, NULL));
    add_piece(s, "", "one", 3, hash[0]);
    add_piece(s, "", "alone", 5, hash[1]);
    assert_int_equal(add_file(s, run, "a", all, 1), STORE_NEW);
    struct store_sweep e = {.before_ms = 1000, .most = 10};
    assert_int_equal(s->ops->files.sweep(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 0); /* heard of at 1000, not before */
    e.before_ms = 1001;
    assert_int_equal(s->ops->files.sweep(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 1);
    assert_int_equal(s->ops->remove(s, run, &err), TARE_OK);
    assert_int_equal(s->ops->files.sweep(s, &e, &err), TARE_OK);
    assert_int_equal(e.removed, 1);
    if (store_check(s, &h, &err) != TARE_OK) fail_msg("%s", err.text);
    assert_string_equal(h.trouble, "");
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

/* A name is one run of a subject in each project. */
static void each_project_has_its_baseline(const struct store_ops *ops)
{
    long before = mem_live_blocks();
    struct store *s = open_with(ops);
    char a[ULID_SIZE], b[ULID_SIZE], c[ULID_SIZE];
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    snprintf(a, sizeof a, "%s", add_run(s, "one"));
    snprintf(b, sizeof b, "%s", add_run(s, "two"));
    snprintf(c, sizeof c, "%s", add_run(s, "one"));
    assert_int_equal(s->ops->pin(s, a, "main", true, &err), TARE_OK);
    assert_int_equal(s->ops->pin(s, b, "main", true, &err), TARE_OK);
    char found[ULID_SIZE];
    assert_int_equal(store_baseline_of(s, &(struct store_pin){"main", "x", "one"}, found, &err), TARE_OK);
    assert_string_equal(found, a);
    assert_int_equal(store_baseline_of(s, &(struct store_pin){"main", "x", "two"}, found, &err), TARE_OK);
    assert_string_equal(found, b);
    assert_int_equal(s->ops->pin(s, c, "main", true, &err), TARE_OK);
    assert_int_equal(store_baseline_of(s, &(struct store_pin){"main", "x", "one"}, found, &err), TARE_OK);
    assert_string_equal(found, c);
    assert_int_equal(store_baseline_of(s, &(struct store_pin){"main", "x", "none"}, found, &err), TARE_INVALID);
    buf_release(&text);
    store_close(s);
    assert_int_equal(mem_live_blocks(), before);
}

CONFORMS(files_are_kept_and_come_back)
CONFORMS(pieces_of_others_are_not_there)
CONFORMS(a_project_has_its_quota)
CONFORMS(files_go_with_their_run)
CONFORMS(each_project_has_its_baseline)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(postgresql_is_here),
        TEST(files_are_kept_and_come_back),
        TEST(pieces_of_others_are_not_there),
        TEST(a_project_has_its_quota),
        TEST(files_go_with_their_run),
        TEST(each_project_has_its_baseline),
    };
    return cmocka_run_group_tests(tests, find_postgres, end_postgres);
}
