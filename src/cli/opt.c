/* SPDX-License-Identifier: MIT
 * opt.c - see opt.h. The command line is walked twice: first only looked at, so that a mistake or -h is found
 * before any variable has changed; then layers and options are applied, weakest first. */
#include "cli/opt.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"
#include "core/suggest.h"
#include "core/unit.h"

void opt_list_release(struct opt_list *list)
{
    for (size_t i = 0; i < list->n; i++) mem_free(list->items[i]);
    mem_free(list->items);
    *list = (struct opt_list)OPT_LIST_INIT;
}

static tare_status list_add(struct opt_list *list, const char *text, size_t len, tare_error *err)
{
    char *copy = mem_strndup(text, len);
    char **items = copy ? mem_resize(list->items, list->n + 1, sizeof *items) : NULL;
    if (!items) {
        mem_free(copy);
        return error_set(err, TARE_NOMEM, "out of memory");
    }
    items[list->n] = copy;
    list->items = items;
    list->n++;
    return TARE_OK;
}

tare_status opt_list_split(struct opt_list *list, const char *text, tare_error *err)
{
    opt_list_release(list);
    for (const char *s = text;; s++) {
        size_t len = strcspn(s, ",");
        tare_status st = len ? list_add(list, s, len, err) : TARE_OK;
        if (st < 0) return st;
        s += len;
        if (!*s) return TARE_OK;
    }
}

struct opt *opt_append(struct opt *to, const struct opt *rows)
{
    while (rows->type != OPT_TYPE_END) *to++ = *rows++;
    *to = (struct opt)OPT_END;
    return to;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- one row from one text ------------------------------------------------------------------- */

bool opt_is_switch(const char *text, bool *on)
{
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        bool is_yes = strcmp(text, yes[i]) == 0;
        if (!is_yes && strcmp(text, no[i]) != 0) continue;
        *on = is_yes;
        return true;
    }
    return false;
}

/* All words are gone through, so that an unknown one can be answered with the list and the nearest. */
static tare_status set_enum(const struct opt *row, const char *text, tare_error *err)
{
    struct suggest near;
    char words[256] = "";
    size_t used = 0;
    suggest_init(&near, text, strlen(text));
    for (const struct opt_choice *c = row->choices; c->name; c++) {
        if (strcmp(c->name, text) == 0) {
            *row->to.choice = c->value;
            return TARE_OK;
        }
        suggest_offer(&near, c->name);
        if (used >= sizeof words) continue;
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", used ? ", " : "", c->name);
    }
    const char *best = suggest_best(&near);
    return error_set(err, TARE_INVALID, "'%.80s' is not one of %s%s%s%s", text, words,
                     best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
}

static tare_status set_int(const struct opt *row, const char *text, tare_error *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (!is_digit(text[0] == '-' ? text[1] : text[0]) || *end)
        return error_set(err, TARE_INVALID, "'%s' is not a whole number", text);
    long long lo = row->lo, hi = (int64_t)row->hi; /* a negative upper end was stored as two's complement */
    if (errno == ERANGE || v < lo || v > hi)
        return error_set(err, TARE_INVALID, "'%s' is out of range %lld to %lld", text, lo, hi);
    *row->to.sint = v;
    return TARE_OK;
}

static tare_status set_uint(const struct opt *row, const char *text, tare_error *err)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (!is_digit(text[0]) || *end)
        return error_set(err, TARE_INVALID, "'%s' is not a whole number%s", text,
                         text[0] == '-' && is_digit(text[1]) ? " of 0 or more" : "");
    if (errno == ERANGE) return error_set(err, TARE_INVALID, "'%s' is too large", text);
    if (v < (uint64_t)row->lo || v > row->hi)
        return error_set(err, TARE_INVALID, "'%s' is out of range %llu to %llu", text,
                         (unsigned long long)row->lo, (unsigned long long)row->hi);
    *row->to.uint = v;
    return TARE_OK;
}

static tare_status set_duration(const struct opt *row, const char *text, tare_error *err)
{
    struct duration d;
    tare_status s = unit_parse_duration(text, &d, err);
    if (s < 0) return s;
    if (d.ns < row->lo || (uint64_t)d.ns > row->hi)
        return error_set(err, TARE_INVALID, "'%s' is out of range %gs to %gs", text, (double)row->lo / 1e9,
                         (double)row->hi / 1e9);
    *row->to.duration = d;
    return TARE_OK;
}

