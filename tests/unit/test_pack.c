/* SPDX-License-Identifier: MIT
 * test_pack.c - varints, histogram buckets, packed events and the line from ticks to time, each at its edges. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "trace_fixture.h"
#include "core/rng.h"
#include "trace/loaded.h"

#include <cmocka.h>

/* ---- varints ---- */

static void varints_go_both_ways(void **state)
{
    (void)state;
    for (int shift = 0; shift < 64; shift++)
        for (int add = -1; add <= 1; add++) {
            uint64_t v = (UINT64_C(1) << shift) + (uint64_t)(int64_t)add;
            uint8_t bytes[24];
            struct enc e = {bytes, bytes + sizeof bytes, false};
            enc_uint(&e, v);
            enc_int(&e, (int64_t)v);
            struct dec d = {bytes, e.p, false};
            assert_true(dec_uint(&d) == v);
            assert_true(dec_int(&d) == (int64_t)v);
            assert_true(!d.failed && d.p == d.end);
        }
}

static void decoding_never_passes_the_end(void **state)
{
    (void)state;
    static const uint8_t endless[12] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    for (size_t n = 0; n <= sizeof endless; n++) {
        struct dec d = {endless, endless + n, false};
        dec_uint(&d);
        assert_true(d.failed);
    }
    static const uint8_t text[] = {200, 1, 'a', 'b'}; /* claims 200 bytes */
    struct dec d = {text, text + sizeof text, false};
    size_t n = 9;
    assert_null(dec_str(&d, &n));
    assert_true(d.failed && n == 0);
}

static void encoding_never_passes_the_end(void **state)
{
    (void)state;
    uint8_t bytes[32];
    for (size_t room = 0; room < 16; room++) {
        memset(bytes, 0xee, sizeof bytes);
        struct enc e = {bytes, bytes + room, false};
        enc_bytes(&e, "0123456789", 10);
        enc_uint(&e, UINT64_MAX);
        assert_true(e.full);
        for (size_t i = room; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0xee);
    }
}

/* ---- buckets ---- */

static void check_bucket(uint64_t v)
{
    unsigned octave = bucket_octave(v), sub = bucket_sub(v, octave);
    assert_true(octave < OCTAVES && sub < SUBS);
    uint64_t low = bucket_low(octave, sub), width = octave ? UINT64_C(1) << (octave - 1) : 1;
    if (v >> 51) return; /* the last octave takes all that is longer */
    assert_true(low <= v && v - low < width);
    assert_true(width == 1 || width * 16 <= low); /* a sixteenth at most */
}

static void buckets_hold_their_values(void **state)
{
    (void)state;
    uint64_t last = 0;
    for (unsigned o = 0; o < OCTAVES; o++)
        for (unsigned s = 0; s < SUBS; s++) {
            uint64_t low = bucket_low(o, s);
            assert_true(!(o | s) || low == last); /* without gap or overlap */
            last = low + (o ? UINT64_C(1) << (o - 1) : 1);
            assert_int_equal(bucket_octave(low), o);
            assert_int_equal(bucket_sub(low, o), s);
            assert_int_equal(bucket_octave(last - 1), o);
            assert_int_equal(bucket_sub(last - 1, o), s);
        }
    for (uint64_t v = 0; v < 100000; v++) check_bucket(v);
    for (int shift = 0; shift < 64; shift++)
        for (int add = -2; add <= 2; add++) check_bucket((UINT64_C(1) << shift) + (uint64_t)(int64_t)add);
    check_bucket(UINT64_MAX);
}

/* ---- packed events ---- */

static struct folder here;

static struct seen play(const struct raw_event *e, size_t slots, tare_status *status)
{
    struct made *m = made_new();
    struct process_info info = made_info(MADE_UID);
    struct clock_pair pairs[2] = {made_pair(0), made_pair(1000000)};
    struct trace *t = NULL;
    struct seen s = {0};
    tare_error err = TARE_ERROR_INIT;
    made_header(m);
    made_process(m, &info);
    for (uint32_t i = 1; i <= 60; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        made_site(m, MADE_UID, i, TARE_SITE_SCOPE, name);
    }
    made_events(m, 0, 1, e, slots);
    made_clock(m, MADE_UID, pairs, 2);
    made_end(m, MADE_UID);
    file_put(here.trace, m->bytes, m->n);
    made_free(m);
    *status = trace_open(&t, here.trace, &err);
    if (*status == TARE_OK) *status = see_events(t, &s, &err);
    if (*status == TARE_OK) assert_string_equal(trace_loss(t)->first, "");
    trace_close(t);
    return s;
}

