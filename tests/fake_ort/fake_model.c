/* SPDX-License-Identifier: MIT
 * fake_model.c - reads the text that a fake model is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_ort.h"

static const struct {
    const char *name;
    int type;
    size_t bytes;
} types[] = {
    {"float32", 1, 4},  {"uint8", 2, 1},   {"int8", 3, 1},    {"uint16", 4, 2}, {"int16", 5, 2},
    {"int32", 6, 4},    {"int64", 7, 8},   {"string", 8, 8},  {"bool", 9, 1},   {"float16", 10, 2},
    {"float64", 11, 8}, {"uint32", 12, 4}, {"uint64", 13, 8},
};
static const char *const kinds[] = {"unknown", "tensor", "sequence", "map", "opaque", "sparse", "optional"};

size_t fake_type_bytes(int type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (types[i].type == type) return types[i].bytes;
    }
    return 0;
}

static bool read_io(struct fake_io *io, char *name, char *type, char *dims)
{
    if (!name || !type) return false;
    snprintf(io->name, sizeof io->name, "%s", name);
    io->kind = 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type, kinds[i]) == 0) io->kind = (int)i;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(type, types[i].name) == 0) io->type = types[i].type;
    }
    char *save = NULL;
    for (char *d = dims && strcmp(dims, "-") != 0 ? strtok_r(dims, ",", &save) : NULL; d;
         d = strtok_r(NULL, ",", &save)) {
        char *end;
        if (io->rank == FAKE_RANK) return false;
        long v = strtol(d, &end, 10);
        bool fixed = *end == 0;
        io->dims[io->rank] = fixed ? v : -1;
        snprintf(io->symbols[io->rank], sizeof io->symbols[0], "%s", fixed || strcmp(d, "?") == 0 ? "" : d);
        io->rank++;
    }
    return io->type != 0 || io->kind != 1;
}

static void read_schedule(struct fake_model *m, char *list, bool spin)
{
    char *save = NULL;
    m->spin = spin;
    m->n_schedule = 0;
    for (char *p = list ? strtok_r(list, ",", &save) : NULL; p && m->n_schedule < FAKE_SCHEDULE;
         p = strtok_r(NULL, ",", &save)) {
        m->schedule[m->n_schedule++] = (unsigned)strtoul(p, NULL, 10);
    }
}

static unsigned number(const char *word)
{
    return word ? (unsigned)strtoul(word, NULL, 10) : 0;
}

/* Settings that are one number. */
static bool read_number(struct fake_model *m, const char *key, const char *value)
{
    const struct {
        const char *key;
        unsigned *to;
    } rows[] = {
        {"load_us", &m->load_us},     {"first_us", &m->first_us},
        {"fail_run", &m->fail_run},   {"nan", &m->nan},
        {"grow_kib", &m->grow_kib},   {"shape_change", &m->shape_change},
        {"die_batch", &m->die_batch},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(key, rows[i].key) == 0) {
            *rows[i].to = number(value);
            return true;
        }
    }
    return false;
}

static bool read_line(struct fake_model *m, char *line)
{
    char *save = NULL, *key = strtok_r(line, " ", &save);
    if (!key || key[0] == '#') return true;
    if (strcmp(key, "fail_load") == 0) {
        snprintf(m->fail_load, sizeof m->fail_load, "%s", save);
        return true;
    }
    char *a = strtok_r(NULL, " ", &save), *b = strtok_r(NULL, " ", &save), *c = strtok_r(NULL, " ", &save);
    if (strcmp(key, "input") == 0) return m->n_in < FAKE_IO && read_io(&m->in[m->n_in++], a, b, c);
    if (strcmp(key, "output") == 0) return m->n_out < FAKE_IO && read_io(&m->out[m->n_out++], a, b, c);
    if (strcmp(key, "sleep_us") == 0 || strcmp(key, "spin_us") == 0) {
        read_schedule(m, a, key[1] == 'p');
        return true;
    }
    if (strcmp(key, "times") == 0 && a && b && c && m->n_times < FAKE_TIMES) {
        struct fake_times *t = &m->times[m->n_times++];
        snprintf(t->knob, sizeof t->knob, "%s", a);
        t->value = strtol(b, NULL, 10);
        t->factor = strtod(c, NULL);
        return true;
    }
    if (strcmp(key, "slow_first") == 0) {
        m->slow_runs = number(a);
        m->slow_factor = number(b);
        return true;
    }
    return read_number(m, key, a);
}

const char *fake_model_read(struct fake_model *m, const char *path)
{
    static __thread char why[200];
    char line[8192];
    FILE *f = fopen(path, "r");
    if (!f) return "Load model failed: file does not exist";
    const char *bad = fgets(line, sizeof line, f) && strcmp(line, "fake-ort-model 1\n") == 0
                          ? NULL
                          : "Protobuf parsing failed.";
    while (!bad && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        snprintf(why, sizeof why, "no such setting: %.150s", line);
        if (!read_line(m, line)) bad = why;
    }
    fclose(f);
    char *schedule = getenv("FAKE_ORT_SLEEP_US");
    if (schedule) {
        snprintf(line, sizeof line, "%s", schedule);
        read_schedule(m, line, false);
    }
    if (getenv("FAKE_ORT_FAIL_RUN")) m->fail_run = number(getenv("FAKE_ORT_FAIL_RUN"));
    return bad;
}
