/* SPDX-License-Identifier: MIT
 * host.c - see host.h. The files of git are not trusted: lengths are bounded, names are checked. */
#include "probe/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/mem.h"
#include "probe/nvml.h"
#include "probe/probe.h"
#include "probe/procfs.h"
#include "run/run.h"

struct host_job {
    struct run *run;
    struct run_host *host;
    const char *root;
    char text[16384]; /* the file read last, NUL-terminated; longer files are cut */
};

#define unknown(job, ...) run_unknown((job)->run, &(job)->host->unknown, __VA_ARGS__) /* field, why */

/* ---- small files ---- */

/* Less a newline at the end. False: empty. */
static bool trim_text(struct host_job *job)
{
    size_t len = strlen(job->text);
    if (len && job->text[len - 1] == '\n') job->text[--len] = 0;
    return len > 0;
}

/* Read root + path into job->text. */
static bool slurp(struct host_job *job, const char *path)
{
    return procfs_text(job->root, path, job->text, sizeof job->text) && trim_text(job);
}

/* The rest of the line of a file that begins with `key`, blanks and `sep` skipped, ended in place; NULL: none. */
static char *line_value(struct host_job *job, const char *path, const char *key, char sep)
{
    size_t len = strlen(key);
    for (char *line = slurp(job, path) ? job->text : NULL; line; line = strchr(line, '\n')) {
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

/* A value in os-release may stand in quotes of either kind, as a shell would read it. */
static void read_names(struct host_job *job)
{
    struct arena *a = &job->run->arena;
    struct utsname u;
    if (uname(&u) == 0) {
        job->host->hostname = arena_str(a, u.nodename);
        job->host->kernel = arena_printf(a, "%s %s", u.sysname, u.release);
        job->host->arch = arena_str(a, u.machine);
    }
    char *os = line_value(job, "/etc/os-release", "PRETTY_NAME", '=');
    if (!os) {
        unknown(job, "os", "no PRETTY_NAME in /etc/os-release");
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
    char *model = line_value(job, "/proc/cpuinfo", "model name", ':');
    if (model) {
        h->cpu.model = arena_str(a, model);
        return;
    }
    char maker[32] = "", *v = line_value(job, "/proc/cpuinfo", "CPU implementer", ':');
    if (v) snprintf(maker, sizeof maker, "%s", v);
    v = line_value(job, "/proc/cpuinfo", "CPU part", ':');
    if (v && maker[0])
        h->cpu.model = arena_printf(a, "implementer %s part %s", maker, v);
    else
        unknown(job, "cpu.model", "/proc/cpuinfo names no model");
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
    if (cores)
        h->cpu.cores = known_u64(cores);
    else
        unknown(job, "cpu.cores", "the kernel does not list the processors online");
    double usable = count_affinity();
    if (usable == 0) {
        unknown(job, "cpu.usable", "the affinity mask could not be read");
        return;
    }
    if (h->cgroup.cpu_quota.known && h->cgroup.cpu_quota.v < usable) usable = h->cgroup.cpu_quota.v;
    h->cpu.usable = known_f64(usable);
}

/* One for all, or "mixed". Policies may have gaps in their numbers where processors are offline. */
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
    if (first[0])
        h->governor = arena_str(&job->run->arena, first);
    else
        unknown(job, "governor", "no cpufreq in /sys: the kernel does not set clock rates");
}

/* ---- memory, load, virtual or not ---- */

static void read_memory_and_load(struct host_job *job)
{
    struct run_host *h = job->host;
    uint64_t kib = 0;
    if (slurp(job, "/proc/meminfo") && procfs_field(job->text, "MemTotal", &kib) && kib &&
        kib < INT64_MAX / 1024)
        h->memory_bytes = known_u64(kib * 1024);
    else
        unknown(job, "memory_bytes", "no MemTotal in /proc/meminfo");
    double load;
    if (slurp(job, "/proc/loadavg") && procfs_decimal(job->text, &load))
        h->load1 = known_f64(load);
    else
        unknown(job, "load1", "/proc/loadavg cannot be read");
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
    char *flags = line_value(job, "/proc/cpuinfo", "flags", ':');
    bool x86 = flags != NULL, bit = false;
    for (char *save = NULL, *f = flags ? strtok_r(flags, " ", &save) : NULL; f;
         f = strtok_r(NULL, " ", &save)) {
        if (strcmp(f, "hypervisor") == 0) bit = true;
    }
    if (bit || dmi_says_virtual(job))
        h->is_virtual = known_bool(true);
    else if (x86)
        h->is_virtual = known_bool(false);
    else
        unknown(job, "virtual", "this processor has no hypervisor flag and DMI is silent");
}

/* ---- control group ---- */

/* "150000 100000", "max 100000"; in version 1 "150000", or "-1" for none, of the period in the file beside it. */
static bool take_cpu(struct host_job *job, const struct cgroup_place *g)
{
    struct known_f64 *least = &job->host->cgroup.cpu_quota;
    uint64_t quota, period = 0;
    const char *rest = procfs_number(job->text, &quota);
    if (!rest || !quota) return true;
    if (!procfs_number(rest, &period) &&
        cgroup_text(g, job->root, "cpu.cfs_period_us", job->text, sizeof job->text))
        procfs_number(job->text, &period);
    if (!period) return false;
    double cpus = (double)quota / (double)period;
    if (!least->known || cpus < least->v) *least = known_f64(cpus);
    return true;
}

/* "1073741824", "max", or near 2^63 for none. */
static bool take_memory(struct host_job *job, const struct cgroup_place *g)
{
    (void)g;
    struct known_u64 *least = &job->host->cgroup.memory_limit_bytes;
    uint64_t v;
    if (procfs_number(job->text, &v) && v && v < UINT64_C(1) << 62 && (!least->known || v < least->v))
        *least = known_u64(v);
    return true;
}

/* The innermost one that is not empty. */
static bool take_cpuset(struct host_job *job, const struct cgroup_place *g)
{
    (void)g;
    if (!job->host->cgroup.cpuset) job->host->cgroup.cpuset = arena_str(&job->run->arena, job->text);
    return true;
}

static const struct cgroup_row {
    const char *field;
    bool (*take)(struct host_job *job, const struct cgroup_place *g); /* job->text; false: it says nothing */
    const char *controller, *file_1, *file_2; /* of version 1; the files' names in both */
} cgroup_rows[] = {
    {"cgroup.cpu_quota", take_cpu, "cpu", "cpu.cfs_quota_us", "cpu.max"},
    {"cgroup.memory_limit_bytes", take_memory, "memory", "memory.limit_in_bytes", "memory.max"},
    {"cgroup.cpuset", take_cpuset, "cpuset", "cpuset.effective_cpus", "cpuset.cpus.effective"},
};

static const char *path_text(struct host_job *job, const char *path)
{
    return arena_str(&job->run->arena, *path ? path : "/");
}

/* Of the group and of every group above it: limits add up. Why nothing is known, where it is not. */
static const char *read_cgroup_row(struct host_job *job, const struct cgroup_row *row, bool v1)
{
    struct cgroup_place g;
    char path[sizeof g.path];
    bool any = false;
    const char *controller = v1 ? row->controller : "", *file = v1 ? row->file_1 : row->file_2;
    if (!cgroup_path(job->root, "self", controller, path, sizeof path) ||
        !cgroup_find(&g, job->root, "self", controller))
        return "no such controller in /proc/self/cgroup";
    do {
        if (cgroup_text(&g, job->root, file, job->text, sizeof job->text) && trim_text(job))
            any = row->take(job, &g) || any;
    } while (cgroup_up(&g));
    if (any && !job->host->cgroup.path) job->host->cgroup.path = path_text(job, path);
    return any ? "no limit" : "its file is not to be seen in /sys/fs/cgroup";
}

/* Where both versions are mounted, the controllers are with version 1, and so are the limits. */
static void read_cgroup(struct host_job *job)
{
    char path[2048];
    const char *why[3], *root = job->root;
    struct run_host *h = job->host;
    bool v1 = cgroup_path(root, "self", "memory", path, sizeof path) ||
              cgroup_path(root, "self", "cpu", path, sizeof path);
    if (!cgroup_path(root, "self", "", path, sizeof path) && !v1) {
        unknown(job, "cgroup", "/proc/self/cgroup names no control group");
        return;
    }
    h->cgroup.version = known_u64(v1 ? 1 : 2);
    if (!v1) h->cgroup.path = path_text(job, path);
    for (size_t i = 0; i < 3; i++) why[i] = read_cgroup_row(job, &cgroup_rows[i], v1);
    const bool known[] = {h->cgroup.cpu_quota.known, h->cgroup.memory_limit_bytes.known,
                          h->cgroup.cpuset != NULL};
    for (size_t i = 0; i < 3; i++)
        if (!known[i]) unknown(job, cgroup_rows[i].field, "%s", why[i]);
    if (!h->cgroup.path) unknown(job, "cgroup.path", "no group is to be seen");
}

/* ---- GPUs ---- */

static const char *nvml_text(struct host_job *job, int (*ask)(nvml_device, char *, unsigned), nvml_device of)
{
    char text[128] = "";
    if (!ask || ask(of, text, sizeof text) != NVML_OK) return NULL;
    text[sizeof text - 1] = 0;
    return arena_str(&job->run->arena, text);
}

#define CARDS "/proc/driver/nvidia/gpus"

static struct run_host_gpu *find_gpu(struct host_job *job, unsigned number, const char *uuid)
{
    struct run_host *h = job->host;
    for (size_t i = 0; uuid && i < h->gpus.n; i++)
        if (h->gpus.at[i]->uuid && strcmp(h->gpus.at[i]->uuid, uuid) == 0) return h->gpus.at[i];
    if (number < h->gpus.n && !(uuid && h->gpus.at[number]->uuid)) return h->gpus.at[number];
    struct run_host_gpu *g = RUN_LIST_ADD(&job->run->arena, &h->gpus);
    if (g) g->index = known_u64(number);
    return g;
}

static bool list_gpu(struct host_job *job, const char *name, unsigned number, const char *driver)
{
    char path[512];
    snprintf(path, sizeof path, CARDS "/%.200s/information", name);
    const char *model = line_value(job, path, "Model", ':');
    if (!model || strcmp(model, "Unknown") == 0) return false;
    struct run_host_gpu *g = find_gpu(job, number, NULL);
    if (!g) return false;
    g->name = arena_str(&job->run->arena, model);
    const char *uuid = line_value(job, path, "GPU UUID", ':');
    if (uuid && !strchr(uuid, '?')) g->uuid = arena_str(&job->run->arena, uuid);
    g->driver = driver;
    return true;
}

/* By the kernel's own list, which is there at once; the order of bus numbers is NVML's, too. False: it has none, or
 * does not name them all. */
static bool list_gpus(struct host_job *job)
{
    char path[4096];
    struct dirent **found = NULL;
    bool all = true;
    unsigned cards = 0;
    snprintf(path, sizeof path, "%s" CARDS, job->root);
    const char *driver =
        slurp(job, "/sys/module/nvidia/version") ? arena_str(&job->run->arena, job->text) : NULL;
    int n = scandir(path, &found, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (found[i]->d_name[0] != '.') all = all && list_gpu(job, found[i]->d_name, cards++, driver);
        (free)(found[i]); /* scandir's */
    }
    (free)(found);
    if (!all) job->host->gpus.n = 0;
    return all && cards;
}

static void read_gpu(struct host_job *job, const struct nvml *n, unsigned number, const char *driver)
{
    struct nvml_memory_v1 memory = {0};
    nvml_device device;
    if (n->by_index(number, &device) != NVML_OK) return;
    const char *uuid = nvml_text(job, n->uuid, device);
    struct run_host_gpu *g = find_gpu(job, number, uuid);
    if (!g) return;
    if (!g->name) g->name = nvml_text(job, n->name, device);
    if (!g->uuid) g->uuid = uuid;
    if (!g->driver) g->driver = driver;
    if (n->memory_v1 && n->memory_v1(device, &memory) == NVML_OK) g->memory_bytes = known_u64(memory.total);
}

/* NVIDIA's: their names as the kernel lists them, so that the machine's fingerprint does not hang on NVML, and from
 * NVML the rest, or all where the kernel has no list. After a program that ended before NVML had started, it is not
 * waited for if the list will do. Without its library none can be seen, which is not to say that there is none. */
static void read_gpus(struct host_job *job)
{
    struct nvml n;
    tare_error err = TARE_ERROR_INIT;
    char text[128] = "";
    unsigned count = 0;
    bool listed = list_gpus(job);
    const char *field = listed ? "gpus.memory_bytes" : "gpus";
    if (listed && probe_gpu_is_starting()) {
        unknown(job, field, "NVML was still starting when the program ended");
        return;
    }
    if (nvml_open(&n, job->root, &err) != TARE_OK) {
        unknown(job, field, "%s", err.text);
        return;
    }
    bool told = n.driver_version && n.driver_version(text, sizeof text - 1) == NVML_OK;
    const char *driver = told ? arena_str(&job->run->arena, text) : NULL;
    int code = n.count(&count);
    if (code != NVML_OK) unknown(job, field, "NVML: %s", nvml_why(&n, code));
    for (unsigned i = 0; code == NVML_OK && i < count; i++) read_gpu(job, &n, i, driver);
    nvml_close(&n);
}

/* The control group comes before the cores, which its quota limits, and the fingerprint last, as it is
 * made of the rest. What cannot be read gets a reason and is no failure: only memory can fail here. */
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
    read_gpus(job);
    mem_free(job);
    run_host_fingerprint(&r->host, mark);
    r->host.fingerprint = arena_str(&r->arena, mark);
    return r->arena.failed ? error_set(err, TARE_NOMEM, "out of memory to describe the host") : TARE_OK;
}

/* ---- which commit ---- */

#define LINKS 5 /* symbolic refs that point to others */

struct folders {
    char own[PATH_MAX];    /* HEAD is here */
    char common[PATH_MAX]; /* branches are here: the same but in worktrees */
};

static bool join_path(char out[PATH_MAX], const char *folder, const char *name)
{
    int n =
        name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name) : snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_MAX;
}

