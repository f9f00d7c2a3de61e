/* SPDX-License-Identifier: MIT
 * openai.c - see openai.h. Where the scan is in the document is a place; keys lead from place to place by a table. */
#include "load/openai.h"

#include <stdio.h>
#include <string.h>

enum place {
    ELSEWHERE,
    ROOT,
    CHOICES, /* the list of them; one of them */
    DELTA,
    USAGE,
    DETAILS,
    FAULT,
    /* leaves, of which the value counts: */
    TEXT,
    REASONING,
    TOOL,
    FINISH,
    TOKENS_IN,
    TOKENS_OUT,
    TOKENS_CACHED,
    TOKENS_REASONING,
    FAULT_TEXT
};

static const struct {
    enum place in;
    const char *key;
    enum place to;
} ways[] = {
    {ROOT, "choices", CHOICES},
    {ROOT, "usage", USAGE},
    {ROOT, "error", FAULT},
    {CHOICES, "delta", DELTA},
    {CHOICES, "message", DELTA},
    {CHOICES, "text", TEXT},
    {CHOICES, "finish_reason", FINISH},
    {DELTA, "content", TEXT},
    {DELTA, "refusal", TEXT},
    {DELTA, "reasoning", REASONING},
    {DELTA, "reasoning_content", REASONING},
    {DELTA, "reasoning_text", REASONING},
    {DELTA, "tool_calls", TOOL},
    {DELTA, "function_call", TOOL},
    {USAGE, "prompt_tokens", TOKENS_IN},
    {USAGE, "input_tokens", TOKENS_IN},
    {USAGE, "completion_tokens", TOKENS_OUT},
    {USAGE, "output_tokens", TOKENS_OUT},
    {USAGE, "prompt_tokens_details", DETAILS},
    {USAGE, "completion_tokens_details", DETAILS},
    {DETAILS, "cached_tokens", TOKENS_CACHED},
    {DETAILS, "reasoning_tokens", TOKENS_REASONING},
    {FAULT, "message", FAULT_TEXT},
};

enum { DEPTH_MOST = 64 };

struct scan {
    const char *at, *end;
    struct openai_said *out;
    unsigned depth;
    struct level {
        unsigned char place;
        bool is_array;
    } level[DEPTH_MOST];
};

struct token {
    const char *text; /* of a text: between its quotes */
    size_t n;
    char kind; /* " { [ 0 (a number) t f n (null) ; else not JSON */
};

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t')) s->at++;
}

static bool take(struct scan *s, char c)
{
    skip_blanks(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static bool take_string(struct scan *s, struct token *out)
{
    const char *from = s->at;
    for (const char *at = from; at < s->end; at++) {
        if ((unsigned char)*at < 0x20) return false;
        if (*at == '"') {
            *out = (struct token){from, (size_t)(at - from), '"'};
            s->at = at + 1;
            return true;
        }
        if (*at == '\\') at++;
    }
    return false;
}

static bool take_literal(struct scan *s, const char *word, struct token *out)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0) return false;
    *out = (struct token){s->at, n, *word};
    s->at += n;
    return true;
}

static bool take_token(struct scan *s, struct token *out)
{
    skip_blanks(s);
    if (s->at == s->end) return false;
    char c = *s->at;
    if (c == '"') {
        s->at++;
        return take_string(s, out);
    }
    if (c == '{' || c == '[') {
        *out = (struct token){s->at++, 1, c};
        return true;
    }
    if (c == 't') return take_literal(s, "true", out);
    if (c == 'f') return take_literal(s, "false", out);
    if (c == 'n') return take_literal(s, "null", out);
    const char *from = s->at;
    while (s->at < s->end && *s->at && strchr("+-.0123456789eE", *s->at)) s->at++;
    *out = (struct token){from, (size_t)(s->at - from), '0'};
    return out->n > 0;
}

