/* SPDX-License-Identifier: MIT
 * test_judgement_pages.c - docs/judgement.md and docs/diagnosis.md against the code, in both directions: what the code
 * can say stands there, and what stands there the code can say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "analyze/judge/finding.h"
#include "analyze/watch/derive.h"
#include "analyze/watch/diagnose.h"
#include "core/file.h"
#include "core/unit.h"

/* ---- a section of a page: its text up to the next heading ---- */

struct section {
    char text[16384];
    char path[500], heading[64];
};

static struct section *read_section(const char *page, const char *heading)
{
    struct section *s = calloc(1, sizeof *s);
    struct file_view file = FILE_VIEW_INIT;
    tare_error err = TARE_ERROR_INIT;
    const char *root = getenv("TARE_SRC");
    assert_non_null(s);
    snprintf(s->path, sizeof s->path, "%s/docs/%s", root ? root : ".", page);
    snprintf(s->heading, sizeof s->heading, "\n## %s\n", heading);
    if (file_map(s->path, &file, &err) < 0) fail_msg("%s", err.text);
    char *all = strndup((const char *)file.data, file.size);
    assert_non_null(all);
    char *from = strstr(all, s->heading);
    if (!from) {
        fail_msg("%s has no section%s", s->path, s->heading);
        return s;
    }
    char *end = strstr(from + 1, "\n## ");
    size_t n = end ? (size_t)(end + 1 - from) : strlen(from);
    assert_true(n < sizeof s->text);
    memcpy(s->text, from, n);
    free(all);
    file_unmap(&file);
    return s;
}

/* The names in `..` of [at, end), the next one at each call; false: no more. ".p50" goes on from "latency.mean". */
static bool next_name(const char **at, const char *end, char name[64])
{
    const char *open = memchr(*at, '`', (size_t)(end - *at));
    const char *close = open ? memchr(open + 1, '`', (size_t)(end - open - 1)) : NULL;
    if (!close) return false;
    size_t n = (size_t)(close - open - 1), kept = 0;
    char *dot = strrchr(name, '.');
    if (open[1] == '.' && dot) kept = (size_t)(dot - name);
    assert_true(kept + n < 64);
    memcpy(name + kept, open + 1, n);
    name[kept + n] = 0;
    *at = close + 1;
    return true;
}

/* ---- rows of a table ---- */

struct page_row {
    char names[12][64]; /* of the first column */
    size_t n_names;
    char cell[4][400]; /* the columns after it, without blanks around */
};

struct page_rows {
    struct page_row at[80];
    size_t n;
};

static void read_row(struct page_row *row, const char *line, const char *end)
{
    const char *bar = memchr(line + 1, '|', (size_t)(end - line - 1));
    const char *at = line;
    char name[64] = "";
    assert_non_null(bar);
    while (next_name(&at, bar, name)) {
        assert_true(row->n_names < 12);
        memcpy(row->names[row->n_names++], name, sizeof name);
    }
    for (size_t c = 0; c < 4; c++) {
        const char *from = bar + 1, *stop = from < end ? memchr(from, '|', (size_t)(end - from)) : NULL;
        if (!stop) return;
        bar = stop;
        while (*from == ' ') from++;
        while (stop > from && stop[-1] == ' ') stop--;
        snprintf(row->cell[c], sizeof row->cell[c], "%.*s", (int)(stop - from), from);
    }
}

/* The table under `head`: its rows whose first column begins with a name. */
static struct page_rows *read_rows(const struct section *s, const char *head)
{
    struct page_rows *rows = calloc(1, sizeof *rows);
    const char *line = strstr(s->text, head);
    assert_non_null(rows);
    if (!line) fail_msg("%s:%s has no table %s", s->path, s->heading, head);
    for (; line && *line == '|'; line = strchr(line, '\n') + 1) {
        if (strncmp(line, "| `", 3) != 0) continue;
        assert_true(rows->n < 80);
        read_row(&rows->at[rows->n++], line, strchr(line, '\n'));
    }
    return rows;
}

static const struct page_row *row_of(const struct page_rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; k < rows->at[i].n_names; k++)
            if (strcmp(rows->at[i].names[k], name) == 0) return &rows->at[i];
    fail_msg("%s is not on the page", name);
    return NULL;
}

static void expect_all_known(const struct page_rows *rows, bool (*known)(const char *name))
{
    for (size_t i = 0; i < rows->n; i++)
        for (size_t k = 0; k < rows->at[i].n_names; k++)
            if (!known(rows->at[i].names[k])) fail_msg("%s: only the page has it", rows->at[i].names[k]);
}

/* ---- judgement.md ---- */

static const char *const finding_ids[] = {
#define ID(id, ...) id,
    FINDING_MAP(ID, ID, ID, ID, ID, ID)
#undef ID
};
#define N_FINDINGS (sizeof finding_ids / sizeof *finding_ids)

static bool is_finding(const char *name)
{
    for (size_t i = 0; i < N_FINDINGS; i++)
        if (strcmp(finding_ids[i], name) == 0) return true;
    return false;
}

