/* SPDX-License-Identifier: MIT
 * settings.c - see settings.h. */
#include "cli/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "core/file.h"
#include "core/mem.h"

enum { VALUES_MAX = 10000, DEPTH_MAX = 32, EVENTS_MAX = 100000, ANCHORS_MAX = 1000, BYTES_MAX = 4 << 20 };

/* One document being read, and what goes wrong in it. */
struct reading {
    struct settings *out;
    yaml_document_t doc;
    const char *path;
    tare_error *err;
};

static tare_status bad(struct reading *r, const yaml_node_t *n, const char *what)
{
    return error_set(r->err, TARE_INVALID, "%s:%zu: %s", r->path, n->start_mark.line + 1, what);
}

static tare_status no_memory(const struct reading *r)
{
    return error_set(r->err, TARE_NOMEM, "%s: out of memory", r->path);
}

static const yaml_node_t *node(struct reading *r, int index)
{
    return yaml_document_get_node(&r->doc, index);
}

static const char *text_of(const yaml_node_t *n)
{
    return (const char *)n->data.scalar.value;
}

/* A scalar without NUL bytes, or NULL. */
static const char *scalar(const yaml_node_t *n)
{
    if (n->type != YAML_SCALAR_NODE || strlen(text_of(n)) != n->data.scalar.length) return NULL;
    return text_of(n);
}

static size_t count_items(const yaml_node_t *list)
{
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

static const yaml_node_t *item_at(struct reading *r, const yaml_node_t *list, size_t i)
{
    return node(r, list->data.sequence.items.start[i]);
}

/* A scalar, or a list of scalars joined by commas. */
static tare_status value_text(struct reading *r, const yaml_node_t *n, const char **out)
{
    struct buf b = BUF_INIT;
    tare_status s = TARE_OK;
    *out = scalar(n);
    if (*out) return TARE_OK;
    if (n->type != YAML_SEQUENCE_NODE) return bad(r, n, "expected a value or a list of values");
    for (size_t i = 0; i < count_items(n) && s == TARE_OK; i++) {
        const char *item = scalar(item_at(r, n, i));
        if (!item) s = bad(r, item_at(r, n, i), "expected a single value in this list");
        buf_printf(&b, "%s%s", i ? "," : "", item ? item : "");
    }
    *out = b.failed ? NULL : arena_str(&r->out->arena, b.data);
    buf_release(&b);
    return s == TARE_OK && !*out ? no_memory(r) : s;
}

/* ---- sections: options of a command ---- */

/* Texts that there was no memory for are found at the end: the arena remembers. */
static tare_status add_setting(struct reading *r, const char *section, const char *name, const char *value,
                               const yaml_node_t *at)
{
    struct arena *a = &r->out->arena;
    struct setting s = {arena_str(a, section), arena_str(a, name), arena_str(a, value),
                        (unsigned)at->start_mark.line + 1};
    if (r->out->items.n >= VALUES_MAX) return bad(r, at, "too many settings");
    return vec_push(&r->out->items, s, r->err);
}

static tare_status read_section(struct reading *r, const char *section, const yaml_node_t *n)
{
    if (n->type == YAML_SCALAR_NODE && n->data.scalar.length == 0)
        return TARE_OK; /* "bench:" and nothing under it */
    if (n->type != YAML_MAPPING_NODE) return bad(r, n, "expected options as `name: value` lines");
    tare_status s = TARE_OK;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top && s == TARE_OK;
         p++) {
        const char *name = scalar(node(r, p->key)), *value = NULL;
        if (!name || !name[0]) return bad(r, node(r, p->key), "expected the name of an option");
        s = value_text(r, node(r, p->value), &value);
        if (s == TARE_OK) s = add_setting(r, section, name, value, node(r, p->key));
    }
    return s;
}

