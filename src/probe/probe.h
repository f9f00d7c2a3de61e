/* SPDX-License-Identifier: MIT
 * probe.h - instruments behind one table: each opens what it reads once, then adds what it sees to a sample, many times.
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
};

struct probe;

struct probe_ops {
    const char *name; /* "process" */
    const char *help;
    /* Fills `blind` with what it cannot see here and why, a line each; nothing at all to see is TARE_UNSUPPORTED. */
    tare_status (*open)(struct probe **out, const struct probe_place *at, struct buf *blind, tare_error *err);
    tare_status (*sample)(struct probe *p, struct series_set *set, struct sample *to, tare_error *err);
    void (*close)(struct probe *p);
    bool costly; /* not in the default set at short intervals */
};
extern const struct probe_ops
    *const probe_table[]; /* ends with NULL: process cgroup system disk net temperature energy gpu */
const struct probe_ops *probe_find(const char *name);

struct probe { /* first member of each kind's own struct */
    const struct probe_ops *ops;
    uint64_t samples, ns, ns_max; /* its own cost so far; kept by probes_sample() */
};

/* A set of opened probes sampled together. */
struct probes {
    VEC(struct probe *) items;
    struct series_set set;
    struct sample now;
    struct buf blind;
};
tare_status probes_open(struct probes *out, const char *const *names, size_t n, const struct probe_place *at,
                        tare_error *err);                     /* names NULL: all that can see anything */
tare_status probes_sample(struct probes *p, tare_error *err); /* into p->now */
void probes_close(struct probes *p);

#endif
