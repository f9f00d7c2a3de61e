/* SPDX-License-Identifier: MIT
 * test_gpu_origin.c - where kernels come from: modules and operators of made-up threads, whose answer is known; and
 * what a recording that began in a running program cannot tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/gpu/gpu_sum.h"
#include "gpu_fixture.h"

struct place {
    uint64_t number, name, domain, thread, sequence; /* sequence 0: none */
};

static void open_place(struct making *m, struct place at)
{
    struct gpu_record r = {.kind = GPU_RANGE_BEGIN}, more = {.kind = GPU_RANGE_SEQUENCE};
    r.RANGE_BEGIN.at = STAMP + at.number * US;
    r.RANGE_BEGIN.thread = at.thread;
    r.RANGE_BEGIN.range = more.RANGE_SEQUENCE.range = at.number;
    r.RANGE_BEGIN.name = at.name;
    r.RANGE_BEGIN.domain = at.domain;
    put(m, r);
    more.RANGE_SEQUENCE.sequence = at.sequence;
    if (at.sequence) put(m, more);
}

static void launch_in(struct making *m, uint64_t id, uint64_t range_number)
{
    struct gpu_record in = {.kind = GPU_IN_RANGE};
    in.IN_RANGE.id = id;
    in.IN_RANGE.range = range_number;
    put(m, in);
    kernel(m, id, 1000 + 10 * id, 1005 + 10 * id, 11);
}

static const struct gpu_origin *origin(const struct gpu_profile *p, const char *op, const char *phase)
{
    for (size_t i = 0; i < p->origins.n; i++) {
        const struct gpu_origin *o = p->origins.at[i];
        if (strcmp(o->op, op) == 0 && (phase ? o->phase && strcmp(o->phase, phase) == 0 : !o->phase))
            return o;
    }
    return NULL;
}

/* Two modules on thread 11. The number 5 is seen by an operator of the first, which makes no node, and taken by one of
 * the second; thread 12 is autograd's, in no module. What lies in no node's range has none. */
static void kernels_know_their_modules(void **state)
{
    enum { OP = 10, MODULE, FC1, FC2, RELU, LINEAR, NODE, MM, ADD, EVALUATE, SUM };
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    name(m, OP, GPU_DOMAIN_OP);
    name(m, MODULE, GPU_DOMAIN_MODULE);
    name(m, FC1, "net.fc1");
    name(m, FC2, "net.fc2");
    name(m, RELU, "aten::relu");
    name(m, LINEAR, "aten::linear");
    name(m, NODE, "AddmmBackward0");
    name(m, MM, "aten::mm");
    name(m, ADD, "aten::add");
    name(m, EVALUATE, "autograd::engine::evaluate_function: AddmmBackward0");
    name(m, SUM, "aten::sum");
    open_place(m, (struct place){1, FC1, MODULE, 11, 0});
    open_place(m, (struct place){2, RELU, OP, 11, 5});
    launch_in(m, 1, 2);
    range(m, 2, 0, 0, 3);
    range(m, 1, 0, 0, 4);
    open_place(m, (struct place){5, FC2, MODULE, 11, 0});
    open_place(m, (struct place){6, LINEAR, OP, 11, 5});
    launch_in(m, 2, 6);
    launch_in(m, 3, 6);
    range(m, 6, 0, 0, 7);
    range(m, 5, 0, 0, 8);
    open_place(m, (struct place){19, EVALUATE, OP, 12, 0});
    open_place(m, (struct place){20, NODE, OP, 12, 5});
    open_place(m, (struct place){21, MM, OP, 12, 0});
    launch_in(m, 4, 21);
    range(m, 21, 0, 0, 22);
    range(m, 20, 0, 0, 23);
    open_place(m, (struct place){24, SUM, OP, 12, 0}); /* after the node, in the range around it */
    launch_in(m, 6, 24);
    range(m, 24, 0, 0, 25);
    range(m, 19, 0, 0, 26);
    open_place(m, (struct place){27, ADD, OP, 12, 0});
    launch_in(m, 5, 27);
    analyse(m, &p);
    assert_int_equal(p.origins.n, 5);
    assert_string_equal(origin(&p, "aten::sum", "backward")->module, "net.fc2");
    assert_int_equal(p.ranges.n, 0);
    assert_string_equal(origin(&p, "aten::relu", NULL)->module, "net.fc1");
    assert_string_equal(origin(&p, "aten::linear", NULL)->module, "net.fc2");
    assert_int_equal(origin(&p, "aten::linear", NULL)->count, 2);
    assert_int_equal(origin(&p, "aten::linear", NULL)->total_ns, 2 * 5 * US);
    assert_string_equal(origin(&p, "aten::mm", "backward")->module, "net.fc2");
    assert_null(origin(&p, "aten::add", NULL)->module);
    gpu_profile_release(&p);
}

/* Threads 11 and 13 run modules at once and both give out the number 5: whose the backward pass is cannot be told. */
static void a_number_of_two_threads_tells_nothing(void **state)
{
    enum { OP = 10, MODULE, FC1, FC2, LINEAR, NODE };
    struct making *m = *state;
    struct gpu_profile p;
    begin(m);
    name(m, OP, GPU_DOMAIN_OP);
    name(m, MODULE, GPU_DOMAIN_MODULE);
    name(m, FC1, "net.fc1");
    name(m, FC2, "net.fc2");
    name(m, LINEAR, "aten::linear");
    name(m, NODE, "AddmmBackward0");
    open_place(m, (struct place){1, FC1, MODULE, 11, 0});
    open_place(m, (struct place){2, FC2, MODULE, 13, 0});
    open_place(m, (struct place){3, LINEAR, OP, 11, 5});
    open_place(m, (struct place){4, LINEAR, OP, 13, 5});
    open_place(m, (struct place){5, NODE, OP, 12, 5});
    launch_in(m, 1, 5);
    analyse(m, &p);
    assert_null(origin(&p, "AddmmBackward0", "backward")->module);
    gpu_profile_release(&p);
}

/* What a block records is not all that the program has taken. */
static void memory_of_a_running_program_is_unknown(void **state)
{
    struct making *m = *state;
    struct gpu_profile p;
    struct gpu_record late = {.kind = GPU_NOTE, .text = "late", .text_bytes = 4};
    begin(m);
    late.NOTE.what = GPU_NOTE_LATE;
    put(m, late);
    taken(m, 2, 1, 0x1000, 4096);
    kernel(m, 1, 10, 20, 11);
    analyse(m, &p);
    assert_false(p.devices.at[0]->memory_peak_bytes.known);
    assert_non_null(run_reason(&p.devices.at[0]->unknown, "memory_peak_bytes"));
    gpu_profile_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kernels_know_their_modules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_of_two_threads_tells_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_of_a_running_program_is_unknown, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
