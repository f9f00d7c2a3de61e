/* SPDX-License-Identifier: MIT
 * test_alert.c - rules as read; when they fire and clear, each once. */
#include <math.h>
#include <string.h>

#include "analyze/watch/alert.h"
#include "core/mem.h"
#include "course_fixture.h"

static void rules_as_read(void **state)
{
    struct alert_rule r;
    assert_int_equal(alert_parse(&r, "process.memory.rss > 4GB for 1m30s clear 3GB", NULL), TARE_OK);
    assert_string_equal(r.when.name, "process.memory.rss");
    assert_int_equal(r.when.op, '>');
    assert_true(r.when.threshold == 4e9 && r.clear == 3e9);
    assert_int_equal(r.for_ns, UINT64_C(90000000000));
    assert_int_equal(alert_parse(&r, "gpu<70% for 10s while process.waiting>50%", NULL), TARE_OK);
    assert_true(fabs(r.when.threshold - 0.7) < 1e-12 && fabs(r.clear - 0.735) < 1e-12);
    assert_string_equal(r.also.name, "process.waiting");
    assert_true(r.also.threshold == 0.5);
    assert_true(*r.action);
    assert_int_equal(alert_parse(&r, "disk.busy[nvme0n1]>0.8", NULL), TARE_OK);
    assert_string_equal(r.when.label, "nvme0n1");
    assert_int_equal(alert_parse(&r, "disk.latency>20ms", NULL), TARE_OK);
    assert_true(fabs(r.when.threshold - 0.02) < 1e-12);
    assert_int_equal(alert_parse(&r, "net>100MB/s", NULL), TARE_OK);
    assert_true(r.when.threshold == 1e8);
    assert_int_equal(alert_parse(&r, "cpu.frequency<1.2GHz", NULL), TARE_OK);
    assert_true(r.when.threshold == 1.2e9);
    assert_int_equal(alert_parse(&r, "temperature>85C", NULL), TARE_OK);
    for (size_t i = 0; alert_defaults[i]; i++) {
        assert_int_equal(alert_parse(&r, alert_defaults[i], NULL), TARE_OK);
        assert_string_not_equal(r.action, "");
    }
    (void)state;
}

static void rules_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "a quantity was expected"},
        {"cpu", "expected > or <"},
        {"cpu>=80%", "at '=80%'"},
        {"cpu>-1", "at '-1'"},
        {"cpu>inf", "at 'inf'"},
        {"cpu>0x10", "at '0x10'"},
        {"memory>80% for ever", "at 'ever'"},
        {"memory>80% clear 81%", "it would clear where it fires"},
        {"memroy>80%", "did you mean memory?"},
        {"disk.busy[]>80%", "expected a label"},
        {"gpu<70% while", "at its end"},
        {"cpu>80% for 1s for 1s", "given twice"},
        {"slo.burn>2", "known to a server only"},
        {"cpu>80% while regression>5%", "'regression' is known to a server only"},
    };
    struct alert_rule r;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tare_error err = TARE_ERROR_INIT;
        assert_int_equal(alert_parse(&r, bad[i].text, &err), TARE_INVALID);
        if (!strstr(err.text, bad[i].says)) fail_msg("%s: said '%s'", bad[i].text, err.text);
    }
    char many[400];
    memset(many, 'a', sizeof many - 1);
    many[sizeof many - 1] = 0;
    assert_int_equal(alert_parse(&r, many, NULL), TARE_INVALID);
    (void)state;
}

static void rules_of_a_server(void **state)
{
    struct alert_rule r;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(alert_parse_served(&r, "slo.burn[shop]>14.4 for 2m", NULL), TARE_OK);
    assert_string_equal(r.when.label, "shop");
    assert_true(r.when.threshold == 14.4 && r.when.quantity == DERIVED_NONE && r.for_ns == 120000000000);
    assert_int_equal(alert_parse_served(&r, "regression[latency.p50]>5%", NULL), TARE_OK);
    assert_true(r.when.threshold == 0.05);
    assert_int_equal(alert_parse_served(&r, "cpu>80%", NULL), TARE_OK);
    assert_int_equal(alert_parse_served(&r, "slo.burn<2", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "use >"));
    assert_int_equal(alert_parse_served(&r, "slo.burn>2 while cpu>80%", &err), TARE_INVALID);
    assert_int_equal(alert_parse_served(&r, "cpu>80% while slo.burn>2", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "while does not go with slo.burn"));
    (void)state;
}

/* What fired before a restart does not fire again, and clears. */
static void resumed_rules_go_on(void **state)
{
    struct alert_rule r;
    struct alerts *a;
    assert_int_equal(alert_parse_served(&r, "slo.burn>2", NULL), TARE_OK);
    assert_int_equal(alerts_new(&a, &r, 1, NULL), TARE_OK);
    alerts_resume(a, 0, true);
    assert_true(alerts_judged(a, 0));
    assert_int_equal(alerts_tell(a, 0, 3, 1), 0);
    assert_int_equal(alerts_tell(a, 0, 1, 2), -1);
    assert_int_equal(alerts_tell(a, 0, 3, 3), 1);
    alerts_free(a);
    (void)state;
}

/* Feeds memory in use per step of 100 ms; 'F' and 'C' at the steps where it fired and cleared, '.' elsewhere. A value
 * below 0 is unknown. */