static enum place way(enum place in, const struct token *key)
{
    if (in == ELSEWHERE) return ELSEWHERE;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].in == in && strlen(ways[i].key) == key->n && memcmp(ways[i].key, key->text, key->n) == 0)
            return ways[i].to;
    return ELSEWHERE;
}

static void count(const struct token *v, uint32_t *into)
{
    uint64_t n = 0;
    if (v->kind != '0' || v->n > 10) return;
    for (size_t i = 0; i < v->n; i++) {
        if (v->text[i] < '0' || v->text[i] > '9') return;
        n = n * 10 + (uint64_t)(v->text[i] - '0');
    }
    *into = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Whether the value says something: no empty text, list or object, no null. */
static bool is_filled(struct scan *s, const struct token *v)
{
    if (v->kind == '"') return v->n > 0;
    if (v->kind != '{' && v->kind != '[') return false;
    skip_blanks(s);
    return s->at < s->end && *s->at != ']' && *s->at != '}';
}

static void note(struct scan *s, enum place place, const struct token *v)
{
    struct openai_said *out = s->out;
    bool text = v->kind == '"';
    if (place == TEXT) out->text |= is_filled(s, v);
    if (place == REASONING) out->reasoning |= is_filled(s, v);
    if (place == TOOL) out->tool |= is_filled(s, v);
    if (place == FINISH) out->finished |= text && v->n > 0;
    if (place == USAGE && v->kind == '{') out->usage = true;
    if (place == TOKENS_IN) count(v, &out->tokens_in);
    if (place == TOKENS_OUT) count(v, &out->tokens_out);
    if (place == TOKENS_CACHED) count(v, &out->tokens_cached);
    if (place == TOKENS_REASONING) count(v, &out->tokens_reasoning);
    if (place == FAULT) out->error |= text || v->kind == '{';
    if (text && (place == FAULT || place == FAULT_TEXT))
        snprintf(out->error_text, sizeof out->error_text, "%.*s", v->n < 159 ? (int)v->n : 159, v->text);
}

/* The place of a value within the innermost level: by its key, or that of the list it is in. */
static bool place_of(struct scan *s, enum place *out)
{
    const struct level *l = &s->level[s->depth - 1];
    struct token key;
    if (l->is_array) {
        *out = l->place == CHOICES ? CHOICES : ELSEWHERE;
        return true;
    }
    if (!take(s, '"') || !take_string(s, &key) || !take(s, ':')) return false;
    *out = way(l->place, &key);
    return true;
}

static bool enter(struct scan *s, enum place place, char kind)
{
    if (s->depth == DEPTH_MOST) return false;
    s->level[s->depth++] = (struct level){(unsigned char)place, kind == '['};
    return true;
}

/* Leave all levels that end here, up to the comma before the next value. False: there is something else. */
static bool leave(struct scan *s)
{
    while (s->depth && take(s, s->level[s->depth - 1].is_array ? ']' : '}')) s->depth--;
    return !s->depth || take(s, ',');
}

bool openai_read(const char *json, size_t n, struct openai_said *out)
{
    struct scan s = {.at = json, .end = json + n, .out = out};
    struct token v;
    *out = (struct openai_said){0};
    if (!take(&s, '{')) return false;
    enter(&s, ROOT, '{');
    bool empty = true; /* the innermost level has nothing yet: it may end without a comma */
    while (s.depth) {
        skip_blanks(&s);
        bool ends = empty && s.at < s.end && *s.at == (s.level[s.depth - 1].is_array ? ']' : '}');
        if (!ends) {
            enum place place;
            if (!place_of(&s, &place) || !take_token(&s, &v)) return false;
            note(&s, place, &v);
            empty = v.kind == '{' || v.kind == '[';
            if (empty && !enter(&s, place, v.kind)) return false;
            if (empty) continue;
        }
        empty = false;
        if (!leave(&s)) return false;
    }
    skip_blanks(&s);
    return s.at == s.end;
}
