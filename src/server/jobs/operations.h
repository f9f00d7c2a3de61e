/* SPDX-License-Identifier: MIT
 * operations.h - what a server may run: the operator's file (`tare serve --operations FILE`), and requests checked
 * against it. Nothing runs that is not named there; a request gives values of declared parameters, never a word of a
 * command line of its own. Pure: reads bytes, starts nothing.
 *
 *     {"schema": "tare.operations/1",
 *      "operations": {"optimize-dataset-loading": {
 *          "argv": ["/usr/bin/python3", "-m", "tare", "finetuning", "optimize-dataset-loading"],
 *          "parameters": {"batch_size": {"type": "int", "min": 1, "max": 4096, "default": 32},
 *                         "dataset_config.texts": {"type": "texts", "max": 1000, "bytes": 10000}},
 *          "timeout_s": 120, "memory_mb": 4096}}} */
#ifndef SERVER_OPERATIONS_H
#define SERVER_OPERATIONS_H

#include "core/arena.h"
#include "core/buf.h"
#include "core/vec.h"

#define OPERATIONS_SCHEMA "tare.operations/1"
enum { OPERATIONS_MAX = 64, PARAMETERS_MAX = 64, WORDS_MAX = 256, RUNS_AT_ONCE_MAX = 8, EXPORTS_MAX = 8 };

/* TEXTS go to the program's stdin and never into its command line; so do NAMES, which are a list. */
#define PARAM_KINDS(X) \
    X(INT, "int")      \
    X(NUMBER, "number") \
    X(BOOL, "bool")    \
    X(ENUM, "enum")    \
    X(NAMES, "names")  \
    X(RUN, "run")      \
    X(TEXTS, "texts")
enum param_kind {
#define X(name, text) PARAM_##name,
    PARAM_KINDS(X)
#undef X
        PARAM_KINDS_N
};

struct words {
    const char **at;
    size_t n;
};

struct parameter {
    const char *name; /* "training_config.epochs": within the object training_config */
    enum param_kind kind;
    double min, max;      /* INT, NUMBER: both ends are fine; TEXTS: max of them */
    double bytes;         /* TEXTS: of each */
    struct words values;  /* ENUM, NAMES */
    const char *fallback; /* as JSON; NULL: it must be given, unless it is optional */
    bool optional;
};

/* What it may take; 0 never means "without end". */
struct limits {
    uint64_t timeout_s, cpu_s, memory_mb, file_mb, open_files, processes;
};

struct operation {
    const char *name;
    struct words argv; /* argv[0] is absolute; "{name}" stands for a parameter's value */
    struct words env;  /* "NAME=value" */
    struct words reads,
        writes; /* folders and files it may read, or also write, beside the system's and its own */
    struct parameter *parameters;
    size_t n_parameters;
    struct limits limits;
    bool network, perf; /* may it use the network; perf_event_open and ptrace */
};

struct operations {
    struct arena arena; /* of all texts */
    const char *path;
    struct operation *at;
    size_t n;
    uint64_t at_once, queue, per_token, wait_s;
    uint64_t uid;                              /* whom it runs as where the server is root */
    struct words alert_rules;                  /* alert.h */
    const char *alert_webhook, *alert_command; /* who is told; NULL: nobody */
    struct export_to {
        const char *name, *url, *token_file; /* token_file NULL: no token */
        bool prometheus;                     /* remote write; else OTLP */
    } exports[EXPORTS_MAX];
    size_t n_exports;
};
#define OPERATIONS_INIT \
    {.arena = ARENA_INIT, .at_once = 1, .queue = 16, .per_token = 4, .wait_s = 30, .uid = 65534}

/* TARE_INVALID names the file, the line and the cause. Release also after a failure. */
tare_status operations_read(struct operations *out, const char *path, const void *bytes, size_t n,
                            tare_error *err);
/* The file itself: refused where others than root and its owner may write it. */
tare_status operations_open(struct operations *out, const char *path, tare_error *err);
void operations_release(struct operations *o);
const struct operation *operations_find(const struct operations *o, const char *name); /* NULL: none */

/* "{name}" at `at`: how long the name is; 0: it stands for itself. */
size_t operation_hole(const char *at);
/* The parameter of a name of n bytes; NULL: none. */
const struct parameter *operation_parameter(const struct operation *op, const char *name, size_t n);

/* ---- a request ---- */

struct call {
    struct arena arena;
    char **argv;       /* ends with NULL */
    struct buf input;  /* the checked parameters as JSON, defaults filled in: the program's stdin */
    struct words runs; /* ids of runs whose documents it wants as files ID.json */
};
#define CALL_INIT {.arena = ARENA_INIT, .input = BUF_INIT}

/* TARE_INVALID says which parameter is wrong and how; nothing undeclared gets through. */
tare_status call_make(struct call *out, const struct operation *op, const void *json, size_t n,
                      tare_error *err);
void call_release(struct call *c);

#endif
