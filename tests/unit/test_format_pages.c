/* SPDX-License-Identifier: MIT
 * test_format_pages.c - docs/trace-format.md against src/trace/format.h: versions, kinds of chunks, and where each
 * field of the fixed headers stands. */
#include "page_fixture.h"

#include "trace/format.h"

static const char page[] = "trace-format.md";

/* Without a default: a kind that is new in the code does not compile until it stands here. */
static const char *chunk_name(enum chunk_type type)
{
    switch (type) {
    case CHUNK_PROCESS: return "PROCESS";
    case CHUNK_SITES: return "SITES";
    case CHUNK_THREAD: return "THREAD";
    case CHUNK_EVENTS: return "EVENTS";
    case CHUNK_TREE: return "TREE";
    case CHUNK_CLOCK: return "CLOCK";
    case CHUNK_END: return "END";
    case CHUNK_SERIES: return "SERIES";
    case CHUNK_SAMPLE: return "SAMPLE";
    case CHUNK_SAMPLE_MARK: return "SAMPLE_MARK";
    case CHUNK_PAUSES: return "PAUSES";
    case CHUNK_GPU: return "GPU";
    case CHUNK_MEMORY: return "MEMORY";
    }
    return NULL;
}

static void chunks_are_those_of_the_code(void **state)
{
    struct page_table *t = page_table(page, "| type | name |", 0);
    (void)state;
    for (size_t i = 0; i < t->n; i++) {
        const char *name = chunk_name((enum chunk_type)(i + 1));
        assert_int_equal(strtol(t->cell[i][0], NULL, 10), i + 1);
        assert_non_null(name);
        assert_string_equal(t->cell[i][1], name);
    }
    assert_null(chunk_name((enum chunk_type)(t->n + 1)));
    free(t);
}

struct field {
    const char *name;
    size_t at;
};

#define AT(type, member) {#member, offsetof(struct type, member)}

/* Every row of the table is a field of the struct at that offset, and the other way round. */
static void check_fields(int nth, const struct field *fields, size_t n)
{
    struct page_table *t = page_table(page, "| offset | type | field |", nth);
    assert_int_equal(t->n, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(t->cell[i][2], fields[i].name);
        assert_int_equal(strtol(t->cell[i][0], NULL, 10), fields[i].at);
    }
    free(t);
}

static void fields_stand_where_the_page_says(void **state)
{
    static const struct field archive[] = {
        AT(archive_header, magic),    AT(archive_header, major),  AT(archive_header, minor),
        AT(archive_header, header_bytes), AT(archive_header, features), AT(archive_header, run_id),
        AT(archive_header, created_unix_ns),
    };
    static const struct field chunk[] = {
        AT(chunk_header, magic),        AT(chunk_header, type),        AT(chunk_header, codec),
        AT(chunk_header, reserved),     AT(chunk_header, stored_bytes), AT(chunk_header, plain_bytes),
        AT(chunk_header, process),      AT(chunk_header, crc),
        {"reserved", offsetof(struct chunk_header, reserved2)},
    };
    static const struct field process[] = {
        AT(process_info, uid),          AT(process_info, parent_uid),   AT(process_info, pid),
        AT(process_info, parent_pid),   AT(process_info, start_time),   AT(process_info, begun_raw_ns),
        AT(process_info, begun_unix_ns), AT(process_info, mode),        AT(process_info, clock),
        AT(process_info, tsc),          AT(process_info, site_base),    AT(process_info, inside),
        AT(process_info, outside),      AT(process_info, skipped),
    };
    static const struct field live[] = {
        AT(live_header, magic),         {"major, minor", offsetof(struct live_header, major)},
        AT(live_header, header_bytes),  AT(live_header, run_id),
        {"process_info", offsetof(struct live_header, process)},
        AT(live_header, used),          AT(live_header, lost_scopes),   AT(live_header, lost_events),
        AT(live_header, threads),       AT(live_header, n_pairs),       AT(live_header, pairs),
        AT(live_header, command),       {"end_raw_ns", offsetof(struct live_header, end.raw_ns)},
        {"end_why", offsetof(struct live_header, end.why)},
    };
    (void)state;
    check_fields(0, archive, sizeof archive / sizeof *archive);
    check_fields(1, chunk, sizeof chunk / sizeof *chunk);
    check_fields(2, process, sizeof process / sizeof *process);
    check_fields(3, live, sizeof live / sizeof *live);
}

/* The number with which the last cell of a row begins. */
static long said(int nth, const char *field)
{
    struct page_table *t = page_table(page, "| offset | type | field |", nth);
    long n = -1;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->cell[i][2], field) == 0) n = strtol(t->cell[i][3], NULL, 10);
    free(t);
    return n;
}

static void versions_and_sizes_are_those_of_the_code(void **state)
{
    (void)state;
    assert_int_equal(said(0, "major"), TRACE_MAJOR);
    assert_int_equal(said(0, "minor"), TRACE_MINOR);
    assert_int_equal(said(0, "header_bytes"), sizeof(struct archive_header));
    assert_int_equal(said(3, "header_bytes"), sizeof(struct live_header));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_those_of_the_code),
        cmocka_unit_test(fields_stand_where_the_page_says),
        cmocka_unit_test(versions_and_sizes_are_those_of_the_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