/* `history: FILE` for all commands, as seen from the folder of tare.yaml. Kept in the section "". */
static tare_status read_history(struct reading *r, const yaml_node_t *n)
{
    const char *slash = strrchr(r->path, '/'), *file = scalar(n);
    if (!file || !file[0]) return bad(r, n, "history: expected the name of a file");
    int folder = file[0] != '/' && slash ? (int)(slash - r->path) + 1 : 0;
    return add_setting(r, "", "history", arena_printf(&r->out->arena, "%.*s%s", folder, r->path, file), n);
}

/* ---- the suite ---- */

/* One more word of the entry's command line; NULL is what there was no memory for. */
static tare_status add_word(struct reading *r, struct suite_entry *e, const char *word)
{
    const char *copy = arena_str(&r->out->arena, word);
    char **grown = copy ? arena_grow(&r->out->arena, e->argv, e->n, sizeof *grown) : NULL;
    if (!grown) return no_memory(r);
    memcpy(&grown[e->n++], &copy, sizeof copy); /* argv is not const, though nobody writes to it */
    e->argv = grown;
    return TARE_OK;
}

static bool is_word(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static tare_status add_option(struct reading *r, struct suite_entry *e, const char *name, const char *value)
{
    struct arena *a = &r->out->arena;
    if (is_word(value, "yes", "true", "on")) return add_word(r, e, arena_printf(a, "--%s", name));
    if (is_word(value, "no", "false", "off")) return add_word(r, e, arena_printf(a, "--no-%s", name));
    return add_word(r, e, arena_printf(a, "--%s=%s", name, value));
}

/* What is weighed comes last, after the options: the words of a command after "--". */
static tare_status add_subject(struct reading *r, struct suite_entry *e, const char *key,
                               const yaml_node_t *value)
{
    const char *one = scalar(value);
    bool command = strcmp(key, "command") == 0, words = command && value->type == YAML_SEQUENCE_NODE;
    tare_status s = TARE_OK;
    if (!words && (!one || !one[0]))
        return bad(r, value, command ? "expected a command line or a list of words" : "expected a name");
    if (strcmp(key, "synth") == 0) return add_option(r, e, "synth", one);
    if (command && !words) s = add_word(r, e, "--shell");
    if (s == TARE_OK && command) s = add_word(r, e, "--");
    if (!words) return s == TARE_OK ? add_word(r, e, one) : s;
    for (size_t i = 0; i < count_items(value) && s == TARE_OK; i++) {
        const char *word = scalar(item_at(r, value, i));
        s = word ? add_word(r, e, word) : bad(r, item_at(r, value, i), "expected a word of the command");
    }
    return s;
}

static bool is_subject(const char *key)
{
    return is_word(key, "model", "command", "synth");
}

/* A list of several values stays one comma-separated word, which bench splits; but for the options that are repeated
 * instead, because their values may hold commas. */
static tare_status add_entry_key(struct reading *r, struct suite_entry *e, const char *key,
                                 const yaml_node_t *value)
{
    const char *text = NULL;
    tare_status s = TARE_OK;
    if (strcmp(key, "name") == 0) {
        if (!scalar(value) || e->name) return bad(r, value, "expected one name");
        e->name = arena_str(&r->out->arena, scalar(value));
        return e->name ? TARE_OK : no_memory(r);
    }
    if (value->type == YAML_SEQUENCE_NODE && is_word(key, "target", "variant", "dim")) {
        for (size_t i = 0; i < count_items(value) && s == TARE_OK; i++) {
            text = scalar(item_at(r, value, i));
            s = text ? add_option(r, e, key, text)
                     : bad(r, item_at(r, value, i), "expected a single value in this list");
        }
        return s;
    }
    s = value_text(r, value, &text);
    return s == TARE_OK ? add_option(r, e, key, text) : s;
}

/* All keys of an entry as the words of a `tare bench`; exactly one of them names what is weighed. */
static tare_status fill_entry(struct reading *r, struct suite_entry *e, const yaml_node_t *n)
{
    const yaml_node_t *subject = NULL;
    const char *subject_key = NULL;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        const yaml_node_t *value = node(r, p->value);
        const char *key = scalar(node(r, p->key));
        if (!key || !key[0]) return bad(r, node(r, p->key), "expected the name of an option");
        if (is_subject(key) && subject)
            return bad(r, node(r, p->key), "one of model, synth and command, not two");
        if (is_subject(key)) {
            subject = value;
            subject_key = key;
            continue;
        }
        tare_status s = add_entry_key(r, e, key, value);
        if (s != TARE_OK) return s;
    }
    if (!subject) return bad(r, n, "names nothing to measure: model, synth or command is missing");
    e->n_options = e->n;
    return add_subject(r, e, subject_key, subject);
}

