/* SPDX-License-Identifier: MIT
 * host.c - see host.h. */
#include "probe/host.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/mem.h"

struct host_job {
    struct run *run;
    struct run_host *host;
    const char *root;
    char text[16384]; /* the file read last, NUL-terminated; longer files are cut */
};

/* ---- small files ---- */

/* Read root + path into job->text, less a newline at the end. */
static bool slurp(struct host_job *job, const char *path)
{
    char full[PATH_MAX];
    if ((size_t)snprintf(full, sizeof full, "%s%s", job->root, path) >= sizeof full) return false;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t len = 0;
    ssize_t n;
    while (len < sizeof job->text - 1 && (n = read(fd, job->text + len, sizeof job->text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(fd);
    if (len && job->text[len - 1] == '\n') len--;
    job->text[len] = 0;
    return len > 0;
}

/* The rest of the line that begins with `key`, blanks and `sep` skipped, ended in place; NULL: none. */
static char *line_value(char *text, const char *key, char sep)
{
    size_t len = strlen(key);
    for (char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, len) != 0) continue;
        char *p = line + len;
        p += strspn(p, " \t");
        if (*p != sep) continue;
        p++;
        p += strspn(p, " \t");
        p[strcspn(p, "\n")] = 0;
        return p;
    }
    return NULL;
}

/* A decimal number without its locale: "0.42". */
static bool parse_decimal(const char *s, double *out)
{
    double v = 0, unit = 1;
    bool any = false, point = false;
    for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
        if (*s == '.') {
            point = true;
            continue;
        }
        any = true;
        v = v * 10 + (*s - '0');
        if (point) unit *= 10;
    }
    *out = v / unit;
    return any;
}

/* Entries of a list like "0-3,8". 0: not such a list. */
static unsigned count_list(const char *s)
{
    unsigned n = 0;
    while (*s >= '0' && *s <= '9') {
        char *end;
        unsigned long first = strtoul(s, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (last < first || last > 1 << 20) return 0;
        n += (unsigned)(last - first + 1);
        s = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* ---- names ---- */

static void read_names(struct host_job *job)
{
    struct arena *a = &job->run->arena;
    struct utsname u;
    if (uname(&u) == 0) {
        job->host->hostname = arena_str(a, u.nodename);
        job->host->kernel = arena_printf(a, "%s %s", u.sysname, u.release);
        job->host->arch = arena_str(a, u.machine);
    }
    char *os = slurp(job, "/etc/os-release") ? line_value(job->text, "PRETTY_NAME", '=') : NULL;
    if (!os) {
        run_unknown(job->run, &job->host->unknown, "os", "no PRETTY_NAME in /etc/os-release");
        return;
    }
    size_t n = strlen(os);
    if (n >= 2 && (os[0] == '"' || os[0] == '\'') && os[n - 1] == os[0]) os++, n -= 2;
    job->host->os = arena_str_n(a, os, n);
}

/* ---- processors ---- */

/* x86 names its processors; ARM gives numbers, which are at least the same on the same machine. */
static void read_cpu_model(struct host_job *job)
{
    struct arena *a = &job->run->arena;
    struct run_host *h = job->host;
    char *model = slurp(job, "/proc/cpuinfo") ? line_value(job->text, "model name", ':') : NULL;
    if (model) {
        h->cpu.model = arena_str(a, model);
        return;
    }
    char maker[32] = "",
         *v = slurp(job, "/proc/cpuinfo") ? line_value(job->text, "CPU implementer", ':') : NULL;
    if (v) snprintf(maker, sizeof maker, "%s", v);
    v = slurp(job, "/proc/cpuinfo") ? line_value(job->text, "CPU part", ':') : NULL;
    if (v && maker[0]) {
        h->cpu.model = arena_printf(a, "implementer %s part %s", maker, v);
    } else {
        run_unknown(job->run, &h->unknown, "cpu.model", "/proc/cpuinfo names no model");
    }
}

static unsigned count_affinity(void)
{
    unsigned long mask[2048] = {0}; /* 131072 processors */
    unsigned n = 0;
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) < 0) return 0;
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++) n += (unsigned)__builtin_popcountl(mask[i]);
    return n;
}

/* After the control group: its quota counts too. */
static void read_cores(struct host_job *job)
{
    struct run_host *h = job->host;
    unsigned cores = slurp(job, "/sys/devices/system/cpu/online") ? count_list(job->text) : 0;
    long configured = sysconf(_SC_NPROCESSORS_ONLN);
    if (cores == 0 && configured > 0) cores = (unsigned)configured;
    if (cores) {
        h->cpu.cores = known_u64(cores);
    } else {
        run_unknown(job->run, &h->unknown, "cpu.cores", "the kernel does not list the processors online");
    }
    double usable = count_affinity();
    if (usable == 0) {
        run_unknown(job->run, &h->unknown, "cpu.usable", "the affinity mask could not be read");
        return;
    }
    if (h->cgroup.cpu_quota.known && h->cgroup.cpu_quota.v < usable) usable = h->cgroup.cpu_quota.v;
    h->cpu.usable = known_f64(usable);
}

