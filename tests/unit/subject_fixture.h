/* SPDX-License-Identifier: MIT
 * subject_fixture.h - what tests of subjects share: scratch folders, and the fake runtime that the Makefile puts beside
 * the test programs. Include after cmocka.h. */
#ifndef SUBJECT_FIXTURE_H
#define SUBJECT_FIXTURE_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAKE_ORT_FILE "libonnxruntime.so.1.99.0"

static char scratch[PATH_MAX / 4];

static inline const char *fake_ort(void)
{
    static char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(n > 0);
    path[n] = 0;
    snprintf(strrchr(path, '/') + 1, 64, "%s", FAKE_ORT_FILE);
    if (access(path, R_OK) < 0) fail_msg("%s is not built: make tests", path);
    return path;
}

static inline int scratch_make(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/subject-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_unlink(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static inline int scratch_remove(void **state)
{
    (void)state;
    return nftw(scratch, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the scratch folder; good until the eighth call after it. */
static inline const char *in_scratch(const char *name)
{
    static char ring[8][PATH_MAX / 2];
    static unsigned at;
    char *out = ring[at++ % 8];
    bool fits = (size_t)snprintf(out, sizeof ring[0], "%s/%s", scratch, name) < sizeof ring[0];
    return fits ? out : NULL;
}

/* Write a file, making the folders above it. */
static inline const char *scratch_file(const char *name, const void *bytes, size_t n)
{
    const char *path = in_scratch(name);
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *p = folder + strlen(scratch) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(folder, 0777);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static inline const char *scratch_text(const char *name, const char *text)
{
    return scratch_file(name, text, strlen(text));
}

#endif
