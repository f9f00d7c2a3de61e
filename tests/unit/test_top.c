/* SPDX-License-Identifier: MIT
 * test_top.c - tare top without a terminal: the order of the processes, keys, numbers, and drawing at every size. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "top/top.h"
#include "top/top_term.h"
#include "core/mem.h"

/* ---- made-up data ---- */

static struct top_data data;
static struct series_set set;
static struct sample now;
static struct proc_row rows[16];

static void add_row(pid_t pid, pid_t parent, double cpu, double mib, const char *command)
{
    struct proc_row *r = &rows[data.n_rows++];
    char *text = mem_strdup(command);
    *r = (struct proc_row){
        .pid = pid, .parent = parent, .cpu = cpu, .uid = 0, .threads = 1, .name = text, .command = text};
    r->rss_bytes = (uint64_t)(mib * 1048576);
    r->read_rate = pid;
    r->write_rate = NAN;
}

static void put(enum metric_id m, const char *label, double v)
{
    size_t at;
    assert_int_equal(series_find(&set, m, label, &at, NULL), TARE_OK);
    assert_int_equal(sample_set(&now, at, v, NULL), TARE_OK);
}

/* Two moments of a machine with two processors. */
static void put_moments(int moments)
{
    static const char *const labels[] = {"", "cpu0", "cpu1"};
    for (int moment = 0; moment < moments; moment++) {
        sample_clear(&now);
        now.at_ns = 1000000000u * (unsigned)(moment + 1);
        for (int i = 0; i < 3; i++) {
            put(METRIC_CPU_BUSY, labels[i], moment * 0.5);
            put(METRIC_CPU_USER, labels[i], moment * 0.25);
            put(METRIC_CPU_SYSTEM, labels[i], moment * 0.25);
        }
        put(METRIC_CPU_COUNT, "", 2);
        put(METRIC_MEM_TOTAL, "", 4e9);
        put(METRIC_MEM_AVAILABLE, "", 1e9);
        put(METRIC_SWAP_USED, "", 1e6);
        put(METRIC_DISK_READ, "sda", moment * 5e6);
        put(METRIC_NET_RX, "eth\033[2J0", moment * 1e3);
        put(METRIC_GPU_MEM_TOTAL, "gpu0", 8e9);
        put(METRIC_TEMPERATURE, "chip", 95);
        assert_int_equal(deriver_feed(data.derived, &set, &now, NULL), TARE_OK);
    }
}

static void put_machine(void)
{
    put_moments(2);
}

static int set_up(void **state)
{
    (void)state;
    memset(&data, 0, sizeof data);
    set = (struct series_set)SERIES_SET_INIT;
    now = (struct sample)SAMPLE_INIT;
    data.set = &set;
    data.now = &now;
    data.rows = rows;
    data.rows_known = true;
    data.chosen.threads.folder = -1;
    data.blind = "gpu: no driver\nsystem: pressure: not there\n";
    return deriver_new(&data.derived, NULL) != TARE_OK;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < data.n_rows; i++) mem_free(rows[i].name);
    deriver_free(data.derived);
    series_set_release(&set);
    sample_release(&now);
    vec_release(&data.rules.items);
    vec_release(&data.alert);
    return mem_live_blocks() != 0;
}

/* "12:0 7:1": the numbers in their order with their depths. */
static const char *order(struct top_view *v)
{
    static char text[200];
    size_t used = 0;
    text[0] = 0;
    assert_int_equal(top_arrange(v, &data, NULL), TARE_OK);
    for (size_t i = 0; i < v->lines.at.n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%u", i ? " " : "",
                                 (int)rows[v->lines.at.items[i].row].pid, v->lines.at.items[i].depth);
    return text;
}

static void five(void)
{
    add_row(1, 0, 0.1, 5, "init");
    add_row(10, 1, NAN, 5, "shell");
    add_row(20, 10, 0.9, 1, "train --fast");
    add_row(21, 20, 0.2, 80, "Worker");
    add_row(30, 1, 0.1, 7, "editor");
}

/* ---- the order ---- */

static void test_sort(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_CPU};
    five();
    assert_string_equal(order(&v), "20:0 21:0 30:0 1:0 10:0"); /* equals by memory, unknown last */
    v.sort = TOP_SORT_MEMORY;
    assert_string_equal(order(&v), "21:0 30:0 1:0 10:0 20:0");
    v.sort = TOP_SORT_PID;
    assert_string_equal(order(&v), "1:0 10:0 20:0 21:0 30:0");
    v.sort = TOP_SORT_IO;
    assert_string_equal(order(&v), "30:0 21:0 20:0 10:0 1:0");
    top_view_release(&v);
}

