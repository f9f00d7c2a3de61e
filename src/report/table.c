/* SPDX-License-Identifier: MIT
 * table.c - see table.h. A failed allocation sticks in text.failed and ends in the stream's status. */
#include "report/table.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "report/markup.h"
#include "report/text.h"

#define TABLE_GAP 2

void table_init(struct table *t, const struct table_column *columns, uint32_t n_columns)
{
    *t = (struct table){.n_columns = n_columns, .text = BUF_INIT};
    for (uint32_t c = 0; c < n_columns && c < TABLE_MAX_COLUMNS; c++) t->columns[c] = columns[c];
}

void table_of(struct table *t, const struct table_fill *columns, uint32_t n_columns)
{
    *t = (struct table){.fills = columns, .n_columns = n_columns, .text = BUF_INIT};
    for (uint32_t c = 0; c < n_columns && c < TABLE_MAX_COLUMNS; c++)
        t->columns[c] = (struct table_column){columns[c].title, columns[c].left};
}

static void table_release(struct table *t)
{
    buf_release(&t->text);
    mem_free(t->cells);
    *t = (struct table){.text = BUF_INIT};
}

/* Whatever was put into the cell, nothing in it can steer a terminal or begin a new line. */
static void clean_cell(struct table *t, struct table_cell *cell)
{
    struct buf clean = BUF_INIT;
    if (t->text.failed || t->text.len == cell->at) return;
    text_plain(&clean, t->text.data + cell->at, t->text.len - cell->at);
    if (clean.failed) t->text.failed = 1;
    if (clean.len != t->text.len - cell->at) { /* what is escaped is longer */
        t->text.len = cell->at;
        buf_add(&t->text, clean.data, clean.len);
    }
    buf_release(&clean);
}

static void close_cell(struct table *t)
{
    if (!t->open) return;
    struct table_cell *cell = &t->cells[t->n_cells - 1];
    clean_cell(t, cell);
    cell->len = t->text.len - cell->at;
    cell->columns = text_columns(t->text.data + cell->at, cell->len);
    t->open = false;
}

struct buf *table_cell(struct table *t)
{
    close_cell(t);
    if (t->n_cells == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 128;
        struct table_cell *cells = mem_resize(t->cells, cap, sizeof *cells);
        if (!cells) {
            t->text.failed = 1;
            return &t->text;
        }
        t->cells = cells;
        t->cap = cap;
    }
    t->cells[t->n_cells++] = (struct table_cell){.at = t->text.len};
    t->open = true;
    return &t->text;
}

bool table_cell_is_empty(const struct table *t)
{
    return t->open && t->text.len == t->cells[t->n_cells - 1].at;
}

void table_row(struct table *t, const void *row)
{
    for (uint32_t c = 0; c < t->n_columns; c++) t->fills[c].fill(table_cell(t), row);
}

static bool says_something(const struct table *t, const struct table_cell *cell)
{
    return cell->len && !(cell->len == 1 && t->text.data[cell->at] == '-');
}

void table_drop_empty(struct table *t)
{
    bool told[TABLE_MAX_COLUMNS] = {false};
    size_t kept = 0;
    uint32_t n = 0, was = t->n_columns;
    close_cell(t);
    if (!t->n_cells || t->text.failed || was > TABLE_MAX_COLUMNS) return;
    for (size_t i = 0; i < t->n_cells; i++)
        if (says_something(t, &t->cells[i])) told[i % was] = true;
    for (size_t i = 0; i < t->n_cells; i++)
        if (told[i % was]) t->cells[kept++] = t->cells[i];
    if (!kept) return;
    for (uint32_t c = 0; c < was; c++)
        if (told[c]) t->columns[n++] = t->columns[c];
    t->n_cells = kept;
    t->n_columns = n;
}

/* There are rows, and everything of them; where it is not, or does not fit, the stream has failed. */
static bool is_printable(struct table *t, struct stream *s)
{
    close_cell(t);
    if (!t->n_cells && !t->text.failed) return false;
    if (!t->text.failed && t->n_columns > 0 && t->n_columns <= TABLE_MAX_COLUMNS) return true;
    s->out.failed = 1;
    stream_flush(s);
    return false;
}

static void add_blanks(struct buf *b, uint32_t n)
{
    static const char blanks[] = "                                ";
    for (; n >= sizeof blanks; n -= (uint32_t)sizeof blanks - 1) buf_add(b, blanks, sizeof blanks - 1);
    buf_add(b, blanks, n);
}

struct piece {
    const char *text;
    size_t len;
    uint32_t columns;
    const struct report_style *style; /* NULL: as it is */
};

/* A verdict that stands alone in a cell has its colour in every table. */
static void add_piece(struct buf *out, const struct piece *p)
{
    const char *colour = p->style ? text_verdict_style(p->style, p->text, p->len) : "";
    buf_add_str(out, colour);
    buf_add(out, p->text, p->len);
    if (*colour) buf_add_str(out, p->style->plain);
}

