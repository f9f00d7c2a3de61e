/* SPDX-License-Identifier: MIT
 * value.h - the small values a run document is made of. Unknown is not zero: every measured quantity
 * carries `known`, and an unknown one is written as null. Never guesses a missing value. */
#ifndef RUN_VALUE_H
#define RUN_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/interval.h"

struct known_u64 {
    bool known;
    uint64_t v;
};
struct known_i64 {
    bool known;
    int64_t v;
};
struct known_f64 {
    bool known;
    double v;
};
struct known_bool {
    bool known;
    bool v;
};

static inline struct known_u64 known_u64(uint64_t v)
{
    return (struct known_u64){true, v};
}
static inline struct known_i64 known_i64(int64_t v)
{
    return (struct known_i64){true, v};
}
static inline struct known_f64 known_f64(double v)
{
    return (struct known_f64){true, v};
}

/* NAN and infinity stand for "unknown" in what computes; a document has neither. */
static inline struct known_f64 known_if_finite(double v)
{
    bool finite = v - v == 0;
    return (struct known_f64){finite, finite ? v : 0};
}
static inline struct known_bool known_bool(bool v)
{
    return (struct known_bool){true, v};
}

/* An estimate with its confidence interval; the bounds may be unknown while the value is not. Of times: whole ns. Not
 * struct interval of core, because zeroed must mean unknown here. */
struct run_estimate {
    bool known;
    double value;
    struct known_f64 lo, hi;
};

static inline struct run_estimate run_estimate(double value, double lo, double hi)
{
    return (struct run_estimate){true, value, {true, lo}, {true, hi}};
}

/* As it was computed: an end that nothing bounds is unknown. */
static inline struct run_estimate run_estimate_of(struct interval i)
{
    struct known_f64 value = known_if_finite(i.value);
    return (struct run_estimate){value.known, value.v, known_if_finite(i.lo), known_if_finite(i.hi)};
}

struct run_samples { /* single values in the order they were taken */
    bool known;
    const char *kept; /* which: "all", "first", "evenly", "random" */
    size_t cap;       /* the recorder kept at most so many */
    uint64_t *ns;
    size_t n;
};

/* Pointers that stay valid while the list grows. */
#define RUN_LIST_OF(type)                                                                          \
    struct {                                                                                       \
        type **at;                                                                                 \
        size_t n;                                                                                  \
    }

/* A new zeroed item at the end of a list; NULL: no memory. The lists have typed pointers; only here are they seen as
 * void **, through a copy. */
#define RUN_LIST_ADD(arena, list)                                                                  \
    __extension__({                                                                                \
        void **at_ = (void **)(list)->at;                                                          \
        void *item_ = run_list_item(arena, &at_, &(list)->n, sizeof **(list)->at);                 \
        (list)->at = (__typeof__((list)->at))at_;                                                  \
        item_;                                                                                     \
    })
void *run_list_item(struct arena *a, void ***at, size_t *n, size_t size);

/* Pointers to n zeroed items, for one of the lists: assign to `at`, then set `n`. NULL: no memory. */
void *run_list_new(struct arena *a, size_t n, size_t size);

/* ---- free-form values: parameters, settings, evidence ---- */

enum run_value_kind { RUN_NULL, RUN_BOOL, RUN_INT, RUN_REAL, RUN_TEXT, RUN_LIST, RUN_MAP };

/* Named values in the order they were set; a list is a map whose keys are NULL. */
struct run_map {
    struct run_entry *at;
    size_t n;
};

struct run_value {
    enum run_value_kind kind;
    union {
        bool yes;
        int64_t i;
        double d;
        const char *s;
        struct run_map items;
    };
};

struct run_entry {
    const char *key;
    struct run_value value;
};

#define RUN_MAP_DEPTH 8 /* levels of lists and maps inside a map */
#define RUN_MAP_MAX 4096 /* keys of a map: looking one up goes through all */
#define RUN_KEY_MAX 128 /* bytes of a key: printable ASCII */

/* Set (replace) a value; with key NULL append to a list. Keys and texts are copied. The result is the
 * stored value, good until the next set; NULL when memory ran out (the arena remembers). */
struct run_value *run_map_set(struct arena *a, struct run_map *m, const char *key, struct run_value v);
void run_map_bool(struct arena *a, struct run_map *m, const char *key, bool v);
void run_map_int(struct arena *a, struct run_map *m, const char *key, int64_t v);
void run_map_real(struct arena *a, struct run_map *m, const char *key, double v);
void run_map_text(struct arena *a, struct run_map *m, const char *key, const char *v); /* NULL: null */
void run_map_textf(struct arena *a, struct run_map *m, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Take out what is under the key, if anything is. */
void run_map_drop(struct run_map *m, const char *key);

/* NULL when there is none. */
const struct run_value *run_map_get(const struct run_map *m, const char *key);

/* Why the quantity at `path` ("latency_ns.p99") is unknown, from a map of reasons: its own entry, else
 * that of the nearest part around it ("latency_ns"). NULL: no reason was recorded. */
const char *run_reason(const struct run_map *unknown, const char *path);

#endif
