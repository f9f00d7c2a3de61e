/* SPDX-License-Identifier: MIT
 * loader_answer.h - what the Python process that tunes a data loader says at its end (python/tare/_tune_worker.py),
 * read and checked: any program may be at the other end. Pure; judges nothing. */
#ifndef CLI_LOADER_ANSWER_H
#define CLI_LOADER_ANSWER_H

#include "analyze/tune/confirm.h"
#include "core/arena.h"
#include "run/run.h"

enum { LOADER_TRIALS_MAX = 256, LOADER_TEXTS_MAX = 64 };

struct loader_trial {
    const char *name, *failure; /* failure NULL: it was measured */
    struct run_map params;
    double units;             /* samples of a batch */
    struct run_samples times; /* of batches, each with its step */
    struct known_f64 cpu_share;
    struct known_u64 memory;
};

struct loader_texts {
    const char **at;
    size_t n;
};

struct loader_answer {
    struct known_f64 bound;
    const char *bound_why; /* why it is unknown; NULL: it is not */
    const char *by_what;
    struct run_map stages_ms;    /* of a sample */
    struct loader_trial *trials; /* the first is what is used today */
    size_t n, best;
    size_t measurements, recalled; /* of this search, of an earlier one */
    const char *refusal;           /* why it is left, whatever the pairs say; NULL: they decide */
    bool has_proof;
    struct confirm_result proof;
    struct loader_texts notes, left, to_try;
    const char *apply; /* what to write in the program; NULL: nothing changes */
    bool interrupted;
};

/* Texts, lists and times live in the arena. */
tare_status loader_answer_read(struct loader_answer *out, struct arena *a, const char *text, size_t n,
                               tare_error *err);

#endif
