/* SPDX-License-Identifier: MIT
 * ab.h - two sides measured in turn: the interleaved comparison. Pairs of measurements, one of each side right
 * after the other, in an order that a seeded coin decides, so that whatever drifts hits both alike. What runs in
 * a process of its own for many measurements is launched afresh again and again, each time laid out a little
 * differently in memory, because one layout can cost more than the change looked for. Records pairs and judges
 * nothing: when to stop is asked of the caller, who may look at the width of an interval and never at its sign.
 *
 *   lane    one side at work: a worker process or a subject in this process (ab_lane.c), as
 *           commands are, which are a launch per measurement by themselves
 *   epoch   one launch of both lanes and some pairs */
#ifndef BENCH_AB_H
#define BENCH_AB_H

#include "bench/bench.h"
#include "core/arena.h"
#include "core/buf.h"
#include "core/rng.h"
#include "run/pairs.h"

struct ab_layout { /* by how much this launch is shifted, bytes */
    uint32_t env_pad, heap_pad;
};
enum { AB_ENV_PAD_MAX = 4096, AB_HEAP_PAD_MAX = 4096, AB_HEAP_STEP = 16 };

struct ab_launched {
    uint64_t load_ns, warmup_runs;
    uint64_t typical_ns; /* of one run, after warm-up */
};

struct ab_lane;
struct ab_lane_ops {
    /* Begin to load and warm up; both sides do so at the same time. */
    tare_status (*launch)(struct ab_lane *l, const struct ab_layout *layout, tare_error *err);
    /* Wait until that is done. */
    tare_status (*ready)(struct ab_lane *l, struct ab_launched *out, tare_error *err);
    /* `repeats` runs in a row; times are sums over all of them. */
    tare_status (*measure)(struct ab_lane *l, uint64_t repeats, const struct ab_layout *layout,
                           struct pair_side *out, tare_error *err);
    /* End the launch; after a failure too, and when none is under way. *rss_peak stays 0 when not told. */
    void (*stop)(struct ab_lane *l, uint64_t *rss_peak);
    void (*close)(struct ab_lane *l);
};

struct ab_lane { /* first member of each kind's own struct */
    const struct ab_lane_ops *ops;
    const char *name; /* "base": for error texts; borrowed */
    bool own_launch;  /* every measurement is a launch of its own */
    bool elsewhere;   /* a service: its work is not seen, and a request that fails is a pair that is lost */
};

/* ---- the kinds of lanes; close them with ab_lane_close() ---- */

/* A subject run by this process. `pad`: room for AB_ENV_PAD_MAX bytes that the environment of its processes
 * holds (see command_options.env); NULL: none. Borrows all. */
struct ab_subject_options {
    const char *name;
    struct subject *subject;
    struct case_params params; /* concurrency: of a service, requests under way at once */
    char *pad;
};
tare_status ab_lane_subject(struct ab_lane **out, const struct ab_subject_options *o, tare_error *err);

/* A worker process that is told by `spec` what to load. */
struct ab_process_options {
    const char *name;
    const char *exe;                          /* "/proc/self/exe" */
    char *const *argv;                        /* NULL-terminated; the socket is its descriptor AB_WORKER_FD */
    const char *spec;                         /* text, handed on unread */
    uint64_t timeout_ns;                      /* for one answer; 0: none */
    const volatile sig_atomic_t *interrupted; /* may be NULL */
};
tare_status ab_lane_process(struct ab_lane **out, const struct ab_process_options *o, tare_error *err);

void ab_lane_close(struct ab_lane *l); /* NULL is fine */

/* ---- comparing ---- */

/* What the caller makes of the pairs so far. */
struct ab_advice {
    bool enough;
    size_t next; /* pairs at which to ask again */
    /* sd of launches / sd of pairs: the larger, the fewer pairs are worth a launch; NAN: unknown */
    double launch_share;
};

/* Asked when as many pairs as it said last have been taken. */
struct ab_look {
    tare_status (*look)(void *ctx, const struct pair_set *set, struct ab_advice *out, tare_error *err);
    void *ctx;
    size_t first;        /* pairs before the first look */
    size_t least_epochs; /* launches before it, where they hold several pairs */
};

struct ab_plan {
    struct ab_lane *lane[PAIR_SIDES];
    const char *name;   /* of the case, for progress and errors */
    uint64_t budget_ns; /* of all: launching, warming up, measuring */
    uint64_t seed;
    size_t max_pairs; /* 0: no limit but AB_PAIRS_MAX */
    size_t
        per_launch; /* pairs of a launch, and none before them for cold caches; 0: by what launching costs */
    bool retake; /* once, a pair between whose sides the load of others shifted by more than 0.3 processors */
    struct ab_look look;
    const volatile sig_atomic_t *interrupted;
    struct bench_progress progress;
};
enum { AB_PAIRS_MAX = 1 << 18 };

enum ab_stop { AB_STOP_PRECISE, AB_STOP_BUDGET, AB_STOP_PAIRS, AB_STOP_INTERRUPTED };

struct ab_outcome {
    enum ab_stop stopped;
    uint64_t spent_ns;
    uint64_t launch_ns; /* of that: launching and warming up */
    bool few_launches;  /* loading takes so long that there was no time for look.least_epochs of them */
    char failure[512];  /* text of the latest failed pair; "" */
};

/* Fills *set, which starts zeroed and is released with ab_pairs_release(), whatever the result. */
tare_status ab_run(const struct ab_plan *plan, struct pair_set *set, struct ab_outcome *out, tare_error *err);
void ab_pairs_release(struct pair_set *set);

/* ---- ab_spec.c: what a worker process loads: a model and one case of it, as JSON text, so that the parent needs no
 * model in its own memory. Reads and writes; opens nothing ---- */

struct ab_spec {
    struct onnx_options model; /* `places` is the worker's own business */
    struct case_params params;
};

/* Append it to `out`. */
tare_status ab_spec_write(const struct ab_spec *s, struct buf *out, tare_error *err);

/* Texts and lists live in the arena. */
tare_status ab_spec_read(struct ab_spec *s, struct arena *a, const char *text, tare_error *err);

/* ---- ab_worker.c: what a comparison and its worker processes say to each other, and the worker's half of it. Packets
 * over one socket: a start with the specification behind it, then one request and one reply at a time. The side that is
 * not asked sleeps in recv(), so that it takes no CPU from the other ---- */

enum { AB_WORKER_FD = 3, AB_SPEC_MAX = 1 << 16, AB_TEXT_MAX = 512 };
#define AB_MAGIC UINT32_C(0x31424154) /* "TAB1" */

enum ab_request_kind { AB_ASK_START = 1, AB_ASK_RUN, AB_ASK_END };

struct ab_request {
    uint32_t magic, kind;
    uint64_t n; /* START: bytes of heap padding; RUN: repeats */
};

struct ab_reply {
    uint32_t magic;
    int32_t status;              /* tare_status; negative: text says why */
    struct ab_launched launched; /* START */
    struct pair_side side;       /* RUN; END: rss_peak alone */
    char text[AB_TEXT_MAX];
};

/* The first packets: a START and the specification, at most size - 1 bytes, NUL-terminated into `spec`. */
tare_status ab_worker_begin(int fd, struct ab_request *start, char *spec, size_t size, tare_error *err);

/* Say that the worker cannot go on. */
void ab_worker_refuse(int fd, tare_status status, const char *text);

/* Load, warm up, answer until END or until the other side is gone. A subject's failure is told and ends it. */
tare_status ab_worker_serve(int fd, struct subject *s, const struct case_params *p,
                            const struct case_record *to, tare_error *err);

#endif
