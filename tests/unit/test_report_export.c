/* SPDX-License-Identifier: MIT
 * The export formats: nesting, times, names; hostile names; failing sinks; bounded memory. The formats' own
 * readers are asked by tests/python/test_export.py. */
#include "report_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct export_format *const formats[] = {&export_chrome, &export_perfetto, &export_speedscope,
                                                      &export_folded};

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

static json_int_t number(const json_t *j, const char *key)
{
    assert_true(json_is_integer(json_object_get(j, key)));
    return json_integer_value(json_object_get(j, key));
}

/* ---- chrome ---- */

static void chrome_begins_and_ends_in_order(void **state)
{
    struct fixture *f = fix_new();
    struct export_input in = {.source = &f->source};
    (void)state;
    struct buf got = fix_export(&export_chrome, &in);
    json_t *j = fix_json(&got), *events = json_object_get(j, "traceEvents"), *e;
    assert_string_equal(text(j, "displayTimeUnit"), "ns");
    char seen[64] = "";
    size_t i;
    json_array_foreach(events, i, e)
    {
        if (json_object_get(e, "tid") && number(e, "tid") == 100) strncat(seen, text(e, "ph"), 2);
    }
    assert_string_equal(seen, "MBBCCiEE");
    e = json_array_get(events, 5); /* two processes, three threads, then main */
    assert_string_equal(text(e, "name"), "main");
    assert_float_equal(json_number_value(json_object_get(e, "ts")), 1.0, 1e-6);
    e = json_array_get(events, 6);
    assert_non_null(json_object_get(json_object_get(e, "args"), EXPORT_WEIGHED));
    e = json_array_get(events, 8);
    assert_int_equal(number(json_object_get(e, "args"), "sum"), -2);
    assert_int_equal(number(e, "id"), 100); /* two threads in this process */
    e = json_array_get(events, 9);
    assert_string_equal(text(json_object_get(e, "args"), "text"), "e \"1\"\xEF\xBF\xBD");
    e = json_array_get(events, 11);
    assert_non_null(json_object_get(json_object_get(e, "args"), EXPORT_UNENDED));
    assert_non_null(strstr(got.data, "\"ts\":2.345,"));
    json_decref(j);
    buf_release(&got);
    free(f);
}

/* ---- speedscope ---- */

static void speedscope_has_a_profile_per_busy_thread(void **state)
{
    struct fixture *f = fix_new();
    struct export_input in = {.source = &f->source};
    (void)state;
    struct buf got = fix_export(&export_speedscope, &in);
    json_t *j = fix_json(&got), *profiles = json_object_get(j, "profiles");
    assert_int_equal(json_array_size(json_object_get(json_object_get(j, "shared"), "frames")), FIX_SITES);
    assert_int_equal(json_array_size(profiles), 2);
    json_t *p = json_array_get(profiles, 1), *events = json_object_get(p, "events");
    assert_string_equal(text(p, "type"), "evented");
    assert_string_equal(text(p, "name"), "worker \"x\" (101/101)");
    assert_int_equal(number(p, "endValue"), 9000);
    assert_int_equal(json_array_size(events), 4);
    assert_string_equal(text(json_array_get(events, 3), "type"), "C");
    assert_int_equal(number(json_array_get(events, 3), "frame"), SITE_HOSTILE);
    json_decref(j);
    buf_release(&got);
    f->n_events = 0;
    memset(f->threads, 0, sizeof f->threads);
    got = fix_export(&export_speedscope, &in);
    j = fix_json(&got);
    assert_int_equal(json_array_size(json_object_get(j, "profiles")), 1);
    json_decref(j);
    buf_release(&got);
    free(f);
}

static void speedscope_of_a_tree_is_sampled(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct export_input in = {.source = &f->source, .tree = &tree};
    (void)state;
    f->source.has_events = false;
    assert_true(export_needs_tree(&export_speedscope, &f->source));
    nodes[2].self_ns.value = -4; /* below what could be weighed: no sample */
    struct buf got = fix_export(&export_speedscope, &in);
    json_t *j = fix_json(&got), *p = json_array_get(json_object_get(j, "profiles"), 0);
    json_t *samples = json_object_get(p, "samples"), *weights = json_object_get(p, "weights");
    assert_string_equal(text(p, "type"), "sampled");
    assert_int_equal(json_array_size(samples), 4);
    assert_int_equal(json_array_size(weights), 4);
    assert_int_equal(json_array_size(json_array_get(samples, 1)), 3); /* main, step, step */
    json_int_t sum = 0;
    for (size_t i = 0; i < 4; i++) sum += json_integer_value(json_array_get(weights, i));
    assert_int_equal(sum, number(p, "endValue"));
    assert_int_equal(sum, 1000 + 3000 + 1500 + 500);
    json_decref(j);
    buf_release(&got);
    free(f);
}

