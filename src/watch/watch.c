/* SPDX-License-Identifier: MIT
 * watch.c - see watch.h: the flow of watching a program. From the moment the program has started nothing here fails:
 * what goes wrong with the trace or the document is said, and the program's exit code is passed on all the same. */
#include "watch/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/str.h"

void watch_say(const struct watch_options *o, enum watch_tone tone, const char *format, ...)
{
    char text[4300];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    o->say(o->say_ctx, tone, text);
}

/* ---- before ---- */

static tare_status open_rules(struct watcher *w, tare_error *err)
{
    const struct watch_options *o = w->options;
    struct alert_rules rules = {VEC_INIT};
    tare_status s = alert_rules_add(&rules, !o->no_default_alerts, o->alerts, o->n_alerts, err);
    if (s == TARE_OK) s = alerts_new(&w->alerts, rules.items.items, rules.items.n, err);
    vec_release(&rules.items);
    return s;
}

/* A trace that cannot be written is a warning; one that another `tare run` is writing is not what was meant. */
static tare_status open_trace(struct watcher *w, tare_error *err)
{
    const struct watch_options *o = w->options;
    tare_error why = TARE_ERROR_INIT;
    if (!w->places.trace[0]) return TARE_OK;
    tare_status s = samples_create(&w->writer, w->places.trace, w->run_id, &why);
    if (s == TARE_BUSY && (o->trace || o->output)) return error_set(err, s, "%s", why.text);
    if (s != TARE_OK) watch_say(o, WATCH_WARNING, "no trace: %s", why.text);
    return TARE_OK;
}

/* Nothing was run: no trace of it is left, unless it is the trace of others, which we had joined. */
static void drop_trace(struct watcher *w)
{
    if (!w->writer) return;
    bool own = strcmp(samples_run_id(w->writer), w->run_id) == 0;
    samples_close(w->writer, NULL);
    w->writer = NULL;
    if (own) unlink(w->places.trace);
}

/* What a reader of the samples should know: which card a label stands for. */
void watch_note_told(struct watcher *w)
{
    char line[200];
    while (w->writer && w->noted < w->probes.told.len) {
        const char *at = w->probes.told.data + w->noted;
        size_t n = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        samples_mark(w->writer, clock_raw_ns(), SAMPLE_NOTE, line, NULL);
        w->noted += n + (at[n] == '\n');
    }
}

/* ---- live metrics: what goes wrong with them is told, and no more ---- */

static void open_sender(struct watcher *w)
{
    tare_error why = TARE_ERROR_INIT;
    if (!w->options->server) return;
    if (sender_open(&w->sender, w->options->server, w->options->token, &why) != TARE_OK)
        watch_say(w->options, WATCH_WARNING, "no live metrics: %s", why.text);
}

static void start_sender(struct watcher *w)
{
    tare_error why = TARE_ERROR_INIT;
    if (w->sender && sender_start(w->sender, &why) != TARE_OK)
        watch_say(w->options, WATCH_WARNING, "no live metrics: %s", why.text);
}

static void end_sender(struct watcher *w)
{
    struct sender_account sent;
    sender_end(w->sender, &sent);
    w->sender = NULL;
    if (sent.lost && w->child.started)
        watch_say(w->options, WATCH_WARNING, "live metrics: %llu of %llu values are not at the server: %s",
                  (unsigned long long)sent.lost, (unsigned long long)sent.values, sent.why.text);
}

/* ---- where threads are ---- */

static void start_stacks(struct watcher *w)
{
    tare_error why = TARE_ERROR_INIT;
    if (!w->options->stacks.on || !w->writer) return;
    if (stacks_watch_start(&w->stacks, &w->options->stacks, w->child.pid, w->places.trace, &why) != TARE_OK)
        watch_say(w->options, WATCH_WARNING, "no stacks: %s", why.text);
}

static void end_stacks(struct watcher *w)
{
    struct sampler_totals t;
    tare_error why = TARE_ERROR_INIT;
    if (!w->stacks) return;
    tare_status s = stacks_watch_end(w->stacks, &t, &why);
    w->stacks = NULL;
    if (s != TARE_OK)
        watch_say(w->options, WATCH_WARNING, "the stacks may lack a part: %s", why.text);
    else if (!t.pythons)
        watch_say(w->options, WATCH_WARNING, "--stacks: no frame of Python was seen: %s", t.no_python.text);
}

/* ---- load beside it ---- */