/* The first line, without its end. False: no such file, or longer than that. */
static bool read_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    if (!join_path(path, folder, name)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    out[n] = 0;
    size_t end = strcspn(out, "\r\n");
    if (end == (size_t)n && end == size - 1) return false;
    out[end] = 0;
    return true;
}

static bool is_hash(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("0123456789abcdef", text[i])) return false;
    return n == 40 || n == 64;
}

/* .git is a folder, or in worktrees and submodules a file that names it. */
static bool git_folder(const char *folder, struct folders *out)
{
    char path[PATH_MAX], line[PATH_MAX];
    struct stat st;
    if (!join_path(path, folder, ".git") || stat(path, &st) < 0) return false;
    if (S_ISDIR(st.st_mode))
        snprintf(out->own, sizeof out->own, "%s", path);
    else if (!read_line(folder, ".git", line, sizeof line) || strncmp(line, "gitdir: ", 8) != 0 ||
             !join_path(out->own, folder, line + 8))
        return false;
    if (!read_line(out->own, "commondir", line, sizeof line) || !join_path(out->common, out->own, line))
        snprintf(out->common, sizeof out->common, "%s", out->own);
    return true;
}

static bool find_git(const char *folder, struct folders *out)
{
    char at[PATH_MAX], path[PATH_MAX];
    struct stat st;
    if (!realpath(folder, at)) return false;
    while (!join_path(path, at, ".git") || stat(path, &st) < 0) {
        char *slash = strrchr(at, '/');
        if (!slash || !at[1]) return false;
        slash[slash == at] = 0;
    }
    return git_folder(at, out); /* one that is broken hides those above it, as with git itself */
}

