/* SPDX-License-Identifier: MIT
 * top_live.c - `tare top` on a terminal: sample, draw, wait, obey keys. The terminal is given back before anything is
 * said. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "top/top.h"
#include "top/top_term.h"

struct live {
    struct top_view *v;
    struct top_data *d;
    struct screen screen;
    struct buf out;
    uint64_t due_ns;
    uint64_t moments, iterations; /* iterations 0: no end */
    bool recorded;                /* a recording was asked for */
    tare_error lost;              /* why it ended; status TARE_OK: it did not */
    tare_error error;
};

static const uint64_t second_ns = 1000000000;

/* How long until the next moment. The second one comes soon: without it there are no rates. */
static uint64_t pause_ns(const struct live *l)
{
    const struct top_data *d = l->d;
    double s = l->v->interval_s;
    if (d->replaying) {
        size_t at = d->at + 1 < d->tape.at_ns.n ? d->at : 0;
        uint64_t step =
            d->tape.at_ns.n > 1 ? d->tape.at_ns.items[at + 1] - d->tape.at_ns.items[at] : second_ns;
        s = (double)step / 1e9 / l->v->speed;
        s = fmin(fmax(s, 0.02), 10);
    } else if (l->moments == 1 && s > 0.3) {
        s = 0.3;
    }
    return (uint64_t)(s * 1e9);
}

static void note_trouble(struct live *l)
{
    snprintf(l->v->trouble, sizeof l->v->trouble, "%s", l->error.text);
    if (l->recorded && !l->d->record && l->lost.status == TARE_OK) l->lost = l->error;
}

static void next_moment(struct live *l)
{
    uint64_t now = clock_raw_ns();
    if (top_data_next(l->d, &l->error) < 0)
        note_trouble(l);
    else if (l->d->remote)
        l->v->trouble[0] = 0; /* the server is there again */
    l->moments++;
    l->due_ns += pause_ns(l);
    if (l->due_ns < now) l->due_ns = now + pause_ns(l); /* after a stop or a long pause: no catching up */
}

/* false: the terminal is gone. */
static bool show_moment(struct live *l)
{
    if (top_arrange(l->v, l->d, &l->error) < 0) note_trouble(l);
    top_draw(l->v, l->d, &l->screen);
    buf_clear(&l->out);
    screen_render(&l->screen, &l->out);
    return l->out.failed || top_term_write(l->out.data, l->out.len);
}

static tare_status fit_screen(struct live *l)
{
    unsigned width, height;
    top_term_size(&width, &height);
    return screen_resize(&l->screen, width, height, &l->error);
}

/* Is nothing to come of itself? Then only keys wake us. */
static bool is_still(const struct live *l)
{
    return l->v->paused || top_data_ended(l->d);
}

/* `tare attach --top` of the chosen process has the terminal until the user leaves it; what it could not do is told. */
static tare_status show_functions(struct live *l)
{
    char exe[] = "/proc/self/exe", command[] = "attach", top[] = "--top", pid[16];
    char *const argv[] = {exe, command, top, pid, NULL};
    snprintf(pid, sizeof pid, "%d", (int)l->d->chosen.pid);
    l->v->functions = false;
    return top_term_lend(argv, l->v->trouble, sizeof l->v->trouble, &l->error);
}

static bool obey_keys(struct live *l)
{
    for (int key; (key = top_term_key()) != TOP_KEY_NONE;) {
        if (!top_press(l->v, l->d, key, &l->error)) return false;
        if (l->v->functions && show_functions(l) < 0) note_trouble(l);
    }
    return true;
}

/* Until the user leaves, a signal asks to, the terminal is gone, or all that was asked for has been shown. */
static tare_status run_live(struct live *l)
{
    l->due_ns = clock_raw_ns();
    tare_status s = fit_screen(l);
    for (bool on = s == TARE_OK; on;) {
        if (!is_still(l) && clock_raw_ns() >= l->due_ns) next_moment(l);
        if (!show_moment(l)) break;
        if (l->iterations && l->moments >= l->iterations) break;
        if (top_data_ended(l->d) && (l->iterations || !top_term_has_keys())) break;
        unsigned wake = top_term_wait(is_still(l) ? clock_raw_ns() + 3600 * second_ns : l->due_ns);
        if (wake & TOP_WAKE_END) break;
        if (wake & TOP_WAKE_RESIZED) s = fit_screen(l);
        on = s == TARE_OK && (!(wake & TOP_WAKE_KEYS) || obey_keys(l));
    }
    return s;
}

/* The terminal is given back before anything is released or told: a message on the other screen would vanish with it.
 * That recording failed is told last, after a session that went on without it. */
tare_status top_live(struct top_view *v, struct top_data *d, uint64_t iterations, int *ended_by,
                     tare_error *err)
{
    struct live l = {.v = v, .d = d, .screen = SCREEN_INIT, .out = BUF_INIT, .iterations = iterations};
    struct screen_env env = {secure_getenv("TERM"), secure_getenv("COLORTERM"), secure_getenv("NO_COLOR")};
    l.recorded = d->record != NULL;
    l.screen.utf8 = v->utf8;
    l.screen.colors = v->no_color ? SCREEN_MONO : screen_colors_of(&env);
    tare_status s = top_term_enter(STDIN_FILENO, STDOUT_FILENO, &l.error);
    if (s == TARE_OK) s = run_live(&l);
    top_term_leave();
    screen_release(&l.screen);
    buf_release(&l.out);
    if (s == TARE_OK && l.lost.status != TARE_OK) {
        s = l.lost.status;
        l.error = l.lost;
    }
    *ended_by = top_term_signal();
    if (s < 0) *err = l.error;
    return s;
}
