/* SPDX-License-Identifier: MIT
 * fake_cupti.c - a libcupti of known behaviour: it asks for a buffer, fills it with records of a made-up program, and
 * hands it back when it is told to flush. Records are as long as those of CUDA 13.0. FAKE_CUPTI says what is wrong
 * with it: "busy" (another tool has it), "nodriver", "untimed" (no times), "garbage" (a record it cannot step over),
 * "many" (a full buffer, no two launches alike), "greedy" (it asks for more buffers than there are; CUDA 12.8),
 * "names" (more names than anyone keeps), "grow" (a name that is longer than can be written when demangled), "forward"
 * and "back" (the clock is set by an hour meanwhile), "slow" (its clock answers late), "threads" (nothing by itself:
 * the program launches by fake_launch() on its threads), "late" (the program has a context: single calls that are
 * enabled are taken no notice of), "taken" (another tool takes its buffers after the first flush), "short"
 * and "long" (such kernels, and a second later graphs of them), "ranks" (steps of 1 ms from FAKE_T0 on, in which rank 1
 * computes longer than the others), "memory" (memory is taken, given back twice and taken again), "graphs" (its sixth
 * launch is one of a graph, of which nothing is recorded). With FAKE_OLD it lacks a function that is needed. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
typedef void request_fn(uint8_t **buffer, size_t *size, size_t *max);
typedef void complete_fn(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

enum {
    KERNEL = 10,
    KERNEL_BYTES = 216,
    API = 5,
    API_BYTES = 40,
    COPY = 1,
    COPY_BYTES = 96,
    DEVICE = 8,
    DEVICE_BYTES = 184,
    EXTERNAL = 39,
    EXTERNAL_BYTES = 24,
    OVERHEAD = 17,
    OVERHEAD_BYTES = 56,
    GRAPH = 51,
    GRAPH_BYTES = 56,
    MEMORY = 49,
    MEMORY_BYTES = 128,
    PAIRS = 100,
    MANY = 6000,
    NAMES = 150000,
    THREADS = 16,
    NODES = 2000,    /* kernels of a graph */
    SMALL = 64 << 10 /* of a buffer that a thread fills */
};

static request_fn *request;
static complete_fn *complete;
static int enabled[64], with_calls, others_off, were_off, sent, subscribed;
static _Atomic uint64_t range;
static uint64_t t0;
static void (*callback)(void *user, int domain, uint32_t id, const void *data);
static int calls_back, captures_back, has_graphs, registered;
static __thread int pushed;

static int is(const char *what)
{
    const char *fault = getenv("FAKE_CUPTI");
    return fault && strcmp(fault, what) == 0;
}

static _Atomic size_t no_room;  /* launches for which there was no buffer */
static _Atomic uint64_t set_by; /* ns that the clock was set by */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + set_by;
}

static void put32(uint8_t *r, size_t at, uint32_t v)
{
    memcpy(r + at, &v, sizeof v);
}
static void put64(uint8_t *r, size_t at, uint64_t v)
{
    memcpy(r + at, &v, sizeof v);
}

static size_t bytes_of(uint32_t kind)
{
    switch (kind) {
    case KERNEL: return KERNEL_BYTES;
    case API: return API_BYTES;
    case COPY: return COPY_BYTES;
    case DEVICE: return DEVICE_BYTES;
    case EXTERNAL: return EXTERNAL_BYTES;
    case OVERHEAD: return OVERHEAD_BYTES;
    case GRAPH: return GRAPH_BYTES;
    case MEMORY: return MEMORY_BYTES;
    default: return 0;
    }
}