/* ---- folded ---- */

static void folded_lines_hold_self_times(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct export_input in = {.source = &f->source, .tree = &tree};
    (void)state;
    f->sites[SITE_HOSTILE].name = "a;b c\n";
    nodes[3].self_ns.value = 0.2;
    struct buf got = fix_export(&export_folded, &in);
    assert_string_equal(got.data, "main 1000\nmain;step 4000\na\\x3bb c\\n 1500\na\\x3bb c\\n;step 500\n");
    buf_release(&got);
    in.gross = true;
    got = fix_export(&export_folded, &in);
    assert_string_equal(
        got.data,
        "main 1050\nmain;step 4050\nmain;step;step 3050\na\\x3bb c\\n 1550\na\\x3bb c\\n;step 550\n");
    buf_release(&got);
    free(f);
}

/* ---- perfetto: a reader of the wire, as small as can be ---- */

struct field {
    uint32_t number, wire;
    uint64_t value; /* varint, or length */
    const unsigned char *bytes;
};

static uint64_t varint(const unsigned char **at, const unsigned char *end)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 70);
        unsigned char c = *(*at)++;
        v |= (uint64_t)(c & 0x7F) << shift;
        if (c < 0x80) return v;
    }
}

static bool next_field(const unsigned char **at, const unsigned char *end, struct field *f)
{
    if (*at == end) return false;
    uint64_t key = varint(at, end);
    f->number = (uint32_t)(key >> 3);
    f->wire = key & 7;
    assert_true(f->wire == 0 || f->wire == 2);
    f->value = varint(at, end);
    f->bytes = *at;
    if (f->wire == 2) {
        assert_true(f->value <= (uint64_t)(end - *at));
        *at += f->value;
    }
    return true;
}

/* The first field of that number in a message; number 0 if absent. */
static struct field find(struct field in, uint32_t number_)
{
    const unsigned char *at = in.bytes, *end = in.bytes + in.value;
    struct field f = {0};
    if (!in.number) return f;
    while (next_field(&at, end, &f))
        if (f.number == number_) return f;
    return (struct field){0};
}

static void perfetto_sequences_are_whole(void **state)
{
    struct fixture *f = fix_new();
    struct export_input in = {.source = &f->source};
    char types[6][32] = {{0}};
    unsigned first_flags[6] = {0}, descriptors = 0;
    (void)state;
    struct buf got = fix_export(&export_perfetto, &in);
    const unsigned char *at = (const unsigned char *)got.data, *end = at + got.len;
    struct field packet, counter = {0};
    while (next_field(&at, end, &packet)) {
        assert_int_equal(packet.number, 1);
        uint64_t sequence = find(packet, 10).value;
        assert_true(sequence >= 1 && sequence <= 4);
        descriptors += find(packet, 60).number == 60;
        struct field event = find(packet, 11);
        if (!event.number) continue;
        size_t n = strlen(types[sequence]);
        if (n == 0)
            first_flags[sequence] = (unsigned)find(packet, 13).value;
        else
            assert_int_equal(find(packet, 13).value, 2);
        types[sequence][n] = (char)('0' + find(event, 9).value);
        if (find(event, 9).value == 4) counter = find(event, 30);
        if (find(event, 9).value == 1 && sequence == 2 && n == 0) {
            struct field name = find(find(find(packet, 12), 2), 2);
            assert_int_equal(name.value, 4);
            assert_memory_equal(name.bytes, "main", 4);
            assert_int_equal(find(packet, 8).value, 1000);
            assert_int_equal(find(find(find(packet, 59), 11), 11).value, 3); /* the track of thread 0 */
        }
    }
    assert_string_equal(types[2], "11443"
                                  "22");
    assert_string_equal(types[4], "1122");
    assert_int_equal(first_flags[2], 3);
    assert_int_equal(first_flags[4], 3);
    assert_int_equal(descriptors, 2 + 3 + 1);
    assert_int_equal((int64_t)counter.value, -2);
    buf_release(&got);
    free(f);
}

