/* SPDX-License-Identifier: MIT
 * test_timeline_json.c - samples as the report page gets them, read back with jansson: columns in step with times,
 * rates of counters, unknown as null, long recordings joined without losing their peaks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/mem.h"
#include "page_fixture.h"
#include "report/trace/report.h"

#define SECOND UINT64_C(1000000000)

struct made {
    struct samples s;
    size_t rss, busy, disk;
};

/* One moment a second; memory 100, 200, ..; a counter of 0.5 a second; a disk that never reads. */
static void make(struct made *m, size_t n)
{
    *m = (struct made){.s = SAMPLES_INIT};
    assert_int_equal(series_find(&m->s.set, METRIC_PROC_RSS, "", &m->rss, NULL), TARE_OK);
    assert_int_equal(series_find(&m->s.set, METRIC_SELF_CPU, "", &m->busy, NULL), TARE_OK);
    assert_int_equal(series_find(&m->s.set, METRIC_DISK_READ, "sda", &m->disk, NULL), TARE_OK);
    for (int i = 0; i < 3; i++) {
        double *column = mem_new(n, sizeof *column);
        assert_non_null(column);
        assert_int_equal(vec_push(&m->s.columns, column, NULL), TARE_OK);
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(vec_push(&m->s.at_ns, (i + 5) * SECOND, NULL), TARE_OK);
        m->s.columns.items[m->rss][i] = 100 * (double)(i + 1);
        m->s.columns.items[m->busy][i] = 0.5 * (double)i;
    }
    m->s.start_ns = 4 * SECOND;
    m->s.start_unix_ns = UINT64_C(1700000000) * SECOND;
    m->s.closed = true;
    memcpy(m->s.run_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", 27);
}

static void add_mark(struct made *m, uint64_t at_ns, enum sample_mark_kind kind, const char *text)
{
    struct sample_mark mark = {at_ns, kind, mem_strdup(text)};
    assert_int_equal(vec_push(&m->s.marks, mark, NULL), TARE_OK);
}

static json_t *written(const struct samples *s)
{
    struct buf out = BUF_INIT;
    struct stream stream;
    tare_error err = TARE_ERROR_INIT;
    json_error_t where;
    stream_init(&stream, sink_to_buf(&out), &err);
    timeline_json_write(&stream, s);
    if (stream_finish(&stream) != TARE_OK) fail_msg("%s", err.text);
    json_t *doc = json_loads(out.data, 0, &where);
    if (!doc) fail_msg("%s", where.text);
    buf_release(&out);
    return doc;
}

/* NULL: the document has no such series. */
static json_t *series_of(json_t *doc, const char *metric)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(doc, "series"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "metric")), metric) == 0) return row;
    }
    return NULL;
}

static double number_at(json_t *list, size_t i)
{
    assert_true(json_is_number(json_array_get(list, i)));
    return json_number_value(json_array_get(list, i));
}

static void columns_are_in_step_with_their_times(void **state)
{
    struct made m;
    (void)state;
    make(&m, 4);
    m.s.columns.items[m.rss][2] = NAN;
    json_t *doc = written(&m.s), *rss = json_object_get(series_of(doc, "process.memory.rss"), "values");
    assert_string_equal(json_string_value(json_object_get(doc, "schema")), "tare.timeline/1");
    assert_string_equal(json_string_value(json_object_get(doc, "start")), "2023-11-14T22:13:21.000Z");
    assert_int_equal(json_array_size(json_object_get(doc, "at_s")), 4);
    assert_true(number_at(json_object_get(doc, "at_s"), 3) == 3);
    assert_int_equal(json_array_size(rss), 4);
    assert_true(number_at(rss, 3) == 400);
    assert_true(json_is_null(json_array_get(rss, 2)));
    json_decref(doc);
    samples_release(&m.s);
}

static void counters_are_rates_and_what_never_moves_is_one_number(void **state)
{
    struct made m;
    (void)state;
    make(&m, 5);
    json_t *doc = written(&m.s), *self = series_of(doc, "self.cpu"), *disk = series_of(doc, "disk.read");
    assert_true(json_number_value(json_object_get(self, "constant")) == 0.5);
    assert_true(json_is_number(json_object_get(disk, "constant")));
    assert_true(json_number_value(json_object_get(disk, "constant")) == 0);
    assert_string_equal(json_string_value(json_object_get(disk, "unit")), "B/s");
    assert_null(json_object_get(disk, "values"));
    m.s.columns.items[m.rss][1] = m.s.columns.items[m.rss][4] = 100;
    m.s.columns.items[m.rss][2] = m.s.columns.items[m.rss][3] =
        NAN; /* the same again, but not read between */
    json_t *gaps = written(&m.s), *rss = json_object_get(series_of(gaps, "process.memory.rss"), "values");
    assert_true(number_at(rss, 4) == 100 && json_is_null(json_array_get(rss, 3)));
    json_decref(gaps);
    assert_null(series_of(doc, "gpu.power")); /* never seen: not there, rather than 0 */
    json_decref(doc);
    samples_release(&m.s);
}

