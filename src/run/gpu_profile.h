/* SPDX-License-Identifier: MIT
 * gpu_profile.h - the document `tare.gpu/1`: what the GPUs of a program did, summed up from a trace. Its fields are
 * listed in gpu_fields.def; analyze/gpu makes it. All memory it points to is its arena's; texts may be literals. */
#ifndef RUN_GPU_PROFILE_H
#define RUN_GPU_PROFILE_H

#include "run/run.h"

#define GPU_SCHEMA "tare.gpu/1"

#include "run/as_structs.h"
#include "run/gpu_fields.def"

/* Empty but for id, created (now) and tool. gpu_profile_release() takes a zeroed struct too. */
tare_status gpu_profile_init(struct gpu_profile *p, tare_error *err);
void gpu_profile_release(struct gpu_profile *p);
tare_status gpu_profile_write(const struct gpu_profile *p, struct buf *out, tare_error *err);

/* Of gpu_idle.cause, for people. */
const char *gpu_cause_words(const char *cause);

#endif
