/* SPDX-License-Identifier: MIT
 * ability_machine.c - checks of what the machine is: clocks, sensors, frequency, GPU, memory, disks. Vendor
 * libraries are loaded at run time only, and only to ask. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/ability.h"
#include "probe/file_facts.h"
#include "probe/nvml.h"
#include "probe/procfs.h"

void check_cycle_clock(const struct ability_where *where, struct ability_result *out)
{
    struct clock_source source;
    clock_detect(&source, where->clock_fallback);
    if (!source.tsc)
        ability_lack(out, ABILITY_NO, "boot with tsc=reliable if the hardware is known to be sound", "%s",
                     source.why_not);
    else if (!source.tscp)
        ability_say(out, ABILITY_PARTIAL, "invariant counter, but no ordered read (rdtscp)");
    else
        ability_say(out, ABILITY_YES, "invariant counter, trusted by the kernel");
}

/* ---- sensors --------------------------------------------------------------------------------- */

void check_energy(const struct ability_where *where, struct ability_result *out)
{
    char text[64];
    if (ability_read(where, "/sys/class/powercap/intel-rapl:0/energy_uj", text, sizeof text))
        ability_say(out, ABILITY_YES, "powercap counts the package's energy");
    else if (errno == EACCES || errno == EPERM)
        ability_lack(out, ABILITY_NO,
                     "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj, or run tare as root",
                     "powercap is there, but only root may read it");
    else
        ability_lack(out, ABILITY_NO, "measure on bare metal",
                     "no powercap: hidden by the hypervisor or not supported by the CPU");
}

/* Entries of a folder that begin with `prefix`. */
static unsigned count_entries(const struct ability_where *where, const char *folder, const char *prefix)
{
    char full[512];
    unsigned n = 0;
    snprintf(full, sizeof full, "%s%s", where->root, folder);
    DIR *d = opendir(full);
    for (struct dirent *e; d && (e = readdir(d));) n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (d) closedir(d);
    return n;
}

void check_temperature(const struct ability_where *where, struct ability_result *out)
{
    unsigned zones = count_entries(where, "/sys/class/thermal", "thermal_zone");
    unsigned chips = count_entries(where, "/sys/class/hwmon", "hwmon");
    if (zones + chips)
        ability_say(out, ABILITY_YES, "%u thermal zones, %u sensor chips", zones, chips);
    else
        ability_lack(out, ABILITY_NO, "measure on bare metal",
                     "no thermal zone and no sensor chip is visible");
}

void check_governor(const struct ability_where *where, struct ability_result *out)
{
    char text[64];
    if (!ability_read(where, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof text))
        ability_say(out, ABILITY_NO, "no cpufreq: the frequency is decided elsewhere and not shown");
    else if (strcmp(text, "performance") == 0)
        ability_say(out, ABILITY_YES, "performance");
    else
        ability_lack(out, ABILITY_PARTIAL, "cpupower frequency-set -g performance", "governor is %s", text);
}

/* Two drivers say the same thing the other way round: intel_pstate tells whether boost is off, cpufreq
 * whether it is on. */
void check_boost(const struct ability_where *where, struct ability_result *out)
{
    char text[32];
    bool told = ability_read(where, "/sys/devices/system/cpu/intel_pstate/no_turbo", text, sizeof text);
    bool on = told && text[0] == '0';
    if (!told) {
        told = ability_read(where, "/sys/devices/system/cpu/cpufreq/boost", text, sizeof text);
        on = told && text[0] == '1';
    }
    if (!told)
        ability_say(out, ABILITY_NO, "not shown");
    else if (on)
        ability_lack(out, ABILITY_PARTIAL,
                     "echo 0 > /sys/devices/system/cpu/cpufreq/boost (or 1 > intel_pstate/no_turbo)",
                     "boost is on: the frequency depends on how many cores work");
    else
        ability_say(out, ABILITY_YES, "boost is off");
}

void check_nvml(const struct ability_where *where, struct ability_result *out)
{
    struct nvml nvml;
    tare_error err = TARE_ERROR_INIT;
    unsigned n = 0;
    if (nvml_open(&nvml, where->root, &err) != TARE_OK)
        ability_lack(
            out, ABILITY_NO,
            "if there is such a GPU: install its driver, and see that the kernel has loaded the same version",
            "%s", err.text);
    else if (nvml.count(&n) != NVML_OK || n == 0)
        ability_say(out, ABILITY_NO, "NVML starts but shows no GPU");
    else
        ability_say(out, ABILITY_YES, "%u GPU%s", n, n == 1 ? "" : "s");
    nvml_close(&nvml);
}

/* ---- memory and layout ----------------------------------------------------------------------- */

