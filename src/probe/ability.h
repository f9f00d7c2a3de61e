/* SPDX-License-Identifier: MIT
 * ability.h - what can be measured here: one row per ability, each with a check that answers yes, partial or
 * no, says why, and what would help. Checks try the real thing where they can, change nothing that lasts, and
 * never print. */
#ifndef PROBE_ABILITY_H
#define PROBE_ABILITY_H

#include <stdbool.h>
#include <stddef.h>

#define ABILITY_ANSWER_MAP(X) X(YES, "yes") X(PARTIAL, "partial") X(NO, "no")

enum ability_answer {
#define X(name, text) ABILITY_##name,
    ABILITY_ANSWER_MAP(X)
#undef X
};

struct ability_result {
    enum ability_answer answer;
    char reason[200]; /* what was found: never empty */
    char remedy[200]; /* what would help; "" when nothing is missing or nothing can be done */
};

/* Where to look. Tests give a made-up `root` that holds proc/ and sys/. */
struct ability_where {
    const char *root;    /* put before /proc and /sys: "" */
    const char *dir;     /* where traces will be written: "." */
    bool clock_fallback; /* pretend that the cycle counter cannot be trusted */
};

struct ability {
    const char *name;
    const char *use;     /* what it is for */
    const char *without; /* what the user has to do without when the answer is not yes; a sentence */
    void (*check)(const struct ability_where *where, struct ability_result *out);
    const char *file, *remedy; /* instead of a check: yes if this file can be read, else what would help */
};

extern const struct ability ability_table[]; /* the last one has name NULL */
const char *ability_answer_name(enum ability_answer answer);

/* Run one row's check. */
void ability_check(const struct ability *a, const struct ability_where *where, struct ability_result *out);

/* ---- for the checks: ability_kernel.c, ability_machine.c ---- */

/* Set the answer and its reason, made as by printf; and where something is missing and can be had, the remedy. */
#define ability_say(out, answer, ...) ability_lack(out, answer, "", __VA_ARGS__)
void ability_lack(struct ability_result *out, enum ability_answer answer, const char *remedy,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The first line of root + path without its newline: true, or false with errno set and text "". */
bool ability_read(const struct ability_where *where, const char *path, char *text, size_t size);

typedef void ability_check_fn(const struct ability_where *where, struct ability_result *out);
ability_check_fn check_counters, check_task_clock, check_ptrace, check_cgroup, check_limits, check_pressure,
    check_affinity;
ability_check_fn check_cycle_clock, check_energy, check_temperature, check_governor, check_boost, check_nvml;
ability_check_fn check_huge_pages, check_layout, check_bare_metal, check_trace_file, check_file_system;

#endif
