/* SPDX-License-Identifier: MIT
 * memory_agent.c - see memory_agent.h. */
#include "probe/memory_agent.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probe/gpu_record.h"

#define AGENT "libtare-agent.so"

tare_status memory_agent_find(struct memory_agent *m, tare_error *err)
{
    if (!m->on) return TARE_OK;
    if (!library_beside(AGENT, m->library))
        return error_set(err, TARE_INVALID, "--memory: " LIBRARY_MISSING(AGENT) ": install tare whole");
    if (!strpbrk(m->library, ": ")) return TARE_OK;
    return error_set(err, TARE_INVALID, "--memory: %s: LD_PRELOAD takes no path with a blank or a colon",
                     m->library);
}

/* ---- programs that the loader does not do it for ---- */

/* As execvp() finds it. */
static int open_program(const char *name, struct stat *st)
{
    char path[PATH_MAX];
    const char *dirs = secure_getenv("PATH");
    if (strchr(name, '/') || !dirs) {
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        return fd >= 0 && fstat(fd, st) == 0 ? fd : -1;
    }
    for (size_t n; *dirs; dirs += n + (dirs[n] == ':')) {
        n = strcspn(dirs, ":");
        int used = snprintf(path, sizeof path, "%.*s/%s", (int)n, n ? dirs : ".", name);
        int fd =
            used > 0 && used < PATH_MAX && access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)) return fd;
        if (fd >= 0) close(fd);
    }
    return -1;
}

/* A program of this machine that names no loader. */
static bool is_static(int fd)
{
    Elf64_Ehdr e;
    Elf64_Phdr p;
    if (pread(fd, &e, sizeof e, 0) != (ssize_t)sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_phentsize != sizeof p) return false;
    for (unsigned i = 0; i < e.e_phnum; i++) {
        if (pread(fd, &p, sizeof p, (off_t)(e.e_phoff + i * sizeof p)) != (ssize_t)sizeof p) return false;
        if (p.p_type == PT_INTERP) return false;
    }
    return true;
}

const char *memory_agent_doubt(const char *program)
{
    struct stat st;
    int fd = open_program(program, &st);
    if (fd < 0) return NULL;
    const char *why = NULL;
    if (is_static(fd))
        why = "is statically linked: its allocations cannot be seen; what it starts may be";
    else if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
             (st.st_mode & S_ISGID && st.st_gid != getegid()))
        why = "runs with other rights than yours: its allocations are not recorded";
    close(fd);
    return why;
}

/* ---- in the child ---- */

void memory_agent_environment(const struct memory_agent *m, const char *trace)
{
    char preload[2 * PATH_MAX], every[24];
    if (!m->library[0]) return;
    const char *others = secure_getenv("LD_PRELOAD");
    int n = snprintf(preload, sizeof preload, "%s%s%s", m->library, others && others[0] ? ":" : "",
                     others ? others : "");
    if (n < 0 || n >= (int)sizeof preload) return;
    snprintf(every, sizeof every, "%llu", (unsigned long long)(m->all ? 0 : m->every));
    setenv("LD_PRELOAD", preload, 1);
    setenv("TARE_MEMORY_TRACE", trace, 1);
    setenv("TARE_MEMORY_EVERY", every, 1);
}
