/* SPDX-License-Identifier: MIT
 * fake_nvml.c - a libnvidia-ml.so.1 of known answers for tests. With -DFAKE_OLD it has the names of an old library
 * only: no _v2 and _v3, no field values, no GPM. Layouts are declared here anew, so that a mistake in tare's own
 * shows. */
#include "fake_nvml.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define NAMED(result, name, args) \
    API result name args;         \
    API result name args

API struct fake_nvml fake_nvml = {.cards = FAKE_CARDS, .energy_mj = 5000, .throttle = 4};

enum { SLICE_BASE = 100, NOT_SUPPORTED = 3, INVALID = 2, TOO_SMALL = 7, NOT_FOUND = 6 };

/* A device is its number + 1; slices are above SLICE_BASE. */
static unsigned number(void *device)
{
    return (unsigned)(uintptr_t)device - 1;
}

/* A library that takes its time: until the test says so, or a file is there; after 20 s FILE.late is made. */
static void take_time(void)
{
    const char *file = getenv("FAKE_NVML_WAITS_FOR"), *ms = getenv("FAKE_NVML_MS");
    int left = 10000;
    while (left > 0 &&
           (__atomic_load_n(&fake_nvml.hold, __ATOMIC_SEQ_CST) || (file && access(file, F_OK) != 0))) {
        usleep(2000);
        left--;
    }
    if (file && !left) {
        char late[4096];
        snprintf(late, sizeof late, "%s.late", file);
        FILE *f = fopen(late, "w");
        if (f) fclose(f);
    }
    if (ms) usleep((useconds_t)atoi(ms) * 1000);
}

/* It counts who has started it, as the real one: only the first waits. */
static int start(void)
{
    if (!fake_nvml.started) take_time();
    if (!fake_nvml.init_code) fake_nvml.started++;
    return fake_nvml.init_code;
}

NAMED(int, nvmlInit, (void))
{
    return start();
}
NAMED(int, nvmlShutdown, (void))
{
    return fake_nvml.started-- > 0 ? 0 : 1;
}

NAMED(const char *, nvmlErrorString, (int code))
{
    return code == NOT_SUPPORTED ? "Not Supported" : code == 9 ? "Driver Not Loaded" : "some error";
}

static int handle(unsigned i, void **out)
{
    *out = (void *)(uintptr_t)(i + 1);
    return i < fake_nvml.cards ? 0 : INVALID;
}

NAMED(int, nvmlDeviceGetCount, (unsigned *n))
{
    *n = fake_nvml.cards;
    return 0;
}
NAMED(int, nvmlDeviceGetHandleByIndex, (unsigned i, void **out))
{
    return handle(i, out);
}

NAMED(int, nvmlDeviceGetName, (void *device, char *out, unsigned n))
{
    snprintf(out, n, "Made-up card %u", number(device));
    return 0;
}
NAMED(int, nvmlDeviceGetUUID, (void *device, char *out, unsigned n))
{
    snprintf(out, n, "GPU-%u", number(device));
    return number(device) == 0 ? 0 : NOT_SUPPORTED;
}
NAMED(int, nvmlSystemGetDriverVersion, (char *out, unsigned n))
{
    snprintf(out, n, "580.1");
    return 0;
}

struct old_memory {
    unsigned long long total, free, used;
};
NAMED(int, nvmlDeviceGetMemoryInfo, (void *device, struct old_memory *m))
{
    m->total = number(device) >= SLICE_BASE ? 20000 : 80000;
    m->used = 3000; /* 1000 of them are the driver's own */
    m->free = m->total - m->used;
    return 0;
}

struct utilization {
    unsigned gpu, memory;
};
NAMED(int, nvmlDeviceGetUtilizationRates, (void *device, struct utilization *u))
{
    u->gpu = 75;
    u->memory = 40;
    return number(device) == 0 && fake_nvml.mig ? NOT_SUPPORTED : 0;
}

NAMED(int, nvmlDeviceGetPowerUsage, (void *device, unsigned *mw))
{
    *mw = 250000 + number(device);
    return 0;
}
NAMED(int, nvmlDeviceGetEnforcedPowerLimit, (void *device, unsigned *mw))
{
    (void)device;
    *mw = 700000;
    return 0;
}
NAMED(int, nvmlDeviceGetTemperature, (void *device, int sensor, unsigned *celsius))
{
    (void)device;
    *celsius = 41;
    return sensor == 0 ? 0 : INVALID;
}
NAMED(int, nvmlDeviceGetClockInfo, (void *device, int clock, unsigned *mhz))
{
    (void)device;
    *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 0;
    return 0;
}
NAMED(int, nvmlDeviceGetMaxClockInfo, (void *device, int clock, unsigned *mhz))
{
    (void)device;
    *mhz = clock == 1 ? 1980 : 0;
    return clock == 1 ? 0 : INVALID;
}
NAMED(int, nvmlDeviceGetCurrPcieLinkGeneration, (void *device, unsigned *v))
{
    (void)device;
    *v = 4;
    return 0;
}
NAMED(int, nvmlDeviceGetMaxPcieLinkGeneration, (void *device, unsigned *v))
{
    *v = 5;
    return number(device) == 0 ? 0 : NOT_SUPPORTED;
}
NAMED(int, nvmlDeviceGetCurrPcieLinkWidth, (void *device, unsigned *v))
{
    (void)device;
    *v = 8;
    return 0;
}
NAMED(int, nvmlDeviceGetMaxPcieLinkWidth, (void *device, unsigned *v))
{
    (void)device;
    *v = 16;
    return 0;
}
NAMED(int, nvmlDeviceGetCurrentClocksThrottleReasons, (void *device, unsigned long long *reasons))
{
    (void)device;
    *reasons = fake_nvml.throttle;
    return 0;
}
NAMED(int, nvmlDeviceGetTotalEccErrors, (void *device, int type, int counter, unsigned long long *n))
{
    fake_nvml.slow_calls++;
    *n = type == 1 && counter == 0 ? 2 : 99;
    return number(device) == 0 ? 0 : NOT_SUPPORTED;
}

