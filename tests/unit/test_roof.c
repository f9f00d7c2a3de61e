/* SPDX-License-Identifier: MIT
 * test_roof.c - the kernels do what they count, the team works together, the cache takes nothing that is not its own,
 * and a real measurement is whole. Never a limit on a time. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "probe/roof.h"
#include "probe/roof_parts.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/test_roof_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* ---- kernels ---- */

static void test_kernels_run(void **state)
{
    unsigned floats = 0;
    (void)state;
    const struct roof_kernel *const lists[] = {roof_kernels_native, roof_kernels_plain};
    for (size_t i = 0; i < 2; i++)
        for (const struct roof_kernel *k = lists[i]; k->name; k++) {
            assert_true(k->ops > 0 && (k->kind == ROOF_FLOAT || k->kind == ROOF_INT));
            if (!roof_kernel_usable(k)) continue;
            k->run(1);
            k->run(1000);
            floats += k->kind == ROOF_FLOAT;
        }
    assert_true(floats >= 1); /* there is always a roof for floats */
}

/* Two pages between pages that may not be touched: a step too far would end the test. */
static char *guarded(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *m = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(m != MAP_FAILED);
    assert_int_equal(mprotect(m + page, bytes, PROT_READ | PROT_WRITE), 0);
    return m + page;
}

static void drop_guarded(char *at, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(at - page, bytes + 2 * page);
}

static void test_memory_kernels(void **state)
{
    (void)state;
    size_t bytes = 2 * (size_t)sysconf(_SC_PAGESIZE), n = bytes / sizeof(float);
    float *to = (float *)(void *)guarded(bytes), *a = (float *)(void *)guarded(bytes),
          *b = (float *)(void *)guarded(bytes);
    for (size_t i = 0; i < n; i++) {
        a[i] = (float)i;
        b[i] = 1;
    }
    roof_read(a, bytes);
    roof_triad(to, a, b, bytes);
    float s = to[0]; /* a[0] + s * b[0] */
    assert_true(s > 0);
    for (size_t i = 0; i < n; i++)
        if (to[i] != (float)i + s) fail_msg("element %zu is %g", i, (double)to[i]);
    roof_read(a, ROOF_BLOCK);
    memset(to, 0, bytes);
    roof_triad(to, a, b, ROOF_BLOCK); /* no more than asked */
    assert_true(to[ROOF_BLOCK / sizeof(float) - 1] != 0 && to[ROOF_BLOCK / sizeof(float)] == 0);
    drop_guarded((char *)to, bytes);
    drop_guarded((char *)a, bytes);
    drop_guarded((char *)b, bytes);
}

/* ---- the team ---- */

enum { TEAM = 5 };
static atomic_uint calls[TEAM];

static void note_call(void *ctx, unsigned index)
{
    if (ctx != calls) abort();
    atomic_fetch_add(&calls[index], 1);
}

static void test_team(void **state)
{
    struct roof_team *t;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    for (int i = 0; i < TEAM; i++) calls[i] = 0;
    if (roof_team_new(&t, TEAM, &err) < 0) fail_msg("%s", err.text);
    assert_true(roof_team_do(t, note_call, calls, false).ns > 0);
    assert_true(roof_team_do(t, note_call, calls, true).ns > 0);
    for (int i = 0; i < TEAM; i++) assert_int_equal(calls[i], 2);
    struct roof_turn best = roof_team_best(t, note_call, calls, 0);
    assert_true(best.ns > 0 && best.ns < UINT64_MAX);
    for (int i = 0; i < TEAM; i++) assert_int_equal(calls[i], 6);
    assert_true(roof_turn_is_quiet((struct roof_turn){100, 100}) &&
                roof_turn_is_quiet((struct roof_turn){110, 100}));
    assert_false(roof_turn_is_quiet((struct roof_turn){111, 100}));
    roof_team_free(t);
    roof_team_free(NULL);
}

/* ---- the machine ---- */

static void put_cache(unsigned cpu, unsigned index, const char *name, const char *text)
{
    char dir[200], path[256];
    snprintf(dir, sizeof dir, "%s/sys/devices/system/cpu/cpu%u/cache/index%u", folder, cpu, index);
    assert_int_equal(file_make_folders(dir, NULL), TARE_OK);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0, NULL), TARE_OK);
}

