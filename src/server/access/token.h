/* SPDX-License-Identifier: MIT
 * token.h - who may do what. A token is tare_SCOPES_ID_SECRET: 32 bytes of the kernel's random numbers in hex
 * behind an id that may be shown. Only its SHA-256 is stored; it is looked up by id and compared in constant time.
 * The table in memory follows the store: a new token is found at once, a revoked one is refused within
 * TOKENS_FRESH_MS. */
#ifndef SERVER_TOKEN_H
#define SERVER_TOKEN_H

#include "core/json.h"
#include "server/net/exchange.h"
#include "store/store.h"

#define TOKENS_FRESH_MS 1000
#define TOKENS_USED_MS 60000 /* the last use is known to this */

/* What a route asks for, and a token gives. Zero is no scope: a route without one is a mistake that a test finds. */
enum scope {
    SCOPE_OPEN = 1, /* anybody */
    SCOPE_READ = 2,
    SCOPE_INGEST = 4,
    SCOPE_RUN = 8,
    SCOPE_ADMIN = 16,
};
#define TOKEN_SCOPES_SIZE 32

/* "read,ingest" as bits; TARE_INVALID names the word that is none. */
tare_status scopes_parse(const char *text, unsigned *out, tare_error *err);
void scopes_print(unsigned scopes, char separator, char out[TOKEN_SCOPES_SIZE]);

enum {
    TOKEN_ID_LEN = 12,
    TOKEN_SECRET_LEN = 64,
    TOKEN_SIZE = 5 + TOKEN_SCOPES_SIZE + 1 + TOKEN_ID_LEN + 1 + TOKEN_SECRET_LEN + 1
};

struct token_wish {
    unsigned scopes;
    const char *project, *name; /* NULL: none */
    int64_t lives_ms;           /* 0: for ever */
};

/* Digits of the kernel's random numbers in hex, an even number of at most TOKEN_SECRET_LEN, and a NUL. */
tare_status token_random(char *out, size_t digits, tare_error *err);

/* Make one and keep its hash. `text` is the only copy of it there will be. */
tare_status token_new(struct store *s, const struct token_wish *wish, char text[TOKEN_SIZE], tare_error *err);
void token_id(const char text[TOKEN_SIZE], char id[TOKEN_ID_LEN + 1]);

const char *token_state(const struct store_token *t, int64_t now_ms); /* good, expired, revoked */
void token_json(struct json *j, const struct store_token *t, int64_t now_ms);

struct grant {
    unsigned scopes;
    char id[TOKEN_ID_LEN + 1], project[EXCHANGE_PARAM_SIZE];
    bool use_is_news; /* what the store has of its last use is older than TOKENS_USED_MS; told once */
};

struct tokens;
tare_status tokens_open(struct tokens **out, const char *store, tare_error *err);
void tokens_close(struct tokens *t);
/* False: no such token, or it is expired or revoked. Any thread. */
bool tokens_check(struct tokens *t, const char *text, struct grant *out);
/* The same for a token that was checked before, by its id. */
bool tokens_stands(struct tokens *t, const char *id);

#endif
