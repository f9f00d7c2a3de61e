/* SPDX-License-Identifier: MIT
 * test_reader.c - traces that are damaged, torn, shuffled, doubled, of another version, or left by a killed program:
 * what is whole must be read, what is not must be counted, and nothing may crash or leak. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include "trace_fixture.h"
#include "analyze/calls/calltree.h"
#include "tare/tare.h"

#include <cmocka.h>

static struct folder here;

/* ---- a small whole trace: two threads, two chunks of events each, a tree each ---- */

enum { PARTS_MAX = 32, CALLS = 20 };

struct parts {
    struct made *m;
    size_t at[PARTS_MAX + 1]; /* where each chunk begins; the last is the end */
    int n;
};

static void part(struct parts *p)
{
    assert_true(p->n < PARTS_MAX);
    p->at[++p->n] = p->m->n;
}

static void add_events(struct parts *p, uint32_t thread, uint64_t seq)
{
    struct raw_event e[2 * CALLS];
    for (unsigned i = 0; i < CALLS; i++) {
        uint64_t at = seq * 100000 + i * 1000;
        e[2 * i] = raw(RAW_BEGIN, 1 + i % 2, at);
        e[2 * i + 1] = raw(RAW_END, 0, at + 500);
    }
    made_events(p->m, thread, seq, e, 2 * CALLS);
    part(p);
}

static void add_tree(struct parts *p, uint32_t slot)
{
    const struct made_node nodes[] = {{.site = 0},
                                      {.parent = 0, .site = 1, .count = CALLS, .total = CALLS * 1000},
                                      {.parent = 0, .site = 2, .count = CALLS, .total = CALLS * 1000}};
    made_tree(p->m, MADE_UID, slot, nodes, 3);
    part(p);
}

static void small_trace(struct parts *p)
{
    struct process_info info = made_info(MADE_UID);
    struct clock_pair pairs[2] = {made_pair(0), made_pair(1000000)};
    p->m = made_new();
    p->n = 0;
    made_header(p->m);
    p->at[0] = p->m->n;
    made_process(p->m, &info), part(p);
    made_site(p->m, MADE_UID, 1, TARE_SITE_SCOPE, "one"), part(p);
    made_site(p->m, MADE_UID, 2, TARE_SITE_SCOPE, "two"), part(p);
    for (uint32_t thread = 0; thread < 2; thread++) {
        made_thread(p->m, MADE_UID, thread, 0), part(p);
        add_events(p, thread, 1);
        add_events(p, thread, 2);
        add_tree(p, thread);
    }
    made_clock(p->m, MADE_UID, pairs, 2), part(p);
    made_end(p->m, MADE_UID), part(p);
}

static unsigned type_of(const struct parts *p, int i)
{
    struct chunk_header h;
    memcpy(&h, p->m->bytes + p->at[i], sizeof h);
    return h.type;
}

struct summary {
    tare_status status;
    struct seen seen;
    struct trace_loss loss;
    uint64_t calls; /* of the tree */
    uint64_t told;  /* events promised by trace_thread() */
    tare_error err;
};

static struct summary read_file(const char *path)
{
    struct summary s = {.err = TARE_ERROR_INIT};
    struct trace *t = NULL;
    struct calltree tree = CALLTREE_INIT;
    long blocks = mem_live_blocks();
    s.status = trace_open(&t, path, &s.err);
    if (s.status == TARE_OK) {
        assert_int_equal(see_events(t, &s.seen, &s.err), TARE_OK);
        assert_false(s.seen.unordered || s.seen.unnested);
        assert_int_equal(calltree_build(&tree, t, -1, &s.err), TARE_OK);
        for (uint32_t i = 1; i < tree.n_nodes; i++) s.calls += tree.nodes[i].count;
        for (uint32_t i = 0; i < trace_n_threads(t); i++) s.told += trace_thread(t, i)->events;
        s.loss = *trace_loss(t);
    } else {
        assert_int_equal(s.status, TARE_FORMAT);
        assert_true(s.err.text[0] != 0);
    }
    calltree_release(&tree);
    trace_close(t);
    assert_int_equal(mem_live_blocks(), blocks);
    return s;
}

