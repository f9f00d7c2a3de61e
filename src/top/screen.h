/* SPDX-License-Identifier: MIT
 * screen.h - a terminal as a grid of cells: draw a frame, then ask for the bytes that turn what is shown into it. Plain
 * ANSI sequences that every terminal knows. Text from outside cannot steer the terminal, whatever its bytes are: what
 * is no printable character becomes one. Writes nothing itself and reads no environment.
 *
 *     screen_resize(&s, 80, 24, err);
 *     screen_clear(&s);
 *     screen_text(&s, (struct screen_span){0, 0, 80}, SCREEN_TITLE, "hello");
 *     screen_render(&s, &bytes);      // the first time all of it, later what changed */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"

enum screen_colors { SCREEN_MONO, SCREEN_8, SCREEN_256, SCREEN_TRUE };

/* What a cell means; the table in screen.c says how each looks with few and with many colours. */
enum screen_style {
    SCREEN_PLAIN,
    SCREEN_TITLE,
    SCREEN_DIM,
    SCREEN_HEAD, /* a line of titles, reversed */
    SCREEN_KEY,
    SCREEN_GOOD,
    SCREEN_WARN,
    SCREEN_BAD,
    SCREEN_USER, /* parts of a bar */
    SCREEN_SYSTEM,
    SCREEN_WAIT,
    SCREEN_STOLEN,
    SCREEN_STYLES
};

enum { SCREEN_CELL_BYTES = 13, SCREEN_MAX = 1000 }; /* columns and rows at most */

struct screen_cell { /* one character and the marks that join it */
    char text[SCREEN_CELL_BYTES];
    unsigned char len, columns, style; /* columns 0: the right half of the wide one before it */
};

struct screen {
    enum screen_colors colors;
    bool utf8;
    unsigned width, height;
    struct screen_cell *now, *shown; /* height * width each; NULL before the first resize */
    bool known;                      /* `shown` is what the terminal shows */
};
#define SCREEN_INIT {.colors = SCREEN_MONO}

/* What a terminal can do, by what its environment says of it; any may be NULL. */
struct screen_env {
    const char *term, *colorterm, *no_color;
};
enum screen_colors screen_colors_of(const struct screen_env *env);

/* The frame becomes empty, and the next render draws everything. Sizes are cut at SCREEN_MAX. */
tare_status screen_resize(struct screen *s, unsigned width, unsigned height, tare_error *err);
void screen_release(struct screen *s);
void screen_clear(struct screen *s); /* an empty frame */

/* ---- drawing; what lies outside the screen is cut off ---- */

struct screen_span {
    unsigned x, y, width;
};
struct screen_box {
    unsigned x, y, width, height;
};
static inline struct screen_span screen_row(struct screen_box box, unsigned row)
{
    return (struct screen_span){box.x, box.y + row, box.width};
}

/* At most span.width columns of `text`; returns how many it took. A wide character that does not fit is left out. */
unsigned screen_text(struct screen *s, struct screen_span at, enum screen_style style, const char *text);
/* The same as by printf; the span becomes what is left of it. */
void screen_add(struct screen *s, struct screen_span *at, enum screen_style style, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Text at the right edge of the span. */
void screen_right(struct screen *s, struct screen_span at, enum screen_style style, const char *text);
void screen_fill(struct screen *s, struct screen_box box, enum screen_style style, char c);
unsigned screen_columns(const char *text); /* that screen_text() would take with room enough */

/* [|||##w    ]: shares of a whole, one after the other. `letter` tells parts apart where there are no colours. */
struct screen_part {
    double share;
    enum screen_style style;
    char letter;
};
void screen_bar(struct screen *s, struct screen_span at, const struct screen_part *parts, size_t n);

/* Values over time, the newest at the right edge, as an area: braille dots (two values a column, four steps a row),
 * or ASCII. NAN leaves a gap. Values above `top` are cut. */
struct screen_series {
    const double *y;
    size_t n;
    double top;
};
void screen_graph(struct screen *s, struct screen_box box, const struct screen_series *series);

/* How many columns of a terminal a character takes: 0 for what joins the character before it, 2 for wide ones, else 1.
 * As the C library knows it of UTF-8, whatever the locale of the process; controls are the caller's to keep out. */
unsigned charwidth(uint32_t cp);

/* ---- bytes ---- */

/* Append what makes the terminal show the frame. Nothing changed: nothing is appended. A failed buf makes the next
 * render start from nothing. */
void screen_render(struct screen *s, struct buf *out);
/* The frame as lines of plain text, without blanks at their ends. */
void screen_print(const struct screen *s, struct buf *out);

#endif
