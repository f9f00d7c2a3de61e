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

/* Which commit and branch a folder is at, read from git's own files: no program is run, because a repository's settings
 * can make git run others. Never fails: what cannot be told stays empty. */
struct gitstate {
    char commit[65];  /* hex of SHA-1 or SHA-256; "": no repository, or no commit yet */
    char branch[256]; /* "": detached */
};
/* Looks in `folder` and above, up to the root. Knows worktrees, submodules, packed refs, detached heads. */
void gitstate_read(struct gitstate *out, const char *folder);
/* What git says of the current folder into the document's config: it travels with the file. */
void gitstate_describe(struct run *run);

#endif