static struct summary read_bytes(const void *bytes, size_t n)
{
    file_put(here.trace, bytes, n);
    return read_file(here.trace);
}

static bool no_loss(const struct trace_loss *l)
{
    return !(l->dropped | l->damaged_chunks | l->damaged_bytes | l->unclosed_scopes | l->abandoned_scopes |
             l->unknown_chunks | l->foreign_scopes | l->missing_live) &&
           !l->first[0];
}

enum { ALL_EVENTS = 4 * 2 * CALLS, ALL_CALLS = 4 * CALLS };

static void assert_whole(const struct summary *s)
{
    assert_int_equal(s->status, TARE_OK);
    assert_int_equal(s->seen.begins + s->seen.ends, ALL_EVENTS);
    assert_int_equal(s->seen.synthetic, 0);
    assert_int_equal(s->told, ALL_EVENTS);
    assert_int_equal(s->calls, ALL_CALLS);
}

static void a_whole_trace(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    struct summary s = read_bytes(p.m->bytes, p.m->n);
    assert_whole(&s);
    assert_true(no_loss(&s.loss));
    made_free(p.m);
}

/* ---- damage ---- */

/* What is left when the chunk at i is gone. */
static void assert_lost_only(const struct parts *p, int i, const struct summary *s)
{
    unsigned type = type_of(p, i);
    uint64_t events = s->seen.begins + s->seen.ends;
    assert_int_equal(s->status, TARE_OK);
    assert_true(s->loss.damaged_chunks >= 1);
    assert_true(s->loss.first[0] != 0);
    if (type == CHUNK_EVENTS) assert_int_equal(events, ALL_EVENTS - 2 * CALLS);
    if (type == CHUNK_SITES) assert_int_equal(events, ALL_EVENTS / 2); /* the scopes of that name */
    if (type != CHUNK_EVENTS && type != CHUNK_SITES) assert_int_equal(events, ALL_EVENTS);
    if (type == CHUNK_TREE) assert_int_equal(s->calls, ALL_CALLS / 2);
    if (type != CHUNK_TREE && type != CHUNK_SITES) assert_int_equal(s->calls, ALL_CALLS);
    if (type == CHUNK_END) assert_int_equal(s->loss.missing_live, 1);
}

static void one_damaged_byte_costs_one_chunk(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    for (int i = 0; i < p.n; i++)
        for (size_t at = p.at[i]; at < p.at[i + 1]; at++) {
            p.m->bytes[at] ^= 0x41;
            struct summary s = read_bytes(p.m->bytes, p.m->n);
            p.m->bytes[at] ^= 0x41;
            assert_lost_only(&p, i, &s);
        }
    made_free(p.m);
}

static void any_header_byte_may_be_damaged(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    for (size_t at = 0; at < p.at[0]; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            p.m->bytes[at] ^= (uint8_t)(1u << bit);
            struct summary s = read_bytes(p.m->bytes, p.m->n);
            p.m->bytes[at] ^= (uint8_t)(1u << bit);
            if (at < 8) assert_int_equal(s.status, TARE_FORMAT);
        }
    made_free(p.m);
}

/* Cut anywhere: never fewer events than the chunks that are whole hold. */
static void truncation_keeps_the_whole_prefix(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    uint64_t last = 0;
    for (size_t n = 0; n <= p.m->n; n++) {
        struct summary s = read_bytes(p.m->bytes, n ? n : 0);
        uint64_t want = 0;
        for (int i = 0; i < p.n && p.at[i + 1] <= n; i++)
            want += type_of(&p, i) == CHUNK_EVENTS ? 2 * CALLS : 0;
        if (n < p.at[1]) {
            assert_int_not_equal(s.status, TARE_OK);
            continue;
        }
        assert_int_equal(s.status, TARE_OK);
        assert_int_equal(s.seen.begins + s.seen.ends, want);
        assert_true(want >= last);
        last = want;
        if (n < p.m->n) assert_int_equal(s.loss.missing_live, 1);
    }
    assert_int_equal(last, ALL_EVENTS);
    made_free(p.m);
}

