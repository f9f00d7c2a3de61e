/* SPDX-License-Identifier: MIT
 * extent.h - the lives of an extent. It is used, archived, cleared and used again while another process may be
 * copying it out of the shared mapping; `seq` numbers its lives, 0 is between two. A copy counts if `seq` was the same
 * before it and after it. */
#ifndef TRACE_EXTENT_H
#define TRACE_EXTENT_H

#include <stdbool.h>

#include "trace/format.h"

/* Ends a life: what it held is in the archive. A release store keeps what came before it in front of it, but not
 * what comes after it behind: without the fence a reader on aarch64 may see the next life's bytes under this life's
 * number. On x86-64 the fence is no instruction. TSan knows no fences, and orders by the stores alone. */
static inline void extent_retire(struct extent *x)
{
    __atomic_store_n(&x->seq, 0, __ATOMIC_RELEASE);
#ifndef __SANITIZE_THREAD__
    __atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* A reference that stands in the mapping, read once: its page may go at any moment, and reads as zeros from then
 * on. 0 is the live header, which nobody may take for a node. */
static inline uint32_t mapped_ref(const uint32_t *at)
{
    return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/* Is it still the life `seq`? To be asked after the copy, whose loads are all acquiring ones: none of them is made
 * later. */
static inline bool extent_lives_on(const struct extent *x, uint64_t seq)
{
    return __atomic_load_n(&x->seq, __ATOMIC_RELAXED) == seq;
}

#endif
