/* SPDX-License-Identifier: MIT
 * course_fixture.h - runs made up sample by sample: rates and levels per step go in, a deriver and a course come
 * out. */
#ifndef TESTS_COURSE_FIXTURE_H
#define TESTS_COURSE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/watch/course.h"

struct made {
    struct series_set set;
    struct sample now;
    VEC(double) sums; /* per series: where a counter stands */
    struct deriver *deriver;
    struct course course;
    uint64_t at_ns, step_ns;
};

static inline void made_init(struct made *m)
{
    *m = (struct made){SERIES_SET_INIT, SAMPLE_INIT,          VEC_INIT, NULL,
                       COURSE_INIT,     UINT64_C(1000000000), 100000000};
    assert_int_equal(deriver_new(&m->deriver, NULL), TARE_OK);
    m->now.at_ns = m->at_ns;
}

static inline void made_release(struct made *m)
{
    series_set_release(&m->set);
    sample_release(&m->now);
    vec_release(&m->sums);
    deriver_free(m->deriver);
    course_release(&m->course);
}

/* A gauge's level, or what a counter grows by per second. */
static inline void made_put(struct made *m, enum metric_id id, const char *label, double v)
{
    size_t i;
    assert_int_equal(series_find(&m->set, id, label, &i, NULL), TARE_OK);
    while (m->sums.n <= i) assert_int_equal(vec_push(&m->sums, 0, NULL), TARE_OK);
    if (metric_table[id].kind == METRIC_COUNTER) v = m->sums.items[i] += v * (double)m->step_ns / 1e9;
    assert_int_equal(sample_set(&m->now, i, v, NULL), TARE_OK);
}

/* What was put becomes a sample; the next one begins. */
static inline void made_step(struct made *m)
{
    assert_int_equal(deriver_feed(m->deriver, &m->set, &m->now, NULL), TARE_OK);
    assert_int_equal(course_feed(&m->course, m->deriver, m->now.at_ns, NULL), TARE_OK);
    m->at_ns += m->step_ns;
    sample_clear(&m->now);
    m->now.at_ns = m->at_ns;
}

static inline double made_value(const struct made *m, const char *name, const char *label)
{
    double v;
    return derived_value(m->deriver, name, label, &v) ? v : -1;
}

#endif