static void garbage_between_chunks(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    struct made *m = made_new();
    made_add(m, p.m->bytes, p.at[0]);
    for (int i = 0; i < p.n; i++) {
        made_add(m, "TCHKnot a chunk at all, but it begins like one TCHK", 51);
        made_add(m, p.m->bytes + p.at[i], p.at[i + 1] - p.at[i]);
    }
    struct summary s = read_bytes(m->bytes, m->n);
    assert_whole(&s);
    assert_int_equal(s.loss.damaged_chunks, p.n);
    assert_int_equal(s.loss.damaged_bytes, 51 * p.n);
    made_free(m);
    made_free(p.m);
}

static void every_chunk_doubled(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    for (int i = 0; i < p.n; i++) {
        struct made *m = made_new();
        made_add(m, p.m->bytes, p.at[i + 1]);
        made_add(m, p.m->bytes + p.at[i], p.m->n - p.at[i]);
        struct summary s = read_bytes(m->bytes, m->n);
        assert_whole(&s);
        assert_true(no_loss(&s.loss));
        made_free(m);
    }
    made_free(p.m);
}

static void chunks_in_any_order(void **state)
{
    (void)state;
    struct parts p;
    uint64_t seed = 1;
    small_trace(&p);
    for (int round = 0; round < 100; round++) {
        int order[PARTS_MAX];
        for (int i = 0; i < p.n; i++) order[i] = i;
        for (int i = p.n - 1; i > 0 && round; i--) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            int k = (int)((seed >> 33) % (uint64_t)(i + 1)), swap = order[i];
            order[i] = order[k];
            order[k] = swap;
        }
        struct made *m = made_new();
        made_add(m, p.m->bytes, p.at[0]);
        for (int i = 0; i < p.n; i++)
            made_add(m, p.m->bytes + p.at[order[i]], p.at[order[i] + 1] - p.at[order[i]]);
        struct summary s = read_bytes(m->bytes, m->n);
        assert_whole(&s);
        assert_true(no_loss(&s.loss));
        made_free(m);
    }
    made_free(p.m);
}

/* ---- versions ---- */

static void unknown_chunks_are_skipped_and_counted(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    made_chunk(p.m, 200, MADE_UID, "from the future", 15);
    made_chunk(p.m, CHUNK_MEMORY + 1, MADE_UID, "", 0);
    struct summary s = read_bytes(p.m->bytes, p.m->n);
    assert_whole(&s);
    assert_int_equal(s.loss.unknown_chunks, 2);
    assert_int_equal(s.loss.damaged_chunks, 0);
    made_free(p.m);
}

static void refused(struct parts *p, const char *word)
{
    struct summary s = read_bytes(p->m->bytes, p->m->n);
    assert_int_equal(s.status, TARE_FORMAT);
    assert_non_null(strstr(s.err.text, word));
    assert_non_null(strstr(s.err.text, here.trace));
}

static void newer_versions_are_refused_by_name(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    struct archive_header *h = (struct archive_header *)(void *)p.m->bytes;
    h->major = 2, h->minor = 7, refused(&p, "2.7");
    h->major = 1;
    struct summary s = read_bytes(p.m->bytes, p.m->n); /* a newer minor is fine */
    assert_whole(&s);
    h->features = 4 | FEATURE_ZSTD, refused(&p, "0x4");
    h->features = FEATURE_ZSTD;
    h->header_bytes = 10, refused(&p, "header");
    h->header_bytes = UINT32_MAX, refused(&p, "header");
    made_free(p.m);
    file_put(here.trace, "%PDF-1.7 and so on, long enough for a header of sixty-four bytes or more", 72);
    s = read_file(here.trace);
    assert_int_equal(s.status, TARE_FORMAT);
    struct trace *t = NULL;
    char missing[300];
    snprintf(missing, sizeof missing, "%s.not-there", here.trace);
    assert_int_equal(trace_open(&t, missing, NULL), TARE_IO);
    assert_null(t);
}

