/* SPDX-License-Identifier: MIT
 * layer_columns.h - what can be said of a layer, one row each: name, unit, where it stands in the document. Tables for
 * people, Markdown, CSV and sorting all come from these rows. Reads documents, adds nothing. */
#ifndef REPORT_LAYER_COLUMNS_H
#define REPORT_LAYER_COLUMNS_H

#include "core/buf.h"
#include "core/vec.h"
#include "report/table.h"
#include "run/run.h"

enum layer_kind {
    LAYER_TEXT,
    LAYER_NAME,      /* long: cut at the front for people */
    LAYER_COUNT,     /* 37.75 M */
    LAYER_BYTES,     /* 1.50 MiB */
    LAYER_NS,        /* 1.23 ms */
    LAYER_SHARE,     /* 12.3 % */
    LAYER_RATIO,     /* 2.41 */
    LAYER_RATE,      /* 37.8 GFLOP/s */
    LAYER_BANDWIDTH, /* 12.1 GB/s */
    LAYER_MAC_SHARE  /* of all multiply-accumulates of the case: no field, computed */
};

struct layer_column {
    const char *column; /* of CSV, and for --sort */
    const char *title;
    enum layer_kind kind;
    size_t at;    /* offset in struct run_layer */
    bool real;    /* a known_f64; else a known_u64. Not of texts */
    bool timed;   /* shown where layers were timed */
    bool weighed; /* shown where they were only weighed */
};

extern const struct layer_column layer_columns[]; /* ends with column NULL */
enum { LAYER_COLUMNS_MAX = TABLE_MAX_COLUMNS };

/* By its name in CSV; NULL: none. */
const struct layer_column *layer_column_find(const char *name);

bool layer_is_text(const struct layer_column *column);
bool layer_is_timed(const struct run_case *c);

/* The columns worth showing of this case: made for it, and known of at least one layer. Returns how many. */
size_t layer_columns_shown(const struct run_case *c, const struct layer_column *out[LAYER_COLUMNS_MAX]);

/* The number in a column; false: unknown, or a text. */
bool layer_number(const struct layer_column *column, const struct run_case *c, const struct run_layer *l,
                  double *out);
const char *layer_text(const struct layer_column *column,
                       const struct run_layer *l); /* of a text; may be NULL */
/* Either for people; "-" when unknown. */
void layer_cell(struct buf *b, const struct layer_column *column, const struct run_case *c,
                const struct run_layer *l);

/* A name of a layer: the end of a long one, which tells more than its beginning. */
void layer_name_text(struct buf *b, const char *name);

/* ---- which layers, in which order ---- */

struct layer_order {
    VEC(const struct run_layer *) items;
    size_t left_out; /* layers beyond `top` */
};

/* Greatest first by a column (texts: ascending); NULL: as they stand. The first `top` of them, 0: all. */
tare_status layer_order_make(struct layer_order *out, const struct run_case *c, const struct layer_column *by,
                             size_t top, tare_error *err);
void layer_order_release(struct layer_order *o);

struct layer_rows {
    const struct run_case *c; /* whose totals shares refer to */
    const struct run_layer *const *layers;
    size_t n;
};
/* Those layers in these columns; or in the columns worth showing. */
void layer_rows_table(struct table *t, const struct layer_rows *rows, const struct layer_column **columns,
                      size_t n);
void layer_table(struct table *t, const struct run_case *c, const struct layer_order *order);

/* ---- sums: layers added up by what they have in common ---- */

struct layer_sums {
    VEC(struct run_layer) items; /* named by what they share; the most time first, else MACs, else bytes */
};

/* By a column of texts; layers without one are summed under "-". A sum of which a part is unknown is a lower bound.
 * Release with vec_release(&out->items). */
tare_status layer_sums_make(struct layer_sums *out, const struct run_case *c, const struct layer_column *by,
                            tare_error *err);

/* ---- for people: layer_text.c. The same in `tare inspect`, `tare bench --layers` and `tare report` ---- */

struct layer_view {
    size_t top;                      /* layers shown; 0: all */
    const struct layer_column *sort; /* NULL: the usual */
    bool in_order;                   /* as they stand in the document; `sort` is NULL */
};
#define LAYER_VIEW_INIT {10, NULL, false}

/* Of every case that has layers: the costly ones, sums by operator and by group, how they were timed. */
void layer_text_write(struct stream *s, const struct run *run, const struct layer_view *view);

/* What `tare inspect` and `tare report` sort by when nobody says: time where there is one, else MACs. */
const struct layer_column *layer_default_order(const struct run_case *c);

#endif
