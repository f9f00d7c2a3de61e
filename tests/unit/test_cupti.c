/* SPDX-License-Identifier: MIT
 * test_cupti.c - the decoder of CUPTI's records: what each kind becomes, what is cut off or claims the impossible, a
 * clock that is set while recording. Where the vendor's header is installed the places that we read are held against
 * it; where libcupti is, its own iterator walks the same buffers. Tests that cannot run here say so by name. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/mem.h"
#include "fuzz/cupti_steps.h"
#include "gpu/gpu.h"

#if __has_include(<cupti.h>)
#define HAVE_CUPTI_H 1
#include <cupti.h>
#endif

#define T UINT64_C(1700000000000000000)

/* ---- a book without a file, and a buffer of records ---- */

struct making {
    struct cupti c;
    struct book b;
    uint8_t buffer[8192];
    size_t n;
};

static uint64_t cupti_now;

static int get_timestamp(uint64_t *now)
{
    *now = cupti_now;
    return CUPTI_OK;
}

static int callback_name(int domain, uint32_t id, const char **name)
{
    *name = domain == CUPTI_DOMAIN_RUNTIME ? "cudaLaunchKernel_v7000" : "cuLaunchKernel";
    return id == 1 ? CUPTI_OK : 7;
}

static int set_up(void **state)
{
    struct making *m = test_calloc(1, sizeof *m);
    m->c = (struct cupti){.version = 130001,
                          .next_record = cupti_step,
                          .callback_name = callback_name,
                          .get_timestamp = get_timestamp};
    m->b.to = (struct appender){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .out = BUF_INIT};
    m->b.room = mem_new(1, BOOK_ROOM);
    m->b.enc = (struct enc){m->b.room, m->b.room + BOOK_ROOM, false};
    assert_true(m->b.room && m->b.to.fd >= 0);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    struct making *m = *state;
    book_close(&m->b);
    test_free(m);
    return 0;
}

static uint8_t *add(struct making *m, uint32_t kind)
{
    uint8_t *r = m->buffer + m->n;
    m->n += cupti_step_bytes(kind);
    assert_true(m->n <= sizeof m->buffer);
    memcpy(r, &kind, sizeof kind);
    return r;
}

static uint8_t *set(uint8_t *r, size_t at, uint64_t v, size_t bytes)
{
    memcpy(r + at, &v, bytes);
    return r;
}

static uint8_t *add_timed(struct making *m, uint32_t kind, size_t at, uint64_t start, uint64_t end)
{
    return set(set(add(m, kind), at, start, 8), at + 8, end, 8);
}

static uint8_t *add_kernel(struct making *m, uint64_t start, uint64_t end)
{
    uint8_t *k = add_timed(m, CUPTI_CONCURRENT_KERNEL, 16, start, end);
    cupti_set_pointer(k + 104, "a kernel");
    return k;
}

/* The n-th record of that kind in what was booked; kind 0 if there is none. */
static struct gpu_record booked(const struct making *m, enum gpu_kind kind, unsigned n)
{
    struct gpu_state state = {{0}};
    struct gpu_record r;
    struct dec d = {m->b.room, m->b.enc.p, false};
    while (gpu_unpack(&state, &d, &r))
        if (r.kind == kind && n-- == 0) return r;
    assert_false(d.failed);
    return (struct gpu_record){.kind = 0};
}

static void decode(struct making *m)
{
    decode_buffer(&m->b, &m->c, m->buffer, m->n);
}

/* What CUPTI says of its own work, and of the driver's: a reader tells which is the price of recording. */
static void the_price_of_recording(void **state)
{
    static const uint32_t whats[] = {GPU_OVERHEAD_COMPILER, GPU_OVERHEAD_LAZY_LOAD,
                                     GPU_OVERHEAD_COMMAND_BUFFER, GPU_OVERHEAD_FLUSH};
    struct making *m = *state;
    uint64_t n = sizeof whats / sizeof *whats;
    for (uint64_t i = 0; i < n; i++)
        set(add_timed(m, CUPTI_OVERHEAD, 24, T + 100 * i, T + 100 * i + 7 + i), 4, whats[i], 4);
    decode_buffer(&m->b, &m->c, m->buffer, m->n);
    for (uint64_t i = 0; i < n; i++) {
        struct gpu_record r = booked(m, GPU_OVERHEAD, (unsigned)i);
        assert_int_equal(r.OVERHEAD.what, whats[i]);
        assert_int_equal(r.OVERHEAD.duration, 7 + i);
    }
}

/* ---- kinds ---- */

