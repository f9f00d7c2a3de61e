/* SPDX-License-Identifier: MIT
 * audit.h - who changed what, when, from where, with what result: entries of the store, each with a SHA-256 over itself
 * and the one before, so that a change, a gap or another order is found and its place named. Whoever may write the
 * store could write the whole chain anew: a head that was noted elsewhere finds that, too. */
#ifndef SERVER_AUDIT_H
#define SERVER_AUDIT_H

#include "core/json.h"
#include "server/net/exchange.h"
#include "store/store.h"

/* Chain an entry to the last one, within the transaction it is about: seq, time and hash are filled in here. Control
 * characters in its texts are escaped. */
tare_status audit_add(struct store *s, const struct store_audit *entry, tare_error *err);
/* What a command did on this machine, as its user. */
tare_status audit_add_local(struct store *s, const char *what, const char *about, const char *project,
                            tare_error *err);

/* What an exchange did, with the status its client will see. */
tare_status audit_exchange(struct store *s, const struct exchange *x, tare_error *err);

enum { AUDIT_HEX_SIZE = 2 * STORE_HASH_SIZE + 1 };

struct audit_report {
    uint64_t entries;
    char head[AUDIT_HEX_SIZE]; /* the hash of the last one; "": none */
};
/* TARE_FORMAT names the first place that is not as it was written. `noted`: a head of an earlier time that must be
 * among the hashes; NULL: none. */
tare_status audit_verify(struct store *s, const char *noted, struct audit_report *out, tare_error *err);

void audit_json(struct json *j, const struct store_audit *entry);

/* ---- what no exchange waits for ---- */

/* Refused requests and uses of tokens, noted on any thread, written by the writer with its next transaction. A fixed
 * number of them: what is beyond is counted, and the count is an entry. */
struct notes;
tare_status notes_open(struct notes **out, tare_error *err);
void notes_close(struct notes *n); /* NULL is fine */
void notes_refused(struct notes *n, const struct exchange *x);
void notes_unlisted(struct notes *n); /* one more that is counted only */
void notes_used(struct notes *n, const char *token, int64_t now_ms);
/* Within a transaction; the notes are kept until notes_written(). */
tare_status notes_write(struct notes *n, struct store *s, tare_error *err);
void notes_written(struct notes *n);
bool notes_any(struct notes *n);

#endif