#ifndef FAKE_OLD
NAMED(int, nvmlInit_v2, (void))
{
    return start();
}
NAMED(int, nvmlDeviceGetCount_v2, (unsigned *n))
{
    *n = fake_nvml.cards;
    return 0;
}
NAMED(int, nvmlDeviceGetHandleByIndex_v2, (unsigned i, void **out))
{
    return handle(i, out);
}

NAMED(int, nvmlDeviceGetTotalEnergyConsumption, (void *device, unsigned long long *mj))
{
    *mj = fake_nvml.energy_mj;
    return number(device) == 0 ? 0 : NOT_SUPPORTED;
}

struct new_memory {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
NAMED(int, nvmlDeviceGetMemoryInfo_v2, (void *device, struct new_memory *m))
{
    struct old_memory old;
    if (m->version != (sizeof *m | 2u << 24)) return 25; /* argument version mismatch */
    nvmlDeviceGetMemoryInfo(device, &old);
    m->total = old.total;
    m->reserved = 1000;
    m->used = old.used - m->reserved;
    m->free = old.free;
    return 0;
}

struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
NAMED(int, nvmlDeviceGetComputeRunningProcesses_v3, (void *device, unsigned *n, struct process *p))
{
    unsigned have = number(device) == 0 ? fake_nvml.n_processes : 0;
    if (*n < have) return TOO_SMALL;
    *n = have;
    for (unsigned i = 0; i < have; i++) {
        memset(&p[i], 0, sizeof p[i]);
        p[i].pid = fake_nvml.pid[i];
        p[i].used = fake_nvml.used[i];
    }
    return 0;
}

struct field {
    unsigned id, scope;
    long long timestamp, latency;
    int type, status;
    union {
        double d;
        unsigned u;
        unsigned long long ull;
    } v;
};
NAMED(int, nvmlDeviceGetFieldValues, (void *device, int n, struct field *f))
{
    for (int i = 0; i < n; i++) {
        f[i].status = number(device) == 0 ? 0 : NOT_SUPPORTED;
        f[i].type = f[i].id == 197 || f[i].id == 198 ? 3 : 1;
        if (f[i].id == 186)
            f[i].v.u = 300000;
        else if (f[i].id == 82)
            f[i].v.u = 55;
        else if (f[i].id == 197)
            f[i].v.ull = fake_nvml.pcie_tx;
        else if (f[i].id == 198)
            f[i].v.ull = fake_nvml.pcie_rx;
        else
            f[i].status = INVALID;
    }
    return 0;
}

NAMED(int, nvmlDeviceGetMigMode, (void *device, unsigned *now, unsigned *later))
{
    *now = *later = number(device) == 0 && fake_nvml.mig;
    return number(device) == 0 ? 0 : NOT_SUPPORTED;
}
NAMED(int, nvmlDeviceGetMaxMigDeviceCount, (void *device, unsigned *n))
{
    (void)device;
    *n = 7;
    return 0;
}
NAMED(int, nvmlDeviceGetMigDeviceHandleByIndex, (void *device, unsigned i, void **out))
{
    (void)device;
    *out = (void *)(uintptr_t)(SLICE_BASE + i + 1);
    return i == 1 || i > fake_nvml.mig ? NOT_FOUND : 0;
}

struct support {
    unsigned version, supported;
};
NAMED(int, nvmlGpmQueryDeviceSupport, (void *device, struct support *s))
{
    if (s->version != 1) return 25;
    s->supported = number(device) == 0;
    return 0;
}
NAMED(int, nvmlGpmSampleAlloc, (void **sample))
{
    *sample = calloc(1, sizeof(int));
    fake_nvml.gpm_samples++;
    return 0;
}
NAMED(int, nvmlGpmSampleFree, (void *sample))
{
    free(sample);
    fake_nvml.gpm_samples--;
    return 0;
}
NAMED(int, nvmlGpmSampleGet, (void *device, void *sample))
{
    static int taken;
    (void)device;
    *(int *)sample = ++taken;
    return 0;
}
struct metric {
    unsigned id;
    int status;
    double value;
    char *names[3];
};
struct get {
    unsigned version, n;
    void *first, *second;
    struct metric metrics[1];
};
NAMED(int, nvmlGpmMetricsGet, (struct get * g))
{
    if (g->version != 1 || *(int *)g->second <= *(int *)g->first) return INVALID;
    for (unsigned i = 0; i < g->n; i++) {
        g->metrics[i].status = g->metrics[i].id == 10 ? NOT_SUPPORTED : 0;
        g->metrics[i].value = 10.0 * g->metrics[i].id;
    }
    return 0;
}
#endif
