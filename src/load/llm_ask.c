/* SPDX-License-Identifier: MIT
 * llm_ask.c - see llm_ask.h. */
#include "load/llm_ask.h"

#include <stdio.h>
#include <string.h>

#include "core/json.h"
#include "core/rng.h"

enum { PREFIX_MOST = 1 << 20 };

/* ---- what a line says ---- */

struct prompt {
    const struct json_node *text, *messages; /* one of them */
    int64_t output_tokens;                   /* 0: not said */
};

static tare_status wrong_line(const struct llm_ask *a, const struct line *l, const char *why, tare_error *err)
{
    return error_set(err, TARE_FORMAT, "%s: line %zu: %s", a->lines.name, l->number, why);
}

static tare_status read_object(const struct llm_ask *a, const struct line *l, const struct json_node *root,
                               struct prompt *out, tare_error *err)
{
    const struct json_node *hint = NULL, *text = json_tree_get(root, "prompt", &hint);
    const struct json_node *messages = json_tree_get(root, "messages", &hint);
    const struct json_node *tokens = json_tree_get(root, "output_tokens", &hint);
    if (text && text->kind == TREE_STRING) out->text = text;
    if (messages && messages->kind == TREE_ARRAY && a->chat) out->messages = messages;
    if (tokens && tokens->kind == TREE_INTEGER && tokens->i > 0) out->output_tokens = tokens->i;
    for (const struct json_node *m = out->messages ? out->messages->items.first : NULL; m; m = m->next)
        if (m->kind != TREE_OBJECT || !template_fits(m))
            return wrong_line(a, l, "a message is no object", err);
    if (out->text || out->messages) return TARE_OK;
    return wrong_line(
        a, l, a->chat ? "no `prompt` (a text) and no `messages` (a list)" : "no `prompt` (a text)", err);
}

/* json_tree reads objects and arrays alone: a text is put into one. */
static tare_status read_line(const struct llm_ask *a, const struct line *l, struct arena *memory,
                             struct prompt *out, tare_error *err)
{
    const struct json_node *root = NULL;
    struct buf wrapped = BUF_INIT;
    *out = (struct prompt){NULL, NULL, 0};
    buf_printf(&wrapped, "[%.*s]", (int)(l->n < INT32_MAX ? l->n : 0), l->text);
    tare_status s = buf_status(&wrapped, err);
    if (s == TARE_OK)
        s = json_tree_read((struct json_room){memory, memory}, wrapped.data, wrapped.len, &root);
    buf_release(&wrapped);
    if (s == TARE_NOMEM) return error_nomem(err, "line %zu of %s", l->number, a->lines.name);
    if (s < 0 || !root || root->items.n != 1) return wrong_line(a, l, "it is no JSON", err);
    root = root->items.first;
    if (root->kind == TREE_OBJECT) return read_object(a, l, root, out, err);
    out->text = root->kind == TREE_STRING ? root : NULL;
    return out->text ? TARE_OK : wrong_line(a, l, "neither a text nor an object", err);
}

/* ---- requests ---- */

/* Words that no other request begins with. */
static void add_nonce(const struct llm_ask *a, uint64_t number, struct buf *out)
{
    uint64_t state = a->options.seed ^ number * UINT64_C(0x9E3779B97F4A7C15);
    buf_printf(out, "[%016llx] ", (unsigned long long)rng_splitmix(&state));
}

static bool begins_anew(const struct llm_ask *a, uint64_t number)
{
    return a->options.cold || number >= LOAD_WARM_NUMBER;
}

static void put_message(struct json *j, const char *role, const char *text)
{
    json_object_begin(j);
    json_kv_string(j, "role", role);
    json_kv_string(j, "content", text);
    json_object_end(j);
}

/* A list of messages as it stands in the line, with what goes in front of it as a message of its own. */
static void put_messages(struct llm_ask *a, struct json *j, const struct json_node *list, uint64_t number)
{
    buf_clear(&a->scratch);
    if (begins_anew(a, number)) add_nonce(a, number, &a->scratch);
    buf_add_str(&a->scratch, a->prefix.data);
    if (a->scratch.len) put_message(j, "system", a->scratch.data);
    for (const struct json_node *m = list->items.first; m; m = m->next) {
        buf_clear(&a->scratch);
        template_add_value(&a->scratch, m);
        json_put_raw(j, a->scratch.data);
    }
}

static void put_prompt(struct llm_ask *a, struct json *j, const char *text, uint64_t number)
{
    buf_clear(&a->scratch);
    if (begins_anew(a, number)) add_nonce(a, number, &a->scratch);
    buf_add_str(&a->scratch, a->prefix.data);
    buf_add_str(&a->scratch, text);
    if (a->chat) {
        put_message(j, "user", a->scratch.data);
    } else {
        json_put_string(j, a->scratch.data);
    }
}

