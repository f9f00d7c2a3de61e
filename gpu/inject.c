/* SPDX-License-Identifier: MIT
 * inject.c - where the CUDA driver calls in, once, before the program has a context; and recording itself, from
 * recording_begin() to recording_end(): find libcupti, say what to record, start collecting. Whatever is missing
 * becomes a note in the trace, and the program runs as if we were not there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"

__attribute__((visibility("default"))) int InitializeInjection(void);

enum { END_MS = 60000 }; /* a block's end waits no longer than that for CUPTI */
static struct cupti cupti;
static struct book book;
static struct gpu_options options; /* of the recording under way */
static void *subscriber;           /* NULL: not subscribed */

/* Kinds that are recorded always. A kind that this CUPTI lacks is left out. Not among them: SYNCHRONIZATION, which
 * makes a launch-bound program 1.4 times slower (H200, CUDA 13.0; all others together 1.1); the calls that wait tell as
 * much. */
static const int kinds[] = {
    CUPTI_CONCURRENT_KERNEL, CUPTI_MEMCPY,      CUPTI_MEMCPY2, CUPTI_MEMSET, CUPTI_OVERHEAD, CUPTI_DEVICE,
    CUPTI_MEMORY2,           CUPTI_MEMORY_POOL, CUPTI_JIT};

/* Calls worth a record: those that make the GPU work, wait for it, or take memory. A launch makes ten others, such as
 * cudaGetDevice, which would cost more than all the rest. */
static const char *const runtime_calls[] = {
    "cudaLaunch",         "cudaGraphLaunch",        "cudaMemcpy",          "cudaMemset",
    "cudaMalloc",         "cudaFree",               "cudaHostAlloc",       "cudaHostRegister",
    "cudaHostUnregister", "cudaDeviceSynchronize",  "cudaEventSynchronize", "cudaStreamSynchronize",
    "cudaStreamWaitEvent", "cudaGraphInstantiate",   "cudaModuleLoad",      "cudaLibraryLoad"};
/* Programs that do not go through the runtime: Triton, Numba, hand-written. */
static const char *const driver_calls[] = {"cuLaunch",           "cuGraphLaunch",       "cuModuleLoad",
                                           "cuLibraryLoad",      "cuCtxSynchronize",    "cuStreamSynchronize",
                                           "cuEventSynchronize", "cuGraphInstantiate"};

static void read_options(struct gpu_options *o)
{
    const char *graphs = secure_getenv("TARE_GPU_GRAPHS"), *calls = secure_getenv("TARE_GPU_CALLS");
    o->trace = secure_getenv("TARE_GPU_TRACE");
    o->cupti = secure_getenv("TARE_CUPTI");
    o->calls = !calls || strcmp(calls, "0") != 0;
    o->whole_graphs = graphs && strcmp(graphs, "graph") == 0;
    o->auto_graphs = graphs && strcmp(graphs, "auto") == 0;
}

struct call_set {
    int domain, kind;
    const char *const *names; /* how those wanted begin */
    size_t n;
    bool or_all; /* where they cannot be told apart */
};
static const struct call_set call_sets[] = {
    {CUPTI_DOMAIN_RUNTIME, CUPTI_RUNTIME, runtime_calls, sizeof runtime_calls / sizeof *runtime_calls, true},
    {CUPTI_DOMAIN_DRIVER, CUPTI_DRIVER, driver_calls, sizeof driver_calls / sizeof *driver_calls, false}};

static bool is_wanted(const struct call_set *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strncmp(name, c->names[i], strlen(c->names[i])) == 0) return true;
    return false;
}

/* What switches single calls; NULL before CUDA 12.5. */
typedef int set_call_fn(uint32_t id, uint8_t on);
static set_call_fn *single_switch(const struct call_set *c)
{
    return c->kind == CUPTI_RUNTIME ? cupti.enable_runtime_api : cupti.enable_driver_api;
}

/* Those that are wanted, or all the others. */
static void set_calls(const struct call_set *c, bool wanted, bool on)
{
    set_call_fn *set = single_switch(c);
    for (uint32_t id = 1; id < CALL_IDS; id++) {
        const char *name = NULL;
        if (cupti.callback_name(c->domain, id, &name) != CUPTI_OK || !name) break;
        if (is_wanted(c, name) == wanted) set(id, on);
    }
}

/* Once the program has a context, CUPTI takes no notice of single calls that are enabled (CUDA 13.0): then all are,
 * less the others. At the end those are as they were before: other tools count on it. */
static void enable_calls(const struct call_set *c, bool late)
{
    bool single = single_switch(c);
    if (single && !late)
        set_calls(c, true, true);
    else if (single || c->or_all) /* before CUDA 12.5: all or none */
        cupti.enable(c->kind);
    if (single && late) set_calls(c, false, false);
}

static void disable_calls(const struct call_set *c, bool late)
{
    bool single = single_switch(c);
    if (single && !late) set_calls(c, true, false);
    if (single && late) set_calls(c, false, true);
    if (late || !single) cupti.disable(c->kind);
}

static void enable_kinds(const struct gpu_options *o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int result = cupti.enable(kinds[i]);
        if (result != CUPTI_OK) book_note(&book, "CUPTI does not record kind %d: error %d", kinds[i], result);
    }
    if (o->late && cupti.enable_and_dump) cupti.enable_and_dump(CUPTI_DEVICE); /* it was told long ago */
    if (o->whole_graphs) cupti.enable(CUPTI_GRAPH_TRACE);
    for (size_t i = 0; o->calls && i < sizeof call_sets / sizeof *call_sets; i++)
        enable_calls(&call_sets[i], o->late);
}

