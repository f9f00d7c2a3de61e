/* SPDX-License-Identifier: MIT
 * top_term.h - the terminal while `tare top` has it: another screen, no echo, keys one by one; and its return as it
 * was, however tare ends (quit, signal, stop, crash). Draws nothing. */
#ifndef TOP_TOP_TERM_H
#define TOP_TOP_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum top_key { /* beyond the bytes that are themselves */
               TOP_KEY_NONE = 0,
               TOP_KEY_BACKSPACE = 127,
               TOP_KEY_ESCAPE = 256,
               TOP_KEY_UP,
               TOP_KEY_DOWN,
               TOP_KEY_LEFT,
               TOP_KEY_RIGHT,
               TOP_KEY_PAGE_UP,
               TOP_KEY_PAGE_DOWN,
               TOP_KEY_HOME,
               TOP_KEY_END,
               TOP_KEY_WHEEL_UP,
               TOP_KEY_WHEEL_DOWN,
               TOP_KEY_OTHER,          /* a key that nobody asked for */
               TOP_KEY_CLICK = 1 << 24 /* with the column and row of the screen, see top_click_x() */
};
static inline unsigned top_click_x(int key)
{
    return (unsigned)key & 0xfff;
}
static inline unsigned top_click_y(int key)
{
    return (unsigned)key >> 12 & 0xfff;
}

/* Why waiting ended. */
enum top_wake {
    TOP_WAKE_DUE = 0,     /* the time is over */
    TOP_WAKE_KEYS = 1,    /* keys to be read */
    TOP_WAKE_RESIZED = 2, /* the terminal's size changed, or it was given back to us: draw everything */
    TOP_WAKE_END = 4      /* a signal asks to end, or the terminal is gone */
};

/* Take the terminal of `out` over; keys come from `in`, if that is a terminal too. */
tare_status top_term_enter(int in, int out, tare_error *err);
void top_term_leave(void); /* give it back; more than once is fine */

void top_term_size(unsigned *width, unsigned *height);

/* Run a command of ours (argv[1]) that takes the terminal itself, and wait for it. `said`: its first line on stderr, or
 * how it failed without a word; "" for neither.
 * A signal that asks us to end is passed on to it. */
tare_status top_term_lend(char *const *argv, char *said, size_t size, tare_error *err);

/* Wait until `due_ns` (CLOCK_MONOTONIC_RAW) or something happens: bits of enum top_wake. */
unsigned top_term_wait(uint64_t due_ns);
int top_term_signal(void); /* the one that asked to end; 0: none */

bool top_term_has_keys(void); /* somebody can type */

/* The next key that was typed, TOP_KEY_NONE: no more now. */
int top_term_key(void);

/* All bytes out; false: the terminal is gone. */
bool top_term_write(const char *bytes, size_t n);

/* The key at the start of n > 0 bytes, and how many of them it is. */
int top_key_parse(const char *bytes, size_t n, size_t *taken);

#endif
