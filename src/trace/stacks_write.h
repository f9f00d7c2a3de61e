/* SPDX-License-Identifier: MIT
 * stacks_write.h - stacks that were sampled from outside, into a trace: the records of memory.h, told by whoever looks
 * on behalf of the process that is looked at. Written at least about once a second, so that a kill loses no more. */
#ifndef TRACE_STACKS_WRITE_H
#define TRACE_STACKS_WRITE_H

#include <sys/types.h>

#include "core/error.h"
#include "trace/memory.h"

struct stacks_writer;
/* Joins the archive at `path` for process `pid`. */
tare_status stacks_open(struct stacks_writer **out, const char *path, pid_t pid, tare_error *err);
/* Adds a record; its text is copied. What cannot be kept is counted and told by stacks_close(). */
void stacks_put(struct stacks_writer *w, const struct memory_record *r);
/* The number of a name, of a frame below `parent`; told once. 0: lost. */
uint64_t stacks_name(struct stacks_writer *w, const char *text);
struct stacks_frame {
    uint64_t parent, kind, where, at;
};
uint64_t stacks_frame(struct stacks_writer *w, const struct stacks_frame *f);
tare_status stacks_flush(struct stacks_writer *w, tare_error *err);
tare_status stacks_close(struct stacks_writer *w, tare_error *err); /* NULL is fine */

#endif
