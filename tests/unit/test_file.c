/* SPDX-License-Identifier: MIT
 * test_file.c - whole or not at all: every call of an atomic write fails in turn; odd targets; mapping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/file.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][128];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2;
}

/* A file system without files that have no name. */
static bool named_only;

static int refuse_unnamed(int in, mode_t mode)
{
    (void)in, (void)mode;
    errno = EOPNOTSUPP;
    return -1;
}

static void reset_io(void)
{
    file_io = file_io_system;
    if (named_only) file_io.unnamed = refuse_unnamed;
}

static int setup(void **state)
{
    (void)state;
    reset_io();
    snprintf(folder, sizeof folder, "/tmp/tare-test-file-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    file_io = file_io_system;
    DIR *dir = opendir(folder);
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            if (unlinkat(dirfd(dir), e->d_name, 0) < 0) unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
    return rmdir(folder);
}

static void holds(const char *path, const void *bytes, size_t n)
{
    struct file_view view = FILE_VIEW_INIT;
    assert_int_equal(file_map(path, &view, NULL), TARE_OK);
    assert_int_equal(view.size, n);
    assert_memory_equal(view.data, bytes, n);
    file_unmap(&view);
    assert_null(view.data);
}

static void writes_and_replaces(void **state)
{
    (void)state;
    const char *path = in_folder("run.json");
    assert_int_equal(file_write_atomic(path, "first", 5, 0, NULL), TARE_OK);
    holds(path, "first", 5);
    assert_int_equal(file_write_atomic(path, "second!", 7, 0, NULL), TARE_OK);
    holds(path, "second!", 7);
    assert_int_equal(file_write_atomic(path, NULL, 0, 0, NULL), TARE_OK);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(entries(), 1);
}

static void a_relative_name_and_the_umask(void **state)
{
    (void)state;
    char back[512];
    assert_non_null(getcwd(back, sizeof back));
    assert_int_equal(chdir(folder), 0);
    mode_t old = umask(027);
    tare_status s = file_write_atomic("here", "x", 1, FILE_SHARED, NULL);
    if (s == TARE_OK) s = file_write_atomic("mine", "x", 1, 0, NULL);
    umask(old);
    assert_int_equal(chdir(back), 0);
    assert_int_equal(s, TARE_OK);
    struct stat st;
    assert_int_equal(stat(in_folder("here"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(stat(in_folder("mine"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

/* A file of that name in the folder, two hours old or new; open, for a lock. */
static int leave_temp(const char *name, bool old)
{
    const struct timespec long_ago[2] = {{time(NULL) - 7200, 0}, {time(NULL) - 7200, 0}};
    int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    if (old) assert_int_equal(futimens(fd, long_ago), 0);
    return fd;
}

static void leftovers_of_the_killed_go(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool old, locked, stays;
    } files[] = {
        {".tare-0123456789abcdef", true, false, false}, {".tare-00000000000000aa", true, true, true},
        {".tare-00000000000000bb", false, false, true}, {".tare-00000000000000b", true, false, true},
        {".tare-00000000000000bbc", true, false, true}, {".tare-notes", true, false, true},
    };
    enum { N = sizeof files / sizeof *files };
    int fds[N];
    for (size_t i = 0; i < N; i++) {
        fds[i] = leave_temp(files[i].name, files[i].old);
        if (files[i].locked) assert_int_equal(flock(fds[i], LOCK_EX), 0);
    }
    assert_int_equal(file_write_atomic(in_folder("new"), "x", 1, 0, NULL), TARE_OK);
    for (size_t i = 0; i < N; i++) {
        if ((access(in_folder(files[i].name), F_OK) == 0) != files[i].stays) fail_msg("%s", files[i].name);
        close(fds[i]);
        unlink(in_folder(files[i].name));
    }
}

static void no_replace_refuses(void **state)
{
    (void)state;
    const char *path = in_folder("kept");
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(file_write_atomic(path, "first", 5, FILE_NO_REPLACE, &err), TARE_OK);
    assert_int_equal(file_write_atomic(path, "second", 6, FILE_NO_REPLACE, &err), TARE_IO);
    assert_non_null(strstr(err.text, "already exists"));
    holds(path, "first", 5);
    assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
    assert_int_equal(file_write_atomic(in_folder("dangling"), "x", 1, FILE_NO_REPLACE, &err), TARE_IO);
    assert_int_equal(entries(), 2);
}

/* ---- the race: the target appears between the check and the rename ---- */

static int rename_calls;

static int rename_after_a_rival(int at, const char *from, const char *to, unsigned flags)
{
    rename_calls++;
    int fd = openat(at, to, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(fd >= 0 && write(fd, "rival", 5) == 5);
    close(fd);
    return file_io_system.rename(at, from, to, flags);
}

static int rename_after_a_rival_unknown(int at, const char *from, const char *to, unsigned flags)
{
    (void)flags;
    assert_true(rename_after_a_rival(at, from, to, 1) < 0 && errno == EEXIST);
    errno = ENOSYS;
    return -1;
}

static int rename_unknown(int at, const char *from, const char *to, unsigned flags)
{
    (void)at, (void)from, (void)to, (void)flags;
    rename_calls++;
    errno = EINVAL;
    return -1;
}

static void no_replace_holds_in_a_race(void **state)
{
    (void)state;
    const char *path = in_folder("raced");
    tare_error err = TARE_ERROR_INIT;
    file_io.rename = rename_after_a_rival;
    assert_int_equal(file_write_atomic(path, "mine", 4, FILE_NO_REPLACE, &err), TARE_IO);
    assert_non_null(strstr(err.text, "already exists"));
    holds(path, "rival", 5);
    unlink(path);
    file_io.rename =
        rename_after_a_rival_unknown; /* a file system without renameat2: the hard link refuses */
    assert_int_equal(file_write_atomic(path, "mine", 4, FILE_NO_REPLACE, &err), TARE_IO);
    assert_non_null(strstr(err.text, "already exists"));
    holds(path, "rival", 5);
    unlink(path);
    rename_calls = 0;
    file_io.rename = rename_unknown;
    assert_int_equal(file_write_atomic(path, "mine", 4, FILE_NO_REPLACE, &err), TARE_OK);
    assert_int_equal(rename_calls, 1);
    holds(path, "mine", 4);
    assert_int_equal(entries(), 1);
}

/* ---- faults ---- */

static int write_calls;

static ssize_t write_one_byte(int fd, const void *bytes, size_t n)
{
    write_calls++;
    return file_io_system.write(fd, bytes, n > 1 ? 1 : n);
}

static ssize_t write_interrupted(int fd, const void *bytes, size_t n)
{
    if (++write_calls % 2) {
        errno = EINTR;
        return -1;
    }
    return file_io_system.write(fd, bytes, n > 3 ? 3 : n);
}

static ssize_t write_until_full(int fd, const void *bytes, size_t n)
{
    if (++write_calls > 2) {
        errno = ENOSPC;
        return -1;
    }
    return file_io_system.write(fd, bytes, n > 3 ? 3 : n);
}

static ssize_t write_nothing(int fd, const void *bytes, size_t n)
{
    (void)fd, (void)bytes, (void)n;
    return 0;
}

static int fsync_calls, fsync_fails_at;

static int fsync_fails(int fd)
{
    if (++fsync_calls != fsync_fails_at) return file_io_system.fsync(fd);
    errno = EIO;
    return -1;
}

static int fsync_interrupted(int fd)
{
    if (++fsync_calls % 2 == 0) return file_io_system.fsync(fd);
    errno = EINTR;
    return -1;
}

static int rename_fails(int at, const char *from, const char *to, unsigned flags)
{
    (void)at, (void)from, (void)to, (void)flags;
    errno = EACCES;
    return -1;
}

static void short_writes_and_interrupts_are_carried_on(void **state)
{
    (void)state;
    const char *path = in_folder("out"), *text = "0123456789abcdef";
    write_calls = fsync_calls = 0;
    file_io.write = write_one_byte;
    assert_int_equal(file_write_atomic(path, text, 16, 0, NULL), TARE_OK);
    assert_int_equal(write_calls, 16);
    holds(path, text, 16);
    write_calls = 0;
    file_io.write = write_interrupted;
    file_io.fsync = fsync_interrupted;
    assert_int_equal(file_write_atomic(path, text + 1, 15, 0, NULL), TARE_OK);
    assert_int_equal(write_calls, 10);
    assert_int_equal(fsync_calls, 4); /* file and folder, each once interrupted */
    holds(path, text + 1, 15);
}

static void fails_and_keeps_the_old(const char *path, const char *why)
{
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(file_write_atomic(path, "the new content", 15, 0, &err), TARE_IO);
    assert_non_null(strstr(err.text, why));
    assert_non_null(strstr(err.text, path));
    reset_io();
    holds(path, "old", 3);
    assert_int_equal(entries(), 1);
}

static void a_failure_keeps_the_old_file_and_leaves_no_litter(void **state)
{
    (void)state;
    const char *path = in_folder("out");
    assert_int_equal(file_write_atomic(path, "old", 3, 0, NULL), TARE_OK);
    write_calls = fsync_calls = 0;
    file_io.write = write_until_full;
    fails_and_keeps_the_old(path, strerror(ENOSPC));
    file_io.write = write_nothing;
    fails_and_keeps_the_old(path, "no more bytes");
    fsync_fails_at = 1;
    file_io.fsync = fsync_fails;
    fails_and_keeps_the_old(path, strerror(EIO));
    file_io.rename = rename_fails;
    fails_and_keeps_the_old(path, strerror(EACCES));
    fsync_calls = 0;
    fsync_fails_at = 2; /* the folder: too late to undo, but told */
    file_io.fsync = fsync_fails;
    assert_int_equal(file_write_atomic(path, "new", 3, 0, NULL), TARE_IO);
    holds(path, "new", 3);
    assert_int_equal(entries(), 1);
}

/* Where a file needs no name until it is whole, the kernel removes what a killed writer began; elsewhere sweep() does,
 * later. */
static void a_killed_writer_leaves_nothing(void **state)
{
    (void)state;
    int probe = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (probe >= 0) close(probe);
    bool unnamed = probe >= 0 && !named_only;
    const char *path = in_folder("out");
    pid_t child = fork();
    if (child == 0) {
        struct file_out f;
        if (file_out_open(&f, path, 0, NULL) == TARE_OK &&
            file_write_all(f.fd, "half", 4, path, NULL) == TARE_OK)
            raise(SIGKILL);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(entries(), unnamed ? 0 : 1);
    assert_int_equal(access(path, F_OK), -1);
}

static void pieces_appear_together(void **state)
{
    (void)state;
    const char *path = in_folder("out");
    struct file_out f;
    assert_int_equal(file_out_open(&f, path, FILE_SHARED, NULL), TARE_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(file_write_all(f.fd, "piece", 5, path, NULL), TARE_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(file_out_commit(&f, NULL), TARE_OK);
    file_out_close(&f);
    holds(path, "piecepiecepiece", 15);
    assert_int_equal(file_out_open(&f, path, FILE_SHARED, NULL), TARE_OK);
    assert_int_equal(file_write_all(f.fd, "given up", 8, path, NULL), TARE_OK);
    file_out_close(&f);
    holds(path, "piecepiecepiece", 15);
    assert_int_equal(entries(), 1);
}

/* Root may read everything, and becomes somebody else for this. */
static void a_folder_that_may_only_be_written(void **state)
{
    (void)state;
    const char *path = in_folder("out");
    bool root = geteuid() == 0;
    assert_int_equal(chmod(folder, 0300), 0);
    if (root) assert_int_equal(chown(folder, 65534, 65534), 0);
    pid_t child = fork();
    if (child == 0) {
        if (root && setuid(65534) < 0) _exit(2);
        _exit(file_write_atomic(path, "x", 1, FILE_SHARED, NULL) != TARE_OK);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(chmod(folder, 0700), 0);
    holds(path, "x", 1);
}

static void odd_targets(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(file_write_atomic("", "x", 1, 0, &err), TARE_INVALID);
    assert_int_equal(file_write_atomic(folder, "x", 1, 0, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "is a folder"));
    assert_int_equal(file_write_atomic(in_folder("new/"), "x", 1, 0, &err), TARE_INVALID);
    assert_int_equal(file_write_atomic(in_folder("missing/x"), "x", 1, 0, &err), TARE_IO);
    assert_non_null(strstr(err.text, strerror(ENOENT)));
    char longer[5000];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(file_write_atomic(longer, "x", 1, 0, &err), TARE_INVALID);
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name); /* the longest name there is */
    assert_int_equal(file_write_atomic(path, "x", 1, 0, &err), TARE_OK);
    holds(path, "x", 1);
}

static void a_link_stays_and_its_target_is_replaced(void **state)
{
    (void)state;
    const char *target = in_folder("target"), *link = in_folder("link");
    assert_int_equal(file_write_atomic(target, "old", 3, 0, NULL), TARE_OK);
    assert_int_equal(symlink("target", link), 0);
    assert_int_equal(file_write_atomic(link, "new", 3, 0, NULL), TARE_OK);
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    holds(target, "new", 3);
    assert_int_equal(entries(), 2);
}

/* A pipe stands for everything that is no regular file. Never a real device here: run by root, a fault in the
 * code under test would replace it for the whole machine. */
static void what_is_no_regular_file_is_written_in_place(void **state)
{
    (void)state;
    const char *path = in_folder("pipe");
    tare_error err = TARE_ERROR_INIT;
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_atomic(path, "through", 7, 0, &err), TARE_OK);
    char got[16] = "";
    assert_int_equal(read(fd, got, sizeof got), 7);
    assert_string_equal(got, "through");
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    write_calls = 2;
    file_io.write = write_until_full;
    assert_int_equal(file_write_atomic(path, "x", 1, 0, &err), TARE_IO);
    assert_non_null(strstr(err.text, strerror(ENOSPC)));
    assert_int_equal(file_write_atomic(path, "x", 1, FILE_NO_REPLACE, &err), TARE_IO);
    close(fd);
    assert_int_equal(entries(), 1);
}

static void what_cannot_be_mapped(void **state)
{
    (void)state;
    tare_error err = TARE_ERROR_INIT;
    struct file_view view = {(const unsigned char *)"untouched", 9};
    assert_int_equal(file_map(in_folder("missing"), &view, &err), TARE_IO);
    assert_non_null(strstr(err.text, strerror(ENOENT)));
    assert_int_equal(file_map(folder, &view, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "is a folder"));
    assert_int_equal(file_map("/dev/null", &view, &err), TARE_INVALID);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(file_map(in_folder("pipe"), &view, &err), TARE_INVALID); /* and does not wait */
    assert_int_equal(file_write_atomic(in_folder("empty"), "", 0, 0, NULL), TARE_OK);
    assert_int_equal(file_map(in_folder("empty"), &view, &err), TARE_FORMAT);
    assert_non_null(strstr(err.text, "empty"));
    assert_int_equal(view.size, 9);
    struct file_view none = FILE_VIEW_INIT;
    file_unmap(&none);
}

static void folders_are_made(void **state)
{
    tare_error err = TARE_ERROR_INIT;
    struct stat st;
    char far[5000];
    (void)state;
    assert_int_equal(file_make_folders(in_folder("a/b"), &err), TARE_OK);
    assert_int_equal(file_make_folders(in_folder("a/b"), &err), TARE_OK); /* there already */
    assert_int_equal(file_make_folders(in_folder("a/b/"), &err), TARE_OK);
    assert_true(stat(in_folder("a/b"), &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(file_write_atomic(in_folder("f"), "x", 1, 0, &err), TARE_OK);
    assert_int_equal(file_make_folders(in_folder("f/c"), &err), TARE_IO); /* a file is in the way */
    assert_non_null(strstr(err.text, "f/c"));
    assert_int_equal(file_make_folders("", &err), TARE_IO);
    memset(far, 'x', sizeof far - 1);
    far[sizeof far - 1] = 0;
    assert_int_equal(file_make_folders(far, &err), TARE_INVALID);
    assert_int_equal(rmdir(in_folder("a/b")), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(folders_are_made),
        TEST(writes_and_replaces),
        TEST(a_relative_name_and_the_umask),
        TEST(leftovers_of_the_killed_go),
        TEST(no_replace_refuses),
        TEST(no_replace_holds_in_a_race),
        TEST(short_writes_and_interrupts_are_carried_on),
        TEST(a_failure_keeps_the_old_file_and_leaves_no_litter),
        TEST(a_killed_writer_leaves_nothing),
        TEST(pieces_appear_together),
        TEST(a_folder_that_may_only_be_written),
        TEST(odd_targets),
        TEST(a_link_stays_and_its_target_is_replaced),
        TEST(what_is_no_regular_file_is_written_in_place),
        TEST(what_cannot_be_mapped),
    };
    int failed = cmocka_run_group_tests_name("files without a name", tests, NULL, NULL);
    named_only = true;
    return failed + cmocka_run_group_tests_name("files with names only", tests, NULL, NULL);
}
