/* SPDX-License-Identifier: MIT
 * settings.c - see settings.h. */
#include "cli/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#include "core/buf.h"
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

static tare_status no_memory(struct reading *r)
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

/* A scalar, or a list of scalars joined by `separator`. */
static tare_status value_text(struct reading *r, const yaml_node_t *n, const char *separator, char **out)
{
    struct buf b = BUF_INIT;
    const char *one = scalar(n);
    tare_status s = TARE_OK;
    if (one) {
        buf_add_str(&b, one);
    } else if (n->type == YAML_SEQUENCE_NODE) {
        for (yaml_node_item_t *i = n->data.sequence.items.start;
             i < n->data.sequence.items.top && s == TARE_OK; i++) {
            const char *item = scalar(node(r, *i));
            if (i > n->data.sequence.items.start) buf_add_str(&b, separator);
            if (item)
                buf_add_str(&b, item);
            else
                s = bad(r, node(r, *i), "expected a single value in this list");
        }
    } else {
        s = bad(r, n, "expected a value or a list of values");
    }
    if (s == TARE_OK && !(*out = buf_take(&b))) s = no_memory(r);
    buf_release(&b);
    return s;
}

/* ---- sections: options of a command ---- */

static void setting_release(struct setting *s)
{
    mem_free(s->section);
    mem_free(s->name);
    mem_free(s->value);
}

static tare_status add_setting(struct reading *r, const char *section, const yaml_node_t *key,
                               const yaml_node_t *value)
{
    const char *name = scalar(key);
    if (!name || !name[0]) return bad(r, key, "expected the name of an option");
    if (r->out->items.n >= VALUES_MAX) return bad(r, key, "too many settings");
    struct setting s = {.line = (unsigned)key->start_mark.line + 1};
    tare_status status = value_text(r, value, ",", &s.value);
    if (status != TARE_OK) return status;
    s.section = mem_strdup(section);
    s.name = mem_strdup(name);
    status = s.section && s.name ? vec_push(&r->out->items, s, r->err) : no_memory(r);
    if (status == TARE_OK) return TARE_OK;
    setting_release(&s);
    return status;
}

static tare_status read_section(struct reading *r, const char *name, const yaml_node_t *n)
{
    if (n->type == YAML_SCALAR_NODE && n->data.scalar.length == 0)
        return TARE_OK; /* "bench:" and nothing under it */
    if (n->type != YAML_MAPPING_NODE) return bad(r, n, "expected options as `name: value` lines");
    tare_status s = TARE_OK;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top && s == TARE_OK;
         p++)
        s = add_setting(r, name, node(r, p->key), node(r, p->value));
    return s;
}

/* `history: FILE` for all commands, as seen from the folder of tare.yaml. Kept in the section "". */
static tare_status read_history(struct reading *r, const yaml_node_t *n)
{
    const char *slash = strrchr(r->path, '/'), *file = scalar(n);
    struct buf path = BUF_INIT;
    if (!file || !file[0]) return bad(r, n, "history: expected the name of a file");
    if (file[0] != '/' && slash) buf_add(&path, r->path, (size_t)(slash - r->path) + 1);
    buf_add_str(&path, file);
    struct setting s = {.section = mem_strdup(""),
                        .name = mem_strdup("history"),
                        .value = buf_take(&path),
                        .line = (unsigned)n->start_mark.line + 1};
    tare_status status = s.section && s.name && s.value ? vec_push(&r->out->items, s, r->err) : no_memory(r);
    if (status == TARE_OK) return TARE_OK;
    setting_release(&s);
    return status;
}

/* ---- the suite ---- */

static void entry_release(struct suite_entry *e)
{
    for (size_t i = 0; i < e->argv.n; i++) mem_free(e->argv.items[i]);
    vec_release(&e->argv);
    mem_free(e->name);
}

/* Takes `word` over, also when it fails. */
static tare_status add_word(struct reading *r, struct suite_entry *e, char *word)
{
    tare_status s = word ? vec_push(&e->argv, word, r->err) : no_memory(r);
    if (s != TARE_OK) mem_free(word);
    return s;
}

