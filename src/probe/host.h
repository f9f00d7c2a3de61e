/* SPDX-License-Identifier: MIT
 * host.h - what machine this is, as far as it decides what the numbers of a run mean: processors, memory,
 * virtual or not, limits of the control group, load. Reads /proc, /sys, /etc/os-release and a few system
 * calls; changes nothing, and leaves what it cannot find out unknown, with the reason. */
#ifndef PROBE_HOST_H
#define PROBE_HOST_H

#include "run/run.h"

/* Fill r->host. `root` is put before every path: "" for this machine, a folder with a made-up /proc, /sys
 * and /etc for tests. Fails only when memory runs out. */
tare_status host_read(struct run *r, const char *root, tare_error *err);

#endif
