/* SPDX-License-Identifier: MIT
 * test_map.c - both maps against a plain model, odd keys, removal, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/rng.h"

static void strings_are_found_again(void **state)
{
    (void)state;
    struct map_str m = MAP_STR_INIT;
    char key[32];
    for (unsigned i = 0; i < 5000; i++) {
        size_t len = (size_t)snprintf(key, sizeof key, "site/%u/%u", i % 7, i);
        assert_null(map_str_find(&m, key, len));
        assert_int_equal(map_str_put(&m, key, len, i, NULL), TARE_OK);
    }
    assert_int_equal(m.n, 5000);
    for (unsigned i = 0; i < 5000; i++) {
        size_t len = (size_t)snprintf(key, sizeof key, "site/%u/%u", i % 7, i);
        uint64_t *value = map_str_find(&m, key, len);
        assert_non_null(value);
        assert_int_equal(*value, i);
        assert_string_equal(m.entries[i].key, key); /* in order of insertion */
        assert_null(map_str_find(&m, key + 1, len - 1));
    }
    map_str_release(&m);
}

static void string_keys_are_copies_of_any_bytes(void **state)
{
    (void)state;
    struct map_str m = MAP_STR_INIT;
    char key[] = "abc";
    assert_int_equal(map_str_put(&m, key, 3, 1, NULL), TARE_OK);
    key[0] = 'x';
    assert_non_null(map_str_find(&m, "abc", 3));
    assert_null(map_str_find(&m, "xbc", 3));
    assert_int_equal(map_str_put(&m, "", 0, 2, NULL), TARE_OK);
    assert_int_equal(map_str_put(&m, "a\0b", 3, 3, NULL), TARE_OK);
    assert_int_equal(map_str_put(&m, "a\0c", 3, 4, NULL), TARE_OK);
    assert_int_equal(map_str_put(&m, "a", 1, 5, NULL), TARE_OK);
    assert_int_equal(m.n, 5);
    assert_int_equal(*map_str_find(&m, NULL, 0), 2);
    assert_int_equal(*map_str_find(&m, "a\0b", 3), 3);
    assert_int_equal(*map_str_find(&m, "a\0c", 3), 4);
    assert_int_equal(*map_str_find(&m, "a", 1), 5);
    map_str_release(&m);
}

static void a_reference_counts(void **state)
{
    (void)state;
    struct map_str m = MAP_STR_INIT;
    const char *words[] = {"load", "step", "load", "load", "step"};
    for (size_t i = 0; i < 5; i++) {
        uint64_t *n;
        assert_int_equal(map_str_ref(&m, words[i], 4, &n, NULL), TARE_OK);
        ++*n;
    }
    assert_int_equal(m.n, 2);
    assert_int_equal(*map_str_find(&m, "load", 4), 3);
    assert_int_equal(*map_str_find(&m, "step", 4), 2);
    assert_int_equal(map_str_put(&m, "step", 4, 9, NULL), TARE_OK);
    assert_int_equal(*map_str_find(&m, "step", 4), 9);
    map_str_release(&m);
}

/* Random puts and removals over a small range of keys, beside an array that does the same. */
static void numbers_follow_a_model(void **state)
{
    (void)state;
    enum { KEYS = 700 };
    static uint64_t model[KEYS];
    static bool held[KEYS];
    struct map_u64 m = MAP_U64_INIT;
    struct rng r;
    rng_seed(&r, 3);
    size_t n = 0;
    for (int i = 0; i < 200000; i++) {
        uint64_t key = rng_below(&r, KEYS), spread = key << (key % 3 * 20), value = rng_next(&r), old;
        if (rng_below(&r, 5) < (i / 20000 % 2 ? 3u : 2u)) {
            bool was = map_u64_remove(&m, spread, &old);
            assert_int_equal(was, held[key]);
            if (was) assert_int_equal(old, model[key]);
            n -= was;
            held[key] = false;
        } else {
            assert_int_equal(map_u64_put(&m, spread, value, NULL), TARE_OK);
            n += !held[key];
            held[key] = true;
            model[key] = value;
        }
        assert_int_equal(m.n, n);
        uint64_t probe = rng_below(&r, KEYS), *found = map_u64_find(&m, probe << (probe % 3 * 20));
        assert_int_equal(found != NULL, held[probe]);
        if (found) assert_int_equal(*found, model[probe]);
    }
    map_u64_release(&m);
}

