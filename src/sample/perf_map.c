/* SPDX-License-Identifier: MIT
 * perf_map.c - see perf_map.h. The file may be anybody's who can write to /tmp: it must be a plain file of the user
 * whose process it is about, and of bounded size. */
#include "sample/perf_map.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "probe/procfs.h"

enum { FILE_MOST = 32 << 20, NAME_MOST = 400 };

static int by_start(const void *a, const void *b)
{
    const struct perf_map_entry *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* "start size name", the numbers in hex. A line that is none is left out. */
void perf_map_parse(struct perf_map *m, char *text)
{
    char name[NAME_MOST], *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *end;
        uint64_t start = strtoull(line, &end, 16), bytes = *end == ' ' ? strtoull(end, &end, 16) : 0;
        if (*end != ' ' || !end[1] || !bytes || bytes > UINT64_MAX - start) continue;
        procfs_label(name, sizeof name, end + 1, strlen(end + 1));
        struct perf_map_entry e = {start, start + bytes, arena_str(&m->arena, name)};
        if (!e.name || vec_push(&m->items, e, NULL) != TARE_OK) break;
    }
    if (m->items.n > 1) qsort(m->items.items, m->items.n, sizeof m->items.items[0], by_start);
}

/* In a container the file is there, under the number that the process has there: the last of NSpid. */
static int open_map(pid_t pid)
{
    char text[4096], *at;
    long inner = pid;
    struct stat file, of;
    int fd = procfs_open("", "/proc/%d/status", (int)pid);
    if (fd >= 0 && procfs_line(fd, text, sizeof text) > 0 && (at = strstr(text, "\nNSpid:")))
        for (at += 7; *at == ' ' || *at == '\t';) inner = strtol(at, &at, 10);
    procfs_close(&fd);
    fd = procfs_open("", "/proc/%d", (int)pid);
    bool known = fd >= 0 && fstat(fd, &of) == 0;
    procfs_close(&fd);
    snprintf(text, sizeof text, "/proc/%d/root/tmp/perf-%ld.map", (int)pid, inner);
    fd = known ? open(text, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (fd < 0 || (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == of.st_uid)) return fd;
    close(fd);
    return -1;
}

static void read_map(struct perf_map *m, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0 || (uint64_t)file.st_size == m->bytes) return;
    perf_map_release(m);
    m->bytes = (uint64_t)file.st_size;
    size_t most = m->bytes < FILE_MOST ? (size_t)m->bytes : FILE_MOST, have = 0;
    char *text = mem_new(1, most + 1);
    for (ssize_t n; text && have < most && (n = read(fd, text + have, most - have)) > 0;) have += (size_t)n;
    if (text) perf_map_parse(m, text);
    mem_free(text);
}

const char *perf_map_find(struct perf_map *m, pid_t pid, uint64_t address)
{
    uint64_t now = clock_raw_ns();
    size_t lo = 0, hi = m->items.n;
    while (lo < hi) { /* the first that begins behind it */
        size_t mid = lo + (hi - lo) / 2;
        if (m->items.items[mid].start <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo && address < m->items.items[lo - 1].end) return m->items.items[lo - 1].name;
    if (m->asked_ns && now - m->asked_ns < UINT64_C(1000000000)) return NULL;
    uint64_t had = m->bytes;
    int fd = open_map(pid);
    if (fd >= 0) read_map(m, fd);
    procfs_close(&fd);
    m->asked_ns = now;
    return m->bytes != had ? perf_map_find(m, pid, address) : NULL;
}

void perf_map_release(struct perf_map *m)
{
    vec_release(&m->items);
    arena_release(&m->arena);
    m->bytes = 0;
}