static void test_cache_sizes(void **state)
{
    static const char *const shared[] = {"0-1\n", "0-1\n", "2-3\n", "2-3\n"}; /* two of 32 MiB */
    (void)state;
    assert_false(roof_cache_bytes(folder).known);
    for (unsigned cpu = 0; cpu < 4; cpu++) {
        char own[8];
        snprintf(own, sizeof own, "%u\n", cpu);
        put_cache(cpu, 0, "level", "1\n");
        put_cache(cpu, 0, "size", "32K\n");
        put_cache(cpu, 0, "shared_cpu_list", own);
        put_cache(cpu, 1, "level", "3\n");
        put_cache(cpu, 1, "size", "32768K\n");
        put_cache(cpu, 1, "shared_cpu_list", shared[cpu]);
    }
    struct known_u64 all = roof_cache_bytes(folder);
    assert_true(all.known && all.v == UINT64_C(64) << 20);
    (void)roof_cache_bytes(""); /* whatever this machine tells */
}

static void test_working_set(void **state)
{
    const uint64_t mib = 1 << 20;
    const struct known_u64 none = {0};
    (void)state;
    assert_int_equal(roof_working_set(known_u64(32 * mib), known_u64(8192 * mib)), 128 * mib);
    assert_int_equal(roof_working_set(known_u64(2 * mib), known_u64(8192 * mib)), 64 * mib);
    assert_int_equal(roof_working_set(none, none), 128 * mib);
    assert_int_equal(roof_working_set(known_u64(32 * mib), known_u64(640 * mib)), 80 * mib);
    assert_int_equal(roof_working_set(known_u64(32 * mib), known_u64(400 * mib)),
                     0); /* would be the caches' */
    assert_int_equal(roof_working_set(known_u64(400 * mib), none), 1024 * mib);
    assert_int_equal(roof_working_set(known_u64(600 * mib), none), 0);
}

/* ---- the cache ---- */

#define NOW 1794732695

static struct roof made(void)
{
    const struct roof_kernel *k = roof_kernels_native;
    struct roof r = {
        .flops = 118e9, .int_ops = NAN, .read = 36e9, .triad = 46e9, .bandwidth = 46e9, .threads = 2};
    snprintf(r.measured, sizeof r.measured, "2026-11-15T08:51:34Z");
    r.kernel = roof_kernels_plain->name;
    for (; k->name; k++) {
        if (k->kind == ROOF_FLOAT) r.kernel = k->name;
        if (k->kind != ROOF_INT) continue;
        r.int_kernel = k->name;
        r.int_ops = 470e9;
    }
    return r;
}

static const struct roof_options of_this = {.threads = 2, .fingerprint = "h1-0123456789abcdef"};

static bool reads(const char *text, int64_t now, struct roof *out)
{
    *out = (struct roof){.threads = 77};
    bool good = roof_cache_read(out, &of_this, now, text, strlen(text));
    if (!good) assert_int_equal(out->threads, 77); /* untouched */
    return good;
}

static void test_cache_text(void **state)
{
    struct roof r = made(), back;
    struct buf text = BUF_INIT;
    (void)state;
    roof_cache_write(&r, of_this.fingerprint, NOW, &text);
    assert_true(reads(text.data, NOW, &back));
    assert_true(back.flops == r.flops && back.read == r.read && back.triad == r.triad);
    assert_true(back.bandwidth == r.bandwidth && back.threads == 2 && back.cached);
    assert_true(back.int_ops == r.int_ops || (isnan(r.int_ops) && isnan(back.int_ops)));
    assert_ptr_equal(back.kernel, r.kernel);
    assert_ptr_equal(back.int_kernel, r.int_kernel);
    assert_string_equal(back.measured, r.measured);
    assert_true(reads(text.data, NOW + 30 * 86400, &back));
    assert_false(reads(text.data, NOW + 30 * 86400 + 1, &back)); /* too old */
    assert_false(reads(text.data, NOW - 1, &back));              /* from the future: a clock was set back */
    for (size_t n = 0; n < text.len; n++) {
        struct roof untouched = {.threads = 77}; /* not terminated: nothing past the end may be read */
        char *part = malloc(n ? n : 1);
        memcpy(part, text.data, n);
        assert_false(roof_cache_read(&untouched, &of_this, NOW, part, n));
        assert_int_equal(untouched.threads, 77);
        free(part);
    }
    buf_add_str(&text, "more\n");
    assert_false(reads(text.data, NOW, &back));
    buf_clear(&text);
    r.int_ops = r.read = r.triad = NAN; /* not known is kept as such */
    r.int_kernel = NULL;
    roof_cache_write(&r, of_this.fingerprint, NOW, &text);
    assert_true(reads(text.data, NOW, &back));
    assert_true(isnan(back.int_ops) && isnan(back.bandwidth) && !back.int_kernel);
    buf_release(&text);
}