/* ---- killed programs ---- */

static void work(int n)
{
    for (int i = 0; i < n; i++) {
        TARE_SCOPE("outer");
        TARE_SCOPE("inner");
    }
}

/* Records n calls in a child of its own, leaves two scopes open, and is killed. */
static void record_and_die(int n, bool clean)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        tare_options o = TARE_OPTIONS_INIT;
        tare_scope a, b;
        o.path = here.trace;
        o.weigh_one_in = 0;
        if (tare_start(&o, NULL) != TARE_OK) _exit(9);
        work(n);
        if (clean) _exit(tare_stop(NULL) == TARE_OK ? 0 : 8);
        tare_site *site = tare_site_new(TARE_SITE_SCOPE, "open", "", 0);
        tare_begin(&a, site);
        tare_begin(&b, site);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (clean) assert_int_equal(status, 0);
    if (!clean) assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void a_killed_program_keeps_its_events(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 100, 30000}; /* the last: most is in the archive already */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        folder_empty(here.path);
        record_and_die(sizes[i], false);
        assert_int_equal(folder_count(&here, ".live-"), 1);
        struct summary s = read_file(here.trace);
        assert_int_equal(s.status, TARE_OK);
        assert_int_equal(s.seen.begins, 2 * sizes[i] + 2);
        assert_int_equal(s.seen.synthetic, 2);
        assert_int_equal(s.calls, 2 * sizes[i]);
        assert_int_equal(s.told, 4 * sizes[i] + 2);
        assert_int_equal(s.loss.unclosed_scopes, 2);
        assert_int_equal(s.loss.missing_live + s.loss.damaged_chunks + s.loss.dropped, 0);
    }
    folder_empty(here.path);
}

static void find_live(char *path, size_t size)
{
    DIR *d = opendir(here.path);
    path[0] = 0;
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".live-")) snprintf(path, size, "%s/%s", here.path, e->d_name);
    closedir(d);
    assert_true(path[0] != 0);
}

static void a_missing_live_file_is_told(void **state)
{
    (void)state;
    char live[500];
    record_and_die(30000, false);
    find_live(live, sizeof live);
    assert_int_equal(unlink(live), 0);
    struct summary s = read_file(here.trace);
    assert_int_equal(s.status, TARE_OK);
    assert_int_equal(s.loss.missing_live, 1);
    assert_non_null(strstr(s.loss.first, "live file"));
    assert_true(s.seen.begins <= 60002);
    folder_empty(here.path);
}

/* Cut or damaged anywhere, a live file costs at most what it held. */
static void damaged_live_files(void **state)
{
    (void)state;
    char live[500];
    size_t n;
    record_and_die(50, false);
    find_live(live, sizeof live);
    uint8_t *bytes = file_get(live, &n);
    for (size_t cut = 0; cut < n; cut += 997) {
        file_put(live, bytes, cut);
        struct summary s = read_file(here.trace);
        assert_int_equal(s.status, TARE_OK);
        assert_true(s.seen.begins <= 102);
    }
    uint64_t seed = 3;
    for (int i = 0; i < 300; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t at = (size_t)(seed >> 20) % (48 << 10);
        uint8_t was = bytes[at];
        bytes[at] = (uint8_t)(seed >> 12);
        file_put(live, bytes, n);
        read_file(here.trace);
        bytes[at] = was;
    }
    free(bytes);
    folder_empty(here.path);
}

