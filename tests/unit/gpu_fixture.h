/* SPDX-License-Identifier: MIT
 * gpu_fixture.h - made-up timelines of GPUs, in microseconds, and what the analysis says of them. */
#ifndef TESTS_GPU_FIXTURE_H
#define TESTS_GPU_FIXTURE_H

#include "analyze/gpu/gpu_sum.h"
#include "trace/appender.h"
#include "trace/gpu.h"
#include "trace_fixture.h"

enum { STAMP = 1000000000, US = 1000 };

struct making {
    struct folder at;
    struct appender to;
    struct gpu_state state;
    uint8_t room[1 << 16];
    struct enc e;
    uint64_t begun; /* raw clock at time 0 of the timeline */
};

/* A process that writes into this trace, alone or as the next of several. */
static inline void join(struct making *m, const char *trace)
{
    m->state = (struct gpu_state){{0}};
    m->e = (struct enc){m->room, m->room + sizeof m->room, false};
    assert_int_equal(
        appender_open(&m->to, &(struct appender_options){.path = trace, .mode = MODE_GPU, .tsc = 1}, NULL),
        TARE_OK);
}

static inline int set_up(void **state)
{
    struct making *m = test_calloc(1, sizeof *m);
    folder_new(&m->at);
    join(m, m->at.trace);
    *state = m;
    return 0;
}

static inline int tear_down(void **state)
{
    struct making *m = *state;
    folder_remove(&m->at);
    test_free(m);
    assert_int_equal(mem_live_blocks(), 0);
    return 0;
}

static inline void put(struct making *m, struct gpu_record r)
{
    assert_true(gpu_pack(&m->state, &m->e, &r));
}

static inline void name(struct making *m, uint64_t number, const char *text)
{
    struct gpu_record r = {.kind = GPU_NAME, .text = text, .text_bytes = strlen(text)};
    r.NAME.number = number;
    put(m, r);
}

/* Stamps of CUPTI are our raw clock + STAMP here; a trace's time begins when the process joins. */
static inline void begin_at(struct making *m, uint64_t now)
{
    m->begun = now;
    for (int i = 0; i < 2; i++) {
        struct gpu_record r = {.kind = GPU_CLOCK};
        r.CLOCK.raw_ns = now + (uint64_t)i * 1000000000u;
        r.CLOCK.stamp = (uint64_t)i * 1000000000u + STAMP;
        put(m, r);
    }
    for (uint64_t lane = 1; lane <= 2; lane++) {
        struct gpu_record r = {.kind = GPU_LANE};
        r.LANE.number = r.LANE.stream = lane;
        put(m, r);
    }
    name(m, 1, "_ZN7cutlass7Kernel2I18my_gemm_tn_align_8EEvv");
    name(m, 2, "ncclDevKernel_AllReduce_Sum_f32");
    name(m, 3, "cudaLaunchKernel");
    name(m, 4, "cudaStreamSynchronize");
    name(m, 5, "cudaMemcpyAsync");
    name(m, 6, "cudaMalloc");
    name(m, 7, "step");
    name(m, 8, "cuLibraryLoadData");
}

static inline void begin(struct making *m)
{
    begin_at(m, clock_raw_ns());
}

/* Lane and name are one number, as in 12: lane 1, the second name. */
static inline void kernel(struct making *m, uint64_t id, uint64_t from, uint64_t to, uint64_t lane_name)
{
    struct gpu_record r = {.kind = GPU_KERNEL};
    r.KERNEL.start = STAMP + from * US;
    r.KERNEL.duration = (to - from) * US;
    r.KERNEL.lane = lane_name / 10;
    r.KERNEL.name = lane_name % 10;
    r.KERNEL.id = id;
    put(m, r);
}

static inline void copy(struct making *m, uint64_t id, uint64_t from, uint64_t to, uint64_t bytes)
{
    struct gpu_record r = {.kind = GPU_COPY};
    r.COPY.start = STAMP + from * US;
    r.COPY.duration = (to - from) * US;
    r.COPY.lane = 2;
    r.COPY.what = GPU_TO_DEVICE | GPU_PAGEABLE << 8 | GPU_DEVICE_MEMORY << 16;
    r.COPY.bytes = bytes;
    r.COPY.id = id;
    put(m, r);
}

static inline void call(struct making *m, uint64_t id, uint64_t from, uint64_t to, uint64_t what)
{
    struct gpu_record r = {.kind = GPU_CALL};
    r.CALL.start = STAMP + from * US;
    r.CALL.duration = (to - from) * US;
    r.CALL.thread = 11;
    r.CALL.name = what;
    r.CALL.id = id;
    put(m, r);
}

static inline void look(struct making *m, uint64_t at, uint64_t does)
{
    struct gpu_record r = {.kind = GPU_HOST_STATE};
    r.HOST_STATE.at = STAMP + at * US;
    r.HOST_STATE.thread = 11;
    r.HOST_STATE.state = does;
    put(m, r);
}

static inline void write_records(struct making *m)
{
    size_t at = appender_begin(&m->to);
    buf_add(&m->to.out, m->room, (size_t)(m->e.p - m->room));
    appender_end(&m->to, at, CHUNK_GPU);
    assert_int_equal(appender_write(&m->to, NULL), TARE_OK);
}

/* The process ends. */
static inline void leave(struct making *m)
{
    write_records(m);
    assert_int_equal(appender_close(&m->to, 0, NULL), TARE_OK);
}

static inline struct trace *finish(struct making *m)
{
    struct trace *t = NULL;
    leave(m);
    assert_int_equal(trace_open(&t, m->at.trace, NULL), TARE_OK);
    return t;
}

static inline void analyse(struct making *m, struct gpu_profile *p)
{
    struct trace *t = finish(m);
    assert_int_equal(gpu_sum(&t, 1, p, NULL), TARE_OK);
    trace_close(t);
}

static inline uint64_t idle_us(const struct gpu_profile *p, const char *cause)
{
    for (size_t i = 0; i < p->devices.at[0]->idle.n; i++)
        if (strcmp(p->devices.at[0]->idle.at[i]->cause, cause) == 0)
            return (p->devices.at[0]->idle.at[i]->ns + 500) / US;
    return 0;
}

static inline uint64_t us(struct known_u64 v)
{
    assert_true(v.known);
    return (v.v + 500) / US;
}

static inline void range(struct making *m, uint64_t number, uint64_t name, uint64_t from, uint64_t to)
{
    struct gpu_record r = {.kind = to ? GPU_RANGE_END : GPU_RANGE_BEGIN};
    if (to) {
        r.RANGE_END.at = STAMP + to * US;
        r.RANGE_END.range = number;
    } else {
        r.RANGE_BEGIN.at = STAMP + from * US;
        r.RANGE_BEGIN.thread = 11;
        r.RANGE_BEGIN.range = number;
        r.RANGE_BEGIN.name = name;
    }
    put(m, r);
}

/* The block of memory at that address is taken or, of no bytes, given back. */
static inline void taken(struct making *m, uint64_t id, uint64_t at, uint64_t address, uint64_t bytes)
{
    struct gpu_record r = {.kind = GPU_MEMORY};
    r.MEMORY.at = STAMP + at * US;
    r.MEMORY.what = bytes ? 1 : 2;
    r.MEMORY.kind = GPU_DEVICE_MEMORY;
    r.MEMORY.address = address;
    r.MEMORY.bytes = bytes;
    r.MEMORY.id = id;
    put(m, r);
}

#endif
