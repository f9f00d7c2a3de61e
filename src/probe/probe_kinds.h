/* SPDX-License-Identifier: MIT
 * probe_kinds.h - the list of probes, in the order in which they are sampled. */
#ifndef PROBE_PROBE_KINDS_H
#define PROBE_PROBE_KINDS_H

#include "probe/probe.h"

#define PROBE_KINDS(X) X(process) X(cgroup) X(system) X(disk) X(net) X(temperature) X(energy) X(gpu)

#define X(name) extern const struct probe_ops probe_##name;
PROBE_KINDS(X)
#undef X

#endif
