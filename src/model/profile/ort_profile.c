/* SPDX-License-Identifier: MIT
 * ort_profile.c - see ort_profile.h. Texts and shapes repeat in every run, so each is kept once; a file of a million
 * events takes memory for the events, not for their words. */
#include "model/profile/ort_profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/map.h"
#include "core/mem.h"
#include "model/onnx/onnx.h"
#include "model/profile/ort_profile_line.h"

enum { RANK_MAX = 64, OUTPUTS_MAX = 256, EVENTS_MAX = 1000000 /* the runtime's own limit */ };

struct shapes {
    struct ort_shape *items;
    size_t n;
};

struct model_run {
    int64_t start_us, duration_us, thread;
};

struct profile_reading {
    struct ort_profile *p;
    const char *name;
    struct map_str texts;       /* as in the file -> index into `words` */
    VEC(const char *) words;    /* decoded at the end */
    struct map_str shape_texts; /* "[{"float":[2,8]}]" -> index into `shapes` */
    VEC(struct shapes) shapes;
    VEC(size_t) names; /* per event: its node's word; decoded at the end */
    VEC(struct model_run) runs;
    uint64_t all; /* events of every kind */
    tare_error *err;
};

/* ---- texts ---- */

/* A text that is not in the file (cut off, or a runtime that does not write it) is the empty one. */
static tare_status keep_word(struct profile_reading *r, struct span s, size_t *out)
{
    uint64_t *at;
    if (!s.at) s.at = "";
    size_t before = r->texts.n;
    tare_status st = map_str_ref(&r->texts, s.at, s.n, &at, r->err);
    if (st == TARE_OK && r->texts.n > before) {
        *at = r->words.n;
        const char *text = arena_str_n(&r->p->arena, s.at, s.n);
        st = text ? vec_push(&r->words, text, r->err)
                  : error_set(r->err, TARE_NOMEM, "%s: out of memory", r->name);
    }
    if (st == TARE_OK) *out = (size_t)*at;
    return st;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Could this be the inside of a proper JSON string? A quote alone or an odd escape says that nothing was escaped. */
static bool is_escaped(const char *s)
{
    for (; *s; s++) {
        if (*s == '"') return false;
        if (*s != '\\') continue;
        s++;
        if (!*s || !strchr("\"\\/bfnrtu", *s)) return false;
        if (*s == 'u' && !(is_hex(s[1]) && is_hex(s[2]) && is_hex(s[3]) && is_hex(s[4]))) return false;
    }
    return true;
}

static char unescaped(char c)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *at = strchr(from, c);
    return at ? to[at - from] : c;
}

static size_t put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    out[0] =
        (char)(0xE0 | code >> 12); /* halves of a pair stay two codes: names only need to compare equal */
    out[1] = (char)(0x80 | (code >> 6 & 63));
    out[2] = (char)(0x80 | (code & 63));
    return 3;
}

/* In place; a text never grows by it. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; s++) {
        if (*s != '\\') {
            *to++ = *s;
            continue;
        }
        s++;
        if (*s != 'u') {
            *to++ = unescaped(*s);
            continue;
        }
        char digits[5] = {s[1], s[2], s[3], s[4], 0};
        unsigned code = (unsigned)strtoul(digits, NULL, 16);
        to += code ? put_utf8(to, code) : 0;
        s += 4;
    }
    *to = 0;
}

/* 1.31 escapes names, runtimes before it do not; one look at all of them tells which. */
static void decode_words(struct profile_reading *r)
{
    bool escaped = true;
    for (size_t i = 0; escaped && i < r->words.n; i++) escaped = is_escaped(r->words.items[i]);
    for (size_t i = 0; escaped && i < r->words.n; i++) unescape((char *)(uintptr_t)r->words.items[i]);
    for (size_t i = 0; i < r->p->events.n; i++)
        r->p->events.items[i].node = r->words.items[r->names.items[i]];
}

/* ---- shapes ---- */

static int type_of(const char *name, size_t n)
{
    if (n == 5 && memcmp(name, "float", n) == 0) return ONNX_FLOAT;
    if (n == 6 && memcmp(name, "double", n) == 0) return ONNX_DOUBLE;
    for (int t = 1; t < ONNX_TYPES; t++) {
        const char *known = onnx_type_name(t);
        if (strlen(known) == n && memcmp(known, name, n) == 0) return t;
    }
    return ONNX_UNDEFINED;
}

