/* SPDX-License-Identifier: MIT
 * screen.c - see screen.h. The grid and what is drawn on it; screen_render.c makes the bytes. */
#include "top/screen.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "core/str.h"
#include "core/mem.h"
#include "report/text.h"

/* ---- size ---- */

static const struct screen_cell blank = {{' '}, 1, 1, SCREEN_PLAIN};

/* The new frame is made before the old one is given up, so a failure leaves a screen that can still be drawn. */
tare_status screen_resize(struct screen *s, unsigned width, unsigned height, tare_error *err)
{
    if (width > SCREEN_MAX) width = SCREEN_MAX;
    if (height > SCREEN_MAX) height = SCREEN_MAX;
    if (width < 1) width = 1;
    if (height < 1) height = 1;
    size_t n = (size_t)width * height;
    struct screen_cell *now = mem_new(n, sizeof *now), *shown = mem_new(n, sizeof *shown);
    if (!now || !shown) {
        mem_free(now);
        mem_free(shown);
        return error_set(err, TARE_NOMEM, "out of memory for a screen of %u by %u", width, height);
    }
    screen_release(s);
    s->now = now;
    s->shown = shown;
    s->width = width;
    s->height = height;
    s->known = false;
    screen_clear(s);
    return TARE_OK;
}

void screen_release(struct screen *s)
{
    mem_free(s->now);
    mem_free(s->shown);
    s->now = s->shown = NULL;
    s->width = s->height = 0;
}

void screen_clear(struct screen *s)
{
    for (size_t i = 0; i < (size_t)s->width * s->height; i++) s->now[i] = blank;
}

/* ---- cells ---- */

/* Half of a wide character cannot stay: what it was becomes blank. */
static void break_wide(struct screen *s, unsigned x, unsigned y)
{
    struct screen_cell *row = s->now + (size_t)y * s->width;
    if (row[x].columns == 0 && x > 0) row[x - 1] = blank;
    if (row[x].columns == 2 && x + 1 < s->width) row[x + 1] = blank;
}

static struct screen_cell *cell_for(struct screen *s, unsigned x, unsigned y, enum screen_style style)
{
    struct screen_cell *c = s->now + (size_t)y * s->width + x;
    break_wide(s, x, y);
    *c = (struct screen_cell){.columns = 1, .style = (unsigned char)style};
    return c;
}

/* Marks that join a character follow it in its cell, as far as there is room. */
static void cell_add(struct screen_cell *c, const char *bytes, size_t n)
{
    if (c->len + n > SCREEN_CELL_BYTES) return;
    memcpy(c->text + c->len, bytes, n);
    c->len = (unsigned char)(c->len + n);
}

/* wcwidth() speaks of the thread's locale, which is made one of UTF-8 for the question alone. Where there is none
 * (libraries before 2.35 may lack C.UTF-8), the user's own is asked. */
unsigned charwidth(uint32_t cp)
{
    static locale_t utf8;
    if (!utf8) utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!utf8) utf8 = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (cp < 0x300 || !utf8) return 1;
    locale_t before = uselocale(utf8);
    int n = wcwidth((wchar_t)cp);
    uselocale(before);
    return n < 0 ? 1 : (unsigned)n;
}

/* One character of outside text, as it may be shown. */
struct glyph {
    const char *bytes;
    size_t len;       /* to copy */
    unsigned columns; /* 0: joins the character before */
};

/* Joins others, or asks for a form of them, without being seen. */
static bool is_invisible(uint32_t cp)
{
    return cp == 0x00AD || (cp >= 0x200B && cp <= 0x200D) || (cp >= 0xFE00 && cp <= 0xFE0F) || cp == 0xFEFF ||
           (cp >= 0xE0000 && cp <= 0xE01EF);
}

/* The character at `text` (not at its end), and how many bytes it took. What is invisible is dropped. */
static size_t next_glyph(const char *text, bool utf8, struct glyph *g)
{
    uint32_t cp = 0;
    size_t taken = str_decode(text, strnlen(text, 4), &cp);
    if (taken == 0) {
        *g = utf8 ? (struct glyph){"\xEF\xBF\xBD", 3, 1} : (struct glyph){"?", 1, 1};
        return 1;
    }
    *g = (struct glyph){text, taken, charwidth(cp)};
    if (str_is_control(cp))
        *g = (struct glyph){"?", 1, 1};
    else if (is_invisible(cp) || (!utf8 && g->columns == 0))
        *g = (struct glyph){"", 0, 0};
    else if (!utf8 && cp >= 0x80)
        *g = (struct glyph){"?", 1, 1};
    return taken;
}

/* A wide character takes two cells, of which the second has no columns; one that does not fit whole is not begun. What
 * has no width joins the cell before it. */
unsigned screen_text(struct screen *s, struct screen_span at, enum screen_style style, const char *text)
{
    struct screen_cell *last = NULL;
    struct glyph g;
    unsigned used = 0;
    if (at.y >= s->height || at.x >= s->width) return 0;
    if (at.width > s->width - at.x) at.width = s->width - at.x;
    while (*text) {
        text += next_glyph(text, s->utf8, &g);
        if (g.columns > 0) {
            if (used + g.columns > at.width) break;
            last = cell_for(s, at.x + used, at.y, style);
            last->columns = (unsigned char)g.columns;
        }
        if (last) cell_add(last, g.bytes, g.len);
        if (g.columns == 2) cell_for(s, at.x + used + 1, at.y, style)->columns = 0;
        used += g.columns;
    }
    return used;
}

