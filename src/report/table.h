/* SPDX-License-Identifier: MIT
 * table.h - rows and columns, as aligned text, Markdown or HTML. Cells are added left to right, row after row, by hand
 * or by the columns themselves; the widths are known when all are there. In text the last column is never padded. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>

#include "report/sink.h"

struct table_column {
    const char *title;
    bool left; /* else to the right: numbers */
};

/* A column that knows what stands in it: of a row, which is whatever table_row() is given. */
struct table_fill {
    const char *title;
    bool left;
    void (*fill)(struct buf *b, const void *row);
};

struct table_cell {
    size_t at, len; /* in text */
    uint32_t columns;
    uint32_t bold; /* of its first bytes; Markdown alone shows it */
};
#define TABLE_MAX_COLUMNS 24

struct table {
    struct table_column columns[TABLE_MAX_COLUMNS]; /* their titles are borrowed */
    const struct table_fill *fills;                 /* NULL: cells are added by hand */
    uint32_t n_columns;
    const char *const
        *spare; /* titles of columns that a narrow terminal goes without, the first of them first; NULL */
    bool words; /* the last column holds sentences: below their row, where there is no room */
    struct buf text;
    struct table_cell *cells;
    size_t n_cells, cap;
    bool open; /* the last cell: it is whole when the next begins, or when the table is printed */
};

void table_init(struct table *t, const struct table_column *columns, uint32_t n_columns);
void table_of(struct table *t, const struct table_fill *columns, uint32_t n_columns);

struct buf *table_cell(struct table *t); /* begin the next cell: what is added to the buf stands in it */
bool table_cell_is_empty(const struct table *t);  /* the open one */
void table_row(struct table *t, const void *row); /* all cells of one row, of a table_of() */

void table_drop_empty(
    struct table *t); /* columns in which every cell is empty or "-", once all rows are there */

/* They print and release; of a table without a row nothing is printed, and the answer is false. `head` is how the
 * titles look, one of the stream's style. In Markdown and HTML nothing in a cell can open a tag, a link or a
 * cell. */
bool table_end(struct table *t, struct stream *s, const char *head);
bool table_end_md(struct table *t, struct stream *s);
bool table_end_html(struct table *t, struct stream *s);

#endif
