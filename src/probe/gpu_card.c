/* SPDX-License-Identifier: MIT
 * gpu_card.c - see gpu_card.h. */
#include "probe/gpu_card.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum { PROCESSES_MOST = 128, HOPS_MOST = 64 };
/* What the library does not have is an answer too. */
#define CALL(nvml, name, ...) ((nvml)->name ? (nvml)->name(__VA_ARGS__) : NVML_NO_CALL)
#define COST_SHARE 2000 /* a group takes at most 1 / this of the time, unless that makes it too old */

/* A row's new value, or that it is unknown; what the card never has is not asked again. */
static void set_row(struct gpu_card *c, int row, int code, double value)
{
    c->value[row] = code == NVML_OK ? value : NAN;
    if (code == NVML_NOT_SUPPORTED || code == NVML_NO_CALL || code == NVML_NO_PERMISSION)
        c->refused[row] = code;
}

/* ---- one function per group of rows ---- */

static void read_utilization(const struct nvml *n, struct gpu_card *c)
{
    struct nvml_utilization u = {0, 0};
    int code = CALL(n, utilization, c->device, &u);
    set_row(c, GPU_ROW(UTIL), code, u.gpu / 100.0);
    set_row(c, GPU_ROW(MEM_UTIL), code, u.memory / 100.0);
}

/* The older call counts what the driver keeps for itself as used. */
static void read_memory(const struct nvml *n, struct gpu_card *c)
{
    struct nvml_memory_v2 told = {.version = NVML_MEMORY_V2};
    int code = CALL(n, memory_v2, c->device, &told);
    if (code != NVML_OK && n->memory_v1) {
        struct nvml_memory_v1 old = {0, 0, 0};
        code = n->memory_v1(c->device, &old);
        told.used = old.used;
        told.total = old.total;
    }
    set_row(c, GPU_ROW(MEM_USED), code, (double)told.used);
    set_row(c, GPU_ROW(MEM_TOTAL), code, (double)told.total);
}

static bool field_number(const struct nvml_field *f, double *out)
{
    if (f->status != NVML_OK) return false;
    switch (f->type) {
    case NVML_TYPE_DOUBLE: *out = f->value.d; return true;
    case NVML_TYPE_UINT: *out = f->value.u; return true;
    case NVML_TYPE_ULONG:
    case NVML_TYPE_ULONGLONG: *out = (double)f->value.ull; return true;
    case NVML_TYPE_LONGLONG: *out = (double)f->value.ll; return true;
    case NVML_TYPE_INT: *out = f->value.i; return true;
    }
    return false;
}

/* Bytes per second since the last reading; the card's counter may wrap. */
static double pcie_rate(struct gpu_card *c, int way, const struct nvml_field *f)
{
    uint64_t now_ns = c->now->now_ns, before = c->pcie[way],
             bytes = f->type == NVML_TYPE_UINT ? f->value.u : f->value.ull;
    c->pcie[way] = bytes;
    if (!c->pcie_ns || now_ns <= c->pcie_ns || bytes < before) return NAN;
    return (double)(bytes - before) * 1e9 / (double)(now_ns - c->pcie_ns);
}

static void ask_fields(const struct nvml *n, const struct gpu_card *c, struct nvml_field *f, int count)
{
    int code = CALL(n, fields, c->device, count, f);
    for (int i = 0; i < count && code != NVML_OK; i++) f[i].status = code;
}

static void read_power(const struct nvml *n, struct gpu_card *c)
{
    struct nvml_field f[] = {{.id = NVML_FIELD_POWER_INSTANT}, {.id = NVML_FIELD_MEMORY_TEMPERATURE}};
    double v = NAN;
    unsigned mw = 0;
    ask_fields(n, c, f, 2);
    if (field_number(&f[0], &v)) {
        set_row(c, GPU_ROW(POWER), NVML_OK, v / 1e3);
    } else { /* older cards; on newer ones a mean of the last second */
        int code = CALL(n, power, c->device, &mw);
        set_row(c, GPU_ROW(POWER), code, mw / 1e3);
    }
    set_row(c, GPU_ROW(TEMP_MEM), f[1].status, field_number(&f[1], &v) ? v : NAN);
}