EXPORT int cuptiGetVersion(uint32_t *v);
int cuptiGetVersion(uint32_t *v)
{
    *v = is("greedy") ? 26 : 130001;
    return 0;
}
EXPORT int cuptiGetTimestamp(uint64_t *t);
int cuptiGetTimestamp(uint64_t *t)
{
    static _Atomic unsigned asked; /* "slow": now and then it is long in answering */
    *t = now_ns();
    if (is("slow") && asked++ % 17 == 16) nanosleep(&(struct timespec){0, 20000000}, NULL);
    return 0;
}
EXPORT int cuptiSubscribe_v2(void **s, void *fn, void *user, void *p);
int cuptiSubscribe_v2(void **s, void *fn, void *user, void *p)
{
    struct params {
        size_t bytes;
        const char *name;
        char *other;
        size_t other_bytes;
    } *params = p;
    (void)user;
    *(void **)&callback = fn;
    *s = &t0;
    if (is("nodriver")) return 999;
    if (!is("busy") && !subscribed) return subscribed = 1, 0;
    snprintf(params->other, params->other_bytes, "%s", is("busy") ? "Some Profiler" : "tare");
    return 39;
}
EXPORT int cuptiUnsubscribe(void *s);
int cuptiUnsubscribe(void *s)
{
    if (s != &t0 || !subscribed) abort();
    subscribed = 0;
    return 0;
}
EXPORT int cuptiSubscribe(void **s, void *fn, void *user);
int cuptiSubscribe(void **s, void *fn, void *user)
{
    return cuptiSubscribe_v2(s, fn, user, NULL);
}
EXPORT int cuptiEnableCallback(uint32_t on, void *s, int domain, uint32_t id);
int cuptiEnableCallback(uint32_t on, void *s, int domain, uint32_t id)
{
    if (s != &t0 || domain != 1 || id > 2)
        abort(); /* only launches and captures of the driver are worth it */
    if (id == 1) calls_back = on != 0;
    if (id == 2) captures_back = on != 0;
    return 0;
}
EXPORT int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    static const char *const runtime[] = {"?", "cudaGetDevice_v3020", "cudaLaunchKernel_v7000",
                                          "cudaMemcpyAsync_v3020", "cudaGraphLaunch_v10000"};
    if (domain == 1 && (id == 1 || id == 2)) {
        *name = id == 1 ? "cuLaunchKernel" : "cuStreamBeginCapture_v2";
        return 0;
    }
    if (domain != 2 || id >= 5) return 7;
    *name = runtime[id];
    return 0;
}
EXPORT int cuptiActivitySetAttribute(int a, size_t *n, void *v);
int cuptiActivitySetAttribute(int a, size_t *n, void *v)
{
    (void)a, (void)n, (void)v;
    return 0;
}
#ifndef FAKE_OLD
EXPORT int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c);
#endif
int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c);
int cuptiActivityRegisterCallbacks(request_fn *r, complete_fn *c)
{
    request = r;
    complete = c;
    t0 = now_ns();
    registered++;
    if (is("taken")) sent = 0;
    return 0;
}
EXPORT int cuptiActivityEnable(int kind);
int cuptiActivityEnable(int kind)
{
    if (kind == KERNEL) { /* a recording begins */
        memset(enabled, 0, sizeof enabled);
        sent = with_calls = 0;
        t0 = now_ns();
    }
    if (kind == GRAPH && has_graphs) abort(); /* the real one crashes */
    if (kind >= 0 && kind < 64) enabled[kind] = 1;
    return 0;
}
EXPORT int cuptiActivityDisable(int kind);
int cuptiActivityDisable(int kind)
{
    if (kind == API && others_off) abort(); /* others count on them */
    if (kind == GRAPH && has_graphs) abort();
    if (kind == GRAPH) enabled[GRAPH] = 0;
    return kind < 0 || kind >= 64 ? 21 : 0; /* what ran so far is still to come */
}
EXPORT int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on);
int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t on)
{
    if (id == 1 && on && !enabled[API]) abort(); /* cudaGetDevice is not worth a record */
    if (id == 1) others_off = !on;
    were_off |= id == 1 && !on;
    with_calls |= on && id != 1;
    return 0;
}
EXPORT int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id);
int cuptiActivityPushExternalCorrelationId(int kind, uint64_t id)
{
    (void)kind;
    if (++pushed > 64) abort(); /* more than the program has open */
    range = id;
    return 0;
}
EXPORT int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last);
int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *last)
{
    (void)kind, (void)last;
    if (--pushed < 0) abort();
    return 0;
}
EXPORT int cuptiActivityGetNumDroppedRecords(void *c, uint32_t s, size_t *n);
int cuptiActivityGetNumDroppedRecords(void *c, uint32_t s, size_t *n)
{
    (void)c, (void)s;
    *n = is("untimed") ? 3 : atomic_exchange(&no_room, 0);
    return 0;
}
EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    uint8_t *at = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, sizeof kind);
        at = *record + bytes_of(kind);
    }
    if (at >= buffer + valid) return 12;
    memcpy(&kind, at, sizeof kind);
    if (!bytes_of(kind)) return 21;
    *record = at;
    return 0;
}

