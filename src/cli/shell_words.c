/* SPDX-License-Identifier: MIT
 * shell_words.c - see shell_words.h. */
#include "cli/shell_words.h"

#include <string.h>

static const char blanks[] = " \t\n";

/* The next word into `word`; the rest of the text, or NULL with *quote the one left open. */
static const char *take_word(const char *p, struct buf *word, char *quote)
{
    char open = 0;
    for (; *p && (open || !strchr(blanks, *p)); p++) {
        if (open == *p) {
            open = 0;
        } else if (!open && (*p == '\'' || *p == '"')) {
            open = *p;
        } else if (*p == '\\' && open != '\'' && p[1]) {
            buf_add_char(word, *++p);
        } else {
            buf_add_char(word, *p);
        }
    }
    *quote = open;
    return open ? NULL : p;
}

/* What only a shell understands, outside of quotes. */
static bool needs_shell(const char *start, const char *end)
{
    size_t n = (size_t)(end - start);
    static const char *const operators[] = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strlen(operators[i]) == n && strncmp(operators[i], start, n) == 0) return true;
    if (n > 1 && end[-1] == ';' && end[-2] != '\\') return true;
    return n > 0 && (*start == '|' || *start == '>' || *start == '<' || *start == '`');
}

static tare_status add_word(struct arena *a, char ***words, size_t *n, const char *text)
{
    char **grown = arena_grow(a, *words, *n, sizeof *grown);
    const char *copy = text ? arena_str(a, text) : NULL;
    if (!grown || (text && !copy)) return TARE_NOMEM;
    memcpy(&grown[*n], &copy, sizeof copy); /* argv is not const, though nobody writes to it */
    *words = grown;
    ++*n;
    return TARE_OK;
}

/* Whether a shell is needed is asked of the text as it was written, not of the word: within quotes a | is a character
 * like any other. */
tare_status words_split(struct arena *a, const char *text, char ***out, size_t *n, tare_error *err)
{
    struct buf word = BUF_INIT;
    tare_status s = TARE_OK;
    *out = NULL;
    *n = 0;
    for (const char *p = text + strspn(text, blanks); s == TARE_OK && *p; p += strspn(p, blanks)) {
        char quote = 0;
        const char *start = p;
        buf_clear(&word);
        p = take_word(p, &word, &quote);
        if (!p) {
            s = error_set(err, TARE_INVALID, "'%.60s': a quote (%c) is left open", text, quote);
            break;
        }
        if (needs_shell(start, p))
            s = error_set(err, TARE_INVALID, "'%.60s': %.*s needs a shell: add --shell", text,
                          (int)(p - start), start);
        if (s == TARE_OK && (word.failed || add_word(a, out, n, word.data) < 0))
            s = error_set(err, TARE_NOMEM, "out of memory for a command line");
    }
    buf_release(&word);
    size_t end = *n;
    if (s == TARE_OK && add_word(a, out, &end, NULL) < 0) s = error_set(err, TARE_NOMEM, "out of memory");
    return s;
}

void words_quote(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
    if (*word && !word[strspn(word, plain)]) {
        buf_add_str(out, word);
        return;
    }
    buf_add_char(out, '\'');
    for (const char *p = word; *p; p++) {
        if (*p == '\'')
            buf_add_str(out, "'\\''");
        else
            buf_add_char(out, *p);
    }
    buf_add_char(out, '\'');
}
