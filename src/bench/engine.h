/* SPDX-License-Identifier: MIT
 * engine.h - the parts of the harness and what they share: the machine as the harness sees it, one case at
 * work, its slices of time. Private to src/bench and its tests. */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include "bench/bench.h"
#include "bench/place.h"
#include "bench/pool.h"
#include "core/rng.h"
#include "core/stats.h"
#include "core/vec.h"
#include "probe/gpu_card.h"
#include "probe/procstat.h"

#define NS_PER_S UINT64_C(1000000000)
#define BENCH_CONFIDENCE 0.95
enum { BENCH_HOPELESS = 3 }; /* so many more runs failed than were served: the case has failed */

/* ---- what the harness asks of the machine; tests put their own in and get virtual time and memory ---- */

struct bench_machine {
    uint64_t (*now)(void);
    void (*pause_until)(uint64_t ns); /* may come back early */
    struct known_u64 (*rss)(void);
    struct known_u64 (*available)(void); /* memory */
    void (*gpu)(struct gpu_own *out);    /* memory that this process has there */
    struct known_u64 (*busy)(void);      /* ns that processors worked, or were taken away, since boot */
    int (*move)(struct places *p, pid_t thread); /* as places_move(); NULL: nothing is moved */
};
extern struct bench_machine bench_machine;              /* what is used */
extern const struct bench_machine bench_machine_system; /* what it is reset to */

/* ---- one case at work ---- */

struct times {
    uint64_t *items;
    size_t n, cap;
};

/* Runs without a time, that failed or were due and not served: they took longer than this. */
struct wait {
    uint64_t ns, after; /* so many runs with a time came before it */
    bool failed;
};
struct waits {
    struct wait *items;
    size_t n, cap;
};

struct usage { /* sums over runs of what subjects say themselves */
    uint64_t runs;
    struct subject_cost sum; /* rss_peak: the greatest */
};

struct reading { /* of the process (pid 0: this) and the machine, at a moment; or, but for rss, between two */
    pid_t pid;
    struct procstat process;
    struct cpu_ticks ticks;
    struct known_u64 throttled_ns, rss;
};

struct slice {       /* some runs of one case in a row */
    size_t first, n; /* of its samples */
    uint64_t wall_ns;
    int64_t growth; /* of memory, bytes; runs that are not samples included */
    uint64_t runs;
    bool throttled, stolen;
};

struct slices {
    struct slice *items;
    size_t n, cap;
};

struct memory_track {
    bool known;
    uint64_t base;     /* before any case was loaded */
    uint64_t before;   /* before this one */
    uint64_t old_peak; /* high-water mark then, where it cannot be reset */
    bool reset;        /* it could */
    int64_t loaded;    /* this case's share after warm-up */
    int64_t peak;      /* its greatest share */
    int64_t grown;     /* since warm-up */
    double share_sum;  /* of the readings after slices */
    uint64_t readings;
    bool on_gpu; /* then: */
    struct gpu_own gpu_before, gpu_loaded;
};

enum stopped {
    STOP_NOT,
    STOP_PRECISE,
    STOP_BUDGET,
    STOP_MAX_RUNS,
    STOP_ENOUGH,
    STOP_INTERRUPTED,
    STOP_FAILED
};

struct case_work {
    const struct bench_case *what;
    struct case_params params; /* the case's, with workers and company set */
    struct run_map params_used;
    struct instance *instance;
    uint64_t turn; /* number of its last turn: whoever has the greatest was asked last; 0: had none */
    uint64_t runs, n_failed;                                       /* of all kinds, warm-up included */
    uint64_t load_ns, first_run_ns, warmup_runs, warmup_ns, moves; /* moves: of slices, to other processors */
    bool judged, steady;                                           /* warm-up */
    struct times samples;
    struct waits waits;
    const char *failure;   /* the first run that failed; NULL: none did */
    tare_status failed;    /* STOP_FAILED */
    struct times switched; /* numbers of the samples during which the system took the processor away */
    struct slices slices;
    uint64_t spent_ns, min_runs, max_runs; /* spent: measuring */
    size_t next_check;
    enum stopped stopped;
    double half_width, half_width_percentile; /* relative; INFINITY: not bounded */
    double median_ns;                         /* when they were looked at last; 0: never */
    uint64_t looked_ns;                       /* spent until then */
    uint64_t began_ns;                        /* when it was loaded; 0: not yet */
    double units;
    struct memory_track memory;
    struct usage usage;
    struct reading disturbed; /* summed over slices */
    pid_t elsewhere;          /* the process that does the work; 0: this one, or not known */
    struct run_open_loop open;
    struct load_result requests; /* of a service; kept until they are recorded */
    struct llm_pool streams;     /* of a language model, likewise */
    struct run_server server;    /* its processes in the window, where they were named */
};

struct stamp {
    uint64_t start, ns;
    bool switched, failed; /* switched: the system took a processor away meanwhile */
};

struct lane { /* what one worker writes while it runs */
    struct stamp *at;
    size_t n, n_failed, room; /* n: all runs */
    uint64_t began, ended;
    struct usage usage;
    tare_status failed;
    uint64_t failed_at; /* the run that failed first, from 1; open loop: the arrival; 0: the last one */
    tare_error err;
};