static uint8_t *device_record(uint8_t *r)
{
    put32(r, 0, DEVICE);
    put64(r, 16, 8u << 30);
    put32(r, 44, 100);
    put64(r, 136, (uint64_t)(uintptr_t) "Made-up GPU");
    return r + DEVICE_BYTES;
}

/* Launch i at i ms for 10 us; the kernel 20 us after it for 30 us. One copy at the end. */
static uint8_t *launch(uint8_t *r, uint32_t i)
{
    uint64_t at = t0 + (uint64_t)i * 1000000;
    int is_lost = is("graphs") && i == 5;
    if (enabled[EXTERNAL] && range) {
        put32(r, 0, EXTERNAL);
        put32(r, 4, 5);
        put64(r, 8, range);
        put32(r, 16, i + 1);
        r += EXTERNAL_BYTES;
    }
    if (enabled[API] && !were_off) abort(); /* cudaGetDevice would be in it */
    if (enabled[API] || (with_calls && !is("late"))) {
        put32(r, 0, API);
        put32(r, 4, is_lost ? 4 : 2);
        put64(r, 8, at);
        put64(r, 16, at + 10000);
        put32(r, 28, 4711);
        put32(r, 32, i + 1);
        r += API_BYTES;
    }
    if (is_lost) return r;
    put32(r, 0, KERNEL);
    put64(r, 16, is("untimed") ? 0 : at + 20000);
    put64(r, 24, is("untimed") ? 0 : at + 50000);
    put32(r, 48, 7);
    for (size_t k = 0; k < 6; k++) put32(r, 52 + 4 * k, k < 3 ? 4 : 8);
    if (is("many")) put32(r, 80, i);
    put32(r, 92, i + 1);
    const char *name = is("template") ? "_Z6kernelI7FunctorEvi" : "_Z6kernelI7FunctorEvi\x1b[31m";
    put64(r, 104, (uint64_t)(uintptr_t)name);
    return r + KERNEL_BYTES;
}

static uint8_t *copy(uint8_t *r)
{
    put32(r, 0, COPY);
    r[4] = 1;
    r[5] = 2;
    r[6] = 3;
    put64(r, 8, 1 << 20);
    put64(r, 16, t0 + PAIRS * 1000000u);
    put64(r, 24, t0 + PAIRS * 1000000u + 100000);
    put32(r, 48, 7);
    put32(r, 44, 9999);
    return r + COPY_BYTES;
}

/* An old CUPTI writes into what it gets, NULL or not. */
static void ask_for_all(void)
{
    enum { ALL = 140 };
    uint8_t *buffers[ALL];
    size_t sizes[ALL], most;
    for (int i = 0; i < ALL; i++) {
        request(&buffers[i], &sizes[i], &most);
        launch(buffers[i], 0);
    }
    for (int i = 0; i < ALL; i++) complete(NULL, 0, buffers[i], sizes[i], i < ALL - 1 ? 0 : KERNEL_BYTES);
}

/* ---- launches of the program's own threads, each into a buffer of its own, as CUPTI does it ---- */

static struct filling {
    pthread_mutex_t lock;
    uint8_t *buffer;
    size_t size, used;
} filling[THREADS] = {[0 ... THREADS - 1] = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0}};
static _Atomic uint32_t launches;