static void read_pcie(const struct nvml *n, struct gpu_card *c)
{
    struct nvml_field f[] = {{.id = NVML_FIELD_PCIE_TX_BYTES}, {.id = NVML_FIELD_PCIE_RX_BYTES}};
    ask_fields(n, c, f, 2);
    set_row(c, GPU_ROW(PCIE_TX), f[0].status, f[0].status ? NAN : pcie_rate(c, 0, &f[0]));
    set_row(c, GPU_ROW(PCIE_RX), f[1].status, f[1].status ? NAN : pcie_rate(c, 1, &f[1]));
    c->pcie_ns = c->now->now_ns;
}

/* One number by one call, which puts it into `v`; not asked again once the card has refused it. */
#define ASK(c, row, type, call, value)               \
    do {                                             \
        type v = 0;                                  \
        if ((c)->refused[row]) break;                \
        int code = call;                             \
        set_row(c, row, code, value);                \
    } while (0)

static void read_energy(const struct nvml *n, struct gpu_card *c)
{
    ASK(c, GPU_ROW(ENERGY), unsigned long long, CALL(n, energy, c->device, &v), (double)v / 1e3);
}

static void read_clocks(const struct nvml *n, struct gpu_card *c)
{
    ASK(c, GPU_ROW(CLOCK_SM), unsigned, CALL(n, clock_mhz, c->device, NVML_CLOCK_SM, &v), v * 1e6);
    ASK(c, GPU_ROW(CLOCK_MEM), unsigned, CALL(n, clock_mhz, c->device, NVML_CLOCK_MEM, &v), v * 1e6);
    ASK(c, GPU_ROW(THROTTLE), unsigned long long, CALL(n, throttle, c->device, &v), (double)v);
}

/* The speed of a lane doubles with each generation, nearly; an idle link falls back to the first. */
static int pcie_link(const struct nvml *n, const struct gpu_card *c, double *share)
{
    unsigned now = 0, most = 0, width = 0, widest = 0;
    int code = CALL(n, pcie_generation, c->device, &now);
    if (code == NVML_OK) code = CALL(n, pcie_generation_most, c->device, &most);
    if (code == NVML_OK) code = CALL(n, pcie_width, c->device, &width);
    if (code == NVML_OK) code = CALL(n, pcie_width_most, c->device, &widest);
    if (code != NVML_OK || !most || !widest || now > most) return code;
    *share = width / (double)widest / (double)(1u << (most - now));
    return code;
}

static void read_slow(const struct nvml *n, struct gpu_card *c)
{
    double link = NAN;
    if (!c->refused[GPU_ROW(PCIE_LINK)]) {
        int code = pcie_link(n, c, &link);
        set_row(c, GPU_ROW(PCIE_LINK), code, link);
    }
    ASK(c, GPU_ROW(CLOCK_MAX), unsigned, CALL(n, clock_most, c->device, NVML_CLOCK_SM, &v), v * 1e6);
    ASK(c, GPU_ROW(POWER_LIMIT), unsigned, CALL(n, power_limit, c->device, &v), v / 1e3);
    ASK(c, GPU_ROW(TEMP), unsigned, CALL(n, temperature, c->device, NVML_TEMPERATURE_GPU, &v), v);
    ASK(c, GPU_ROW(ECC), unsigned long long,
        CALL(n, ecc, c->device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &v), (double)v);
}

/* ---- whose memory ---- */

/* 1: of the program's tree; 0: of others; -1: no such process here. */
static int belongs(const struct gpu_owner *o, unsigned pid)
{
    struct process_stat s;
    char text[1024], path[32];
    pid_t us = o->root[0] ? 0 : getpid();
    for (int hops = 0; hops < HOPS_MOST && pid > 1; hops++) {
        if ((pid_t)pid == o->program || (hops > 0 && (pid_t)pid == us)) return 1;
        snprintf(path, sizeof path, "/proc/%u/stat", pid);
        if (!procfs_text(o->root, path, text, sizeof text) || !process_stat_parse(&s, text))
            return hops ? 0 : -1;
        pid = (unsigned)s.parent;
    }
    return 0;
}

