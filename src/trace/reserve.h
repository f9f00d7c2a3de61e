/* SPDX-License-Identifier: MIT
 * reserve.h - disk for a file that is to be mapped, before it is mapped: a store into a hole of a full disk would be a
 * SIGBUS in the program that is recorded; and where disk cannot be had for sure, when to leave it to the program. Only
 * system calls, no allocation. */
#ifndef TARE_TRACE_RESERVE_H
#define TARE_TRACE_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a file that is still empty: its pages are to stay where they are. True: on its file system that is no matter of
 * course, and whoever stores into a page that was written back waits for room, for seconds while the disk is full. */
bool reserve_in_place(int fd);

/* Is there little room left where that file is, a 32nd and 256 MiB at most? `blocks`: how much; may be NULL. */
bool reserve_is_nearly_full(const char *path, uint64_t *blocks);

/* 0, or -1: there is no room, and errno says why. Signals of limits that are reached on the way are kept from the
 * program. */
int reserve_disk(int fd, uint64_t from, uint64_t bytes);

#endif