static void hand_over(struct filling *f)
{
    if (f->buffer) complete(NULL, 0, f->buffer, f->size, f->used);
    f->buffer = NULL;
}

EXPORT void fake_launch(unsigned thread);
void fake_launch(unsigned thread)
{
    struct filling *f = &filling[thread % THREADS];
    size_t most, room = KERNEL_BYTES + API_BYTES + EXTERNAL_BYTES;
    pthread_mutex_lock(&f->lock);
    if (f->buffer && f->used + room > SMALL) hand_over(f);
    if (!f->buffer) {
        request(&f->buffer, &f->size, &most);
        f->used = 0;
    }
    if (f->buffer)
        f->used = (size_t)(launch(f->buffer + f->used, launches++) - f->buffer);
    else
        no_room++;
    pthread_mutex_unlock(&f->lock);
}

static void flush_threads(void)
{
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_lock(&filling[i].lock);
        hand_over(&filling[i]);
        pthread_mutex_unlock(&filling[i].lock);
    }
}

/* Every kernel with a name of its own, over as many buffers as that takes. */
static void flush_names(void)
{
    static char texts[NAMES][16], grow[16 + 60 * 13] = "_Z1f1AIiiE";
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int i = 0; i < 60 && is("grow"); i++) { /* each argument is twice the one before */
        char high[2] = {i < 36 ? 0 : digits[i / 36], 0}, low = digits[i % 36];
        size_t at = strlen(grow);
        snprintf(grow + at, sizeof grow - at, "S_IS%s%c_S%s%c_E", high, low, high, low);
    }
    const uint32_t n = is("grow") ? 100 : NAMES;
    uint8_t *buffer = NULL, *r = NULL;
    size_t size = 0, most;
    for (uint32_t i = 0; i < n; i++) {
        if (!buffer) {
            request(&buffer, &size, &most);
            if (!buffer) return;
            r = buffer;
        }
        snprintf(texts[i], sizeof texts[i], "kernel_%u", i);
        r = launch(r, i);
        put64(r - KERNEL_BYTES, 104, (uint64_t)(uintptr_t)(is("grow") ? grow : texts[i]));
        if ((size_t)(r - buffer) + KERNEL_BYTES + API_BYTES + EXTERNAL_BYTES < size && i + 1 < n) continue;
        complete(NULL, 0, buffer, size, (size_t)(r - buffer));
        buffer = NULL;
    }
}

/* One more kernel, after the clock was set. */
static void set_clock(void)
{
    uint8_t *buffer;
    size_t size, most;
    const uint64_t hour = UINT64_C(3600000000000);
    if (sent == 1) set_by = is("back") ? (uint64_t)0 - hour : hour;
    if (sent++ != 2) return;
    request(&buffer, &size, &most);
    if (!buffer) return;
    t0 = now_ns() - (PAIRS + 1) * 1000000u;
    complete(NULL, 0, buffer, size, (size_t)(launch(buffer, PAIRS + 1) - buffer));
}

static uint8_t *kernel(uint8_t *r, const char *name, uint64_t from, uint64_t to)
{
    static uint32_t id = 5000;
    put32(r, 0, KERNEL);
    put64(r, 16, from);
    put64(r, 24, to);
    put32(r, 48, 7);
    put32(r, 92, ++id);
    put64(r, 104, (uint64_t)(uintptr_t)name);
    return r + KERNEL_BYTES;
}

/* Rank 1 computes 500 us, others 200; then they are in a collective until 600. */
static uint8_t *steps_of_a_rank(uint8_t *r)
{
    const char *rank = getenv("RANK"), *begun = getenv("FAKE_T0");
    uint64_t start = begun ? strtoull(begun, NULL, 10) : now_ns(),
             us = rank && strcmp(rank, "1") == 0 ? 500 : 200;
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint64_t at = start + i * 1000000;
        r = kernel(r, "my_gemm", at, at + us * 1000);
        r = kernel(r, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + us * 1000, at + 600000);
    }
    return r;
}