static void read_governor(struct host_job *job)
{
    struct run_host *h = job->host;
    char path[96], first[64] = "";
    for (unsigned i = 0; i < 4096; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpufreq/policy%u/scaling_governor", i);
        bool there = slurp(job, path);
        if (!there && (!h->cpu.cores.known || i >= h->cpu.cores.v)) break;
        if (!there) continue;
        if (first[0] && strcmp(first, job->text) != 0) {
            h->governor = "mixed";
            return;
        }
        snprintf(first, sizeof first, "%.63s", job->text);
    }
    if (first[0]) {
        h->governor = arena_str(&job->run->arena, first);
    } else {
        run_unknown(job->run, &h->unknown, "governor",
                    "no cpufreq in /sys: the kernel does not set clock rates");
    }
}

/* ---- memory, load, virtual or not ---- */

static void read_memory_and_load(struct host_job *job)
{
    struct run_host *h = job->host;
    char *total = slurp(job, "/proc/meminfo") ? line_value(job->text, "MemTotal", ':') : NULL;
    unsigned long long kib = total ? strtoull(total, NULL, 10) : 0;
    if (kib && kib < INT64_MAX / 1024) {
        h->memory_bytes = known_u64(kib * 1024);
    } else {
        run_unknown(job->run, &h->unknown, "memory_bytes", "no MemTotal in /proc/meminfo");
    }
    double load;
    if (slurp(job, "/proc/loadavg") && parse_decimal(job->text, &load)) {
        h->load1 = known_f64(load);
    } else {
        run_unknown(job->run, &h->unknown, "load1", "/proc/loadavg cannot be read");
    }
}

/* Makers' names that only virtual machines carry. */
static bool dmi_says_virtual(struct host_job *job)
{
    static const char *const files[] = {"/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"};
    static const char *const words[] = {"QEMU",     "KVM",     "VMware",  "VirtualBox",     "Xen",
                                        "Bochs",    "Virtual", "innotek", "Google Compute", "OpenStack",
                                        "Parallels"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        if (!slurp(job, files[f])) continue;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            if (strstr(job->text, words[w])) return true;
        }
    }
    return false;
}

/* On x86 the processor says so itself, and /proc/cpuinfo shows the bit among the flags. */
static void read_virtual(struct host_job *job)
{
    struct run_host *h = job->host;
    char *flags = slurp(job, "/proc/cpuinfo") ? line_value(job->text, "flags", ':') : NULL;
    bool x86 = flags != NULL, bit = false;
    for (char *save = NULL, *f = flags ? strtok_r(flags, " ", &save) : NULL; f;
         f = strtok_r(NULL, " ", &save)) {
        if (strcmp(f, "hypervisor") == 0) bit = true;
    }
    if (bit || dmi_says_virtual(job)) {
        h->is_virtual = known_bool(true);
    } else if (x86) {
        h->is_virtual = known_bool(false);
    } else {
        run_unknown(job->run, &h->unknown, "virtual",
                    "this processor has no hypervisor flag and DMI is silent");
    }
}

/* ---- control group ---- */