static void findings_are_on_the_page(void **state)
{
    (void)state;
    struct section *s = read_section("judgement.md", "Findings");
    struct page_rows *rows = read_rows(s, "| id | says |");
    for (size_t i = 0; i < N_FINDINGS; i++) assert_true(*row_of(rows, finding_ids[i])->cell[0]);
    expect_all_known(rows, is_finding);
    free(rows);
    free(s);
}

static bool is_measure(const char *name)
{
    const struct measure *m = measure_find(name);
    return m && strcmp(m->name, name) == 0;
}

static void measures_are_on_the_page_with_their_units(void **state)
{
    static const char *const units[] = {
        [MEASURE_TIME] = "time", [MEASURE_RATE] = "rate", [MEASURE_BYTES] = "memory", [MEASURE_PLAIN] = "share"};
    (void)state;
    struct section *s = read_section("judgement.md", "Targets");
    struct page_rows *rows = read_rows(s, "| metric | unit | of a case |");
    for (const struct measure *m = measure_table; m->name; m++)
        if (strcmp(row_of(rows, m->name)->cell[0], units[m->kind]) != 0) fail_msg("%s: not the unit", m->name);
    expect_all_known(rows, is_measure);
    free(rows);
    rows = read_rows(s, "| unit | written |");
    static const enum unit_kind kinds[] = {[MEASURE_TIME] = UNIT_TIME,
                                           [MEASURE_RATE] = UNIT_RATE,
                                           [MEASURE_BYTES] = UNIT_MEMORY,
                                           [MEASURE_PLAIN] = UNIT_SHARE};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const char *cell = row_of(rows, units[i])->cell[0], *at = cell;
        char name[64] = "";
        double v = 1;
        while (next_name(&at, cell + strlen(cell), name))
            if (!unit_apply(kinds[i], name, &v)) fail_msg("%s is no unit of %s", name, units[i]);
        assert_true(at > cell);
    }
    free(rows);
    free(s);
}

static void objectives_are_on_the_page(void **state)
{
    (void)state;
    struct section *s = read_section("judgement.md", "Recommendations");
    const char *at = s->text;
    char name[64] = "";
    size_t seen = 0;
    while (next_name(&at, s->text + strlen(s->text), name)) {
        size_t i = 0;
        while (objective_names[i] && strcmp(objective_names[i], name) != 0) i++;
        if (!objective_names[i]) fail_msg("%s: only the page has it", name);
        seen |= (size_t)1 << i;
    }
    for (size_t i = 0; objective_names[i]; i++)
        if (!(seen >> i & 1)) fail_msg("%s is not on the page", objective_names[i]);
    free(s);
}

/* ---- diagnosis.md ---- */

static bool is_diagnosis(const char *name)
{
    for (const struct diagnosis *r = diagnosis_table; r->id; r++)
        if (strcmp(r->id, name) == 0) return true;
    return strcmp(name, "memory.leak") == 0; /* a trend, not conditions */
}

static void diagnoses_are_on_the_page(void **state)
{
    (void)state;
    struct section *s = read_section("diagnosis.md", "Diagnosis");
    struct page_rows *rows = read_rows(s, "| finding | severity | share | conditions |");
    for (const struct diagnosis *r = diagnosis_table; r->id; r++) {
        const struct page_row *row = row_of(rows, r->id);
        char share[16];
        snprintf(share, sizeof share, "%.0f %%", r->share * 100);
        if (strcmp(row->cell[0], r->severity) != 0 || strcmp(row->cell[1], share) != 0)
            fail_msg("%s: %s, %s in the code, %s, %s on the page", r->id, r->severity, share, row->cell[0],
                     row->cell[1]);
        for (size_t i = 0; i < DIAGNOSIS_CONDITIONS && r->all[i].op; i++) {
            const char *name = course_names[r->all[i].quantity];
            if (!strstr(row->cell[2], name)) fail_msg("%s: no word of %s", r->id, name);
        }
    }
    row_of(rows, "memory.leak");
    expect_all_known(rows, is_diagnosis);
    free(rows);
    free(s);
}

static bool is_derived(const char *name)
{
    for (const struct derived *d = derived_table; d->name; d++)
        if (strcmp(d->name, name) == 0) return true;
    return false;
}

static void quantities_are_on_the_page(void **state)
{
    (void)state;
    struct section *s = read_section("diagnosis.md", "Quantities");
    struct page_rows *rows = read_rows(s, "| name | unit | what it is |");
    for (const struct derived *d = derived_table; d->name; d++) {
        const struct page_row *row = row_of(rows, d->name);
        if (strcmp(row->cell[0], d->unit) != 0 || strcmp(row->cell[1], d->help) != 0)
            fail_msg("%s: \"%s, %s\" in the code, \"%s, %s\" on the page", d->name, d->unit, d->help,
                     row->cell[0], row->cell[1]);
    }
    expect_all_known(rows, is_derived);
    free(rows);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_are_on_the_page),
        cmocka_unit_test(measures_are_on_the_page_with_their_units),
        cmocka_unit_test(objectives_are_on_the_page),
        cmocka_unit_test(diagnoses_are_on_the_page),
        cmocka_unit_test(quantities_are_on_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