static tare_status read_suite(struct reading *r, const yaml_node_t *n)
{
    tare_status s = TARE_OK;
    if (n->type != YAML_SEQUENCE_NODE)
        return bad(r, n, "suite: expected a list of entries, each beginning with `- `");
    for (size_t i = 0; i < count_items(n) && s == TARE_OK; i++) {
        const yaml_node_t *entry = item_at(r, n, i);
        if (entry->type != YAML_MAPPING_NODE) return bad(r, entry, "suite: expected `name: value` lines");
        if (r->out->suite.n >= VALUES_MAX) return bad(r, entry, "too many entries");
        struct suite_entry e = {.line = (unsigned)entry->start_mark.line + 1};
        s = fill_entry(r, &e, entry);
        if (s == TARE_OK) s = vec_push(&r->out->suite, e, r->err);
    }
    return s;
}

/* ---- the file ---- */

/* `history` is a file for all commands where it is a text, and the section of that command where it is a mapping. */
static tare_status read_root(struct reading *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->doc);
    if (!root) return TARE_OK; /* an empty file */
    if (root->type != YAML_MAPPING_NODE) return bad(r, root, "expected `bench:`, `suite:` and the like");
    tare_status s = TARE_OK;
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start;
         p < root->data.mapping.pairs.top && s == TARE_OK; p++) {
        const char *key = scalar(node(r, p->key));
        if (!key)
            s = bad(r, node(r, p->key), "expected the name of a command, or suite");
        else if (strcmp(key, "suite") == 0)
            s = read_suite(r, node(r, p->value));
        else if (strcmp(key, "history") == 0 && node(r, p->value)->type == YAML_SCALAR_NODE)
            s = read_history(r, node(r, p->value));
        else
            s = read_section(r, key, node(r, p->value));
    }
    return s;
}

/* What an event adds to the depth. */
static int step_of(yaml_event_type_t type)
{
    if (type == YAML_SEQUENCE_START_EVENT || type == YAML_MAPPING_START_EVENT) return 1;
    return type == YAML_SEQUENCE_END_EVENT || type == YAML_MAPPING_END_EVENT ? -1 : 0;
}