static void test_tree(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_CPU, .tree = true};
    five();
    assert_string_equal(order(&v), "1:0 30:1 10:1 20:2 21:3");
    v.sort = TOP_SORT_PID;
    assert_string_equal(order(&v), "1:0 10:1 20:2 21:3 30:1");
    snprintf(v.filter, sizeof v.filter, "worker"); /* those above it stay */
    assert_string_equal(order(&v), "1:0 10:1 20:2 21:3");
    assert_int_equal(v.matching, 1);
    v.tree = false;
    assert_string_equal(order(&v), "21:0");
    top_view_release(&v);
}

static void test_program(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_PID, .tree = true};
    five();
    data.program = 20;
    assert_string_equal(order(&v), "20:0 21:1");
    snprintf(v.filter, sizeof v.filter, "21");
    assert_string_equal(order(&v), "20:0 21:1");
    v.tree = false;
    assert_string_equal(order(&v), "21:0");
    data.program = 99; /* it has ended */
    assert_string_equal(order(&v), "");
    top_view_release(&v);
}

static void test_odd_relations(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_PID, .tree = true};
    add_row(5, 5, 0, 0, "own parent");
    add_row(6, 7, 0, 0, "ring a");
    add_row(7, 6, 0, 0, "ring b");
    add_row(8, 99, 0, 0, "orphan");
    assert_string_equal(order(&v), "5:0 8:0");
    data.program = 3;
    assert_string_equal(order(&v), "");
    v.tree = false;
    data.program = 0;
    assert_string_equal(order(&v), "5:0 6:0 7:0 8:0");
    top_view_release(&v);
}

static void test_arrange_no_memory(void **state)
{
    (void)state;
    tare_status s = TARE_NOMEM;
    five();
    for (long n = 0; s != TARE_OK; n++) {
        struct top_view v = {.tree = true, .filter = "root"};
        assert_true(n < 50);
        mem_fail_after(n);
        s = top_arrange(&v, &data, NULL);
        mem_fail_after(-1);
        top_view_release(&v);
    }
}

/* ---- numbers and keys ---- */

static void test_numbers(void **state)
{
    (void)state;
    assert_string_equal(narrow_bytes(0).s, "0B");
    assert_string_equal(narrow_bytes(999).s, "999B");
    assert_string_equal(narrow_bytes(1000).s, "1.0K");
    assert_string_equal(narrow_bytes(1.5 * 1048576).s, "1.5M");
    assert_string_equal(narrow_bytes(123.4 * 1073741824).s, "123G");
    assert_string_equal(narrow_bytes(NAN).s, "-");
    assert_string_equal(narrow_percent(0.4321).s, "43.2");
    assert_string_equal(narrow_percent(12.5).s, "1250");
    assert_string_equal(narrow_percent(INFINITY).s, "-");
    for (double b = 1; b < 1e18; b *= 1.7) assert_true(strlen(narrow_bytes(b).s) <= 5);
}

static void test_key_parse(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int key;
        size_t taken;
    } cases[] = {
        {"q", 1, 'q', 1},
        {"\033", 1, TOP_KEY_ESCAPE, 1},
        {"\033[A", 3, TOP_KEY_UP, 3},
        {"\033OB", 3, TOP_KEY_DOWN, 3},
        {"\033[5~x", 5, TOP_KEY_PAGE_UP, 4},
        {"\033[17;2~", 7, TOP_KEY_OTHER, 7},
        {"\033[", 2, TOP_KEY_OTHER, 2},
        {"\033q", 2, TOP_KEY_ESCAPE, 1},
        {"\b", 1, TOP_KEY_BACKSPACE, 1},
        {"\0", 1, TOP_KEY_OTHER, 1},
        {"\xff", 1, 255, 1},
        {"\033O", 2, TOP_KEY_OTHER, 2},
        {"\033[<64;1;1M", 10, TOP_KEY_WHEEL_UP, 10},
        {"\033[<65;1;1Mq", 11, TOP_KEY_WHEEL_DOWN, 10},
        {"\033[<0;3;5M", 9, TOP_KEY_CLICK | 4 << 12 | 2, 9},
        {"\033[<0;3;5m", 9, TOP_KEY_OTHER, 9}, /* let go of */
        {"\033[<2;3;5M", 9, TOP_KEY_OTHER, 9},
        {"\033[<0;0;5M", 9, TOP_KEY_OTHER, 9},
        {"\033[<0;99999999999;5M", 19, TOP_KEY_OTHER, 19},
        {"\033[<0;3M", 7, TOP_KEY_OTHER, 7},
        {"\033[<0;3;5;7M", 11, TOP_KEY_OTHER, 11},
        {"\033[<0;3", 6, TOP_KEY_OTHER, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t taken = 0;
        assert_int_equal(top_key_parse(cases[i].bytes, cases[i].n, &taken), cases[i].key);
        assert_int_equal(taken, cases[i].taken);
    }
}

