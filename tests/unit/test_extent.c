/* SPDX-License-Identifier: MIT
 * test_extent.c - an extent lives many lives while another thread copies it: a copy is of one life, or is thrown away.
 * What it can find depends on the processor (and on TSan, which looks at the order that the program asks for). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/extent.h"

enum { SLOTS = 64, COPIES_WANTED = 2000, LIVES_MOST = 3000000 };

struct shared {
    struct extent x;
    uint64_t slot[SLOTS];
    uint64_t copies, torn;
    bool done;
};

static void one_life(struct shared *s, uint64_t life)
{
    extent_retire(&s->x);
    for (int i = 0; i < SLOTS; i++) __atomic_store_n(&s->slot[i], 0, __ATOMIC_RELAXED); /* in any order */
    __atomic_store_n(&s->x.seq, life, __ATOMIC_RELEASE);
    for (int i = 0; i < SLOTS; i++) __atomic_store_n(&s->slot[i], life, __ATOMIC_RELEASE);
}

/* As fold.c does. An event that is not yet there reads as 0; one of another life is what must never be. Within a life
 * events come one after the other, so nothing follows a 0. */
static void copy_once(struct shared *s)
{
    uint64_t copy[SLOTS], seq = __atomic_load_n(&s->x.seq, __ATOMIC_ACQUIRE);
    bool torn = false;
    if (!seq) return;
    for (int i = SLOTS - 1; i >= 0; i--) copy[i] = __atomic_load_n(&s->slot[i], __ATOMIC_ACQUIRE);
    if (!extent_lives_on(&s->x, seq)) return;
    for (int i = 0; i < SLOTS; i++)
        torn = torn || (copy[i] && copy[i] != seq) || (i && copy[i] && !copy[i - 1]);
    s->torn += torn;
    __atomic_store_n(&s->copies, s->copies + 1, __ATOMIC_RELAXED);
}

static void *reader(void *arg)
{
    struct shared *s = arg;
    while (!__atomic_load_n(&s->done, __ATOMIC_ACQUIRE)) copy_once(s);
    return NULL;
}

static void a_copy_is_of_one_life(void **state)
{
    (void)state;
    static struct shared s;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, reader, &s), 0);
    for (uint64_t life = 1; life < LIVES_MOST; life++) {
        one_life(&s, life);
        if (life % 64 == 0) sched_yield();
        if (__atomic_load_n(&s.copies, __ATOMIC_RELAXED) >= COPIES_WANTED) break;
    }
    __atomic_store_n(&s.done, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(s.copies > 0);
    assert_int_equal(s.torn, 0);
}

/* The check itself finds a copy that is of two lives. */
static void a_torn_copy_is_found(void **state)
{
    (void)state;
    struct shared s = {.x.seq = 7};
    copy_once(&s);
    assert_int_equal(s.copies, 1);
    assert_int_equal(s.torn, 0);
    s.slot[0] = 7;
    s.slot[2] = 7; /* a hole: the bytes of slot 1 are already cleared */
    copy_once(&s);
    assert_int_equal(s.torn, 1);
    s.slot[1] = 8;
    copy_once(&s);
    assert_int_equal(s.torn, 2);
    assert_false(extent_lives_on(&s.x, 6));
    extent_retire(&s.x);
    copy_once(&s);
    assert_int_equal(s.copies, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_of_one_life),
        cmocka_unit_test(a_torn_copy_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
