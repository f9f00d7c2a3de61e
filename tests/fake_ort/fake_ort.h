/* SPDX-License-Identifier: MIT
 * fake_ort.h - a runtime whose every answer is known beforehand. Loaded in place of ONNX Runtime by tests of tare: it
 * has the same entry and the same slots, but its models are text files that say how it shall behave.
 *
 *   fake-ort-model 1                       first line
 *   input  NAME TYPE [DIM,DIM,..]          a dimension is a number or a name; - for a scalar; "sequence" as TYPE etc.
 *   output NAME TYPE [DIM,DIM,..]
 *   sleep_us 100,200,...                   each run of a session sleeps the next of these, then from the start again
 *   spin_us 100,200,...                    the same, but busy
 *   load_us 5000                           loading sleeps so long
 *   first_us 3000                          the first run of a session sleeps so much more
 *   slow_first 20 10                       the first 20 runs take so many times longer
 *   fail_run 7                             that run (from 1) fails; fail_load TEXT: loading fails
 *   nan 3                                  so many elements of the first output are NaN
 *   grow_kib 64                            each run keeps so much memory: a leak
 *   times KNOB VALUE FACTOR                runs take so many times longer where a setting has this value: threads,
 *                                          optimization, parallel, no_arena, no_pattern, cuda (0 or 1), batch
 *   die_batch 64                           a run of so large a batch ends the process
 *   shape_change 5                         from that run on the first output has one row more
 *
 * Environment: FAKE_ORT_VERSION (1.99.0), FAKE_ORT_PROVIDERS (CPUExecutionProvider,...), FAKE_ORT_SLEEP_US (overrides
 * sleep_us), FAKE_ORT_FAIL_RUN, FAKE_ORT_CUDA=1 (appending CUDA succeeds), FAKE_ORT_LOG (settings made are appended to
 * this file, one per line). Element k of output o is: sum of all input bytes modulo 251, plus k, plus 1000 * o. */
#ifndef FAKE_ORT_H
#define FAKE_ORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_IO = 16, FAKE_RANK = 8, FAKE_SCHEDULE = 256, FAKE_TIMES = 64 };

struct fake_io {
    char name[64];
    int kind; /* ONNXType */
    int type;
    size_t rank;
    int64_t dims[FAKE_RANK];
    char symbols[FAKE_RANK][40];
};

struct fake_times {
    char knob[16];
    long value;
    double factor;
};

struct fake_model {
    struct fake_io in[FAKE_IO], out[FAKE_IO];
    size_t n_in, n_out;
    unsigned schedule[FAKE_SCHEDULE];
    size_t n_schedule;
    bool spin;
    unsigned load_us, first_us, slow_runs, slow_factor, fail_run, nan, grow_kib, shape_change, die_batch;
    struct fake_times times[FAKE_TIMES];
    size_t n_times;
    char fail_load[120];
};

/* NULL, or what is wrong. */
const char *fake_model_read(struct fake_model *m, const char *path);
size_t fake_type_bytes(int type);

#endif
