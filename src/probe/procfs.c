/* SPDX-License-Identifier: MIT
 * procfs.c - see procfs.h. */
#include "probe/procfs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

/* The kernel gives lists of lines by pages, as many lines as a page has room for. What fills less than half of one is
 * all there is: a look for more would be a system call for nothing. */
enum { SURELY_ALL = 2048 };

/* ---- files ---- */

int procfs_open(const char *root, const char *format, ...)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s", root);
    if (n < 0 || (size_t)n >= sizeof path) return errno = ENAMETOOLONG, -1;
    va_list ap;
    va_start(ap, format);
    int m = vsnprintf(path + n, sizeof path - (size_t)n, format, ap);
    va_end(ap);
    if (m < 0 || (size_t)(n + m) >= sizeof path) return errno = ENAMETOOLONG, -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

void procfs_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0) close(*fd);
    *fd = -1;
    errno = saved;
}

ssize_t procfs_line(int fd, char *text, size_t size)
{
    ssize_t n;
    text[0] = 0;
    do n = pread(fd, text, size - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) text[n] = 0;
    return n;
}

ssize_t procfs_read(int fd, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    while (used + 1 < size) {
        ssize_t n = pread(fd, text + used, size - 1 - used, (off_t)used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        used += (size_t)n;
        text[used] = 0;
        if (n < SURELY_ALL) break;
    }
    return (ssize_t)used;
}

/* Closes the file, errno as the reading left it. */
static ssize_t read_and_close(int fd, char *text, size_t size)
{
    text[0] = 0;
    ssize_t n = fd >= 0 ? procfs_read(fd, text, size) : -1;
    procfs_close(&fd);
    return n;
}

bool procfs_text(const char *root, const char *path, char *text, size_t size)
{
    return read_and_close(procfs_open(root, "%s", path), text, size) >= 0;
}

int procfs_open_of(int proc, pid_t pid, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "%d/%s", (int)pid, name);
    return openat(proc, path, O_RDONLY | O_CLOEXEC);
}

ssize_t procfs_read_of(int proc, pid_t pid, const char *name, char *text, size_t size)
{
    return read_and_close(procfs_open_of(proc, pid, name), text, size);
}

DIR *procfs_list(int proc, const char *path)
{
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) procfs_close(&fd);
    return d;
}

/* ---- parsing ---- */

const char *procfs_number(const char *at, uint64_t *out)
{
    uint64_t v = 0;
    while (*at == ' ' || *at == '\t' || *at == ':') at++;
    if (*at < '0' || *at > '9') return NULL;
    for (; *at >= '0' && *at <= '9'; at++) v = v * 10 + (uint64_t)(*at - '0');
    *out = v;
    return at;
}

const char *procfs_decimal(const char *at, double *out)
{
    uint64_t whole;
    if (!(at = procfs_number(at, &whole))) return NULL;
    double v = (double)whole, unit = 1;
    for (at += *at == '.'; *at >= '0' && *at <= '9'; at++) {
        v = v * 10 + (*at - '0');
        unit *= 10;
    }
    *out = v / unit;
    return at;
}

bool procfs_field(const char *text, const char *key, uint64_t *out)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, n) != 0) continue;
        char after = line[n];
        if (after == ' ' || after == '\t' || after == ':') return procfs_number(line + n, out) != NULL;
    }
    return false;
}

bool procfs_whole_number(int fd, double *out)
{
    char text[64];
    uint64_t v;
    if (procfs_line(fd, text, sizeof text) <= 0) return false;
    bool negative = text[0] == '-';
    const char *end = procfs_number(text + negative, &v);
    if (!end || (*end && *end != '\n')) return false;
    *out = negative ? -(double)v : (double)v;
    return true;
}

bool procfs_pressure_us(const char *text, uint64_t *out)
{
    const char *total = strncmp(text, "some", 4) == 0 ? strstr(text, "total=") : NULL;
    return total && procfs_number(total + strlen("total="), out);
}

void procfs_label(char *out, size_t size, const char *name, size_t n)
{
    bool utf8 = str_is_utf8(name, n);
    size_t used = 0;
    for (size_t i = 0; i < n && used + 1 < size; i++) {
        unsigned char c = (unsigned char)name[i];
        out[used++] = c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8) ? '?' : (char)c;
    }
    while (used && utf8 && !str_is_utf8(out, used)) used--; /* cut within a character */
    out[used] = 0;
}