static tare_status set_double(const struct opt *row, const char *text, tare_error *err)
{
    char *end;
    double v = strtod(text, &end);
    if (!text[0] || strchr(" \t\n\v\f\r", text[0]) || *end || !isfinite(v))
        return error_set(err, TARE_INVALID, "'%s' is not a number", text);
    if (v < row->min || v > row->max)
        return error_set(err, TARE_INVALID, "'%s' is out of range %g to %g", text, row->min, row->max);
    *row->to.real = v;
    return TARE_OK;
}

tare_status opt_set(const struct opt *row, const char *text, tare_error *err)
{
    switch (row->type) {
    case OPT_TYPE_FLAG:
        return opt_is_switch(text, row->to.flag)
                   ? TARE_OK
                   : error_set(err, TARE_INVALID, "'%s' is not yes or no", text);
    case OPT_TYPE_ENUM: return set_enum(row, text, err);
    case OPT_TYPE_INT: return set_int(row, text, err);
    case OPT_TYPE_UINT: return set_uint(row, text, err);
    case OPT_TYPE_DURATION: return set_duration(row, text, err);
    case OPT_TYPE_DOUBLE: return set_double(row, text, err);
    case OPT_TYPE_LIST: return list_add(row->to.list, text, strlen(text), err);
    case OPT_TYPE_CALLBACK: return row->callback(row->to.ctx, text, err);
    case OPT_TYPE_STRING: *row->to.string = text; return TARE_OK;
    case OPT_TYPE_END:
    case OPT_TYPE_GROUP: break;
    }
    return error_set(err, TARE_INVALID, "not an option");
}

/* ---- finding rows ---------------------------------------------------------------------------- */

const struct opt *opt_find(const struct opt_request *req, const char *name, size_t len)
{
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++)
        if (row->type != OPT_TYPE_GROUP && strlen(row->name) == len && memcmp(row->name, name, len) == 0)
            return row;
    return NULL;
}

const struct opt *opt_find_letter(const struct opt_request *req, char letter)
{
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++)
        if (row->letter == letter && letter) return row;
    return NULL;
}

static bool is_help(const struct opt *row)
{
    return row->type == OPT_TYPE_FLAG && !row->to.flag; /* the one row without a variable */
}

static tare_status unknown_long(const struct opt_request *req, const char *name, size_t len, tare_error *err)
{
    struct suggest near;
    bool negated = len > 3 && strncmp(name, "no-", 3) == 0;
    size_t skip = negated ? 3 : 0;
    suggest_init(&near, name + skip, len - skip);
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++) {
        if (row->type == OPT_TYPE_GROUP || (row->flags & OPT_HIDDEN)) continue;
        bool fits = !negated || (row->type == OPT_TYPE_FLAG && !is_help(row));
        if (fits) suggest_offer(&near, row->name);
    }
    const char *best = suggest_best(&near);
    return error_set(err, TARE_INVALID, "unknown option --%.*s%s%s%s%s", (int)(len > 80 ? 80 : len), name,
                     best ? "; did you mean --" : "", best && negated ? "no-" : "", best ? best : "",
                     best ? "?" : "");
}

/* ---- what goes together ---------------------------------------------------------------------- */

static void mark_given(const struct opt_request *req, const struct opt *row)
{
    if (req->given) req->given->row[row - req->rows] = true;
}

/* A flag that was switched off again is as good as none. */
static bool is_given(const struct opt_request *req, size_t i)
{
    const struct opt *row = &req->rows[i];
    return req->given->row[i] && (row->type != OPT_TYPE_FLAG || *row->to.flag);
}

/* The first of `names` that was given; NULL: none. */
static const char *find_given(const struct opt_request *req, const char *names)
{
    for (size_t len; *names; names += len + (names[len] == ' ')) {
        len = strcspn(names, " ");
        const struct opt *row = opt_find(req, names, len);
        assert(row); /* a rule that names no option is our bug */
        if (is_given(req, (size_t)(row - req->rows))) return row->name;
    }
    return NULL;
}