static void put_each_kind(struct making *m)
{
    uint8_t *r = add_kernel(m, T, T + 30);
    set(set(set(set(r, 52, 4, 4), 64, 128, 4), 92, 77, 4), 156, 3, 4);
    set(set(add_timed(m, CUPTI_MEMCPY2, 16, T + 1, T + 11), 8, 4096, 8), 52, 1, 4)[4] = GPU_PEER;
    set(set(add_timed(m, CUPTI_MEMSET, 16, T + 2, T + 3), 8, 64, 8), 50, GPU_DEVICE_MEMORY, 2);
    set(set(add_timed(m, CUPTI_GRAPH_TRACE, 8, T + 3, T + 8), 4, 5, 4), 28, 6, 4);
    set(set(add_timed(m, CUPTI_DRIVER, 8, T + 4, T + 5), 4, 1, 4), 36, 2, 4);
    set(add_timed(m, CUPTI_JIT, 16, T + 6, T + 16), 8, 3, 4);
    set(add_timed(m, CUPTI_OVERHEAD, 24, T + 7, T + 8), 4, GPU_OVERHEAD_LAZY_LOAD, 4);
    set(set(set(add(m, CUPTI_EXTERNAL_CORRELATION), 4, CUPTI_CUSTOM2, 4), 8, 9, 8), 16, 77, 4);
    set(set(set(add(m, CUPTI_EXTERNAL_CORRELATION), 4, 3, 4), 8, 9, 8), 16, 78, 4); /* another tool's */
}

static void check_each_kind(const struct making *m)
{
    struct gpu_record k = booked(m, GPU_KERNEL, 0), c = booked(m, GPU_COPY, 0), s = booked(m, GPU_SET, 0);
    struct gpu_record g = booked(m, GPU_GRAPH, 0), a = booked(m, GPU_CALL, 0),
                      in = booked(m, GPU_IN_RANGE, 0);
    struct gpu_record jit = booked(m, GPU_OVERHEAD, 0), lazy = booked(m, GPU_OVERHEAD, 1);
    assert_true(k.KERNEL.start == T && k.KERNEL.duration == 30 && k.KERNEL.id == 77 && k.KERNEL.graph == 3);
    assert_true(booked(m, GPU_SHAPE, 0).SHAPE.grid_x == 4 && booked(m, GPU_SHAPE, 0).SHAPE.block_x == 128);
    assert_true(c.COPY.what == GPU_PEER && c.COPY.bytes == 4096 && c.COPY.peer == 2 && c.COPY.duration == 10);
    assert_true(s.SET.memory == GPU_DEVICE_MEMORY && s.SET.bytes == 64);
    assert_true(g.GRAPH.id == 5 && g.GRAPH.graph == 6 && g.GRAPH.duration == 5);
    assert_true(a.CALL.result == 2 && a.CALL.duration == 1);
    assert_true(jit.OVERHEAD.what == GPU_OVERHEAD_JIT + 3 && jit.OVERHEAD.duration == 10);
    assert_true(lazy.OVERHEAD.what == GPU_OVERHEAD_LAZY_LOAD);
    assert_true(in.IN_RANGE.range == 9 && in.IN_RANGE.id == 77 && !booked(m, GPU_IN_RANGE, 1).kind);
    assert_int_equal(m->b.unread + m->b.untimed, 0);
}

static void every_kind_is_booked(void **state)
{
    struct making *m = *state;
    put_each_kind(m);
    decode(m);
    check_each_kind(m);
}

static uint8_t *add_piece(struct making *m, uint64_t what, uint64_t pool_bytes)
{
    uint8_t *r = set(set(set(add(m, CUPTI_MEMORY2), 4, what, 4), 8, GPU_DEVICE_MEMORY, 4), 16, 0x8000, 8);
    set(set(set(r, 24, 64, 8), 32, T, 8), 72, pool_bytes != 0, 4);
    return set(set(set(r, 80, 1, 4), 88, 0x9000, 8), 104, pool_bytes, 8);
}

/* A pool tells its size with every piece: booked when it changes. */
static void pools_are_told_apart_from_their_pieces(void **state)
{
    struct making *m = *state;
    const uint64_t what[] = {GPU_TAKEN, GPU_POOL_PIECE, GPU_POOL_SIZE, GPU_POOL_RETURN, GPU_POOL_SIZE};
    const uint64_t bytes[] = {64, 64, 1 << 25, 64, 0};
    add_piece(m, 1, 0);
    add_piece(m, 1, 1 << 25);
    add_piece(m, 2, 1 << 25);
    set(set(set(set(add(m, CUPTI_MEMORY_POOL), 4, 2, 4), 8, 1, 4), 32, 0x9000, 8), 56, T, 8); /* destroyed */
    decode(m);
    for (unsigned i = 0; i < 5; i++) {
        struct gpu_record r = booked(m, GPU_MEMORY, i);
        assert_true(r.kind == GPU_MEMORY && r.MEMORY.what == what[i] && r.MEMORY.bytes == bytes[i]);
    }
    assert_false(booked(m, GPU_MEMORY, 5).kind);
}