static void test_press(void **state)
{
    (void)state;
    struct top_view v = {.interval_s = 1, .speed = 1};
    assert_false(top_press(&v, &data, 'q', NULL));
    assert_true(top_press(&v, &data, 'm', NULL) && v.sort == TOP_SORT_MEMORY);
    assert_true(top_press(&v, &data, '/', NULL) && v.typing);
    for (const char *c = "q\xC3\xA9x"; *c; c++) assert_true(top_press(&v, &data, (unsigned char)*c, NULL));
    assert_string_equal(v.filter, "q\xC3\xA9x");
    top_press(&v, &data, TOP_KEY_BACKSPACE, NULL);
    top_press(&v, &data, TOP_KEY_BACKSPACE, NULL);
    assert_string_equal(v.filter, "q"); /* the accented letter went whole */
    for (int i = 0; i < 200; i++) top_press(&v, &data, 'a', NULL);
    assert_int_equal(strlen(v.filter), sizeof v.filter - 1);
    top_press(&v, &data, '\r', NULL);
    assert_false(v.typing);
    top_press(&v, &data, TOP_KEY_ESCAPE, NULL);
    assert_string_equal(v.filter, "");
    for (int i = 0; i < 30; i++) top_press(&v, &data, '+', NULL);
    assert_true(v.interval_s == 60);
    for (int i = 0; i < 30; i++) top_press(&v, &data, '-', NULL);
    assert_true(v.interval_s == 0.1);
    top_press(&v, &data, TOP_KEY_UP, NULL);
    assert_int_equal(v.scroll, 0);
}

/* ---- the chosen process ---- */

static pid_t chosen(struct top_view *v, int key)
{
    assert_int_equal(top_arrange(v, &data, NULL), TARE_OK);
    assert_true(top_press(v, &data, key, NULL));
    return data.chosen.pid;
}

static int click_at(unsigned x, unsigned y)
{
    return (int)((unsigned)TOP_KEY_CLICK | y << 12 | x);
}

/* 20 21 30 1 10 in the table; two of them in sight. */
static void test_choose(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_CPU, .interval_s = 1, .speed = 1};
    five();
    v.table_rows = 2;
    v.scroll = 1;
    assert_int_equal(chosen(&v, TOP_KEY_PAGE_DOWN), 0); /* turns without choosing */
    assert_int_equal(v.scroll, 3);
    v.scroll = 1;
    assert_int_equal(chosen(&v, TOP_KEY_DOWN), 21); /* the first in sight, then the next */
    assert_int_equal(chosen(&v, TOP_KEY_DOWN), 30);
    assert_true(v.follow);
    assert_int_equal(chosen(&v, TOP_KEY_HOME), 20);
    assert_int_equal(chosen(&v, TOP_KEY_UP), 20);
    assert_int_equal(chosen(&v, TOP_KEY_PAGE_DOWN), 30);
    assert_int_equal(chosen(&v, TOP_KEY_END), 10);
    assert_int_equal(chosen(&v, TOP_KEY_DOWN), 10);
    assert_int_equal(chosen(&v, 'p'), 10); /* it stays the chosen one wherever it stands */
    order(&v);
    assert_int_equal(top_chosen_line(&v, &data), 1);
    rows[1].started = 7; /* another process with its number */
    assert_null(top_chosen_row(&data));
    assert_int_equal(chosen(&v, 'c'), 10);
    assert_int_equal(chosen(&v, TOP_KEY_DOWN), 20);
    assert_int_equal(chosen(&v, TOP_KEY_ESCAPE), 0);
    assert_int_equal(chosen(&v, TOP_KEY_UP), 21); /* the last in sight */
    top_view_release(&v);
}