/* ---- all of them ---- */

static void a_ten_megabyte_name_is_no_harm(void **state)
{
    enum { LONG = 10 << 20 };
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct export_input in = {.source = &f->source, .tree = &tree};
    char *name = malloc(LONG + 1);
    (void)state;
    memset(name, 'x', LONG);
    memcpy(name + TEXT_NAME_MAX - 1, "\xe2\x82\xac", 3); /* a character across the cut */
    name[LONG] = 0;
    f->sites[SITE_STEP].name = name;
    for (size_t i = 0; i < N_ELEMENTS(formats); i++) {
        struct buf got = fix_export(formats[i], &in);
        if (formats[i] == &export_chrome || formats[i] == &export_speedscope) json_decref(fix_json(&got));
        if (formats[i] == &export_folded) assert_true(got.len < 10 * TEXT_NAME_MAX);
        buf_release(&got);
    }
    free(name);
    free(f);
}

static void timelines_refuse_a_trace_without_events(void **state)
{
    struct fixture *f = fix_new();
    tare_error err = TARE_ERROR_INIT;
    (void)state;
    f->source.has_events = false;
    assert_int_equal(export_check(&export_chrome, &f->source, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "app.tare"));
    assert_non_null(strstr(err.text, "TARE_MODE"));
    assert_int_equal(export_check(&export_perfetto, &f->source, &err), TARE_INVALID);
    f->source.has_samples = true;
    assert_int_equal(export_check(&export_perfetto, &f->source, &err), TARE_OK);
    f->source.has_samples = f->source.has_tree = false;
    assert_int_equal(export_check(&export_perfetto, &f->source, &err), TARE_INVALID);
    assert_null(strstr(err.text, "TARE_MODE")); /* there is no call tree that it would be about */
    assert_int_equal(export_check(&export_speedscope, &f->source, &err), TARE_OK);
    assert_int_equal(export_check(&export_folded, &f->source, &err), TARE_OK);
    free(f);
}

/* ---- what was sampled ---- */

enum { MOMENTS = 10 };

/* A moment a second. NAN: not read then. */
static void put_series(struct samples *s, enum metric_id m, const char *label, const double v[MOMENTS])
{
    size_t at;
    double *column = mem_new(MOMENTS, sizeof *column);
    assert_non_null(column);
    memcpy(column, v, MOMENTS * sizeof *column);
    assert_int_equal(series_find(&s->set, m, label, &at, NULL), TARE_OK);
    assert_int_equal(vec_push(&s->columns, column, NULL), TARE_OK);
}

static struct samples some_samples(void)
{
    struct samples s = SAMPLES_INIT;
    for (uint64_t i = 0; i < MOMENTS; i++)
        assert_int_equal(vec_push(&s.at_ns, (i + 7) * UINT64_C(1000000000), NULL), TARE_OK);
    put_series(&s, METRIC_PROC_RSS, "", (double[]){1e6, 1e6, 1e6, 1e6, 2e6, 2e6, 2e6, 2e6, 2e6, 2e6});
    put_series(&s, METRIC_PROC_PSS, "", (double[]){5e5, 5e5, NAN, NAN, NAN, NAN, 9e5, NAN, NAN, NAN});
    put_series(&s, METRIC_PROC_READ, "", (double[]){0, 10, NAN, NAN, NAN, NAN, 60, NAN, NAN, 60});
    put_series(&s, METRIC_PROC_RSS, "pid 7 x", (double[]){3, 3, 3, 3, NAN, NAN, NAN, NAN, NAN, NAN});
    put_series(&s, METRIC_GPU_TEMP, "gpu0", (double[]){50, NAN, 51, NAN, 52, NAN, 53, NAN, 54, NAN});
    put_series(&s, METRIC_GPU_POWER, "gpu0", (double[]){50, NAN, NAN, NAN, NAN, NAN, 50, NAN, NAN, NAN});
    return s;
}

