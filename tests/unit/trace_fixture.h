/* SPDX-License-Identifier: MIT
 * trace_fixture.h - what tests of traces share: a folder of their own, whole files, and a summary of what a trace
 * delivers. */
#ifndef TESTS_TRACE_FIXTURE_H
#define TESTS_TRACE_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/mem.h"
#include "made_trace.h"
#include "trace/fold.h"

/* ---- folders and files ---- */

struct folder {
    char path[200];
    char trace[240];
};

FIXTURE void folder_empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[600];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name) < 0) rmdir(name);
    }
    if (d) closedir(d);
}

FIXTURE void folder_new(struct folder *f)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->path, sizeof f->path, "%.150s/tare-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    MUST(mkdtemp(f->path));
    snprintf(f->trace, sizeof f->trace, "%s/t.tare", f->path);
}

FIXTURE void folder_remove(struct folder *f)
{
    folder_empty(f->path);
    rmdir(f->path);
}

FIXTURE int folder_count(const struct folder *f, const char *part)
{
    DIR *d = opendir(f->path);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) n += strstr(e->d_name, part) != NULL;
    if (d) closedir(d);
    return n;
}

FIXTURE void file_put(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    MUST(fd >= 0);
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, (const char *)bytes + done, n - done);
        MUST(w > 0);
        done += (size_t)w;
    }
    close(fd);
}

/* The whole file, to be freed; *n gets its size. */
FIXTURE uint8_t *file_get(const char *path, size_t *n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    MUST(fd >= 0 && fstat(fd, &st) == 0);
    uint8_t *bytes = malloc((size_t)st.st_size + 1);
    MUST(bytes && read(fd, bytes, (size_t)st.st_size) == st.st_size);
    close(fd);
    *n = (size_t)st.st_size;
    return bytes;
}

/* ---- what a trace delivers ---- */

struct seen {
    uint64_t begins, ends, synthetic, counts, marks, weighed;
    int64_t value;
    uint64_t hash; /* of kinds, sites and values in order, without times */
    uint64_t last_ns;
    uint32_t depth, deepest;
    bool unordered, unnested;
    char text[256]; /* of the last mark */
};

FIXTURE void seen_mix(struct seen *s, uint64_t v)
{
    s->hash = (s->hash ^ v) * UINT64_C(0x9E3779B97F4A7C15);
    s->hash ^= s->hash >> 29;
}

FIXTURE int seen_event(void *ctx, const struct trace_event *e)
{
    struct seen *s = ctx;
    if (e->time_ns < s->last_ns) s->unordered = true;
    s->last_ns = e->time_ns;
    seen_mix(s, (uint64_t)e->kind << 40 | e->site);
    switch (e->kind) {
    case TRACE_BEGIN:
        s->begins++;
        s->weighed += (e->flags & TRACE_WEIGHED) != 0;
        if (++s->depth > s->deepest) s->deepest = s->depth;
        break;
    case TRACE_END:
        s->ends++;
        s->synthetic += (e->flags & TRACE_SYNTHETIC) != 0;
        if (!s->depth--) s->unnested = true;
        break;
    case TRACE_COUNT:
        s->counts++;
        s->value = (int64_t)((uint64_t)s->value + (uint64_t)e->value);
        seen_mix(s, (uint64_t)e->value);
        break;
    default:
        s->marks++;
        snprintf(s->text, sizeof s->text, "%s", e->text);
        for (const char *p = e->text; *p; p++) seen_mix(s, (unsigned char)*p);
    }
    return 0;
}

/* All events of all threads; a thread must start and end at depth 0. */
FIXTURE tare_status see_events(struct trace *t, struct seen *s, tare_error *err)
{
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < trace_n_threads(t); i++) {
        s->last_ns = 0;
        tare_status status = trace_events(t, i, seen_event, s, err);
        if (status != TARE_OK) return status;
        if (s->depth) s->unnested = true;
    }
    return TARE_OK;
}

#endif