/* ---- widths ---- */

enum { NAME_WANTED = 40, NAME_LEAST = 16 };

struct layout {
    uint32_t width[TABLE_MAX_COLUMNS];
    bool gone[TABLE_MAX_COLUMNS];
    uint32_t limit; /* columns of the terminal; 0: as wide as it gets */
    bool below;     /* sentences stand below their row */
};

static void measure(const struct table *t, const struct buf *titles, uint32_t *width)
{
    assert(t->n_columns > 0);
    for (uint32_t c = 0; c < t->n_columns; c++) width[c] = text_columns(titles[c].data, titles[c].len);
    for (size_t i = 0; i < t->n_cells; i++) {
        uint32_t c = (uint32_t)(i % t->n_columns);
        if (t->cells[i].columns > width[c]) width[c] = t->cells[i].columns;
    }
}

/* By how many columns the table is too wide. */
static uint32_t excess(const struct table *t, const struct layout *l)
{
    uint32_t sum = 0;
    for (uint32_t c = 0; c < t->n_columns; c++) sum += l->gone[c] ? 0 : l->width[c] + TABLE_GAP;
    return sum > l->limit + TABLE_GAP ? sum - l->limit - TABLE_GAP : 0;
}

/* The widest columns of text give way, down to `least`. */
static void shrink_names(const struct table *t, struct layout *l, uint32_t least)
{
    for (uint32_t over = excess(t, l); over; over--) {
        uint32_t widest = t->n_columns;
        for (uint32_t c = 0; c < t->n_columns; c++)
            if (t->columns[c].left && !l->gone[c] && l->width[c] > least &&
                (widest == t->n_columns || l->width[c] > l->width[widest]))
                widest = c;
        if (widest == t->n_columns) return;
        l->width[widest]--;
    }
}

static void drop_columns(const struct table *t, struct layout *l)
{
    for (const char *const *spare = t->spare; spare && *spare; spare++)
        for (uint32_t c = 0; c < t->n_columns && excess(t, l); c++)
            if (strcmp(t->columns[c].title, *spare) == 0) l->gone[c] = true;
}

static void fit(const struct table *t, struct layout *l)
{
    if (!l->limit) return;
    if (t->words && excess(t, l)) l->below = l->gone[t->n_columns - 1] = true;
    shrink_names(t, l, NAME_WANTED);
    drop_columns(t, l);
    shrink_names(t, l, NAME_LEAST);
}

/* ---- cells ---- */

static size_t bytes_of(const char *s, size_t n, uint32_t columns)
{
    size_t at = 0;
    for (; at < n; at++)
        if (((unsigned char)s[at] & 0xc0) != 0x80 && columns-- == 0) break;
    return at;
}

/* Both ends of a name tell more than its middle. */
static void add_shortened(struct buf *out, const struct piece *p, uint32_t width)
{
    uint32_t tail = (width - 2) / 2, head = width - 2 - tail;
    size_t skip = bytes_of(p->text, p->len, p->columns - tail);
    buf_add(out, p->text, bytes_of(p->text, p->len, head));
    buf_add_str(out, "..");
    buf_add(out, p->text + skip, p->len - skip);
}

enum { WORDS_INDENT = 4 };

static void add_words(struct buf *out, const struct piece *p, uint32_t limit)
{
    struct buf text = BUF_INIT;
    buf_add(&text, p->text, p->len);
    if (text.failed) out->failed = 1;
    if (text.data && text.len) {
        buf_printf(out, "\n%*s", WORDS_INDENT, "");
        text_wrap(out, text.data, (struct text_box){WORDS_INDENT, WORDS_INDENT, limit});
    }
    buf_release(&text);
}

static void print_cell(const struct table *t, struct buf *out, uint32_t c, const struct layout *l,
                       struct piece p)
{
    uint32_t width = l->width[c], pad = width > p.columns ? width - p.columns : 0;
    bool last = c + 1 == t->n_columns, left = t->columns[c].left;
    if (last && l->below) add_words(out, &p, l->limit);
    if (l->gone[c]) return;
    if (c > 0) add_blanks(out, TABLE_GAP);
    if (!left) add_blanks(out, pad);
    if (p.columns <= width)
        add_piece(out, &p);
    else
        add_shortened(out, &p, width);
    if (left && !last) add_blanks(out, pad);
}

static void print_gone(const struct table *t, struct stream *s, const struct layout *l)
{
    const char *between = "not shown here, --wide does: ";
    for (uint32_t c = 0; c < t->n_columns; c++) {
        if (!l->gone[c] || (l->below && c + 1 == t->n_columns)) continue;
        if (*between == 'n') buf_add_str(&s->out, s->style.dim);
        buf_add_str(&s->out, between);
        text_plain(&s->out, t->columns[c].title, strlen(t->columns[c].title));
        between = ", ";
    }
    if (*between == ',') buf_printf(&s->out, "%s\n", s->style.plain);
}