/* Every size of time difference that has a form of its own, for begins, ends and weighed begins. */
static void times_of_every_size(void **state)
{
    (void)state;
    struct raw_event e[600];
    size_t n = 0;
    uint64_t now = MADE_TICKS;
    for (unsigned shift = 0; shift < 40; shift++)
        for (int add = -1; add <= 1; add++) {
            uint64_t step = (UINT64_C(1) << shift) + (uint64_t)(int64_t)add;
            e[n++] = (struct raw_event){
                now += step, raw_what(RAW_BEGIN, shift % 3 ? 0 : RAW_FLAG_WEIGHED, 0, 0, 1 + shift)};
            e[n++] = (struct raw_event){now += step,
                                        raw_what(RAW_END, shift % 5 ? 0 : RAW_FLAG_ABANDONED, 0, 0, 0)};
        }
    tare_status status;
    struct seen s = play(e, n, &status);
    assert_int_equal(status, TARE_OK);
    assert_int_equal(s.begins, n / 2);
    assert_int_equal(s.ends, n / 2);
    assert_int_equal(s.weighed, 3 * 14);
    assert_int_equal(s.synthetic, 3 * 8);
    assert_true(llabs((long long)s.last_ns - (long long)((now - MADE_TICKS) / 2)) <= 1);
    assert_false(s.unordered || s.unnested);
}

/* Slots that make no sense are stepped over; what was reserved and never written too. */
static void slots_without_sense(void **state)
{
    (void)state;
    struct raw_event e[12] = {{0}};
    e[0] = raw(RAW_BEGIN, 1, 100);
    e[2] = (struct raw_event){MADE_TICKS + 300, 77};                              /* no such kind */
    e[3] = (struct raw_event){MADE_TICKS + 400, raw_what(RAW_COUNT, 0, 9, 0, 2)}; /* a count is two slots */
    e[4] = (struct raw_event){0, raw_what(RAW_COUNT, 0, 1, 0, 2)}; /* reserved, not published */
    e[5] = (struct raw_event){1, raw_what(RAW_BEGIN, 0, 0, 0, 3)}; /* its second slot */
    e[6] = (struct raw_event){MADE_TICKS + 450, raw_what(RAW_MARK, 0, 1, 200, 2)}; /* 200 bytes in one slot */
    e[7] = raw(RAW_END, 0, 500);
    e[11] = (struct raw_event){MADE_TICKS + 1200, raw_what(RAW_MARK, 0, 3, 20, 2)}; /* past the end */
    tare_status status;
    struct seen s = play(e, 12, &status);
    assert_int_equal(status, TARE_OK);
    assert_int_equal(s.begins, 1);
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.counts + s.marks, 0);
    assert_int_equal(pack_count(e, 12), 2);
    assert_int_equal(pack_count(e, 0), 0);
}

/* A signal handler's events may lie before the one it interrupted. */
static void events_are_sorted_by_time(void **state)
{
    (void)state;
    struct raw_event e[] = {raw(RAW_BEGIN, 1, 100), raw(RAW_END, 0, 900),   raw(RAW_BEGIN, 2, 200),
                            raw(RAW_END, 0, 300),   raw(RAW_BEGIN, 3, 400), raw(RAW_END, 0, 500)};
    tare_status status;
    struct seen s = play(e, 6, &status);
    assert_int_equal(status, TARE_OK);
    assert_int_equal(s.deepest, 2);
    assert_int_equal(s.begins, 3);
    assert_false(s.unordered || s.unnested);
}

/* More sites than tokens can name in five bits, the last of them the most frequent. */
static void many_sites_in_a_chunk(void **state)
{
    (void)state;
    struct raw_event e[PACK_SLOTS_MAX];
    for (unsigned i = 0; i < PACK_SLOTS_MAX / 2; i++) {
        e[2 * i] = raw(RAW_BEGIN, i < 59 ? i + 1 : 60, 100 + i * 10);
        e[2 * i + 1] = raw(RAW_END, 0, 105 + i * 10);
    }
    tare_status status;
    struct seen s = play(e, PACK_SLOTS_MAX, &status);
    assert_int_equal(status, TARE_OK);
    assert_int_equal(s.begins, PACK_SLOTS_MAX / 2);
}

