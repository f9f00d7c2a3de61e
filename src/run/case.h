/* SPDX-License-Identifier: MIT
 * case.h - one case of a run: a configuration of the subject and everything measured of it. Data only, the
 * rules of document.h apply. */
#ifndef RUN_CASE_H
#define RUN_CASE_H

#include "run/value.h"
#include "run/watch.h"

/* Base-2 exponential buckets: bucket i counts values in (b^(offset+i), b^(offset+i+1)], b = 2^(2^-scale). */
struct run_histogram {
    bool known;
    int64_t scale, offset;
    uint64_t zero; /* values equal to 0 */
    uint64_t *counts;
    size_t n_counts;
};

struct run_latency {
    bool known;
    struct known_u64 mean, stddev, min, max; /* ns */
    struct run_estimate p50, p90, p95, p99, p999;
    struct run_histogram histogram;
};

struct run_samples { /* single latencies in the order they were taken */
    bool known;
    const char *kept; /* which: "all", "first", "random" */
    size_t cap;       /* the recorder kept at most so many */
    uint64_t *ns;
    size_t n;
};

struct run_throughput {
    struct run_estimate rate;
    const char *unit; /* "texts/s" */
};

struct run_memory {
    bool known;
    struct known_u64 rss_before, rss_peak, rss_mean;
    struct known_i64 delta, per_unit;
    struct known_u64 minor_faults, major_faults;
    struct run_map arena; /* the runtime's own allocator statistics, bytes */
    struct known_f64 fragmentation;
    struct run_estimate
        growth; /* bytes that each run adds, over the measured runs: a leak when surely above 0 */
};

struct run_cpu {
    bool known;
    struct known_f64 utilization; /* 1 is one processor fully busy */
    struct known_u64 user_ns, system_ns, voluntary_switches, involuntary_switches, throttled_ns;
    struct known_f64 steal; /* share of time the hypervisor took, 0 to 1 */
};

struct run_outliers { /* runs far slower than the others */
    bool known;
    struct known_u64 count;
    struct known_u64 explained; /* of these: coincide with a switch, steal or throttling */
    struct known_u64 limit_ns;  /* slower than this */
};

struct run_io {
    bool known;
    struct known_u64 read_bytes, write_bytes, read_ops, write_ops, net_rx_bytes, net_tx_bytes;
};

struct run_gpu_device {
    struct known_u64 index;
    const char *name;
    struct known_f64 utilization, memory_utilization; /* shares, 0 to 1 */
    struct known_u64 memory_before, memory_peak;
    struct known_f64 power_w, temperature_c, clock_mhz;
    struct known_u64 throttled_ns;
};

struct run_gpu {
    bool known;
    struct known_u64 kernel_ns, copy_ns, copy_bytes;
    RUN_LIST_OF(struct run_gpu_device) devices;
};

struct run_energy {
    bool known;
    struct known_f64 joules, per_unit;
    const char *method; /* "powercap", "nvml", "estimated", "absent" */
    const char *why;
};

struct run_accuracy {
    struct run_estimate score;
    const char *metric, *dataset;
    struct known_u64 examples;
    struct known_f64 baseline;
};

/* What work costs by its arithmetic, before any clock: docs/cost.md has the rules. A total that leaves out nodes
 * whose cost is unknown is a lower bound: `complete` is then false. */
struct run_cost {
    bool known;
    struct known_bool complete;
    struct known_u64 macs, int_macs; /* multiply-accumulates of contractions; of integers */
    struct known_u64 flops;          /* 2 * macs + simple */
    struct known_u64 simple, division, transcendental, integer;
    struct known_u64 bytes_read, bytes_written; /* the least that has to move */
    struct known_u64 useful_macs; /* macs + int_macs without those a causal operator throws away */
};

struct run_layer { /* a node of the graph that was looked at, or a group of such */
    const char *name, *op, *group, *provider;
    struct known_u64 nodes; /* how many it stands for */
    struct known_u64 calls, total_ns;
    struct known_f64 share; /* of the profiled pass */
    struct known_u64 flops, bytes, macs, int_macs;
    struct known_u64 parameters, output_bytes;
    const char *output;          /* "float32[16,128,384]" */
    struct known_f64 time_ns;    /* per run, the profiler's own cost taken off */
    struct known_f64 intensity;  /* flops / bytes */
    struct known_f64 rate;       /* flops (or integer operations) per second reached */
    struct known_f64 bandwidth;  /* bytes per second reached */
    const char *bound;           /* "compute", "memory" */
    struct known_f64 roof_share; /* of what the roof allows */
    struct known_f64 speedup_if_free;
};

/* How the pass that timed layers relates to the runs that were timed without it. */
struct run_profile {
    bool known;
    struct known_u64 runs;
    struct known_u64 latency_ns;     /* median of a run with the profiler on */
    struct known_f64 overhead;       /* that / the median without it - 1 */
    struct known_u64 node_ns;        /* what the profiler was taken to cost per node */
    struct known_f64 covered;        /* corrected sum of layers / median without the profiler */
    struct known_u64 dropped_events; /* lines that could not be read */
};

struct run_self {
    bool known;
    struct known_u64 ns_per_run;
    struct known_f64 share; /* of the mean latency */
};

struct run_launch { /* one of several whole benches of this case, each in a process of its own */
    const char *created;
    struct known_u64 samples;
    struct run_estimate p50; /* ns; its interval is within this launch */
    struct known_u64 mean, p90, p95, p99, load_ns;
    struct known_f64 throughput, cpu_ns_per_run;
    struct known_u64 rss_peak;
    struct known_u64 env_pad; /* bytes by which its environment was longer: moves the stack */
};

struct run_anchored { /* this case against a frozen build of the same thing, measured in turn with it */
    struct run_estimate ratio; /* this / the anchor */
    const char *anchor;        /* which build: a name, or the file and the beginning of its hash */
    const char *metric;        /* "latency.p50", "cpu.time" */
    struct known_f64 confidence;
    struct known_u64 pairs;
};

struct run_case {
    const char *name;
    struct run_map params;
    struct known_u64 samples, warmup_runs;
    const char *unit;
    struct known_u64 units_per_run;
    struct known_f64 confidence; /* of every interval in this case: 0.95 */
    struct known_u64 load_ns, first_run_ns;
    struct run_latency latency_ns;
    struct run_samples samples_raw;
    struct run_throughput throughput;
    struct run_memory memory;
    struct run_cpu cpu;
    struct run_outliers outliers;
    struct run_io io;
    struct run_gpu gpu;
    struct run_energy energy;
    struct run_accuracy accuracy;
    struct run_cost cost;                 /* of one run */
    RUN_LIST_OF(struct run_layer) layers; /* empty: null */
    struct run_profile profile;
    RUN_LIST_OF(struct run_launch)
    launches; /* with them, numbers and intervals of the case are over launches */
    RUN_LIST_OF(struct run_anchored) anchored; /* empty: null */
    struct run_watch watch;                    /* `tare run` */
    struct run_self self;
    struct run_map unknown;
};

#endif