/* What is kept of names has a bound, however many there are; each kernel still has its own. */
static void more_names_than_are_kept(void **state)
{
    struct making *m = *state;
    char name[32];
    struct gpu_record last = {0}, told = {0}, r;
    for (uint64_t i = 0; i < 3 * BOOK_NAMES; i++) {
        m->n = 0;
        snprintf(name, sizeof name, "kernel %llu", (unsigned long long)i);
        cupti_set_pointer(add_kernel(m, T + i, T + i) + 104, name);
        decode(m);
        assert_true(m->b.names.n + m->b.lanes.n + m->b.shapes.n <= BOOK_NAMES + 3);
    }
    struct gpu_state at = {{0}};
    struct dec d = {m->b.room, m->b.enc.p, false};
    while (gpu_unpack(&at, &d, &r)) {
        if (r.kind == GPU_NAME) told = r;
        if (r.kind == GPU_KERNEL) last = r;
    }
    assert_int_equal(last.KERNEL.name, told.NAME.number);
    assert_memory_equal(told.text, name, strlen(name));
    assert_int_equal(m->b.unwritten, 0);
}

/* ---- what cannot be ---- */

static void times_that_cannot_be_are_counted(void **state)
{
    struct making *m = *state;
    add_kernel(m, 0, 0);
    add_kernel(m, T, T - 1);
    add_kernel(m, T, 0);
    add(m, CUPTI_MEMORY2);
    add_kernel(m, T, T); /* as short as can be, and sound */
    add_kernel(m, 0, 0);
    decode(m);
    assert_int_equal(m->b.untimed, 5);
    assert_true(booked(m, GPU_KERNEL, 0).kind && !booked(m, GPU_KERNEL, 1).kind);
    assert_true(booked(m, GPU_UNTIMED, 0).UNTIMED.from < T && booked(m, GPU_UNTIMED, 1).UNTIMED.from < T);
    assert_int_equal(booked(m, GPU_UNTIMED, 2).UNTIMED.from, T); /* it has a start */
    assert_int_equal(booked(m, GPU_UNTIMED, 3).UNTIMED.from, T); /* behind another on its stream */
}

/* At every place where a buffer can end: nothing is read behind it, which ASan would see. */
static void a_buffer_may_end_anywhere(void **state)
{
    struct making *m = *state;
    put_each_kind(m);
    for (size_t n = 0; n <= m->n; n++) {
        uint8_t *exact = test_malloc(n ? n : 1);
        memcpy(exact, m->buffer, n);
        uint64_t unread = m->b.unread;
        decode_buffer(&m->b, &m->c, exact, n);
        assert_true(m->b.unread - unread <= 1);
        test_free(exact);
    }
}

/* Seeded flips of bits: whatever the iterator makes of them, nothing is read where nothing is. */
static void a_buffer_may_hold_anything(void **state)
{
    enum { VARIANTS = 3000 };
    struct making *m = *state;
    uint64_t seed = 1;
    m->n = 0;
    put_each_kind(m);
    uint8_t *exact = test_malloc(m->n);
    for (int i = 0; i < VARIANTS; i++) {
        memcpy(exact, m->buffer, m->n);
        for (int flips = 0; flips < 1 + i % 16; flips++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            exact[(seed >> 33) % m->n] ^= (uint8_t)(1u << (seed >> 60 & 7));
        }
        cupti_mend_pointers(&m->c, exact, m->n);
        decode_buffer(&m->b, &m->c, exact, m->n);
    }
    test_free(exact);
}

static int stuck(uint8_t *buffer, size_t valid, uint8_t **record)
{
    (void)valid;
    *record = buffer;
    return CUPTI_OK;
}

static void an_iterator_that_does_not_move_ends(void **state)
{
    struct making *m = *state;
    m->c.next_record = stuck;
    add_kernel(m, T, T + 1);
    decode(m);
    assert_int_equal(m->b.unread, 1);
    assert_false(booked(m, GPU_KERNEL, 1).kind);
}

/* ---- the clock is set ---- */

