/* SPDX-License-Identifier: MIT
 * fuzz_history.c - any bytes as the file of the history: opened, listed, every document and series read, a run added.
 * An answer or a refusal, never a crash. */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/care.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64];

static void clean_up(void)
{
    static const char *const names[] = {"h.db", "h.db-wal", "h.db-shm", "h.db-journal"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static const char *write_down(const uint8_t *data, size_t size)
{
    static char path[128];
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "/tmp/fuzz-history-XXXXXX");
        if (!mkdtemp(folder)) abort();
        atexit(clean_up);
    }
    snprintf(path, sizeof path, "%s/h.db", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
    close(fd);
    return path;
}

static tare_status read_document(void *ctx, const struct store_run *run, tare_error *err)
{
    struct buf text = BUF_INIT;
    (void)err;
    store_document(ctx, run->id, &text, NULL);
    buf_release(&text);
    return TARE_OK;
}

static tare_status read_series(void *ctx, const struct store_series_name *name, tare_error *err)
{
    struct store *s = ctx;
    struct store_points points = {VEC_INIT};
    s->ops->series(s, &(struct store_span){.series = name->id, .last = 100}, &points, err);
    vec_release(&points.at);
    return TARE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store_options o = {.wait_ms = 1};
    struct store *s = NULL;
    struct store_filter all = {.limit = 50};
    struct store_query any = {0};
    struct store_prune prune = {.keep = 1};
    struct run run;
    if (store_open(&s, write_down(data, size), &o, NULL) != TARE_OK) return 0;
    s->ops->list(s, &all, read_document, s, NULL);
    s->ops->names(s, &any, read_series, s, NULL);
    if (run_init(&run, "bench", NULL) == TARE_OK) {
        run.subject.type = "command";
        run.subject.name = "true";
        run_add_case(&run, "default");
        store_add_run(s, &run, NULL, NULL, NULL);
        run_release(&run);
    }
    store_prune(s, &prune, NULL);
    store_close(s);
    return 0;
}
