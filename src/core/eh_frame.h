/* SPDX-License-Identifier: MIT
 * eh_frame.h - how to go from a frame to its caller, by the tables that compilers write for exceptions (.eh_frame, and
 * its index .eh_frame_hdr). The tables are this process's own, or copies of another's that may hold anything: nothing
 * is read outside of what is given. x86-64. No allocation. */
#ifndef CORE_EH_FRAME_H
#define CORE_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EH_BP = 6, EH_SP = 7, EH_RA = 16, EH_REGS = 17 };

struct eh_bytes {
    const uint8_t *p, *end;
    uint64_t skew; /* added to an address here it is the one there; 0: of this process */
    bool failed;
};
static inline struct eh_bytes eh_copy(const void *here, size_t bytes, uint64_t there)
{
    const uint8_t *p = here;
    return (struct eh_bytes){p, p + bytes, there - (uint64_t)(uintptr_t)p, false};
}

/* Of a register of the caller. */
enum eh_how {
    EH_SAME,
    EH_UNDEFINED,
    EH_AT_CFA,        /* saved at the frame's address + value */
    EH_CFA_PLUS,      /* it is the frame's address + value */
    EH_REGISTER,      /* it is in register `value` */
    EH_AT_EXPRESSION, /* saved at what the expression at text + value says; its first byte is its length */
    EH_IS_EXPRESSION  /* it is what that says */
};
struct eh_rule {
    uint8_t how; /* enum eh_how */
    int32_t value;
};
enum { EH_TEXT = 176 };
struct eh_row {
    bool signal;   /* a frame that the kernel made: the caller stands at its address, not behind a call */
    bool computed; /* the frame's address is by expression at text + cfa_offset; else cfa_reg + cfa_offset */
    uint8_t cfa_reg;
    int32_t cfa_offset;
    struct eh_rule reg[EH_REGS];
    uint64_t start; /* of the function, or of the part of it */
    uint8_t text[EH_TEXT];
};

/* Where the entry is that may describe the function at `ip`, by the index at `table`; 0: nowhere. */
uint64_t eh_search(struct eh_bytes table, uint64_t ip);
/* Bytes of an entry with its length word, of which these are the bytes; 0: none. */
size_t eh_entry_bytes(const uint8_t word[4]);
/* Where the entry is that this one refers to; 0: nowhere. */
uint64_t eh_cie_at(struct eh_bytes entry);
/* False: it does not describe `ip`, or in a way that is not understood. */
bool eh_row(struct eh_bytes entry, struct eh_bytes cie, uint64_t ip, struct eh_row *out);

/* ---- to the caller ---- */

struct eh_regs { /* by DWARF's numbers; that of the return address is where the thread is */
    uint64_t v[EH_REGS];
    uint32_t known; /* a bit for each */
};
struct eh_reader {
    bool (*word)(void *ctx, uint64_t at, uint64_t *out); /* false: it cannot be read */
    void *ctx;
};
enum eh_stop {
    EH_GOES_ON,
    EH_OUTERMOST,      /* there is no caller */
    EH_NO_REGISTER,    /* one that is needed is unknown */
    EH_NO_MEMORY,      /* the stack cannot be read there */
    EH_NOT_UNDERSTOOD, /* or it makes no sense */
};
/* `regs` become those of the caller, if it goes on. */
enum eh_stop eh_step(const struct eh_row *row, struct eh_regs *regs, const struct eh_reader *mem);

#endif