static void test_cache_of_others(void **state)
{
    static const struct {
        const char *from, *to;
    } swaps[] = {
        {"tare.roof/1", "tare.roof/2"},
        {"0123456789abcdef", "0123456789abcdee"},
        {"threads 2", "threads 3"},
        {"threads 2", "threads 02"},
        {"kernels 1", "kernels 0"},
        {"at 17", "at -17"},
        {"at 17", "at 17x"},
        {"2026-11-15T08:51:34Z", "2026-11-15T08:51:3\x01Z"},
        {"flops 1.18e+11", "flops nan"},
        {"flops 1.18e+11", "flops -1"},
        {"flops 1.18e+11", "flops 0"},
        {"flops 1.18e+11", "flops inf"},
        {"flops 1.18e+11", "flops 1e300"},
        {"flops 1.18e+11 ", "flops 1.18e+11 quantum"},
        {"int_ops ", "int_ops 1e9 none\nx"},
        {"read 3.6e+10", "read 3.6e+10x"},
        {"triad", "traid"},
    };
    struct roof r = made(), back;
    struct buf text = BUF_INIT, changed = BUF_INIT;
    (void)state;
    roof_cache_write(&r, of_this.fingerprint, NOW, &text);
    for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
        const char *at = strstr(text.data, swaps[i].from);
        if (!at) fail_msg("no \"%s\" in %s", swaps[i].from, text.data);
        buf_clear(&changed);
        buf_add(&changed, text.data, (size_t)(at - text.data));
        buf_add_str(&changed, swaps[i].to);
        buf_add_str(&changed, at + strlen(swaps[i].from));
        if (reads(changed.data, NOW, &back)) fail_msg("taken: %s", changed.data);
    }
    buf_release(&text);
    buf_release(&changed);
}

/* ---- measuring ---- */

static struct roof_options quick(void)
{
    return (struct roof_options){.threads = 2,
                                 .budget = {20000000},
                                 .fingerprint = "h1-00ff",
                                 .cache_dir = folder,
                                 .memory_bytes = 1 << 20};
}

static struct roof measure(const struct roof_options *o)
{
    struct roof r = {0};
    tare_error err = TARE_ERROR_INIT;
    if (roof_measure(&r, o, &err) < 0) fail_msg("%s", err.text);
    assert_true(r.flops > 0 && isfinite(r.flops) && r.kernel);
    assert_true(r.int_kernel ? r.int_ops > 0 && isfinite(r.int_ops) : isnan(r.int_ops));
    assert_true(isnan(r.bandwidth) ? isnan(r.read) : r.bandwidth >= r.read && r.bandwidth >= r.triad);
    assert_int_equal(r.threads, o->threads);
    assert_int_equal(strlen(r.measured), strlen("2026-11-15T08:51:34Z"));
    return r;
}

/* What is measured is kept, unless the machine was too busy to be believed. */
static struct roof measure_and_keep(const struct roof_options *o)
{
    struct roof r = measure(o), again;
    assert_false(r.cached);
    assert_int_equal(roof_recall(&again, o), !r.busy);
    if (!r.busy) assert_true(again.cached && fabs(again.flops / r.flops - 1) < 1e-6);
    return r;
}