void check_huge_pages(const struct ability_where *where, struct ability_result *out)
{
    char text[64];
    if (!ability_read(where, "/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text))
        ability_say(out, ABILITY_NO, "the kernel has no transparent huge pages");
    else if (strstr(text, "[always]"))
        ability_say(out, ABILITY_YES, "always");
    else if (strstr(text, "[madvise]"))
        ability_lack(out, ABILITY_PARTIAL, "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
                     "only for programs that ask (madvise)");
    else
        ability_lack(out, ABILITY_NO, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
                     "switched off");
}

void check_layout(const struct ability_where *where, struct ability_result *out)
{
    char text[32];
    ability_read(where, "/proc/sys/kernel/randomize_va_space", text, sizeof text);
    int now = personality(0xffffffff);
    bool can = now >= 0 && personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0;
    if (now >= 0) personality((unsigned long)now);
    if (text[0] == '0' || (now >= 0 && (now & ADDR_NO_RANDOMIZE)))
        ability_say(out, ABILITY_YES, "not randomised");
    else if (can)
        ability_say(out, ABILITY_YES, "randomised, and can be switched off for a program");
    else
        ability_lack(out, ABILITY_PARTIAL, "in a container, allow the personality call",
                     "randomised, and the system does not let us switch it off");
}

static bool hypervisor_flag(const struct ability_where *where)
{
    char text[16384];
    procfs_text(where->root, "/proc/cpuinfo", text, sizeof text);
    char *flags = strstr(text, "\nflags"); /* of the first processor: all say the same */
    if (flags) flags[1 + strcspn(flags + 1, "\n")] = 0;
    return flags && strstr(flags, " hypervisor");
}

void check_bare_metal(const struct ability_where *where, struct ability_result *out)
{
    char product[80], type[64];
    bool named = ability_read(where, "/sys/class/dmi/id/product_name", product, sizeof product) && product[0];
    if (ability_read(where, "/sys/hypervisor/type", type, sizeof type) || hypervisor_flag(where))
        ability_say(out, ABILITY_NO, "virtual machine%s%s%s", named ? " (" : "", named ? product : "",
                    named ? ")" : "");
    else
        ability_say(out, ABILITY_YES, "no sign of a hypervisor");
}

/* ---- files ----------------------------------------------------------------------------------- */

static const struct fs_kind *fs_of(const char *dir)
{
    struct statfs fs;
    return fs_kind_of(statfs(dir, &fs) < 0 ? 0 : (long)fs.f_type);
}

/* 0, or errno with *what naming the step that failed. */
static int try_mapping(int fd, const char **what)
{
    enum { SIZE = 1 << 20 };
    *what = "fallocate";
    int error = posix_fallocate(fd, 0, SIZE);
    if (error) return error;
    *what = "mmap";
    char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return errno;
    memcpy(p + SIZE - 4, "tare", 4);
    munmap(p, SIZE);
    char back[4];
    *what = "reading back what was mapped";
    return pread(fd, back, 4, SIZE - 4) == 4 && memcmp(back, "tare", 4) == 0 ? 0 : EIO;
}

/* By doing it, with a file that is gone at once: what a file system promises and what it does are two things. */
void check_trace_file(const struct ability_where *where, struct ability_result *out)
{
    char path[512];
    const char *what = "creating a file";
    snprintf(path, sizeof path, "%s/.tare-doctor-XXXXXX", where->dir);
    int fd = mkostemp(path, O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        unlink(path);
        error = try_mapping(fd, &what);
        close(fd);
    }
    const struct fs_kind *fs = fs_of(where->dir);
    if (error)
        ability_lack(out, ABILITY_NO, "write traces to a local disk: TARE_TRACE=/tmp/app.tare",
                     "%s: %s in this folder (%s)", what, strerror(error), fs->name);
    else if (!fs->local)
        ability_lack(out, ABILITY_PARTIAL, "write traces to a local disk: TARE_TRACE=/tmp/app.tare",
                     "works here, but over %s: slow, and less safe", fs->name);
    else
        ability_say(out, ABILITY_YES, "fallocate and shared mapping work in this folder");
}

void check_file_system(const struct ability_where *where, struct ability_result *out)
{
    struct statvfs v;
    if (statvfs(where->dir, &v) < 0) {
        ability_say(out, ABILITY_NO, "statvfs: %s", strerror(errno));
        return;
    }
    double free_gib = (double)v.f_bavail * (double)v.f_frsize / (1 << 30);
    bool little = free_gib < 2;
    ability_lack(out, little ? ABILITY_PARTIAL : ABILITY_YES,
                 little ? "free some space, or write elsewhere (--output-dir, TARE_TRACE)" : "",
                 "%s, %.3g GiB free in this folder", fs_of(where->dir)->name, free_gib);
}