static void start_load(struct watcher *w)
{
    tare_error why = TARE_ERROR_INIT;
    w->load.words = w->options->load;
    w->load.quiet = w->options->load_quiet;
    if (!w->load.words) return;
    if (load_side_start(&w->load, w->child.pid, w->writer ? w->places.named : NULL, &why) == TARE_OK)
        probe_process_ignore(&w->probes, w->load.pid);
    else
        watch_say(w->options, WATCH_WARNING, "no load: %s", why.text);
}

/* Everything that takes time and memory is opened while the forked program still waits. */
static tare_status start_program(struct watcher *w, int *exit_code, tare_error *err)
{
    const struct watch_options *o = w->options;
    struct probe_place at = {.root = "", .program = w->child.pid, .detail = o->detail, .gpu = o->gpu.on};
    tare_status s = open_rules(w, err);
    if (s == TARE_OK) s = deriver_new(&w->deriver, err);
    if (s == TARE_OK) s = system_report_new(&w->report, err);
    if (s == TARE_OK) s = probes_open(&w->probes, o->n_probes ? o->probes : NULL, o->n_probes, &at, err);
    if (s == TARE_OK) s = open_trace(w, err);
    if (s != TARE_OK) return s;
    open_sender(w);
    watch_begin(w);
    s = child_start(&w->child, o->command[0], exit_code, err);
    if (s == TARE_OK) {
        start_sender(w);
        start_stacks(w);
        start_load(w);
    } else {
        drop_trace(w);
    }
    return s;
}

/* ---- after ---- */

/* The phases are known only now: they are marked in the trace as its last entries. */
static void close_trace(struct watcher *w, const struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    if (!w->writer) return;
    for (size_t i = 0; w->recorded && i < run->cases.at[0]->watch.phases.n; i++) {
        const struct run_phase *p = run->cases.at[0]->watch.phases.at[i];
        samples_mark(w->writer, w->child.start_ns + (uint64_t)(p->start_s.v * 1e9), SAMPLE_PHASE, p->name,
                     NULL);
    }
    tare_status s = samples_close(w->writer, &err);
    w->writer = NULL;
    if (s != TARE_OK && w->lost == 0)
        watch_say(w->options, WATCH_WARNING, "the trace may lack its end: %s", err.text);
}

/* The document and the end of the trace, and whatever of them is missing. */
static void conclude(struct watcher *w, struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    w->traced = w->writer != NULL;
    w->recorded = watch_record(run, w, &err) == TARE_OK;
    if (w->recorded && w->traced && w->places.beside)
        run->trace = arena_str(&run->arena, str_file_name(w->places.trace));
    else if (w->recorded && w->traced)
        run_map_text(&run->arena, &run->config, "trace_path", w->places.trace);
    close_trace(w, run);
    if (w->lost)
        watch_say(w->options, WATCH_WARNING, "not in the trace: %llu of all %llu samples: %s",
                  (unsigned long long)w->lost, (unsigned long long)w->samples, w->lost_why.text);
    if (w->hooks.undelivered)
        watch_say(w->options, WATCH_WARNING, "web hook: not delivered: %llu (%s)",
                  (unsigned long long)w->hooks.undelivered, w->hooks.why);
    if (!w->recorded) watch_say(w->options, WATCH_WARNING, "no summary: %s", err.text);
}

/* The child is forked before probes and the trace are opened, while tare is small, and waits; child_drop() also lets
 * one go that was never told to start. */
tare_status watch_program(struct watcher *w, struct run *run, int *exit_code, tare_error *err)
{
    const struct watch_options *o = w->options;
    const struct child_surroundings surroundings = {.trace = w->places.trace[0] ? w->places.named : NULL,
                                                    .gpu = &o->gpu,
                                                    .memory = &o->memory,
                                                    .ignored_sigpipe = o->ignored_sigpipe};
    w->hooks = (struct hooks){.command = o->on_alert, .url = o->webhook};
    w->run_id = run->id;
    tare_status s = child_fork(&w->child, o->command, &surroundings, err);
    if (s == TARE_OK) s = start_program(w, exit_code, err);
    if (s == TARE_OK) {
        watch_until_end(w);
        end_sender(w);
        end_stacks(w);
        conclude(w, run);
        *exit_code = w->load.ended ? load_side_code(&w->load) : child_exit_code(&w->child);
    }
    child_drop(&w->child);
    return s;
}

void watch_release(struct watcher *w)
{
    places_leave(&w->places);
    sender_end(w->sender, &(struct sender_account){0}); /* of a program that never started */
    probes_close(&w->probes);
    system_report_free(w->report);
    deriver_free(w->deriver);
    alerts_free(w->alerts);
    vec_release(&w->events.items);
    vec_release(&w->fired);
    course_release(&w->course);
}
