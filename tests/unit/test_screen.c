/* SPDX-License-Identifier: MIT
 * test_screen.c - the cell screen: a small terminal here obeys the bytes, and must show what was drawn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/str.h"
#include "core/mem.h"
#include "core/rng.h"
#include "top/screen.h"
#include "report/text.h"

/* ---- a terminal ---- */

enum { WIDE = 200, HIGH = 60 };
struct vt {
    unsigned width, height, x, y;
    char cell[HIGH][WIDE][SCREEN_CELL_BYTES + 1]; /* "" : right half of a wide one */
    char style[HIGH][WIDE][40];
    char sgr[40];
};

static void vt_wipe(struct vt *t, unsigned y, unsigned from)
{
    for (unsigned x = from; x < t->width; x++) {
        snprintf(t->cell[y][x], sizeof t->cell[y][x], " ");
        t->style[y][x][0] = 0;
    }
}

static void vt_init(struct vt *t, unsigned width, unsigned height)
{
    memset(t, 0, sizeof *t);
    t->width = width;
    t->height = height;
    for (unsigned y = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++) snprintf(t->cell[y][x], 2, "~"); /* what somebody else left */
}

static void vt_csi(struct vt *t, const char *args, char letter)
{
    unsigned a = (unsigned)strtoul(args, NULL, 10), b = 1;
    const char *second = strchr(args, ';');
    if (second) b = (unsigned)strtoul(second + 1, NULL, 10);
    if (letter == 'H') {
        t->y = a ? a - 1 : 0;
        t->x = b - 1;
        assert_true(t->y < t->height && t->x < t->width);
    } else if (letter == 'C') {
        t->x += a ? a : 1;
        assert_true(t->x < t->width);
    } else if (letter == 'K') {
        assert_int_equal(t->sgr[0], 0);
        vt_wipe(t, t->y, t->x);
    } else if (letter == 'J') {
        for (unsigned y = 0; y < t->height; y++) vt_wipe(t, y, 0);
    } else {
        assert_int_equal(letter, 'm');
        const char *rest = strncmp(args, "0;", 2) == 0 ? args + 2 : args;
        snprintf(t->sgr, sizeof t->sgr, "%s", rest);
    }
}

static void vt_char(struct vt *t, const char *s, size_t n, unsigned columns)
{
    if (columns == 0) { /* joins the one before */
        unsigned x = t->x - 1;
        if (!t->cell[t->y][x][0]) x--;
        strncat(t->cell[t->y][x], s, n);
        return;
    }
    assert_true(t->x + columns <= t->width);
    if (!t->cell[t->y][t->x][0] && t->x > 0) snprintf(t->cell[t->y][t->x - 1], 2, " ");
    if (t->x + columns < t->width && !t->cell[t->y][t->x + columns][0])
        snprintf(t->cell[t->y][t->x + columns], 2, " ");
    snprintf(t->cell[t->y][t->x], SCREEN_CELL_BYTES + 1, "%.*s", (int)n, s);
    snprintf(t->style[t->y][t->x], sizeof t->sgr, "%s", t->sgr);
    if (columns == 2) {
        t->cell[t->y][t->x + 1][0] = 0;
        snprintf(t->style[t->y][t->x + 1], sizeof t->sgr, "%s", t->sgr);
    }
    t->x += columns;
}

static void vt_feed(struct vt *t, const struct buf *b)
{
    const char *s = b->data, *end = s + b->len;
    while (s < end) {
        if (*s == '\033') {
            char args[40];
            assert_int_equal(s[1], '[');
            size_t n = strspn(s + 2, "0123456789;");
            snprintf(args, sizeof args, "%.*s", (int)n, s + 2);
            vt_csi(t, args, s[2 + n]);
            s += 3 + n;
            continue;
        }
        uint32_t cp = 0;
        size_t n = str_decode(s, (size_t)(end - s), &cp);
        assert_true(n > 0);
        assert_false(str_is_control(cp));
        vt_char(t, s, n, charwidth(cp));
        s += n;
    }
}

