/* SPDX-License-Identifier: MIT
 * gpu_roof.c - see gpu_roof.h. Products are of square matrices, large enough that a product takes a fraction of a
 * millisecond at least, filled with small random numbers: zeros would draw less power and run at higher clocks. Times
 * are the GPU's own, by events around a block of products. */
#include "probe/gpu_roof.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/stats.h"

enum { REPEATS = 15, BLOCK_US = 4000, WARM_US = 20000, SIZE_MOST = 8192, SIZE_LEAST = 1024, ZERO_TIMES = 64 };
#define COPY_BYTES ((size_t)512 << 20)
#define PINNED_BYTES ((size_t)64 << 20)
#define PATTERN_BYTES ((size_t)1 << 20)

const char *gpu_roof_key(enum gpu_roof_kind k)
{
    static const char *const keys[] = {
#define X(id, key) #key,
        GPU_ROOF_MAP(X)
#undef X
    };
    return keys[k];
}

/* ---- the driver and cuBLAS, as far as they are called: our own declarations ---- */

typedef uint64_t cu_pointer;

#define DRIVER_CALLS(CALL)                                                                  \
    CALL(init, "cuInit", (unsigned flags))                                                  \
    CALL(version, "cuDriverGetVersion", (int *version))                                     \
    CALL(device_count, "cuDeviceGetCount", (int *n))                                        \
    CALL(device_get, "cuDeviceGet", (int *device, int number))                              \
    CALL(device_name, "cuDeviceGetName", (char *name, int size, int device))                \
    CALL(device_uuid, "cuDeviceGetUuid", (uint8_t *uuid, int device))                       \
    CALL(retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                  \
    CALL(release, "cuDevicePrimaryCtxRelease_v2", (int device))                             \
    CALL(push, "cuCtxPushCurrent_v2", (void *context))                                      \
    CALL(pop, "cuCtxPopCurrent_v2", (void **context))                                       \
    CALL(synchronize, "cuCtxSynchronize", (void))                                           \
    CALL(alloc, "cuMemAlloc_v2", (cu_pointer *p, size_t bytes))                             \
    CALL(give_back, "cuMemFree_v2", (cu_pointer p))                                              \
    CALL(host_alloc, "cuMemHostAlloc", (void **p, size_t bytes, unsigned flags))            \
    CALL(host_free, "cuMemFreeHost", (void *p))                                             \
    CALL(to_device, "cuMemcpyHtoDAsync_v2", (cu_pointer to, const void *from, size_t n, void *stream)) \
    CALL(to_host, "cuMemcpyDtoHAsync_v2", (void *to, cu_pointer from, size_t n, void *stream)) \
    CALL(on_device, "cuMemcpyDtoDAsync_v2", (cu_pointer to, cu_pointer from, size_t n, void *stream)) \
    CALL(event_make, "cuEventCreate", (void **event, unsigned flags))                       \
    CALL(event_record, "cuEventRecord", (void *event, void *stream))                        \
    CALL(event_wait, "cuEventSynchronize", (void *event))                                   \
    CALL(event_ms, "cuEventElapsedTime", (float *ms, void *from, void *to))                 \
    CALL(event_free, "cuEventDestroy_v2", (void *event))                                    \
    CALL(error_name, "cuGetErrorName", (int code, const char **name))

#define BLAS_CALLS(CALL)                                                                                   \
    CALL(make, "cublasCreate_v2", (void **handle))                                                         \
    CALL(end, "cublasDestroy_v2", (void *handle))                                                         \
    CALL(version, "cublasGetVersion_v2", (void *handle, int *version))                                     \
    CALL(product, "cublasGemmEx",                                                                          \
         (void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a,     \
          int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, void *c, int type_c,  \
          int ldc, int compute, int algorithm))

struct cu_driver {
#define CALL(name, symbol, parameters) int(*name) parameters;
    DRIVER_CALLS(CALL)
#undef CALL
};
struct cu_blas {
    void *handle;
#define CALL(name, symbol, parameters) int(*name) parameters;
    BLAS_CALLS(CALL)
#undef CALL
};

struct probing {
    struct cu_driver d;
    struct cu_blas blas;
    int device;
    void *context, *from, *to; /* events */
    struct gpu_roof *out;
};

static bool load_driver(struct cu_driver *d, tare_error *err)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL;
    if (!lib) {
        error_set(err, TARE_UNSUPPORTED, "no CUDA driver: libcuda.so.1 is not there");
        return false;
    }
#define CALL(name, symbol, parameters) \
    if (!(*(void **)&d->name = dlsym(lib, symbol))) missing = symbol;
    DRIVER_CALLS(CALL)
#undef CALL
    if (missing) error_set(err, TARE_UNSUPPORTED, "the CUDA driver is too old: it has no %s", missing);
    return !missing;
}