/* "0:1e+06 4:2e+06": the points of a curve, or the bars of a track with their lengths; seconds. */
static void told_of(json_t *events, const char *name, char out[200])
{
    size_t i;
    json_t *e;
    json_int_t track = -1;
    out[0] = 0;
    json_array_foreach(events, i, e)
    {
        const char *of = text(json_object_get(e, "args"), "name");
        if (strcmp(text(e, "ph"), "M") == 0 && strcmp(of, name) == 0) track = number(e, "tid");
        bool point = strcmp(text(e, "ph"), "C") == 0 && strcmp(text(e, "name"), name) == 0;
        bool bar = strcmp(text(e, "ph"), "X") == 0 && number(e, "tid") == track;
        if (!point && !bar) continue;
        size_t used = strlen(out);
        double value =
            json_number_value(json_object_iter_value(json_object_iter(json_object_get(e, "args"))));
        snprintf(out + used, 200 - used, "%s%g", used ? " " : "",
                 json_number_value(json_object_get(e, "ts")) / 1e6);
        used = strlen(out);
        if (bar) snprintf(out + used, 200 - used, "+%g", json_number_value(json_object_get(e, "dur")) / 1e6);
        used = strlen(out);
        snprintf(out + used, 200 - used, ":%g", value);
    }
}

/* Viewers draw a counter on from its last point: what was not read must not be one. */
static void what_was_not_read_is_not_drawn_on(void **state)
{
    struct fixture *f = fix_new();
    struct samples s = some_samples();
    struct export_input in = {.source = &f->source, .samples = &s};
    struct buf got = fix_export(&export_chrome, &in);
    json_t *j = fix_json(&got), *events = json_object_get(j, "traceEvents");
    static const struct {
        const char *name, *told;
    } want[] = {
        {"process.memory.rss", "0:1e+06 4:2e+06"},
        {"process.memory.pss", "0+2:500000 6+1:900000"},
        {"process.io.read", "0:10 6:0"}, /* 10 B/s from the first on, for six seconds; then none */
        {"process.memory.rss[pid 7 x]", "0:3 4:0"},
        {"gpu.temperature[gpu0]", "0:50 2:51 4:52 6:53 8:54"}, /* asked in turn: it stands until then */
        {"gpu.power[gpu0]", "0+2:50 6+2:50"},                  /* but not for longer */
    };
    (void)state;
    for (size_t i = 0; i < N_ELEMENTS(want); i++) {
        char told[200];
        told_of(events, want[i].name, told);
        assert_string_equal(told, want[i].told);
    }
    assert_non_null(strstr(got.data, "\"name\":\"50 W\""));
    json_decref(j);
    buf_release(&got);
    samples_release(&s);
    free(f);
}

static void every_allocation_may_fail(void **state)
{
    struct fixture *f = fix_new();
    struct call_node nodes[8];
    struct calltree tree = fix_tree(nodes);
    struct samples sampled = some_samples();
    struct export_input in = {.source = &f->source, .tree = &tree, .samples = &sampled};
    long before = mem_live_blocks();
    (void)state;
    for (size_t k = 0; k < N_ELEMENTS(formats) + 1; k++) {
        f->source.has_events = k < N_ELEMENTS(formats); /* the last: speedscope of a tree */
        const struct export_format *format = k < N_ELEMENTS(formats) ? formats[k] : &export_speedscope;
        for (long n = 0;; n++) {
            struct buf got = BUF_INIT;
            struct stream s;
            tare_error err = TARE_ERROR_INIT;
            stream_init(&s, sink_to_buf(&got), &err);
            mem_fail_after(n);
            format->write(&s, &in);
            tare_status status = stream_finish(&s);
            mem_fail_after(-1);
            buf_release(&got);
            assert_int_equal(mem_live_blocks(), before);
            if (status == TARE_OK) break;
            assert_int_equal(status, TARE_NOMEM);
            assert_true(err.text[0] != 0);
            assert_true(n < 1000);
        }
    }
    samples_release(&sampled);
    free(f);
}

/* ---- sinks ---- */

struct meter {
    uint64_t bytes, writes, fail_at;
};

static tare_status meter_write(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct meter *m = ctx;
    (void)bytes;
    if (m->fail_at && m->bytes + n > m->fail_at) return error_set(err, TARE_IO, "no space left");
    m->bytes += n;
    m->writes++;
    return TARE_OK;
}

