/* SPDX-License-Identifier: MIT
 * many_kernels.c - writes the large GPU trace that bench/run reads back: N thousand kernels into FILE, as a training
 * program would have them: steps of 500 kernels of 40 names on two streams, each with its launch call, launched in an
 * NVTX range; a step begins with a copy and ends with a wait. As CUPTI gives them back, the two streams and the calls
 * come in blocks, not in the order of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/appender.h"
#include "trace/gpu.h"
#include "trace/recorder.h"

enum { NAMES = 40, STEP = 500, BLOCK = 4 * STEP, KERNEL_NS = 6000, GAP_NS = 400000 };
enum { LAUNCH = NAMES + 1, RANGE, COPY, WAIT, TAKE, SHAPES = 4 };

static struct {
    struct appender to;
    uint8_t room[256 << 10];
    struct enc enc;
    struct gpu_state state;
    struct gpu_record clock;
} it;

static void begin_chunk(void)
{
    it.state = (struct gpu_state){{0}};
    it.enc = (struct enc){it.room, it.room + sizeof it.room, false};
    gpu_pack(&it.state, &it.enc, &it.clock);
}

static void write_chunk(void)
{
    size_t at = appender_begin(&it.to);
    buf_add(&it.to.out, it.room, (size_t)(it.enc.p - it.room));
    appender_end(&it.to, at, CHUNK_GPU);
    if (appender_write(&it.to, NULL) != TARE_OK) exit(3);
    begin_chunk();
}

static void put(struct gpu_record r)
{
    if (gpu_pack(&it.state, &it.enc, &r)) return;
    write_chunk();
    gpu_pack(&it.state, &it.enc, &r);
}

static void put_name(uint64_t number, const char *text)
{
    struct gpu_record r = {.kind = GPU_NAME, .text = text, .text_bytes = strlen(text)};
    r.NAME.number = number;
    put(r);
}

static void put_shapes(void)
{
    for (uint64_t i = 1; i <= SHAPES; i++) {
        struct gpu_record r = {.kind = GPU_SHAPE};
        r.SHAPE.number = i;
        r.SHAPE.grid_x = 32 << i;
        r.SHAPE.grid_y = r.SHAPE.grid_z = r.SHAPE.block_y = r.SHAPE.block_z = 1;
        r.SHAPE.block_x = 128 * i;
        r.SHAPE.registers = 24 * i;
        r.SHAPE.shared_dynamic = 4096 * i;
        put(r);
    }
}

static void put_tables(void)
{
    static const char *const kinds[] = {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x",
                                        "flash_fwd_kernel_hdim", "layer_norm_fwd_kernel_", "reduce_kernel_"};
    char name[200];
    for (int i = 1; i <= NAMES; i++) {
        if (i % 5 < 4)
            snprintf(name, sizeof name, "%s%d", kinds[i % 5], i);
        else
            snprintf(
                name, sizeof name,
                "_ZN2at6native29vectorized_elementwise_kernelILi%dENS0_13FillFunctor%02dIfEESt5arrayIPcLm1EEEEviT0_T1_",
                i, i);
        put_name((uint64_t)i, name);
    }
    put_name(LAUNCH, "cudaLaunchKernel");
    put_name(RANGE, "step");
    put_name(COPY, "cudaMemcpyAsync");
    put_name(WAIT, "cudaStreamSynchronize");
    put_name(TAKE, "cudaMalloc");
    for (uint64_t lane = 1; lane <= 2; lane++) {
        struct gpu_record r = {.kind = GPU_LANE};
        r.LANE.number = r.LANE.stream = lane;
        put(r);
    }
    put_shapes();
}

/* When a kernel is launched: steps are apart by a gap, in which the program waits. */
static uint64_t launched_at(uint64_t t0, uint64_t id)
{
    return t0 + id * KERNEL_NS + id / STEP * GAP_NS;
}

static void put_call(uint64_t start, uint64_t duration, uint64_t name, uint64_t id)
{
    struct gpu_record r = {.kind = GPU_CALL};
    r.CALL.start = start;
    r.CALL.duration = duration;
    r.CALL.thread = 11;
    r.CALL.name = name;
    r.CALL.id = id;
    put(r);
}