static void put_settings(const struct llm_ask *a, struct json *j, int64_t output_tokens)
{
    const struct llm_options *o = &a->options;
    int64_t most = output_tokens ? output_tokens : (int64_t)o->output_tokens;
    if (most) json_kv_int(j, "max_tokens", most);
    if (most && o->exact_output) {
        json_kv_int(j, "min_tokens", most);
        json_kv_bool(j, "ignore_eos", true);
    }
    if (o->whole) return;
    json_kv_bool(j, "stream", true);
    json_key(j, "stream_options");
    json_object_begin(j);
    json_kv_bool(j, "include_usage", true);
    json_object_end(j);
}

static tare_status put_request(struct llm_ask *a, const struct prompt *p, const char *text, uint64_t number,
                               struct buf *out)
{
    struct json j;
    json_init(&j, out, JSON_STYLE_COMPACT);
    json_object_begin(&j);
    if (a->options.model) json_kv_string(&j, "model", a->options.model);
    json_key(&j, a->chat ? "messages" : "prompt");
    if (a->chat) json_array_begin(&j);
    if (p->messages) {
        put_messages(a, &j, p->messages, number);
    } else {
        put_prompt(a, &j, text, number);
    }
    if (a->chat) json_array_end(&j);
    put_settings(a, &j, p->output_tokens);
    json_object_end(&j);
    return json_finish(&j, NULL);
}

static tare_status llm_fill(void *ctx, uint64_t number, struct load_request *out, tare_error *err)
{
    struct llm_ask *a = ctx;
    struct prompt p = {NULL, NULL, 0};
    struct arena memory = ARENA_INIT;
    struct buf words = BUF_INIT;
    tare_status s = TARE_OK;
    if (a->made) {
        struct template_facts f = {.id = number, .seed = a->options.seed};
        s = template_fill(a->made, &f, &words, err);
    } else {
        s = read_line(a, lines_at(&a->lines, number), &memory, &p, err);
    }
    if (s == TARE_OK && put_request(a, &p, p.text ? p.text->s : words.data, number, &out->body) < 0)
        s = error_nomem(err, "request %llu", (unsigned long long)number);
    arena_release(&memory);
    buf_release(&words);
    return s;
}

struct load_source llm_source(struct llm_ask *a)
{
    return (struct load_source){.fill = llm_fill, .ctx = a, .content_type = "application/json"};
}

/* ---- open ---- */

static tare_status make_words(struct template **out, const char *name, const char *how_many, tare_error *err)
{
    struct buf text = BUF_INIT;
    buf_printf(&text, "{{random:words:%s}}", how_many);
    tare_status s = buf_status(&text, err);
    if (s == TARE_OK) s = template_new(out, name, text, err);
    buf_release(&text);
    return s;
}

static tare_status make_prefix(struct llm_ask *a, tare_error *err)
{
    char n[24];
    struct template *t = NULL;
    struct template_facts f = {.id = 0, .seed = ~a->options.seed};
    if (!a->options.prefix_words) return TARE_OK;
    if (a->options.prefix_words > PREFIX_MOST)
        return error_set(err, TARE_INVALID, "a prefix of more than %d words", PREFIX_MOST);
    snprintf(n, sizeof n, "%llu", (unsigned long long)a->options.prefix_words);
    tare_status s = make_words(&t, "the prefix", n, err);
    if (s == TARE_OK) s = template_fill(t, &f, &a->prefix, err);
    buf_add_str(&a->prefix, "\n\n");
    template_free(t);
    return s < 0 ? s : buf_status(&a->prefix, err);
}

/* Each line is read once before any is sent. */
static tare_status check_lines(const struct llm_ask *a, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; s == TARE_OK && i < a->lines.all.n; i++) {
        struct arena memory = ARENA_INIT;
        struct prompt p;
        s = read_line(a, &a->lines.all.items[i], &memory, &p, err);
        arena_release(&memory);
    }
    return s;
}

static bool ends_with(const char *url, const char *tail)
{
    size_t n = strcspn(url, "?#"), k = strlen(tail);
    while (n && url[n - 1] == '/') n--;
    return n >= k && strncmp(url + n - k, tail, k) == 0;
}

tare_status llm_ask_open(struct llm_ask *a, const struct llm_options *o, const char *url, tare_error *err)
{
    static const char words[] = "words:";
    const char *prompts = o->prompts ? o->prompts : "words:100";
    *a = (struct llm_ask){.options = *o, .prefix = BUF_INIT, .scratch = BUF_INIT};
    a->chat = ends_with(url, "/chat/completions");
    if (!a->chat && !ends_with(url, "/completions"))
        return error_set(err, TARE_INVALID,
                         "--llm wants an address that ends with /chat/completions or /completions, not %s",
                         url);
    tare_status s;
    if (strncmp(prompts, words, strlen(words)) == 0) {
        s = make_words(&a->made, "--prompts", prompts + strlen(words), err);
    } else {
        s = lines_open(&a->lines, prompts, err);
        if (s == TARE_OK) lines_shuffle(&a->lines, o->seed);
        if (s == TARE_OK) s = check_lines(a, err);
    }
    if (s == TARE_OK) s = make_prefix(a, err);
    if (s < 0) llm_ask_close(a);
    return s;
}

void llm_ask_close(struct llm_ask *a)
{
    lines_close(&a->lines);
    template_free(a->made);
    a->made = NULL;
    buf_release(&a->prefix);
    buf_release(&a->scratch);
}
