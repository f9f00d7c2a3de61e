/* SPDX-License-Identifier: MIT
 * gpu_roof.h - what the first GPU of this machine can reach: multiply-adds per second of large matrix products in the
 * number formats that it has, and bytes per second on the device and to and from it. By the CUDA driver and cuBLAS as
 * they are found in the process or on the system: nothing is linked, and no header of theirs is needed. What cannot be
 * measured has its reason. Cached per host and GPU. Prints nothing. */
#ifndef PROBE_GPU_ROOF_H
#define PROBE_GPU_ROOF_H

#include "core/buf.h"
#include "core/interval.h"
#include "run/run.h"

/* X(id, key in the document); run_fields.def says what each is. Products first, then copies. */
#define GPU_ROOF_MAP(X) \
    X(FP32, fp32) \
    X(TF32, tf32) \
    X(FP16, fp16) \
    X(BF16, bf16) \
    X(INT8, int8) \
    X(MEMORY, bandwidth) \
    X(TO_DEVICE, to_device) \
    X(TO_HOST, to_host)
enum gpu_roof_kind {
#define X(id, key) GPU_ROOF_##id,
    GPU_ROOF_MAP(X) GPU_ROOF_KINDS
#undef X
};

struct gpu_roof_rate {
    struct interval
        per_s; /* the best of several repetitions, and from the lower bound of their median; NAN: unknown */
    char why[120]; /* then: why */
};

struct gpu_roof {
    char device[128], uuid[40], driver[16], library[128]; /* library: cuBLAS; "": none found */
    struct gpu_roof_rate of[GPU_ROOF_KINDS];
    char measured[32]; /* RFC 3339 */
    bool cached;
};

struct gpu_roof_options {
    const char *cache_dir, *fingerprint; /* NULL: do not keep, do not look */
    bool fresh;                          /* measure even if cached */
};

/* TARE_UNSUPPORTED, with the reason, where there is no GPU or no driver. Takes a second or two when measured. */
tare_status gpu_roof_measure(struct gpu_roof *out, const struct gpu_roof_options *o, tare_error *err);
/* Only what was measured with this driver. */
bool gpu_roof_recall(struct gpu_roof *out, const struct gpu_roof_options *o, const char *uuid,
                     const char *driver);
void gpu_roof_record(const struct gpu_roof *r, struct run *run); /* into run->gpu_roof */
const char *gpu_roof_key(enum gpu_roof_kind k);

/* ---- gpu_roof_cache.c: as text, and back; `now` is in seconds of the wall clock ---- */
void gpu_roof_write(const struct gpu_roof *r, const char *fingerprint, int64_t now, struct buf *out);
bool gpu_roof_read(struct gpu_roof *out, const char *fingerprint, int64_t now, const char *text, size_t n);
void gpu_roof_save(const struct gpu_roof *r, const struct gpu_roof_options *o); /* if all rates are known */

#endif