/* By so many seconds: stamps from before it and from after it lie one after the other in the trace. */
static void step_by(struct making *m, int64_t seconds)
{
    const int64_t by = seconds * 1000000000;
    uint64_t ahead = T - clock_raw_ns();
    cupti_now = clock_raw_ns() + ahead;
    book_clock(&m->b, &m->c);
    uint64_t before = cupti_now;
    cupti_now = clock_raw_ns() + ahead + (uint64_t)by;
    book_watch_clock(&m->b, &m->c);
    add_kernel(m, before + 10, before + 20);
    add_kernel(m, cupti_now + 1000000, cupti_now + 1000010);
    decode(m);
    uint64_t first = booked(m, GPU_KERNEL, 0).KERNEL.start, second = booked(m, GPU_KERNEL, 1).KERNEL.start;
    assert_true(first == before + 10);
    assert_true(second > first && second - first < 1000000000);
    assert_true(booked(m, GPU_NOTE, 0).kind);
}

static void the_clock_is_set_forward(void **state)
{
    step_by(*state, 3600);
}

static void the_clock_is_set_back(void **state)
{
    step_by(*state, -3600);
}

static void a_clock_that_only_drifts_is_left_alone(void **state)
{
    struct making *m = *state;
    for (uint64_t i = 0; i < 20; i++) {
        cupti_now = clock_raw_ns() + T + i * 100000;
        book_watch_clock(&m->b, &m->c);
    }
    assert_int_equal(m->b.clock.steps, 0);
    assert_true(book_stamp(&m->b, 5) == 5);
}

/* ---- the vendor's own ---- */

#ifdef HAVE_CUPTI_H
#define AT(type, field, place) {#type "." #field, offsetof(CUpti_Activity##type, field), place},
static const struct {
    const char *field;
    size_t theirs, ours;
} places[] = {
    AT(Kernel10, registersPerThread, 6) AT(Kernel10, start, 16) AT(Kernel10, end, 24) AT(
        Kernel10, deviceId, 40) AT(Kernel10, contextId, 44) AT(Kernel10, streamId, 48) AT(Kernel10, gridX, 52)
        AT(Kernel10, blockZ, 72) AT(Kernel10, staticSharedMemory, 76) AT(Kernel10, dynamicSharedMemory, 80)
            AT(Kernel10, localMemoryPerThread, 84) AT(Kernel10, correlationId, 92) AT(Kernel10, name, 104)
                AT(Kernel10, graphNodeId, 144) AT(Kernel10, graphId, 156) AT(Memcpy6, copyKind, 4) AT(
                    Memcpy6, srcKind, 5) AT(Memcpy6, dstKind, 6) AT(Memcpy6, flags, 7) AT(Memcpy6, bytes, 8)
                    AT(Memcpy6, start, 16) AT(Memcpy6, deviceId, 32) AT(Memcpy6, streamId, 40)
                        AT(Memcpy6, correlationId, 44) AT(Memcpy6, graphId, 72) AT(MemcpyPtoP4, start, 16) AT(
                            MemcpyPtoP4, dstDeviceId, 52) AT(MemcpyPtoP4, correlationId, 60)
                            AT(MemcpyPtoP4, graphId, 80) AT(Memset4, bytes, 8) AT(Memset4, start, 16) AT(
                                Memset4, correlationId, 44) AT(Memset4, memoryKind, 50)
                                AT(Memset4, graphId, 72) AT(GraphTrace2, correlationId, 4) AT(
                                    GraphTrace2, start,
                                    8) AT(GraphTrace2, deviceId,
                                          24) AT(GraphTrace2, graphId, 28)
                                    AT(GraphTrace2, contextId, 32) AT(GraphTrace2, streamId, 36) AT(
                                        API, cbid,
                                        4) AT(API, start,
                                              8) AT(API, threadId, 28)
                                        AT(API, correlationId, 32) AT(API, returnValue, 36) AT(
                                            Overhead3,
                                            overheadKind,
                                            4) AT(Overhead3, start,
                                                  24) AT(Overhead3, overheadData,
                                                         48) AT(Memory4, memoryOperationType, 4)
                                            AT(Memory4, memoryKind, 8) AT(Memory4, correlationId, 12) AT(
                                                Memory4, address,
                                                16) AT(Memory4, bytes, 24)
                                                AT(Memory4, timestamp, 32) AT(Memory4, deviceId, 52) AT(
                                                    Memory4, isAsync,
                                                    72) AT(Memory4, memoryPoolConfig.memoryPoolType, 80)
                                                    AT(Memory4, memoryPoolConfig.address,
                                                       88) AT(Memory4, memoryPoolConfig.pool.size,
                                                              104) AT(MemoryPool3, memoryPoolOperationType,
                                                                      4) AT(MemoryPool3, memoryPoolType, 8)
                                                        AT(MemoryPool3, deviceId,
                                                           20) AT(MemoryPool3, correlationId,
                                                                  12) AT(MemoryPool3, address, 32)
                                                            AT(MemoryPool3, size,
                                                               40) AT(MemoryPool3, timestamp,
                                                                      56) AT(Jit2, jitOperationType,
                                                                             8) AT(Jit2, start, 16)
                                                                AT(Jit2, end, 24) AT(Jit2, threadId, 68) AT(
                                                                    ExternalCorrelation,
                                                                    externalKind,
                                                                    4) AT(ExternalCorrelation, externalId, 8)
                                                                    AT(ExternalCorrelation, correlationId,
                                                                       16) AT(Device5, globalMemoryBandwidth,
                                                                              8) AT(Device5, globalMemorySize,
                                                                                    16)
                                                                        AT(Device5, coreClockRate, 36) AT(
                                                                            Device5, numMultiprocessors, 44)
                                                                            AT(Device5,
                                                                               maxWarpsPerMultiprocessor, 52)
                                                                                AT(Device5,
                                                                                   computeCapabilityMajor,
                                                                                   104) AT(Device5, id, 112)
                                                                                    AT(Device5, uuid, 120) AT(
                                                                                        Device5, name, 136)};

