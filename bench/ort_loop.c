/* SPDX-License-Identifier: MIT
 * ort_loop.c - the least that can be written around ONNX Runtime: load, run in a loop, sort the times. What
 * `tare bench` says of the same model and threads is held against this. No code of tare's in the timed path.
 *     ort_loop LIBRARY MODEL BATCH SEQ THREADS SECONDS  ->  "median_ns runs" */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INT64 = 7, INPUTS = 3, RUNS_MAX = 1 << 20 };
enum slot { /* of the runtime's table of functions */
            ERROR_MESSAGE = 2,
            CREATE_ENV = 3,
            CREATE_SESSION = 7,
            RUN = 9,
            CREATE_OPTIONS = 10,
            SET_THREADS = 24,
            CREATE_TENSOR = 49,
            CREATE_CPU_MEMORY = 69,
            RELEASE_VALUE = 96
};

typedef void *status;
static void *const *api;
#define CALL(slot, type) ((type)(uintptr_t)api[slot])

static void check(status s, const char *what)
{
    if (!s) return;
    fprintf(stderr, "ort_loop: %s: %s\n", what, CALL(ERROR_MESSAGE, const char *(*)(status))(s));
    exit(3);
}

static int by_time(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void load_api(const char *library)
{
    struct base {
        void *const *(*get)(uint32_t);
        const char *(*version)(void);
    };
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    if (!symbol) {
        fprintf(stderr, "ort_loop: %s\n", dlerror());
        exit(3);
    }
    const struct base *base = ((const struct base *(*)(void))(uintptr_t)symbol)();
    api = base->get(12);
}

static void *open_session(const char *model, int threads)
{
    void *env, *options, *session;
    check(CALL(CREATE_ENV, status(*)(int, const char *, void **))(3, "loop", &env), "env");
    check(CALL(CREATE_OPTIONS, status(*)(void **))(&options), "options");
    check(CALL(SET_THREADS, status(*)(void *, int))(options, threads), "threads");
    check(
        CALL(CREATE_SESSION, status(*)(void *, const char *, void *, void **))(env, model, options, &session),
        model);
    return session;
}

/* input_ids, attention_mask, token_type_ids: ids as tare makes them do not change the time, so any will do. */
static void make_inputs(void *value[INPUTS], int64_t batch, int64_t seq)
{
    void *memory;
    int64_t shape[2] = {batch, seq};
    check(CALL(CREATE_CPU_MEMORY, status(*)(int, int, void **))(1, 0, &memory), "memory");
    for (int i = 0; i < INPUTS; i++) {
        int64_t *data = calloc((size_t)(batch * seq), sizeof *data);
        for (int64_t k = 0; data && k < batch * seq; k++) data[k] = i == 0 ? k * 7919 % 30000 : i == 1;
        check(CALL(CREATE_TENSOR, status(*)(void *, void *, size_t, const int64_t *, size_t, int, void **))(
                  memory, data, (size_t)(batch * seq) * sizeof *data, shape, 2, INT64, &value[i]),
              "tensor");
    }
}

int main(int argc, char **argv)
{
    static const char *const names[INPUTS] = {"input_ids", "attention_mask", "token_type_ids"};
    static const char *const outputs[2] = {"last_hidden_state", "pooler_output"};
    static uint64_t ns[RUNS_MAX];
    if (argc != 7) return 2;
    void *in[INPUTS], *out[2] = {NULL, NULL};
    load_api(argv[1]);
    void *session = open_session(argv[2], atoi(argv[5]));
    make_inputs(in, atoll(argv[3]), atoll(argv[4]));
    status (*run)(void *, void *, const char *const *, void *const *, size_t, const char *const *, size_t,
                  void **) = CALL(RUN, status(*)(void *, void *, const char *const *, void *const *, size_t,
                                                 const char *const *, size_t, void **));
    for (int i = 0; i < 5; i++) check(run(session, NULL, names, in, INPUTS, outputs, 2, out), "run");
    size_t n = 0;
    for (uint64_t end = now() + (uint64_t)(atof(argv[6]) * 1e9); now() < end && n < RUNS_MAX; n++) {
        uint64_t start = now();
        check(run(session, NULL, names, in, INPUTS, outputs, 2, out), "run");
        ns[n] = now() - start;
    }
    qsort(ns, n, sizeof ns[0], by_time);
    printf("%llu %zu\n", (unsigned long long)ns[n / 2], n);
    return 0;
}