static void a_long_recording_is_joined_and_keeps_its_peaks(void **state)
{
    struct made m;
    (void)state;
    make(&m, 3 * TIMELINE_POINTS_MAX);
    m.s.columns.items[m.rss][3000] = 9e9;
    json_t *doc = written(&m.s), *rss = series_of(doc, "process.memory.rss");
    size_t points = json_array_size(json_object_get(doc, "at_s"));
    assert_int_equal(points, TIMELINE_POINTS_MAX);
    assert_int_equal(json_integer_value(json_object_get(doc, "joined")), 3);
    assert_true(number_at(json_object_get(rss, "peaks"), 1000) == 9e9);
    assert_true(number_at(json_object_get(rss, "values"), 1000) < 9e9);
    assert_true(number_at(json_object_get(rss, "values"), 0) == 200);
    json_decref(doc);
    samples_release(&m.s);
}

static void alerts_and_notes_are_told_in_seconds(void **state)
{
    struct made m;
    (void)state;
    make(&m, 6);
    add_mark(&m, 6 * SECOND, SAMPLE_ALERT, "memory>80% for 1s");
    add_mark(&m, 8 * SECOND, SAMPLE_CLEAR, "memory>80% for 1s");
    add_mark(&m, 7 * SECOND, SAMPLE_NOTE, "</script><b>");
    json_t *doc = written(&m.s), *alert = json_array_get(json_object_get(doc, "alerts"), 0);
    json_t *note = json_array_get(json_object_get(doc, "notes"), 0);
    assert_int_equal(json_array_size(json_object_get(doc, "alerts")), 1);
    assert_string_equal(json_string_value(json_object_get(alert, "metric")), "memory");
    assert_true(json_number_value(json_object_get(alert, "start_s")) == 1);
    assert_true(json_number_value(json_object_get(alert, "end_s")) == 3);
    assert_true(json_number_value(json_object_get(note, "at_s")) == 2);
    assert_string_equal(json_string_value(json_object_get(note, "text")), "</script><b>");
    json_decref(doc);
    samples_release(&m.s);
}

/* docs/timeline-format.md has every member, and none more. */
static void the_page_tells_of_every_member(void **state)
{
    struct made m;
    const char *key;
    json_t *value, *doc, *row;
    size_t i;
    struct page_table *t = page_table("timeline-format.md", "| field |", 0);
    (void)state;
    make(&m, 4);
    doc = written(&m.s);
    json_object_foreach(doc, key, value)
    {
        if (!page_names(t, 0, key)) fail_msg("timeline-format.md does not tell of %s", key);
    }
    for (i = 0; i < t->n; i++)
        if (!json_object_get(doc, t->cell[i][0]))
            fail_msg("%s is in timeline-format.md alone", t->cell[i][0]);
    json_array_foreach(json_object_get(doc, "phases"), i, row)
    {
        json_object_foreach(row, key, value) if (!page_names(t, 1, key)) fail_msg("no phase has a %s", key);
    }
    json_decref(doc);
    samples_release(&m.s);
    free(t);
}

static void no_memory_is_told(void **state)
{
    struct made m;
    tare_status st = TARE_NOMEM;
    long n = 0;
    (void)state;
    make(&m, 4);
    for (; st != TARE_OK && n < 4000; n++) {
        struct buf out = BUF_INIT;
        struct stream stream;
        tare_error err = TARE_ERROR_INIT;
        stream_init(&stream, sink_to_buf(&out), &err);
        mem_fail_after(n);
        timeline_json_write(&stream, &m.s);
        st = stream_finish(&stream);
        mem_fail_after(-1);
        buf_release(&out);
        if (st != TARE_OK) assert_int_equal(st, TARE_NOMEM);
    }
    assert_true(st == TARE_OK && n > 3);
    samples_release(&m.s);
    assert_int_equal(mem_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_in_step_with_their_times),
        cmocka_unit_test(counters_are_rates_and_what_never_moves_is_one_number),
        cmocka_unit_test(a_long_recording_is_joined_and_keeps_its_peaks),
        cmocka_unit_test(alerts_and_notes_are_told_in_seconds),
        cmocka_unit_test(the_page_tells_of_every_member),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