static void long_traces_stream_and_stop_when_the_sink_fails(void **state)
{
    struct fixture *f = fix_new();
    struct export_input in = {.source = &f->source};
    (void)state;
    f->repeat = 20000;
    for (size_t i = 0; i < 3; i++) {
        struct meter m = {0};
        struct stream s;
        tare_error err = TARE_ERROR_INIT;
        stream_init(&s, (struct sink){meter_write, &m}, &err);
        formats[i]->write(&s, &in);
        assert_true(s.out.cap <= 4 * STREAM_PIECE);
        assert_int_equal(stream_finish(&s), TARE_OK);
        assert_true(m.writes > 10);
        assert_int_equal(m.bytes, s.written);
        uint64_t whole = m.bytes;
        m = (struct meter){.fail_at = whole / 2};
        stream_init(&s, (struct sink){meter_write, &m}, &err);
        formats[i]->write(&s, &in);
        assert_int_equal(stream_finish(&s), TARE_IO);
        assert_string_equal(err.text, "no space left");
        assert_true(m.bytes <= whole / 2 && m.bytes + 4 * STREAM_PIECE > whole / 2);
    }
    free(f);
}

static int count_entries(const char *folder)
{
    char command[200], line[20] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_non_null(fgets(line, sizeof line, p));
    pclose(p);
    return (int)strtol(line, NULL, 10);
}

static void files_appear_whole_or_not_at_all(void **state)
{
    char folder[] = "/tmp/tare-sink-XXXXXX", path[64], link_path[64];
    struct file_out f;
    tare_error err = TARE_ERROR_INIT;
    struct stat st;
    long before = mem_live_blocks();
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(file_out_open(&f, path, FILE_SHARED, &err), TARE_OK);
    assert_int_equal(sink_to_file(&f).write(&f, "abc", 3, &err), TARE_OK);
    assert_int_equal(access(path, F_OK), -1);
    file_out_close(&f); /* given up */
    assert_int_equal(count_entries(folder), 0);
    assert_int_equal(file_out_open(&f, path, FILE_SHARED, &err), TARE_OK);
    assert_int_equal(sink_to_file(&f).write(&f, "abc", 3, &err), TARE_OK);
    assert_int_equal(file_out_commit(&f, &err), TARE_OK);
    assert_int_equal(symlink("out", link_path), 0);
    assert_int_equal(file_out_open(&f, link_path, FILE_SHARED, &err), TARE_OK);
    assert_int_equal(sink_to_file(&f).write(&f, "abcdef", 6, &err), TARE_OK);
    assert_int_equal(file_out_commit(&f, &err), TARE_OK);
    assert_int_equal(lstat(link_path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 6);
    assert_int_equal(count_entries(folder), 2);
    assert_int_equal(file_out_open(&f, folder, FILE_SHARED, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "is a folder"));
    assert_int_equal(file_out_open(&f, "/nonexistent/x/out", FILE_SHARED, &err), TARE_IO);
    assert_non_null(strstr(err.text, "/nonexistent/x/out"));
    assert_int_equal(file_out_open(&f, "", FILE_SHARED, &err), TARE_INVALID);
    assert_int_equal(file_out_open(&f, "/dev/null", FILE_SHARED, &err),
                     TARE_OK); /* written in place, not replaced */
    assert_int_equal(file_out_commit(&f, &err), TARE_OK);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(file_out_open(&f, "/dev/full", FILE_SHARED, &err), TARE_OK);
    assert_int_equal(sink_to_file(&f).write(&f, "x", 1, &err), TARE_IO);
    file_out_close(&f);
    unlink(link_path);
    unlink(path);
    rmdir(folder);
    assert_int_equal(mem_live_blocks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chrome_begins_and_ends_in_order),
        cmocka_unit_test(speedscope_has_a_profile_per_busy_thread),
        cmocka_unit_test(speedscope_of_a_tree_is_sampled),
        cmocka_unit_test(what_was_not_read_is_not_drawn_on),
        cmocka_unit_test(folded_lines_hold_self_times),
        cmocka_unit_test(perfetto_sequences_are_whole),
        cmocka_unit_test(a_ten_megabyte_name_is_no_harm),
        cmocka_unit_test(timelines_refuse_a_trace_without_events),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(long_traces_stream_and_stop_when_the_sink_fails),
        cmocka_unit_test(files_appear_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