/* All cells are measured before the first is printed, so a table is held in memory as a whole, but sent row by row. */
static void print_text(struct table *t, struct stream *s, const char *head)
{
    struct layout l = {.limit = s->style.width};
    struct buf titles[TABLE_MAX_COLUMNS]; /* a title may be the unit that a document gave */
    for (uint32_t c = 0; c < t->n_columns; c++) {
        titles[c] = (struct buf)BUF_INIT;
        text_plain(&titles[c], t->columns[c].title, strlen(t->columns[c].title));
        if (titles[c].failed) s->out.failed = 1;
    }
    measure(t, titles, l.width);
    fit(t, &l);
    buf_add_str(&s->out, head);
    for (uint32_t c = 0; c < t->n_columns; c++) {
        struct piece title = {titles[c].data, titles[c].len, text_columns(titles[c].data, titles[c].len),
                              NULL};
        print_cell(t, &s->out, c, &l, title);
        buf_release(&titles[c]);
    }
    buf_add_str(&s->out, s->style.plain);
    buf_add_char(&s->out, '\n');
    for (size_t i = 0; i < t->n_cells && s->status == TARE_OK; i++) {
        const struct table_cell *cell = &t->cells[i];
        uint32_t c = (uint32_t)(i % t->n_columns);
        struct piece piece = {t->text.data + cell->at, cell->len, cell->columns, &s->style};
        print_cell(t, &s->out, c, &l, piece);
        if (c + 1 < t->n_columns) continue;
        buf_add_char(&s->out, '\n');
        stream_poll(s);
    }
    print_gone(t, s, &l);
}

/* `bold` is how many bytes of the cell are bold, from its start: the marks go around them, outside of what is
 * escaped. */
static void print_md(struct table *t, struct stream *s)
{
    struct buf *b = &s->out;
    for (uint32_t c = 0; c < t->n_columns; c++) {
        buf_add_str(b, "| ");
        markup_md(b, t->columns[c].title);
        buf_add_char(b, ' ');
    }
    buf_add_str(b, "|\n");
    for (uint32_t c = 0; c < t->n_columns; c++) buf_add_str(b, t->columns[c].left ? "|---" : "|---:");
    buf_add_str(b, "|\n");
    for (size_t i = 0; i < t->n_cells && s->status == TARE_OK; i++) {
        const struct table_cell *cell = &t->cells[i];
        const char *text = t->text.data + cell->at;
        buf_add_str(b, cell->bold ? "| **" : "| ");
        markup_md_bytes(b, text, cell->bold);
        if (cell->bold) buf_add_str(b, "**");
        markup_md_bytes(b, text + cell->bold, cell->len - cell->bold);
        buf_add_char(b, ' ');
        if ((i + 1) % t->n_columns) continue;
        buf_add_str(b, "|\n");
        stream_poll(s);
    }
}

bool table_end(struct table *t, struct stream *s, const char *head)
{
    bool any = is_printable(t, s);
    if (any) print_text(t, s, head);
    table_release(t);
    return any;
}

bool table_end_md(struct table *t, struct stream *s)
{
    bool any = is_printable(t, s);
    if (any) print_md(t, s);
    table_release(t);
    return any;
}

static void html_cell(struct buf *b, const char *tag, bool left, const char *text)
{
    buf_printf(b, "<%s%s>", tag, left ? "" : " class=\"n\"");
    markup_xml(b, text);
    buf_printf(b, "</%s>", tag);
}

static void print_html(struct table *t, struct stream *s)
{
    struct buf *b = &s->out, cell = BUF_INIT;
    buf_add_str(b, "<table>\n<tr>");
    for (uint32_t c = 0; c < t->n_columns; c++) html_cell(b, "th", t->columns[c].left, t->columns[c].title);
    for (size_t i = 0; i < t->n_cells && s->status == TARE_OK; i++) {
        uint32_t c = (uint32_t)(i % t->n_columns);
        buf_clear(&cell);
        buf_add(&cell, t->text.data + t->cells[i].at, t->cells[i].len);
        if (cell.failed) b->failed = 1;
        if (c == 0) buf_add_str(b, "</tr>\n<tr>");
        html_cell(b, "td", t->columns[c].left, cell.data ? cell.data : "");
        stream_poll(s);
    }
    buf_add_str(b, "</tr>\n</table>\n");
    buf_release(&cell);
}

bool table_end_html(struct table *t, struct stream *s)
{
    bool any = is_printable(t, s);
    if (any) print_html(t, s);
    table_release(t);
    return any;
}
