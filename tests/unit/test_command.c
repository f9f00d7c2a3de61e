/* SPDX-License-Identifier: MIT
 * test_command.c - every row of the command table has its file, its page, its golden tests, and a page that
 * says what -h says. Also: how a command begins and ends, without a process. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "cli/command.h"
#include "core/mem.h"
#include "probe/ability.h"

static const char *root(void)
{
    const char *src = getenv("TARE_SRC");
    return src ? src : ".";
}

static char *read_all(const char *format, const char *name)
{
    char path[600], tail[200];
    snprintf(tail, sizeof tail, "%s%s%s", format, name, strcmp(format, "docs/cli/tare-") == 0 ? ".md" : ".c");
    snprintf(path, sizeof path, "%s/%s", root(), tail);
    FILE *f = fopen(path, "re");
    if (!f) fail_msg("%s: %s", path, strerror(errno));
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

struct answer {
    int rc;
    char *out, *err;
};

/* Run tare with these words in this process. */
static struct answer run(int argc, char **argv)
{
    struct answer a = {0};
    size_t n_out, n_err;
    struct cli cli = {.out_term = {.width = 80}, .err_term = {.width = 80}};
    cli.out = open_memstream(&a.out, &n_out);
    cli.err = open_memstream(&a.err, &n_err);
    a.rc = cli_main(&cli, argc, argv);
    fclose(cli.out);
    fclose(cli.err);
    return a;
}

static void answer_release(struct answer *a)
{
    free(a->out);
    free(a->err);
}

static struct answer run2(const char *first, const char *second)
{
    char program[] = "tare", a[64], b[64];
    snprintf(a, sizeof a, "%s", first);
    snprintf(b, sizeof b, "%s", second);
    char *argv[] = {program, a, b, NULL};
    return run(3, argv);
}

static bool has_golden_test(const char *name)
{
    char path[600];
    bool found = false;
    snprintf(path, sizeof path, "%s/tests/cli/%s", root(), name);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        found = found || (n > 3 && strcmp(e->d_name + n - 3, ".sh") == 0);
    }
    if (d) closedir(d);
    return found;
}

/* In src/cli, or in the folder of its capability below it. */
static bool has_source(const char *name)
{
    char pattern[2][4200];
    glob_t found = {0};
    snprintf(pattern[0], sizeof pattern[0], "%s/src/cli/cmd_%s.c", root(), name);
    snprintf(pattern[1], sizeof pattern[1], "%s/src/cli/*/cmd_%s.c", root(), name);
    glob(pattern[0], 0, NULL, &found);
    glob(pattern[1], GLOB_APPEND, NULL, &found);
    bool one = found.gl_pathc == 1;
    globfree(&found);
    return one;
}

static void test_rows_are_complete(void **state)
{
    (void)state;
    for (const struct command *c = command_table; c->name; c++) {
        assert_non_null(c->run);
        assert_true(c->summary && *c->summary && strlen(c->summary) < 66);
        assert_ptr_equal(command_find(c->name), c); /* no name twice */
        if (c->flags & CMD_PLUMBING) continue;
        assert_true(has_source(c->name));
        free(read_all("docs/cli/tare-", c->name));
        if (!has_golden_test(c->name)) fail_msg("tests/cli/%s/ has no test", c->name);
    }
}

/* The first fenced block of the page is the text of -h, to the byte. */
static void test_pages_say_what_help_says(void **state)
{
    (void)state;
    for (const struct command *c = command_table; c->name; c++) {
        if (c->flags & CMD_PLUMBING) continue;
        char *page = read_all("docs/cli/tare-", c->name), title[80];
        snprintf(title, sizeof title, "# tare %s\n", c->name);
        assert_true(strncmp(page, title, strlen(title)) == 0);
        char *block = strstr(page, "\n```");
        char *from = block ? strchr(block + 1, '\n') : NULL, *to = from ? strstr(from, "\n```") : NULL;
        if (!to) fail_msg("docs/cli/tare-%s.md has no fenced block", c->name);
        to[1] = 0;
        struct answer a = run2(c->name, "-h");
        assert_int_equal(a.rc, 0);
        assert_string_equal(a.err, "");
        assert_string_equal(a.out, from + 1);
        assert_true(strncmp(a.out, "usage: tare ", 12) == 0);
        answer_release(&a);
        free(page);
    }
}

