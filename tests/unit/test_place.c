/* SPDX-License-Identifier: MIT
 * test_place.c - which processor a slice is moved to, by a made-up /proc/stat; and that the thread may go where it
 * pleases afterwards. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/place.h"
#include "core/mem.h"

static char root[64];
static cpu_set_t at_first;
static int cpus[CPU_SETSIZE], n_cpus;

static int set_up(void **state)
{
    (void)state;
    char path[128];
    snprintf(root, sizeof root, "/tmp/test_place.XXXXXX");
    if (!mkdtemp(root)) return -1;
    snprintf(path, sizeof path, "%s/proc", root);
    n_cpus = 0;
    for (int i = sched_getaffinity(0, sizeof at_first, &at_first); i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &at_first)) cpus[n_cpus++] = i;
    return mkdir(path, 0755);
}

static int tear_down(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    sched_setaffinity(0, sizeof at_first, &at_first);
    return system(command) != 0 || mem_live_blocks() != 0;
}

/* Processor number i of those we may use has been idle for idle[i] of `all` ticks since boot. */
static void write_stat(const int *idle, int all)
{
    char path[128];
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "cpu  1 2 3 4 5 6 7 8 0 0\n");
    for (int i = 0; i < n_cpus; i++)
        fprintf(f, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", cpus[i], all - (i < 2 ? idle[i] : 0),
                i < 2 ? idle[i] : 0);
    fprintf(f, "intr 1 2 3\n");
    fclose(f);
}

static void test_moves_to_the_idle_one(void **state)
{
    (void)state;
    if (n_cpus < 2) skip();
    struct places *p = places_open(root, 1);
    write_stat((int[]){100, 100}, 1000);
    assert_int_equal(places_move(p, 0), -1); /* the first look */
    write_stat((int[]){100, 110}, 1010);
    assert_int_equal(places_move(p, 0), cpus[1]);
    write_stat((int[]){109, 111}, 1020);
    assert_int_equal(places_move(p, 0), cpus[0]);
    cpu_set_t now;
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &at_first));
    places_close(p);
}

static void test_stays_where_none_is_idle(void **state)
{
    (void)state;
    if (n_cpus < 2) skip();
    struct places *p = places_open(root, 1);
    write_stat((int[]){100, 100}, 1000);
    places_move(p, 0);
    write_stat((int[]){105, 107}, 1010);
    assert_int_equal(places_move(p, 0), -1);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[0], &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0); /* the user has pinned it */
    write_stat((int[]){115, 117}, 1020);
    assert_int_equal(places_move(p, 0), -1);
    places_close(p);
}

/* A small core, or one of another node, is another machine. */
static void test_stays_among_its_like(void **state)
{
    (void)state;
    char command[512];
    if (n_cpus < 2) skip();
    struct places *p = places_open(root, 1);
    write_stat((int[]){100, 100}, 1000);
    places_move(p, 0);
    for (int i = 0; i < 2; i++) {
        snprintf(
            command, sizeof command,
            "mkdir -p %s/sys/devices/system/cpu/cpu%d && echo %d >%s/sys/devices/system/cpu/cpu%d/cpu_capacity",
            root, cpus[i], i ? 512 : 1024, root, cpus[i]);
        assert_int_equal(system(command), 0);
    }
    write_stat((int[]){110, 110}, 1010);
    int first = places_move(p, 0);
    for (int i = 2; i < 20; i++) {
        write_stat((int[]){100 + 10 * i, 100 + 10 * i}, 1000 + 10 * i);
        assert_int_equal(places_move(p, 0), first);
    }
    places_close(p);
}

static void test_without_files(void **state)
{
    (void)state;
    struct places *p = places_open(root, 1);
    assert_int_equal(places_move(p, 0), -1);
    places_close(p);
    assert_int_equal(places_move(NULL, 0), -1);
    places_close(NULL);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_moves_to_the_idle_one),
        T(test_stays_where_none_is_idle),
        T(test_stays_among_its_like),
        T(test_without_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
