/* SPDX-License-Identifier: MIT
 * gpu_table.h - how the parts of a GPU report print their tables. */
#ifndef REPORT_GPU_TABLE_H
#define REPORT_GPU_TABLE_H

#include "core/fmt.h"
#include "report/table.h"
#include "report/text.h"

enum { ROWS_SHOWN = 20, NAME_SHOWN = 60 };

/* A cell of a table: what of the row stands in it. */
#define FILL(name, type, how)                                  \
    static void fill_##name(struct buf *b, const void *row)    \
    {                                                          \
        const struct type *r = row;                            \
        how;                                                   \
    }

#define PRINT_TABLE(s, list, columns)                                               \
    do {                                                                            \
        struct table t_;                                                            \
        table_of(&t_, columns, sizeof columns / sizeof *columns);                   \
        for (size_t i_ = 0; i_ < (list).n && i_ < ROWS_SHOWN; i_++)                 \
            table_row(&t_, (list).at[i_]);                                          \
        table_end(&t_, s, s->style.dim);                                                       \
        if ((list).n > ROWS_SHOWN) {                                                \
            struct buf more_ = BUF_INIT;                                            \
            buf_printf(&more_, "and %zu more (--json has all)", (list).n - ROWS_SHOWN); \
            text_note(s, &more_);                                                   \
        }                                                                           \
    } while (0)

#endif
