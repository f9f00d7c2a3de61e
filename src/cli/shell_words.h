/* SPDX-License-Identifier: MIT
 * shell_words.h - one text as the words a shell would make of it: blanks part words; '..', ".." and \ keep them
 * together. Expands nothing: no variables, no globs, no operators. */
#ifndef CLI_SHELL_WORDS_H
#define CLI_SHELL_WORDS_H

#include "core/buf.h"
#include "core/arena.h"

/* NULL-terminated, with texts in the arena. An open quote, or text that needs a shell (| > < ` at the start of a
 * word, & alone, ; at its end), is TARE_INVALID. */
tare_status words_split(struct arena *a, const char *text, char ***out, size_t *n, tare_error *err);

/* `word` quoted for a shell where it must be. */
void words_quote(struct buf *out, const char *word);

#endif
