/* SPDX-License-Identifier: MIT
 * attach.h - what the files of `tare attach` share. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include "report/answer.h"
#include "sample/snapshot.h"

void attach_say_once(struct answer *a, pid_t pid, const struct snapshot *s);

#endif
