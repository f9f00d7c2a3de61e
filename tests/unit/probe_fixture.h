/* SPDX-License-Identifier: MIT
 * probe_fixture.h - what tests of probes share: a made-up root with proc/ and sys/, written file by file, and one
 * opened probe whose values are looked up by name. */
#ifndef TESTS_PROBE_FIXTURE_H
#define TESTS_PROBE_FIXTURE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "probe/probe.h"

#define FIXTURE __attribute__((unused)) static

struct made_root {
    char path[64];
    struct probes probes;
    tare_error err;
    bool opened;
};

FIXTURE int root_set_up(void **state)
{
    struct made_root *r = test_calloc(1, sizeof *r);
    snprintf(r->path, sizeof r->path, "/tmp/tare-probe-XXXXXX");
    assert_non_null(mkdtemp(r->path));
    *state = r;
    return 0;
}

FIXTURE void root_close(struct made_root *r)
{
    if (r->opened) probes_close(&r->probes);
    r->opened = false;
}

FIXTURE int root_tear_down(void **state)
{
    struct made_root *r = *state;
    char command[100];
    root_close(r);
    snprintf(command, sizeof command, "rm -rf '%s'", r->path);
    assert_int_equal(system(command), 0);
    test_free(r);
    assert_int_equal(mem_live_blocks(), 0);
    return 0;
}

/* A file below the root; folders are made. */
FIXTURE void root_bytes(struct made_root *r, const char *path, const char *text, size_t n)
{
    char full[600];
    snprintf(full, sizeof full, "%s%s", r->path, path);
    *strrchr(full, '/') = 0;
    assert_int_equal(file_make_folders(full, NULL), TARE_OK);
    snprintf(full, sizeof full, "%s%s", r->path, path);
    FILE *f = fopen(full, "w"); /* in place: the probe keeps it open */
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

FIXTURE void root_file(struct made_root *r, const char *path, const char *text)
{
    root_bytes(r, path, text, strlen(text));
}

FIXTURE tare_status root_try(struct made_root *r, const char *probe, pid_t program, bool detail)
{
    struct probe_place at = {.root = r->path, .program = program, .detail = detail};
    root_close(r);
    tare_status s = probes_open(&r->probes, &probe, 1, &at, &r->err);
    r->opened = s == TARE_OK;
    return s;
}

FIXTURE void root_sample(struct made_root *r)
{
    if (probes_sample(&r->probes, &r->err) != TARE_OK) fail_msg("%s", r->err.text);
}

/* Open and take a first sample. */
FIXTURE void root_open(struct made_root *r, const char *probe, pid_t program, bool detail)
{
    if (root_try(r, probe, program, detail) != TARE_OK) fail_msg("%s", r->err.text);
    root_sample(r);
}

/* NAN: unknown. Adds no series. */
FIXTURE double probes_value(const struct probes *p, enum metric_id m, const char *label)
{
    double v;
    for (size_t i = 0; i < p->set.items.n; i++)
        if (p->set.items.items[i].metric == m && strcmp(p->set.items.items[i].label, label) == 0)
            return sample_get(&p->now, i, &v) ? v : NAN;
    return NAN;
}

#define VALUE(r, metric, label) probes_value(&(r)->probes, METRIC_##metric, label)
#define assert_value(r, metric, label, want)                                                               \
    do {                                                                                                   \
        double got_ = VALUE(r, metric, label), want_ = (want);                                             \
        if (!(fabs(got_ - want_) <= 1e-9 * fabs(want_))) fail_msg(#metric "{%s}: %.17g", label, got_);      \
    } while (0)
#define assert_unknown(r, metric, label) assert_true(isnan(VALUE(r, metric, label)))
#define assert_blind(r, text) assert_non_null(strstr((r)->probes.blind.data, text))

#endif
