/* SPDX-License-Identifier: MIT
 * reserve.h - disk for a file that is to be mapped, before it is mapped: a store into a hole of a full disk would be a
 * SIGBUS in the program that is recorded. Only system calls, no allocation. */
#ifndef TARE_TRACE_RESERVE_H
#define TARE_TRACE_RESERVE_H

#include <stdint.h>

/* Of a file that is still empty. */
void reserve_in_place(int fd);

/* 0, or -1: there is no room, and errno says why. Signals of limits that are reached on the way are kept from the
 * program. */
int reserve_disk(int fd, uint64_t from, uint64_t bytes);

#endif
