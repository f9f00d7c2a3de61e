/* SPDX-License-Identifier: MIT
 * term.h - what the stream at the other end can show. Off a terminal: no colour, no pager, no progress. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stdio.h>

#include "core/buf.h"

struct term {
    bool tty;
    bool color;
    bool utf8;
    unsigned width; /* columns; 80 when unknown */
};

/* What the environment says about a terminal; read by cli.c, given by hand in tests. Any may be NULL. */
struct term_env {
    const char *term, *no_color, *force_color, *columns, *locale;
};
void term_detect(struct term *out, int fd, const struct term_env *env);

enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW, TERM_BLUE, TERM_CYAN };

/* The escape sequence of a style, or "" when this terminal has no colour. TERM_PLAIN resets. */
const char *term_style(const struct term *t, enum term_style style);

/* Columns that `s` takes on a terminal: UTF-8 sequences count once, escape sequences not at all. */
unsigned term_columns(const char *s);

/* `s` in `style`, then blanks up to `columns`. Control bytes become '?': text from outside cannot steer a
 * terminal. */
void term_cell(struct buf *out, const struct term *t, enum term_style style, const char *s, unsigned columns);
void term_clean(struct buf *out, const char *s);

/* A whole answer as this terminal may get it: new lines, tabs and the terminal's own styles stay, every other control
 * becomes visible (\x1b). All text that tare writes goes through this last, so that no column can forget it. */
void term_show(struct buf *out, const struct term *t, const char *s, size_t n);

#endif
