/* SPDX-License-Identifier: MIT
 * output.c - see output.h. */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/html_out.h"
#include "cli/push.h"
#include "client/client.h"
#include "core/file.h"
#include "core/str.h"
#include "core/unit.h"

static tare_status write_answer(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    return cli_write(ctx, bytes, n) ? TARE_OK : error_set(err, TARE_IO, "could not write the answer");
}

static tare_status write_exact(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct cli *cli = ctx;
    bool written = cli->out_term.tty ? cli_write(cli, bytes, n) : cli_write_exact(cli, bytes, n);
    return written ? TARE_OK : error_set(err, TARE_IO, "could not write the answer");
}

struct sink cli_sink_exact(struct cli *cli)
{
    return (struct sink){write_exact, cli};
}

/* Text: cleaned by term_show(). */
static struct sink cli_sink(struct cli *cli)
{
    return (struct sink){write_answer, cli};
}

struct report_style cli_style(const struct cli *cli, const struct term *t)
{
    return (struct report_style){term_style(t, TERM_BOLD),  term_style(t, TERM_DIM),
                                 term_style(t, TERM_PLAIN), t->utf8,
                                 term_style(t, TERM_GREEN), term_style(t, TERM_YELLOW),
                                 term_style(t, TERM_RED),   t->tty && !cli->wide ? t->width : 0};
}

int cli_stream_result(struct cli *cli, tare_status status)
{
    if (status == TARE_OK || ferror(cli->out)) return CLI_GOOD;
    return cli_fail(cli);
}

bool output_is_answer(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* Text in a file is shown on a terminal sooner or later, so it is cleaned like the answer; it has no styles. */
static tare_status write_output(void *ctx, const void *bytes, size_t n, tare_error *err)
{
    struct output *o = ctx;
    struct sink to = sink_to_file(&o->file);
    if (!o->is_file) to = o->exact ? cli_sink_exact(o->cli) : cli_sink(o->cli);
    if (!o->is_file || o->exact) return to.write(to.ctx, bytes, n, err);
    struct buf shown = BUF_INIT;
    const struct term none = {0};
    term_show(&shown, &none, bytes, n);
    tare_status s = buf_status(&shown, err);
    if (s == TARE_OK) s = to.write(to.ctx, shown.data, shown.len, err);
    buf_release(&shown);
    return s;
}

tare_status output_open(struct cli *cli, struct output *o, const char *path)
{
    *o = (struct output){.cli = cli, .file = FILE_OUT_INIT, .is_file = path && !output_is_answer(path)};
    tare_status s = o->is_file ? file_out_open(&o->file, path, FILE_SHARED, &cli->error) : TARE_OK;
    if (s != TARE_OK) return s;
    stream_init(&o->stream, (struct sink){write_output, o}, &cli->error);
    if (!o->is_file) o->stream.style = cli_style(cli, &cli->out_term);
    return TARE_OK;
}

tare_status output_close(struct cli *cli, struct output *o)
{
    tare_status s = stream_finish(&o->stream);
    if (s == TARE_OK && o->is_file) s = file_out_commit(&o->file, &cli->error);
    file_out_close(&o->file);
    return s;
}

tare_status output_runs(struct cli *cli, const char *path, const struct run_report *r, run_format_fn *format)
{
    struct output o;
    tare_status s = output_open(cli, &o, path);
    if (s != TARE_OK) return s;
    format(&o.stream, r);
    return output_close(cli, &o);
}

void cli_answer_begin(struct cli *cli, struct answer *a, bool as_json)
{
    struct report_style style = cli_style(cli, &cli->out_term);
    answer_begin(a, cli_sink(cli), as_json, &style, &cli->error);
}

int cli_answer_end(struct cli *cli, struct answer *a)
{
    return cli_stream_result(cli, answer_end(a));
}

/* ==== the subject ==== */

tare_status output_parse_name(void *name, const char *text, tare_error *err)
{
    enum { NAME_MOST = 200 };
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return error_set(err, TARE_INVALID, "a name is one line of text");
    if (n == 0 || n > NAME_MOST)
        return error_set(err, TARE_INVALID, "a name has 1 to %d bytes, this one %zu", NAME_MOST, n);
    *(const char **)name = text;
    return TARE_OK;
}

/* ==== the history ==== */

/* What is measured stays out of a repository, unless somebody puts it there: as other tools do with their folders. Only
 * in the folder that nobody chose, when it is made; that it cannot be written is found by others. */
static void ignore_results(const char *dir)
{
    static const char all[] = "# made by tare, with the folder\n*\n";
    char path[4096];
    snprintf(path, sizeof path, "%s/.gitignore", dir);
    file_write_atomic(path, all, sizeof all - 1, FILE_SHARED, NULL);
}

static int folder_check(struct cli *cli, const char *option, const char *dir)
{
    char probe[4096];
    bool made = access(dir, F_OK) != 0;
    if (file_make_folders(dir, &cli->error) != TARE_OK)
        return cli_usage_error(cli, "--%s %s", option, cli->error.text);
    if (made && strcmp(dir, HISTORY_DIR_DEFAULT) == 0) ignore_results(dir);
    snprintf(probe, sizeof probe, "%s/.tare-XXXXXX", dir);
    int fd = mkostemp(probe, O_CLOEXEC);
    if (fd < 0) return cli_usage_error(cli, "--%s %s: cannot write there: %s", option, dir, strerror(errno));
    close(fd);
    unlink(probe);
    return 0;
}

int output_dir_check(struct cli *cli, const struct history_args *a)
{
    const char *slash = a->file && !a->none ? strrchr(a->file, '/') : NULL;
    char folder[4096];
    int rc = push_check(cli, a);
    if (rc) return rc;
    if (a->file && !a->none && client_is_url(a->file))
        return cli_usage_error(
            cli, "--history %.80s: a run is kept in a file; --push sends it to a server, too", a->file);
    if (slash && slash > a->file) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - a->file), a->file);
        rc = folder_check(cli, "history", folder);
    }
    if (!rc && a->file && !a->none) rc = cli_check_written(cli, "history", a->file);
    return rc ? rc : folder_check(cli, "output-dir", a->output_dir);
}

