/* SPDX-License-Identifier: MIT
 * test_symbol.c - names of native functions: of this very program, of a stripped library, of files that are not what
 * they were, and of files that are damaged, which cost the child that reads them and nothing else. */
#include <dlfcn.h>
#include <fcntl.h>
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

#include "core/buf.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/rng.h"
#include "symbol/demangle.h"
#include "symbol/symbol.h"

/* ---- short names ---- */

static void short_names(void **state)
{
    (void)state;
    static const struct {
        const char *full, *name;
    } rows[] = {
        {"main", "main"},
        {"malloc", "malloc"},
        {"std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"},
        {"void at::native::(anonymous namespace)::copy<float>(at::Tensor&)",
         "at::native::(anonymous namespace)::copy"},
        {"std::ostream& std::operator<< <char>(std::ostream&, char const*)", "std::operator<<"},
        {"A::operator()(int) const", "A::operator()"},
        {"A::operator unsigned int() const", "A::operator unsigned int"},
        {"operator new[](unsigned long)", "operator new[]"},
        {"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda}::operator()"},
        {"std::function<void (int)>::operator()(int) const", "std::function::operator()"},
        {"auto f<int>(int) [clone .isra.0]", "f"},
        {"std::string::find[abi:cxx11](char) const", "std::string::find"},
        {"bool operator_of(A const&)", "operator_of"},
        {"alloc::vec::Vec$LT$T$GT$::push::h0123456789abcdef", "alloc::vec::Vec::push"},
        {"_$LT$alloc..string..String$u20$as$u20$core..fmt..Write$GT$::write_str::h0123456789abcdef",
         "alloc::string::String::write_str"},
        {"<", "<"},
        {"", ""},
        {"f<", "f"},
        {"f(((", "f"},
        {"(", "("},
        {"operator", "operator"},
    };
    struct arena a = ARENA_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(demangle_short(&a, rows[i].full), rows[i].name);
    assert_null(demangle_short(&a, NULL));
    arena_release(&a);
}

/* ---- files ---- */

static __attribute__((noinline)) uint64_t who_calls(void)
{
    Dl_info i;
    char *here = (char *)__builtin_return_address(0) - 1;
    assert_true(dladdr(here, &i) != 0);
    return (uint64_t)(here - (char *)i.dli_fbase);
}

static inline __attribute__((always_inline)) uint64_t inlined_one(void)
{
    uint64_t at = who_calls(); /* this line is looked for */
    __asm__ volatile("" : "+r"(at));
    return at;
}
enum { LINE_OF_CALL = __LINE__ - 4 };

static __attribute__((noinline)) uint64_t around_it(void)
{
    uint64_t at = inlined_one();
    __asm__ volatile("" : "+r"(at));
    return at;
}

static char self[4096];

static void find_self(void)
{
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
}

/* False: this machine cannot look at files. */
static bool can_look(struct symbols *s)
{
    find_self();
    const struct symbol_place *p = symbols_find(s, self, NULL, around_it());
    if (p->n) return true;
    assert_true(strstr(p->why, "libdw") != NULL);
    return false;
}

static void of_this_program(void **state)
{
    (void)state;
    struct symbols *s = symbols_new(NULL, NULL);
    assert_non_null(s);
    if (!can_look(s)) {
        symbols_free(s);
        skip();
    }
    const struct symbol_place *p = symbols_find(s, self, "-", around_it());
    assert_int_equal(p->n, 2);
    assert_string_equal(p->frames[0].function, "inlined_one");
    assert_string_equal(p->frames[1].function, "around_it");
    assert_int_equal(p->frames[0].line, LINE_OF_CALL);
    assert_true(p->frames[1].line > LINE_OF_CALL);
    for (size_t i = 0; i < p->n; i++) assert_non_null(strstr(p->frames[i].file, "test_symbol.c"));
    assert_ptr_equal(p, symbols_find(s, self, "", around_it())); /* remembered */
    symbols_free(s);
}

