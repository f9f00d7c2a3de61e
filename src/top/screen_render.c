/* SPDX-License-Identifier: MIT
 * screen_render.c - the bytes that turn what a terminal shows into the frame drawn: cells that differ, the shortest
 * way of the cursor between them, a style only where it changes. Leaves the terminal in its plain style. */
#include <string.h>

#include "top/screen.h"

/* How each style looks with no colours, 8, 256 and all of them: parameters of SGR after the reset. */
static const char *const sgr[SCREEN_STYLES][SCREEN_TRUE + 1] = {
    [SCREEN_PLAIN] = {"", "", "", ""},
    [SCREEN_TITLE] = {"1", "1", "1", "1"},
    [SCREEN_DIM] = {"2", "2", "38;5;245", "38;2;138;138;138"},
    [SCREEN_HEAD] = {"7", "7", "1;38;5;255;48;5;238", "1;38;2;238;238;238;48;2;68;68;68"},
    [SCREEN_KEY] = {"1", "1;36", "1;38;5;80", "1;38;2;95;215;215"},
    [SCREEN_GOOD] = {"", "32", "38;5;71", "38;2;95;175;95"},
    [SCREEN_WARN] = {"", "33", "38;5;178", "38;2;215;175;0"},
    [SCREEN_BAD] = {"1", "1;31", "1;38;5;203", "1;38;2;255;95;95"},
    [SCREEN_USER] = {"", "32", "38;5;71", "38;2;95;175;95"},
    [SCREEN_SYSTEM] = {"", "31", "38;5;167", "38;2;215;95;95"},
    [SCREEN_WAIT] = {"", "34", "38;5;74", "38;2;95;175;215"},
    [SCREEN_STOLEN] = {"", "35", "38;5;134", "38;2;175;95;215"},
};

enum screen_colors screen_colors_of(const struct screen_env *env)
{
    const char *term = env->term ? env->term : "", *more = env->colorterm ? env->colorterm : "";
    if (env->no_color && *env->no_color) return SCREEN_MONO;
    if (!*term || strcmp(term, "dumb") == 0 || strncmp(term, "vt", 2) == 0 || strstr(term, "-m"))
        return SCREEN_MONO;
    if (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0 || strstr(term, "-direct"))
        return SCREEN_TRUE;
    return strstr(term, "256color") ? SCREEN_256 : SCREEN_8;
}

struct pen {
    struct screen *s;
    struct buf *out;
    unsigned x, y;
    bool placed; /* x and y are where the cursor is */
    enum screen_style style;
};

static bool same_cell(const struct screen_cell *a, const struct screen_cell *b)
{
    return a->len == b->len && a->style == b->style && a->columns == b->columns &&
           memcmp(a->text, b->text, a->len) == 0;
}

static bool is_blank(const struct screen_cell *c)
{
    return c->len == 1 && c->text[0] == ' ' && c->style == SCREEN_PLAIN;
}

static void pen_style(struct pen *p, enum screen_style style)
{
    const char *codes = sgr[style][p->s->colors];
    if (style == p->style) return;
    if (strcmp(codes, sgr[p->style][p->s->colors]) != 0)
        buf_printf(p->out, "\033[%s%sm", *codes ? "0;" : "", codes);
    p->style = style;
}

/* A few unchanged narrow cells of the same style are cheaper to write again than to jump over. */
static bool rewrite_gap(struct pen *p, unsigned x)
{
    const struct screen_cell *row = p->s->now + (size_t)p->y * p->s->width;
    size_t bytes = 0;
    for (unsigned i = p->x; i < x; i++) {
        if (row[i].columns != 1 || row[i].style != p->style) return false;
        bytes += row[i].len;
    }
    if (bytes > 3) return false;
    for (unsigned i = p->x; i < x; i++) buf_add(p->out, row[i].text, row[i].len);
    return true;
}

/* Forward on the row by rewriting or jumping, else to the place by its numbers: whichever takes fewer bytes. */
static void pen_move(struct pen *p, unsigned x, unsigned y)
{
    if (p->placed && p->y == y && p->x == x) return;
    if (p->placed && p->y == y && x > p->x) {
        if (!rewrite_gap(p, x)) {
            if (x - p->x == 1)
                buf_add_str(p->out, "\033[C");
            else
                buf_printf(p->out, "\033[%uC", x - p->x);
        }
    } else if (x == 0) {
        buf_printf(p->out, "\033[%uH", y + 1);
    } else {
        buf_printf(p->out, "\033[%u;%uH", y + 1, x + 1);
    }
    p->x = x;
    p->y = y;
    p->placed = true;
}

static void pen_cell(struct pen *p, unsigned x, unsigned y, const struct screen_cell *c)
{
    pen_move(p, x, y);
    pen_style(p, c->style);
    buf_add(p->out, c->text, c->len);
    p->x += c->columns;
    if (p->x >= p->s->width) p->placed = false; /* terminals differ in where the cursor is now */
}

/* Where the frame's row ends and only blanks follow, if wiping them is cheaper than writing them; else the width. */
static unsigned wipe_from(const struct screen *s, const struct screen_cell *now,
                          const struct screen_cell *shown)
{
    enum { WIPE_BYTES = 5 };
    unsigned end = s->width, changed = 0;
    while (end > 0 && is_blank(&now[end - 1])) {
        end--;
        changed += !is_blank(&shown[end]);
    }
    return changed > WIPE_BYTES ? end : s->width;
}

static void render_row(struct pen *p, unsigned y)
{
    const struct screen_cell *now = p->s->now + (size_t)y * p->s->width;
    const struct screen_cell *shown = p->s->shown + (size_t)y * p->s->width;
    unsigned end = wipe_from(p->s, now, shown);
    for (unsigned x = 0; x < end; x++)
        if (now[x].columns > 0 && !same_cell(&now[x], &shown[x])) pen_cell(p, x, y, &now[x]);
    if (end == p->s->width) return;
    pen_move(p, end, y);
    pen_style(p, SCREEN_PLAIN);
    buf_add_str(p->out, "\033[K");
}

void screen_render(struct screen *s, struct buf *out)
{
    struct pen p = {.s = s, .out = out};
    size_t n = (size_t)s->width * s->height;
    if (!s->known) {
        buf_add_str(out, "\033[m\033[2J");
        for (size_t i = 0; i < n; i++) s->shown[i] = (struct screen_cell){{' '}, 1, 1, SCREEN_PLAIN};
    }
    for (unsigned y = 0; y < s->height; y++) render_row(&p, y);
    pen_style(&p, SCREEN_PLAIN);
    memcpy(s->shown, s->now, n * sizeof *s->now);
    s->known = !out->failed;
}

void screen_print(const struct screen *s, struct buf *out)
{
    for (unsigned y = 0; y < s->height; y++) {
        const struct screen_cell *row = s->now + (size_t)y * s->width;
        unsigned end = s->width;
        while (end > 0 && row[end - 1].len == 1 && row[end - 1].text[0] == ' ') end--;
        for (unsigned x = 0; x < end; x++) buf_add(out, row[x].text, row[x].len);
        buf_add_char(out, '\n');
    }
}