/* Killed after its END was written and before the live file was removed; or while it was folded in. */
static void a_live_file_beside_its_end_is_ignored(void **state)
{
    (void)state;
    char live[500];
    size_t n, m;
    record_and_die(200, false);
    find_live(live, sizeof live);
    uint8_t *live_bytes = file_get(live, &n), *archive = file_get(here.trace, &m);
    struct live_header *h = (struct live_header *)(void *)live_bytes;
    struct made *full = made_new();
    made_add(full, archive, m);
    made_end(full, h->process.uid);
    struct summary s = read_bytes(full->bytes, full->n);
    assert_int_equal(s.status, TARE_OK);
    assert_int_equal(s.seen.begins, 0); /* END is there: the live file beside it is not looked at */
    assert_int_equal(s.loss.missing_live, 0);
    made_free(full);
    free(live_bytes);
    free(archive);
    folder_empty(here.path);
}

static bool append_made(void *ctx, enum chunk_type type, uint64_t process, const void *payload, size_t bytes)
{
    made_chunk(ctx, type, process, payload, bytes);
    return true;
}

/* A full disk at the end: everything but END is in the archive, and the live file stays. Nothing counts twice. */
static void half_folded_counts_once(void **state)
{
    (void)state;
    char live[500];
    size_t n, m;
    record_and_die(200, false);
    find_live(live, sizeof live);
    struct summary before = read_file(here.trace);
    uint8_t *live_bytes = file_get(live, &n), *archive = file_get(here.trace, &m);
    struct made *half = made_new();
    struct fold *f = calloc(1, sizeof *f);
    assert_non_null(f);
    made_add(half, archive, m);
    *f = (struct fold){.base = (const char *)live_bytes, .bytes = n, .emit = append_made, .ctx = half};
    assert_true(fold_rest(f));
    for (size_t cut = half->n; cut > m; cut -= (cut - m) / 3 + 1) {
        struct summary s =
            read_bytes(half->bytes, cut == half->n ? half->n - 10 : cut); /* END torn, or more */
        assert_int_equal(s.status, TARE_OK);
        assert_int_equal(s.seen.begins, before.seen.begins);
        assert_int_equal(s.seen.hash, before.seen.hash);
        assert_int_equal(s.calls, before.calls);
        assert_int_equal(s.told, before.told);
        assert_int_equal(s.loss.dropped, before.loss.dropped);
    }
    struct summary s = read_bytes(half->bytes, half->n); /* and whole, with the live file left behind */
    assert_int_equal(s.seen.hash, before.seen.hash);
    assert_int_equal(s.calls, before.calls);
    free(f);
    made_free(half);
    free(live_bytes);
    free(archive);
    folder_empty(here.path);
}

/* ---- repacking ---- */

struct sink {
    struct made *m;
    size_t room;
};

static tare_status put(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct sink *s = ctx;
    if (s->m->n + n > s->room) return error_set(err, TARE_IO, "full");
    made_add(s->m, bytes, n);
    return TARE_OK;
}

static void repacked_is_the_same_and_smaller(void **state)
{
    (void)state;
    for (int clean = 0; clean < 2; clean++) {
        folder_empty(here.path);
        record_and_die(5000, clean);
        struct summary before = read_file(here.trace);
        struct trace *t = NULL;
        struct sink sink = {made_new(), MADE_MAX};
        size_t size;
        free(file_get(here.trace, &size));
        assert_int_equal(trace_open(&t, here.trace, NULL), TARE_OK);
        assert_int_equal(trace_repack(t, put, &sink, NULL), TARE_OK);
        trace_close(t);
        folder_empty(here.path); /* one file, and nothing beside it */
        struct summary after = read_bytes(sink.m->bytes, sink.m->n);
        assert_int_equal(after.status, TARE_OK);
        assert_int_equal(after.seen.hash, before.seen.hash);
        assert_int_equal(after.seen.begins, before.seen.begins);
        assert_int_equal(after.calls, before.calls);
        assert_int_equal(after.told, before.told);
        assert_int_equal(after.loss.missing_live + after.loss.damaged_chunks, 0);
        assert_int_equal(after.loss.unclosed_scopes, before.loss.unclosed_scopes);
        if (clean) assert_true(sink.m->n < size);
        made_free(sink.m);
    }
    folder_empty(here.path);
}

