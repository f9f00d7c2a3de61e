/* SPDX-License-Identifier: MIT
 * comparison.h - the comparison document `tare.comparison/1`: two sides, case by case and metric by metric, with
 * ratios, intervals and verdicts, however they were found: measured interleaved, or from saved runs. Data and its
 * text form; judges nothing. docs/schema/comparison-1.json describes it.
 *
 * All memory a document points to is its arena's; strings may also be literals. Ratios are new / base, so that
 * for what is better when less (times, memory) a ratio above 1 is worse. */
#ifndef RUN_COMPARISON_H
#define RUN_COMPARISON_H

#include "run/run.h"

#define COMPARISON_SCHEMA "tare.comparison/1"

struct comparison_side {
    const char *name; /* as a person calls it: "old.onnx" */
    const char *type; /* "onnx", "command", "run", .. */
    const char *path, *sha256;
    struct run_runtime runtime;
    const char *run_id; /* of a saved run */
    struct run_map options;
};

struct comparison_difference { /* between the two sides' surroundings */
    const char *what;          /* "host.cpu.model" */
    const char *base, *new_;
    const char *severity; /* "info", "warn", "critical": numbers cannot be compared */
};

struct comparison_unmatched { /* a case that only one side has */
    const char *side;         /* "base", "new" */
    const char *name;
};

struct comparison_note {
    const char *id; /* "launches.few" */
    const char *severity, *text;
};

/* Verdicts: regressed, improved, same, inconclusive, unverified. */
struct comparison_metric {
    const char *metric, *unit; /* "latency.p50", "ns": as measure.h names them */
    const char *better;        /* "less", "more" */
    const char *role;          /* "gate": may fail the comparison; "advisory" */
    const char *method;        /* "interleaved", "saved", .. */
    struct run_estimate base, new_;
    struct run_estimate ratio; /* at `confidence` */
    struct run_estimate gate;  /* the ratio at the stricter level that the verdict is read from */
    struct known_f64 confidence, gate_confidence;
    const char *verdict, *why;
    struct known_f64 min_effect; /* a change within this counts as none */
    struct known_f64 mde;        /* a change this large would have been found 95 times in 100 */
    struct known_f64 p_value;    /* of no change beyond min_effect, adjusted for all metrics and cases */
    struct known_u64 samples;    /* pairs, or samples of the smaller side */
    struct known_u64 needed;     /* with which it would be decided; unknown: it is */
    struct known_f64 sd_sample, sd_launch; /* relative: of one pair, and of launches beyond it */
    struct run_map evidence;
    struct run_map unknown;
};

struct comparison_evidence { /* of interference, while it was measured */
    bool known;
    struct known_bool contended;
    struct known_f64 cpu_share, interrupted, pressure, steal;
};

struct comparison_samples { /* of the pairs, in the order they were taken */
    bool known;
    struct run_samples base_wall_ns, new_wall_ns, base_cpu_ns, new_cpu_ns;
    struct run_samples launch; /* number of the launch each pair belongs to */
    struct run_samples order;  /* 0: base first, 1: new first */
};

struct comparison_case {
    const char *name;
    struct run_map params;
    const char *verdict; /* the worst of the metrics that gate */
    struct known_u64 pairs, failed_pairs, launches, repeats;
    struct known_f64 spent_s;
    const char *stopped; /* "precise", "budget", "pairs", "interrupted" */
    struct comparison_evidence interference;
    RUN_LIST_OF(struct comparison_metric) metrics;
    RUN_LIST_OF(struct comparison_note) notes;
    struct comparison_samples samples;
    struct run_map launch; /* how launches were laid out */
    struct run_map unknown;
};

struct comparison {
    struct arena arena;
    const char *id, *created;
    struct run_tool tool;
    struct run_host host;
    const char *method;
    struct comparison_side base, new_;
    struct run_map config;
    const char *verdict;   /* of all cases */
    const char *reproduce; /* command line that measures this again */
    RUN_LIST_OF(struct comparison_difference) differences;
    RUN_LIST_OF(struct comparison_unmatched) unmatched;
    RUN_LIST_OF(struct comparison_case) cases;
    RUN_LIST_OF(struct comparison_note) notes;
};

/* Empty but for id, created (now), tool and method. comparison_release() takes a zeroed struct too. */
tare_status comparison_init(struct comparison *c, const char *method, tare_error *err);
void comparison_release(struct comparison *c);

/* A new zeroed item at the end of its list; NULL when memory ran out (writing will say so). */
struct comparison_case *comparison_add_case(struct comparison *c, const char *name);
struct comparison_metric *comparison_add_metric(struct comparison *c, struct comparison_case *to,
                                                const char *metric);
struct comparison_difference *comparison_add_difference(struct comparison *c, const char *what,
                                                        const char *base, const char *new_);
void comparison_add_unmatched(struct comparison *c, const char *side, const char *name);
/* Of one case, or of the whole (`to` NULL): comparison_note(c, to, "launches.few", "warn", "%zu launches", n). */
#define comparison_note(c, to, id, severity, ...) \
    comparison_note_text(c, to, id, severity, arena_printf(&(c)->arena, __VA_ARGS__))
void comparison_note_text(struct comparison *c, struct comparison_case *to, const char *id,
                          const char *severity, const char *text);

/* The worse of two verdicts: regressed, inconclusive or unverified, improved, same. NULL is none. */
const char *comparison_worse(const char *a, const char *b);

/* Set the verdicts of the cases and of the whole from the metrics that gate. */
void comparison_sum_up(struct comparison *c);

tare_status comparison_write(const struct comparison *c, struct buf *out, tare_error *err);
tare_status comparison_read(struct comparison *c, const char *name, const void *bytes, size_t len,
                            tare_error *err);

#endif