static void disable_kinds(const struct gpu_options *o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) cupti.disable(kinds[i]);
    if (o->whole_graphs || o->auto_graphs) cupti.disable(CUPTI_GRAPH_TRACE);
    for (size_t i = 0; o->calls && i < sizeof call_sets / sizeof *call_sets; i++)
        disable_calls(&call_sets[i], o->late);
    cupti.disable(CUPTI_EXTERNAL_CORRELATION);
}

/* Only one tool at a time may have CUPTI: said by name where CUPTI knows it. */
static bool subscribe(char *why, size_t why_bytes)
{
    char other[256] = "";
    struct cupti_subscriber_params p = {sizeof p, "tare", other, sizeof other};
    int result = cupti.subscribe_v2 ? cupti.subscribe_v2(&subscriber, guard_callback, NULL, &p)
                                    : cupti.subscribe(&subscriber, guard_callback, NULL);
    if (result == CUPTI_OK) return true;
    const char *text = NULL;
    subscriber = NULL;
    if (result == CUPTI_OTHER_SUBSCRIBER)
        snprintf(why, why_bytes, "another tool has CUPTI%s%s: nothing of the GPU is recorded",
                 other[0] ? ": " : "", other);
    else if (result == CUPTI_NO_DRIVER)
        snprintf(why, why_bytes, "no CUDA driver: nothing of the GPU is recorded");
    else if (cupti.result_string && cupti.result_string(result, &text) == CUPTI_OK && text)
        snprintf(why, why_bytes, "CUPTI cannot be used: %s (%d)", text, result);
    else
        snprintf(why, why_bytes, "CUPTI cannot be used: error %d", result);
    return false;
}

/* Buffers before kinds: the first record may come at once. */
static int record(void)
{
    int result = cupti.register_callbacks(collect_request, collect_complete);
    if (result == CUPTI_OK) enable_kinds(&options);
    return result;
}

/* Whether anything was taken from us only a reader can tell, by what comes late (gpu_missing.c): it tells of HOLEs. */
void inject_again(void)
{
    int result = record();
    nvtx_use(&cupti);
    if (result != CUPTI_OK)
        book_note(&book, "launches were seen, nothing was recorded, and CUPTI takes no buffers: error %d", result);
}

/* The order is CUPTI's: the kind of thread numbers and the buffers are settled before anything is enabled,
 * as the first record may come at once. */
static bool set_up(const struct gpu_options *o, char *why, size_t why_bytes)
{
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    if (!cupti.get_version && !cupti_load(&cupti, o->cupti, why, why_bytes)) return false;
    if (!o->shared && !subscribe(why, why_bytes)) return false;
    /* Only calls are told by thread. CUPTI asks the kernel for the number at every launch, recorded or not: 1.5 %. */
    if (o->calls && cupti.thread_id_type) cupti.thread_id_type(CUPTI_THREAD_ID_SYSTEM);
    cupti.set_attribute(CUPTI_ATTR_ZEROED_BUFFER, &size, &zeroed);
    options = *o;
    int result = record();
    if (result != CUPTI_OK) {
        snprintf(why, why_bytes, "CUPTI takes no buffers: error %d", result);
        return false;
    }
    guard_start(&cupti, subscriber, &book);
    graphs_start(&cupti, subscriber, o->auto_graphs);
    book_note(&book, "CUPTI %u from %s", cupti.version, cupti.path);
    book_clock(&book, &cupti);
    book_flush(&book);
    nvtx_forget();
    if (collect_start(&cupti, &book)) return true;
    disable_kinds(o);
    snprintf(why, why_bytes, "no thread could be started that collects what CUPTI records");
    return false;
}

static void give_up_subscription(void)
{
    if (subscriber && cupti.unsubscribe) cupti.unsubscribe(subscriber);
    subscriber = NULL;
}

static void in_child(void)
{
    collect_abandon();
    nvtx_abandon();
}

/* What cannot be had is a note, too, so that the trace itself says why it has no GPU in it. */
bool recording_begin(const struct gpu_options *o, char *why, size_t why_bytes)
{
    static bool prepared;
    tare_error err = TARE_ERROR_INIT;
    if (book_open(&book, o->trace, &err) != TARE_OK) {
        snprintf(why, why_bytes, "%s", err.text);
        return false;
    }
    rank_tell(&book);
    if (o->late) book_note_late(&book);
    if (!set_up(o, why, why_bytes)) {
        give_up_subscription();
        book_note(&book, "%s", why);
        book_close(&book);
        return false;
    }
    nvtx_use(&cupti);
    if (!prepared) {
        pthread_atfork(NULL, NULL, in_child);
        atexit(collect_stop_at_exit);
    }
    prepared = true;
    return true;
}

/* What CUPTI still has is fetched after the kinds are off. The subscription goes last: then others may have CUPTI. */
bool recording_end(const struct gpu_options *o)
{
    disable_kinds(o);
    bool done = collect_stop(END_MS);
    nvtx_rest();
    give_up_subscription();
    return done;
}

int InitializeInjection(void)
{
    static bool called;
    char why[600];
    struct gpu_options o = {0};
    read_options(&o);
    if (called || !o.trace || !o.trace[0]) return 1;
    called = true;
    recording_begin(&o, why, sizeof why);
    return 1;
}