static void watch(const char *rule, const double *memory, const double *gpu, size_t n, char *out)
{
    struct made m;
    struct alert_rule r;
    struct alerts *a = NULL;
    struct alert_events events = {VEC_INIT};
    made_init(&m);
    assert_int_equal(alert_parse(&r, rule, NULL), TARE_OK);
    assert_int_equal(alerts_new(&a, &r, 1, NULL), TARE_OK);
    for (size_t i = 0; i < n; i++) {
        made_put(&m, METRIC_MEM_TOTAL, "", 100);
        if (memory[i] >= 0) made_put(&m, METRIC_MEM_AVAILABLE, "", 100 - memory[i]);
        if (gpu && gpu[i] >= 0) made_put(&m, METRIC_GPU_UTIL, "gpu0", gpu[i]);
        uint64_t at = m.at_ns;
        made_step(&m);
        assert_int_equal(alerts_feed(a, m.deriver, at, &events, NULL), TARE_OK);
        assert_true(events.items.n <= 1);
        out[i] = '.';
        if (events.items.n) out[i] = events.items.items[0].fired ? 'F' : 'C';
        vec_clear(&events.items);
    }
    out[n] = 0;
    vec_release(&events.items);
    alerts_free(a);
    made_release(&m);
}

static void fires_once_clears_once(void **state)
{
    char out[32];
    const double plain[] = {50, 81, 90, 79, 77, 76, 75, 85, 10};
    watch("memory>80%", plain, NULL, 9, out);
    assert_string_equal(out, ".F...C.FC"); /* 79 and 77 are inside the hysteresis: 80 % less 5 % of it */
    watch("memory>80% clear 50%", plain, NULL, 9, out);
    assert_string_equal(out, ".F......C");
    const double low[] = {10, 90, 10, 10, 90};
    watch("memory<50%", low, NULL, 5, out);
    assert_string_equal(out, "FCF.C");
    (void)state;
}

static void holds_for_a_time(void **state)
{
    char out[32];
    const double broken[] = {90, 90, 10, 90, 90, 90, 90, 10, 10, 10, 10, 90};
    watch("memory>80% for 300ms", broken, NULL, 12, out);
    assert_string_equal(out, "......F...C."); /* back for as long as it took to fire */
    const double wavering[] = {90, 90, 90, 90, 10, 90, 10, 10, 90, 10, 10, 10, 10};
    watch("memory>80% for 300ms", wavering, NULL, 13, out);
    assert_string_equal(out, "...F........C");
    const double blind[] = {90, -1, -1, 90, -1, 10, -1, -1, 10};
    watch("memory>80% for 300ms", blind, NULL, 9, out);
    assert_string_equal(out, "...F....C"); /* unknown neither breaks it nor clears it */
    (void)state;
}

/* A machine whose two processors are busy: is it this program? */
static const char *advice_at(double own, double *part)
{
    struct made m;
    struct alert_rule r;
    struct alerts *a = NULL;
    struct alert_events events = {VEC_INIT};
    const char *action = NULL;
    made_init(&m);
    assert_int_equal(alert_parse(&r, "cpu>80%", NULL), TARE_OK);
    assert_int_equal(alerts_new(&a, &r, 1, NULL), TARE_OK);
    for (int t = 0; t < 3; t++) {
        made_put(&m, METRIC_CPU_COUNT, "", 2);
        made_put(&m, METRIC_CPU_BUSY, "", 2);
        if (own >= 0) made_put(&m, METRIC_PROC_CPU_USER, "", own);
        if (own >= 0) made_put(&m, METRIC_PROC_CPU_SYSTEM, "", 0);
        uint64_t at = m.at_ns;
        made_step(&m);
        assert_int_equal(alerts_feed(a, m.deriver, at, &events, NULL), TARE_OK);
    }
    assert_int_equal(events.items.n, 1);
    action = events.items.items[0].action;
    *part = events.items.items[0].own;
    vec_release(&events.items);
    alerts_free(a);
    made_release(&m);
    return action;
}

static void who_is_not_it_is_not_blamed(void **state)
{
    double part;
    assert_non_null(strstr(advice_at(0.26, &part), "other programs take the processors"));
    assert_true(fabs(part - 0.13) < 1e-9);
    assert_non_null(strstr(advice_at(1.9, &part), "fewer workers"));
    assert_true(fabs(part - 0.95) < 1e-9);
    assert_non_null(strstr(advice_at(-1, &part), "fewer workers")); /* nobody is watched */
    assert_true(isnan(part));
    (void)state;
}

static void second_condition(void **state)
{
    char out[32];
    const double memory[] = {90, 90, 90, 90, 90}, gpu[] = {0.9, 0.1, 0.1, 0.9, -1};
    watch("memory>80% while gpu<50%", memory, gpu, 5, out);
    assert_string_equal(out, ".F.C.");
    watch("memory>80% while gpu<50%", memory, NULL, 5, out);
    assert_string_equal(out, "....."); /* unknown does not hold */
    (void)state;
}

static void without_memory(void **state)
{
    struct alert_rule r;
    struct alerts *a = NULL;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(alert_parse(&r, "memory>80%", NULL), TARE_OK);
    mem_fail_after(0);
    assert_int_equal(alerts_new(&a, &r, 1, &err), TARE_NOMEM);
    mem_fail_after(-1);
    alerts_free(NULL);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_as_read),    cmocka_unit_test(rules_refused),
    cmocka_unit_test(rules_of_a_server),
    cmocka_unit_test(resumed_rules_go_on),
        cmocka_unit_test(fires_once_clears_once), cmocka_unit_test(holds_for_a_time),
        cmocka_unit_test(who_is_not_it_is_not_blamed),
        cmocka_unit_test(second_condition), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
