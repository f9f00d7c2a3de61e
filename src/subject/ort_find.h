/* SPDX-License-Identifier: MIT
 * ort_find.h - where copies of ONNX Runtime may be: named by the user, in the active Python environment, the project's
 * own, the system's Python, the nearest node_modules, the loader's paths, the usual folders. Looks at names and files;
 * loads nothing, except what ld.so alone can find. Reads no environment variable: the command line passes them in. */
#ifndef SUBJECT_ORT_FIND_H
#define SUBJECT_ORT_FIND_H

#include <stdbool.h>

#include "core/vec.h"
#include "subject/ort.h"

/* Any of these may be NULL: not set. */
struct ort_places {
    const char *chosen;         /* --ort: this one, or an error */
    const char *tare_ort_lib;   /* $TARE_ORT_LIB */
    const char *ort_dylib_path; /* $ORT_DYLIB_PATH */
    const char *virtual_env;    /* $VIRTUAL_ENV */
    const char *path;           /* $PATH, for python3 */
    const char *home;           /* $HOME, for python3's packages of the user */
    const char *project;        /* the folder of tare.yaml, else the working directory */
    bool no_system;             /* tests: neither ld.so nor /usr/local/lib, /opt */
};

struct ort_candidate {
    char *path;         /* the library; for what only hides one, the file that does */
    const char *source; /* "--ort", "$VIRTUAL_ENV", ...: a literal */
    char version[32];   /* "" when the file does not tell */
    char why_not[160];  /* "" when it looks usable */
    bool named;         /* by the user: its failure is an error, not a reason to look further */
};

struct ort_candidates {
    VEC(struct ort_candidate) items; /* in the order of preference, each file once */
};
#define ORT_CANDIDATES_INIT {VEC_INIT}

void ort_candidates_release(struct ort_candidates *c);
tare_status ort_find(struct ort_candidates *out, const struct ort_places *places, tare_error *err);

/* Find and load: the first that can be. The error lists what was found and why it was not used, or where to look and
 * how to get one. `found`, unless NULL, gets the candidates either way. */
tare_status ort_open_found(struct ort **out, const struct ort_places *places, struct ort_candidates *found,
                           tare_error *err);

#endif
