/* SPDX-License-Identifier: MIT
 * test_ort.c - loading a runtime: the fake one in many versions, files that are none. A slot beyond the pretended
 * version ends the process, so that passing these tests means that none is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "model/onnx/onnx.h"
#include "subject/ort.h"
#include "subject_fixture.h"

static void opens_with_its_newest_interface(void **state)
{
    (void)state;
    struct ort *o = NULL;
    tare_error err = TARE_ERROR_INIT;
    if (ort_open(&o, fake_ort(), &err) < 0) fail_msg("%s", err.text);
    assert_string_equal(o->version, "1.99.0");
    assert_int_equal(o->minor, 99);
    assert_int_equal(o->api, ORT_API_MAX); /* not 99: later slots are unknown to us */
    assert_int_equal(o->path[0], '/');
    assert_non_null(o->call.AllocatorGetStats);
    char log[200];
    ort_log_take(log, sizeof log); /* the fake warns at the start: kept, not printed */
    assert_non_null(strstr(log, "warns for a test"));
    ort_log_take(log, sizeof log);
    assert_string_equal(log, "");
    ort_close(o);
    ort_close(NULL);
    assert_int_equal(mem_live_blocks(), 0);
}

/* Functions newer than the library are NULL, all others there. */
static void slots_follow_the_version(void **state)
{
    (void)state;
    for (int minor = ORT_MINOR_MIN; minor <= 31; minor++) {
        char version[16];
        struct ort *o = NULL;
        tare_error err = TARE_ERROR_INIT;
        snprintf(version, sizeof version, "1.%d.2", minor);
        setenv("FAKE_ORT_VERSION", version, 1);
        if (ort_open(&o, fake_ort(), &err) < 0) fail_msg("%s: %s", version, err.text);
        assert_int_equal(o->api, minor < 30 ? minor : 30);
#define X(name, slot, since, result, arguments) \
    if ((o->call.name != NULL) != (since <= minor)) fail_msg("1.%d: %s", minor, #name);
        ORT_SLOTS(X)
#undef X
        ort_close(o);
    }
    unsetenv("FAKE_ORT_VERSION");
}

static void too_old_or_odd_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *version, *says;
    } rows[] = {
        {"1.7.2", "1.7.2 is too old, 1.8 or newer is needed"},
        {"1.0.0", "too old"},
        {"2.0.0", "'2.0.0'"},
        {"nonsense", "'nonsense'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct ort *o = NULL;
        tare_error err = TARE_ERROR_INIT;
        setenv("FAKE_ORT_VERSION", rows[i].version, 1);
        assert_int_equal(ort_open(&o, fake_ort(), &err), TARE_UNSUPPORTED);
        if (!strstr(err.text, rows[i].says) || !strstr(err.text, FAKE_ORT_FILE)) fail_msg("%s", err.text);
    }
    unsetenv("FAKE_ORT_VERSION");
    assert_int_equal(mem_live_blocks(), 0);
}

static void what_is_no_runtime(void **state)
{
    (void)state;
    struct ort *o = NULL;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(ort_open(&o, in_scratch("missing.so"), &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "cannot open shared object"));
    const char *text = scratch_text("text.so", "not a library");
    assert_int_equal(ort_open(&o, text, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "text.so"));
    assert_int_equal(ort_open(&o, "libm.so.6", &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "OrtGetApiBase"));
    assert_int_equal(mem_live_blocks(), 0);
}

static void versions(void **state)
{
    (void)state;
    assert_int_equal(ort_version_minor("1.23.2"), 23);
    assert_int_equal(ort_version_minor("1.8"), 8);
    assert_int_equal(ort_version_minor("1.24.0-dev"), 24);
    assert_int_equal(ort_version_minor("1."), -1);
    assert_int_equal(ort_version_minor("1.x"), -1);
    assert_int_equal(ort_version_minor("12.3"), -1);
    assert_int_equal(ort_version_minor("1.99999999999999"), -1);
    assert_int_equal(ort_version_minor(""), -1);
}

static void element_types_differ_from_24_on(void **state)
{
    (void)state;
    for (int t = 0; t <= ONNX_INT2; t++) assert_int_equal(ort_type_to_onnx(ort_type_from_onnx(t)), t);
    assert_int_equal(ort_type_from_onnx(ONNX_UINT2), 24);
    assert_int_equal(ort_type_from_onnx(ONNX_INT2), 25);
    assert_int_equal(ort_type_from_onnx(ONNX_FLOAT8E8M0), 26);
    assert_int_equal(ort_type_to_onnx(27), ONNX_UNDEFINED);
    assert_int_equal(ort_type_from_onnx(27), ONNX_UNDEFINED);
    assert_int_equal(ort_type_to_onnx(-1), ONNX_UNDEFINED);
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct ort *o = NULL;
        mem_fail_after(n);
        tare_status s = ort_open(&o, fake_ort(), NULL);
        mem_fail_after(-1);
        ort_close(o);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_with_its_newest_interface), cmocka_unit_test(slots_follow_the_version),
        cmocka_unit_test(too_old_or_odd_is_refused),       cmocka_unit_test(what_is_no_runtime),
        cmocka_unit_test(versions),                        cmocka_unit_test(element_types_differ_from_24_on),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