tare_status history_path(const struct history_args *a, struct buf *out, tare_error *err)
{
    if (a->file)
        buf_add_str(out, a->file);
    else
        buf_printf(out, "%s/history.db", a->output_dir);
    return buf_status(out, err);
}

const char *history_token(void)
{
    const char *token = secure_getenv("TARE_TOKEN");
    return token && *token ? token : NULL;
}

tare_status history_store(const struct history_args *a, bool create, struct store **out, tare_error *err)
{
    struct store_options o = {.create = create, .token = history_token()};
    struct buf path = BUF_INIT;
    tare_status s = history_path(a, &path, err);
    if (s == TARE_OK) s = store_open(out, path.data, &o, err);
    buf_release(&path);
    return s;
}

static tare_status count_run(void *n, const struct store_run *run, tare_error *err)
{
    (void)run;
    (void)err;
    ++*(unsigned *)n;
    return TARE_OK;
}

/* Models were once called by their file alone: whoever has such a history is told how to go on with it. */
static void tell_old_name(struct cli *cli, struct store *store, const struct run *run)
{
    const char *name = run->subject.name, *file = str_file_name(name);
    struct store_filter now = {.subject = name, .limit = 2}, before = {.subject = file, .limit = 1};
    unsigned runs = 0, old = 0;
    if (file == name || strcmp(run->subject.type, "onnx") != 0) return;
    if (store->ops->list(store, &now, count_run, &runs, NULL) != TARE_OK || runs != 1) return;
    if (store->ops->list(store, &before, count_run, &old, NULL) == TARE_OK && old)
        cli_note(
            cli,
            "this is the first run of %s in the history; earlier runs of a model are kept as %s, the name of its "
            "file alone: --name %s goes on with those",
            name, file, file);
}

static void keep_here(struct cli *cli, const struct history_args *a, const struct run *run)
{
    tare_error err = TARE_ERROR_INIT;
    struct store *store = NULL;
    bool added = false;
    if (a->none) return;
    tare_status s = history_store(a, true, &store, &err);
    if (s == TARE_OK) s = store_add_run(store, run, NULL, &added, &err);
    if (added) tell_old_name(cli, store, run);
    store_close(store);
    if (s != TARE_OK) cli_warn(cli, "this run is not in the history: %s", err.text);
}

tare_status history_keep(struct cli *cli, const struct history_args *a, const struct run *run)
{
    keep_here(cli, a, run);
    return push_run(cli, a, run);
}

tare_status output_keep(struct cli *cli, const struct history_args *a, const struct run *run, bool quiet)
{
    char path[4096];
    tare_status s = run_save(run, a->output_dir, path, sizeof path, &cli->error);
    if (s == TARE_OK && !quiet) cli_note_last(cli, "kept as %s", path);
    if (s != TARE_OK && !a->file) return s;
    tare_status kept = history_keep(cli, a, run);
    return s == TARE_OK ? kept : s;
}

/* clang-format off */
#define NO_ROW(...)
#define ALSO_ROW(name, function, help, also_help) \
    OPT_OUT(0, #name, &r->also[RUN_FORMAT_##name], "<file>", also_help),

struct opt *output_add_rows(struct opt *to, const struct output_rows *r)
{
    const struct opt rows[] = {
        OPT_GROUP("The answer"),
        OPT_NAME(r->name),
        OPT_JSON(r->json),
        RUN_FORMAT_MAP(NO_ROW, ALSO_ROW)
        OPT_HTML(r->html),
        OPT_HISTORY_DIR(r->history),
        OPT_FLAG(0, "no-save", r->no_save, "keep no run document, and nothing in the history"),
        OPT_HISTORY(r->history),
        OPT_FLAG(0, "no-history", &r->history->none, "keep this run out of the history"),
        OPT_PUSH(r->history),
        OPT_END,
    };
    return opt_append(to, rows);
}
/* clang-format on */

int history_open(struct cli *cli, const struct history_args *a, bool create, struct store **out)
{
    return history_store(a, create, out, &cli->error) == TARE_OK ? 0 : cli_fail(cli);
}

/* Dates are in UTC, as in the documents: the same words must mean the same runs on every machine. */
tare_status history_parse_since(void *ms, const char *text, tare_error *err)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"};
    struct duration age;
    int64_t *out = ms;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int64_t unix_s;
        const char *rest = unit_date(text, forms[i], &unix_s);
        if (!rest || (*rest && strcmp(rest, "Z") != 0)) continue;
        *out = unix_s * 1000;
        return TARE_OK;
    }
    if (unit_parse_duration(text, &age, NULL) != TARE_OK || age.ns < 0)
        return error_set(err, TARE_INVALID, "'%.40s' is neither a date (2026-11-01, UTC) nor an age (30d)",
                         text);
    *out = (int64_t)(clock_unix_ns() / 1000000) - age.ns / 1000000;
    return TARE_OK;
}