/* The copy that is in the process already, as a runtime brings it, else that of the system. */
static void *find_blas(char *name, size_t size)
{
    static const int flags[] = {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL};
    for (size_t f = 0; f < 2; f++) {
        for (int major = 13; major >= 11; major--) {
            snprintf(name, size, "libcublas.so.%d", major);
            void *lib = dlopen(name, flags[f]);
            if (lib) return lib;
        }
    }
    name[0] = 0;
    return NULL;
}

static bool load_blas(struct probing *p)
{
    struct cu_blas *b = &p->blas;
    char name[32];
    int version = 0;
    bool all = true;
    void *lib = find_blas(name, sizeof name);
    if (!lib) return false;
#define CALL(name, symbol, parameters) all = all && (*(void **)&b->name = dlsym(lib, symbol)) != NULL;
    BLAS_CALLS(CALL)
#undef CALL
    if (!all || b->make(&b->handle) != 0) return false;
    b->version(b->handle, &version);
    snprintf(p->out->library, sizeof p->out->library, "%s %d", name, version);
    return true;
}

static const char *why_of(const struct cu_driver *d, int code)
{
    const char *name = NULL;
    return d->error_name(code, &name) == 0 && name ? name : "an unknown error";
}

/* ---- repeated work ---- */

/* One piece of work, given to the GPU; not 0: it refused. */
typedef int work_fn(struct probing *p, void *ctx);

/* `times` pieces in a row: milliseconds by the GPU's clock, or below 0: the error. */
static double time_block(struct probing *p, work_fn *work, void *ctx, uint64_t times)
{
    float ms = 0;
    int failed = p->d.event_record(p->from, NULL);
    for (uint64_t i = 0; !failed && i < times; i++) failed = work(p, ctx);
    if (!failed) failed = p->d.event_record(p->to, NULL);
    if (!failed) failed = p->d.event_wait(p->to);
    if (!failed) failed = p->d.event_ms(&ms, p->from, p->to);
    return failed ? -(double)failed : (double)ms;
}

/* As many pieces as take BLOCK_US, again and again: the best rate, and the lower bound of the median. */
static void measure(struct probing *p, struct gpu_roof_rate *out, work_fn *work, void *ctx, double amount)
{
    double rates[REPEATS], warm = 0, ms = 0;
    uint64_t times = 1;
    while (warm < WARM_US / 1e3) {
        ms = time_block(p, work, ctx, times);
        if (ms < 0) {
            snprintf(out->why, sizeof out->why, "error %d of the GPU or its library", (int)-ms);
            return;
        }
        if (ms == 0 && times >= ZERO_TIMES) break; /* told below */
        warm += ms;
        if (ms < BLOCK_US / 1e3 && times < 1 << 20) times *= 2;
    }
    for (int i = 0; i < REPEATS; i++) {
        ms = time_block(p, work, ctx, times);
        if (!(ms > 0)) {
            snprintf(out->why, sizeof out->why, "the GPU's clock does not tell times");
            return;
        }
        rates[i] = amount * (double)times / ms * 1e3;
    }
    struct interval median = {NAN, NAN, NAN};
    if (stats_median_interval(rates, REPEATS, 0.95, &median, NULL) < 0) return;
    stats_sort(rates, REPEATS);
    double low =
        isfinite(median.lo) ? median.lo : rates[0]; /* repetitions that drift tell no bound of the median */
    out->per_s = (struct interval){rates[REPEATS - 1], low, rates[REPEATS - 1]};
}

/* ---- products ---- */

/* What cuBLAS calls these. */
enum { CUDA_32F = 0, CUDA_16F = 2, CUDA_8I = 3, CUDA_32I = 10, CUDA_16BF = 14 };
enum { IN_32F = 68, IN_32I = 72, IN_TF32 = 77, BEST_ALGORITHM = -1, TURNED = 1 };

struct product_row {
    enum gpu_roof_kind kind;
    int in, out, compute;
    unsigned in_bytes;
};
static const struct product_row products[] = {
    {GPU_ROOF_FP32, CUDA_32F, CUDA_32F, IN_32F, 4},
    {GPU_ROOF_TF32, CUDA_32F, CUDA_32F, IN_TF32, 4},
    {GPU_ROOF_FP16, CUDA_16F, CUDA_16F, IN_32F, 2},
    {GPU_ROOF_BF16, CUDA_16BF, CUDA_16BF, IN_32F, 2},
    {GPU_ROOF_INT8, CUDA_8I, CUDA_32I, IN_32I, 1},
};

struct product {
    const struct product_row *row;
    cu_pointer a, b, c;
    int n;
};