struct owned {
    double bytes, hidden_bytes;
    unsigned listed, hidden, own;
    bool known;
};

/* The driver may number processes by another namespace: those that are not to be found here are summed apart. */
static int sum_owned(const struct nvml *nvml, const struct gpu_card *c, const struct gpu_owner *o,
                     struct owned *sum)
{
    struct nvml_process p[PROCESSES_MOST];
    unsigned n = PROCESSES_MOST;
    int code = CALL(nvml, compute_processes, c->device, &n, p);
    for (unsigned i = 0; code == NVML_OK && i < n && i < PROCESSES_MOST; i++) {
        int whose = belongs(o, p[i].pid);
        sum->listed++;
        sum->own += whose > 0;
        sum->hidden += whose < 0;
        if (!whose) continue;
        if (p[i].used == UINT64_MAX) {
            sum->known = false; /* the driver does not tell */
        } else if (whose > 0) {
            sum->bytes += (double)p[i].used;
        } else {
            sum->hidden_bytes += (double)p[i].used;
        }
    }
    return code;
}

static void read_processes(const struct nvml *n, struct gpu_card *c)
{
    const struct gpu_owner *o = c->now->owner;
    struct owned sum = {.known = true};
    if (!o->program || c->refused[GPU_ROW(MEM_PROCESS)]) return;
    int code = sum_owned(n, c, o, &sum);
    if (sum.listed == 1 && sum.hidden == 1) sum.bytes = sum.hidden_bytes; /* numbered by another namespace */
    set_row(c, GPU_ROW(MEM_PROCESS), code, sum.known ? sum.bytes : NAN);
    /* A lone one that cannot be found here is taken for the program; of several it is not known whose they are. */
    bool told = !sum.hidden || sum.listed == 1;
    set_row(c, GPU_ROW(OTHERS), code, told ? (double)(sum.listed - sum.own - sum.hidden) : NAN);
}

/* ---- GPM: two samples at least 100 ms apart, compared by the library ---- */

#define PERCENT 0.01
#define MIB 0x1p20
static const struct {
    int row;
    unsigned id;
    double unit;
} gpm_rows[NVML_GPM_METRICS] = {
    {GPU_ROW(SM_ACTIVE), NVML_GPM_SM_UTIL, PERCENT}, {GPU_ROW(SM_OCCUPANCY), NVML_GPM_SM_OCCUPANCY, PERCENT},
    {GPU_ROW(TENSOR), NVML_GPM_ANY_TENSOR, PERCENT}, {GPU_ROW(DRAM), NVML_GPM_DRAM_BANDWIDTH, PERCENT},
    {GPU_ROW(NVLINK_RX), NVML_GPM_NVLINK_RX, MIB},   {GPU_ROW(NVLINK_TX), NVML_GPM_NVLINK_TX, MIB},
};

/* The library makes rates of two of its samples. */
static void gpm_compare(const struct nvml *n, struct gpu_card *c)
{
    static struct nvml_gpm_get get; /* large; one thread samples */
    get.version = NVML_GPM_VERSION;
    get.n = NVML_GPM_METRICS;
    get.first = c->gpm_sample[0];
    get.second = c->gpm_sample[1];
    for (int i = 0; i < NVML_GPM_METRICS; i++)
        get.metrics[i] = (struct nvml_gpm_metric){.id = gpm_rows[i].id};
    int code = n->gpm_get(&get);
    for (int i = 0; i < NVML_GPM_METRICS; i++) {
        const struct nvml_gpm_metric *m = &get.metrics[i];
        int status = code ? code : m->status;
        set_row(c, gpm_rows[i].row, status, isfinite(m->value) ? m->value * gpm_rows[i].unit : NAN);
    }
}

