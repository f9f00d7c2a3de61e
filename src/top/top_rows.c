/* SPDX-License-Identifier: MIT
 * top_rows.c - what `tare top` tells of a process, which ones stand in its table, and in what order. Draws nothing. */
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "top/top.h"

void top_view_release(struct top_view *v)
{
    vec_release(&v->lines.at);
    map_u64_release(&v->users);
    for (size_t i = 0; i < v->user_names.at.n; i++) mem_free(v->user_names.at.items[i]);
    vec_release(&v->user_names.at);
}

/* ---- users ---- */

/* A user's name, or the number; remembered. "-": unknown. Without memory it is found again each time. */
static const char *user_name(struct top_view *v, uid_t uid)
{
    static char number[24];
    if (uid == (uid_t)-1) return "-";
    uint64_t *known = map_u64_find(&v->users, uid);
    if (known) return v->user_names.at.items[*known];
    struct passwd entry, *found = NULL;
    char space[2048];
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    if (getpwuid_r(uid, &entry, space, sizeof space, &found) != 0) found = NULL;
    char *name = mem_strdup(found ? found->pw_name : number);
    if (!name || vec_push(&v->user_names.at, name, NULL) != TARE_OK) {
        mem_free(name);
        return number;
    }
    map_u64_put(&v->users, uid, v->user_names.at.n - 1, NULL);
    return name;
}

/* ---- what is told of a process ---- */

void top_fields_of(struct top_fields *out, struct top_view *v, const struct proc_row *r)
{
    const char *user = v ? user_name(v, r->uid) : NULL;
    const struct top_field fields[TOP_FIELDS] = {
        {"pid", TOP_COUNT, r->pid, NULL, "PID", 7, 0, TOP_SORT_PID},
        {"parent", TOP_COUNT, r->parent, NULL, NULL, 0, 0, TOP_SORTS},
        {"user", TOP_WORD, NAN, user, "USER", 9, 64, TOP_SORTS},
        {"state", TOP_WORD, NAN, out->state, NULL, 0, 0, TOP_SORTS},
        {"cpu", TOP_SHARE, r->cpu, NULL, "CPU%", 6, 0, TOP_SORT_CPU},
        {"cpu_s", TOP_SECONDS, r->user_s + r->system_s, NULL, NULL, 0, 0, TOP_SORTS},
        {"rss_bytes", TOP_SIZE, (double)r->rss_bytes, NULL, "RSS", 6, 0, TOP_SORT_MEMORY},
        {"threads", TOP_COUNT, r->threads, NULL, "THR", 4, 56, TOP_SORTS},
        {"read_bytes_per_s", TOP_RATE, r->read_rate, NULL, "READ/s", 6, 72, TOP_SORT_IO},
        {"write_bytes_per_s", TOP_RATE, r->write_rate, NULL, "WRIT/s", 6, 72, TOP_SORT_IO},
        {"name", TOP_WORD, NAN, r->name, NULL, 0, 0, TOP_SORTS},
        {"command", TOP_WORD, NAN, r->command, NULL, 0, 0, TOP_SORTS}, /* the rest of the table's row is its own */
    };
    memcpy(out->at, fields, sizeof fields);
    out->state[0] = r->state;
    out->state[1] = 0;
}

/* ---- the order ---- */

/* What orders a row, the greatest first: the sum of its columns of that order. Unknown comes after nothing at all;
 * numbers of processes count upwards. */
static double sort_key(const struct proc_row *r, enum top_sort sort)
{
    struct top_fields f;
    double sum = 0;
    top_fields_of(&f, NULL, r);
    for (size_t i = 0; i < TOP_FIELDS; i++)
        if (f.at[i].sort == sort) sum += isnan(f.at[i].number) ? -1 : f.at[i].number;
    return sort == TOP_SORT_PID ? -sum : sum;
}

enum { NOBODY = -1 };

struct ordered {
    double key;
    uint64_t rss; /* among equals the larger ones first */
    size_t row;
};

struct relation {             /* of a row; the others are rows too, or NOBODY */
    long parent, first, next; /* first child; next of the same parent: both in the order of the table */
    bool keep, inside;        /* inside: of the program that is watched */
};

struct arrangement {
    struct top_view *v;
    const struct top_data *d;
    struct ordered *order; /* all rows, first to be shown first */
    struct relation *of;
};

static int by_key(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    if (x->rss != y->rss) return x->rss < y->rss ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row); /* the rows are by pid */
}

/* ---- relations ---- */