static int do_product(struct probing *p, void *ctx)
{
    const struct product *m = ctx;
    static const float one = 1, zero = 0;
    static const int32_t int_one = 1, int_zero = 0;
    bool ints = m->row->compute == IN_32I;
    int n = m->n, in = m->row->in;
    return p->blas.product(p->blas.handle, TURNED, 0, n, n, n, ints ? (const void *)&int_one : &one,
                           (const void *)(uintptr_t)m->a, in, n, (const void *)(uintptr_t)m->b, in, n,
                           ints ? (const void *)&int_zero : &zero, (void *)(uintptr_t)m->c, m->row->out, n,
                           m->row->compute, BEST_ALGORITHM);
}

/* Numbers between 1/8 and 1/4 of either sign in each format; any bytes for integers. */
static void fill_pattern(uint8_t *to, const struct product_row *row)
{
    struct rng r;
    rng_seed(&r, 1);
    for (size_t i = 0; i < PATTERN_BYTES / 4; i++) {
        uint32_t v = (uint32_t)rng_next(&r);
        if (row->in == CUDA_32F) v = (v & 0x807fffffu) | 0x3e000000u;
        if (row->in == CUDA_16F) v = (v & 0x83ff83ffu) | 0x30003000u;
        if (row->in == CUDA_16BF) v = (v & 0x807f807fu) | 0x3e003e00u;
        memcpy(to + 4 * i, &v, 4);
    }
}

static int fill_matrix(struct probing *p, cu_pointer to, size_t bytes, const uint8_t *pattern)
{
    int failed = p->d.to_device(to, pattern, bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES, NULL);
    for (size_t at = PATTERN_BYTES; !failed && at < bytes; at += PATTERN_BYTES)
        failed = p->d.on_device(to + at, to, bytes - at < PATTERN_BYTES ? bytes - at : PATTERN_BYTES, NULL);
    return failed ? failed : p->d.synchronize();
}

/* The largest matrices that fit. 0: none do. */
static int take_matrices(struct probing *p, struct product *m)
{
    for (int n = SIZE_MOST; n >= SIZE_LEAST; n /= 2) {
        size_t in = (size_t)n * (size_t)n * m->row->in_bytes, out = (size_t)n * (size_t)n * 4;
        cu_pointer all = 0;
        if (p->d.alloc(&all, 2 * in + out) != 0) continue;
        m->a = all;
        m->b = all + in;
        m->c = all + 2 * in;
        return m->n = n;
    }
    return 0;
}

static void measure_product(struct probing *p, const struct product_row *row, uint8_t *pattern)
{
    struct product m = {.row = row};
    struct gpu_roof_rate *out = &p->out->of[row->kind];
    if (!take_matrices(p, &m)) {
        snprintf(out->why, sizeof out->why, "too little memory is free on the GPU");
        return;
    }
    double n = m.n;
    fill_pattern(pattern, row);
    int failed = fill_matrix(p, m.a, 2 * (size_t)m.n * (size_t)m.n * row->in_bytes, pattern);
    if (failed)
        snprintf(out->why, sizeof out->why, "filling matrices: %s", why_of(&p->d, failed));
    else
        measure(p, out, do_product, &m, 2 * n * n * n);
    p->d.synchronize();
    p->d.give_back(m.a);
}

static void measure_products(struct probing *p)
{
    bool blas = load_blas(p);
    uint8_t *pattern = mem_new(1, PATTERN_BYTES);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct gpu_roof_rate *out = &p->out->of[products[i].kind];
        if (blas && pattern)
            measure_product(p, &products[i], pattern);
        else
            snprintf(out->why, sizeof out->why,
                     blas ? "out of memory"
                          : "no cuBLAS (libcublas.so.13, .12 or .11) in the process or on the library path");
    }
    if (blas) p->blas.end(p->blas.handle);
    mem_free(pattern);
}

/* ---- memory ---- */

struct copying {
    cu_pointer a, b;
    void *host;
    size_t bytes;
};

static int copy_on_device(struct probing *p, void *ctx)
{
    const struct copying *c = ctx;
    return p->d.on_device(c->b, c->a, c->bytes, NULL);
}
static int copy_to_device(struct probing *p, void *ctx)
{
    const struct copying *c = ctx;
    return p->d.to_device(c->a, c->host, c->bytes, NULL);
}
static int copy_to_host(struct probing *p, void *ctx)
{
    const struct copying *c = ctx;
    return p->d.to_host(c->host, c->a, c->bytes, NULL);
}

