/* SPDX-License-Identifier: MIT
 * test_gitstate.c - commit and branch read from git's files, as git itself writes them and as a hostile one might. */
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

#include "home_fixture.h"
#include "probe/host.h"

#define HASH "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"

static char start[4096];

static int enter(void **state)
{
    (void)state;
    return getcwd(start, sizeof start) && home_enter() == 0 && chdir(home) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    return chdir(start) == 0 && home_leave() == 0 ? 0 : -1;
}

static void put(const char *path, const char *text)
{
    char folder[512];
    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(p - path), path);
        mkdir(folder, 0777);
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    fclose(f);
}

static void expect(const char *folder, const char *commit, const char *branch)
{
    struct gitstate g;
    gitstate_read(&g, folder);
    assert_string_equal(g.commit, commit);
    assert_string_equal(g.branch, branch);
}

static void test_branch_loose_and_packed(void **state)
{
    (void)state;
    put(".git/HEAD", "ref: refs/heads/feature/x\n");
    expect(".", "", ""); /* no commit yet */
    put(".git/packed-refs", "# pack-refs with: peeled fully-peeled sorted\n" OTHER
                            " refs/heads/feature/xy\n" HASH " refs/heads/feature/x\n^" OTHER "\n");
    expect(".", HASH, "feature/x");
    put(".git/refs/heads/feature/x", OTHER "\n"); /* the loose one is newer */
    expect(".", OTHER, "feature/x");
    put("deep/er/file", "");
    expect("deep/er", OTHER, "feature/x");
}

static void test_detached_and_sha256(void **state)
{
    (void)state;
    put(".git/HEAD", HASH "\n");
    expect(".", HASH, "");
    put(".git/HEAD", HASH "0123456789abcdef01234567\n");
    expect(".", HASH "0123456789abcdef01234567", "");
}

static void test_worktree(void **state)
{
    (void)state;
    put("repo/.git/refs/heads/main", OTHER "\n");
    put("repo/.git/worktrees/w/HEAD", "ref: refs/heads/main\n");
    put("repo/.git/worktrees/w/commondir", "../..\n");
    put("w/.git", "gitdir: ../repo/.git/worktrees/w\n");
    expect("w", OTHER, "main");
}

static void test_nothing_and_nonsense(void **state)
{
    static const char *const heads[] = {"",
                                        "\n",
                                        "ref: ../../../etc/passwd\n",
                                        "ref: refs/heads/../../../x\n",
                                        "ref: refs/heads/.invalid\n",
                                        "0123\n",
                                        "ref: \n",
                                        "ref: refs/heads/loop\n",
                                        "XYZ3456789abcdef0123456789abcdef01234567\n"};
    (void)state;
    put(".git", "not what git writes\n"); /* also hides the repository that this test may run in */
    mkdir("plain", 0777);
    expect("plain", "", "");
    expect("missing", "", "");
    put("bad/.git/refs/heads/loop", "ref: refs/heads/loop\n");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        put("bad/.git/HEAD", heads[i]);
        expect("bad", "", "");
    }
    put("cut/.git", "gitdir: ");
    expect("cut", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_branch_loose_and_packed, enter, leave),
        cmocka_unit_test_setup_teardown(test_detached_and_sha256, enter, leave),
        cmocka_unit_test_setup_teardown(test_worktree, enter, leave),
        cmocka_unit_test_setup_teardown(test_nothing_and_nonsense, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