/* One {"float":[2,16,64]} at s; where it ends, or NULL when it is something else. */
static const char *parse_shape(struct profile_reading *r, const char *s, struct ort_shape *out)
{
    int64_t dims[RANK_MAX];
    size_t rank = 0;
    const char *quote = strncmp(s, "{\"", 2) == 0 ? strchr(s + 2, '"') : NULL;
    if (!quote) return NULL;
    out->type = type_of(s + 2, (size_t)(quote - s - 2));
    s = quote + 1 + strspn(quote + 1, " :");
    if (*s++ != '[') return NULL;
    for (s += strspn(s, " "); *s && *s != ']'; s += strspn(s, " ,")) {
        char *end;
        if (rank == RANK_MAX) return NULL;
        dims[rank] = strtoll(s, &end, 10);
        if (end == s || dims[rank++] < 0) return NULL;
        s = end;
    }
    if (s[0] != ']' || s[1] != '}') return NULL;
    out->rank = rank;
    out->dims = arena_new(&r->p->arena, rank ? rank : 1, sizeof *out->dims);
    if (out->dims) memcpy(out->dims, dims, rank * sizeof *dims);
    return out->dims ? s + 2 : NULL;
}

static struct shapes parse_shapes(struct profile_reading *r, const char *text)
{
    struct ort_shape found[OUTPUTS_MAX];
    struct shapes out = {0};
    const char *s = text + 1 + strspn(text + 1, " ");
    while (*s == '{') {
        if (out.n == OUTPUTS_MAX || !(s = parse_shape(r, s, &found[out.n]))) return (struct shapes){0};
        out.n++;
        s += strspn(s, " ,");
    }
    if (*s != ']' || out.n == 0) return (struct shapes){0};
    out.items = arena_new(&r->p->arena, out.n, sizeof *out.items);
    if (!out.items) return (struct shapes){0};
    memcpy(out.items, found, out.n * sizeof *found);
    return out;
}

static tare_status keep_shapes(struct profile_reading *r, struct span s, struct ort_event *e)
{
    uint64_t *at;
    size_t before = r->shape_texts.n;
    if (s.n == 0) return TARE_OK;
    tare_status st = map_str_ref(&r->shape_texts, s.at, s.n, &at, r->err);
    if (st < 0) return st;
    if (r->shape_texts.n > before) {
        *at = r->shapes.n;
        const char *text = r->shape_texts.entries[before].key; /* NUL-terminated */
        struct shapes parsed = parse_shapes(r, text);
        if ((st = vec_push(&r->shapes, parsed, r->err)) < 0) return st;
    }
    e->outputs = r->shapes.items[*at].items;
    e->n_outputs = r->shapes.items[*at].n;
    return TARE_OK;
}

/* ---- events ---- */

static bool is(struct span s, const char *word)
{
    return s.n == strlen(word) && memcmp(s.at, word, s.n) == 0;
}

static bool starts_with(struct span s, const char *word)
{
    return s.n >= strlen(word) && memcmp(s.at, word, strlen(word)) == 0;
}

static bool cut_end(struct span *s, const char *word)
{
    size_t n = strlen(word);
    if (s->n < n || memcmp(s->at + s->n - n, word, n) != 0) return false;
    s->n -= n;
    return true;
}

static tare_status add_session(struct profile_reading *r, const struct profile_line *l)
{
    if (is(l->name, "session_initialization")) r->p->initialization_us = l->duration_us;
    if (starts_with(l->name, "model_loading")) r->p->load_us = l->duration_us;
    if (!is(l->name, "model_run")) return TARE_OK;
    struct model_run run = {l->start_us, l->duration_us, l->thread};
    return vec_push(&r->runs, run, r->err);
}

static tare_status fill_event(struct profile_reading *r, struct ort_event *e, const struct profile_line *l)
{
    struct {
        const char *key;
        const char **to;
    } texts[] = {{"op_name", &e->op}, {"provider", &e->provider}};
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < 2; i++) {
        size_t word;
        st = keep_word(r, profile_line_text(l, texts[i].key), &word);
        if (st == TARE_OK) *texts[i].to = r->words.items[word];
    }
    e->node_index = profile_line_number(l, "node_index");
    e->activation_bytes = profile_line_number(l, "activation_size");
    e->parameter_bytes = profile_line_number(l, "parameter_size");
    e->output_bytes = profile_line_number(l, "output_size");
    return st == TARE_OK ? keep_shapes(r, profile_line_list(l, "output_type_shape"), e) : st;
}

