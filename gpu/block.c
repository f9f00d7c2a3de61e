/* SPDX-License-Identifier: MIT
 * block.c - recording asked for by the program itself, for a block of it, as often as it likes: what the Python package
 * calls. The GPU is waited for at both ends, so that the block has all that was launched in it and nothing else. The
 * caller sees to it that one thread at a time is in here, but for tare_gpu_push() and tare_gpu_pop(). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu/gpu.h"

#define EXPORT __attribute__((visibility("default")))
EXPORT const char *tare_gpu_start(const char *path, unsigned what);
EXPORT const char *tare_gpu_stop(void);
EXPORT void tare_gpu_push(const char *name, int module);
EXPORT void tare_gpu_pop(int module);
EXPORT uint64_t tare_gpu_nvtx(void);

/* Bits of `what`; python/_tare/py_gpu.c has the same. */
enum { WITHOUT_CALLS = 1, SHARED = 4 };

static struct {
    bool open, stuck;
    pid_t pid; /* that recorded last; 0: none yet */
    struct gpu_options options;
    char why[600];
} it;

/* ---- waiting for the GPU, by the driver that is in the process ---- */

#define DRIVER_CALLS(CALL)                                                                \
    CALL(device_count, "cuDeviceGetCount", (int *n))                                      \
    CALL(primary_state, "cuDevicePrimaryCtxGetState", (int device, unsigned *f, int *on)) \
    CALL(primary_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))        \
    CALL(primary_release, "cuDevicePrimaryCtxRelease_v2", (int device))                   \
    CALL(push_current, "cuCtxPushCurrent_v2", (void *context))                            \
    CALL(pop_current, "cuCtxPopCurrent_v2", (void **context))                             \
    CALL(synchronize, "cuCtxSynchronize", (void))

struct driver {
#define CALL(name, symbol, parameters) int(*name) parameters;
    DRIVER_CALLS(CALL)
#undef CALL
};

static bool driver_find(struct driver *d)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    bool all = lib != NULL;
#define CALL(name, symbol, parameters) all = all && (*(void **)&d->name = dlsym(lib, symbol)) != NULL;
    DRIVER_CALLS(CALL)
#undef CALL
    return all;
}

static void wait_for(const struct driver *d, int device)
{
    unsigned flags;
    int active = 0;
    void *context = NULL;
    if (d->primary_state(device, &flags, &active) != 0 || !active) return;
    if (d->primary_retain(&context, device) != 0) return;
    if (d->push_current(context) == 0) {
        d->synchronize();
        d->pop_current(&context);
    }
    d->primary_release(device);
}

/* The contexts that the CUDA runtime uses. None is made where there is none yet. */
static void wait_for_gpus(void)
{
    struct driver d;
    int n = 0;
    if (!driver_find(&d) || d.device_count(&n) != 0) return;
    for (int i = 0; i < n; i++) wait_for(&d, i);
}

/* ---- start and stop: NULL, or why not, which lasts until the next of them ---- */

static const char *refusal(void)
{
    const char *injected = secure_getenv("TARE_GPU_TRACE");
    if (injected && injected[0]) {
        snprintf(it.why, sizeof it.why, "`tare run --gpu` records this process already, into %s", injected);
        return it.why;
    }
    if (it.pid && it.pid != getpid())
        return "this process was forked from one that has recorded: neither CUDA nor CUPTI works in it";
    if (it.open) return "a block is being recorded already";
    if (it.stuck) return "CUPTI has not given back what it recorded of the last block";
    return NULL;
}

const char *tare_gpu_start(const char *path, unsigned what)
{
    const char *why = refusal();
    if (why) return why;
    it.options = (struct gpu_options){.trace = path,
                                      .cupti = secure_getenv("TARE_CUPTI"),
                                      .calls = !(what & WITHOUT_CALLS),
                                      .late = true,
                                      .shared = what & SHARED};
    wait_for_gpus();
    if (!recording_begin(&it.options, it.why, sizeof it.why)) return it.why;
    it.open = true;
    it.pid = getpid();
    return NULL;
}

const char *tare_gpu_stop(void)
{
    if (!it.open) return "nothing is being recorded";
    it.open = false;
    if (it.pid != getpid()) return "this process was forked within the block: the other one has the record";
    wait_for_gpus();
    it.stuck = !recording_end(&it.options);
    return it.stuck ? "CUPTI does not give back what it recorded" : NULL;
}

/* Ranges around what the calling thread launches, of a module or, without `module`, as the program names them. */
void tare_gpu_push(const char *name, int module)
{
    nvtx_push(name, module);
}

void tare_gpu_pop(int module)
{
    nvtx_pop(module);
}

/* NVTX may call in from now on. How many ranges it has begun so far, recorded or not: who begins one sees whether
 * NVTX came to us or had settled earlier that nobody listens. */
uint64_t tare_gpu_nvtx(void)
{
    nvtx_allow();
    return nvtx_pushes();
}
