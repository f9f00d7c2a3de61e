/* SPDX-License-Identifier: MIT
 * ability.c - the table of abilities and what its checks share. To add one: a row here, and where it takes more than to
 * read a file, a check in ability_kernel.c (what the kernel lets us see) or ability_machine.c (what the machine is). */
#include "probe/ability.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "probe/procfs.h"

const struct ability ability_table[] = {
    {"cycle clock", "scopes at a few nanoseconds each",
     "Scopes use the slower system clock; their cost is measured and subtracted all the same.",
     check_cycle_clock, NULL, NULL},
    {"hardware counters", "cycles, instructions, cache and branch misses",
     "Cycles, instructions and cache misses are reported as unknown; times are not affected.",
     check_counters, NULL, NULL},
    {"task clock", "CPU time per thread, sampling by CPU time",
     "CPU time comes from the process accounts alone, and sampling follows wall time.", check_task_clock, NULL, NULL},
    {"attach", "looking into a running process",
     "'attach' works for fewer processes; programs started by tare are not affected.", check_ptrace, NULL, NULL},
    {"trace files", "recording scopes into a shared mapping that outlives kill -9",
     "Write traces elsewhere (TARE_TRACE=PATH), or they may lose events when a program is killed.",
     check_trace_file, NULL, NULL},
    {"file system", "room for traces and results", "Long recordings may stop early, and will say so.",
     check_file_system, NULL, NULL},
    {"energy", "joules per run", "Energy is reported as unknown.", check_energy, NULL, NULL},
    {"temperature", "seeing thermal throttling", "Thermal throttling cannot be told from other slowness.",
     check_temperature, NULL, NULL},
    {"governor", "a steady CPU frequency",
     "Frequency changes cannot be ruled out; compare only interleaved runs.", check_governor, NULL, NULL},
    {"boost", "knowing whether the frequency depends on the neighbours",
     "The CPU may run faster alone than under load: measure under the load that matters.", check_boost, NULL, NULL},
    {"gpu (NVML)", "GPU utilisation, memory, power", "GPU metrics are reported as unknown.", check_nvml, NULL, NULL},
    {"cgroup", "memory, CPU and I/O of a whole container",
     "Figures of a group of processes are summed over processes, which misses those that already ended.",
     check_cgroup, NULL, NULL},
    {"limits", "no ceiling that the workload could hit",
     "The workload may be throttled or killed by this limit.", check_limits, NULL, NULL},
    {"pressure (PSI)", "seeing that others held the machine back",
     "Contention is judged by involuntary switches alone.", check_pressure, NULL, NULL},
    {"run delay", "time a thread waited for a CPU", "Waiting for a CPU is not told apart from other waiting.",
     NULL, "/proc/self/schedstat", "a kernel with CONFIG_SCHED_INFO"},
    {"disk I/O", "bytes read and written per process", "Disk traffic per process is reported as unknown.",
     NULL, "/proc/self/io", "a kernel with CONFIG_TASK_IO_ACCOUNTING"},
    {"memory map", "private and shared memory per process",
     "Only the resident size is known, shared pages included.", NULL, "/proc/self/smaps_rollup",
     "a kernel with CONFIG_PROC_PAGE_MONITOR"},
    {"cpu affinity", "keeping a measurement on its CPUs",
     "Fewer CPUs than the machine has; thread sweeps stop there.", check_affinity, NULL, NULL},
    {"huge pages", "large models with fewer TLB misses", "Large models pay more TLB misses than they could.",
     check_huge_pages, NULL, NULL},
    {"address layout", "runs that differ in nothing but the code",
     "Layout changes from run to run add noise between runs; repeat whole runs, not only iterations.",
     check_layout, NULL, NULL},
    {"bare metal", "no hypervisor that takes time away unseen",
     "A neighbour on the same host can slow any measurement; trust interleaved comparisons only.",
     check_bare_metal, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

const char *ability_answer_name(enum ability_answer answer)
{
    static const char *const names[] = {
#define X(name, text) [ABILITY_##name] = text,
        ABILITY_ANSWER_MAP(X)
#undef X
    };
    return names[answer];
}

void ability_check(const struct ability *a, const struct ability_where *where, struct ability_result *out)
{
    char text[256];
    memset(out, 0, sizeof *out);
    if (a->check)
        a->check(where, out);
    else if (ability_read(where, a->file, text, sizeof text))
        ability_say(out, ABILITY_YES, "%s is readable", a->file);
    else
        ability_lack(out, ABILITY_NO, a->remedy, "%s: %s", a->file, strerror(errno));
}

void ability_lack(struct ability_result *out, enum ability_answer answer, const char *remedy,
                  const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(out->reason, sizeof out->reason, format, ap);
    va_end(ap);
    snprintf(out->remedy, sizeof out->remedy, "%s", remedy);
    out->answer = answer;
}

bool ability_read(const struct ability_where *where, const char *path, char *text, size_t size)
{
    bool read = procfs_text(where->root, path, text, size);
    text[strcspn(text, "\n")] = 0;
    return read;
}
