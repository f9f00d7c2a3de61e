/* SPDX-License-Identifier: MIT
 * probe.h - instruments behind one table: each opens what it reads once, then adds what it sees to samples, many times.
 * What a probe cannot see it says at open, with the reason; it never guesses and never prints. Each probe's own cost is
 * measured while it works. */
#ifndef PROBE_PROBE_H
#define PROBE_PROBE_H

#include <sys/types.h>

#include "core/buf.h"
#include "core/error.h"
#include "trace/samples.h"

struct probe_place {
    const char *root; /* put before /proc, /sys: "" on this machine; a made-up tree in tests */
    pid_t program;    /* whose tree is watched; 0: none, only the machine */
    bool detail;      /* labelled series (per core, per process) too */
    bool gpu;         /* what GPUs do is recorded beside it: their energy is wanted per step */
};

struct rusage;

/* Where values go: nothing more is put after a failure. */
struct probe_reading {
    double value;
    uint64_t ns; /* 0: none yet */
};
struct probe_readings {
    VEC(struct probe_reading) items; /* per series */
};
struct probe_put {
    struct series_set *set;
    struct sample *to;
    tare_error *err;
    tare_status status;
    struct probe_readings *before;
    uint64_t read_ns; /* when what is put was read; 0: about at the time of the sample */
};
/* A counter of seconds that was read at `read_ns` is put as it stood at the time of the sample, as if it had grown
 * evenly since it was read before: on a busy machine milliseconds pass between the two, and shares would exceed 1. */
void probe_put(struct probe_put *p, enum metric_id m, const char *label, double value);

struct probe;
struct probe_ops {
    const char *name; /* "process" */
    const char *help;
    size_t size; /* of the kind's own struct, which open() gets zeroed */
    /* Fills p->blind; nothing at all to see is TARE_UNSUPPORTED. What failed is closed too: descriptors must be -1, or
     * open, when open() returns. */
    tare_status (*open)(struct probe *p, const struct probe_place *at, tare_error *err);
    void (*sample)(struct probe *p, struct probe_put *to);
    void (*close)(struct probe *p);
};

/* The kinds, in the order in which they are sampled. To add one: a row here, a file probe_<name>.c that ends with its
 * table `probe_<name>`, rows in METRIC_MAP (trace/metric.h) for what it sees, and docs/cli/tare-run.md. */
#define PROBE_KINDS(X) X(process) X(cgroup) X(system) X(disk) X(net) X(temperature) X(energy) X(gpu)
#define X(name) extern const struct probe_ops probe_##name;
PROBE_KINDS(X)
#undef X
extern const struct probe_ops *const probe_table[]; /* all of them; ends with NULL */
const struct probe_ops *probe_find(const char *name);

struct probe { /* first member of each kind's own struct */
    const struct probe_ops *ops;
    uint64_t samples, ns, ns_max; /* its own cost so far; kept by probes_sample() */
    bool thorough;                /* this sample leaves nothing out for what it costs */
    bool asked;                   /* for by name: what is not there is an error, and waited for */
    bool gone;                    /* it turned out later that it sees nothing: blind says why */
    int news;                     /* readable once it sees something, if that takes a while; -1: it does */
    struct buf blind;             /* what it cannot see here and why, a line each; taken into the set's */
    struct buf told; /* what a reader of the samples should know, a line each: "gpu0 is GPU-7d58.." */
};

/* A set of opened probes sampled together. */
struct probes {
    VEC(struct probe *) items;
    struct series_set set;
    struct sample now;
    struct probe_readings before;
    struct buf blind; /* what cannot be seen and why: "probe: what: why", a line each */
    struct buf told;  /* notes for the trace, a line each */
    double cpu_s;     /* processor time that sampling took */
    bool thorough;    /* set before the last sample: dear quantities too, though it is not their turn */
};
tare_status probes_open(struct probes *out, const char *const *names, size_t n, const struct probe_place *at,
                        tare_error *err);                     /* names NULL: all that can see anything */
tare_status probes_sample(struct probes *p, tare_error *err); /* into p->now, its time included */
void probes_close(struct probes *p);                          /* after a failed open too */
int probes_news(
    const struct probes *p); /* readable when a sample has more to tell than those before; -1: none */

/* NVML takes 40 to 70 ms to start: `tare run` lets a thread of its own do it, beside the program. True: it is still at
 * it. At the end it is left alone, and then the process must end by _exit(): the library cannot be taken down under its
 * feet. */
bool probe_gpu_is_starting(void);

/* ---- for whoever starts the program, and reaps what outlives its parent (PR_SET_CHILD_SUBREAPER) ---- */

/* `pid` was reaped by us, with this usage: call after each wait4() of the program or of an orphan of it. With this the
 * sums are the kernel's own once all has ended, however short the processes lived. */
void probe_process_reaped(struct probes *p, pid_t pid, const struct rusage *usage);

/* A child of ours that is no part of the program (a command run on an alert), until probe_process_reaped() tells its
 * end. */
void probe_process_ignore(struct probes *p, pid_t pid);

/* Is anything of the program alive, as of the last sample? */
size_t probe_process_alive(const struct probes *p);

/* ---- for the kinds: what need not be known at every moment, counters that rates over half a second are made of, and
 * limits ---- */

struct probe_turn {
    uint64_t last_ns; /* 0: not yet */
};
/* True twice a second, and always when the sample is to be thorough: ask now. */
bool probe_turn(struct probe_turn *t, bool thorough, uint64_t now_ns);

#define PROBE_PRESSURES 3
/* Of cpu, memory, io: "some" totals in seconds, from files like /proc/pressure/cpu. */
void probe_put_pressure(struct probe_put *p, const int fd[PROBE_PRESSURES],
                        const enum metric_id m[PROBE_PRESSURES]);

#endif
