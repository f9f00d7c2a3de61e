/* SPDX-License-Identifier: MIT
 * test_ring.c - the ring alone, around its edge, and between two threads (run it under TSan too). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>

#include <cmocka.h>

#include "core/ring.h"

static void capacity_is_a_power_of_two(void **state)
{
    (void)state;
    struct ring r;
    uint64_t memory[8];
    assert_false(ring_init(&r, memory, 0));
    assert_false(ring_init(&r, memory, 3));
    assert_false(ring_init(&r, memory, 7));
    assert_true(ring_init(&r, memory, 1));
    assert_true(ring_push(&r, 5));
    assert_false(ring_push(&r, 6));
    assert_true(ring_init(&r, memory, 8));
    assert_int_equal(ring_used(&r), 0);
}

static void full_says_no_and_keeps_what_it_has(void **state)
{
    (void)state;
    struct ring r;
    uint64_t memory[4], v;
    ring_init(&r, memory, 4);
    assert_false(ring_pop(&r, &v));
    for (uint64_t i = 0; i < 4; i++) assert_true(ring_push(&r, i));
    assert_false(ring_push(&r, 99));
    assert_int_equal(ring_used(&r), 4);
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(ring_pop(&r, &v));
        assert_int_equal(v, i);
    }
    assert_false(ring_pop(&r, &v));
}

static void wraps_many_times(void **state)
{
    (void)state;
    struct ring r;
    uint64_t memory[8], v, in = 0, out = 0;
    ring_init(&r, memory, 8);
    for (int round = 0; round < 1000; round++) {
        for (int i = 0; i < round % 9; i++) {
            bool room = in - out < 8;
            assert_int_equal(ring_push(&r, in), room);
            in += room;
        }
        for (int i = 0; i < round % 5 + 1 && ring_pop(&r, &v); i++) assert_int_equal(v, out++);
    }
    assert_int_equal(ring_used(&r), in - out);
}

static void several_words_go_as_one(void **state)
{
    (void)state;
    struct ring r;
    uint64_t memory[8], words[8] = {1, 2, 3}, got[8];
    ring_init(&r, memory, 8);
    assert_true(ring_push_n(&r, words, 3));
    assert_true(ring_push_n(&r, words, 3));
    assert_false(ring_push_n(&r, words, 3)); /* two places left: nothing of it goes in */
    assert_int_equal(ring_used(&r), 6);
    assert_false(ring_push_n(&r, words, 9));
    assert_int_equal(ring_pop_n(&r, got, 4), 4);
    assert_true(got[0] == 1 && got[1] == 2 && got[2] == 3 && got[3] == 1);
    assert_true(ring_push_n(&r, words, 3)); /* over the edge */
    assert_int_equal(ring_pop_n(&r, got, 8), 5);
    assert_true(got[0] == 2 && got[1] == 3 && got[2] == 1 && got[3] == 2 && got[4] == 3);
    assert_int_equal(ring_pop_n(&r, got, 8), 0);
}

enum { PUSHES = 300000 };

struct shared {
    struct ring ring;
    uint64_t dropped;
};

static void *produce(void *arg)
{
    struct shared *s = arg;
    for (uint64_t i = 1; i <= PUSHES; i++) {
        while (!ring_push(&s->ring, i)) {
            s->dropped++;
            sched_yield();
        }
    }
    return NULL;
}

static void two_threads_lose_nothing(void **state)
{
    (void)state;
    static struct shared s;
    static uint64_t memory[64];
    ring_init(&s.ring, memory, 64);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, produce, &s), 0);
    uint64_t got[16], next = 1;
    while (next <= PUSHES) {
        size_t n = ring_pop_n(&s.ring, got, 16);
        for (size_t i = 0; i < n; i++, next++) assert_int_equal(got[i], next);
        if (!n) sched_yield();
    }
    pthread_join(thread, NULL);
    assert_int_equal(ring_used(&s.ring), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capacity_is_a_power_of_two), cmocka_unit_test(full_says_no_and_keeps_what_it_has),
        cmocka_unit_test(wraps_many_times),           cmocka_unit_test(several_words_go_as_one),
        cmocka_unit_test(two_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