static bool is_anchor(const yaml_event_t *e)
{
    return e->type == YAML_ALIAS_EVENT || (e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
           (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
           (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor);
}

/* Building the document takes libyaml a time that grows with the square of its depth and of its anchors: a file of
 * 100,000 brackets took minutes. So the events are counted first, which stops at the first one too many. Text that is
 * no YAML is left to the reading proper, which says where. */
static tare_status check_size(const char *path, const void *bytes, size_t n, tare_error *err)
{
    yaml_parser_t parser;
    size_t events = 0, anchors = 0, line = 0;
    int depth = 0;
    const char *what = n > BYTES_MAX ? "larger than settings may be" : NULL;
    if (!yaml_parser_initialize(&parser)) return error_set(err, TARE_NOMEM, "%s: out of memory", path);
    yaml_parser_set_input_string(&parser, bytes, n);
    for (bool end = false; !end && !what; events++) {
        yaml_event_t e;
        if (!yaml_parser_parse(&parser, &e)) break;
        depth += step_of(e.type);
        anchors += is_anchor(&e);
        line = e.start_mark.line;
        end = e.type == YAML_STREAM_END_EVENT;
        if (depth > DEPTH_MAX) what = "nested too deeply";
        if (anchors > ANCHORS_MAX) what = "too many anchors and aliases";
        if (events > EVENTS_MAX) what = "too many settings";
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return what ? error_set(err, TARE_INVALID, "%s:%zu: %s", path, line + 1, what) : TARE_OK;
}

/* *out changes only when all of the file is good: half a file must not leave half of its settings in force. */
tare_status settings_read(struct settings *out, const char *path, const void *bytes, size_t n,
                          tare_error *err)
{
    tare_status s = check_size(path, bytes, n, err);
    if (s != TARE_OK) return s;
    struct settings fresh = SETTINGS_INIT;
    struct reading r = {.out = &fresh, .path = path, .err = err};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return no_memory(&r);
    fresh.path = arena_str(&fresh.arena, path);
    yaml_parser_set_input_string(&parser, bytes, n);
    if (yaml_parser_load(&parser, &r.doc)) {
        s = read_root(&r);
        yaml_document_delete(&r.doc);
    } else {
        size_t at = parser.problem_mark.index;
        const char *why = parser.problem ? parser.problem : "not YAML";
        if (at < n && ((const char *)bytes)[at] == '\t') why = "a tab where YAML wants blanks";
        s = error_set(err, parser.error == YAML_MEMORY_ERROR ? TARE_NOMEM : TARE_INVALID, "%s:%zu: %s", path,
                      parser.problem_mark.line + 1, why);
    }
    yaml_parser_delete(&parser);
    if (s == TARE_OK && fresh.arena.failed) s = no_memory(&r);
    if (s == TARE_OK)
        *out = fresh;
    else
        settings_release(&fresh);
    return s;
}

static bool exists_in(const char *dir, const char *name, struct buf *path)
{
    buf_clear(path);
    buf_printf(path, "%s%s%s", dir, dir[1] ? "/" : "", name);
    return !path->failed && access(path->data, F_OK) == 0;
}

/* Settings name commands that are run: what somebody else left in /tmp is passed over, and told. */
static bool is_usable(const char *path, struct buf *passed_over)
{
    if (!file_is_strangers(path)) return true;
    if (!passed_over->len) buf_add_str(passed_over, path);
    return false;
}

/* The folder that has .git is still looked into. At the top the slash itself stays, since it is the folder's whole
 * name. */
tare_status settings_find(struct settings *out, struct buf *passed_over, tare_error *err)
{
    char dir[4096];
    if (!getcwd(dir, sizeof dir)) return TARE_OK; /* a folder that is gone has no settings */
    struct buf path = BUF_INIT;
    struct file_view f = FILE_VIEW_INIT;
    bool found;
    while (!(found = exists_in(dir, "tare.yaml", &path) && is_usable(path.data, passed_over)) &&
           !exists_in(dir, ".git", &path)) {
        char *slash = strrchr(dir, '/');
        if (!slash || !dir[1]) break;
        slash[slash == dir] = 0;
    }
    tare_status s = buf_status(&path, err);
    if (s == TARE_OK && found) s = file_map(path.data, &f, err);
    if (s == TARE_FORMAT) /* empty */
        s = TARE_OK;
    else if (s == TARE_OK && found)
        s = settings_read(out, path.data, f.data, f.size, err);
    file_unmap(&f);
    buf_release(&path);
    return s;
}

void settings_release(struct settings *s)
{
    vec_release(&s->items);
    vec_release(&s->suite);
    arena_release(&s->arena);
    *s = (struct settings)SETTINGS_INIT;
}

const struct setting *settings_get(const struct settings *s, const char *section, const char *name)
{
    for (size_t i = s->items.n; i-- > 0;) /* the last one wins, as YAML users expect */
        if (strcmp(s->items.items[i].section, section) == 0 && strcmp(s->items.items[i].name, name) == 0)
            return &s->items.items[i];
    return NULL;
}
