/* SPDX-License-Identifier: MIT
 * db.h - one connection to a database that speaks SQL, whichever it is: statements, parameters, rows, errors. A driver
 * is a row of functions (sqlite.c, postgres.c); all that the store asks and changes is written once above it. Private
 * to src/store. Statements are SQLite's spelling of what both know; postgres.c says what it puts in its place. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct db_driver;
struct store_health;
struct db_conn { /* a driver's own begins with it */
    const struct db_driver *driver;
};
struct db_stmt {
    const struct db_driver *driver;
};

enum db_result { DB_ROW, DB_DONE, DB_BAD };

struct db_driver {
    struct db_stmt *(*prepare)(struct db_conn *c, const char *sql); /* NULL: see fail */
    void (*drop)(struct db_stmt *q);
    void (*done)(struct db_stmt *q); /* forgets rows and parameters */
    void (*text)(struct db_stmt *q, int at, const char *text);
    void (*integer)(struct db_stmt *q, int at, int64_t v);
    void (*real)(struct db_stmt *q, int at, double v);
    void (*blob)(struct db_stmt *q, int at, const void *data, size_t size);
    enum db_result (*next)(struct db_stmt *q);
    bool (*null_at)(struct db_stmt *q, int column);
    const char *(*text_at)(struct db_stmt *q, int column);
    int64_t (*int_at)(struct db_stmt *q, int column);
    double (*real_at)(struct db_stmt *q, int column);
    const void *(*blob_at)(struct db_stmt *q, int column);
    size_t (*bytes_at)(struct db_stmt *q, int column);
    int64_t (*changes)(struct db_conn *c); /* rows that the last statement changed */
    int64_t (*last_id)(struct db_conn *c); /* the number that the last new row got */
    bool (*in_transaction)(struct db_conn *c);
    tare_status (*fail)(struct db_conn *c, const char *doing, tare_error *err);
    tare_status (*examine)(struct db_conn *c, struct store_health *h,
                           tare_error *err); /* trouble, bytes, free */
    tare_status (*backup)(struct db_conn *c, const char *to, tare_error *err);
};

/* Parameters count from 1; what is not set is NULL. Borrowed until db_done(). */
void db_text(struct db_stmt *q, int at, const char *text); /* NULL: null */
void db_int(struct db_stmt *q, int at, int64_t v);
void db_real(struct db_stmt *q, int at, double v);
void db_blob(struct db_stmt *q, int at, const void *data, size_t size);

enum db_result db_next(struct db_stmt *q);
/* Columns count from 0; good until the next db_next() or db_done(). */
bool db_null_at(struct db_stmt *q, int column);
const char *db_column(struct db_stmt *q, int column); /* NULL: null */
int64_t db_int_at(struct db_stmt *q, int column);     /* 0: null */
double db_real_at(struct db_stmt *q, int column);
const void *db_blob_at(struct db_stmt *q, int column); /* NULL: null, or empty */
size_t db_bytes_at(struct db_stmt *q, int column);     /* of a blob */

int64_t db_changes(struct db_conn *c);
int64_t db_last_id(struct db_conn *c);

#endif
