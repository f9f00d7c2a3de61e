/* SPDX-License-Identifier: MIT
 * attach_top.c - `tare attach --top`: samples of a while, a table, samples of the next while. Off a terminal one
 * table. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyze/stacks/stacks_table.h"
#include "cli/attach/attach.h"
#include "cli/output.h"
#include "core/clock.h"
#include "core/fmt.h"
#include "report/text.h"
#include "sample/sampler.h"
#include "top/screen.h"
#include "top/top_term.h"
#include "trace/reader.h"

enum { ROWS_SHOWN = 30, LINE = 300 };

struct showing {
    const struct attach_top *of;
    char folder[512], trace[540];
    struct sampler_totals t;
    struct stacks_table table;
    bool live, leave;
    struct screen screen;
    struct buf out;
};

/* ---- sampling for a while ---- */

/* Ctrl-C, or a key that leaves: asked between looks. */
static bool is_left(void *ctx)
{
    struct showing *s = ctx;
    if (!s->live) return interrupted != 0;
    unsigned wake = top_term_wait(clock_raw_ns());
    s->leave = s->leave || wake & TOP_WAKE_END;
    for (int key; wake & TOP_WAKE_KEYS && (key = top_term_key()) != TOP_KEY_NONE;)
        s->leave = s->leave || key == 'q' || key == 'Q' || key == 3 || key == TOP_KEY_ESCAPE;
    return s->leave;
}

static tare_status sample(struct showing *s, uint64_t duration_ns, tare_error *err)
{
    struct sampler_options o = {.pid = s->of->pid,
                                .trace = s->trace,
                                .hz = s->of->hz,
                                .budget = s->of->budget,
                                .duration_ns = duration_ns,
                                .consistent = s->of->consistent,
                                .stop = is_left,
                                .stop_ctx = s};
    struct trace *t = NULL;
    tare_status st = sampler_run(&o, &s->t, err);
    if (st == TARE_OK) st = trace_open(&t, s->trace, err);
    if (st == TARE_OK) {
        stacks_table_release(&s->table);
        st = stacks_table(t, &s->table, err);
    }
    trace_close(t);
    unlink(s->trace);
    return st;
}

/* ---- the table ---- */

static const char head[] = "   own %  total %  waits %    GIL %  function";

static void put_title(const struct showing *s, char line[LINE])
{
    double wall = (double)(s->t.wall_ns ? s->t.wall_ns : 1), looks = (double)s->t.samples;
    snprintf(
        line, LINE, "process %d: %s, %.0f %% of a processor, GIL held %.0f %%; %s of looks, %.1f %% moved",
        (int)s->of->pid, show_count((double)s->table.threads, "thread").s, 100 * s->table.cpu_ns / wall,
        100 * s->table.gil_ns / wall, show_time(wall).s, looks > 0 ? 100 * (double)s->t.moved / looks : 0);
}

static void put_row(const struct showing *s, const struct stacks_row *r, char line[LINE])
{
    struct buf name = BUF_INIT, file = BUF_INIT;
    double wall = (double)(s->t.wall_ns ? s->t.wall_ns : 1);
    text_name(&name, r->name, 80);
    text_name(&file, r->file, 120);
    snprintf(line, LINE, "%8.1f %8.1f %8.1f %8.1f  %s  %s", 100 * r->own_cpu / wall,
             100 * r->total_cpu / wall, 100 * r->waits / wall, 100 * r->gil / wall, name.len ? name.data : "",
             file.len ? file.data : "");
    buf_release(&name);
    buf_release(&file);
}

