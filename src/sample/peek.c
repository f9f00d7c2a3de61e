/* SPDX-License-Identifier: MIT
 * peek.c - reading another process: see peek.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/buf.h"
#include "core/mem.h"
#include "probe/procfs.h"
#include "sample/peek.h"

enum { PARTS_MOST = 8, MAPS_MOST = 64 << 20 };

static size_t parts_of_process(const struct peek *p, const struct peek_part *parts, size_t n)
{
    struct iovec here[PARTS_MOST] = {{NULL, 0}}, there[PARTS_MOST] = {{NULL, 0}};
    if (n > PARTS_MOST) n = PARTS_MOST;
    for (size_t i = 0; i < n; i++) {
        here[i] = (struct iovec){parts[i].to, parts[i].bytes};
        there[i] = (struct iovec){(void *)(uintptr_t)parts[i].at, parts[i].bytes};
    }
    ssize_t got = process_vm_readv(p->pid, here, n, there, n, 0);
    size_t whole = 0, sum = 0;
    for (; got > 0 && whole < n && (sum += parts[whole].bytes) <= (size_t)got; whole++) continue;
    if (got >= 0 && whole < n) errno = EFAULT;
    return whole;
}

struct peek peek_process(pid_t pid)
{
    return (struct peek){pid, parts_of_process, NULL};
}

bool peek_bytes(const struct peek *p, uint64_t at, void *to, size_t bytes)
{
    return p->parts(p, &(struct peek_part){at, to, bytes}, 1) == 1;
}

bool peek_u64(const struct peek *p, uint64_t at, uint64_t *out)
{
    return peek_bytes(p, at, out, sizeof *out);
}

bool peek_u32(const struct peek *p, uint64_t at, uint32_t *out)
{
    return peek_bytes(p, at, out, sizeof *out);
}

/* ---- why not ---- */

static bool is_gone(pid_t pid)
{
    char path[64], text[1024];
    struct process_stat stat;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return !procfs_text("", path, text, sizeof text) || !process_stat_parse(&stat, text) || stat.state == 'Z';
}

tare_status peek_explain(pid_t pid, int why, tare_error *err)
{
    char path[64], scope[16];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (why == ESRCH || is_gone(pid))
        return error_set(err, TARE_INVALID, "process %d: there is none of that number, or it has ended",
                         (int)pid);
    if (why == ENOSYS)
        return error_set(err, TARE_UNSUPPORTED,
                         "process %d: this kernel or its seccomp filter does not allow "
                         "process_vm_readv",
                         (int)pid);
    if (why != EPERM && why != EACCES) {
        errno = why;
        return error_errno(err, "process %d: its memory cannot be read", (int)pid);
    }
    if (stat(path, &st) == 0 && st.st_uid != geteuid())
        return error_set(err, TARE_DENIED,
                         "process %d: belongs to user %u, and only that user or somebody with "
                         "CAP_SYS_PTRACE may read it: try sudo",
                         (int)pid, (unsigned)st.st_uid);
    bool yama = procfs_text("", "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope) && scope[0] > '0';
    return error_set(err, TARE_DENIED,
                     "process %d: may not be read%s: try sudo, or in a container --cap-add SYS_PTRACE%s",
                     (int)pid, yama ? ", kernel.yama.ptrace_scope allows that to its parent alone" : "",
                     yama ? ", or sysctl kernel.yama.ptrace_scope=0" : "");
}

tare_status peek_check(const struct peek *p, tare_error *err)
{
    struct mappings m = {VEC_INIT};
    tare_status s = mappings_read(&m, p->pid, err);
    uint64_t word;
    if (s == TARE_OK && m.items.n == 0)
        s = is_gone(p->pid) ? peek_explain(p->pid, ESRCH, err)
                            : error_set(err, TARE_INVALID,
                                        "process %d: has no memory of its own: a thread of the "
                                        "kernel",
                                        (int)p->pid);
    else if (s == TARE_OK && !peek_u64(p, m.items.items[0].start, &word))
        s = peek_explain(p->pid, errno, err);
    mappings_release(&m);
    return s;
}

/* ---- what is mapped ---- */

static tare_status maps_text(struct buf *text, pid_t pid, tare_error *err)
{
    char piece[1 << 14];
    int fd = procfs_open("", "/proc/%d/maps", (int)pid);
    if (fd < 0) return peek_explain(pid, errno == ENOENT ? ESRCH : errno, err);
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) > 0 && text->len < MAPS_MOST) buf_add(text, piece, (size_t)n);
    int why = errno;
    procfs_close(&fd);
    return n < 0 ? peek_explain(pid, why, err) : buf_status(text, err);
}

/* The n-th word of a line, from 0; at its end where there are not so many. */
static const char *word(const char *line, unsigned n)
{
    line += strspn(line, " ");
    while (n-- > 0) {
        line += strcspn(line, " ");
        line += strspn(line, " ");
    }
    return line;
}

/* "start-end rwxp offset dev inode   path" */
static bool parse_mapping(const char *line, struct mapping *out, const char **path)
{
    char *end;
    out->start = strtoull(line, &end, 16);
    if (*end != '-') return false;
    out->end = strtoull(end + 1, &end, 16);
    if (*end != ' ' || strlen(end) < 6) return false;
    out->executable = end[3] == 'x';
    out->offset = strtoull(word(line, 2), NULL, 16);
    *path = word(line, 5);
    if (**path != '/' && strcmp(*path, "[vdso]") != 0) *path = "";
    return true;
}

tare_status mappings_read(struct mappings *m, pid_t pid, tare_error *err)
{
    struct buf text = BUF_INIT;
    char *rest = NULL;
    tare_status s = maps_text(&text, pid, err);
    for (char *line = s == TARE_OK && text.len ? strtok_r(text.data, "\n", &rest) : NULL;
         line && s == TARE_OK; line = strtok_r(NULL, "\n", &rest)) {
        struct mapping one = {0};
        const char *path;
        if (!parse_mapping(line, &one, &path)) continue;
        one.path = mem_strdup(path);
        s = one.path ? vec_push(&m->items, one, err) : error_nomem(err, "mappings");
        if (s != TARE_OK) mem_free(one.path);
    }
    buf_release(&text);
    return s;
}

void mappings_release(struct mappings *m)
{
    for (size_t i = 0; i < m->items.n; i++) mem_free(m->items.items[i].path);
    vec_release(&m->items);
}