static void read_gpm(const struct nvml *n, struct gpu_card *c)
{
    if (!c->gpm) return;
    nvml_gpm_sample older = c->gpm_sample[0];
    if (c->gpm_ns) { /* the later of the last pair is the earlier of this one */
        c->gpm_sample[0] = c->gpm_sample[1];
        c->gpm_sample[1] = older;
    }
    bool taken = n->gpm_sample(c->device, c->gpm_sample[1]) == NVML_OK;
    if (taken && c->gpm_ns) gpm_compare(n, c);
    c->gpm_ns = taken ? c->now->now_ns : 0;
}

/* ---- a card ---- */

void gpu_card_open(const struct nvml *n, struct gpu_card *c)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION, .supported = 0};
    for (int r = 0; r < GPU_ROWS; r++) c->value[r] = NAN;
    int code = n->gpm_support && n->gpm_alloc && n->gpm_free && n->gpm_sample && n->gpm_get && !c->slice
                   ? n->gpm_support(c->device, &support)
                   : NVML_NO_CALL;
    if (code == NVML_OK && !support.supported) code = NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && code == NVML_OK; i++) code = n->gpm_alloc(&c->gpm_sample[i]);
    c->gpm = code == NVML_OK;
    for (int i = 0; i < NVML_GPM_METRICS && !c->gpm && !c->slice; i++) c->refused[gpm_rows[i].row] = code;
}

#define MS UINT64_C(1000000)

/* One row per group: how often it is asked at most, and how old an answer may grow. */
static const struct {
    void (*read)(const struct nvml *n, struct gpu_card *c);
    uint64_t least_ns, most_ns;
    bool of_slices;       /* slices have it too */
    int only;             /* not asked when this row was refused; GPU_ROWS: always */
    bool strict;          /* asked sooner than least_ns it gives nonsense */
    uint64_t recorded_ns; /* asked as often as that where kernels are recorded: steps want it; 0: no matter */
} groups[GPU_GROUPS] = {
    [GPU_GROUP_MEMORY] = {read_memory, 0, 300 * MS, true, GPU_ROWS, false, 0},
    [GPU_GROUP_PROCESSES] = {read_processes, 0, 1000 * MS, true, GPU_ROWS, false, 0},
    [GPU_GROUP_UTILIZATION] = {read_utilization, 0, 300 * MS, false, GPU_ROW(UTIL), false, 0},
    [GPU_GROUP_POWER] = {read_power, 0, 300 * MS, false, GPU_ROWS, false, 0},
    [GPU_GROUP_PCIE] = {read_pcie, 0, 2000 * MS, false, GPU_ROWS, false, 0},
    [GPU_GROUP_ENERGY] = {read_energy, 0, 10000 * MS, false, GPU_ROW(ENERGY), false, 1000 * MS},
    [GPU_GROUP_CLOCKS] = {read_clocks, 0, 500 * MS, false, GPU_ROWS, false, 0},
    [GPU_GROUP_GPM] = {read_gpm, 110 * MS, 1000 * MS, false, GPU_ROWS, true, 200 * MS},
    [GPU_GROUP_SLOW] = {read_slow, 1000 * MS, 2000 * MS, false, GPU_ROWS, false, 0},
};

static bool may_ask(const struct gpu_card *c, const struct gpu_moment *m, int g)
{
    uint64_t asked = c->group[g].asked_ns;
    if ((c->slice && !groups[g].of_slices) || (groups[g].only < GPU_ROWS && c->refused[groups[g].only]))
        return false;
    return !groups[g].strict || !asked || m->now_ns - asked >= groups[g].least_ns;
}

/* A group whose answer took long is left in peace in proportion to that, but not for longer than its answer holds. */
static bool is_due(const struct gpu_card *c, const struct gpu_moment *m, int g)
{
    uint64_t asked = c->group[g].asked_ns, since = m->now_ns - asked;
    uint64_t rest = c->group[g].cost_ns * COST_SHARE;
    if (rest > groups[g].most_ns) rest = groups[g].most_ns;
    if (m->recorded && groups[g].recorded_ns && rest > groups[g].recorded_ns) rest = groups[g].recorded_ns;
    if (!asked || m->thorough) return true;
    return since >= groups[g].least_ns && since >= rest;
}

