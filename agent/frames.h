/* SPDX-License-Identifier: MIT
 * frames.h - a stack on its way to a number: as it was walked, and the one that was numbered before. */
#ifndef AGENT_FRAMES_H
#define AGENT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAMES_MOST = 128, /* of a stack, native and Python together */
    SCOPES_MOST = 32   /* around them */
};

struct frame {
    uint64_t kind, where, at;
    uint64_t key; /* of Python code: tells it from another at the same address */
};

/* Where the interpreter has a frame, and what tells whether it is still the same. */
struct python_at {
    const void *frame, *code;
    uint64_t key;   /* tells code from another at the same address */
    uint64_t place; /* of the instruction, as the interpreter keeps it */
};

/* The stack that was numbered before: the next one is the same but for its innermost frames. Outermost first: scopes,
 * frames of Python, native ones. */
struct last_stack {
    uint32_t n, n_scopes, n_python, cut, number; /* number 0: not known */
    bool whole;                                  /* all frames of Python are there */
    const void *scope;                           /* the innermost, and the thread's registration it is of */
    uint64_t scope_of;
    struct python_at python[FRAMES_MOST], walked[FRAMES_MOST]; /* walked: the way in, innermost first */
    struct frame frames[FRAMES_MOST + SCOPES_MOST];
    uint64_t keys[FRAMES_MOST + SCOPES_MOST]; /* of a frame and all around it */
};

struct stack {
    uint32_t n;
    uint32_t cut;                 /* enum memory_cut; 0: whole */
    const void *innermost;        /* of Python; NULL: none */
    uint64_t native[FRAMES_MOST]; /* innermost first */
};
/* fp: the frame of the hook, [0] the caller's rbp, [1] where it returns to. object: of Python's allocator, with the
 * GIL. */
void stack_walk(struct stack *out, void *const *fp, bool object);

#endif
