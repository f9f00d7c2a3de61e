/* SPDX-License-Identifier: MIT
 * test_derive.c - quantities from made-up samples with known answers; what cannot be known stays unknown. */
#include <math.h>

#include "core/mem.h"
#include "course_fixture.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9 * (1 + fabs((double)(b))))

static void rates_and_shares(void **state)
{
    struct made m;
    made_init(&m);
    for (int i = 0; i < 2; i++) {
        made_put(&m, METRIC_CPU_BUSY, "", 3);
        made_put(&m, METRIC_CPU_BUSY, "cpu0", 0.75);
        made_put(&m, METRIC_CPU_COUNT, "", 4);
        made_put(&m, METRIC_PROC_CPU_USER, "", 0.5);
        made_put(&m, METRIC_PROC_CPU_SYSTEM, "", 0.1);
        made_put(&m, METRIC_MEM_TOTAL, "", 1000);
        made_put(&m, METRIC_MEM_AVAILABLE, "", 250);
        made_put(&m, METRIC_PROC_RSS, "", 100);
        made_put(&m, METRIC_CG_THROTTLED, "", 2.5);
        made_put(&m, METRIC_PROC_READ, "", 5e6);
        made_step(&m);
        if (i == 0) assert_near(made_value(&m, "cpu", ""), -1); /* seen once: no rate */
        assert_near(made_value(&m, "memory", ""), 0.75);
    }
    assert_near(made_value(&m, "cpu", ""), 0.75);
    assert_near(made_value(&m, "cpu", "cpu0"), 0.75); /* of one core */
    assert_near(made_value(&m, "process.cpu", ""), 0.6);
    assert_near(made_value(&m, "process.cpu.share", ""), 0.15);
    assert_near(made_value(&m, "process.waiting", ""), 0.4);
    assert_near(made_value(&m, "process.memory", ""), 0.1);
    assert_near(made_value(&m, "throttled", ""), 1); /* at most */
    assert_near(made_value(&m, "process.io.read", ""), 5e6);
    assert_near(made_value(&m, "process.io", ""), -1); /* writes are unknown: so is the sum */
    assert_near(made_value(&m, "no.such", ""), -1);
    made_release(&m);
    (void)state;
}

/* One thread is ready for no more than all of the time, whatever the clock said when its counter was read; more than a
 * tenth more is of threads that ended meanwhile. */
static void threads_have_no_more_than_all_time(void **state)
{
    struct made m;
    made_init(&m);
    for (int i = 0; i < 2; i++) {
        made_put(&m, METRIC_PROC_THREADS, "", 1);
        made_put(&m, METRIC_PROC_RUN_DELAY, "", 1.03);
        made_put(&m, METRIC_PROC_CPU_USER, "", 1.5);
        made_put(&m, METRIC_PROC_CPU_SYSTEM, "", 0.5);
        made_step(&m);
    }
    assert_near(made_value(&m, "process.ready", ""), 1);
    assert_near(made_value(&m, "process.cpu", ""), 2);
    made_release(&m);
    (void)state;
}

/* Two processors, both busy all the time with the program; the kernel counts in ticks of 10 ms, samples are taken every
 * 5 ms: no reading is above the truth, and none is lost from the sum. */
static void ticks_are_no_reading(void **state)
{
    struct made m;
    double user = 0, grown = 0;
    unsigned known = 0;
    size_t series;
    made_init(&m);
    m.step_ns = 5000000;
    for (int i = 0; i < 103; i++) {
        double tick = i && i % 2 == 0 ? 0.02 : 0;
        made_put(&m, METRIC_CPU_COUNT, "", 2);
        made_put(&m, METRIC_PROC_THREADS, "", 2);
        made_put(&m, METRIC_PROC_CPU_USER, "", tick / 0.005);
        made_put(&m, METRIC_PROC_CPU_SYSTEM, "", 0);
        made_put(&m, METRIC_CG_CPU, "", tick / 0.005);
        made_put(&m, METRIC_CPU_BUSY, "cpu0", tick / 2 / 0.005);
        user += tick;
        made_step(&m);
        double cpu = made_value(&m, "process.cpu", "");
        if (cpu < 0) continue; /* unknown: too short a time */
        known++;
        assert_true(cpu >= 1.75 && cpu <= 2);
        assert_true(made_value(&m, "cgroup.cpu", "") <= 2);
        assert_true(made_value(&m, "cpu.busy", "cpu0") <= 1);
        assert_true(made_value(&m, "process.cpu.share", "") <= 1);
    }
    assert_int_equal(known, 5); /* 510 ms, by 90 */
    assert_int_equal(series_find(&m.set, METRIC_PROC_CPU_USER, "", &series, NULL), TARE_OK);
    assert_true(derived_growth(m.deriver, series, &grown));
    assert_near(grown, user);
    made_release(&m);
    (void)state;
}