/* What the frame holds is what the terminal shows. */
static void assert_shows(const struct vt *t, const struct screen *s)
{
    for (unsigned y = 0; y < s->height; y++)
        for (unsigned x = 0; x < s->width; x++) {
            const struct screen_cell *c = &s->now[(size_t)y * s->width + x];
            char want[SCREEN_CELL_BYTES + 1];
            snprintf(want, sizeof want, "%.*s", c->columns ? (int)c->len : 0, c->text);
            if (strcmp(want, t->cell[y][x]) != 0) fail_msg("%u,%u: '%s' for '%s'", x, y, t->cell[y][x], want);
        }
}

static void shown_row(const struct vt *t, unsigned y, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (unsigned x = 0; x < t->width; x++)
        used += (size_t)snprintf(out + used, size - used, "%s", t->cell[y][x]);
    while (used > 0 && out[used - 1] == ' ') out[--used] = 0;
}

static size_t show(struct screen *s, struct vt *t)
{
    struct buf out = BUF_INIT;
    screen_render(s, &out);
    assert_int_equal(buf_status(&out, NULL), TARE_OK);
    vt_feed(t, &out);
    assert_shows(t, s);
    assert_int_equal(t->sgr[0], 0);
    size_t n = out.len;
    buf_release(&out);
    return n;
}

static struct vt vt;

static void start(struct screen *s, unsigned width, unsigned height)
{
    *s = (struct screen)SCREEN_INIT;
    s->utf8 = true;
    s->colors = SCREEN_256;
    vt_init(&vt, width, height);
    assert_int_equal(screen_resize(s, width, height, NULL), TARE_OK);
}

static struct screen_span span(unsigned x, unsigned y, unsigned width)
{
    return (struct screen_span){x, y, width};
}

/* ---- tests ---- */

static void test_first_frame(void **state)
{
    (void)state;
    struct screen s;
    char row[400];
    start(&s, 20, 3);
    assert_int_equal(screen_text(&s, span(2, 1, 18), SCREEN_TITLE, "hello"), 5);
    show(&s, &vt);
    shown_row(&vt, 1, row, sizeof row);
    assert_string_equal(row, "  hello");
    assert_string_equal(vt.style[1][2], "1");
    screen_release(&s);
}

static void test_only_changes(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24);
    for (unsigned y = 0; y < 24; y++) {
        struct screen_span row = span(0, y, 80);
        screen_add(&s, &row, SCREEN_GOOD, "row %u value 100 %%", y);
        assert_true(row.x == (y < 10 ? 17 : 18) && row.x + row.width == 80); /* what is left */
    }
    size_t whole = show(&s, &vt);
    assert_true(whole > 24 * 15);
    assert_int_equal(show(&s, &vt), 0); /* nothing changed: not a byte */
    screen_text(&s, span(12, 5, 3), SCREEN_GOOD, "101");
    struct buf out = BUF_INIT;
    screen_render(&s, &out);
    assert_string_equal(out.data, "\033[6;15H\033[0;38;5;71m1\033[m");
    buf_release(&out);
    screen_release(&s);
}

static void test_short_gap_is_rewritten(void **state)
{
    (void)state;
    struct screen s;
    struct buf out = BUF_INIT;
    start(&s, 20, 1);
    screen_text(&s, span(0, 0, 20), SCREEN_PLAIN, "aXbcYdefghijkZ");
    show(&s, &vt);
    screen_text(&s, span(0, 0, 20), SCREEN_PLAIN, "a1bc2defghijk3");
    screen_render(&s, &out);
    assert_string_equal(out.data, "\033[1;2H1bc2\033[8C3");
    buf_release(&out);
    screen_release(&s);
}

static void test_long_blank_is_wiped(void **state)
{
    (void)state;
    struct screen s;
    struct buf out = BUF_INIT;
    start(&s, 40, 2);
    screen_text(&s, span(0, 0, 40), SCREEN_BAD, "keep all of this long line of text");
    show(&s, &vt);
    screen_clear(&s);
    screen_text(&s, span(0, 0, 40), SCREEN_BAD, "keep");
    screen_render(&s, &out);
    assert_string_equal(out.data, "\033[1;5H\033[K");
    vt_feed(&vt, &out);
    assert_shows(&vt, &s);
    buf_release(&out);
    screen_release(&s);
}

