/* SPDX-License-Identifier: MIT
 * test_spill_sort.c - the same order whether items fit into memory or go through the file; full disks and no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "core/spill_sort.h"

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static tare_status sort_numbers(size_t n, size_t block, const char *folder, tare_error *err)
{
    struct spill_sort *s;
    struct spill_options o = {sizeof(uint64_t), block, by_value, folder};
    tare_status status = spill_sort_new(&s, &o, err);
    if (status < 0) return status;
    for (uint64_t i = 0; i < n && status == TARE_OK; i++) {
        uint64_t v = i * 7919 % n; /* each once: n is no multiple of that prime */
        status = spill_sort_add(s, &v, err);
    }
    bool any = true;
    for (uint64_t i = 0, v; status == TARE_OK; i++) {
        status = spill_sort_next(s, &v, &any, err);
        if (status < 0 || !any) {
            if (status == TARE_OK) assert_int_equal(i, n);
            break;
        }
        assert_int_equal(v, i);
    }
    spill_sort_free(s);
    return status;
}

static void in_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 99, 100, 101, 1000, 50000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tare_error err = TARE_ERROR_INIT;
        if (sort_numbers(sizes[i], 100, "/tmp", &err) < 0) fail_msg("%s", err.text);
        if (sort_numbers(sizes[i], 100000, "/no/such/folder", &err) < 0) fail_msg("%s", err.text);
    }
}

static void no_room_for_the_file(void **state)
{
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(sort_numbers(1000, 100, "/no/such/folder", &err), TARE_IO);
    assert_non_null(strstr(err.text, "/no/such/folder: cannot make a file for sorting"));
}

static void memory_may_run_out(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        tare_error err = TARE_ERROR_INIT;
        mem_fail_after(n);
        tare_status s = sort_numbers(1000, 100, "/tmp", &err);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(no_room_for_the_file),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