static void test_click(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_CPU, .interval_s = 1, .speed = 1};
    five();
    v.table_rows = 3;
    v.table_y = 10;
    v.table_width = 80;
    assert_int_equal(chosen(&v, click_at(5, 12)), 21);
    assert_false(data.chosen.details);
    assert_int_equal(chosen(&v, click_at(5, 12)), 21);
    assert_true(data.chosen.details);
    assert_int_equal(chosen(&v, TOP_KEY_ESCAPE), 21);
    assert_false(data.chosen.details);
    assert_int_equal(chosen(&v, click_at(5, 9)), 21); /* above, below and beside the table: nothing */
    assert_int_equal(chosen(&v, click_at(5, 14)), 21);
    assert_int_equal(chosen(&v, click_at(0, 10)), 21);
    assert_int_equal(v.sort, TOP_SORT_PID);
    chosen(&v, click_at(27, 10)); /* RSS, after PID, USER and CPU% */
    assert_int_equal(v.sort, TOP_SORT_MEMORY);
    chosen(&v, click_at(79, 10));
    assert_int_equal(v.sort, TOP_SORT_MEMORY);
    chosen(&v, TOP_KEY_WHEEL_DOWN);
    assert_int_equal(v.scroll, 3);
    assert_false(v.follow);
    chosen(&v, TOP_KEY_WHEEL_UP);
    assert_int_equal(v.scroll, 0);
    top_choose(&data, NULL);
    top_view_release(&v);
}

/* Nothing is sent where there is nobody to send it to, and only for the two keys that say so. */
static void test_end_is_asked(void **state)
{
    (void)state;
    struct top_view v = {.sort = TOP_SORT_CPU, .interval_s = 1, .speed = 1};
    tare_error err = TARE_ERROR_INIT;
    five();
    chosen(&v, 'k');
    assert_false(v.asking);
    assert_non_null(strstr(v.trouble, "no process is chosen"));
    chosen(&v, TOP_KEY_DOWN);
    data.replaying = true;
    chosen(&v, 'f');
    assert_false(v.functions);
    assert_non_null(strstr(v.trouble, "seen now"));
    data.replaying = false;
    chosen(&v, 'k');
    assert_true(v.asking);
    chosen(&v, 'q'); /* no */
    assert_false(v.asking);
    assert_string_equal(v.trouble, "");
    chosen(&v, 'f');
    assert_true(v.functions);
    top_choose(&data, &(struct proc_row){.pid = getpid(), .started = 1}); /* not us: we began later */
    assert_int_equal(top_chosen_signal(&data, SIGKILL, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "has ended"));
    top_choose(&data, NULL);
    top_view_release(&v);
}

