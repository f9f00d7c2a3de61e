/* SPDX-License-Identifier: MIT
 * many_kernels.c - writes the large GPU trace that bench/run reads back: N thousand kernels into FILE, as a training
 * program would have them: steps of 500 kernels of 40 names on two streams, each with its launch call, each launched in
 * an NVTX range. As CUPTI gives them back, the two streams and the calls come in blocks, not in the order of time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/appender.h"
#include "trace/gpu.h"
#include "trace/recorder.h"

enum { NAMES = 40, STEP = 500, BLOCK = 4 * STEP, KERNEL_NS = 6000, LAUNCH = NAMES + 1, RANGE = NAMES + 2 };

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

static void put_tables(void)
{
    char name[200];
    for (uint64_t i = 1; i <= NAMES; i++) {
        snprintf(
            name, sizeof name,
            "_ZN2at6native29vectorized_elementwise_kernelILi%dENS0_13FillFunctor%02dIfEESt5arrayIPcLm1EEEEviT0_T1_",
            (int)i, (int)i);
        put_name(i, name);
    }
    put_name(LAUNCH, "cudaLaunchKernel");
    put_name(RANGE, "step");
    for (uint64_t lane = 1; lane <= 2; lane++) {
        struct gpu_record r = {.kind = GPU_LANE};
        r.LANE.number = r.LANE.stream = lane;
        put(r);
    }
}

/* What a step's launch calls and its NVTX range left. */
static void put_calls(uint64_t t0, uint64_t first)
{
    struct gpu_record r;
    for (uint64_t id = first; id < first + BLOCK; id++) {
        uint64_t at = t0 + id * KERNEL_NS;
        if (id % STEP == 0) {
            r = (struct gpu_record){.kind = GPU_RANGE_BEGIN};
            r.RANGE_BEGIN.at = at - 1000;
            r.RANGE_BEGIN.thread = 11;
            r.RANGE_BEGIN.range = 1 + id / STEP;
            r.RANGE_BEGIN.name = RANGE;
            put(r);
        }
        r = (struct gpu_record){.kind = GPU_IN_RANGE};
        r.IN_RANGE.id = 1 + 11 * id;
        r.IN_RANGE.range = 1 + id / STEP;
        put(r);
        r = (struct gpu_record){.kind = GPU_CALL};
        r.CALL.start = at;
        r.CALL.duration = 2000 + id % 7 * 100;
        r.CALL.thread = 11;
        r.CALL.name = LAUNCH;
        r.CALL.id = 1 + 11 * id; /* ten other calls in between */
        put(r);
        if (id % STEP != STEP - 1) continue;
        r = (struct gpu_record){.kind = GPU_RANGE_END};
        r.RANGE_END.at = at + 4000;
        r.RANGE_END.range = 1 + id / STEP;
        put(r);
    }
}

static void put_kernels(uint64_t t0, uint64_t first, uint64_t lane)
{
    for (uint64_t id = first; id < first + BLOCK; id++) {
        struct gpu_record r = {.kind = GPU_KERNEL};
        if (id % 4 / 3 != lane - 1) continue; /* every fourth on the second stream */
        r.KERNEL.start = t0 + id * KERNEL_NS + 5000;
        r.KERNEL.duration = 3000 + id * 2654435761u % 4000;
        r.KERNEL.lane = lane;
        r.KERNEL.name = 1 + id % STEP * 7 % NAMES;
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
