/* SPDX-License-Identifier: MIT
 * ulid.h - names for runs that sort by time: 48 bits of milliseconds and 80 random bits in 26 characters of
 * Crockford's base 32. Thread-safe; within a process each is greater than the one before, even when the wall
 * clock steps back; a forked child never repeats its parent. Not for signal handlers. */
#ifndef CORE_ULID_H
#define CORE_ULID_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { ULID_LEN = 26, ULID_SIZE = ULID_LEN + 1 };

struct ulid {
    uint64_t unix_ms; /* 48 bits */
    uint8_t random[10];
};

/* A new one as text with its NUL. TARE_IO when the kernel gives no random bytes. */
tare_status ulid_new(char out[ULID_SIZE], tare_error *err);

void ulid_format(const struct ulid *id, char out[ULID_SIZE]);

/* Exactly 26 characters of either case, the first at most '7'; the letters I, L, O and U are not digits. */
tare_status ulid_parse(const char *text, struct ulid *out, tare_error *err);
bool ulid_is_valid(const char *text);

/* The successor rule behind ulid_new, a pure function: given the last one, the time now and fresh random
 * bytes, make `last` the next one. */
void ulid_advance(struct ulid *last, uint64_t unix_ms, const uint8_t fresh[10]);

#endif
