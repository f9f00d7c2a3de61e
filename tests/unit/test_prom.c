/* SPDX-License-Identifier: MIT
 * test_prom.c - the Prometheus text: exact for a made-up sample, and the format's rules for every metric there is. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "report/prom.h"

struct made {
    struct series_set set;
    struct sample now;
};

static void put(struct made *m, enum metric_id metric, const char *label, double value)
{
    size_t at;
    assert_int_equal(series_find(&m->set, metric, label, &at, NULL), TARE_OK);
    assert_int_equal(sample_set(&m->now, at, value, NULL), TARE_OK);
}

static void release(struct made *m)
{
    series_set_release(&m->set);
    sample_release(&m->now);
}

static void test_golden(void **state)
{
    (void)state;
    struct made m = {SERIES_SET_INIT, SAMPLE_INIT};
    struct buf out = BUF_INIT;
    put(&m, METRIC_NET_RX, "eth0", 1234567890123.0);
    put(&m, METRIC_PROC_CPU_USER, "", 1.25);
    put(&m, METRIC_PROC_CPU_USER, "pid 7 x", 1); /* the whole is given, not its parts */
    put(&m, METRIC_CPU_BUSY, "", 3);             /* the parts are given, not the whole */
    put(&m, METRIC_CPU_BUSY, "cpu0", 1);
    put(&m, METRIC_CPU_BUSY, "cpu1", 2);
    put(&m, METRIC_CPU_COUNT, "", 2);
    put(&m, METRIC_MEM_TOTAL, "", 8e9);
    put(&m, METRIC_LOAD1, "", NAN); /* unknown: not there */
    put(&m, METRIC_TEMPERATURE, "a\\b\"c\nd\xff", 41.5);
    prom_write(&out, &m.set, &m.now);
    assert_string_equal(
        out.data,
        "# HELP tare_process_cpu_user_seconds_total processor time in user mode, ended children included\n"
        "# TYPE tare_process_cpu_user_seconds_total counter\n"
        "tare_process_cpu_user_seconds_total 1.25\n"
        "# HELP tare_cpu_busy_seconds_total time processors worked; label: one core\n"
        "# TYPE tare_cpu_busy_seconds_total counter\n"
        "tare_cpu_busy_seconds_total{cpu=\"cpu0\"} 1\n"
        "tare_cpu_busy_seconds_total{cpu=\"cpu1\"} 2\n"
        "# HELP tare_cpus processors online\n"
        "# TYPE tare_cpus gauge\n"
        "tare_cpus 2\n"
        "# HELP tare_memory_total_bytes memory of the machine\n"
        "# TYPE tare_memory_total_bytes gauge\n"
        "tare_memory_total_bytes 8000000000\n"
        "# HELP tare_net_rx_bytes_total bytes received; label: an interface\n"
        "# TYPE tare_net_rx_bytes_total counter\n"
        "tare_net_rx_bytes_total{interface=\"eth0\"} 1234567890123\n"
        "# HELP tare_temperature_celsius label: a sensor\n"
        "# TYPE tare_temperature_celsius gauge\n"
        "tare_temperature_celsius{sensor=\"a\\\\b\\\"c\\nd\xEF\xBF\xBD\"} 41.5\n");
    buf_release(&out);
    release(&m);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* The rules that `promtool check metrics` knows, for every metric of the table. */
static void test_names(void **state)
{
    (void)state;
    static const char *const reserved[] = {"_count", "_sum", "_bucket", "_info"};
    static char names[METRIC_COUNT][PROM_NAME_MAX];
    for (enum metric_id m = 0; m < METRIC_COUNT; m++) {
        char *name = names[m];
        prom_name(m, name);
        assert_true(strncmp(name, "tare_", 5) == 0 && strlen(name) < PROM_NAME_MAX - 1);
        for (const char *c = name; *c; c++)
            assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_');
        assert_null(strstr(name, "__"));
        if (ends_with(name, "_total") != (metric_table[m].kind == METRIC_COUNTER))
            fail_msg("%s: _total", name);
        for (size_t i = 0; i < 4; i++)
            if (ends_with(name, reserved[i])) fail_msg("%s: a reserved ending", name);
        if (strcmp(metric_table[m].unit, "1") != 0 && !strstr(name, "_seconds") && !strstr(name, "_bytes") &&
            !strstr(name, "_watts") && !strstr(name, "_joules") && !strstr(name, "_celsius") &&
            !strstr(name, "_hertz"))
            fail_msg("%s: no unit", name);
        for (enum metric_id k = 0; k < m; k++) assert_string_not_equal(name, names[k]);
        assert_true(metric_table[m].help[0] && !strchr(metric_table[m].help, '\n'));
    }
}

static void test_infinite(void **state)
{
    (void)state;
    struct made m = {SERIES_SET_INIT, SAMPLE_INIT};
    struct buf out = BUF_INIT;
    put(&m, METRIC_LOAD1, "", INFINITY);
    prom_write(&out, &m.set, &m.now);
    assert_true(ends_with(out.data, "\ntare_load_1m +Inf\n"));
    buf_release(&out);
    release(&m);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct made m = {SERIES_SET_INIT, SAMPLE_INIT};
    put(&m, METRIC_TEMPERATURE, "label", 1);
    long live = mem_live_blocks();
    for (long n = 0;; n++) {
        struct buf out = BUF_INIT;
        assert_true(n < 50);
        mem_fail_after(n);
        prom_write(&out, &m.set, &m.now);
        mem_fail_after(-1);
        bool failed = out.failed;
        if (!failed) assert_true(ends_with(out.data, "{sensor=\"label\"} 1\n"));
        buf_release(&out);
        assert_int_equal(mem_live_blocks(), live);
        if (!failed) break;
    }
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