static bool draw(struct showing *s)
{
    struct screen *to = &s->screen;
    char line[LINE];
    unsigned width, height;
    tare_error err = TARE_ERROR_INIT;
    top_term_size(&width, &height);
    if ((width != to->width || height != to->height) && screen_resize(to, width, height, &err) < 0)
        return false;
    screen_clear(to);
    put_title(s, line);
    screen_text(to, (struct screen_span){0, 0, width}, SCREEN_TITLE, line);
    screen_fill(to, (struct screen_box){0, 1, width, 1}, SCREEN_HEAD, ' ');
    screen_text(to, (struct screen_span){0, 1, width}, SCREEN_HEAD, head);
    for (unsigned i = 0; i < s->table.n && i + 3 < height; i++) {
        put_row(s, &s->table.rows[i], line);
        screen_text(to, (struct screen_span){0, i + 2, width}, SCREEN_PLAIN, line);
    }
    if (height > 2) screen_text(to, (struct screen_span){0, height - 1, width}, SCREEN_DIM, "q leaves");
    buf_clear(&s->out);
    screen_render(to, &s->out);
    return !s->out.failed && top_term_write(s->out.data, s->out.len);
}

static int print_once(struct cli *cli, struct showing *s)
{
    struct buf b = BUF_INIT;
    char line[LINE];
    put_title(s, line);
    buf_printf(&b, "%s\n%s\n", line, head);
    for (size_t i = 0; i < s->table.n && i < ROWS_SHOWN; i++) {
        put_row(s, &s->table.rows[i], line);
        buf_printf(&b, "%s\n", line);
    }
    int rc = cli_put(cli, &b);
    buf_release(&b);
    return rc;
}

/* ---- until the user leaves, or the process has ended ---- */

static uint64_t left_ns(const struct attach_top *of, uint64_t began)
{
    uint64_t spent = clock_raw_ns() - began;
    if (!of->duration_ns) return UINT64_MAX;
    return spent < of->duration_ns ? of->duration_ns - spent : 0;
}

static tare_status show_live(struct showing *s, const struct cli *cli, tare_error *err)
{
    struct screen_env env = {secure_getenv("TERM"), secure_getenv("COLORTERM"), secure_getenv("NO_COLOR")};
    s->screen.utf8 = cli->out_term.utf8;
    s->screen.colors = cli->color == COLOR_NEVER ? SCREEN_MONO : screen_colors_of(&env);
    tare_status st = top_term_enter(STDIN_FILENO, STDOUT_FILENO, err);
    s->live = st == TARE_OK;
    uint64_t first = s->of->interval_ns < 500000000 ? s->of->interval_ns : 500000000;
    uint64_t began = clock_raw_ns(), left;
    for (bool shown = false; st == TARE_OK && !s->leave && (left = left_ns(s->of, began)) > 0; shown = true) {
        uint64_t next = shown ? s->of->interval_ns : first;
        st = sample(s, next < left ? next : left, err);
        if (st == TARE_OK && !s->leave) s->leave = !draw(s);
        if (shown && st == TARE_INVALID) { /* it has ended: there was something to see */
            st = TARE_OK;
            s->leave = true;
        }
    }
    top_term_leave();
    return st;
}

int attach_top(struct cli *cli, const struct attach_top *of)
{
    struct showing s = {.of = of, .screen = SCREEN_INIT, .out = BUF_INIT, .table = {.arena = ARENA_INIT}};
    struct interrupt was;
    const char *tmp = secure_getenv("TMPDIR");
    snprintf(s.folder, sizeof s.folder, "%.480s/tare-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(s.folder)) {
        error_errno(&cli->error, "%s", s.folder);
        return cli_fail(cli);
    }
    snprintf(s.trace, sizeof s.trace, "%s/top.tare", s.folder);
    bool live = cli->out_term.tty && isatty(STDIN_FILENO);
    if (!live) interrupt_catch(&was);
    uint64_t one = of->duration_ns ? of->duration_ns : of->interval_ns;
    tare_status st = live ? show_live(&s, cli, &cli->error) : sample(&s, one, &cli->error);
    if (!live) interrupt_restore(&was);
    int rc = st < 0 ? cli_fail(cli) : CLI_GOOD;
    if (st == TARE_OK && !live) rc = print_once(cli, &s);
    unlink(s.trace);
    rmdir(s.folder);
    stacks_table_release(&s.table);
    screen_release(&s.screen);
    buf_release(&s.out);
    return rc;
}
