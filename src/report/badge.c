/* SPDX-License-Identifier: MIT
 * badge.c - see badge.h. */
#include "report/badge.h"

#include <math.h>

#include "core/str.h"
#include "report/markup.h"
#include "report/text.h"

#define GOOD "#2e7d32"
#define BAD "#c62828"
#define GREY "#616161"

enum { LETTER = 7, AIR = 6, HEIGHT = 20, LINE_WIDTH = 160, LINE_HEIGHT = 32, SHOWN_MAX = 60 };

/* Letters have different widths, and which font is there nobody knows: textLength makes it fit. */
static unsigned width_of(const char *text)
{
    unsigned n = 0;
    for (const char *c = text; *c; c++) n += ((unsigned char)*c & 0xc0) != 0x80;
    return n * LETTER;
}

static void add_text(struct buf *b, unsigned x, const char *text)
{
    buf_printf(b, "<text x=\"%u\" y=\"14\" textLength=\"%u\">", x, width_of(text));
    markup_xml(b, text);
    buf_add_str(b, "</text>");
}

/* Plain, and not longer than a badge may be. */
static void clip(struct buf *b, const char *text)
{
    text_plain(b, text, text_clip(text, SHOWN_MAX));
    if (b->failed || !b->data) buf_add_str(b, "");
}

void badge_svg(struct buf *out, const char *label, const char *text, enum badge_tone tone)
{
    static const char *const colours[] = {GREY, GOOD, BAD};
    struct buf a = BUF_INIT, t = BUF_INIT;
    clip(&a, label);
    clip(&t, text);
    const char *left = a.data ? a.data : "", *right = t.data ? t.data : "";
    unsigned w = width_of(left) + 2 * AIR, v = width_of(right) + 2 * AIR;
    buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%d\" role=\"img\" aria-label=\"",
        w + v, HEIGHT);
    markup_xml(out, left);
    buf_add_str(out, ": ");
    markup_xml(out, right);
    buf_printf(out, "\"><rect width=\"%u\" height=\"%d\" rx=\"3\" fill=\"#444\"/>", w + v, HEIGHT);
    buf_printf(out, "<path fill=\"%s\" d=\"M%u 0h%ua3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-%uz\"/>", colours[tone],
               w, v - 3, v - 3);
    buf_add_str(out, "<g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">");
    add_text(out, AIR, left);
    add_text(out, w + AIR, right);
    buf_add_str(out, "</g></svg>\n");
    buf_release(&a);
    buf_release(&t);
}

struct frame {
    double least, most, step;
};

static struct frame frame_of(const struct badge_line *l)
{
    struct frame f = {INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < l->n; i++) {
        f.least = fmin(f.least, l->y[i]);
        f.most = fmax(f.most, l->y[i]);
    }
    f.step = l->n > 1 ? (double)(LINE_WIDTH - 6) / (double)(l->n - 1) : 0;
    return f;
}

static void add_points(struct buf *b, const struct badge_line *l, const struct frame *f, size_t from,
                       size_t to)
{
    double range = f->most - f->least;
    for (size_t i = from; i < to; i++) {
        double share = range > 0 ? (l->y[i] - f->least) / range : 0.5;
        buf_printf(b, "%s%.1f,%.1f", i > from ? " " : "", 3 + f->step * (double)i,
                   LINE_HEIGHT - 4 - share * (LINE_HEIGHT - 8));
    }
}

static void add_line(struct buf *b, const struct badge_line *l, const struct frame *f, size_t from, size_t to)
{
    if (to <= from) return;
    buf_printf(b,
               "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\" points=\"",
               from >= l->from ? BAD : GREY);
    add_points(b, l, f, from, to);
    buf_add_str(b, "\"/>");
}

void badge_line_svg(struct buf *out, const struct badge_line *l)
{
    struct frame f = frame_of(l);
    buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"",
        LINE_WIDTH, LINE_HEIGHT);
    markup_xml(out, l->about);
    buf_add_str(out, "\">");
    add_line(out, l, &f, 0, l->from < l->n ? l->from + (l->from > 0) : l->n);
    add_line(out, l, &f, l->from, l->n);
    if (l->n) {
        buf_printf(out, "<circle r=\"3\" fill=\"%s\" transform=\"translate(", l->from < l->n ? BAD : GREY);
        add_points(out, l, &f, l->n - 1, l->n);
        buf_add_str(out, ")\"/>");
    }
    buf_add_str(out, "</svg>\n");
}
