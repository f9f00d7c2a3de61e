/* SPDX-License-Identifier: MIT
 * gpu_card.h - one GPU, or one slice of it, read by NVML: a row per quantity. Knows nothing of samples. */
#ifndef PROBE_GPU_CARD_H
#define PROBE_GPU_CARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "probe/nvml.h"
#include "probe/probe.h"
#include "probe/procfs.h"

/* A row for each metric of GPUs, in the order of trace/metric.h: GPU_ROW(UTIL) is the first, GPU_ROW(DRAM) the last. */
#define GPU_ROW(name) (METRIC_GPU_##name - METRIC_GPU_UTIL)
enum { GPU_ROWS = GPU_ROW(DRAM) + 1 };
static inline enum metric_id gpu_row_metric(int row)
{
    return (enum metric_id)(METRIC_GPU_UTIL + row);
}

/* Calls that are made together. How long the driver takes for one is between 10 us and 5 ms, on the same card. */
enum gpu_group {
    GPU_GROUP_MEMORY,
    GPU_GROUP_PROCESSES,
    GPU_GROUP_UTILIZATION,
    GPU_GROUP_POWER,
    GPU_GROUP_PCIE,
    GPU_GROUP_ENERGY,
    GPU_GROUP_CLOCKS,
    GPU_GROUP_GPM,
    GPU_GROUP_SLOW,
    GPU_GROUPS
};

/* Whose memory is summed: the program and all it started. */
struct gpu_owner {
    char root[512];
    pid_t program; /* 0: nobody's */
};

struct gpu_moment {
    uint64_t now_ns;
    bool thorough; /* ask everything, whatever it costs */
    bool recorded; /* kernels are recorded too: their steps want energy */
    const struct gpu_owner *owner;
    unsigned due; /* bits of the groups to ask */
};

struct gpu_card {
    nvml_device device;
    char label[32];
    bool slice;             /* has memory and processes of its own, the rest is the whole card's */
    double value[GPU_ROWS]; /* NAN: unknown, or not read this time */
    int refused[GPU_ROWS];  /* NVML's reason why never; 0: none */
    struct {
        uint64_t asked_ns; /* when; 0: never */
        uint64_t cost_ns;  /* how long that took, smoothed */
    } group[GPU_GROUPS];
    uint64_t pcie_ns, pcie[2];
    bool gpm;
    nvml_gpm_sample gpm_sample[2]; /* the earlier one and the one before */
    uint64_t gpm_ns;
    const struct gpu_moment *now; /* within gpu_card_read() */
};

void gpu_card_open(const struct nvml *n, struct gpu_card *c);
/* The groups whose turn it is. Each is asked so seldom that it takes 1/2000 of the time, but no reading is older than a
 * second or two (GPM, PCIe) or a third of one (work, memory, power) before the next. */
unsigned gpu_card_due(const struct gpu_card *c, const struct gpu_moment *m);
/* Asks the groups of m->due. What is not read anew is unknown: whoever wants to hold it knows from when it is. */
void gpu_card_read(const struct nvml *n, struct gpu_card *c, const struct gpu_moment *m);
void gpu_card_all_due(struct gpu_card *c); /* the next reading asks everything: where counters begin */
void gpu_card_close(const struct nvml *n, struct gpu_card *c);

/* What the calling process holds on each card where it holds something. */
enum { GPU_OWN_MOST = 16 };
struct gpu_own {
    unsigned n;
    struct {
        unsigned index; /* as NVML counts */
        uint64_t bytes;
    } card[GPU_OWN_MOST];
    char why[160]; /* what cannot be told, of some card; empty: all is known */
};
/* `n`, zeroed at first, is opened by the first call and stays so: to start it takes 40 to 70 ms. */
void gpu_own_read(struct nvml *n, struct gpu_own *out, const char *root);

#endif