/* Twenty pieces of memory in the first steps; half of them are given back. */
static void put_memory(uint64_t at, uint64_t step)
{
    struct gpu_record r = {.kind = GPU_MEMORY};
    if (step >= 30) return;
    r.MEMORY.at = at;
    r.MEMORY.what = step < 20 ? 1 : 2;
    r.MEMORY.kind = GPU_DEVICE_MEMORY;
    r.MEMORY.bytes = (UINT64_C(1) + step % 5) << 26;
    r.MEMORY.address = (1 + step % 20) << 32;
    r.MEMORY.id = 2 + 11 * step * STEP;
    put_call(at - 500, 600, TAKE, r.MEMORY.id);
    put(r);
}

static void begin_step(uint64_t at, uint64_t id)
{
    struct gpu_record r = {.kind = GPU_RANGE_BEGIN};
    r.RANGE_BEGIN.at = at - 8000;
    r.RANGE_BEGIN.thread = 11;
    r.RANGE_BEGIN.range = 1 + id / STEP;
    r.RANGE_BEGIN.name = RANGE;
    put(r);
    put_memory(at - 7000, id / STEP);
    put_call(at - 5000, 3000, COPY, 3 + 11 * id);
}

static void end_step(uint64_t at, uint64_t id)
{
    struct gpu_record r = {.kind = GPU_RANGE_END};
    put_call(at + 3000, GAP_NS / 2 + id / STEP % 5 * 20000, WAIT, 4 + 11 * id);
    r.RANGE_END.at = at + GAP_NS - 50000;
    r.RANGE_END.range = 1 + id / STEP;
    put(r);
}

/* What a step's launch calls and its NVTX range left. */
static void put_calls(uint64_t t0, uint64_t first)
{
    struct gpu_record r;
    for (uint64_t id = first; id < first + BLOCK; id++) {
        uint64_t at = launched_at(t0, id);
        if (id % STEP == 0) begin_step(at, id);
        r = (struct gpu_record){.kind = GPU_IN_RANGE};
        r.IN_RANGE.id = 1 + 11 * id; /* ten other calls in between */
        r.IN_RANGE.range = 1 + id / STEP;
        put(r);
        put_call(at, 2000 + id % 7 * 100, LAUNCH, 1 + 11 * id);
        if (id % STEP == STEP - 1) end_step(at, id);
    }
}

static void put_copy(uint64_t t0, uint64_t id)
{
    struct gpu_record r = {.kind = GPU_COPY};
    r.COPY.start = launched_at(t0, id) - 1500;
    r.COPY.duration = 6000;
    r.COPY.lane = 1;
    r.COPY.what = GPU_TO_DEVICE | GPU_PINNED << 8 | GPU_DEVICE_MEMORY << 16;
    r.COPY.bytes = 1 << 20;
    r.COPY.id = 3 + 11 * id;
    put(r);
}

static void put_kernels(uint64_t t0, uint64_t first, uint64_t lane)
{
    for (uint64_t id = first; id < first + BLOCK; id++) {
        struct gpu_record r = {.kind = GPU_KERNEL};
        if (id % STEP == 0 && lane == 1) put_copy(t0, id);
        if (id % 4 / 3 != lane - 1) continue; /* every fourth on the second stream */
        r.KERNEL.start = launched_at(t0, id) + 5000;
        r.KERNEL.duration = 3000 + id * 2654435761u % 4000;
        r.KERNEL.lane = lane;
        r.KERNEL.name = 1 + id % STEP * 7 % NAMES;
        r.KERNEL.shape = 1 + r.KERNEL.name % SHAPES;
        r.KERNEL.id = 1 + 11 * id;
        put(r);
    }
}

int main(int argc, char **argv)
{
    tare_error err = TARE_ERROR_INIT;
    if (argc != 3) {
        fprintf(stderr, "usage: many_kernels FILE THOUSANDS\n");
        return 2;
    }
    if (appender_open(&it.to, &(struct appender_options){.path = argv[1], .mode = MODE_GPU, .tsc = 1},
                      &err) != TARE_OK) {
        fprintf(stderr, "many_kernels: %s\n", err.text);
        return 3;
    }
    uint64_t n = strtoull(argv[2], NULL, 10) * 1000, now = clock_raw_ns();
    it.clock = (struct gpu_record){.kind = GPU_CLOCK};
    it.clock.CLOCK.stamp = it.clock.CLOCK.raw_ns = now;
    begin_chunk();
    put_tables();
    for (uint64_t first = 0; first < n; first += BLOCK) {
        put_calls(now, first);
        put_kernels(now, first, 1);
        put_kernels(now, first, 2);
    }
    write_chunk();
    return appender_close(&it.to, 0, &err) == TARE_OK ? 0 : 3;
}
