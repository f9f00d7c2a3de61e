/* SPDX-License-Identifier: MIT
 * postgres_conn.h - one connection to PostgreSQL as a driver of db.h. Private to src/store. libpq is loaded where it
 * is asked for, so that no other command pays for it. A connection that went away is made anew by the next statement
 * outside of a transaction; one inside fails as a whole, and its caller may try again. */
#ifndef STORE_POSTGRES_CONN_H
#define STORE_POSTGRES_CONN_H

#include "store/db.h"

struct pg_options {
    const char *url;  /* postgresql://.., which may hold a password: told to nobody */
    unsigned wait_ms; /* for a lock of another connection */
};

tare_status pg_connect(struct db_conn **out, const struct pg_options *o, tare_error *err);
void pg_disconnect(struct db_conn *c);   /* NULL is fine */
const char *pg_where(struct db_conn *c); /* the address without password */

/* Statements in our spelling, which make or change tables; several at once. */
tare_status pg_define(struct db_conn *c, const char *sql, tare_error *err);
/* One statement in PostgreSQL's own spelling; *out is its first column as a number, where it has one. */
tare_status pg_ask(struct db_conn *c, const char *sql, int64_t *out, tare_error *err);

#endif