/* Whatever the rows of a command are, a wrong option is an error of usage, said on stderr. */
static void test_every_command_refuses_nonsense(void **state)
{
    (void)state;
    for (const struct command *c = command_table; c->name; c++) {
        if (c->flags & CMD_PLUMBING) continue;
        struct answer a = run2(c->name, "--nonsense-option");
        assert_int_equal(a.rc, CLI_USAGE);
        assert_string_equal(a.out, "");
        assert_non_null(strstr(a.err, "unknown option --nonsense-option"));
        assert_non_null(strstr(a.err, "-h\n"));
        answer_release(&a);
    }
}

/* Each answers a completion from its rows, and does nothing else. */
static void test_every_command_completes(void **state)
{
    (void)state;
    for (const struct command *c = command_table; c->name; c++) {
        if (c->flags & CMD_PLUMBING) continue;
        char program[] = "tare", plumbing[] = "__complete", shell[] = "bash", name[64], typed[] = "--hel";
        snprintf(name, sizeof name, "%s", c->name);
        char *argv[] = {program, plumbing, shell, name, typed, NULL};
        struct answer a = run(5, argv);
        assert_int_equal(a.rc, 0);
        assert_string_equal(a.out, "--help\tprint this help and exit\n");
        assert_string_equal(a.err, "");
        answer_release(&a);
    }
}

static void test_doctor_page_lists_abilities(void **state)
{
    (void)state;
    char *page = read_all("docs/cli/tare-", "doctor"), row[300];
    for (const struct ability *a = ability_table; a->name; a++) {
        snprintf(row, sizeof row, "| %s | %s |\n", a->name, a->use);
        if (!strstr(page, row)) fail_msg("docs/cli/tare-doctor.md lacks: %s", row);
    }
    free(page);
}

static void test_equals_sign_of_bash(void **state)
{
    (void)state;
    /* bash gives --json=x as three words; a flag has no values, so nothing is offered, and nothing breaks */
    char program[] = "tare", plumbing[] = "__complete", shell[] = "bash", name[] = "version", o[] = "--json",
         eq[] = "=", x[] = "x";
    for (int n = 4; n <= 7; n++) {
        char *argv[] = {program, plumbing, shell, name, o, eq, x, NULL};
        struct answer a = run(n, argv);
        assert_int_equal(a.rc, 0);
        assert_string_equal(a.err, "");
        answer_release(&a);
    }
}

static void test_exit_codes_of_failures(void **state)
{
    (void)state;
    static const struct {
        tare_status status;
        int rc;
    } cases[] = {{TARE_INVALID, 2}, {TARE_FORMAT, 2}, {TARE_IO, 3}, {TARE_DENIED, 3}, {TARE_NOMEM, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = NULL, *err = NULL;
        size_t n;
        struct cli cli = {.command = command_find("version")};
        cli.out = open_memstream(&out, &n);
        cli.err = open_memstream(&err, &n);
        error_set(&cli.error, cases[i].status, "because");
        assert_int_equal(cli_fail(&cli), cases[i].rc);
        fclose(cli.out);
        fclose(cli.err);
        assert_string_equal(err, "tare version: because\n");
        free(out);
        free(err);
    }
}

static void test_help_without_memory(void **state)
{
    (void)state;
    long before = mem_live_blocks();
    for (long n = 0; n < 200; n++) {
        mem_fail_after(n);
        struct answer a = run2("help", "version");
        mem_fail_after(-1);
        int rc = a.rc;
        bool whole = a.out && strstr(a.out, "print this help");
        answer_release(&a);
        assert_int_equal(mem_live_blocks(), before);
        assert_true(rc == 0 ? whole : rc == CLI_FAILED);
        if (rc == 0) return;
    }
    fail_msg("never enough memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_pages_say_what_help_says),
        cmocka_unit_test(test_every_command_refuses_nonsense),
        cmocka_unit_test(test_every_command_completes),
        cmocka_unit_test(test_doctor_page_lists_abilities),
        cmocka_unit_test(test_equals_sign_of_bash),
        cmocka_unit_test(test_exit_codes_of_failures),
        cmocka_unit_test(test_help_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
