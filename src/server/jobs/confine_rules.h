/* SPDX-License-Identifier: MIT
 * confine_rules.h - the two kinds of rules the kernel keeps for a confined program: which files, which calls. Private
 * to confine.c. */
#ifndef SERVER_CONFINE_RULES_H
#define SERVER_CONFINE_RULES_H

#include "server/jobs/confine.h"

/* Landlock: the system's files to read, its own folder and what the operator names. false: this kernel has none. */
bool rules_files(const struct confine_spec *spec, bool own_mounts);
/* A filter for this process and what it becomes. After no_new_privs. */
bool rules_calls(bool refuse_sockets, bool perf);

#endif
