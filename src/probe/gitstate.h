/* SPDX-License-Identifier: MIT
 * gitstate.h - which commit and branch a folder is at, read from git's own files: no program is run, because
 * a repository's settings can make git run others. Never fails: what cannot be told stays empty. */
#ifndef PROBE_GITSTATE_H
#define PROBE_GITSTATE_H

struct gitstate {
    char commit[65];  /* hex of SHA-1 or SHA-256; "": no repository, or no commit yet */
    char branch[256]; /* "": detached */
};

/* Looks in `folder` and above, up to the root. Knows worktrees, submodules, packed refs, detached heads. */
void gitstate_read(struct gitstate *out, const char *folder);

struct run;
/* What git says of the current folder into the document's config: it travels with the file. */
void gitstate_describe(struct run *run);

#endif
