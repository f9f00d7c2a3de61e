/* SPDX-License-Identifier: MIT
 * loader_answer.c - see loader_answer.h. */
#include "cli/tune/loader_answer.h"

#include <math.h>
#include <string.h>

#include <jansson.h>

struct reading {
    struct arena *arena;
    const char *key; /* the one that cannot be read; NULL: all could */
};

static bool refuse(struct reading *r, const char *key)
{
    if (!r->key) r->key = key;
    return false;
}

static const char *text_of(struct reading *r, const json_t *from, const char *key, bool needed)
{
    const json_t *v = json_object_get(from, key);
    bool none = !v || json_is_null(v);
    if (json_is_string(v) && (!needed || json_string_length(v)))
        return arena_str(r->arena, json_string_value(v));
    if (!none || needed) refuse(r, key);
    return NULL;
}

/* Above 0, or missing. */
static struct known_f64 number_of(struct reading *r, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (!v || json_is_null(v)) return (struct known_f64){0};
    double x = json_number_value(v);
    if (!json_is_number(v) || !isfinite(x) || x < 0) refuse(r, key);
    return known_f64(x);
}

static size_t count_of(struct reading *r, const json_t *from, const char *key)
{
    struct known_f64 n = number_of(r, from, key);
    if (n.known && n.v <= 1e6) return (size_t)n.v;
    refuse(r, key);
    return 0;
}

static bool yes(struct reading *r, const json_t *from, const char *key)
{
    const json_t *v = json_object_get(from, key);
    if (!json_is_boolean(v)) refuse(r, key);
    return json_is_true(v);
}

static struct loader_texts texts_of(struct reading *r, const json_t *from, const char *key)
{
    const json_t *list = json_object_get(from, key);
    struct loader_texts out = {NULL, json_array_size(list)};
    if (!json_is_array(list) || out.n > LOADER_TEXTS_MAX) {
        refuse(r, key);
        return (struct loader_texts){0};
    }
    out.at = arena_new(r->arena, out.n ? out.n : 1, sizeof *out.at);
    for (size_t i = 0; out.at && i < out.n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_string(v)) refuse(r, key);
        out.at[i] = arena_str(r->arena, json_is_string(v) ? json_string_value(v) : "");
    }
    if (!out.at) out.n = 0;
    return out;
}

/* As keys of documents have to be. */
static bool is_key(const char *key)
{
    size_t n = 0;
    while (key[n] > ' ' && key[n] < 127) n++;
    return n > 0 && n <= RUN_KEY_MAX && !key[n];
}

/* ---- configurations ---- */

static void read_params(struct reading *r, json_t *from, struct run_map *to)
{
    const char *key;
    json_t *v;
    if (!json_is_object(from) || json_object_size(from) > LOADER_TEXTS_MAX) {
        refuse(r, "params");
        return;
    }
    json_object_foreach(from, key, v)
    {
        if (!is_key(key)) refuse(r, "params");
        if (json_is_integer(v)) run_map_int(r->arena, to, key, json_integer_value(v));
        if (json_is_string(v)) run_map_text(r->arena, to, key, json_string_value(v));
        if (json_is_boolean(v)) run_map_bool(r->arena, to, key, json_is_true(v));
        if (!json_is_integer(v) && !json_is_string(v) && !json_is_boolean(v)) refuse(r, "params");
    }
}

static void read_times(struct reading *r, const json_t *list, struct run_samples *to)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > RUN_SAMPLES_MAX) {
        refuse(r, "times_ns");
        return;
    }
    uint64_t *ns = arena_new(r->arena, n ? n : 1, sizeof *ns);
    for (size_t i = 0; ns && i < n; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0) refuse(r, "times_ns");
        ns[i] = json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 1;
    }
    *to = (struct run_samples){.known = ns && n, .ns = ns, .n = n};
}

static void read_trial(struct reading *r, const json_t *from, struct loader_trial *to)
{
    *to = (struct loader_trial){.name = text_of(r, from, "name", true),
                                .failure = text_of(r, from, "failure", false),
                                .cpu_share = number_of(r, from, "cpu_share")};
    struct known_f64 units = number_of(r, from, "units"), memory = number_of(r, from, "memory");
    if (!units.known || units.v < 1) refuse(r, "units");
    to->units = units.v;
    if (memory.known && memory.v < 0x1p62) to->memory = known_u64((uint64_t)memory.v);
    read_params(r, json_object_get(from, "params"), &to->params);
    read_times(r, json_object_get(from, "times_ns"), &to->times);
    if (!to->times.known && !to->failure) to->failure = "it was not measured";
}