static void every_number_is_a_key(void **state)
{
    (void)state;
    struct map_u64 m = MAP_U64_INIT;
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63};
    assert_null(map_u64_find(&m, 0));
    assert_false(map_u64_remove(&m, 0, NULL));
    for (size_t i = 0; i < 5; i++) assert_int_equal(map_u64_put(&m, keys[i], i + 10, NULL), TARE_OK);
    assert_int_equal(m.n, 5);
    for (size_t i = 0; i < 5; i++) assert_int_equal(*map_u64_find(&m, keys[i]), i + 10);
    size_t at = 0, seen = 0;
    uint64_t sum = 0;
    for (const struct map_u64_slot *s; (s = map_u64_next(&m, &at)); seen++) sum += s->value;
    assert_int_equal(seen, 5);
    assert_int_equal(sum, 60);
    assert_true(map_u64_remove(&m, 0, NULL));
    assert_null(map_u64_find(&m, 0));
    assert_int_equal(m.n, 4);
    map_u64_release(&m);
    at = 0;
    assert_null(map_u64_next(&m, &at));
}

static tare_status fill(struct map_str *s, struct map_u64 *u, tare_error *err)
{
    char key[16];
    for (unsigned i = 0; i < 40; i++) {
        size_t len = (size_t)snprintf(key, sizeof key, "k%u", i);
        tare_status status = map_str_put(s, key, len, i, err);
        if (status == TARE_OK) status = map_u64_put(u, i, i, err);
        if (status < 0) return status;
    }
    return TARE_OK;
}

static void a_failed_insertion_changes_nothing(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    tare_error err = TARE_ERROR_INIT;
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK; n++) {
        struct map_str strings = MAP_STR_INIT;
        struct map_u64 numbers = MAP_U64_INIT;
        mem_fail_after(n);
        s = fill(&strings, &numbers, &err);
        mem_fail_after(-1);
        if (s != TARE_OK) assert_int_equal(s, TARE_NOMEM);
        for (size_t i = 0; i < strings.n; i++)
            assert_int_equal(*map_str_find(&strings, strings.entries[i].key, strings.entries[i].len), i);
        for (size_t i = 0; i < numbers.n; i++) assert_int_equal(*map_u64_find(&numbers, i), i);
        assert_int_equal(fill(&strings, &numbers, &err), TARE_OK); /* still usable */
        assert_true(strings.n == 40 && numbers.n == 40);
        map_str_release(&strings);
        map_u64_release(&numbers);
        assert_int_equal(mem_live_blocks(), start);
    }
}

static void interned_keys_are_one_pointer(void **state)
{
    (void)state;
    long start = mem_live_blocks();
    struct arena memory = ARENA_INIT;
    struct map_str m = {.memory = &memory};
    const char *first[200];
    char key[5000];
    for (unsigned i = 0; i < 200; i++) {
        size_t len = (size_t)snprintf(key, sizeof key, "%0*u", (int)(1 + i * 20), i);
        assert_null(map_str_find_key(&m, key, len));
        assert_non_null(first[i] = map_str_intern(&m, key, len));
        void *next = arena_new(&memory, 3, 7); /* strings and aligned blocks share the chunks */
        assert_true((uintptr_t)next % sizeof(void *) == 0);
        memset(next, 0xff, 21);
    }
    for (unsigned i = 0; i < 200; i++) {
        size_t len = (size_t)snprintf(key, sizeof key, "%0*u", (int)(1 + i * 20), i);
        assert_ptr_equal(map_str_intern(&m, key, len), first[i]);
        assert_ptr_equal(map_str_find_key(&m, key, len), first[i]);
        assert_string_equal(first[i], key);
    }
    assert_int_equal(m.n, 200);
    map_str_release(&m);
    assert_string_equal(first[199], key); /* the arena's, not the map's */
    arena_release(&memory);
    assert_int_equal(mem_live_blocks(), start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_found_again), cmocka_unit_test(string_keys_are_copies_of_any_bytes),
        cmocka_unit_test(a_reference_counts),      cmocka_unit_test(numbers_follow_a_model),
        cmocka_unit_test(every_number_is_a_key),   cmocka_unit_test(a_failed_insertion_changes_nothing),
        cmocka_unit_test(interned_keys_are_one_pointer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
