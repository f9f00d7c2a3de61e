/* SPDX-License-Identifier: MIT
 * metric.h - every quantity that a probe can sample: one row each. Columns of `tare top`, series of a trace, CSV, JSON,
 * Prometheus names, alert rules and the documentation come from here. Names are dotted, units are base units (s, B,
 * W, J, C, Hz; shares are 0 to 1 and have the unit "1"). A gauge is a value now; a counter only grows and is shown as a
 * rate. */
#ifndef TRACE_METRIC_H
#define TRACE_METRIC_H

#include <stddef.h>
#include <stdint.h>

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER };

/* Drivers of GPUs answer slowly: their gauges are asked in turn, each at least as often as that, and stand until then.
 * Any other gauge is unknown where it was not read. */
#define METRIC_GPU_HOLD_NS UINT64_C(2000000000)

/* id, name, unit, kind, what it is. `label` in the text: one series per core, disk, interface, sensor, GPU, process. */
#define METRIC_MAP(X)                                                                                       \
    /* the program and all it started */                                                                    \
    X(PROC_CPU_USER, "process.cpu.user", "s", COUNTER, "processor time in user mode, ended children included")       \
    X(PROC_CPU_SYSTEM, "process.cpu.system", "s", COUNTER, "processor time in the kernel, ended children included") \
    X(PROC_RSS, "process.memory.rss", "B", GAUGE, "memory in RAM, shared pages counted in each process")   \
    X(PROC_PSS, "process.memory.pss", "B", GAUGE, "memory in RAM, shared pages split among their users")   \
    X(PROC_USS, "process.memory.uss", "B", GAUGE, "memory in RAM that no other process shares")            \
    X(PROC_SWAP, "process.memory.swap", "B", GAUGE, "memory in swap")                                      \
    X(PROC_FAULTS_MINOR, "process.faults.minor", "1", COUNTER, "page faults without I/O")                  \
    X(PROC_FAULTS_MAJOR, "process.faults.major", "1", COUNTER, "page faults that had to read")             \
    X(PROC_THREADS, "process.threads", "1", GAUGE, "threads")                                              \
    X(PROC_COUNT, "process.count", "1", GAUGE, "processes alive")                                          \
    X(PROC_STARTED, "process.started", "1", COUNTER, "processes ever started by the program")              \
    X(PROC_SWITCH_VOLUNTARY, "process.switches.voluntary", "1", COUNTER, "times a thread waited")          \
    X(PROC_SWITCH_INVOLUNTARY, "process.switches.involuntary", "1", COUNTER, "times a processor was taken away") \
    X(PROC_RUN_DELAY, "process.run_delay", "s", COUNTER, "time threads were ready but had no processor")   \
    X(PROC_FDS, "process.fds", "1", GAUGE, "open file descriptors")                                        \
    X(PROC_READ, "process.io.read", "B", COUNTER, "bytes read from storage")                               \
    X(PROC_WRITE, "process.io.write", "B", COUNTER, "bytes written to storage")                            \
    X(PROC_READ_CALLS, "process.io.read_calls", "1", COUNTER, "read system calls")                         \
    X(PROC_WRITE_CALLS, "process.io.write_calls", "1", COUNTER, "write system calls")                      \
    /* the control group */                                                                                 \
    X(CG_CPU, "cgroup.cpu", "s", COUNTER, "processor time of the group")                                   \
    X(CG_THROTTLED, "cgroup.cpu.throttled", "s", COUNTER, "time the CPU quota stopped the group")          \
    X(CG_PERIODS_THROTTLED, "cgroup.cpu.throttled_periods", "1", COUNTER, "periods in which it was stopped") \
    X(CG_MEMORY, "cgroup.memory", "B", GAUGE, "memory of the group")                                       \
    X(CG_MEMORY_LIMIT, "cgroup.memory.limit", "B", GAUGE, "its limit")                                     \
    X(CG_OOM, "cgroup.memory.oom_kills", "1", COUNTER, "processes killed for memory")                      \
    X(CG_PRESSURE_CPU, "cgroup.pressure.cpu", "s", COUNTER, "time some task of the group waited for a processor") \
    X(CG_PRESSURE_MEMORY, "cgroup.pressure.memory", "s", COUNTER, "time some task of the group waited for memory") \
    X(CG_PRESSURE_IO, "cgroup.pressure.io", "s", COUNTER, "time some task of the group waited for I/O")    \
    /* the machine */                                                                                       \
    X(CPU_BUSY, "cpu.busy", "s", COUNTER, "time processors worked; label: one core")                       \
    X(CPU_USER, "cpu.user", "s", COUNTER, "in user mode, nice included; label: one core")                  \
    X(CPU_SYSTEM, "cpu.system", "s", COUNTER, "in the kernel, interrupts included; label: one core")       \
    X(CPU_IOWAIT, "cpu.iowait", "s", COUNTER, "idle while a task waited for I/O; label: one core")         \
    X(CPU_STEAL, "cpu.steal", "s", COUNTER, "taken by the hypervisor; label: one core")                    \
    X(CPU_ALL, "cpu.all", "s", COUNTER, "all time of processors, idle included: what shares are of; label: one core") \
    X(CPU_COUNT, "cpu.count", "1", GAUGE, "processors online")                                             \
    X(CPU_FREQUENCY, "cpu.frequency", "Hz", GAUGE, "clock now; label: one core")                           \
    X(LOAD1, "load.1m", "1", GAUGE, "load average of one minute")                                          \
    X(TASKS_RUNNING, "tasks.running", "1", GAUGE, "tasks running or ready")                                \
    X(MEM_TOTAL, "memory.total", "B", GAUGE, "memory of the machine")                                      \
    X(MEM_AVAILABLE, "memory.available", "B", GAUGE, "what can be taken without swapping")                 \
    X(MEM_CACHED, "memory.cached", "B", GAUGE, "page cache")                                               \
    X(MEM_DIRTY, "memory.dirty", "B", GAUGE, "waiting to be written")                                      \
    X(SWAP_USED, "swap.used", "B", GAUGE, "swap in use")                                                   \
    X(SWAP_IN, "swap.in", "B", COUNTER, "read back from swap")                                             \
    X(SWAP_OUT, "swap.out", "B", COUNTER, "written to swap")                                               \
    X(PRESSURE_CPU, "pressure.cpu", "s", COUNTER, "time some task waited for a processor")                 \
    X(PRESSURE_MEMORY, "pressure.memory", "s", COUNTER, "time some task waited for memory")                \
    X(PRESSURE_IO, "pressure.io", "s", COUNTER, "time some task waited for I/O")                           \
    /* disks and networks */                                                                                \
    X(DISK_READ, "disk.read", "B", COUNTER, "bytes read; label: a disk")                                   \
    X(DISK_WRITE, "disk.write", "B", COUNTER, "bytes written; label: a disk")                              \
    X(DISK_READS, "disk.reads", "1", COUNTER, "reads completed; label: a disk")                            \
    X(DISK_WRITES, "disk.writes", "1", COUNTER, "writes completed; label: a disk")                         \
    X(DISK_READ_TIME, "disk.read_time", "s", COUNTER, "sum over reads of how long each took; label: a disk") \
    X(DISK_WRITE_TIME, "disk.write_time", "s", COUNTER, "sum over writes of how long each took; label: a disk") \
    X(DISK_BUSY, "disk.busy", "s", COUNTER, "time with requests under way; label: a disk")                 \
    X(NET_RX, "net.rx", "B", COUNTER, "bytes received; label: an interface")                               \
    X(NET_TX, "net.tx", "B", COUNTER, "bytes sent; label: an interface")                                   \
    X(NET_RX_PACKETS, "net.rx_packets", "1", COUNTER, "packets received; label: an interface")             \
    X(NET_TX_PACKETS, "net.tx_packets", "1", COUNTER, "packets sent; label: an interface")                 \
    X(NET_ERRORS, "net.errors", "1", COUNTER, "errors and drops, both ways; label: an interface")          \
    X(NET_RETRANSMITS, "net.tcp_retransmits", "1", COUNTER, "TCP segments sent again")                     \
    /* heat and energy */                                                                                   \
    X(TEMPERATURE, "temperature", "C", GAUGE, "label: a sensor")                                           \
    X(ENERGY, "energy", "J", COUNTER, "by powercap; label: a domain")                                      \
    /* GPUs, all with a label: "gpu0" */                                                                    \
    X(GPU_UTIL, "gpu.utilization", "1", GAUGE, "share of time with a kernel resident")                     \
    X(GPU_MEM_UTIL, "gpu.memory.utilization", "1", GAUGE, "share of time the memory was read or written")  \
    X(GPU_MEM_USED, "gpu.memory.used", "B", GAUGE, "memory taken")                                         \
    X(GPU_MEM_TOTAL, "gpu.memory.total", "B", GAUGE, "memory there is")                                    \
    X(GPU_MEM_PROCESS, "gpu.memory.process", "B", GAUGE, "memory taken by the program and all it started") \
    X(GPU_POWER, "gpu.power", "W", GAUGE, "power drawn")                                                   \
    X(GPU_POWER_LIMIT, "gpu.power.limit", "W", GAUGE, "power limit in force")                              \
    X(GPU_ENERGY, "gpu.energy", "J", COUNTER, "the card's own energy counter")                             \
    X(GPU_TEMP, "gpu.temperature", "C", GAUGE, "of the chip")                                              \
    X(GPU_TEMP_MEM, "gpu.temperature.memory", "C", GAUGE, "of its memory")                                 \
    X(GPU_CLOCK_SM, "gpu.clock.sm", "Hz", GAUGE, "clock of the multiprocessors")                           \
    X(GPU_CLOCK_MEM, "gpu.clock.memory", "Hz", GAUGE, "clock of the memory")                               \
    X(GPU_THROTTLE, "gpu.throttle", "1", GAUGE, "reasons why the clock is held down, as NVML's bits")      \
    X(GPU_PCIE_RX, "gpu.pcie.rx", "B/s", GAUGE, "bytes per second to the card")                            \
    X(GPU_PCIE_TX, "gpu.pcie.tx", "B/s", GAUGE, "bytes per second from the card")                          \
    X(GPU_ECC, "gpu.ecc.uncorrected", "1", COUNTER, "memory errors that could not be corrected")           \
    X(GPU_CLOCK_MAX, "gpu.clock.max", "Hz", GAUGE, "highest clock of the multiprocessors")                 \
    X(GPU_PCIE_LINK, "gpu.pcie.link", "1", GAUGE, "speed of its link, of the fastest that it can have")    \
    X(GPU_OTHERS, "gpu.processes.other", "1", GAUGE, "processes on it that are not the program's")         \
    X(GPU_NVLINK_RX, "gpu.nvlink.rx", "B/s", GAUGE, "bytes per second from other cards (GPM)")             \
    X(GPU_NVLINK_TX, "gpu.nvlink.tx", "B/s", GAUGE, "bytes per second to other cards (GPM)")               \
    X(GPU_SM_ACTIVE, "gpu.sm.active", "1", GAUGE, "share of multiprocessors with a warp resident (GPM)")   \
    X(GPU_SM_OCCUPANCY, "gpu.sm.occupancy", "1", GAUGE, "share of warp slots in use (GPM)")                \
    X(GPU_TENSOR, "gpu.tensor.active", "1", GAUGE, "share of cycles with tensor cores at work (GPM)")      \
    X(GPU_DRAM, "gpu.dram.active", "1", GAUGE, "share of memory bandwidth in use (GPM)")                   \
    /* tare itself */                                                                                       \
    X(SELF_CPU, "self.cpu", "s", COUNTER, "processor time that sampling took")                             \
    X(SELF_LATE, "self.late", "s", GAUGE, "how late this sample was taken")

enum metric_id {
#define X(id, name, unit, kind, help) METRIC_##id,
    METRIC_MAP(X)
#undef X
        METRIC_COUNT
};

struct metric {
    const char *name, *unit;
    enum metric_kind kind;
    const char *help;
};
extern const struct metric metric_table[METRIC_COUNT];
/* By name; METRIC_COUNT: none. */
enum metric_id metric_find(const char *name);

#endif