static void whole_of_labels(void **state)
{
    struct made m;
    made_init(&m);
    for (int i = 0; i < 2; i++) {
        made_put(&m, METRIC_DISK_BUSY, "sda", 0.2);
        made_put(&m, METRIC_DISK_BUSY, "sdb", 0.9);
        made_put(&m, METRIC_NET_RX, "eth0", 100);
        made_put(&m, METRIC_NET_RX, "eth1", 50);
        made_put(&m, METRIC_NET_RX, "lo", 1e9);
        made_put(&m, METRIC_NET_TX, "eth0", 7);
        made_put(&m, METRIC_NET_TX, "eth1", 0);
        made_put(&m, METRIC_NET_TX, "lo", 1e9);
        made_put(&m, METRIC_ENERGY, "package-0", 50);
        made_put(&m, METRIC_ENERGY, "package-0/core", 40);
        made_put(&m, METRIC_ENERGY, "package-0/dram", 5);
        made_put(&m, METRIC_CPU_BUSY, "cpu0", 1);
        made_put(&m, METRIC_CPU_BUSY, "cpu1", 0);
        made_put(&m, METRIC_CPU_COUNT, "", 2);
        made_put(&m, METRIC_GPU_MEM_USED, "gpu0", 10);
        made_put(&m, METRIC_GPU_MEM_TOTAL, "gpu0", 100);
        made_put(&m, METRIC_GPU_MEM_USED, "gpu1", 90);
        made_put(&m, METRIC_GPU_MEM_TOTAL, "gpu1", 100);
        made_put(&m, METRIC_GPU_THROTTLE, "gpu0", 0x4);
        made_put(&m, METRIC_GPU_THROTTLE, "gpu1", 0x40);
        made_step(&m);
    }
    assert_near(made_value(&m, "disk.busy", ""), 0.9);
    assert_near(made_value(&m, "disk.busy", "sda"), 0.2);
    assert_near(made_value(&m, "net.rx", ""), 150); /* without loopback */
    assert_near(made_value(&m, "net", ""), 157);
    assert_near(made_value(&m, "power", ""), 55); /* the core is in its package */
    assert_near(made_value(&m, "cpu", ""), 0.5);
    assert_near(made_value(&m, "gpu.memory", ""), 0.9);
    assert_near(made_value(&m, "gpu.memory", "gpu0"), 0.1);
    assert_near(made_value(&m, "gpu.throttled", "gpu0"), 0); /* only its power limit */
    assert_near(made_value(&m, "gpu.throttled", ""), 1);
    assert_near(made_value(&m, "gpu.power_capped", "gpu0"), 1);
    made_release(&m);
    (void)state;
}

static void counters_that_go_back_or_pause(void **state)
{
    struct made m;
    double v;
    made_init(&m);
    made_put(&m, METRIC_SWAP_IN, "", 10);
    made_put(&m, METRIC_SWAP_OUT, "", 0);
    made_step(&m);
    made_step(&m); /* nothing was known */
    assert_near(made_value(&m, "swap", ""), -1);
    made_put(&m, METRIC_SWAP_IN, "", 20); /* 2 over the two steps since it was known */
    made_put(&m, METRIC_SWAP_OUT, "", 0);
    made_step(&m);
    assert_near(made_value(&m, "swap", ""), 10);
    assert_true(derived_growth(m.deriver, 0, &v));
    assert_near(v, 2);
    made_put(&m, METRIC_SWAP_IN, "", -50); /* reset */
    made_put(&m, METRIC_SWAP_OUT, "", 0);
    made_step(&m);
    assert_near(made_value(&m, "swap", ""), -1);
    assert_false(derived_growth(m.deriver, 0, &v));
    made_release(&m);
    (void)state;
}

static void averages_per_event(void **state)
{
    struct made m;
    made_init(&m);
    for (int i = 0; i < 3; i++) {
        double busy = i == 2 ? 0 : 1;
        made_put(&m, METRIC_DISK_READ_TIME, "sda", 0.3 * busy);
        made_put(&m, METRIC_DISK_WRITE_TIME, "sda", 0.1 * busy);
        made_put(&m, METRIC_DISK_READS, "sda", 30 * busy);
        made_put(&m, METRIC_DISK_WRITES, "sda", 10 * busy);
        made_step(&m);
        if (i == 1) assert_near(made_value(&m, "disk.latency", ""), 0.01);
    }
    assert_near(made_value(&m, "disk.latency", ""), -1); /* none completed: no time, not 0 */
    made_release(&m);
    (void)state;
}

static void units_and_names(void **state)
{
    assert_string_equal(derived_unit("cpu"), "1");
    assert_string_equal(derived_unit("process.io.read"), "B/s");
    assert_string_equal(derived_unit("energy"), "W");
    assert_string_equal(derived_unit("disk.busy"), "1");
    assert_string_equal(derived_unit("process.memory.rss"), "B");
    assert_null(derived_unit("nothing"));
    assert_string_equal(derived_suggest("memry"), "memory");
    for (size_t i = 0; derived_table[i].name; i++) { /* a derived name must not hide a metric */
        assert_int_equal(metric_find(derived_table[i].name), METRIC_COUNT);
        assert_int_equal(derived_index(derived_table[i].name), i);
    }
    (void)state;
}

