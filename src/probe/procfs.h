/* SPDX-License-Identifier: MIT
 * procfs.h - files of the kernel, below /proc and /sys: opened, kept open and read again from their start, parsed by
 * hand. The one place that knows how; what the numbers mean is the business of those who ask. No stdio and no
 * allocation, so that reading does not change what is read. `root` is put before every path: "" on this machine, a
 * folder with a made-up proc/ and sys/ in tests. */
#ifndef PROBE_PROCFS_H
#define PROBE_PROCFS_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- files ---- */

/* root + path, made as by printf; -1 with errno. */
int procfs_open(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
void procfs_close(int *fd); /* -1 is fine; becomes -1 */

/* The file from its start as text, at most size - 1 bytes; the length, 0 when empty, -1 with errno. */
ssize_t procfs_read(int fd, char *text, size_t size);
/* The same with one system call: for files that the kernel gives whole, whatever their size. */
ssize_t procfs_line(int fd, char *text, size_t size);
/* Both steps for a file that is read once: false with errno when it cannot be, and text is "". */
bool procfs_text(const char *root, const char *path, char *text, size_t size);

/* Of process `pid` below an open /proc: "stat", "task/12/status". */
int procfs_open_of(int proc, pid_t pid, const char *name);
ssize_t procfs_read_of(int proc, pid_t pid, const char *name, char *text, size_t size);
DIR *procfs_list(int proc, const char *path); /* the only one that allocates; NULL with errno */

/* ---- parsing ---- */

/* The number after blanks or a colon; what follows it as result, NULL when there is none. */
const char *procfs_number(const char *at, uint64_t *out);
/* The same with a fraction ("0.42"), whatever the locale. */
const char *procfs_decimal(const char *at, double *out);
/* The number after `key` at the start of a line and blanks or a colon ("VmHWM:", "throttled_usec"). */
bool procfs_field(const char *text, const char *key, uint64_t *out);
/* A whole-file number, as in sysfs; negative ones too. */
bool procfs_whole_number(int fd, double *out);
/* "some ... total=123" of a file like /proc/pressure/cpu. */
bool procfs_pressure_us(const char *text, uint64_t *out);
/* The first line of folder + file as a label: "" and false when it is not there. */
bool procfs_name(const char *root, const char *folder, const char *file, char *out, size_t size);
/* A name from outside as a label: control characters and what is not UTF-8 become '?'. */
void procfs_label(char *out, size_t size, const char *name, size_t n);

/* /proc/PID/stat, taken apart from the last ')', because the name in brackets may hold anything. */
struct process_stat {
    const char
        *name; /* the bytes that the process chose, within the text: escape them before they are shown */
    size_t name_len;
    char state; /* R S D Z T ... */
    pid_t parent;
    bool thread, kernel;                             /* not the first thread of a process; a kernel thread */
    uint64_t user, system, child_user, child_system; /* ticks */
    uint64_t minor, child_minor, major, child_major; /* faults */
    uint64_t threads, started, rss_pages; /* started: in ticks since boot; with the pid, who it is */
};
bool process_stat_parse(struct process_stat *out, const char *text);

/* ---- control groups, versions 1 and 2 and both at once ---- */

/* The path of a process's group ("self", "1234") in the hierarchy of a controller, "" for the root of it; the
 * controller "" is version 2. False: there is no such hierarchy. */
bool cgroup_path(const char *root, const char *process, const char *controller, char *out, size_t size);

/* The folders of a group: where its controller is mounted, and the group's path below that. In a container the path may
 * not be visible; then it is "", because the root of the mount is the container's group. */
struct cgroup_place {
    char mount[64], path[2048];
};
bool cgroup_find(struct cgroup_place *g, const char *root, const char *process, const char *controller);
bool cgroup_up(struct cgroup_place *g); /* to the group that this one is in; false: it is the root */
bool cgroup_text(const struct cgroup_place *g, const char *root, const char *file, char *text, size_t size);
/* The same of this process's own group; false: there is none, or no such file. */
bool cgroup_own_text(const char *root, const char *controller, const char *file, char *text, size_t size);

#endif