/* What settings hold for all runs may lack what it goes with in one of them. */
static tare_status check_row(const struct opt_request *req, size_t i, tare_error *err)
{
    const struct opt *row = &req->rows[i];
    if (!is_given(req, i))
        return row->required ? error_set(err, TARE_INVALID, "--%s is missing: %s", row->name, row->required)
                             : TARE_OK;
    if (row->needs && req->given->said[i] && !find_given(req, row->needs)) {
        const char *space = strchr(row->needs, ' ');
        int first = space ? (int)(space - row->needs) : (int)strlen(row->needs);
        return error_set(err, TARE_INVALID, "--%s goes with --%.*s%s%s", row->name, first, row->needs,
                         space ? " or --" : "", space ? space + 1 : "");
    }
    const char *other = row->not_with ? find_given(req, row->not_with) : NULL;
    if (!other) return TARE_OK;
    return error_set(err, TARE_INVALID, "--%s does not go with --%s%s%s%s", row->name, other,
                     row->hint ? " (" : "", row->hint ? row->hint : "", row->hint ? ")" : "");
}

static tare_status check_together(const struct opt_request *req, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; req->given && s == TARE_OK && req->rows[i].type != OPT_TYPE_END; i++)
        s = check_row(req, i, err);
    return s;
}

/* "models, commands and services" */
static void name_kinds(char *out, size_t size, const struct opt_kind *kinds, unsigned which)
{
    size_t used = 0;
    for (*out = 0; kinds->bit && used < size; kinds++) {
        if (!(kinds->bit & which)) continue;
        which &= ~kinds->bit;
        const char *between = which ? ", " : " and ";
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? between : "", kinds->many);
    }
}