static void read_trials(struct reading *r, const json_t *from, struct loader_answer *to)
{
    const json_t *list = json_object_get(from, "tried");
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > LOADER_TRIALS_MAX) {
        refuse(r, "tried");
        return;
    }
    to->trials = arena_new(r->arena, n ? n : 1, sizeof *to->trials);
    for (; to->trials && to->n < n; to->n++) read_trial(r, json_array_get(list, to->n), &to->trials[to->n]);
    const json_t *best = json_object_get(from, "best");
    json_int_t number = json_integer_value(best);
    if (!json_is_integer(best) || number < 0 || (number > 0 && (size_t)number >= n))
        refuse(r, "best");
    else
        to->best = (size_t)number;
}

/* ---- the proof ---- */

/* [value, lo, hi]; NAN where it was not measured. */
static struct interval interval_of(struct reading *r, const json_t *from, const char *key)
{
    const json_t *list = json_object_get(from, key);
    double x[3] = {NAN, NAN, NAN};
    if (!list || json_is_null(list)) return (struct interval){NAN, NAN, NAN};
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_array_get(list, i);
        x[i] = json_number_value(v);
        if (!json_is_number(v) || !(x[i] > 0)) refuse(r, key);
    }
    if (json_array_size(list) != 3 || !(x[1] <= x[0] && x[0] <= x[2])) refuse(r, key);
    return (struct interval){x[0], x[1], x[2]};
}

static void read_proof(struct reading *r, const json_t *from, struct loader_answer *to)
{
    const char *word = text_of(r, from, "verdict", true);
    struct known_f64 pairs = number_of(r, from, "pairs");
    int v = CONFIRM_GOING_ON;
    while (word && v <= CONFIRM_NOT_SHOWN && strcmp(word, confirm_verdict_name((enum confirm_verdict)v)) != 0)
        v++;
    if (word && strcmp(word, "refused") == 0) v = CONFIRM_NOT_SHOWN; /* `refusal` says it */
    if (v > CONFIRM_NOT_SHOWN) refuse(r, "verdict");
    if (!pairs.known || pairs.v > 1e6) refuse(r, "pairs");
    to->proof = (struct confirm_result){.verdict = (enum confirm_verdict)v,
                                        .gain = interval_of(r, from, "gain"),
                                        .cpu = interval_of(r, from, "cpu"),
                                        .memory = {NAN, NAN, NAN},
                                        .uses_more_cpu = yes(r, from, "uses_more_cpu"),
                                        .pairs = r->key ? 0 : (size_t)pairs.v};
    if (!isfinite(to->proof.gain.hi)) refuse(r, "gain");
    to->has_proof = true;
}

/* ---- all of it ---- */

static void read_bound(struct reading *r, const json_t *from, struct loader_answer *to)
{
    json_t *stages = json_object_get(from, "stages_ms"), *v;
    const char *key;
    to->bound = number_of(r, from, "bound");
    to->bound_why = text_of(r, from, "bound_why", !to->bound.known);
    to->by_what = text_of(r, from, "by_what", true);
    if (!json_is_object(stages) || json_object_size(stages) > LOADER_TEXTS_MAX) refuse(r, "stages_ms");
    json_object_foreach(stages, key, v)
    {
        if (!is_key(key) || !json_is_number(v) || !(json_number_value(v) >= 0)) refuse(r, "stages_ms");
        run_map_real(r->arena, &to->stages_ms, key, json_number_value(v));
    }
}

tare_status loader_answer_read(struct loader_answer *out, struct arena *a, const char *text, size_t n,
                               tare_error *err)
{
    json_error_t e;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    struct reading r = {.arena = a};
    *out = (struct loader_answer){0};
    if (!root) return error_set(err, TARE_FORMAT, "what the Python process told: %s", e.text);
    read_bound(&r, root, out);
    read_trials(&r, root, out);
    out->notes = texts_of(&r, root, "notes");
    out->left = texts_of(&r, root, "left");
    out->to_try = texts_of(&r, root, "to_try");
    out->refusal = text_of(&r, root, "refusal", false);
    out->measurements = count_of(&r, root, "measurements");
    out->recalled = count_of(&r, root, "recalled");
    out->apply = text_of(&r, root, "apply", false);
    out->interrupted = yes(&r, root, "interrupted");
    const json_t *proof = json_object_get(root, "proof");
    if (json_is_object(proof)) read_proof(&r, proof, out);
    json_decref(root);
    if (a->failed) return error_nomem(err, "an answer");
    if (!r.key) return TARE_OK;
    return error_set(err, TARE_FORMAT, "what the Python process told: %s is not what it should be", r.key);
}