static void test_measured_once(void **state)
{
    struct roof_options o = quick();
    char path[128];
    (void)state;
    struct roof r = {.threads = 77};
    assert_false(roof_recall(&r, &o));
    assert_int_equal(r.threads, 77);
    measure_and_keep(&o);
    r = made();
    roof_cache_save(&r, &o);
    assert_true(measure(&o).cached && measure(&o).flops == r.flops);
    o.threads = 1; /* another roof */
    assert_false(roof_recall(&r, &o));
    o.threads = 2;
    snprintf(path, sizeof path, "%s/roof-h1-00ff-2.txt", folder);
    assert_int_equal(file_write_atomic(path, "rubbish", 7, 0, NULL), TARE_OK);
    measure_and_keep(&o); /* damaged: measured anew, and whole again */
    assert_int_equal(truncate(path, 0), 0);
    measure_and_keep(&o);
    roof_cache_save(&r, &o);
    o.fresh = true;
    assert_false(measure(&o).cached);
}

static void test_no_cache_is_fine(void **state)
{
    struct roof_options o = quick();
    char path[128];
    (void)state;
    o.cache_dir = NULL;
    assert_false(measure(&o).cached);
    assert_false(measure(&o).cached);
    o.cache_dir = "/proc/nowhere"; /* cannot be made */
    assert_false(measure(&o).cached);
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(file_write_atomic(path, "x", 1, 0, NULL), TARE_OK);
    o.cache_dir = path; /* no folder */
    assert_false(measure(&o).cached);
    o.cache_dir = folder;
    o.fingerprint = "../up"; /* never part of a path */
    assert_false(measure(&o).cached);
    assert_false(measure(&o).cached);
}

static void test_threads(void **state)
{
    struct roof_options o = quick();
    struct roof r = {.threads = 77};
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    o.threads = 0;
    assert_int_equal(roof_measure(&r, &o, &err), TARE_INVALID);
    o.threads = ROOF_THREADS_MAX + 1;
    assert_int_equal(roof_measure(&r, &o, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "1 to 1024 threads"));
    assert_int_equal(r.threads, 77);
    o.threads = 9; /* more than many machines have */
    measure(&o);
    o.threads = 2;
    o.memory_bytes = 100; /* not a block for each */
    o.fresh = true;
    assert_true(isnan(measure(&o).bandwidth));
    o.memory_bytes = 0; /* as large as it takes */
    measure(&o);
}

static void test_memory(void **state)
{
    struct roof_options o = quick();
    struct roof r = {.threads = 77};
    long before = mem_live_blocks();
    (void)state;
    o.fingerprint = "h1-0a0a"; /* nothing cached */
    for (long n = 0;; n++) {
        mem_fail_after(n);
        tare_status s = roof_measure(&r, &o, NULL);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), before);
        if (s == TARE_OK) {
            assert_true(n > 0);
            break;
        }
        assert_int_equal(s, TARE_NOMEM);
        assert_true(r.threads == 77 && n < 20);
    }
}

static void test_record(void **state)
{
    struct run run;
    struct roof r = made();
    struct buf text = BUF_INIT;
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    assert_int_equal(run_init(&run, "bench", &err), TARE_OK);
    run.subject.type = "onnx";
    run.subject.name = "m";
    r.int_ops = NAN;
    roof_record(&r, &run);
    assert_true(run.roof.known && run.roof.flops.v == 118e9 && run.roof.bandwidth.v == 46e9);
    assert_true(run.roof.threads.v == 2 && !run.roof.int_ops.known);
    assert_string_equal(run.roof.measured, "2026-11-15T08:51:34Z");
    if (run_write(&run, &text, &err) < 0) fail_msg("%s", err.text);
    buf_release(&text);
    run_release(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_run),
        cmocka_unit_test(test_memory_kernels),
        cmocka_unit_test(test_team),
        cmocka_unit_test_setup_teardown(test_cache_sizes, make_folder, drop_folder),
        cmocka_unit_test(test_working_set),
        cmocka_unit_test(test_cache_text),
        cmocka_unit_test(test_cache_of_others),
        cmocka_unit_test_setup_teardown(test_measured_once, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_no_cache_is_fine, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_threads, make_folder, drop_folder),
        cmocka_unit_test_setup_teardown(test_memory, make_folder, drop_folder),
        cmocka_unit_test(test_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