/* One launch of a graph: so many kernels, or one record. */
static uint8_t *graph_launch(uint8_t *r, uint64_t at, uint64_t ns)
{
    static uint32_t id = 90000;
    id++;
    if (enabled[GRAPH]) {
        put32(r, 0, GRAPH);
        put32(r, 4, id);
        put64(r, 8, at);
        put64(r, 16, at + ns);
        put32(r, 28, 3);
        return r + GRAPH_BYTES;
    }
    for (uint64_t i = 0; i < NODES; i++) {
        uint8_t *node = r;
        r = kernel(r, "my_gemm", at + i * ns / NODES, at + (i + 1) * ns / NODES - 1);
        put32(node, 92, id);
        put32(node, 156, 3);
    }
    return r;
}

/* For a second a kernel every 10 ms, "short" (1 us) or "long" (50 us); then a graph is captured and launched so. */
static void flush_graphs(void)
{
    static const uint32_t enter[2];
    static uint64_t next;
    const uint64_t now = now_ns(), every = 10000000, ns = is("short") ? 1000 : 50000;
    uint8_t *buffer = NULL, *r;
    size_t size, most;
    if (now - t0 > 1000000000 && !has_graphs++ && captures_back) callback(NULL, 1, 2, enter);
    request(&buffer, &size, &most);
    if (!buffer) return;
    r = device_record(buffer);
    for (next = next ? next : t0; next + every < now && (size_t)(r - buffer) + NODES * KERNEL_BYTES < size;
         next += every)
        r = has_graphs > 1 ? graph_launch(r, next, NODES * ns) : kernel(r, "my_gemm", next, next + ns);
    complete(NULL, 0, buffer, size, (size_t)(r - buffer));
}

/* The other tool has the buffers until they are taken back; the program launches on and on. */
static int is_taken(void)
{
    static const uint32_t enter[2];
    if (!is("taken") || !sent || registered > 1) return 0;
    if (calls_back && callback) callback(NULL, 1, 1, enter);
    return 1;
}

/* At ms after the start; of device 0. */
static uint8_t *memory(uint8_t *r, uint64_t ms, uint64_t address, uint64_t bytes)
{
    put32(r, 0, MEMORY);
    put32(r, 4, bytes ? 1 : 2);
    put32(r, 8, 3);
    put64(r, 16, address);
    put64(r, 24, bytes);
    put64(r, 32, t0 + ms * 1000000);
    return r + MEMORY_BYTES;
}

static uint8_t *fill(uint8_t *r)
{
    if (is("memory")) {
        r = memory(memory(r, 1, 0x1000, 1 << 20), 2, 0x2000, 3 << 20);
        r = memory(memory(r, 3, 0x1000, 0), 4, 0x1000, 0);
        r = memory(r, 5, 0x2000, 2 << 20); /* its return was not seen */
    }
    if (is("ranks")) return steps_of_a_rank(r);
    if (is("taken")) return kernel(r, "my_gemm", now_ns() - 20000, now_ns() - 10000);
    for (uint32_t i = 0; i < (is("many") ? MANY : PAIRS); i++) r = launch(r, i);
    r = copy(r);
    if (is("garbage")) put32(r, 0, 63), r += 64;
    return r;
}

EXPORT int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer, *r;
    size_t size, most;
    (void)flag;
    if (request && is("threads")) flush_threads();
    if (request && sent && (is("forward") || is("back"))) set_clock();
    if (!request || is_taken() || sent || is("threads")) return 0;
    if (is("short") || is("long")) {
        flush_graphs();
        return 0;
    }
    sent = 1;
    if (is("names") || is("grow")) {
        flush_names();
        return 0;
    }
    request(&buffer, &size, &most);
    if (!buffer) return 0;
    r = fill(device_record(buffer));
    if (is("greedy")) ask_for_all();
    complete(NULL, 0, buffer, size, (size_t)(r - buffer));
    return 0;
}