/* Every slot another site, which is as bad as it gets: still whole. */
static void as_many_sites_as_slots(void **state)
{
    (void)state;
    struct packer *p = calloc(1, sizeof *p);
    struct raw_event *e = calloc(PACK_SLOTS_MAX, sizeof *e);
    struct extent x = {.seq = 1};
    for (uint32_t i = 0; i < PACK_SLOTS_MAX; i++) e[i] = raw(RAW_BEGIN, i * 7919 + 1, 100 + i);
    assert_true(pack_events(p, &x, e, PACK_SLOTS_MAX, 0) > PACK_SLOTS_MAX * 4);
    assert_int_equal(p->n_events, PACK_SLOTS_MAX);
    assert_int_equal(p->n_sites, PACK_SLOTS_MAX);
    free(e);
    free(p);
}

static double log_normal(struct rng *r, double median, double sigma)
{
    double u = ((double)(rng_next(r) >> 11) + 0.5) / 9007199254740992.0,
           v = (double)(rng_next(r) >> 11) / 9007199254740992.0;
    return median * exp(sigma * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/* Steps, layers and operators of a model, in ticks of 0.4 ns, with log-normal durations. */
static void six_bytes_a_scope(void **state)
{
    (void)state;
    struct packer *p = calloc(1, sizeof *p);
    struct raw_event *e = calloc(PACK_SLOTS_MAX, sizeof *e);
    struct extent x = {.seq = 1};
    struct rng rng;
    uint64_t now = UINT64_C(1) << 50, scopes = 0, bytes = 0;
    size_t n = 0;
    rng_seed(&rng, 42);
    for (int step = 0; step < 60; step++) {
        e[n++] = (struct raw_event){now += 500, raw_what(RAW_BEGIN, 0, 0, 0, 1)};
        for (uint32_t layer = 0; layer < 24; layer++) {
            e[n++] = (struct raw_event){now += (uint64_t)log_normal(&rng, 300, 0.8),
                                        raw_what(RAW_BEGIN, 0, 0, 0, 2)};
            for (uint32_t op = 0; op < 12; op++) {
                e[n++] = (struct raw_event){now += (uint64_t)log_normal(&rng, 250, 0.8),
                                            raw_what(RAW_BEGIN, 0, 0, 0, 3 + op)};
                e[n++] = (struct raw_event){now += (uint64_t)log_normal(&rng, 50000, 1.5),
                                            raw_what(RAW_END, 0, 0, 0, 0)};
            }
            e[n++] = (struct raw_event){now += 200, raw_what(RAW_END, 0, 0, 0, 0)};
            scopes += 13;
            if (n + 30 < PACK_SLOTS_MAX) continue;
            bytes += sizeof(struct chunk_header) + pack_events(p, &x, e, n, 1);
            n = 0;
        }
        e[n++] = (struct raw_event){now += 500, raw_what(RAW_END, 0, 0, 0, 0)};
        scopes++;
    }
    bytes += sizeof(struct chunk_header) + pack_events(p, &x, e, n, 1);
    assert_true(scopes > 15000);
    assert_true((double)bytes / (double)scopes <= 6.0);
    free(e);
    free(p);
}

/* ---- ticks -> time ---- */

static uint64_t ns_at(struct trace *t, uint64_t ticks)
{
    struct timeline_hint hint = {0};
    return timeline_ns(t, &t->processes.items[0], ticks, &hint);
}

struct line {
    struct trace t;
    struct loaded_process p;
};

static void line_make(struct line *l, const struct clock_pair *pairs, size_t n, uint32_t tsc)
{
    memset(l, 0, sizeof *l);
    l->p.described = true;
    l->p.info.tsc = tsc;
    l->p.info.begun_raw_ns = n ? pairs[0].raw_ns : 1000;
    l->p.parent = -1;
    for (size_t i = 0; i < n; i++) assert_int_equal(vec_push(&l->p.pairs, pairs[i], NULL), TARE_OK);
    l->t.processes.items = &l->p;
    l->t.processes.n = 1;
    timeline_prepare(&l->t);
}

static void line_free(struct line *l)
{
    vec_release(&l->p.pairs);
}

static void straight_lines_between_pairs(void **state)
{
    (void)state;
    struct line l;
    const struct clock_pair pairs[] = {{.ticks = 1000, .raw_ns = 500000000},
                                       {.ticks = 2001000, .raw_ns = 501000000},
                                       {.ticks = 3001000, .raw_ns = 502000000}}; /* 0.5, then 1 ns a tick */
    line_make(&l, pairs, 3, 1);
    assert_int_equal(ns_at(&l.t, 1000), 0);
    assert_int_equal(ns_at(&l.t, 1001000), 500000);
    assert_int_equal(ns_at(&l.t, 2001000), 1000000);
    assert_int_equal(ns_at(&l.t, 2501000), 1500000);
    assert_int_equal(ns_at(&l.t, 0), 0);         /* before the start of the trace */
    assert_true(ns_at(&l.t, 4001000) > 2000000); /* past the last: at the mean length of a tick */
    uint64_t last = 0;
    for (uint64_t ticks = 0; ticks < 5000000; ticks += 777) {
        uint64_t ns = ns_at(&l.t, ticks);
        assert_true(ns >= last);
        last = ns;
    }
    line_free(&l);
}

/* A year of uptime: doubles hold neither 1e17 ticks nor 3e16 ns to the unit; differences must be exact. */
static void long_uptimes_lose_no_precision(void **state)
{
    (void)state;
    struct line l;
    const uint64_t ticks = UINT64_C(94608000000000001), raw_ns = UINT64_C(31536000000000001);
    const struct clock_pair pairs[] = {{.ticks = ticks, .raw_ns = raw_ns},
                                       {.ticks = ticks + 3000000, .raw_ns = raw_ns + 1000000}};
    line_make(&l, pairs, 2, 1);
    for (uint64_t i = 0; i < 3000; i += 3) assert_int_equal(ns_at(&l.t, ticks + i + 1), i / 3);
    line_free(&l);
}

static void pairs_that_go_backwards_are_dropped(void **state)
{
    (void)state;
    struct line l;
    const struct clock_pair pairs[] = {{.ticks = 1000, .raw_ns = 1000000},
                                       {.ticks = 901000, .raw_ns = 500}, /* backwards */
                                       {.ticks = 2001000, .raw_ns = 2000000},
                                       {.ticks = 2001000, .raw_ns = 2000001}, /* the same moment twice */
                                       {.ticks = UINT64_MAX, .raw_ns = UINT64_MAX}};
    line_make(&l, pairs, 5, 1);
    assert_int_equal(l.p.pairs.n, 2);
    assert_int_equal(ns_at(&l.t, 1001000), 500000);
    assert_true(fabs(l.p.pub.tick_ns - 0.5) < 1e-9);
    line_free(&l);
}

static void a_single_pair_is_said_to_be_too_little(void **state)
{
    (void)state;
    struct line l;
    const struct clock_pair pair = {.ticks = 1000, .raw_ns = 1000000};
    line_make(&l, &pair, 1, 1);
    assert_true(l.t.loss.first[0] != 0);
    assert_true(l.p.pub.tick_ns == 1);
    assert_int_equal(ns_at(&l.t, 1500), 500);
    line_free(&l);
    line_make(&l, &pair, 0, 1);
    assert_int_equal(ns_at(&l.t, 1500), 0);
    line_free(&l);
}

static void the_fallback_clock_counts_nanoseconds(void **state)
{
    (void)state;
    struct line l;
    const struct clock_pair pairs[] = {{.ticks = 7000000, .raw_ns = 7000000},
                                       {.ticks = 9000003, .raw_ns = 9000000}};
    line_make(&l, pairs, 2, 0);
    assert_true(l.p.pub.tick_ns == 1);
    assert_int_equal(ns_at(&l.t, 7000123), 123);
    assert_int_equal(ns_at(&l.t, 9000123), 2000123);
    assert_int_equal(ns_at(&l.t, 1), 0);
    line_free(&l);
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
        cmocka_unit_test(varints_go_both_ways),
        cmocka_unit_test(decoding_never_passes_the_end),
        cmocka_unit_test(encoding_never_passes_the_end),
        cmocka_unit_test(buckets_hold_their_values),
        cmocka_unit_test(times_of_every_size),
        cmocka_unit_test(slots_without_sense),
        cmocka_unit_test(events_are_sorted_by_time),
        cmocka_unit_test(many_sites_in_a_chunk),
        cmocka_unit_test(as_many_sites_as_slots),
        cmocka_unit_test(six_bytes_a_scope),
        cmocka_unit_test(straight_lines_between_pairs),
        cmocka_unit_test(long_uptimes_lose_no_precision),
        cmocka_unit_test(pairs_that_go_backwards_are_dropped),
        cmocka_unit_test(a_single_pair_is_said_to_be_too_little),
        cmocka_unit_test(the_fallback_clock_counts_nanoseconds),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