struct bench {
    const struct bench_plan *plan;
    struct run *run;
    struct case_work *cases, *first_failed; /* n_cases; in time, NULL: none */
    size_t n_cases, blocks;
    unsigned workers;
    struct lane *lanes; /* one per worker */
    struct times warm;  /* of warm-up; there before memory is read, so that it is nobody's growth */
    struct pool pool;   /* runs the workers when there are several */
    struct places *places;
    struct rng rng;
    struct known_u64 base_rss;
    uint64_t self_ns, self_watching_ns; /* our own cost per run; when switches are read after each */
    uint64_t turns;                     /* of all cases so far */
    uint64_t began_ns;                  /* now, when the bench began */
    uint64_t ready_ns, n_ready; /* of loading and warming up, over the cases that are through with it */
    uint64_t round_ns, round_spent_ns; /* of measuring: by the clock, and as it counts for budgets */
    const char *split_why;             /* why cases were not all interleaved; NULL: they were */
};

bool bench_interrupted(const struct bench *b);
/* Take a case out of the bench, with the reason for the document. Not TARE_OK: the user interrupts, or no memory. */
tare_status case_failed(struct bench *b, struct case_work *w, const tare_error *why, tare_error *err);
/* Before it is measured further: load a case anew whose process another case took along. What was measured in that one
 * is dropped, so that times, warm-up and memory of a case are those of one process. */
tare_status case_revive(struct bench *b, struct case_work *w, tare_error *err);
/* It is this case's turn to be asked. A process that ended since the last answer is laid to the case that had it, which
 * may be this one: look at w->stopped. */
tare_status case_turn(struct bench *b, struct case_work *w, tare_error *err);

/* ---- forecast.c ---- */

void bench_tell(struct bench *b, const struct case_work *w, const char *stage);

/* ---- load_closed.c ---- */

struct stretch {
    uint64_t ns;            /* how long the slice goes on */
    uint64_t runs;          /* at most; 0: no limit */
    struct times *into;     /* times are appended here in order of their start */
    uint64_t busy_ns;       /* result: wall time that the runs took; runs / busy_ns is the rate */
    struct waits *waits;    /* not NULL: of runs that failed */
    struct times *switched; /* not NULL: numbers of times during which the processor was taken away */
    struct reading *after;  /* not NULL: taken right at the end, before anything is put away */
};
/* Back to back, all workers together. An interruption is no error: fewer times come back. */
tare_status closed_slice(struct bench *b, struct case_work *w, struct stretch *stretch, tare_error *err);
enum { WARMUP_KEPT = 1 << 13 }; /* times of warm-up that are looked at */
tare_status lanes_open(struct bench *b, tare_error *err);
void lanes_reset(struct bench *b); /* before each job */
void lanes_close(struct bench *b);
uint64_t closed_self_ns(struct bench *b,
                        bool watching); /* what the loop costs per run: nothing is run in it */
/* After runs as long as this switches are read each time; after shorter ones only when they were slow. */
#define WATCH_EACH_NS 1000000
uint64_t typical_ns(const struct case_work *w); /* wall time per run, over all workers */
void usage_add(struct usage *into, const struct subject_cost *cost);
void usage_merge(struct usage *into, const struct usage *from);
tare_status lanes_failure(struct bench *b, struct case_work *w, tare_error *err);

/* ---- load_open.c ---- */

/* One unbroken window; fills samples, slices and w->open. */
tare_status open_window(struct bench *b, struct case_work *w, tare_error *err);

/* ---- requests.c: of subjects that drive their load themselves ---- */

tare_status requests_warm(struct bench *b, struct case_work *w, tare_error *err);
/* One unbroken window; fills samples, waits, slices, w->requests and, with a rate, w->open. */
tare_status requests_window(struct bench *b, struct case_work *w, tare_error *err);

/* ---- rounds.c ---- */

/* Measure cases first .. first + n - 1, which are warm, in rounds. */
tare_status rounds_measure(struct bench *b, size_t first, size_t n, tare_error *err);

/* ---- machine.c ---- */

/* Of the process that does the subject's work: this one, or the one it tells of. */
tare_status process_take(struct subject *s, bool reset, struct process_state *out, tare_error *err);
tare_status reading_take(struct subject *s, struct reading *out, tare_error *err);
/* Add what happened from `before` to `after` to the case, and mark its slice. */
void disturbance_add(struct case_work *w, struct slice *slice, const struct reading *before,
                     const struct reading *after);

/* Runs slower than the median + max(5 * 1.4826 MAD, half the median), and how many of them are explained. */
tare_status outliers_explain(const struct case_work *w, struct run_outliers *out, tare_error *err);

tare_status memory_before(struct memory_track *m, struct subject *s, struct known_u64 base, tare_error *err);
tare_status memory_loaded(struct memory_track *m, struct subject *s, tare_error *err);
void memory_slice(struct memory_track *m, struct slice *slice, const struct reading *before,
                  const struct reading *after);
tare_status memory_slope(const struct slices *slices, struct interval *out, bool *known, tare_error *err);

#endif
