/* SPDX-License-Identifier: MIT
 * nvml.h - NVIDIA's management library, loaded at run time: the few calls and structures that tare uses, declared here
 * because the machine that builds tare need not have them. Newest names first; a call that the library does not have is
 * NULL. Never linked, never needed. */
#ifndef PROBE_NVML_H
#define PROBE_NVML_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef void *nvml_device;
typedef void *nvml_gpm_sample;

enum { NVML_OK = 0, NVML_NOT_SUPPORTED = 3, NVML_NO_PERMISSION = 4, NVML_NO_CALL = 13 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };
enum { NVML_ECC_UNCORRECTED = 1, NVML_ECC_VOLATILE = 0 };

struct nvml_utilization {
    unsigned gpu, memory; /* percent */
};

struct nvml_memory_v1 {
    uint64_t total, free, used;
};

struct nvml_memory_v2 {
    unsigned version;
    uint64_t total, reserved, free, used;
};
#define NVML_MEMORY_V2 0x2000028u
static_assert(sizeof(struct nvml_memory_v2) == 40, "NVML: memory, version 2");

struct nvml_process {
    unsigned pid;
    uint64_t used; /* bytes; all ones: not available */
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(struct nvml_process) == 24, "NVML: process, versions 2 and 3");

enum {
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_POWER_INSTANT = 186,
    NVML_FIELD_PCIE_TX_BYTES = 197,
    NVML_FIELD_PCIE_RX_BYTES = 198
};
enum {
    NVML_TYPE_DOUBLE,
    NVML_TYPE_UINT,
    NVML_TYPE_ULONG,
    NVML_TYPE_ULONGLONG,
    NVML_TYPE_LONGLONG,
    NVML_TYPE_INT
};

struct nvml_field {
    unsigned id, scope;
    int64_t timestamp, latency_us;
    int type, status;
    union {
        double d;
        unsigned u;
        int i;
        uint64_t ull;
        int64_t ll;
    } value;
};
static_assert(sizeof(struct nvml_field) == 40, "NVML: field value");

struct nvml_gpm_support {
    unsigned version, supported;
};

enum {
    NVML_GPM_SM_UTIL = 2,
    NVML_GPM_SM_OCCUPANCY = 3,
    NVML_GPM_ANY_TENSOR = 5,
    NVML_GPM_DRAM_BANDWIDTH = 10,
    NVML_GPM_NVLINK_RX = 60, /* MiB/s */
    NVML_GPM_NVLINK_TX = 61
};
enum { NVML_GPM_METRICS = 6, NVML_GPM_VERSION = 1 };

struct nvml_gpm_metric {
    unsigned id;
    int status;
    double value;
    const char *names[3];
};
static_assert(sizeof(struct nvml_gpm_metric) == 40, "NVML: GPM metric");

struct nvml_gpm_get {
    unsigned version, n;
    nvml_gpm_sample first, second;
    struct nvml_gpm_metric metrics[NVML_GPM_METRICS + 400]; /* newer libraries may look at all of theirs */
};
static_assert(offsetof(struct nvml_gpm_get, metrics) == 24, "NVML: GPM metrics");

/* name here, arguments, names in the library, newest first */
#define NVML_CALLS(X)                                                                                          \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                                                 \
    X(shutdown, (void), "nvmlShutdown")                                                                        \
    X(driver_version, (char *, unsigned), "nvmlSystemGetDriverVersion")                                        \
    X(count, (unsigned *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")                                      \
    X(by_index, (unsigned, nvml_device *), "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")      \
    X(name, (nvml_device, char *, unsigned), "nvmlDeviceGetName")                                              \
    X(uuid, (nvml_device, char *, unsigned), "nvmlDeviceGetUUID")                                              \
    X(utilization, (nvml_device, struct nvml_utilization *), "nvmlDeviceGetUtilizationRates")                  \
    X(memory_v2, (nvml_device, struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2")                         \
    X(memory_v1, (nvml_device, struct nvml_memory_v1 *), "nvmlDeviceGetMemoryInfo")                            \
    X(compute_processes, (nvml_device, unsigned *, struct nvml_process *),                                     \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")                    \
    X(power, (nvml_device, unsigned *), "nvmlDeviceGetPowerUsage")                                             \
    X(power_limit, (nvml_device, unsigned *), "nvmlDeviceGetEnforcedPowerLimit")                               \
    X(energy, (nvml_device, unsigned long long *), "nvmlDeviceGetTotalEnergyConsumption")                      \
    X(temperature, (nvml_device, int, unsigned *), "nvmlDeviceGetTemperature")                                 \
    X(clock_mhz, (nvml_device, int, unsigned *), "nvmlDeviceGetClockInfo")                                         \
    X(clock_most, (nvml_device, int, unsigned *), "nvmlDeviceGetMaxClockInfo")                                 \
    X(pcie_generation, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkGeneration")                       \
    X(pcie_generation_most, (nvml_device, unsigned *), "nvmlDeviceGetMaxPcieLinkGeneration")                   \
    X(pcie_width, (nvml_device, unsigned *), "nvmlDeviceGetCurrPcieLinkWidth")                                 \
    X(pcie_width_most, (nvml_device, unsigned *), "nvmlDeviceGetMaxPcieLinkWidth")                             \
    X(throttle, (nvml_device, unsigned long long *), "nvmlDeviceGetCurrentClocksEventReasons",                 \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                                             \
    X(ecc, (nvml_device, int, int, unsigned long long *), "nvmlDeviceGetTotalEccErrors")                       \
    X(fields, (nvml_device, int, struct nvml_field *), "nvmlDeviceGetFieldValues")                             \
    X(mig_mode, (nvml_device, unsigned *, unsigned *), "nvmlDeviceGetMigMode")                                 \
    X(mig_count, (nvml_device, unsigned *), "nvmlDeviceGetMaxMigDeviceCount")                                  \
    X(mig_device, (nvml_device, unsigned, nvml_device *), "nvmlDeviceGetMigDeviceHandleByIndex")               \
    X(gpm_support, (nvml_device, struct nvml_gpm_support *), "nvmlGpmQueryDeviceSupport")                      \
    X(gpm_alloc, (nvml_gpm_sample *), "nvmlGpmSampleAlloc")                                                    \
    X(gpm_free, (nvml_gpm_sample), "nvmlGpmSampleFree")                                                        \
    X(gpm_sample, (nvml_device, nvml_gpm_sample), "nvmlGpmSampleGet")                                          \
    X(gpm_get, (struct nvml_gpm_get *), "nvmlGpmMetricsGet")

struct nvml {
    void *library;
#define X(field, args, ...) int(*field) args;
    NVML_CALLS(X)
#undef X
    const char *(*error_string)(int code);
};

/* Load and start it. TARE_UNSUPPORTED with the reason when there is none, or it finds no driver. `root`: see probe.h; a
 * made-up tree has it in usr/lib. */
tare_status nvml_open(struct nvml *n, const char *root, tare_error *err);
/* The same in two steps: below 1 ms to load it, 40 to 70 to start. What did not start is closed. */
tare_status nvml_load(struct nvml *n, const char *root, tare_error *err);
tare_status nvml_start(struct nvml *n, tare_error *err);
void nvml_close(struct nvml *n); /* an unopened one is fine */
const char *nvml_why(const struct nvml *n, int code);

#endif