static bool is_word(const char *text, const char *a, const char *b, const char *c)
{
    return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static tare_status add_option(struct reading *r, struct suite_entry *e, const char *name, const char *value)
{
    struct buf b = BUF_INIT;
    if (is_word(value, "yes", "true", "on"))
        buf_printf(&b, "--%s", name);
    else if (is_word(value, "no", "false", "off"))
        buf_printf(&b, "--no-%s", name);
    else
        buf_printf(&b, "--%s=%s", name, value);
    char *word = buf_take(&b);
    return add_word(r, e, word);
}

/* What is weighed comes last, after the options: the words of a command after "--". */
static tare_status add_subject(struct reading *r, struct suite_entry *e, const char *key,
                               const yaml_node_t *value)
{
    bool command = strcmp(key, "command") == 0;
    if (!command || value->type != YAML_SEQUENCE_NODE) {
        const char *one = scalar(value);
        if (!one || !one[0])
            return bad(r, value, command ? "expected a command line or a list of words" : "expected a name");
        if (strcmp(key, "synth") == 0) return add_option(r, e, "synth", one);
        tare_status s = command ? add_word(r, e, mem_strdup("--shell")) : TARE_OK;
        if (s == TARE_OK && command) s = add_word(r, e, mem_strdup("--"));
        return s == TARE_OK ? add_word(r, e, mem_strdup(one)) : s;
    }
    tare_status s = add_word(r, e, mem_strdup("--"));
    for (yaml_node_item_t *i = value->data.sequence.items.start;
         i < value->data.sequence.items.top && s == TARE_OK; i++) {
        const char *word = scalar(node(r, *i));
        s = word ? add_word(r, e, mem_strdup(word)) : bad(r, node(r, *i), "expected a word of the command");
    }
    return s;
}

static bool is_subject(const char *key)
{
    return strcmp(key, "model") == 0 || strcmp(key, "command") == 0 || strcmp(key, "synth") == 0;
}

/* A list of several values for an option that may be repeated stays one comma-separated word: bench splits it. */
static tare_status add_entry_key(struct reading *r, struct suite_entry *e, const char *key,
                                 const yaml_node_t *value)
{
    if (strcmp(key, "name") == 0) {
        const char *name = scalar(value);
        if (!name || e->name) return bad(r, value, "expected one name");
        return (e->name = mem_strdup(name)) ? TARE_OK : no_memory(r);
    }
    if (value->type == YAML_SEQUENCE_NODE &&
        (strcmp(key, "target") == 0 || strcmp(key, "variant") == 0 || strcmp(key, "dim") == 0)) {
        tare_status s = TARE_OK;
        for (yaml_node_item_t *i = value->data.sequence.items.start;
             i < value->data.sequence.items.top && s == TARE_OK; i++) {
            const char *one = scalar(node(r, *i));
            s = one ? add_option(r, e, key, one)
                    : bad(r, node(r, *i), "expected a single value in this list");
        }
        return s;
    }
    char *text = NULL;
    tare_status s = value_text(r, value, ",", &text);
    if (s == TARE_OK) s = add_option(r, e, key, text);
    mem_free(text);
    return s;
}

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
    if (!subject) return bad(r, n, "says nothing to weigh: model, synth or command is missing");
    e->n_options = e->argv.n;
    tare_status s = add_subject(r, e, subject_key, subject);
    return s == TARE_OK ? vec_push(&e->argv, NULL, r->err) : s;
}

static tare_status read_suite(struct reading *r, const yaml_node_t *n)
{
    if (n->type != YAML_SEQUENCE_NODE)
        return bad(r, n, "suite: expected a list of entries, each beginning with `- `");
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        const yaml_node_t *entry = node(r, *i);
        if (entry->type != YAML_MAPPING_NODE) return bad(r, entry, "suite: expected `name: value` lines");
        if (r->out->suite.n >= VALUES_MAX) return bad(r, entry, "too many entries");
        struct suite_entry e = {.line = (unsigned)entry->start_mark.line + 1};
        tare_status s = fill_entry(r, &e, entry);
        if (s == TARE_OK) s = vec_push(&r->out->suite, e, r->err);
        if (s != TARE_OK) {
            entry_release(&e);
            return s;
        }
    }
    return TARE_OK;
}

/* ---- the file ---- */

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

tare_status settings_read(struct settings *out, const char *path, const void *bytes, size_t n,
                          tare_error *err)
{
    tare_status s = check_size(path, bytes, n, err);
    if (s != TARE_OK) return s;
    struct settings fresh = {.path = mem_strdup(path)};
    struct reading r = {.out = &fresh, .path = path, .err = err};
    yaml_parser_t parser;
    if (!fresh.path || !yaml_parser_initialize(&parser)) {
        settings_release(&fresh);
        return error_set(err, TARE_NOMEM, "%s: out of memory", path);
    }
    yaml_parser_set_input_string(&parser, bytes, n);
    if (yaml_parser_load(&parser, &r.doc)) {
        s = read_root(&r);
        yaml_document_delete(&r.doc);
    } else {
        s = error_set(err, parser.error == YAML_MEMORY_ERROR ? TARE_NOMEM : TARE_INVALID, "%s:%zu: %s", path,
                      parser.problem_mark.line + 1, parser.problem ? parser.problem : "not YAML");
    }
    yaml_parser_delete(&parser);
    if (s == TARE_OK)
        *out = fresh;
    else
        settings_release(&fresh);
    return s;
}

static bool exists_in(const char *dir, const char *name)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%s", dir, name);
    bool there = !b.failed && access(b.data, F_OK) == 0;
    buf_release(&b);
    return there;
}

tare_status settings_find(struct settings *out, tare_error *err)
{
    char dir[4096];
    if (!getcwd(dir, sizeof dir)) return TARE_OK; /* a folder that is gone has no settings */
    bool found;
    while (!(found = exists_in(dir, "tare.yaml")) && !exists_in(dir, ".git")) {
        char *slash = strrchr(dir, '/');
        if (!slash || !dir[1]) break;
        slash[slash == dir] = 0;
    }
    if (!found) return TARE_OK;
    struct buf path = BUF_INIT;
    struct file_view f = FILE_VIEW_INIT;
    buf_printf(&path, "%s%stare.yaml", dir, dir[1] ? "/" : "");
    tare_status s = buf_status(&path, err);
    if (s == TARE_OK) s = file_map(path.data, &f, err);
    if (s == TARE_FORMAT) /* empty */
        s = TARE_OK;
    else if (s == TARE_OK)
        s = settings_read(out, path.data, f.data, f.size, err);
    file_unmap(&f);
    buf_release(&path);
    return s;
}

void settings_release(struct settings *s)
{
    for (size_t i = 0; i < s->items.n; i++) setting_release(&s->items.items[i]);
    for (size_t i = 0; i < s->suite.n; i++) entry_release(&s->suite.items[i]);
    vec_release(&s->items);
    vec_release(&s->suite);
    mem_free(s->path);
    *s = (struct settings)SETTINGS_INIT;
}

const struct setting *settings_get(const struct settings *s, const char *section, const char *name)
{
    for (size_t i = s->items.n; i-- > 0;) /* the last one wins, as YAML users expect */
        if (strcmp(s->items.items[i].section, section) == 0 && strcmp(s->items.items[i].name, name) == 0)
            return &s->items.items[i];
    return NULL;
}
