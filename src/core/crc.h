/* SPDX-License-Identifier: MIT
 * crc.h - CRC-32C (Castagnoli), the checksum of trace chunks. Needs libc alone, never allocates, locks or
 * initialises anything: callable from any thread, from signal handlers and before main(). */
#ifndef CORE_CRC_H
#define CORE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of n bytes. Start with seed 0; to go on over a second piece pass the result of the first:
 * crc32c(crc32c(0, a, na), b, nb) is the checksum of a followed by b.
 * crc32c(0, "123456789", 9) is 0xE3069283. data may be NULL when n is 0. */
uint32_t crc32c(uint32_t seed, const void *data, size_t n);

/* The same by tables, on every CPU; crc32c() uses it where the instruction is missing. */
uint32_t crc32c_portable(uint32_t seed, const void *data, size_t n);

#endif