void screen_add(struct screen *s, struct screen_span *at, enum screen_style style, const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    unsigned used = screen_text(s, *at, style, text);
    at->x += used;
    at->width -= used;
}

unsigned screen_columns(const char *text)
{
    struct glyph g;
    unsigned n = 0;
    while (*text) {
        text += next_glyph(text, true, &g);
        n += g.columns;
    }
    return n;
}

void screen_right(struct screen *s, struct screen_span at, enum screen_style style, const char *text)
{
    unsigned n = screen_columns(text);
    if (n < at.width) {
        at.x += at.width - n;
        at.width = n;
    }
    screen_text(s, at, style, text);
}

void screen_fill(struct screen *s, struct screen_box box, enum screen_style style, char c)
{
    for (unsigned y = box.y; y < box.y + box.height && y < s->height; y++)
        for (unsigned x = box.x; x < box.x + box.width && x < s->width; x++)
            cell_add(cell_for(s, x, y, style), &c, 1);
}

/* ---- bars and graphs ---- */

void screen_bar(struct screen *s, struct screen_span at, const struct screen_part *parts, size_t n)
{
    if (at.width < 3) return;
    unsigned room = at.width - 2, used = 0;
    double sum = 0;
    screen_text(s, (struct screen_span){at.x, at.y, 1}, SCREEN_DIM, "[");
    for (size_t i = 0; i < n; i++) {
        if (parts[i].share > 0) sum += parts[i].share; /* unknown is NAN, and takes no room */
        unsigned end = sum >= 1 ? room : (unsigned)lround(sum * room);
        char c = s->colors == SCREEN_MONO ? parts[i].letter : '|';
        if (end > used)
            screen_fill(s, (struct screen_box){at.x + 1 + used, at.y, end - used, 1}, parts[i].style, c);
        if (end > used) used = end;
    }
    screen_text(s, (struct screen_span){at.x + at.width - 1, at.y, 1}, SCREEN_DIM, "]");
}

/* The i-th value from the right edge, as steps of the whole height; 0: below a step, or there is none. A value above
 * nothing at all shows at least one step. */
static unsigned steps_of(const struct screen_series *series, size_t from_end, unsigned steps)
{
    if (from_end >= series->n) return 0;
    double v = series->y[series->n - 1 - from_end] / (series->top > 0 ? series->top : 1);
    if (!(v > 0)) return 0;
    double h = ceil(v * steps - 1e-9);
    return h > steps ? steps : (unsigned)h;
}

static enum screen_style level_style(unsigned row_from_bottom, unsigned rows)
{
    double share = (row_from_bottom + 1.0) / rows;
    if (rows < 2 || share <= 0.5) return SCREEN_GOOD;
    return share > 0.8 ? SCREEN_BAD : SCREEN_WARN;
}

static unsigned above(unsigned steps, unsigned floor_steps, unsigned per_row)
{
    unsigned n = steps > floor_steps ? steps - floor_steps : 0;
    return n > per_row ? per_row : n;
}

/* Dots of a braille cell from the bottom up, left and right column. */
static void braille(char out[4], unsigned left, unsigned right)
{
    static const unsigned char left_dots[5] = {0, 0x40, 0x44, 0x46, 0x47};
    static const unsigned char right_dots[5] = {0, 0x80, 0xA0, 0xB0, 0xB8};
    unsigned cp = 0x2800u + (left_dots[left] | right_dots[right]);
    out[0] = (char)0xE2;
    out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[2] = (char)(0x80 | (cp & 0x3F));
    out[3] = 0;
}

/* Cells that the area does not reach stay untouched: what is drawn there already still shows. */
void screen_graph(struct screen *s, struct screen_box box, const struct screen_series *series)
{
    static const char *const ascii[] = {" ", ".", ":", "|", "#"};
    enum { STEPS = 4 };
    if (box.x >= s->width || box.y >= s->height) return;
    if (box.width > s->width - box.x) box.width = s->width - box.x;
    if (box.height > s->height - box.y) box.height = s->height - box.y;
    for (unsigned column = 0; column < box.width; column++) {
        size_t from_end = 2 * (size_t)(box.width - 1 - column);
        unsigned right = steps_of(series, from_end, box.height * STEPS);
        unsigned left = steps_of(series, from_end + 1, box.height * STEPS);
        for (unsigned row = 0; row < box.height; row++) { /* from the bottom */
            unsigned l = above(left, row * STEPS, STEPS), r = above(right, row * STEPS, STEPS);
            struct screen_span at = {box.x + column, box.y + box.height - 1 - row, 1};
            char dots[4];
            const char *area = dots;
            if (l == 0 && r == 0) continue;
            braille(dots, l, r);
            if (!s->utf8) area = ascii[l > r ? l : r];
            screen_text(s, at, level_style(row, box.height), area);
        }
    }
}
