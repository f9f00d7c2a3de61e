/* SPDX-License-Identifier: MIT
 * test_gpu_name.c - names of kernels: shortened, grouped, written out; and names made to be too long, too deep or too
 * slow to write out, which stay as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <sys/resource.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_sum.h"
#include "analyze/gpu/gpu_name.h"
#include "core/buf.h"
#include "gpu_fixture.h"
#include "symbol/demangle.h"

static void names_of_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *full, *name, *group;
    } rows[] = {
        {"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*> >(int)",
         "vectorized_elementwise_kernel FillFunctor", "elementwise"},
        {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt::Params)",
         "cutlass_80_simt_sgemm_256x128_8x4_nn_align1", "matmul"},
        {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs<4096ul>)",
         "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication"},
        {"void (anonymous namespace)::softmax_warp_forward<float>(float*)", "softmax_warp_forward",
         "softmax"},
        {"triton_poi_fused_add_0", "triton_poi_fused_add_0", "elementwise"},
        {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "matmul"},
        {"copy_SoftMax_conv", "copy_SoftMax_conv", "softmax"}, /* the table's order, not the text's */
        {"", "", "other"},
        {"<", "<", "other"},
    };
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(gpu_name_short(&a, rows[i].full), rows[i].name);
        assert_string_equal(gpu_name_group(rows[i].full), rows[i].group);
    }
    arena_release(&a);
}

/* f(A<int, int>, A<A<int, int>, A<int, int> >, ..): each parameter is twice the one before. */
static const char *doubling(struct arena *a, unsigned times)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    struct buf b = BUF_INIT;
    buf_add_str(&b, "_Z1f1AIiiE");
    for (unsigned i = 0; i < times; i++) {
        char ref[4] = {0};
        snprintf(ref, sizeof ref, "%c%c", i < 36 ? digits[i] : digits[i / 36], i < 36 ? 0 : digits[i % 36]);
        buf_printf(&b, "S_IS%s_S%s_E", ref, ref);
    }
    const char *name = arena_str(a, b.data);
    buf_release(&b);
    return name;
}

/* Names that would take years to write out stay as they are, and do not keep others from being read, be there few of
 * them or many. */
static void names_that_grow_without_end(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    assert_string_equal(demangle(&a, doubling(&a, 1)), "f(A<int, int>, A<A<int, int>, A<int, int> >)");
    assert_int_equal(strncmp(demangle(&a, doubling(&a, 8)), "f(A<int, int>, A<A<", 19), 0); /* by the child */
    for (unsigned i = 60; i < 63; i++) assert_string_equal(demangle(&a, doubling(&a, i)), doubling(&a, i));
    assert_int_equal(strncmp(demangle(&a, doubling(&a, 8)), "f(A<int, int>, A<A<", 19), 0);
    for (unsigned i = 64; i < 80; i++) assert_string_equal(demangle(&a, doubling(&a, i)), doubling(&a, i));
    demangle_end();
    arena_release(&a);
}

/* Nesting as deep as a name is long, of templates, pointers and functions. */
static void names_that_are_deep(void **state)
{
    static const struct {
        const char *open, *close;
    } rows[] = {{"1AI", "E"}, {"P", ""}, {"PFi", "E"}, {"N1AI", "EE"}, {"St4pairI", "iE"}, {"DpT_", ""}};
    struct arena a = ARENA_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (unsigned levels = 100; levels <= 10000; levels *= 10) {
            struct buf b = BUF_INIT;
            buf_add_str(&b, "_Z1f");
            for (unsigned k = 0; k < levels; k++) buf_add_str(&b, rows[i].open);
            buf_add_str(&b, "i");
            for (unsigned k = 0; k < levels; k++) buf_add_str(&b, rows[i].close);
            const char *full = demangle(&a, b.data);
            assert_true(strcmp(full, b.data) == 0 || strncmp(full, "f(", 2) == 0);
            buf_release(&b);
        }
    demangle_end();
    arena_release(&a);
}

static double children_s(void)
{
    struct rusage r;
    getrusage(RUSAGE_CHILDREN, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* Each takes some 20 ms, which is allowed; thousands of them are not: the child ends after 2 s. */
static void names_that_take_long_together(void **state)
{
    struct arena a = ARENA_INIT;
    const char *name = doubling(&a, 17);
    const double before = children_s();
    unsigned asked = 0;
    (void)state;
    for (; asked < 5000 && children_s() <= before; asked++) assert_ptr_equal(demangle(&a, name), name);
    assert_true(asked < 5000);
    assert_true(children_s() - before < 3);
    demangle_end();
    arena_release(&a);
}

/* A report comes all the same, with the names as they were. */
static void a_report_with_names_that_grow(void **state)
{
    struct making *m = *state;
    struct arena a = ARENA_INIT;
    struct gpu_profile p;
    begin(m);
    for (uint64_t i = 0; i < 6; i++) {
        struct gpu_record r = {.kind = GPU_KERNEL};
        name(m, 40 + i, doubling(&a, 60 + (unsigned)i));
        r.KERNEL.start = STAMP + i * 100 * US;
        r.KERNEL.duration = 50 * US;
        r.KERNEL.lane = 1;
        r.KERNEL.name = 40 + i;
        put(m, r);
    }
    analyse(m, &p);
    assert_int_equal(p.kernels.n, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(strncmp(p.kernels.at[i]->full, "_Z1f1AIiiES_I", 13), 0);
        assert_int_equal(p.kernels.at[i]->total_ns, 50 * US);
    }
    gpu_profile_release(&p);
    arena_release(&a);
}

/* f(X, B<X, X, X, X>, C<the one before, four times>, D<..>): 85 times as long by twelve references. */
static const char *eighty_five(struct arena *a, unsigned bytes)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "_Z1f%u", bytes);
    for (unsigned i = 0; i < bytes; i++) buf_add_str(&b, "x");
    buf_add_str(&b, "1BIS_S_S_S_E1CIS1_S1_S1_S1_E1DIS3_S3_S3_S3_E");
    const char *name = arena_str(a, b.data);
    buf_release(&b);
    return name;
}

/* What would be longer than a name may be stays as it is, be it read here or not at all. */
static void names_that_are_long(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    assert_in_range(strlen(demangle(&a, eighty_five(&a, 300))), 85 * 300, 86 * 300);
    for (unsigned bytes = 900; bytes < 50000; bytes *= 50) {
        const char *name = eighty_five(&a, bytes);
        assert_ptr_equal(demangle(&a, name), name);
    }
    demangle_end();
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_kernels),
        cmocka_unit_test(names_that_are_long),
        cmocka_unit_test(names_that_grow_without_end),
        cmocka_unit_test(names_that_are_deep),
        cmocka_unit_test(names_that_take_long_together),
        cmocka_unit_test_setup_teardown(a_report_with_names_that_grow, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
