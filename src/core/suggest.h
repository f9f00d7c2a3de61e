/* SPDX-License-Identifier: MIT
 * suggest.h - which name was meant: the nearest by typing mistakes (one letter wrong, missing, added, or two
 * swapped), or the only one that begins like it. Never changes what is done: it only suggests. */
#ifndef CORE_SUGGEST_H
#define CORE_SUGGEST_H

#include <stddef.h>

/* Offer every name there is, ask for the one most likely meant: the first of equals. */
struct suggest {
    const char *word;
    size_t len;
    const char *best;
    unsigned distance;
};
void suggest_init(struct suggest *s, const char *word, size_t len);
void suggest_offer(struct suggest *s, const char *candidate);
const char *suggest_best(const struct suggest *s); /* NULL: nothing near enough */

/* All of it for names in an array. */
const char *suggest_among(const char *word, const char *const *names, size_t n);

/* Least number of insertions, deletions, substitutions and swaps of neighbours (bytes; no part edited twice).
 * Words of more than 64 bytes are 65 away from all others. */
unsigned suggest_distance(const char *a, size_t na, const char *b, size_t nb);

#endif
