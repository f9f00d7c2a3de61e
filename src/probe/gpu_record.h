/* SPDX-License-Identifier: MIT
 * gpu_record.h - libtare-gpu.so: where it is, and what the GPU does for this process recorded by it into a trace, for
 * as long as that is wanted. It may be started after the GPU was used already. Nothing is linked: where there is no
 * GPU, no driver or no CUPTI it says so. */
#ifndef PROBE_GPU_RECORD_H
#define PROBE_GPU_RECORD_H

#include <limits.h>
#include <stdbool.h>

#include "core/error.h"

/* Where `make`, `make install` and the Python package have it, seen from the command; false: nowhere. */
bool library_beside(const char *file, char out[PATH_MAX]);
#define LIBRARY_MISSING(file) \
    file " is neither beside the tare command nor in its LIBDIR, ../lib or ../_lib from there"
bool gpu_record_library(char out[PATH_MAX]);
#define GPU_RECORD_MISSING LIBRARY_MISSING("libtare-gpu.so")

struct gpu_recording {
    void *library;
    const char *(*stop)(void);
};

/* From now on into `path`. TARE_UNSUPPORTED, with the reason. `library` NULL: it is looked for. One at a time. */
tare_status gpu_record_start(struct gpu_recording *r, const char *library, const char *path, tare_error *err);
/* All of it is in the file. The library stays loaded: CUPTI has addresses of it. */
tare_status gpu_record_stop(struct gpu_recording *r, tare_error *err);

#endif