static tare_status add_node(struct profile_reading *r, const struct profile_line *l)
{
    struct span name = l->name;
    struct ort_event e = {.start_us = l->start_us, .duration_us = l->duration_us, .thread = l->thread};
    size_t word;
    if (cut_end(&name, "_fence_before") || cut_end(&name, "_fence_after")) {
        r->p->fences = true;
        return TARE_OK;
    }
    if (!cut_end(&name, "_kernel_time")) return TARE_OK;
    e.self_us = e.duration_us;
    e.parent = SIZE_MAX;
    tare_status st = fill_event(r, &e, l);
    if (st == TARE_OK) st = keep_word(r, name, &word);
    if (st == TARE_OK) st = vec_push(&r->names, word, r->err);
    return st == TARE_OK ? vec_push(&r->p->events, e, r->err) : st;
}

static tare_status add_record(struct profile_reading *r, struct span record)
{
    struct profile_line l;
    r->p->lines++;
    if (!profile_line_read(&l, record)) {
        r->p->unreadable++;
        return TARE_OK;
    }
    r->all++;
    if (is(l.category, "Session")) return add_session(r, &l);
    return is(l.category, "Node") ? add_node(r, &l) : TARE_OK;
}

static tare_status read_records(struct profile_reading *r, struct span file)
{
    bool by_line = profile_line_is_by_line(file), whole = true;
    size_t at = 0, end = file.n;
    tare_status st = TARE_OK;
    while (st == TARE_OK) {
        struct span record = profile_line_next(file, &at, by_line, &whole);
        if (record.n == 0) break;
        if (!whole && at >= file.n) break; /* the cut line itself is no event */
        st = add_record(r, record);
    }
    while (end > 0 && strchr(" \t\r\n", file.at[end - 1]) && file.at[end - 1]) end--;
    r->p->truncated = end == 0 || file.at[end - 1] != ']' || r->all >= EVENTS_MAX;
    if (st == TARE_OK && r->p->arena.failed) st = error_set(r->err, TARE_NOMEM, "%s: out of memory", r->name);
    return st;
}

/* ---- order: runs, nesting ---- */

struct event_order {
    const struct ort_event *event;
    size_t at; /* in the file */
};

/* By start; of two that start together the longer one first, and then the one that was finished later: the outer. */
static int by_start(const void *a, const void *b)
{
    const struct event_order *x = a, *y = b;
    if (x->event->start_us != y->event->start_us) return x->event->start_us < y->event->start_us ? -1 : 1;
    if (x->event->duration_us != y->event->duration_us)
        return x->event->duration_us > y->event->duration_us ? -1 : 1;
    return x->at > y->at ? -1 : x->at < y->at;
}

static tare_status sort_events(struct profile_reading *r)
{
    size_t n = r->p->events.n;
    if (n == 0) return TARE_OK;
    struct event_order *order = mem_new(n, sizeof *order);
    struct ort_event *sorted = mem_new(n, sizeof *sorted);
    tare_status st = order && sorted ? TARE_OK : error_set(r->err, TARE_NOMEM, "%s: out of memory", r->name);
    for (size_t i = 0; st == TARE_OK && i < n; i++)
        order[i] = (struct event_order){&r->p->events.items[i], i};
    if (st == TARE_OK) qsort(order, n, sizeof *order, by_start);
    for (size_t i = 0; st == TARE_OK && i < n; i++) sorted[i] = *order[i].event;
    if (st == TARE_OK) memcpy(r->p->events.items, sorted, n * sizeof *sorted);
    mem_free(order);
    mem_free(sorted);
    return st;
}

static int by_run_start(const void *a, const void *b)
{
    const struct model_run *x = a, *y = b;
    return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

/* Runs may overlap when several threads call: that of the event's own thread is meant, else any around it. */
static uint32_t run_of(const struct profile_reading *r, const struct ort_event *e)
{
    enum { LOOK_BACK = 256 };
    size_t lo = 0, hi = r->runs.n, any = r->runs.n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (r->runs.items[mid].start_us <= e->start_us)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = lo; i-- > 0 && lo - i <= LOOK_BACK;) {
        const struct model_run *run = &r->runs.items[i];
        if (e->start_us - run->start_us > run->duration_us) continue;
        if (run->thread == e->thread) return (uint32_t)i;
        if (any == r->runs.n) any = i;
    }
    return (uint32_t)any;
}