static long row_of(const struct top_data *d, pid_t pid)
{
    const struct proc_row *r = top_row_of(d, pid);
    return r ? r - d->rows : NOBODY;
}

static bool matches(struct top_view *v, const struct proc_row *r)
{
    char pid[24];
    if (!v->filter[0]) return true;
    snprintf(pid, sizeof pid, "%d", (int)r->pid);
    return strcasestr(r->name, v->filter) || strcasestr(r->command, v->filter) ||
           strcmp(pid, v->filter) == 0 || strcasestr(user_name(v, r->uid), v->filter);
}

/* Is the row the watched program or a descendant of it? Steps are bounded: parents could form a ring while they die. */
static bool is_inside(const struct arrangement *a, long row)
{
    if (!a->d->program) return true;
    for (size_t steps = 0; row != NOBODY && steps <= a->d->n_rows; steps++) {
        if (a->d->rows[row].pid == a->d->program) return true;
        row = a->of[row].parent;
    }
    return false;
}

/* In a tree, those above a process that matches stay too. */
static void keep_rows(struct arrangement *a)
{
    struct relation *of = a->of;
    for (size_t i = 0; i < a->d->n_rows; i++) of[i].inside = is_inside(a, (long)i);
    for (size_t i = 0; i < a->d->n_rows; i++) {
        if (!of[i].inside || !matches(a->v, &a->d->rows[i])) continue;
        a->v->matching++;
        of[i].keep = true;
        if (!a->v->tree) continue;
        for (long up = of[i].parent; up != NOBODY && of[up].inside && !of[up].keep; up = of[up].parent)
            of[up].keep = true;
    }
}

static void add_line(struct arrangement *a, long row, unsigned depth)
{
    a->v->lines.at.items[a->v->lines.at.n++] =
        (struct top_line){(size_t)row, depth}; /* room for all was made */
}

/* Children in the order of the table: the last one is linked first. */
static void link_children(struct arrangement *a)
{
    for (size_t i = a->d->n_rows; i > 0; i--) {
        long row = (long)a->order[i - 1].row, up = a->of[row].parent;
        if (!a->of[row].keep || up == NOBODY || !a->of[up].keep) continue;
        a->of[row].next = a->of[up].first;
        a->of[up].first = row;
    }
}

/* One root with all below it: down, else aside, else up. */
static void add_tree(struct arrangement *a, long root)
{
    unsigned depth = 0;
    for (long at = root; at != NOBODY;) {
        add_line(a, at, depth);
        if (a->of[at].first != NOBODY) {
            at = a->of[at].first;
            depth++;
            continue;
        }
        while (at != root && a->of[at].next == NOBODY) {
            at = a->of[at].parent;
            depth--;
        }
        at = at == root ? NOBODY : a->of[at].next;
    }
}

/* Sorted first, related then: the children of a process come in the order of the table too. */
static void arrange_rows(struct arrangement *a)
{
    const struct top_data *d = a->d;
    for (size_t i = 0; i < d->n_rows; i++) {
        const struct proc_row *r = &d->rows[i];
        a->order[i] = (struct ordered){sort_key(r, a->v->sort), r->rss_bytes, i};
        a->of[i] = (struct relation){r->parent == r->pid ? NOBODY : row_of(d, r->parent), NOBODY, NOBODY,
                                     false, false};
    }
    qsort(a->order, d->n_rows, sizeof *a->order, by_key);
    keep_rows(a);
    if (a->v->tree) link_children(a);
    for (size_t i = 0; i < d->n_rows; i++) {
        long row = (long)a->order[i].row, up = a->of[row].parent;
        if (!a->of[row].keep) continue;
        if (!a->v->tree)
            add_line(a, row, 0);
        else if (up == NOBODY || !a->of[up].keep)
            add_tree(a, row);
    }
}

/* All room is made beforehand, so that arranging itself cannot fail half way. */
tare_status top_arrange(struct top_view *v, const struct top_data *d, tare_error *err)
{
    size_t n = d->n_rows;
    struct arrangement a = {.v = v, .d = d};
    vec_clear(&v->lines.at);
    v->matching = 0;
    if (n == 0) return TARE_OK;
    tare_status s = vec_reserve(&v->lines.at, n, err);
    if (s < 0) return s;
    a.order = mem_new(n, sizeof *a.order);
    a.of = mem_new(n, sizeof *a.of);
    if (a.order && a.of)
        arrange_rows(&a);
    else
        s = error_set(err, TARE_NOMEM, "out of memory for the table of processes");
    mem_free(a.order);
    mem_free(a.of);
    return s;
}