static void measure_copies(struct probing *p)
{
    struct copying c = {.bytes = COPY_BYTES};
    struct gpu_roof_rate *of = p->out->of;
    static const char none[] = "too little memory is free on the GPU", unpinned[] = "no pinned host memory";
    if (p->d.alloc(&c.a, 2 * c.bytes) != 0) {
        for (int k = GPU_ROOF_MEMORY; k < GPU_ROOF_KINDS; k++) snprintf(of[k].why, sizeof of[k].why, none);
        return;
    }
    c.b = c.a + c.bytes;
    measure(p, &of[GPU_ROOF_MEMORY], copy_on_device, &c, 2 * (double)c.bytes); /* read and written */
    c.bytes = PINNED_BYTES;
    if (p->d.host_alloc(&c.host, c.bytes, 0) == 0) {
        memset(c.host, 1, c.bytes);
        measure(p, &of[GPU_ROOF_TO_DEVICE], copy_to_device, &c, (double)c.bytes);
        measure(p, &of[GPU_ROOF_TO_HOST], copy_to_host, &c, (double)c.bytes);
        p->d.host_free(c.host);
    } else {
        snprintf(of[GPU_ROOF_TO_DEVICE].why, sizeof of->why, unpinned);
        snprintf(of[GPU_ROOF_TO_HOST].why, sizeof of->why, unpinned);
    }
    p->d.give_back(c.a);
}

/* ---- all of it ---- */

static tare_status describe(struct probing *p, tare_error *err)
{
    int n = 0, version = 0;
    uint8_t u[16] = {0};
    int failed = p->d.init(0);
    if (!failed) failed = p->d.device_count(&n);
    if (!failed && n == 0) return error_set(err, TARE_UNSUPPORTED, "the CUDA driver sees no GPU");
    if (!failed) failed = p->d.device_get(&p->device, 0);
    if (!failed) failed = p->d.device_name(p->out->device, sizeof p->out->device, p->device);
    if (!failed) failed = p->d.device_uuid(u, p->device);
    if (failed) return error_set(err, TARE_UNSUPPORTED, "the CUDA driver says %s", why_of(&p->d, failed));
    p->d.version(&version);
    snprintf(p->out->driver, sizeof p->out->driver, "%d.%d", version / 1000, version % 1000 / 10);
    for (size_t i = 0; i < sizeof u; i++) snprintf(p->out->uuid + 2 * i, 3, "%02x", u[i]);
    return TARE_OK;
}

static tare_status measure_all(struct probing *p, tare_error *err)
{
    time_t now = (time_t)(clock_unix_ns() / 1000000000u);
    struct tm tm;
    int failed = p->d.retain(&p->context, p->device);
    if (failed) return error_set(err, TARE_UNSUPPORTED, "the GPU cannot be used: %s", why_of(&p->d, failed));
    failed = p->d.push(p->context);
    if (!failed) failed = p->d.event_make(&p->from, 0);
    if (!failed) failed = p->d.event_make(&p->to, 0);
    if (!failed) {
        measure_products(p);
        measure_copies(p);
        gmtime_r(&now, &tm);
        strftime(p->out->measured, sizeof p->out->measured, "%Y-%m-%dT%H:%M:%SZ", &tm);
    }
    if (p->from) p->d.event_free(p->from);
    if (p->to) p->d.event_free(p->to);
    p->d.pop(&p->context);
    p->d.release(p->device);
    return failed ? error_set(err, TARE_UNSUPPORTED, "the GPU cannot be used: %s", why_of(&p->d, failed))
                  : TARE_OK;
}

tare_status gpu_roof_measure(struct gpu_roof *out, const struct gpu_roof_options *o, tare_error *err)
{
    struct gpu_roof made = {.cached = false}, kept;
    struct probing p = {.out = &made};
    for (int k = 0; k < GPU_ROOF_KINDS; k++) made.of[k].per_s = (struct interval){NAN, NAN, NAN};
    if (!load_driver(&p.d, err)) return TARE_UNSUPPORTED;
    tare_status s = describe(&p, err);
    if (s < 0) return s;
    if (!o->fresh && gpu_roof_recall(&kept, o, made.uuid, made.driver)) {
        *out = kept;
        return TARE_OK;
    }
    s = measure_all(&p, err);
    if (s < 0) return s;
    gpu_roof_save(&made, o);
    *out = made;
    return TARE_OK;
}

static struct run_estimate rate_of(const struct gpu_roof_rate *r)
{
    if (!(r->per_s.value > 0)) return (struct run_estimate){0};
    return run_estimate(r->per_s.value, r->per_s.lo, r->per_s.hi);
}

void gpu_roof_record(const struct gpu_roof *r, struct run *run)
{
    struct run_gpu_roof *to = &run->gpu_roof;
    struct arena *a = &run->arena;
    *to = (struct run_gpu_roof){.known = true,
                                .device = arena_str(a, r->device),
                                .library = r->library[0] ? arena_str(a, r->library) : NULL,
                                .measured = arena_str(a, r->measured)};
#define X(id, key) to->key = rate_of(&r->of[GPU_ROOF_##id]);
    GPU_ROOF_MAP(X)
#undef X
    for (int k = 0; k < GPU_ROOF_KINDS; k++)
        if (r->of[k].why[0]) run_map_text(a, &to->why, gpu_roof_key(k), arena_str(a, r->of[k].why));
}
