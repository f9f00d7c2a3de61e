/* SPDX-License-Identifier: MIT
 * settings.h - tare.yaml, the project's own file: defaults for commands, and the suite that `tare bench` runs.
 *
 *     bench:                       # any command: its options by name
 *       budget: 5s
 *     history: perf/history.db     # for all commands, as seen from this file's folder
 *     suite:
 *       - name: embeddings
 *         model: minilm.onnx       # or synth: minilm-l6, or command: ./app --flag
 *         batch: [1, 8, 32]        # every other key is an option of tare bench; yes and no switch flags
 *         target: [latency.p95<=100ms, throughput>=50/s]
 *
 * A pure reader of bytes: it runs nothing and knows no option; who asks says which names there are. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/vec.h"

struct setting {
    const char *section; /* "bench" */
    const char *name;    /* "budget" */
    const char *value;   /* lists joined by commas */
    unsigned line;
};

struct suite_entry {
    const char *name;
    char **argv;         /* n words, as for `tare bench`, without argv[0] */
    size_t n, n_options; /* the first so many are options; what is weighed follows */
    unsigned line;
};

struct settings {
    struct arena arena; /* of all texts */
    const char *path;
    VEC(struct setting) items;
    VEC(struct suite_entry) suite;
};
#define SETTINGS_INIT {0}

/* Read a file's text; `path` is what errors call it. */
tare_status settings_read(struct settings *out, const char *path, const void *bytes, size_t n,
                          tare_error *err);

/* tare.yaml here or in a folder above, up to the root of the project (.git) or of the file system, but not one that
 * file_is_strangers(): the nearest such is named in *passed_over. Without one *out stays empty, which is no error. */
tare_status settings_find(struct settings *out, struct buf *passed_over, tare_error *err);
void settings_release(struct settings *s);

const struct setting *settings_get(const struct settings *s, const char *section,
                                   const char *name); /* NULL: none */

#endif