static void test_wide_and_combining(void **state)
{
    (void)state;
    struct screen s;
    char row[400];
    start(&s, 10, 3);
    assert_int_equal(screen_text(&s, span(0, 0, 5), SCREEN_PLAIN, "漢字漢"), 4); /* the third would need 6 */
    assert_int_equal(screen_text(&s, span(0, 1, 3), SCREEN_PLAIN, "e\xCC\x81te\xCC\x81s"), 3);
    assert_int_equal(screen_text(&s, span(8, 2, 9), SCREEN_PLAIN, "a漢"), 1); /* no half at the edge */
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, "漢字");
    shown_row(&vt, 1, row, sizeof row);
    assert_string_equal(row, "e\xCC\x81te\xCC\x81");
    screen_text(&s, span(1, 0, 1), SCREEN_PLAIN, "x"); /* the right half of a wide one */
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, " x字");
    screen_text(&s, span(2, 0, 1), SCREEN_PLAIN, "y"); /* its left half */
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, " xy");
    assert_int_equal(screen_columns("漢e\xCC\x81 "), 4);
    screen_release(&s);
}

static void test_hostile_text(void **state)
{
    (void)state;
    struct screen s;
    char row[400];
    start(&s, 40, 2);
    screen_text(&s, span(0, 0, 40), SCREEN_PLAIN,
                "a\033[2Jb\nc\x9b"
                "d\xff\xe2\x80\xae");
    show(&s, &vt); /* vt_feed() fails on any control */
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, "a?[2Jb?c\xEF\xBF\xBD"
                             "d\xEF\xBF\xBD?");
    char marks[200] = "x"; /* more marks than a cell can keep */
    for (int i = 0; i < 60; i++) strncat(marks, "\xCC\x81", 3);
    assert_int_equal(screen_text(&s, span(0, 1, 40), SCREEN_PLAIN, marks), 1);
    s.utf8 = false;
    screen_text(&s, span(10, 1, 9), SCREEN_PLAIN, "\xC3\xA9\xCC\x81\xE2\x82\xAC");
    assert_memory_equal(s.now[s.width + 10].text, "?", 1);
    assert_memory_equal(s.now[s.width + 11].text, "?", 1);
    assert_memory_equal(s.now[s.width + 12].text, " ", 1);
    screen_release(&s);
}

static void test_outside_is_cut(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 10, 2);
    assert_int_equal(screen_text(&s, span(0, 2, 10), SCREEN_PLAIN, "below"), 0);
    assert_int_equal(screen_text(&s, span(10, 0, 10), SCREEN_PLAIN, "right"), 0);
    assert_int_equal(screen_text(&s, span(7, 0, 99), SCREEN_PLAIN, "right"), 3);
    screen_fill(&s, (struct screen_box){8, 1, 50, 50}, SCREEN_HEAD, '=');
    screen_right(&s, span(0, 1, 6), SCREEN_PLAIN, "12");
    screen_bar(&s, span(0, 5, 10), &(struct screen_part){0.5, SCREEN_USER, 'u'}, 1);
    show(&s, &vt);
    assert_string_equal(vt.cell[1][5], "2");
    assert_string_equal(vt.cell[1][9], "=");
    screen_release(&s);
}

static void test_resize(void **state)
{
    (void)state;
    struct screen s;
    start(&s, 80, 24);
    screen_text(&s, span(0, 20, 80), SCREEN_PLAIN, "twenty");
    show(&s, &vt);
    assert_int_equal(screen_resize(&s, 40, 10, NULL), TARE_OK);
    vt_init(&vt, 40, 10);
    screen_text(&s, span(0, 9, 80), SCREEN_PLAIN, "nine");
    show(&s, &vt);
    assert_int_equal(screen_resize(&s, 0, 0, NULL), TARE_OK);
    assert_int_equal(s.width, 1);
    assert_int_equal(screen_resize(&s, 100000, 100000, NULL), TARE_OK);
    assert_int_equal(s.width, SCREEN_MAX);
    screen_release(&s);
}

static void test_bar(void **state)
{
    (void)state;
    struct screen s;
    char row[400];
    start(&s, 12, 3);
    s.colors = SCREEN_MONO;
    struct screen_part parts[] = {
        {0.3, SCREEN_USER, '|'}, {NAN, SCREEN_SYSTEM, '#'}, {0.2, SCREEN_WAIT, 'w'}};
    screen_bar(&s, span(0, 0, 12), parts, 3);
    parts[0].share = 7; /* more than all */
    screen_bar(&s, span(0, 1, 12), parts, 3);
    screen_bar(&s, span(0, 2, 2), parts, 3);
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, "[|||ww     ]");
    shown_row(&vt, 1, row, sizeof row);
    assert_string_equal(row, "[||||||||||]");
    shown_row(&vt, 2, row, sizeof row);
    assert_string_equal(row, "");
    screen_release(&s);
}