static void places_are_those_of_the_header(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].theirs != places[i].ours) fail_msg("%s is at %zu", places[i].field, places[i].theirs);
}

#define NUMBER(ours, theirs) assert_int_equal((int)(ours), (int)(theirs))
static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    NUMBER(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    NUMBER(CUPTI_MEMORY_POOL, CUPTI_ACTIVITY_KIND_MEMORY_POOL), NUMBER(CUPTI_JIT, CUPTI_ACTIVITY_KIND_JIT);
    NUMBER(CUPTI_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_GRAPH_TRACE),
        NUMBER(CUPTI_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY2);
    NUMBER(CUPTI_CUSTOM2, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);
    NUMBER(GPU_OVERHEAD_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
    NUMBER(GPU_OVERHEAD_FLUSH, CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH);
    NUMBER(GPU_OVERHEAD_LAZY_LOAD, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
    NUMBER(GPU_OVERHEAD_COMMAND_BUFFER, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
    NUMBER(GPU_TAKEN, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
    NUMBER(GPU_FREED, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    NUMBER(CUPTI_OTHER_SUBSCRIBER, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
}
#else
static void places_are_those_of_the_header(void **state)
{
    (void)state;
    print_message("skipped: places_are_those_of_the_header: no cupti.h here\n");
    skip();
}
static void numbers_are_those_of_the_header(void **state)
{
    (void)state;
    print_message("skipped: numbers_are_those_of_the_header: no cupti.h here\n");
    skip();
}
#endif

static void *real_iterator(void)
{
    static const char *const names[] = {"libcupti.so.13", "/usr/local/cuda/lib/libcupti.so.13",
                                        "/usr/local/cuda/lib64/libcupti.so.13",
                                        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"};
    void *lib = NULL;
    for (size_t i = 0; !lib && i < sizeof names / sizeof *names; i++) lib = dlopen(names[i], RTLD_NOW);
    return lib ? dlsym(lib, "cuptiActivityGetNextRecord") : NULL;
}

/* It steps as ours does and gives each kind as ours does; no end of a buffer makes us read behind it. */
static void the_iterator_of_libcupti(void **state)
{
    struct making *m = *state;
    *(void **)&m->c.next_record = real_iterator();
    if (!m->c.next_record) {
        print_message("skipped: the_iterator_of_libcupti: no libcupti.so.13 here\n");
        skip();
    }
    put_each_kind(m);
    decode(m);
    check_each_kind(m);
    a_buffer_may_end_anywhere(state);
    a_buffer_may_hold_anything(state);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_kind_is_booked),
        TEST(the_price_of_recording),
        TEST(pools_are_told_apart_from_their_pieces),
        TEST(more_names_than_are_kept),
        TEST(times_that_cannot_be_are_counted),
        TEST(a_buffer_may_end_anywhere),
        TEST(a_buffer_may_hold_anything),
        TEST(an_iterator_that_does_not_move_ends),
        TEST(the_clock_is_set_forward),
        TEST(the_clock_is_set_back),
        TEST(a_clock_that_only_drifts_is_left_alone),
        TEST(places_are_those_of_the_header),
        TEST(numbers_are_those_of_the_header),
        TEST(the_iterator_of_libcupti),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
