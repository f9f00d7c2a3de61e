/* SPDX-License-Identifier: MIT
 * test_ulid.c - the text form, the successor rule, threads and forks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/ulid.h"

static void known_texts(void **state)
{
    (void)state;
    char text[ULID_SIZE];
    struct ulid id = {0, {0}};
    ulid_format(&id, text);
    assert_string_equal(text, "00000000000000000000000000");
    id.random[9] = 31;
    ulid_format(&id, text);
    assert_string_equal(text, "0000000000000000000000000Z");
    id = (struct ulid){(UINT64_C(1) << 48) - 1, {0}};
    memset(id.random, 0xFF, sizeof id.random);
    ulid_format(&id, text);
    assert_string_equal(text, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    id =
        (struct ulid){UINT64_C(1469918176385), {0}}; /* the time part 01ARYZ6S41, base 32 by hand in Python */
    ulid_format(&id, text);
    assert_string_equal(text, "01ARYZ6S410000000000000000");
}

static void text_and_bits_agree_both_ways(void **state)
{
    (void)state;
    struct ulid id, back;
    char text[ULID_SIZE];
    for (int bit = 0; bit < 128; bit++) {
        memset(&id, 0, sizeof id);
        if (bit < 48)
            id.unix_ms = UINT64_C(1) << bit;
        else
            id.random[(bit - 48) / 8] = (uint8_t)(1u << bit % 8);
        ulid_format(&id, text);
        assert_int_equal(ulid_parse(text, &back, NULL), TARE_OK);
        assert_true(back.unix_ms == id.unix_ms && memcmp(back.random, id.random, 10) == 0);
    }
    assert_int_equal(ulid_parse("01aryz6s41zzzzzzzzzzzzzzzz", &back, NULL), TARE_OK); /* lower case */
    assert_int_equal(back.unix_ms, UINT64_C(1469918176385));
    assert_int_equal(back.random[0], 0xFF);
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "0",
                                      "0000000000000000000000000",
                                      "000000000000000000000000000",
                                      "80000000000000000000000000",
                                      "0000000000000000000000000I",
                                      "0000000000000L000000000000",
                                      "O0000000000000000000000000",
                                      "0000000000000000000000000U",
                                      "0000000000000 000000000000",
                                      "000000000000000000000000\xC3\xA9"};
    struct ulid out = {42, {1}};
    tare_error err = TARE_ERROR_INIT;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(ulid_parse(bad[i], &out, &err), TARE_INVALID);
        assert_false(ulid_is_valid(bad[i]));
    }
    assert_true(out.unix_ms == 42 && out.random[0] == 1);
    ulid_parse("0000000000000L000000000000", &out, &err);
    assert_string_equal(err.text, "'0000000000000L000000000000' is not an id: character 14");
}

static void successors_grow_even_when_the_clock_does_not(void **state)
{
    (void)state;
    static const uint8_t fresh[10] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    struct ulid id = {1000, {0, 0, 0, 0, 0, 0, 0, 0, 0, 255}};
    ulid_advance(&id, 1000, fresh); /* same millisecond: count up, with carry */
    assert_true(id.unix_ms == 1000 && id.random[8] == 1 && id.random[9] == 0);
    ulid_advance(&id, 900, fresh); /* the clock stepped back */
    assert_true(id.unix_ms == 1000 && id.random[9] == 1);
    ulid_advance(&id, 1001, fresh);
    assert_true(id.unix_ms == 1001 && memcmp(id.random, fresh, 10) == 0);
    memset(id.random, 0xFF, 10);
    ulid_advance(&id, 1001, fresh); /* used up: borrow the next millisecond */
    assert_true(id.unix_ms == 1002 && memcmp(id.random, fresh, 10) == 0);
}

static void new_ones_are_of_now_and_grow(void **state)
{
    (void)state;
    char before[ULID_SIZE], now[ULID_SIZE];
    struct ulid id;
    uint64_t start = clock_unix_ns() / 1000000;
    assert_int_equal(ulid_new(before, NULL), TARE_OK);
    assert_int_equal(ulid_parse(before, &id, NULL), TARE_OK);
    assert_true(id.unix_ms + 1000 >= start && id.unix_ms <= start + 60000);
    for (int i = 0; i < 20000; i++) {
        assert_int_equal(ulid_new(now, NULL), TARE_OK);
        assert_true(strcmp(before, now) < 0);
        memcpy(before, now, sizeof now);
    }
}

enum { THREADS = 4, EACH = 3000 };
static char made[THREADS][EACH][ULID_SIZE];

static void *make_many(void *arg)
{
    char(*mine)[ULID_SIZE] = arg;
    for (int i = 0; i < EACH; i++) {
        if (ulid_new(mine[i], NULL) != TARE_OK) mine[i][0] = 0;
    }
    return NULL;
}

static int by_text(const void *a, const void *b)
{
    return memcmp(a, b, ULID_SIZE);
}

static void threads_never_meet(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, make_many, made[t]), 0);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; t++) {
        for (int i = 1; i < EACH; i++) assert_true(strcmp(made[t][i - 1], made[t][i]) < 0);
    }
    qsort(made, THREADS * EACH, ULID_SIZE, by_text);
    const char *all = made[0][0];
    for (size_t i = 1; i < THREADS * EACH; i++)
        assert_string_not_equal(all + (i - 1) * ULID_SIZE, all + i * ULID_SIZE);
}

/* Both sides of a fork go on from the same last id: counting up alone would make the same names. */
static void a_child_does_not_repeat_its_parent(void **state)
{
    (void)state;
    char mine[ULID_SIZE], theirs[ULID_SIZE];
    for (int i = 0; i < 20; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(ulid_new(mine, NULL), TARE_OK);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            ulid_new(theirs, NULL);
            _exit(write(ends[1], theirs, ULID_SIZE) == ULID_SIZE ? 0 : 1);
        }
        assert_int_equal(ulid_new(mine, NULL), TARE_OK);
        assert_int_equal(read(ends[0], theirs, ULID_SIZE), ULID_SIZE);
        assert_string_not_equal(mine, theirs);
        waitpid(child, NULL, 0);
        close(ends[0]);
        close(ends[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts),
        cmocka_unit_test(text_and_bits_agree_both_ways),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(successors_grow_even_when_the_clock_does_not),
        cmocka_unit_test(new_ones_are_of_now_and_grow),
        cmocka_unit_test(threads_never_meet),
        cmocka_unit_test(a_child_does_not_repeat_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