static void a_failing_write_ends_the_repack(void **state)
{
    (void)state;
    struct parts p;
    struct trace *t = NULL;
    tare_error err = TARE_ERROR_INIT;
    small_trace(&p);
    file_put(here.trace, p.m->bytes, p.m->n);
    assert_int_equal(trace_open(&t, here.trace, NULL), TARE_OK);
    for (size_t room = 0; room < 600; room += 37) {
        struct sink sink = {made_new(), room};
        long blocks = mem_live_blocks();
        assert_int_equal(trace_repack(t, put, &sink, &err), TARE_IO);
        assert_string_equal(err.text, "full");
        assert_int_equal(mem_live_blocks(), blocks);
        made_free(sink.m);
    }
    trace_close(t);
    made_free(p.m);
}

/* ---- the n-th allocation fails ---- */

static tare_status use_all(struct sink *sink)
{
    struct trace *t = NULL;
    struct seen seen;
    struct calltree tree = CALLTREE_INIT, one = CALLTREE_INIT;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = trace_open(&t, here.trace, &err);
    if (s == TARE_OK) s = see_events(t, &seen, &err);
    if (s == TARE_OK) s = calltree_build(&tree, t, -1, &err);
    if (s == TARE_OK) s = calltree_build(&one, t, 0, &err);
    if (s == TARE_OK) s = trace_repack(t, put, sink, &err);
    if (s != TARE_OK) assert_true(err.text[0] != 0);
    if (s == TARE_OK) assert_int_equal(trace_loss(t)->damaged_chunks, 0); /* want of memory is no damage */
    calltree_release(&tree);
    calltree_release(&one);
    trace_close(t);
    return s;
}

static void fail_each_allocation(void)
{
    struct sink sink = {made_new(), MADE_MAX};
    long blocks = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        assert_true(n < 20000);
        sink.m->n = 0;
        mem_fail_after(n);
        s = use_all(&sink);
        mem_fail_after(-1);
        assert_true(s == TARE_OK || s == TARE_NOMEM);
        assert_int_equal(mem_live_blocks(), blocks);
    }
    made_free(sink.m);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct parts p;
    small_trace(&p);
    file_put(here.trace, p.m->bytes, p.m->n);
    fail_each_allocation(); /* an archive */
    struct trace *t = NULL;
    struct sink sink = {made_new(), MADE_MAX};
    assert_int_equal(trace_open(&t, here.trace, NULL), TARE_OK);
    assert_int_equal(trace_repack(t, put, &sink, NULL), TARE_OK);
    trace_close(t);
    file_put(here.trace, sink.m->bytes, sink.m->n);
    made_free(sink.m);
    made_free(p.m);
    fail_each_allocation(); /* a compressed one */
    folder_empty(here.path);
    record_and_die(20, false);
    fail_each_allocation(); /* one with a live file */
    folder_empty(here.path);
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(&here);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(&here);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_trace),
        cmocka_unit_test(one_damaged_byte_costs_one_chunk),
        cmocka_unit_test(any_header_byte_may_be_damaged),
        cmocka_unit_test(truncation_keeps_the_whole_prefix),
        cmocka_unit_test(garbage_between_chunks),
        cmocka_unit_test(every_chunk_doubled),
        cmocka_unit_test(chunks_in_any_order),
        cmocka_unit_test(unknown_chunks_are_skipped_and_counted),
        cmocka_unit_test(newer_versions_are_refused_by_name),
        cmocka_unit_test(a_killed_program_keeps_its_events),
        cmocka_unit_test(a_missing_live_file_is_told),
        cmocka_unit_test(damaged_live_files),
        cmocka_unit_test(a_live_file_beside_its_end_is_ignored),
        cmocka_unit_test(half_folded_counts_once),
        cmocka_unit_test(repacked_is_the_same_and_smaller),
        cmocka_unit_test(a_failing_write_ends_the_repack),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