/* The path of one hierarchy in /proc/self/cgroup: controller "" is version 2. */
static bool cgroup_path(struct host_job *job, const char *controller, char *out, size_t size)
{
    if (!slurp(job, "/proc/self/cgroup")) return false;
    for (char *save = NULL, *l = strtok_r(job->text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(l, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        names++;
        bool match = !*names && !*controller;
        for (char *s2 = NULL, *n = strtok_r(names, ",", &s2); n && !match; n = strtok_r(NULL, ",", &s2)) {
            match = strcmp(n, controller) == 0;
        }
        if (match) return (size_t)snprintf(out, size, "%s", path) < size;
    }
    return false;
}

/* Call `take` with the text of `file` in the group and in every group above it: limits add up. */
static bool each_group(struct host_job *job, const char *mount, const char *group, const char *file,
                       bool (*take)(struct host_job *, const char *path))
{
    char at[PATH_MAX / 2], path[PATH_MAX];
    bool any = false;
    snprintf(at, sizeof at, "%s", group);
    for (;;) {
        size_t len = strlen(at);
        while (len && at[len - 1] == '/') at[--len] = 0;
        snprintf(path, sizeof path, "%s%s/%s", mount, at, file);
        if (slurp(job, path)) any = take(job, path) || any;
        char *slash = strrchr(at, '/');
        if (!slash) return any;
        *slash = 0;
    }
}

static void lower_quota(struct host_job *job, double quota)
{
    struct known_f64 *q = &job->host->cgroup.cpu_quota;
    if (!q->known || quota < q->v) *q = known_f64(quota);
}

/* "150000 100000", "max 100000" */
static bool take_cpu_max(struct host_job *job, const char *path)
{
    (void)path;
    char *end;
    unsigned long long quota = strtoull(job->text, &end, 10), period = strtoull(end, NULL, 10);
    if (end != job->text && quota && period) lower_quota(job, (double)quota / (double)period);
    return true;
}

/* "150000", or "-1" for none, of the period in the file beside it. */
static bool take_cfs_quota(struct host_job *job, const char *path)
{
    char beside[PATH_MAX];
    long long quota = strtoll(job->text, NULL, 10);
    if (quota <= 0) return true;
    snprintf(beside, sizeof beside, "%.*scpu.cfs_period_us", (int)(strrchr(path, '/') + 1 - path), path);
    long long period = slurp(job, beside) ? strtoll(job->text, NULL, 10) : 0;
    if (period > 0) lower_quota(job, (double)quota / (double)period);
    return period > 0;
}

/* "1073741824", "max", or near 2^63 for none. */
static bool take_memory(struct host_job *job, const char *path)
{
    (void)path;
    struct known_u64 *m = &job->host->cgroup.memory_limit_bytes;
    unsigned long long v = strtoull(job->text, NULL, 10);
    if (v && v < UINT64_C(1) << 62 && (!m->known || v < m->v)) *m = known_u64(v);
    return true;
}

/* The innermost one that is not empty. */
static bool take_cpuset(struct host_job *job, const char *path)
{
    (void)path;
    struct run_host_cgroup *g = &job->host->cgroup;
    if (!g->cpuset) g->cpuset = arena_str(&job->run->arena, job->text);
    return true;
}

struct cgroup_row {
    const char *controller, *mount, *file;
    bool (*take)(struct host_job *, const char *path);
    const char *field;
};

static const struct cgroup_row cgroup_v2[] = {
    {"", "/sys/fs/cgroup", "cpu.max", take_cpu_max, "cgroup.cpu_quota"},
    {"", "/sys/fs/cgroup", "memory.max", take_memory, "cgroup.memory_limit_bytes"},
    {"", "/sys/fs/cgroup", "cpuset.cpus.effective", take_cpuset, "cgroup.cpuset"},
};
static const struct cgroup_row cgroup_v1[] = {
    {"cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", take_cfs_quota, "cgroup.cpu_quota"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", take_memory, "cgroup.memory_limit_bytes"},
    {"cpuset", "/sys/fs/cgroup/cpuset", "cpuset.effective_cpus", take_cpuset, "cgroup.cpuset"},
};

static bool cgroup_known(const struct run_host_cgroup *g, const char *field)
{
    if (strcmp(field, "cgroup.cpu_quota") == 0) return g->cpu_quota.known;
    if (strcmp(field, "cgroup.cpuset") == 0) return g->cpuset != NULL;
    return g->memory_limit_bytes.known;
}

static void read_cgroup_row(struct host_job *job, const struct cgroup_row *row)
{
    char group[PATH_MAX / 2];
    struct run_host *h = job->host;
    const char *why = "no such controller in /proc/self/cgroup";
    if (cgroup_path(job, row->controller, group, sizeof group)) {
        bool any = each_group(job, row->mount, group, row->file, row->take);
        why = any ? "no limit" : "its file is not to be seen in /sys/fs/cgroup";
        if (any && !h->cgroup.path) h->cgroup.path = arena_str(&job->run->arena, group);
    }
    if (!cgroup_known(&h->cgroup, row->field)) run_unknown(job->run, &h->unknown, row->field, "%s", why);
}

static void read_cgroup(struct host_job *job)
{
    char path[PATH_MAX / 2];
    struct run_host *h = job->host;
    bool v1 = cgroup_path(job, "memory", path, sizeof path) || cgroup_path(job, "cpu", path, sizeof path);
    bool v2 = cgroup_path(job, "", path, sizeof path);
    if (!v1 && !v2) {
        run_unknown(job->run, &h->unknown, "cgroup", "/proc/self/cgroup names no control group");
        return;
    }
    h->cgroup.version = known_u64(v1 ? 1 : 2);
    if (!v1) h->cgroup.path = arena_str(&job->run->arena, path);
    for (size_t i = 0; i < 3; i++) read_cgroup_row(job, v1 ? &cgroup_v1[i] : &cgroup_v2[i]);
    if (!h->cgroup.path) run_unknown(job->run, &h->unknown, "cgroup.path", "no group is to be seen");
}

tare_status host_read(struct run *r, const char *root, tare_error *err)
{
    char mark[RUN_FINGERPRINT_SIZE];
    struct host_job *job = mem_new(1, sizeof *job);
    if (!job) return error_set(err, TARE_NOMEM, "out of memory to describe the host");
    *job = (struct host_job){.run = r, .host = &r->host, .root = root};
    read_names(job);
    read_cpu_model(job);
    read_cgroup(job);
    read_cores(job);
    read_governor(job);
    read_memory_and_load(job);
    read_virtual(job);
    mem_free(job);
    run_unknown(r, &r->host.unknown, "gpus",
                "not looked for here: tare doctor and tare run see NVIDIA cards");
    run_host_fingerprint(&r->host, mark);
    r->host.fingerprint = arena_str(&r->arena, mark);
    return r->arena.failed ? error_set(err, TARE_NOMEM, "out of memory to describe the host") : TARE_OK;
}