static void test_end(void **state)
{
    (void)state;
    struct proclist all = PROCLIST_INIT;
    int status;
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    assert_int_equal(proclist_open(&all, "", NULL), TARE_OK);
    assert_int_equal(proclist_scan(&all, 1, NULL), TARE_OK);
    data.rows = all.rows.items;
    data.n_rows = all.rows.n;
    top_choose(&data, top_row_of(&data, child));
    top_details(&data, true);
    assert_int_equal(data.chosen.threads.rows.n, 1);
    assert_int_equal(top_chosen_signal(&data, SIGTERM, NULL), TARE_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    top_chosen_look(&data);
    assert_int_equal(data.chosen.threads.rows.n, 0);
    top_choose(&data, &(struct proc_row){.pid = getpid(),
                                         .started = 1}); /* its number is ours now: not our threads */
    top_details(&data, true);
    assert_int_equal(data.chosen.threads.folder, -1);
    top_choose(&data, &(struct proc_row){.pid = child, .started = 1});
    assert_true(top_chosen_signal(&data, SIGTERM, NULL) < 0);
    top_choose(&data, NULL);
    proclist_close(&all);
    data.rows = rows;
    data.n_rows = 0;
}

static void test_blind(void **state)
{
    (void)state;
    char why[100];
    assert_true(top_blind(&data, "gpu", why, sizeof why));
    assert_string_equal(why, "no driver");
    assert_true(top_blind(&data, "system", why, 6)); /* cut */
    assert_string_equal(why, "press");
    assert_false(top_blind(&data, "gp", why, sizeof why));
}

/* ---- drawing ---- */

static const char *row_text(const struct screen *s, unsigned y)
{
    static char text[2000];
    size_t used = 0;
    for (unsigned x = 0; x < s->width; x++) {
        const struct screen_cell *c = &s->now[(size_t)y * s->width + x];
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s", (int)c->len, c->text);
    }
    return text;
}

static void test_draw(void **state)
{
    (void)state;
    struct screen s = SCREEN_INIT;
    struct top_view v = {.cores = true, .host = "box", .interval_s = 1, .speed = 1};
    five();
    put_machine();
    assert_int_equal(screen_resize(&s, 80, 24, NULL), TARE_OK);
    assert_int_equal(top_arrange(&v, &data, NULL), TARE_OK);
    top_draw(&v, &data, &s);
    assert_memory_equal(row_text(&s, 0), "tare top  box", 13);
    assert_non_null(strstr(row_text(&s, 1), "25.0 %"));
    assert_non_null(strstr(row_text(&s, 1), "user 12.5  system 12.5  iowait -  steal -"));
    assert_non_null(strstr(row_text(&s, 2), "cpu0  ["));
    assert_non_null(strstr(row_text(&s, 3), "75.0 %"));
    assert_memory_equal(row_text(&s, 23), "q quit", 6);
    struct buf all = BUF_INIT;
    screen_print(&s, &all);
    assert_non_null(strstr(all.data, "sda        read   4.8M/s"));
    assert_non_null(strstr(all.data, "eth?[2J0"));
    assert_non_null(strstr(all.data, "chip 95 C"));
    assert_non_null(strstr(all.data, "gpu0  [")); /* quantities in a text: known, and not */
    assert_non_null(strstr(all.data, "- %  memory - of 7.5G  - W  - C"));
    assert_non_null(strstr(all.data, "Swap  977K used  in -/s  out -/s"));
    assert_non_null(strstr(all.data, "train --fast\n"));
    buf_release(&all);
    top_view_release(&v);
    screen_release(&s);
}

/* Of one moment there are no rates yet: unknown is drawn as such, neither as nothing nor as all. */
static void test_first_moment(void **state)
{
    (void)state;
    struct screen s = SCREEN_INIT;
    struct top_view v = {.cores = true, .host = "box", .interval_s = 1, .speed = 1};
    put_moments(1);
    assert_int_equal(screen_resize(&s, 80, 24, NULL), TARE_OK);
    assert_int_equal(top_arrange(&v, &data, NULL), TARE_OK);
    top_draw(&v, &data, &s);
    assert_non_null(strstr(row_text(&s, 2), "cpu0  ["));
    assert_null(strpbrk(strstr(row_text(&s, 2), "["), "|#.9"));
    assert_null(strstr(row_text(&s, 2), "100"));
    assert_null(strstr(row_text(&s, 3), "cc")); /* how much is cached is not known */
    top_view_release(&v);
    screen_release(&s);
}

/* What is not there takes no row, and help says why; a text for a file has it in its place. */
static void test_panes_of_nothing(void **state)
{
    (void)state;
    struct top_view v = {.host = "box", .interval_s = 1, .speed = 1};
    for (int once = 0; once < 2; once++) {
        struct screen s = SCREEN_INIT;
        struct buf all = BUF_INIT;
        v.once = once;
        v.help = !once;
        assert_int_equal(screen_resize(&s, 100, 40, NULL), TARE_OK);
        top_draw(&v, &data, &s);
        screen_print(&s, &all);
        assert_int_equal(strstr(all.data, "\nGPU   none: no driver") != NULL, once);
        assert_int_equal(strstr(all.data, "\nDisk ") != NULL, once);
        assert_int_equal(strstr(all.data, "\nHeat ") != NULL, once);
        assert_int_equal(strstr(all.data, "\nWait ") != NULL, once);
        assert_int_equal(strstr(all.data, "not seen: gpu: no driver") != NULL, !once);
        buf_release(&all);
        screen_release(&s);
    }
    top_view_release(&v);
}

/* Nothing is drawn outside at any size, with and without help, and something is always shown. */
static void test_every_size(void **state)
{
    (void)state;
    struct screen s = SCREEN_INIT;
    struct top_view v = {.cores = true, .host = "box", .interval_s = 1, .speed = 1};
    five();
    put_machine();
    s.utf8 = true;
    assert_int_equal(top_arrange(&v, &data, NULL), TARE_OK);
    for (size_t i = 0; i < TOP_HISTORY; i++)
        for (size_t k = 0; k < TOP_HISTORIES; k++)
            data.history[k].y[data.history[k].n++] = (double)i / TOP_HISTORY;
    for (unsigned width = 1; width < 130; width += width < 30 ? 1 : 7)
        for (unsigned height = 1; height < 45; height += height < 14 ? 1 : 5) {
            assert_int_equal(screen_resize(&s, width, height, NULL), TARE_OK);
            v.help = (width + height) % 3 == 0;
            v.once = (width + height) % 4 == 0;
            v.asking = (width + height) % 5 == 0;
            top_choose(&data, width % 2 ? &rows[height % 5] : NULL);
            top_details(&data, height % 2);
            top_draw(&v, &data, &s);
            if (!v.help) assert_true(row_text(&s, 0)[0] == 't');
        }
    top_choose(&data, NULL);
    top_view_release(&v);
    screen_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sort, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_odd_relations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_arrange_no_memory, set_up, tear_down),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_key_parse),
        cmocka_unit_test_setup_teardown(test_press, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_choose, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_click, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_is_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_blind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_draw, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_first_moment, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_panes_of_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_every_size, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
