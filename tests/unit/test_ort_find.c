/* SPDX-License-Identifier: MIT
 * test_ort_find.c - the search for a runtime in a made-up tree: order, reasons, versions from names and symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mem.h"
#include "subject/ort_find.h"
#include "subject_fixture.h"

#define CAPI "lib/python3.11/site-packages/onnxruntime/capi/"
#if defined(__aarch64__)
#define NODE_ARCH "arm64"
#else
#define NODE_ARCH "x64"
#endif

static const struct ort_candidate *at(const struct ort_candidates *c, size_t i, const char *ends)
{
    if (i >= c->items.n) fail_msg("only %zu candidates, wanted %s", c->items.n, ends);
    const struct ort_candidate *x = &c->items.items[i];
    size_t n = strlen(x->path), m = strlen(ends);
    if (n < m || strcmp(x->path + n - m, ends) != 0)
        fail_msg("candidate %zu is %s, not %s", i, x->path, ends);
    return x;
}

/* A copy of the fake, under any name. */
static void put_fake(const char *name)
{
    static char bytes[4 << 20];
    FILE *f = fopen(fake_ort(), "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    scratch_file(name, bytes, n);
}

static void order_of_places(void **state)
{
    (void)state;
    struct ort_candidates c = ORT_CANDIDATES_INIT;
    tare_error err = TARE_ERROR_INIT;
    char path[PATH_MAX];
    scratch_text("named/libx.so", "");
    scratch_text("second/lib/libonnxruntime.so.1.20.0", "");
    scratch_text("active/" CAPI "libonnxruntime.so.1.21.1", "");
    scratch_text("project/.venv/" CAPI "libonnxruntime.so.1.22.0", "");
    scratch_text("python/bin/python3", "#!/bin/sh\n");
    chmod(in_scratch("python/bin/python3"), 0755);
    scratch_text("python/" CAPI "libonnxruntime.so.1.23.0", "");
    scratch_text("home/.local/" CAPI "libonnxruntime.so.1.23.2", "");
    scratch_text("node_modules/onnxruntime-node/bin/napi-v6/linux/" NODE_ARCH "/libonnxruntime.so.1",
                 "xxVERS_1.24.3xx");
    snprintf(path, sizeof path, "/nowhere:%s", in_scratch("python/bin"));
    struct ort_places p = {.tare_ort_lib = in_scratch("named/libx.so"),
                           .ort_dylib_path = in_scratch("second"),
                           .virtual_env = in_scratch("active"),
                           .path = path,
                           .home = in_scratch("home"),
                           .project = in_scratch("project"),
                           .no_system = true};
    if (ort_find(&c, &p, &err) < 0) fail_msg("%s", err.text);
    assert_string_equal(at(&c, 0, "named/libx.so")->source, "$TARE_ORT_LIB");
    assert_true(at(&c, 0, "")->named);
    assert_string_equal(at(&c, 1, "libonnxruntime.so.1.20.0")->source, "$ORT_DYLIB_PATH");
    assert_string_equal(at(&c, 2, "libonnxruntime.so.1.21.1")->source, "$VIRTUAL_ENV");
    assert_string_equal(at(&c, 2, "")->version, "1.21.1");
    assert_false(at(&c, 2, "")->named);
    assert_string_equal(at(&c, 3, "libonnxruntime.so.1.22.0")->source, "the project's .venv");
    assert_string_equal(at(&c, 4, "libonnxruntime.so.1.23.2")->source, "python3");
    assert_string_equal(at(&c, 5, "libonnxruntime.so.1.23.0")->source, "python3");
    assert_string_equal(at(&c, 6, "libonnxruntime.so.1")->source, "node_modules");
    assert_string_equal(at(&c, 6, "")->version, "1.24.3"); /* from its symbols */
    assert_int_equal(c.items.n, 7);
    ort_candidates_release(&c);
    assert_int_equal(mem_live_blocks(), 0);
}

static void reasons(void **state)
{
    (void)state;
    struct ort_candidates c = ORT_CANDIDATES_INIT;
    tare_error err = TARE_ERROR_INIT;
    scratch_text("old/" CAPI "onnxruntime_pybind11_state.cpython-311.so", "");
    struct ort_places p = {
        .virtual_env = in_scratch("old"), .project = in_scratch("nothing"), .no_system = true};
    assert_int_equal(ort_find(&c, &p, &err), TARE_OK);
    assert_non_null(strstr(at(&c, 0, ".so")->why_not, "1.19"));
    ort_candidates_release(&c);
    scratch_text("ancient/" CAPI "libonnxruntime.so.1.7.0", "");
    p.virtual_env = in_scratch("ancient");
    assert_int_equal(ort_find(&c, &p, &err), TARE_OK);
    assert_non_null(strstr(at(&c, 0, "1.7.0")->why_not, "too old"));
    ort_candidates_release(&c);
    p = (struct ort_places){.chosen = in_scratch("not-there.so"), .no_system = true};
    assert_int_equal(ort_find(&c, &p, &err), TARE_OK);
    assert_string_equal(at(&c, 0, "not-there.so")->why_not, "no such file");
    assert_int_equal(c.items.n, 1);
    ort_candidates_release(&c);
}

/* One file by two ways is one candidate. */
static void links_count_once(void **state)
{
    (void)state;
    struct ort_candidates c = ORT_CANDIDATES_INIT;
    tare_error err = TARE_ERROR_INIT;
    scratch_text("both/libonnxruntime.so.1.22.0", "");
    assert_int_equal(symlink("libonnxruntime.so.1.22.0", in_scratch("both/libonnxruntime.so.1")), 0);
    assert_int_equal(symlink("libonnxruntime.so.1", in_scratch("both/libonnxruntime.so")), 0);
    struct ort_places p = {.chosen = in_scratch("both")};
    assert_int_equal(ort_find(&c, &p, &err), TARE_OK);
    assert_int_equal(c.items.n, 1);
    assert_string_equal(at(&c, 0, "1.22.0")->version, "1.22.0");
    ort_candidates_release(&c);
}

static void a_python_elsewhere_is_asked(void **state)
{
    (void)state;
    struct ort_candidates c = ORT_CANDIDATES_INIT;
    tare_error err = TARE_ERROR_INIT;
    char script[PATH_MAX];
    scratch_text("far/site/onnxruntime/capi/libonnxruntime.so.1.25.0", "");
    snprintf(script, sizeof script, "#!/bin/sh\necho '%s'\n", in_scratch("far/site"));
    scratch_text("shims/python3", script);
    chmod(in_scratch("shims/python3"), 0755);
    struct ort_places p = {.path = in_scratch("shims"), .project = in_scratch("nothing"), .no_system = true};
    assert_int_equal(ort_find(&c, &p, &err), TARE_OK);
    at(&c, 0, "libonnxruntime.so.1.25.0");
    ort_candidates_release(&c);
}

static void the_first_that_loads_is_taken(void **state)
{
    (void)state;
    struct ort_candidates c = ORT_CANDIDATES_INIT;
    struct ort *o = NULL;
    tare_error err = TARE_ERROR_INIT;
    scratch_text("broken/" CAPI "libonnxruntime.so.1.22.0", "no library at all");
    put_fake("good/.venv/" CAPI "libonnxruntime.so.1.99.0");
    struct ort_places p = {
        .virtual_env = in_scratch("broken"), .project = in_scratch("good"), .no_system = true};
    if (ort_open_found(&o, &p, &c, &err) < 0) fail_msg("%s", err.text);
    assert_string_equal(o->version, "1.99.0");
    assert_true(c.items.n >= 2); /* and the node_modules above, from another test */
    assert_true(c.items.items[0].why_not[0] != 0 && c.items.items[1].why_not[0] == 0);
    ort_close(o);
    ort_candidates_release(&c);

    p.tare_ort_lib = in_scratch("broken/" CAPI "libonnxruntime.so.1.22.0"); /* named: no looking further */
    assert_int_equal(ort_open_found(&o, &p, NULL, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "$TARE_ORT_LIB"));
    p = (struct ort_places){.project = in_scratch("nothing"), .no_system = true};
    assert_int_equal(ort_open_found(&o, &p, NULL, &err), TARE_UNSUPPORTED);
    assert_non_null(strstr(err.text, "pip install onnxruntime"));
    assert_int_equal(mem_live_blocks(), 0);
}

/* In a folder where everybody may write, what another user put there is not even looked at: it would be loaded. */
static void places_of_strangers(void **state)
{
    (void)state;
    static const char *const inside[] = {
        ".venv/" CAPI "libonnxruntime.so.1.22.0",
        "node_modules/onnxruntime-node/bin/napi-v6/linux/" NODE_ARCH "/libonnxruntime.so.1"};
    static const char *const given_away[] = {"open/.venv", "open/node_modules"};
    if (getuid() != 0) skip(); /* nothing can be given away */
    for (size_t i = 0; i < 2; i++) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "open/%s", inside[i]);
        scratch_text(name, "");
    }
    chmod(in_scratch("open"), 01777);
    for (size_t known = 3; known-- > 0;) {
        struct ort_candidates c = ORT_CANDIDATES_INIT;
        struct ort_places p = {.project = in_scratch("open"), .no_system = true};
        assert_int_equal(ort_find(&c, &p, NULL), TARE_OK);
        size_t n = 0;
        for (size_t i = 0; i < c.items.n; i++) n += strstr(c.items.items[i].path, "/open/") != NULL;
        assert_int_equal(n, known);
        ort_candidates_release(&c);
        if (known) assert_int_equal(lchown(in_scratch(given_away[2 - known]), 65534, 65534), 0);
    }
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    scratch_text("oom/a/libonnxruntime.so.1.22.0", "");
    scratch_text("oom/b/libonnxruntime.so.1.23.0", "");
    for (long n = 0;; n++) {
        struct ort_candidates c = ORT_CANDIDATES_INIT;
        struct ort_places p = {
            .tare_ort_lib = in_scratch("oom/a"), .ort_dylib_path = in_scratch("oom/b"), .no_system = true};
        mem_fail_after(n);
        tare_status s = ort_find(&c, &p, NULL);
        mem_fail_after(-1);
        ort_candidates_release(&c);
        assert_int_equal(mem_live_blocks(), 0);
        if (s == TARE_OK) break;
        assert_int_equal(s, TARE_NOMEM);
        assert_true(n < 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_places),
        cmocka_unit_test(reasons),
        cmocka_unit_test(links_count_once),
        cmocka_unit_test(a_python_elsewhere_is_asked),
        cmocka_unit_test(the_first_that_loads_is_taken),
        cmocka_unit_test(places_of_strangers),
        cmocka_unit_test(every_allocation_can_fail),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
