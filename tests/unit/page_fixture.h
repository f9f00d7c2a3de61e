/* SPDX-License-Identifier: MIT
 * page_fixture.h - tables of the pages in docs/, for tests that hold them against the code. */
#ifndef TESTS_PAGE_FIXTURE_H
#define TESTS_PAGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/file.h"

struct page_table {
    char cell[64][4][200]; /* the first columns of each row, without blanks and `` around; cut where longer */
    size_t n;
};

static inline void page_cell(char out[200], const char *from, size_t n)
{
    while (n && strchr(" `", *from)) from++, n--;
    while (n && strchr(" `", from[n - 1])) n--;
    snprintf(out, 200, "%.*s", (int)n, from);
}

/* The table of docs/PAGE whose first line begins with `head`: the `nth` of them, from 0. */
static inline struct page_table *page_table(const char *page, const char *head, int nth)
{
    struct page_table *t = calloc(1, sizeof *t);
    struct file_view file = FILE_VIEW_INIT;
    const char *root = getenv("TARE_SRC");
    char path[500];
    tare_error err = TARE_ERROR_INIT;
    assert_non_null(t);
    snprintf(path, sizeof path, "%s/docs/%s", root ? root : ".", page);
    if (file_map(path, &file, &err) < 0) fail_msg("%s", err.text);
    char *text = strndup((const char *)file.data, file.size), *rest = text, *line;
    bool inside = false;
    while ((line = strsep(&rest, "\n"))) {
        if (strncmp(line, head, strlen(head)) == 0 && nth-- == 0)
            inside = true;
        else if (!inside || strncmp(line, "|--", 3) == 0)
            continue;
        else if (line[0] != '|')
            break;
        else {
            assert_true(t->n < 64);
            for (int c = 0; c < 4 && *line; c++) {
                size_t n = strcspn(++line, "|");
                page_cell(t->cell[t->n][c], line, n);
                line += n;
            }
            t->n++;
        }
    }
    free(text);
    file_unmap(&file);
    if (!t->n) fail_msg("%s: no table %s", path, head);
    return t;
}

/* Does a cell name it? A cell may name several: "`name`, `file`". */
static inline bool page_names(const struct page_table *t, int column, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < t->n; i++)
        for (const char *at = t->cell[i][column]; (at = strstr(at, name)); at++) {
            bool begins = at == t->cell[i][column] || strchr(" `", at[-1]);
            if (begins && (!at[n] || strchr(" `,", at[n]))) return true;
        }
    return false;
}

#endif
