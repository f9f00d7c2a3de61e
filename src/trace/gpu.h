/* SPDX-License-Identifier: MIT
 * gpu.h - what a GPU did, in the trace: records of kernels, copies, calls, ranges and memory, packed into GPU chunks by
 * the injected library and read back in the order in which they were written. gpu_records.def lists them. */
#ifndef TRACE_GPU_H
#define TRACE_GPU_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "trace/wire.h"

#define F(field, coding)
#define RECORD(number, name, fields) GPU_##name = number,
enum gpu_kind {
#include "trace/gpu_records.def"
    GPU_KINDS
};
#undef RECORD
#undef F

struct gpu_record {
    enum gpu_kind kind;
    const char *text; /* NAME, DEVICE, NOTE, THREAD, RANK; not NUL-terminated */
    size_t text_bytes;
    union {
        uint64_t v[12];
#define F(field, coding) uint64_t field;
#define RECORD(number, name, fields) \
    struct {                         \
        fields                       \
    } name;
#include "trace/gpu_records.def"
#undef RECORD
#undef F
    };
};

enum { GPU_NOTE_MOST = 600, GPU_TEXT_MOST = 4000 }; /* of a name: C++ templates are long */

/* What differences are taken to; zeroed at the start of a chunk. */
struct gpu_state {
    uint64_t last[4];
};

/* False, and nothing is written, when there is no room. */
bool gpu_pack(struct gpu_state *s, struct enc *to, const struct gpu_record *r);
/* False at the end, and at bytes that are no record (then d->failed). */
bool gpu_unpack(struct gpu_state *s, struct dec *d, struct gpu_record *r);
bool gpu_has_time(enum gpu_kind kind); /* its first field is a time */
/* A NOTE in these words. */
struct gpu_record gpu_note(char room[GPU_NOTE_MOST], const char *format, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* COPY.what: direction | from << 8 | to << 16 | asynchronous << 24; the numbers are CUPTI's. */
enum gpu_direction { GPU_TO_DEVICE = 1, GPU_TO_HOST = 2, GPU_ON_DEVICE = 8, GPU_ON_HOST = 9, GPU_PEER = 10 };
enum gpu_memory { GPU_PAGEABLE = 1, GPU_PINNED = 2, GPU_DEVICE_MEMORY = 3, GPU_ARRAY = 4, GPU_MANAGED = 5 };

/* MEMORY.what. A pool keeps what it has from the driver: pieces of it are no more than that. */
enum gpu_memory_what {
    GPU_TAKEN = 1,       /* from the driver */
    GPU_FREED = 2,       /* to the driver */
    GPU_POOL_PIECE = 3,  /* taken from a pool */
    GPU_POOL_RETURN = 4, /* given back to it */
    GPU_POOL_SIZE = 5    /* what the pool at that address has from the driver is now `bytes` */
};

/* OVERHEAD.what: CUPTI's numbers, and behind them what the driver does to make code for the GPU. */
enum gpu_overhead_kind {
    GPU_OVERHEAD_COMPILER = 1,
    GPU_OVERHEAD_FLUSH = 1 << 16,
    GPU_OVERHEAD_INSTRUMENTATION = 2 << 16,
    GPU_OVERHEAD_RESOURCE = 3 << 16,
    GPU_OVERHEAD_MODULE_LOAD = 4 << 16,
    GPU_OVERHEAD_LAZY_LOAD = 5 << 16,
    GPU_OVERHEAD_COMMAND_BUFFER = 6 << 16,
    GPU_OVERHEAD_BUFFER_REQUEST = 7 << 16,
    GPU_OVERHEAD_UVM = 8 << 16,
    GPU_OVERHEAD_JIT = 1 << 24, /* + 1 read from the cache, 2 stored in it, 3 compiled */
};

/* HOST_STATE.state: what a thread that launches was doing when it was looked at. */
enum gpu_host_does { GPU_HOST_RUNS, GPU_HOST_WAITS, GPU_HOST_SLEEPS, GPU_HOST_STATES };

/* Domains of ranges that say what a framework did, rather than what a program calls a part of itself. IN_RANGE names
 * the innermost range of any domain; the operator and the module of a kernel are the nearest of these around it. */
#define GPU_DOMAIN_OP "torch op"         /* aten::linear */
#define GPU_DOMAIN_MODULE "torch module" /* from the root: Net.blocks.0.fc1 */
#define GPU_DOMAIN_PYTHON "python"       /* a frame: train.py(12): step */

/* NOTE.what */
enum gpu_note_kind { GPU_NOTE_PLAIN, GPU_NOTE_LATE /* recording began in a running program */ };

/* Of a PROCESS, beside enum tare_mode: it writes GPU chunks; it comes from another tool's file, and each of its ranges
 * is a scope of its thread, too. */
enum { MODE_GPU = 4, MODE_IMPORTED = 8 };

/* ---- reading: all GPU chunks of a trace, in the order of the file ---- */
struct trace;
bool trace_has_gpu(const struct trace *t);
/* Times are nanoseconds since the start of the trace; numbers (names, lanes, shapes, ranges) are those of the process.
 * Stops when `fn` returns non-zero and returns that. */
typedef int trace_gpu_fn(void *ctx, uint32_t process, const struct gpu_record *r);
int trace_gpu(struct trace *t, trace_gpu_fn *fn, void *ctx);
/* A moment of the wall clock, as the records of that process have it, on the same axis. */
uint64_t trace_gpu_moment(struct trace *t, uint32_t process, uint64_t unix_ns);

#endif