/* The course keeps the means when it joins its steps, and stays bounded. */
/* Known at every third sample alone: the rate holds for all three steps, so that shares of time are right. */
static void a_counter_that_is_read_seldom(void **state)
{
    struct made m;
    struct course_condition busy = {COURSE_IO, '>', 0.99e6};
    made_init(&m);
    for (int t = 0; t <= 90; t++) {
        if (t % 3 == 0) made_put(&m, METRIC_PROC_READ, "", 3e6);
        if (t % 3 == 0) made_put(&m, METRIC_PROC_WRITE, "", 0);
        made_step(&m);
    }
    assert_int_equal(m.course.steps.n, 90);
    for (size_t i = 0; i < 90; i++) assert_true(fabs(m.course.steps.items[i].value[COURSE_IO] - 1e6) < 1);
    assert_true(fabs(course_when(&m.course, &busy, 1).share - 1) < 1e-9);
    made_release(&m);
    (void)state;
}

/* Two processors, a step that was read 34 ms late: parts of the time make no more than all of it. */
static void parts_of_processor_time(void **state)
{
    struct made m;
    double busy, user, system, pressure;
    made_init(&m);
    for (int t = 0; t < 3; t++) {
        made_put(&m, METRIC_CPU_COUNT, "", 2);
        made_put(&m, METRIC_CPU_BUSY, "", 2.068);
        made_put(&m, METRIC_CPU_USER, "", 1.668);
        made_put(&m, METRIC_CPU_SYSTEM, "", 0.4);
        made_put(&m, METRIC_CPU_ALL, "", 2.068);
        made_put(&m, METRIC_DISK_BUSY, "sda", 1.02); /* in ticks of 4 ms */
        made_step(&m);
    }
    assert_true(derived_value(m.deriver, "cpu", "", &busy) &&
                derived_value(m.deriver, "cpu.user.share", "", &user));
    assert_true(derived_value(m.deriver, "cpu.system.share", "", &system));
    assert_true(derived_value(m.deriver, "disk.busy", "", &pressure));
    assert_true(fabs(busy - 1) < 1e-9 && fabs(user + system - 1) < 1e-9 && pressure == 1);
    made_release(&m);
    (void)state;
}

static void long_courses_are_joined(void **state)
{
    struct made m;
    made_init(&m);
    for (int i = 0; i <= 3 * COURSE_STEPS_MAX; i++) {
        made_put(&m, METRIC_PROC_RSS, "", i % 2 ? 100 : 300);
        made_step(&m);
    }
    assert_true(m.course.steps.n <= COURSE_STEPS_MAX && m.course.steps.n > COURSE_STEPS_MAX / 4);
    assert_near(course_mean(&m.course, COURSE_RSS, 0, m.course.steps.n), 200);
    assert_near(course_seconds(&m.course, m.course.steps.n), 0.1 * 3 * COURSE_STEPS_MAX);
    for (size_t i = 1; i < m.course.steps.n; i++)
        assert_int_equal(m.course.steps.items[i].start_ns, m.course.steps.items[i - 1].end_ns);
    made_release(&m);
    (void)state;
}

static tare_status some_steps(struct made *m)
{
    struct deriver *d = NULL;
    struct course c = COURSE_INIT;
    tare_error err = TARE_ERROR_INIT;
    tare_status s = deriver_new(&d, &err);
    for (int i = 0; i < 3 && s == TARE_OK; i++) {
        m->now.at_ns += 1000;
        s = deriver_feed(d, &m->set, &m->now, &err);
        if (s == TARE_OK) s = course_feed(&c, d, m->now.at_ns, &err);
    }
    if (s != TARE_OK) assert_string_not_equal(err.text, "");
    deriver_free(d);
    course_release(&c);
    return s;
}

static void without_memory(void **state)
{
    struct made m;
    made_init(&m);
    made_put(&m, METRIC_CPU_BUSY, "", 1);
    made_put(&m, METRIC_DISK_BUSY, "sda", 1);
    long before = mem_live_blocks();
    tare_status s = TARE_NOMEM;
    for (long n = 0; s != TARE_OK && n < 100; n++) {
        mem_fail_after(n);
        s = some_steps(&m);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), before);
        if (s != TARE_OK) assert_int_equal(s, TARE_NOMEM);
    }
    assert_int_equal(s, TARE_OK);
    made_release(&m);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_and_shares),
        cmocka_unit_test(threads_have_no_more_than_all_time),
        cmocka_unit_test(ticks_are_no_reading),
        cmocka_unit_test(whole_of_labels),
        cmocka_unit_test(counters_that_go_back_or_pause),
        cmocka_unit_test(averages_per_event),
        cmocka_unit_test(units_and_names),
        cmocka_unit_test(a_counter_that_is_read_seldom),
        cmocka_unit_test(parts_of_processor_time),
        cmocka_unit_test(long_courses_are_joined),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
