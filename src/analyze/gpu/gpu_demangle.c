/* SPDX-License-Identifier: MIT
 * gpu_demangle.c - names of C++ as the compiler wrote them. A name may refer to parts of itself, and each such
 * reference can double it: 400 bytes can mean more letters than there are atoms. The C++ library's own demangler knows
 * no bound, so names with more than a few references are given to a child process with bounded memory and a bounded
 * time of the processor; a name that takes more stays as it is, and after a few such none is tried any more. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/gpu/gpu_name.h"

enum {
    REFERENCES_FEW = 12, /* at most 2^12 times as long: done here, */
    SHORT_BYTES = 1024,  /* if it is short */
    NAME_MOST = 32 << 10,
    CPU_US = 250000,        /* of the child, for one name; real ones take some microseconds */
    CPU_S = 2,              /* .. and for all that it is asked: many names may each take nearly as long */
    MEMORY_MORE = 16 << 20, /* than its parent had: real names take a few KB */
    DEATHS_MOST = 4
};

typedef char *demangle_fn(const char *mangled, char *buffer, size_t *length, int *status);

static struct {
    demangle_fn *fn;
    bool looked;
    int fd;    /* to the child */
    pid_t pid; /* 0: there is none */
    unsigned deaths;
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

/* What it has of its parent, which may be large, and some more: a name that wants more is told to be none. Sanitizers
 * want memory as they like, and end where there is none. */
static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0) return;
    rlim_t now = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + MEMORY_MORE;
    setrlimit(RLIMIT_AS, &(struct rlimit){now, now});
#endif
}

/* Its own CPU time ends it: the signal's default action. It never returns. */
static void serve(int fd)
{
    static char name[NAME_MOST];
    const struct itimerval limit = {.it_value = {.tv_usec = CPU_US}};
    signal(SIGPROF, SIG_DFL);
    signal(SIGXCPU, SIG_DFL);
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_S, CPU_S});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    limit_memory();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        ssize_t n = recv(fd, name, sizeof name - 1, 0);
        if (n <= 0) _exit(0);
        name[n] = 0;
        int status = -1;
        setitimer(ITIMER_PROF, &limit, NULL);
        char *plain = it.fn(name, NULL, NULL, &status);
        size_t bytes = plain && status == 0 ? strlen(plain) : 0;
        if (bytes >= NAME_MOST) bytes = 0;
        if (send(fd, bytes ? plain : "?", bytes ? bytes : 1, MSG_NOSIGNAL) < 0) _exit(0);
        (free)(plain); /* malloc'ed by the C++ library */
    }
}

static void end_child(void)
{
    if (!it.pid) return;
    close(it.fd);
    kill(it.pid, SIGKILL);
    while (waitpid(it.pid, NULL, 0) < 0 && errno == EINTR) continue;
    it.pid = 0;
}

void gpu_demangle_end(void)
{
    end_child();
    it.deaths = 0;
}

static bool has_child(void)
{
    int ends[2];
    if (it.pid) return true;
    if (it.deaths >= DEATHS_MOST || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return false;
    it.pid = fork();
    if (it.pid == 0) {
        close(ends[0]);
        serve(ends[1]);
    }
    close(ends[1]);
    it.fd = ends[0];
    if (it.pid > 0) return true;
    close(it.fd);
    it.pid = 0;
    return false;
}

static const char *ask_child(struct arena *a, const char *mangled)
{
    static char answer[NAME_MOST];
    ssize_t n;
    if (!has_child()) return mangled;
    n = send(it.fd, mangled, strlen(mangled), MSG_NOSIGNAL);
    if (n > 0) {
        do n = recv(it.fd, answer, sizeof answer - 1, 0);
        while (n < 0 && errno == EINTR);
    }
    if (n <= 0) {
        it.deaths++;
        end_child();
        return mangled;
    }
    return n == 1 && answer[0] == '?' ? mangled : arena_str_n(a, answer, (size_t)n);
}

/* ---- here ---- */

const char *gpu_name_full(struct arena *a, const char *mangled)
{
    int status = -1;
    if (!mangled || strncmp(mangled, "_Z", 2) != 0 || !demangler()) return mangled;
    if (strlen(mangled) >= NAME_MOST) return mangled;
    if (strlen(mangled) > SHORT_BYTES || references(mangled) > REFERENCES_FEW) return ask_child(a, mangled);
    char *plain = it.fn(mangled, NULL, NULL, &status);
    bool good = plain && status == 0 && strlen(plain) < NAME_MOST;
    const char *kept = good ? arena_str(a, plain) : mangled;
    (free)(plain); /* malloc'ed by the C++ library */
    return kept;
}