bool procfs_name(const char *root, const char *folder, const char *file, char *out, size_t size)
{
    char text[128];
    int fd = procfs_open(root, "%s/%s", folder, file);
    bool read = fd >= 0 && procfs_line(fd, text, sizeof text) > 0;
    procfs_close(&fd);
    procfs_label(out, size, text, read ? strcspn(text, "\n") : 0);
    return read;
}

/* The name may hold spaces and parentheses of its own: it ends at the last ')' of the line, and fields are
 * counted from there. Of signs only the last one read matters, that of EXIT_SIGNAL. */
bool process_stat_parse(struct process_stat *out, const char *text)
{
    enum { KERNEL_THREAD = 0x00200000 }; /* PF_KTHREAD */
    enum { PARENT = 4, FLAGS = 9, MINOR, CMINOR, MAJOR, CMAJOR, USER, SYSTEM, CUSER, CSYSTEM }; /* proc(5) */
    enum { THREADS = 20, STARTED = 22, RSS = 24, EXIT_SIGNAL = 38, FIELDS };
    uint64_t f[FIELDS] = {0};
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open || close[1] != ' ' || !close[2]) return false;
    const char *at = close + 3;
    bool negative = false;
    for (int i = PARENT; i < FIELDS; i++) {
        while (*at == ' ') at++;
        negative = *at == '-';
        at = procfs_number(at + negative, &f[i]);
        if (!at) return false;
    }
    *out = (struct process_stat){
        .name = open + 1,
        .name_len = (size_t)(close - open - 1),
        .state = close[2],
        .parent = (pid_t)f[PARENT],
        .thread = negative && f[EXIT_SIGNAL] == 1, /* -1: its end is told to nobody */
        .kernel = (f[FLAGS] & KERNEL_THREAD) != 0,
        .user = f[USER],
        .system = f[SYSTEM],
        .child_user = f[CUSER],
        .child_system = f[CSYSTEM],
        .minor = f[MINOR],
        .child_minor = f[CMINOR],
        .major = f[MAJOR],
        .child_major = f[CMAJOR],
        .threads = f[THREADS],
        .started = f[STARTED],
        .rss_pages = f[RSS],
    };
    return true;
}

/* ---- control groups ---- */

/* Is `name` one of the comma-separated controllers of a line "5:cpu,cpuacct:/path"? */
static bool names_controller(const char *list, size_t n, const char *name)
{
    size_t len = strlen(name);
    if (len == 0) return n == 0;
    for (const char *at = list, *end = list + n; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if ((size_t)(stop - at) == len && memcmp(at, name, len) == 0) return true;
        at = stop + 1;
    }
    return false;
}

bool cgroup_path(const char *root, const char *process, const char *controller, char *out, size_t size)
{
    char text[4096], file[64];
    snprintf(file, sizeof file, "/proc/%s/cgroup", process);
    if (!procfs_text(root, file, text, sizeof text)) return false;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || !names_controller(list + 1, (size_t)(path - list - 1), controller)) continue;
        return snprintf(out, size, "%s", strcmp(path + 1, "/") == 0 ? "" : path + 1) < (int)size;
    }
    return false;
}

static bool is_visible(const char *root, const char *mount, const char *path)
{
    int fd = procfs_open(root, "%s%s", mount, path);
    bool visible = fd >= 0;
    procfs_close(&fd);
    return visible;
}

bool cgroup_find(struct cgroup_place *g, const char *root, const char *process, const char *controller)
{
    if (!cgroup_path(root, process, controller, g->path, sizeof g->path)) return false;
    snprintf(g->mount, sizeof g->mount, "/sys/fs/cgroup%s%s", *controller ? "/" : "", controller);
    if (!*controller && !is_visible(root, g->mount, "/cgroup.controllers") &&
        is_visible(root, g->mount, "/unified"))
        snprintf(g->mount, sizeof g->mount, "/sys/fs/cgroup/unified"); /* beside version 1 */
    if (!is_visible(root, g->mount, g->path)) g->path[0] = 0;
    return true;
}

bool cgroup_up(struct cgroup_place *g)
{
    char *slash = strrchr(g->path, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

bool cgroup_text(const struct cgroup_place *g, const char *root, const char *file, char *text, size_t size)
{
    char path[2600];
    snprintf(path, sizeof path, "%s%s/%s", g->mount, g->path, file);
    return procfs_text(root, path, text, size);
}

bool cgroup_own_text(const char *root, const char *controller, const char *file, char *text, size_t size)
{
    struct cgroup_place g;
    return cgroup_find(&g, root, "self", controller) && cgroup_text(&g, root, file, text, size);
}