static tare_status place_runs(struct profile_reading *r)
{
    tare_status st = vec_reserve(&r->p->runs_us, r->runs.n, r->err);
    if (st < 0) return st;
    if (r->runs.n) qsort(r->runs.items, r->runs.n, sizeof *r->runs.items, by_run_start);
    for (size_t i = 0; i < r->runs.n; i++)
        r->p->runs_us.items[r->p->runs_us.n++] = r->runs.items[i].duration_us;
    for (size_t i = 0; i < r->p->events.n; i++) r->p->events.items[i].run = run_of(r, &r->p->events.items[i]);
    return TARE_OK;
}

/* Only these run other nodes inside of themselves; anything else that seems to overlap is the clock's coarseness. */
static bool has_body(const char *op)
{
    static const char *const ops[] = {"If",         "Loop",         "Scan",     "SequenceMap",
                                      "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
}

static bool is_inside(const struct ort_event *e, const struct ort_event *outer)
{
    return e->run == outer->run && e->start_us - outer->start_us < outer->duration_us &&
           e->duration_us <= outer->duration_us - (e->start_us - outer->start_us);
}

/* Innermost open event around each; threads that a body may use are not told apart, as bodies wait for each other. */
static tare_status nest_events(struct profile_reading *r)
{
    struct ort_event *events = r->p->events.items;
    VEC(size_t) open = VEC_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < r->p->events.n; i++) {
        struct ort_event *e = &events[i];
        while (open.n && !is_inside(e, &events[*vec_last(&open)])) (void)vec_pop(&open);
        if (open.n) {
            e->parent = *vec_last(&open);
            events[e->parent].self_us -= e->duration_us;
            if (events[e->parent].self_us < 0) events[e->parent].self_us = 0;
        }
        if (has_body(e->op)) st = vec_push(&open, i, r->err);
    }
    vec_release(&open);
    return st;
}

/* ---- all of it ---- */

static tare_status read_all(struct profile_reading *r, struct span file)
{
    tare_status st = read_records(r, file);
    if (st < 0) return st;
    if (r->all == 0)
        return error_set(r->err, TARE_INVALID, "%s: no profile of ONNX Runtime: not one event in %llu lines",
                         r->name, (unsigned long long)r->p->lines);
    decode_words(r);
    st = sort_events(r);
    if (st == TARE_OK) st = place_runs(r);
    return st == TARE_OK ? nest_events(r) : st;
}

/* All that is only needed while reading goes at the end, whether it went well or not; what stays is in the
 * arena of `p`. -1 stands for a time that the profile does not have. */
tare_status ort_profile_read(struct ort_profile *out, const char *name, const void *bytes, size_t n,
                             tare_error *err)
{
    struct ort_profile p = ORT_PROFILE_INIT;
    struct profile_reading r = {
        .p = &p, .name = name, .texts = MAP_STR_INIT, .shape_texts = MAP_STR_INIT, .err = err};
    p.load_us = p.initialization_us = -1;
    tare_status st = read_all(&r, (struct span){bytes, n});
    map_str_release(&r.texts);
    map_str_release(&r.shape_texts);
    vec_release(&r.words);
    vec_release(&r.shapes);
    vec_release(&r.names);
    vec_release(&r.runs);
    if (st < 0) {
        ort_profile_release(&p);
        return st;
    }
    *out = p;
    return TARE_OK;
}

tare_status ort_profile_load(struct ort_profile *out, const char *path, tare_error *err)
{
    struct file_view view = FILE_VIEW_INIT;
    tare_status st = file_map(path, &view, err);
    if (st < 0) return st;
    st = ort_profile_read(out, path, view.data, view.size, err);
    file_unmap(&view);
    return st;
}

void ort_profile_release(struct ort_profile *p)
{
    arena_release(&p->arena);
    vec_release(&p->events);
    vec_release(&p->runs_us);
    *p = (struct ort_profile)ORT_PROFILE_INIT;
}
