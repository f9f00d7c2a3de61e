/* SPDX-License-Identifier: MIT
 * appender.h - a process that only adds chunks to an archive and needs no live file, as tare itself, which samples.
 * What is put together goes out with one write(2) of whole chunks, so that a kill loses at most that. */
#ifndef TRACE_APPENDER_H
#define TRACE_APPENDER_H

#include "core/buf.h"
#include "core/error.h"
#include "trace/format.h"

struct appender {
    int fd;
    char *path;
    char run_id[32];
    uint64_t uid;
    struct buf out; /* chunks not yet written */
};

/* Opens or joins the archive and says who we are. `sampler`: TARE_BUSY when another process samples into it now.
 * `run_id` NULL: one is made, or the trace's is taken. Nothing to release after a failure. */
struct appender_options {
    const char *path, *run_id;
    uint32_t mode, tsc; /* as in PROCESS */
    uint32_t pid;       /* of the process that is told about; 0: this one */
    bool sampler;
};
tare_status appender_open(struct appender *a, const struct appender_options *o, tare_error *err);

size_t appender_begin(struct appender *a); /* a chunk; gives its place to appender_end */
void appender_end(struct appender *a, size_t at, enum chunk_type type);
void appender_uint(struct appender *a, uint64_t v);
void appender_text(struct appender *a, const char *s, size_t n);
tare_status appender_write(struct appender *a, tare_error *err); /* all of `out`, which is empty afterwards */

/* END, with what was lost, and the file is closed. */
tare_status appender_close(struct appender *a, uint64_t lost, tare_error *err);

#endif