static void ask_group(const struct nvml *n, struct gpu_card *c, int g)
{
    uint64_t begun = clock_raw_ns(), took;
    groups[g].read(n, c);
    took = clock_raw_ns() - begun;
    /* Waking a sleeping driver costs a first call extra: what is kept follows slowly, and falls as it rises. */
    c->group[g].cost_ns = c->group[g].cost_ns ? (3 * c->group[g].cost_ns + took) / 4 : took;
    c->group[g].asked_ns = c->now->now_ns;
}

unsigned gpu_card_due(const struct gpu_card *c, const struct gpu_moment *m)
{
    unsigned due = 0;
    for (int g = 0; g < GPU_GROUPS; g++) due |= (unsigned)(may_ask(c, m, g) && is_due(c, m, g)) << g;
    return due;
}

void gpu_card_read(const struct nvml *n, struct gpu_card *c, const struct gpu_moment *m)
{
    c->now = m;
    for (int r = 0; r < GPU_ROWS; r++) c->value[r] = NAN;
    for (int g = 0; g < GPU_GROUPS; g++)
        if ((m->due >> g & 1) && may_ask(c, m, g)) ask_group(n, c, g);
}

void gpu_card_all_due(struct gpu_card *c)
{
    for (int g = 0; g < GPU_GROUPS; g++)
        if (!groups[g].strict) c->group[g].asked_ns = 0;
}

void gpu_card_close(const struct nvml *n, struct gpu_card *c)
{
    for (int i = 0; i < 2; i++)
        if (c->gpm_sample[i] && n->gpm_free) n->gpm_free(c->gpm_sample[i]);
}

/* ---- of this process ---- */

/* NULL, or why it cannot be told. */
static const char *own_bytes(const struct nvml *n, nvml_device device, const struct gpu_owner *o,
                             double *bytes)
{
    struct gpu_card c = {.device = device};
    struct owned sum = {.known = true};
    int code = sum_owned(n, &c, o, &sum);
    bool alone = sum.listed == 1 && sum.own + sum.hidden == 1;
    *bytes = sum.bytes + (alone ? sum.hidden_bytes : 0);
    if (code != NVML_OK) return nvml_why(n, code);
    if (sum.hidden && !sum.own && !alone)
        return "the driver numbers processes otherwise, and there are several";
    if (sum.known) return NULL;
    /* It does not tell how much is whose: of the only process on a card it is all that is in use. */
    read_memory(n, &c);
    *bytes = c.value[GPU_ROW(MEM_USED)];
    return alone && !isnan(*bytes) ? NULL : "the driver does not tell how much memory is whose";
}

void gpu_own_read(struct nvml *n, struct gpu_own *out, const char *root)
{
    struct gpu_owner owner = {.program = getpid()};
    tare_error err = TARE_ERROR_INIT;
    unsigned cards = 0;
    *out = (struct gpu_own){0};
    snprintf(owner.root, sizeof owner.root, "%s", root);
    if (!n->library && nvml_open(n, root, &err) != TARE_OK) {
        snprintf(out->why, sizeof out->why, "%.150s", err.text);
        return;
    }
    n->count(&cards);
    for (unsigned i = 0; i < cards && out->n < GPU_OWN_MOST; i++) {
        nvml_device device;
        double bytes = 0;
        int code = n->by_index(i, &device);
        const char *why = code == NVML_OK ? own_bytes(n, device, &owner, &bytes) : nvml_why(n, code);
        if (why) snprintf(out->why, sizeof out->why, "gpu%u: %.140s", i, why);
        if (why || !(bytes > 0)) continue;
        out->card[out->n].index = i;
        out->card[out->n++].bytes = (uint64_t)bytes;
    }
}
