/* SPDX-License-Identifier: MIT
 * table.h - aligned columns of text. Cells are added left to right, row after row; the widths are known
 * when all are there, then table_print() writes. The last column is never padded. */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include <stdbool.h>

#include "report/sink.h"

struct table_column {
    const char *title;
    bool left; /* else to the right: numbers */
};

struct table_cell {
    size_t at, len; /* in text */
    uint32_t columns;
};

struct table {
    const struct table_column *columns; /* borrowed */
    uint32_t n_columns;
    struct buf text;
    struct table_cell *cells;
    size_t n_cells, cap;
    size_t cell_start; /* the open cell's first byte in text */
};

void table_init(struct table *t, const struct table_column *columns, uint32_t n_columns);
void table_release(struct table *t);

/* Add to the returned buf, then close the cell. */
struct buf *table_cell(struct table *t);
void table_cell_end(struct table *t);

/* `head_on`, `head_off` surround the line of titles (a terminal's bold); "" for none. */
void table_print(struct table *t, struct stream *s, const char *head_on, const char *head_off);

#endif
