/* SPDX-License-Identifier: MIT
 * doctor_probes.c - see doctor_probes.h. */
#include "cli/doctor/doctor_probes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/opt.h"
#include "core/clock.h"

enum { SAMPLES = 10, BETWEEN_NS = 120000000 }; /* some GPU quantities need two readings so far apart */

/* ---- trying ---- */

static tare_status open_one(struct doctor_probes *d, const struct probe_ops *ops, tare_error *err)
{
    struct doctor_probe fresh = {.ops = ops, .why = TARE_ERROR_INIT};
    struct probe_place here = {.root = "", .program = getpid()};
    tare_status s = vec_push(&d->items, fresh, err);
    if (s != TARE_OK) return s;
    struct doctor_probe *p = vec_last(&d->items);
    uint64_t begun = clock_raw_ns();
    s = probes_open(&p->opened, &ops->name, 1, &here, &p->why);
    p->open_ns = (double)(clock_raw_ns() - begun);
    p->sees = s == TARE_OK;
    return s == TARE_NOMEM ? error_set(err, s, "%s", p->why.text) : TARE_OK;
}

static void sample_one(struct doctor_probe *p)
{
    for (int i = 0; i < SAMPLES && p->sees; i++) p->sees = probes_sample(&p->opened, &p->why) == TARE_OK;
    if (!p->sees) return;
    const struct probe *probe = p->opened.items.items[0];
    p->ns = (double)probe->ns / (double)probe->samples;
    p->ns_max = (double)probe->ns_max;
}

tare_status doctor_probes_try(struct doctor_probes *out, tare_error *err)
{
    tare_status s = TARE_OK;
    for (size_t i = 0; probe_table[i] && s == TARE_OK; i++) s = open_one(out, probe_table[i], err);
    if (s != TARE_OK) return s;
    for (size_t i = 0; i < out->items.n; i++) {
        struct doctor_probe *p = &out->items.items[i];
        if (p->sees) p->sees = probes_sample(&p->opened, &p->why) == TARE_OK;
    }
    nanosleep(&(struct timespec){0, BETWEEN_NS}, NULL);
    for (size_t i = 0; i < out->items.n; i++) sample_one(&out->items.items[i]);
    return TARE_OK;
}

void doctor_probes_release(struct doctor_probes *d)
{
    for (size_t i = 0; i < d->items.n; i++) probes_close(&d->items.items[i].opened);
    vec_release(&d->items);
}

/* The text after "probe name: ", which the heading of its row says already. */
static const char *without_name(const struct doctor_probe *p, const char *text)
{
    size_t n = strlen(p->ops->name);
    if (strncmp(text, "probe ", 6) == 0) text += 6;
    return strncmp(text, p->ops->name, n) == 0 && text[n] == ':' && text[n + 1] == ' ' ? text + n + 2 : text;
}

/* Series with a value; tare's own cost is not what the probe sees. */
static bool seen(const struct probes *p, size_t i, double *value)
{
    return p->set.items.items[i].metric != METRIC_SELF_CPU && sample_get(&p->now, i, value);
}

static unsigned count_seen(const struct probes *p)
{
    unsigned n = 0;
    double value;
    for (size_t i = 0; i < p->set.items.n; i++) n += seen(p, i, &value);
    return n;
}

/* ---- the answer ---- */

enum { NOTE_COLUMN = 30 };

/* From this column on, in the width of the help; control characters made harmless. */
static void wrap(struct buf *out, const char *text, unsigned column)
{
    struct buf clean = BUF_INIT;
    term_clean(&clean, text);
    if (!clean.failed) opt_wrap(out, clean.data ? clean.data : "", column, column);
    buf_release(&clean);
}

void doctor_row_text(struct buf *out, const struct term *t, enum doctor_mark mark, const char *name,
                     const char *text)
{
    static const struct {
        const char *word;
        enum term_style style;
    } marks[] = {{"ok", TERM_GREEN}, {"partial", TERM_YELLOW}, {"no", TERM_RED}};
    buf_add_str(out, "  ");
    term_cell(out, t, marks[mark].style, marks[mark].word, 9);
    term_cell(out, t, TERM_PLAIN, name, 19);
    wrap(out, text, NOTE_COLUMN);
    buf_add_char(out, '\n');
}

void doctor_note_text(struct buf *out, const struct term *t, const char *lead, const char *text)
{
    buf_printf(out, "%*s%s%s", NOTE_COLUMN, "", term_style(t, TERM_DIM), lead);
    wrap(out, text, NOTE_COLUMN + (unsigned)strlen(lead));
    buf_printf(out, "%s\n", term_style(t, TERM_PLAIN));
}

/* The quantities that a probe which works cannot see, and why: a line each. */
static void say_blind(struct answer *a, const struct term *t, const struct doctor_probe *p)
{
    answer_list(a, "blind");
    for (const char *line = p->sees ? p->opened.blind.data : ""; *line;) {
        size_t n = strcspn(line, "\n");
        char text[400];
        snprintf(text, sizeof text, "%.*s", (int)(n < 399 ? n : 399), line);
        answer_str(a, NULL, without_name(p, text), NULL);
        doctor_note_text(answer_text(a), t, "not: ", without_name(p, text));
        line += n + (line[n] == '\n');
    }
    answer_list_end(a);
}

static void say_values(struct answer *a, const struct doctor_probe *p)
{
    answer_list(a, "values");
    for (size_t i = 0; p->sees && i < p->opened.set.items.n; i++) {
        const struct series *s = &p->opened.set.items.items[i];
        double value;
        if (!seen(&p->opened, i, &value)) continue;
        answer_object(a, NULL);
        answer_str(a, "metric", metric_table[s->metric].name, NULL);
        answer_str(a, "label", s->label[0] ? s->label : NULL, NULL);
        answer_str(a, "unit", metric_table[s->metric].unit, NULL);
        answer_f64(a, "value", value, NULL);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void probe_row_text(struct buf *out, const struct term *t, const struct doctor_probe *p)
{
    char text[100];
    enum doctor_mark mark = p->opened.blind.len ? DOCTOR_PARTIAL : DOCTOR_OK;
    if (!p->sees) {
        doctor_row_text(out, t, DOCTOR_NO, p->ops->name, without_name(p, p->why.text));
        return;
    }
    snprintf(text, sizeof text, "%u quantities, %.0f us a sample, %.0f us to open", count_seen(&p->opened),
             p->ns / 1e3, p->open_ns / 1e3);
    doctor_row_text(out, t, mark, p->ops->name, text);
}

/* A probe that sees nothing has no time of a sample: null, since 0 would say that it costs nothing. */
void doctor_probes_say(struct answer *a, const struct term *t, const struct doctor_probes *d)
{
    answer_list(a, "probes");
    for (size_t i = 0; i < d->items.n; i++) {
        const struct doctor_probe *p = &d->items.items[i];
        probe_row_text(answer_text(a), t, p);
        answer_object(a, NULL);
        answer_str(a, "name", p->ops->name, NULL);
        answer_str(a, "for", p->ops->help, NULL);
        answer_bool(a, "sees", p->sees, NULL);
        answer_str(a, "why_not", p->sees ? NULL : without_name(p, p->why.text), NULL);
        answer_f64(a, "open_ns", p->open_ns, NULL);
        answer_f64(a, "sample_ns", p->sees ? p->ns : NAN, NULL);
        answer_f64(a, "sample_ns_max", p->sees ? p->ns_max : NAN, NULL);
        say_blind(a, t, p);
        say_values(a, p);
        answer_object_end(a);
    }
    answer_list_end(a);
}
