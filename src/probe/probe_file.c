/* SPDX-License-Identifier: MIT
 * probe_file.c - see probe_file.h. */
#include "probe/probe_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/str.h"

int probe_file_open(const char *root, const char *format, ...)
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

ssize_t probe_file_line(int fd, char *text, size_t size)
{
    ssize_t n;
    text[0] = 0;
    do n = pread(fd, text, size - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) text[n] = 0;
    return n;
}

/* The kernel gives lists of lines by pages, as many lines as a page has room for. What fills less than half of one is
 * all there is: a look for more would be a system call for nothing. */
enum { SURELY_ALL = 2048, SELDOM_NS = 450000000 };

bool probe_turn(struct probe_turn *t, bool thorough, uint64_t now_ns)
{
    if (!thorough && t->last_ns && now_ns - t->last_ns < SELDOM_NS) return false;
    t->last_ns = now_ns;
    return true;
}

ssize_t probe_file_read(int fd, char *text, size_t size)
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

ssize_t probe_file_once(int folder, const char *path, char *text, size_t size)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    text[0] = 0;
    if (fd < 0) return -1;
    ssize_t n = probe_file_read(fd, text, size);
    int saved = errno;
    close(fd);
    errno = saved;
    return n;
}

void probe_file_close(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

const char *probe_number(const char *at, uint64_t *out)
{
    uint64_t v = 0;
    while (*at == ' ' || *at == '\t' || *at == ':') at++;
    if (*at < '0' || *at > '9') return NULL;
    for (; *at >= '0' && *at <= '9'; at++) v = v * 10 + (uint64_t)(*at - '0');
    *out = v;
    return at;
}

bool probe_field(const char *text, const char *key, uint64_t *out)
{
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, n) != 0) continue;
        char after = line[n];
        if (after == ' ' || after == '\t' || after == ':') return probe_number(line + n, out) != NULL;
    }
    return false;
}

bool probe_whole_number(int fd, double *out)
{
    char text[64];
    uint64_t v;
    if (probe_file_line(fd, text, sizeof text) <= 0) return false;
    bool negative = text[0] == '-';
    const char *end = probe_number(text + negative, &v);
    if (!end || (*end && *end != '\n')) return false;
    *out = negative ? -(double)v : (double)v;
    return true;
}

void probe_label(char *out, size_t size, const char *name, size_t n)
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

void probe_put(struct probe_put *p, enum metric_id m, const char *label, double value)
{
    size_t at;
    if (p->status != TARE_OK) return;
    p->status = series_find(p->set, m, label, &at, p->err);
    if (p->status == TARE_OK) p->status = sample_set(p->to, at, value, p->err);
}

tare_status probe_new(void **out, size_t size, tare_error *err)
{
    *out = mem_new(1, size);
    return *out ? TARE_OK : error_set(err, TARE_NOMEM, "out of memory for a probe");
}

void probe_put_pressure(struct probe_put *p, const int fd[PROBE_PRESSURES],
                        const enum metric_id m[PROBE_PRESSURES])
{
    char text[256];
    for (int i = 0; i < PROBE_PRESSURES; i++) {
        uint64_t us;
        if (fd[i] < 0 || probe_file_line(fd[i], text, sizeof text) <= 0 || strncmp(text, "some", 4) != 0)
            continue;
        const char *total = strstr(text, "total=");
        if (total && probe_number(total + 6, &us)) probe_put(p, m[i], "", (double)us / 1e6);
    }
}
