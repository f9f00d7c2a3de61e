/* SPDX-License-Identifier: MIT
 * probe_file.h - what probes share: files of the kernel that are kept open and read again from their start, numbers
 * parsed by hand, values put into a sample. No stdio and no allocation while sampling. */
#ifndef PROBE_PROBE_FILE_H
#define PROBE_PROBE_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"

/* root + path, made as by printf; -1 with errno. */
int probe_file_open(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The file from its start as text, at most size - 1 bytes; the length, 0 when empty, -1 with errno. */
ssize_t probe_file_read(int fd, char *text, size_t size);

/* The same with one system call: for files that the kernel gives whole, whatever their size. */
ssize_t probe_file_line(int fd, char *text, size_t size);

/* probe_file_read of a file that is opened for this once. */
ssize_t probe_file_once(int folder, const char *path, char *text, size_t size);

void probe_file_close(int *fd); /* -1 is fine; becomes -1 */

/* ---- parsing ---- */

/* The number after blanks; what follows it as result, NULL when there is none. */
const char *probe_number(const char *at, uint64_t *out);

/* The number after `key` at the start of a line and blanks or a colon. */
bool probe_field(const char *text, const char *key, uint64_t *out);

/* A whole-file number, as in sysfs; negative ones too. */
bool probe_whole_number(int fd, double *out);

/* A name from outside as a label: control characters and what is not UTF-8 become '?'. */
void probe_label(char *out, size_t size, const char *name, size_t n);

/* ---- values: nothing more is put after a failure ---- */

struct probe_put {
    struct series_set *set;
    struct sample *to;
    tare_error *err;
    tare_status status;
};
void probe_put(struct probe_put *p, enum metric_id m, const char *label, double value);

/* ---- for open: memory for a probe's own struct, and the lines of what it cannot see ---- */

tare_status probe_new(void **out, size_t size, tare_error *err);

/* ---- what need not be known at every moment: counters that rates over half a second are made of, and limits ---- */

struct probe_turn {
    uint64_t last_ns; /* 0: not yet */
};
/* True twice a second, and always when the sample is to be thorough: ask now. */
bool probe_turn(struct probe_turn *t, bool thorough, uint64_t now_ns);

#define PROBE_PRESSURES 3
/* cpu, memory, io in this order: "some" totals in seconds, from files like /proc/pressure/cpu. */
void probe_put_pressure(struct probe_put *p, const int fd[PROBE_PRESSURES],
                        const enum metric_id m[PROBE_PRESSURES]);

#endif