static void of_a_stripped_library(void **state)
{
    (void)state;
    Dl_info i;
    void *function = dlsym(RTLD_DEFAULT, "_assert_true");
    struct symbols *s = symbols_new(NULL, NULL);
    if (!can_look(s) || !function || !dladdr(function, &i)) {
        symbols_free(s);
        skip();
    }
    uint64_t at = (uint64_t)((char *)function - (char *)i.dli_fbase);
    const struct symbol_place *p = symbols_find(s, i.dli_fname, NULL, at + 1);
    assert_true(p->n >= 1);
    assert_string_equal(p->frames[p->n - 1].function, "_assert_true");
    p = symbols_find(s, i.dli_fname, NULL, UINT64_MAX - 5); /* nowhere */
    assert_int_equal(p->n, 0);
    assert_non_null(p->why);
    symbols_free(s);
}

static void of_other_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/tare-symbol-XXXXXX", fifo[64];
    assert_non_null(mkdtemp(folder));
    snprintf(fifo, sizeof fifo, "%s/fifo", folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct symbols *s = symbols_new("/nowhere", NULL);
    if (can_look(s)) {
        const struct {
            const char *path, *id, *why;
        } rows[] = {
            {self, "00112233445566778899aabbccddeeff00112233", "another build id"},
            {self, "zz", "another build id"},
            {"/nowhere/lib.so", "", "No such file"},
            {"/etc/passwd", NULL, "no ELF file"},
            {fifo, NULL, "Invalid argument"},
            {"/dev/zero", NULL, "Invalid argument"},
            {"/tmp", NULL, "Invalid argument"},
            {"", NULL, "not known"},
            {NULL, NULL, "not known"},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const struct symbol_place *p = symbols_find(s, rows[i].path, rows[i].id, 4096);
            assert_int_equal(p->n, 0);
            assert_non_null(strstr(p->why, rows[i].why));
        }
    }
    symbols_free(s);
    unlink(fifo);
    rmdir(folder);
}

/* A copy of this program with bytes changed where headers, symbols and debug information begin, or with its end off. */
static void write_damaged(const char *path, const struct buf *good, struct rng *r)
{
    struct buf bad = BUF_INIT;
    buf_add(&bad, good->data, good->len);
    size_t n = 1 + rng_next(r) % 64;
    for (size_t i = 0; i < n; i++) {
        size_t at = i % 3 == 0 ? rng_next(r) % 4096 : rng_next(r) % bad.len;
        bad.data[at] = (char)rng_next(r);
    }
    memcpy(bad.data, good->data, 20); /* it says that it is ELF: the rest is to be read */
    if (rng_next(r) % 4 == 0) bad.len = 64 + rng_next(r) % (bad.len - 64);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, bad.data, bad.len) == (ssize_t)bad.len);
    close(fd);
    buf_release(&bad);
}

static void read_whole(const char *path, struct buf *out)
{
    static char part[65536];
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0;) buf_add(out, part, (size_t)n);
    close(fd);
}

static void of_damaged_files(void **state)
{
    (void)state;
    struct symbols *s = symbols_new(NULL, NULL);
    struct buf good = BUF_INIT;
    struct rng r;
    char folder[] = "/tmp/tare-symbol-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    rng_seed(&r, 18);
    if (can_look(s)) read_whole(self, &good);
    for (int i = 0; good.len && i < 40; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        write_damaged(path, &good, &r);
        const struct symbol_place *p = symbols_find(s, path, NULL, around_it());
        assert_true(p->n > 0 || p->why);
        for (int k = 0; k < 20; k++) {
            p = symbols_find(s, path, NULL, rng_next(&r) % good.len);
            assert_true(p->n > 0 || p->why);
        }
        unlink(path);
    }
    rmdir(folder);
    buf_release(&good);
    symbols_free(s);
}

static void without_memory(void **state)
{
    (void)state;
    bool done = false;
    find_self();
    for (long n = 0; !done && n < 200; n++) {
        mem_fail_after(n);
        struct symbols *s = symbols_new("/usr/lib/debug", NULL);
        const struct symbol_place *p = s ? symbols_find(s, self, NULL, 4096) : NULL;
        done = p && (p->n > 0 || !strstr(p->why, "no memory"));
        symbols_free(s);
        mem_fail_after(-1);
        assert_int_equal(mem_live_blocks(), 0);
    }
    assert_true(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_names),    cmocka_unit_test(of_this_program),  cmocka_unit_test(of_a_stripped_library),
        cmocka_unit_test(of_other_files), cmocka_unit_test(of_damaged_files), cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
