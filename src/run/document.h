/* SPDX-License-Identifier: MIT
 * document.h - the shape of a run document, field for field as in docs/schema/run-1.json. Data only; run.h
 * has the functions, fields.c the table that reads and writes it. Times are in ns and sizes in bytes, at
 * most INT64_MAX. A struct that begins with `known` is null as a whole until that is set. */
#ifndef RUN_DOCUMENT_H
#define RUN_DOCUMENT_H

#include "run/case.h"
#include "run/value.h"

/* ---- who measured, where, what ---- */

struct run_tool {
    const char *version, *commit;
};

struct run_host_cpu {
    const char *model;
    struct known_u64 cores;  /* logical processors online */
    struct known_f64 usable; /* of these, how many this process may use: affinity and cgroup quota */
};

struct run_host_cgroup {
    struct known_u64 version; /* 1 or 2 */
    const char *path;
    struct known_f64 cpu_quota; /* processors' worth of time; unknown also when there is no limit */
    struct known_u64 memory_limit_bytes;
    const char *cpuset;
};

struct run_host_gpu {
    struct known_u64 index;
    const char *name, *uuid, *driver;
    struct known_u64 memory_bytes;
};

struct run_host {
    const char *fingerprint; /* run_host_fingerprint() */
    const char *hostname, *os, *kernel, *arch;
    struct run_host_cpu cpu;
    struct known_u64 memory_bytes;
    struct known_bool is_virtual;
    const char *governor;
    struct run_host_cgroup cgroup;
    RUN_LIST_OF(struct run_host_gpu) gpus;
    struct known_f64 load1;
    struct run_map unknown;
};

struct run_runtime {
    bool known;
    const char *name, *version;
};

/* A graph without running it: as the file has it, or as the runtime made it. */
struct run_static {
    bool known;
    struct run_map dims;                   /* free dimensions and what they were taken as */
    struct known_u64 nodes, unknown_nodes; /* of these: cost unknown */
    struct known_u64 parameters, parameter_bytes;
    struct run_map bytes_by_type; /* {"float32": ..} of initializers */
    struct run_map ops;           /* nodes per operator */
    struct run_map unknown_ops;   /* operator -> nodes whose cost is not known */
    struct run_map patterns;      /* what findings about the graph rest on: docs/judgement.md, "Patterns" */
    struct run_cost cost;         /* of the graph as it stands */
    struct run_cost cost_per_run; /* without nodes that are the same in every run: made of constants only */
    struct known_u64 activation_sum, activation_peak, activation_arena; /* bytes */
    const char *activation_peak_node;
    struct run_map formulas; /* "macs", "flops", ..: in the free dimensions */
    struct run_map unknown;
};

struct run_roof { /* what this machine can reach, measured */
    bool known;
    struct known_u64 threads;
    struct known_f64 flops;     /* per second, fp32 multiply-adds as 2 */
    struct known_f64 int_ops;   /* per second, int8 */
    struct known_f64 bandwidth; /* bytes per second from memory */
    const char *measured;       /* when: RFC 3339, or "now" */
};

struct run_subject {
    const char *type, *name, *path, *sha256;
    struct known_u64 size_bytes;
    struct run_runtime runtime;
    struct run_static as_file, optimized; /* keys "static" and "static_optimized" */
};

/* ---- judgements ---- */

struct run_finding {
    const char *id, *severity, *title; /* severity: "info", "warn", "critical" */
    const char *case_name;             /* NULL: of the whole run */
    struct run_map evidence;
    const char *action;
};

struct run_proof { /* of a recommendation: its case against another, interleaved */
    bool known;
    const char *against, *metric;
    double ratio; /* recommended / against */
    struct known_f64 ratio_lo, ratio_hi, confidence;
    const char *verdict;
};

struct run_recommendation {
    bool known;
    const char *objective, *case_name, *why;
    struct run_proof proof;
};

struct run_target {
    const char *metric, *op;
    double value;
    const char *unit, *case_name;
    struct known_f64 achieved, ratio;
    const char *verdict; /* "pass", "fail", "inconclusive" */
    struct known_f64 confidence;
};

struct run {
    struct arena arena;
    const char *id, *kind, *created;
    struct run_tool tool;
    struct run_host host;
    struct run_subject subject;
    struct run_map config;
    struct run_roof roof;
    const char *trace; /* file name of the trace beside this document */
    RUN_LIST_OF(struct run_case) cases;
    RUN_LIST_OF(struct run_finding) findings;
    struct run_recommendation recommendation;
    RUN_LIST_OF(struct run_target) targets;
};

#endif
