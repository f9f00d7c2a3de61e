/* SPDX-License-Identifier: MIT
 * trace_out.h - a trace made from what another tool recorded: one process, GPU records, scopes of its threads. Streams
 * into a file that is there as a whole or not at all. Times are nanoseconds of any clock above 0; what time 0 is, is
 * told at the end. */
#ifndef IMPORT_TRACE_OUT_H
#define IMPORT_TRACE_OUT_H

#include "core/buf.h"
#include "core/file.h"
#include "core/map.h"
#include "trace/format.h"
#include "trace/gpu.h"

struct trace_out_scopes; /* events of the thread that is being written */

struct trace_out {
    struct file_out file;
    uint64_t uid;
    uint8_t *room; /* of the GPU chunk under way */
    struct enc enc;
    struct gpu_state state;
    struct map_str names, tables; /* text, or kind and fields -> number; forgotten when they grow too large */
    size_t name_bytes;
    uint64_t next_name, next_number[GPU_KINDS];
    struct map_str sites; /* name -> number + 1 */
    struct trace_out_scopes *scopes;
    uint32_t threads;
    tare_status status; /* of the first thing that failed; then nothing more is written */
    tare_error *err;
};

/* Nothing to release after a failure. `err` stays in use until the end. */
tare_status trace_out_open(struct trace_out *o, const char *path, tare_error *err);
void trace_out_release(struct trace_out *o); /* without a finish before it nothing is left of the file */

/* ---- GPU records; failures are kept in `status` ---- */
void trace_out_put(struct trace_out *o, const struct gpu_record *r);
uint64_t trace_out_name(struct trace_out *o, const char *text, size_t n); /* its number */
/* Of a LANE or SHAPE, by all fields but the first, which is set to its number. */
uint64_t trace_out_number(struct trace_out *o, struct gpu_record *r);
void trace_out_note(struct trace_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- scopes: thread after thread, each in order of time ---- */
void trace_out_thread(struct trace_out *o, uint32_t tid, const char *name);
void trace_out_begin(struct trace_out *o, uint64_t at, const char *name);
void trace_out_end(struct trace_out *o, uint64_t at);

/* Who it was and when it began, then the name becomes the file's. */
struct trace_out_process {
    uint32_t pid;
    const char *command;
    uint64_t begun_ns, begun_unix_ns; /* on the clock of the records; 0: unknown */
};
tare_status trace_out_finish(struct trace_out *o, const struct trace_out_process *p);

#endif
