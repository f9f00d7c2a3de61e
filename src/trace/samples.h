/* SPDX-License-Identifier: MIT
 * samples.h - what probes saw over time, in the trace: series (a metric and a label) and, per moment, the values that
 * were known. Written as one small chunk per moment with one write(2), so that a kill of anything loses at most the
 * moment under way; read back as columns. Also alerts and phases, as marks with a kind. */
#ifndef TRACE_SAMPLES_H
#define TRACE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/vec.h"
#include "trace/metric.h"

struct series {
    enum metric_id metric;
    char *label; /* "" for the whole: else "cpu3", "sda", "eth0", "gpu0", "pid 1234 name" */
};

struct series_set { /* grows while sampling: a disk or process may appear */
    VEC(struct series) items;
    struct map_str *index;
    uint32_t whole[METRIC_COUNT]; /* number + 1 of the series without a label, 0: none yet */
};
#define SERIES_SET_INIT {VEC_INIT, NULL, {0}}
/* The number of a series, which it keeps; a new one is added. */
tare_status series_find(struct series_set *s, enum metric_id m, const char *label, size_t *out,
                        tare_error *err);
bool series_has(const struct series_set *s, enum metric_id m, const char *label);
void series_set_release(struct series_set *s);

struct sample {         /* one moment */
    uint64_t at_ns;     /* CLOCK_MONOTONIC_RAW */
    VEC(double) values; /* per series; NAN: unknown at this moment */
};
#define SAMPLE_INIT {0, VEC_INIT}
void sample_clear(struct sample *s); /* nothing is known; keeps the memory */
void sample_release(struct sample *s);
tare_status sample_set(struct sample *s, size_t series, double value, tare_error *err);
bool sample_get(const struct sample *s, size_t series, double *out); /* false: unknown */

/* ---- writing ---- */
struct samples_writer;
/* Joins the archive at `path` (made if absent, beside what other processes of this recording write; an earlier trace
 * of nobody alive is put aside as PATH.old). TARE_BUSY: another process samples into it now. `run_id` NULL: one is
 * made. Afterwards a program started with TARE_TRACE=path records its scopes into the same file. */
tare_status samples_create(struct samples_writer **out, const char *path, const char *run_id,
                           tare_error *err);
tare_status samples_append(struct samples_writer *w, const struct series_set *set, const struct sample *s,
                           tare_error *err);
const char *samples_run_id(const struct samples_writer *w);
enum sample_mark_kind { SAMPLE_ALERT, SAMPLE_CLEAR, SAMPLE_PHASE, SAMPLE_NOTE };
tare_status samples_mark(struct samples_writer *w, uint64_t at_ns, enum sample_mark_kind kind,
                         const char *text, tare_error *err);
tare_status samples_close(struct samples_writer *w, tare_error *err);

/* ---- reading ---- */
struct sample_mark {
    uint64_t at_ns;
    enum sample_mark_kind kind;
    char *text;
};
struct samples { /* columns: values[series][moment], NAN where unknown */
    struct series_set set;
    VEC(uint64_t) at_ns;
    VEC(double *) columns; /* one per series, at_ns.n long */
    VEC(struct sample_mark) marks;
    uint64_t damaged;                 /* chunks that could not be read */
    uint64_t start_unix_ns, start_ns; /* the wall clock, and at_ns' clock, when sampling began */
    bool closed;                      /* false: the sampler was killed, or still runs */
    char run_id[32];
};
#define SAMPLES_INIT {SERIES_SET_INIT, VEC_INIT, VEC_INIT, VEC_INIT, 0, 0, 0, false, {0}}
/* TARE_FORMAT when it is no trace or holds no samples. `out` starts as SAMPLES_INIT, and is empty after a failure. */
tare_status samples_load(struct samples *out, const char *path, tare_error *err);
void samples_release(struct samples *s);

#endif