static void test_graph(void **state)
{
    (void)state;
    struct screen s;
    char row[400];
    double y[] = {0.25, 0.5, 1, NAN, 2, 0.001};
    struct screen_series series = {y, 6, 1};
    start(&s, 4, 2);
    screen_graph(&s, (struct screen_box){0, 0, 4, 1}, &series);
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, " \u28E0\u2847\u28C7"); /* 1 and 2 steps; 4 and a gap; 4 and the least */
    screen_clear(&s);
    s.utf8 = false;
    screen_graph(&s, (struct screen_box){1, 0, 3, 2}, &series);
    show(&s, &vt);
    shown_row(&vt, 0, row, sizeof row);
    assert_string_equal(row, "  ##");
    shown_row(&vt, 1, row, sizeof row);
    assert_string_equal(row, " ###");
    screen_release(&s);
}

/* Random frames: after any render the terminal shows exactly the frame. */
static void test_random_frames(void **state)
{
    (void)state;
    static const char *const words[] = {"a",        "cpu 12.5 %", "漢字",        "e\xCC\x81",
                                        "\033[31m", "  ",         "-----------", "é"};
    struct rng rng;
    struct screen s;
    rng_seed(&rng, 7);
    start(&s, 37, 9);
    for (int frame = 0; frame < 400; frame++) {
        if (rng_next(&rng) % 4 == 0) screen_clear(&s);
        for (int i = 0; i < 6; i++) {
            struct screen_span at = {(unsigned)(rng_next(&rng) % 40), (unsigned)(rng_next(&rng) % 10),
                                     (unsigned)(rng_next(&rng) % 30)};
            screen_text(&s, at, (enum screen_style)(rng_next(&rng) % SCREEN_STYLES),
                        words[rng_next(&rng) % 8]);
        }
        show(&s, &vt);
    }
    screen_release(&s);
}

static void test_colors(void **state)
{
    (void)state;
    static const struct {
        struct screen_env env;
        enum screen_colors want;
    } cases[] = {
        {{"xterm-256color", NULL, NULL}, SCREEN_256},
        {{"xterm", NULL, NULL}, SCREEN_8},
        {{"xterm-256color", "truecolor", NULL}, SCREEN_TRUE},
        {{"xterm", "24bit", ""}, SCREEN_TRUE},
        {{"xterm-256color", "truecolor", "1"}, SCREEN_MONO},
        {{"dumb", NULL, NULL}, SCREEN_MONO},
        {{NULL, NULL, NULL}, SCREEN_MONO},
        {{"vt100", NULL, NULL}, SCREEN_MONO},
        {{"linux", NULL, NULL}, SCREEN_8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(screen_colors_of(&cases[i].env), cases[i].want);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct screen s;
    struct buf out = BUF_INIT;
    tare_error err;
    start(&s, 10, 2);
    long live = mem_live_blocks();
    for (long n = 0; n < 2; n++) {
        mem_fail_after(n);
        assert_int_equal(screen_resize(&s, 20, 5, &err), TARE_NOMEM);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), live);
        assert_int_equal(s.width, 10); /* as it was */
    }
    screen_text(&s, span(0, 0, 5), SCREEN_PLAIN, "abc");
    mem_fail_after(0);
    screen_render(&s, &out);
    mem_fail_after(-1);
    assert_true(out.failed);
    assert_false(s.known);
    buf_release(&out);
    assert_true(show(&s, &vt) > 3);
    screen_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_frame),    cmocka_unit_test(test_only_changes),
        cmocka_unit_test(test_short_gap_is_rewritten), cmocka_unit_test(test_long_blank_is_wiped),
        cmocka_unit_test(test_wide_and_combining),
        cmocka_unit_test(test_hostile_text),   cmocka_unit_test(test_outside_is_cut),
        cmocka_unit_test(test_resize),         cmocka_unit_test(test_bar),
        cmocka_unit_test(test_graph),          cmocka_unit_test(test_random_frames),
        cmocka_unit_test(test_colors),         cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