tare_status opt_check_kind(const struct opt_request *req, unsigned kind, tare_error *err)
{
    const struct opt_kind *kinds = req->usage->kinds, *here = kinds;
    while (here->bit != kind) here++;
    for (size_t i = 0; req->rows[i].type != OPT_TYPE_END; i++) {
        const struct opt *row = &req->rows[i];
        char others[200];
        if (!row->only_for || (row->only_for & kind) || !is_given(req, i)) continue;
        name_kinds(others, sizeof others, kinds, row->only_for);
        return error_set(err, TARE_INVALID, "--%s is for %s; %s%s%s%s", row->name, others, here->one,
                         row->hint ? " (" : "", row->hint ? row->hint : "", row->hint ? ")" : "");
    }
    return TARE_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

struct walk {
    const struct opt_request *req;
    int argc, at; /* at: the next word to look at */
    char **argv;
    int n_args; /* arguments found so far */
    bool apply, help;
    tare_error *err;
};

static tare_status set_hit(struct walk *w, const struct opt *row, const char *text, const char *shown)
{
    if (!w->apply) return TARE_OK;
    if (row->type == OPT_TYPE_LIST && row->to.list->from_layer) opt_list_release(row->to.list);
    mark_given(w->req, row);
    if (w->req->given) w->req->given->said[row - w->req->rows] = true;
    tare_status s = opt_set(row, text, w->err);
    return s < 0 ? error_wrap(w->err, "%s", shown) : s;
}

/* --name, --no-name, --name=value, --name value. */
static tare_status walk_long(struct walk *w, const char *word)
{
    const char *name = word + 2, *eq = strchr(name, '=');
    size_t len = eq ? (size_t)(eq - name) : strlen(name);
    const char *value = eq ? eq + 1 : NULL;
    char shown[100];
    snprintf(shown, sizeof shown, "--%.*s", (int)(len > 80 ? 80 : len), name);
    const struct opt *row = opt_find(w->req, name, len);
    bool off = false;
    if (!row && len > 3 && strncmp(name, "no-", 3) == 0) {
        row = opt_find(w->req, name + 3, len - 3);
        off = true;
        if (row && (row->type != OPT_TYPE_FLAG || is_help(row))) row = NULL;
    }
    if (!row) return unknown_long(w->req, name, len, w->err);
    if (row->type == OPT_TYPE_FLAG) {
        if (value) return error_set(w->err, TARE_INVALID, "%s takes no value", shown);
        if (!is_help(row)) return set_hit(w, row, off ? "no" : "yes", shown);
        w->help = true;
        return TARE_OK;
    }
    bool next = w->at < w->argc && (!row->takes || row->takes(w->argv[w->at]));
    if (!value && next) value = w->argv[w->at++];
    if (!value && row->takes) value = "";
    if (!value)
        return error_set(w->err, TARE_INVALID, "%s needs a value: %s %s", shown, shown, opt_default_arg(row));
    return set_hit(w, row, value, shown);
}

/* Letters that take no value may stand together; the first that does takes the rest of the word, or the next one. */
static tare_status walk_short(struct walk *w, const char *word)
{
    for (const char *c = word + 1; *c; c++) {
        const struct opt *row = opt_find_letter(w->req, *c);
        char shown[3] = {'-', *c, 0};
        if (!row) {
            bool plain = *c > ' ' && *c < 127;
            return error_set(w->err, TARE_INVALID, "unknown option -%c%s%.80s", plain ? *c : '?',
                             c > word + 1 ? " in " : "", c > word + 1 ? word : "");
        }
        tare_status s;
        if (row->type == OPT_TYPE_FLAG) {
            if (is_help(row)) w->help = true;
            s = is_help(row) ? TARE_OK : set_hit(w, row, "yes", shown);
            if (s < 0) return s;
            continue;
        }
        const char *value = c[1] ? c + 1 : NULL;
        if (!value && w->at < w->argc) value = w->argv[w->at++];
        if (!value)
            return error_set(w->err, TARE_INVALID, "%s needs a value: %s %s", shown, shown,
                             opt_default_arg(row));
        return set_hit(w, row, value, shown);
    }
    return TARE_OK;
}

static void walk_arg(struct walk *w, char *word)
{
    if (w->apply) w->argv[w->n_args] = word; /* never ahead of w->at: options before it left room */
    w->n_args++;
}

/* All words once. The first walk applies nothing; both must take the same way. */
static tare_status walk(struct walk *w)
{
    bool only_args = false;
    for (w->at = 1, w->n_args = 0; w->at < w->argc;) {
        char *word = w->argv[w->at++];
        tare_status s = TARE_OK;
        if (only_args || word[0] != '-' || !word[1]) {
            only_args = only_args || w->req->usage->stop_at_arg;
            walk_arg(w, word);
        } else if (strcmp(word, "--") == 0) {
            only_args = true;
        } else {
            s = word[1] == '-' ? walk_long(w, word) : walk_short(w, word);
        }
        if (s < 0) return s;
        if (w->help) return TARE_OK;
    }
    return TARE_OK;
}

static tare_status count_args(const struct walk *w)
{
    const struct opt_usage *usage = w->req->usage;
    uint32_t n = (uint32_t)w->n_args;
    if (n < usage->min_args) {
        const char *first = strchr(usage->synopsis, '<');
        size_t len = first ? strcspn(first, "\n") : 0;
        return first ? error_set(w->err, TARE_INVALID, "missing argument: %.*s", (int)len, first)
                     : error_set(w->err, TARE_INVALID, "missing argument");
    }
    if (n > usage->max_args) {
        if (usage->max_args == 0) return error_set(w->err, TARE_INVALID, "takes no arguments");
        return error_set(w->err, TARE_INVALID, "too many arguments: %u given, at most %u taken", n,
                         usage->max_args);
    }
    return TARE_OK;
}

/* ---- layers ---------------------------------------------------------------------------------- */

static tare_status layer_list(struct opt_list *list, const char *text, tare_error *err)
{
    tare_status s = opt_list_split(list, text, err);
    list->from_layer = true;
    return s;
}

static tare_status apply_layer(const struct opt_request *req, opt_layer_fn *layer, tare_error *err)
{
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++) {
        char origin[384] = ""; /* a path may be long, and what it says last is the name */
        if (row->type == OPT_TYPE_GROUP || (row->flags & OPT_NO_ENV) || is_help(row)) continue;
        const char *text = layer(req, row, origin, sizeof origin);
        if (!text || !*text) continue;
        bool list = row->type == OPT_TYPE_LIST;
        tare_status s = list ? layer_list(row->to.list, text, err) : opt_set(row, text, err);
        if (s < 0) return error_wrap(err, "%s", origin);
        mark_given(req, row);
    }
    return TARE_OK;
}

tare_status opt_read(const struct opt_request *req, int *argc, char ***argv, bool *help, tare_error *err)
{
    struct walk w = {.req = req, .argc = *argc, .argv = *argv, .err = err};
    tare_status s = walk(&w);
    *help = s == TARE_OK && w.help;
    if (s < 0 || w.help) return s;
    if ((s = count_args(&w)) < 0) return s;
    for (opt_layer_fn *const *layer = req->layers; layer && *layer; layer++)
        if ((s = apply_layer(req, *layer, err)) < 0) return s;
    w.apply = true;
    if ((s = walk(&w)) < 0 || (s = check_together(req, err)) < 0) return s;
    w.argv[w.n_args] = NULL;
    *argc = w.n_args;
    return TARE_OK;
}
