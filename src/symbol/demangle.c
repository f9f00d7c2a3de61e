/* SPDX-License-Identifier: MIT
 * demangle.c - names of C++ as the compiler wrote them. A name may refer to parts of itself, and each such
 * reference can double it: 400 bytes can mean more letters than there are atoms. The C++ library's own demangler knows
 * no bound, so names with more than a few references are given to a child process with bounded memory and a bounded
 * time of the processor; a name that takes more stays as it is, and after a few such none is tried any more. */
#include "symbol/demangle.h"

#include <dlfcn.h>
#include <string.h>

#include "core/mem.h"
#include "symbol/helper.h"

enum {
    REFERENCES_FEW = 12, /* at most 2^12 times as long: done here, */
    SHORT_BYTES = 1024,  /* if it is short */
    NAME_MOST = HELPER_BYTES - 1,
    CPU_MS = 250,           /* of the child, for one name; real ones take some microseconds */
    CPU_S = 2,              /* .. and for all that it is asked */
    MEMORY_MORE = 16 << 20, /* than its parent had: real names take a few KB */
    DEATHS_MOST = 4
};

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *length, int *status);

static struct {
    demangle_fn *fn;
    bool looked;
    struct helper child;
} it;

/* The C++ library's own, where there is one: a machine that reads traces need not have it. */
static demangle_fn *demangler(void)
{
    if (it.looked) return it.fn;
    it.looked = true;
    void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (!lib) lib = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
    if (lib) *(void **)&it.fn = dlsym(lib, "__cxa_demangle");
    return it.fn;
}

/* S_, S0_, SA_, T_, T0_: some of what is counted may be letters of a name; more is safe. */
static unsigned references(const char *s)
{
    unsigned n = 0;
    for (; *s; s++) {
        if (*s != 'S' && *s != 'T') continue;
        size_t digits = strspn(s + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        n += s[1 + digits] == '_';
    }
    return n;
}

/* ---- the child ---- */

static size_t answer_name(void *ctx, char *name, size_t bytes, char *answer, size_t most)
{
    int status = -1;
    (void)ctx, (void)bytes;
    char *plain = it.fn(name, NULL, NULL, &status);
    size_t n = plain && status == 0 ? strlen(plain) : 0;
    if (!n || n > most) {
        answer[0] = '?';
        n = 1;
    } else
        memcpy(answer, plain, n);
    mem_free_libc(plain); /* malloc'ed by the C++ library */
    return n;
}

static const struct helper_work work = {.fn = answer_name,
                                        .memory_more = MEMORY_MORE,
                                        .cpu_ms = CPU_MS,
                                        .cpu_s = CPU_S,
                                        .deaths_most = DEATHS_MOST};

void demangle_end(void)
{
    helper_end(&it.child);
    it.child.deaths = 0;
}

static const char *ask_child(struct arena *a, const char *mangled)
{
    static char answer[HELPER_BYTES];
    ssize_t n = helper_ask(&it.child, &work, mangled, strlen(mangled), answer);
    if (n <= 0) return mangled;
    return n == 1 && answer[0] == '?' ? mangled : arena_str_n(a, answer, (size_t)n);
}

/* ---- here ---- */

const char *demangle(struct arena *a, const char *mangled)
{
    int status = -1;
    if (!mangled || strncmp(mangled, "_Z", 2) != 0 || !demangler()) return mangled;
    if (strlen(mangled) >= NAME_MOST) return mangled;
    if (strlen(mangled) > SHORT_BYTES || references(mangled) > REFERENCES_FEW) return ask_child(a, mangled);
    char *plain = it.fn(mangled, NULL, NULL, &status);
    bool good = plain && status == 0 && strlen(plain) < NAME_MOST;
    const char *kept = good ? arena_str(a, plain) : mangled;
    mem_free_libc(plain); /* malloc'ed by the C++ library */
    return kept;
}