/* "<hash> refs/heads/main" lines; a line that begins otherwise is a comment or a peeled tag. */
static bool packed_ref(const struct folders *f, const char *name, char commit[65])
{
    char path[PATH_MAX], line[4096];
    FILE *in = join_path(path, f->common, "packed-refs") ? fopen(path, "re") : NULL;
    bool found = false;
    while (in && !found && fgets(line, sizeof line, in)) {
        size_t n = strcspn(line, " ");
        line[strcspn(line, "\r\n")] = 0;
        found = n < strlen(line) && is_hash(line, n) && strcmp(line + n + 1, name) == 0;
        if (found) snprintf(commit, 65, "%.*s", (int)n, line);
    }
    if (in) fclose(in);
    return found;
}

static void follow_ref(const struct folders *f, const char *text, char commit[65], int links)
{
    char line[512];
    if (is_hash(text, strlen(text))) {
        snprintf(commit, 65, "%s", text);
        return;
    }
    const char *name = strncmp(text, "ref: ", 5) == 0 ? text + 5 : "";
    if (strncmp(name, "refs/", 5) != 0 || strstr(name, "..") || links == 0) return;
    if (read_line(f->own, name, line, sizeof line) || read_line(f->common, name, line, sizeof line))
        follow_ref(f, line, commit, links - 1);
    else
        packed_ref(f, name, commit);
}

void gitstate_read(struct gitstate *out, const char *folder)
{
    static const char heads[] = "ref: refs/heads/";
    struct folders f;
    char head[512];
    *out = (struct gitstate){{0}, {0}};
    if (!find_git(folder, &f) || !read_line(f.own, "HEAD", head, sizeof head)) return;
    follow_ref(&f, head, out->commit, LINKS);
    size_t n = strlen(heads);
    if (out->commit[0] && strncmp(head, heads, n) == 0 && strlen(head + n) < sizeof out->branch)
        snprintf(out->branch, sizeof out->branch, "%.255s", head + n);
}

void gitstate_describe(struct run *run)
{
    struct gitstate git;
    gitstate_read(&git, ".");
    if (git.commit[0]) run_map_text(&run->arena, &run->config, "git_commit", git.commit);
    if (git.branch[0]) run_map_text(&run->arena, &run->config, "git_branch", git.branch);
}
