/* SPDX-License-Identifier: MIT
 * test_file_facts.c - what files are, and how much of them is in memory: by cachestat and, where a filter refuses it,
 * by mincore. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "probe/file_facts.h"

/* A file that is gone at once, with `n` bytes that begin with `first`. */
static int made(const char *first, size_t first_n, size_t n)
{
    char path[] = "/tmp/tare-facts-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    assert_int_equal(write(fd, first, first_n), first_n);
    assert_int_equal(ftruncate(fd, (off_t)n), 0);
    return fd;
}

static struct file_facts facts_of(int fd)
{
    struct file_facts f;
    tare_error err = TARE_ERROR_INIT;
    if (file_facts_read(fd, "made", &f, &err) < 0) fail_msg("%s", err.text);
    return f;
}

static void test_packed(void **state)
{
    (void)state;
    static const struct {
        const char *first;
        size_t n;
        const char *packed;
    } cases[] = {
        {"\x1f\x8b\x08", 3, "gzip"},
        {"\x28\xb5\x2f\xfd", 4, "zstd"},
        {"\xfd"
         "7zXZ\0",
         6, "xz"},
        {"BZh9", 4, "bzip2"},
        {"PK\3\4", 4, "zip"},
        {"\x1f", 1, NULL},
        {"plain text", 10, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = made(cases[i].first, cases[i].n, cases[i].n);
        struct file_facts f = facts_of(fd);
        assert_int_equal(f.size, cases[i].n);
        if (cases[i].packed)
            assert_string_equal(f.packed, cases[i].packed);
        else
            assert_null(f.packed);
        close(fd);
    }
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    struct file_facts f;
    tare_error err = TARE_ERROR_INIT;
    int fd = open("/tmp", O_RDONLY);
    assert_int_equal(file_facts_read(fd, "/tmp", &f, &err), TARE_INVALID);
    assert_string_equal(err.text, "/tmp: is not a regular file");
    close(fd);
    assert_int_equal(file_facts_read(-1, "gone", &f, &err), TARE_IO);
    assert_non_null(strstr(err.text, "gone: Bad file descriptor"));
}

/* Of a range of 16 pages one is written, the rest was never there. */
static void check_share(const char *by)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = made("x", 1, 16 * page);
    struct resident all = file_resident(fd, 0, 16 * page), first = file_resident(fd, 0, page);
    struct resident rest = file_resident(fd, 8 * page, 8 * page), none = file_resident(fd, 0, 0);
    assert_string_equal(all.by, by);
    assert_true(all.share >= 1.0 / 16 && first.share == 1 && rest.share <= all.share);
    assert_true(isnan(none.share));
    close(fd);
}

static void test_share_in_memory(void **state)
{
    (void)state;
    struct resident r = file_resident(-1, 0, 1);
    assert_true(isnan(r.share));
    int fd = made("x", 1, 1);
    bool old = strcmp(file_resident(fd, 0, 1).by, "cachestat") != 0;
    close(fd);
    check_share(old ? "mincore" : "cachestat");
}

static void test_an_older_kernel(void **state)
{
    (void)state;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter refuse_cachestat[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 451, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {4, refuse_cachestat};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
            _exit(77);
        int fd = made("x", 1, 1);
        struct resident r = file_resident(fd, 0, 1);
        _exit(strcmp(r.by, "mincore") == 0 && r.share == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status, 0);
}

/* Of what somebody else owns the kernel's answer would be "all of it". */
static void test_a_file_of_somebody_else(void **state)
{
    (void)state;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && seteuid(65534) < 0) _exit(77);
        int fd = open("/etc/passwd", O_RDONLY);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid == geteuid()) _exit(77);
        struct resident r = file_resident(fd, 0, (uint64_t)st.st_size);
        bool told = strcmp(r.by, "cachestat") == 0 && r.share >= 0;
        _exit(told || (isnan(r.share) && strstr(r.by, "who may write")) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip();
    assert_int_equal(status, 0);
}

static void test_file_systems(void **state)
{
    (void)state;
    assert_string_equal(fs_kind_of(0xef53)->name, "ext4");
    assert_true(fs_kind_of(0xef53)->local && !fs_kind_of(0x6969)->local);
    assert_string_equal(fs_kind_of(0x6969)->name, "nfs");
    assert_string_equal(fs_kind_of((long)(int32_t)0xff534d42)->name, "unknown");
    assert_string_equal(fs_kind_of((long)(int32_t)0xfe534d42)->name, "smb"); /* the sign of a 32-bit f_type */
    assert_string_equal(fs_kind_of(12345)->name, "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed),          cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_share_in_memory), cmocka_unit_test(test_an_older_kernel),
        cmocka_unit_test(test_file_systems),    cmocka_unit_test(test_a_file_of_somebody_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
