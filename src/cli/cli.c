/* SPDX-License-Identifier: MIT
 * cli.c - see cli.h. The one place that reads the environment for settings, speaks to the user, and knows how
 * a command begins and ends. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "core/suggest.h"

/* A missing standard stream is replaced, lest the next file opened become our stdout. What is written to a
 * missing stdout must fail, not vanish: its stand-in is open for reading only. */
static void fill_missing_streams(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* closed again for what tare starts */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO) close(fd);
}

void cli_init(struct cli *cli)
{
    const char *all = secure_getenv("LC_ALL"), *ctype = secure_getenv("LC_CTYPE"),
               *lang = secure_getenv("LANG");
    struct term_env env = {.term = secure_getenv("TERM"), .no_color = secure_getenv("NO_COLOR")};
    env.force_color = secure_getenv("FORCE_COLOR");
    env.columns = secure_getenv("COLUMNS");
    env.locale = lang;
    if (ctype && *ctype) env.locale = ctype;
    if (all && *all) env.locale = all;
    fill_missing_streams();
    *cli = (struct cli){.out = stdout, .err = stderr, .last = BUF_INIT};
    term_detect(&cli->out_term, STDOUT_FILENO, &env);
    term_detect(&cli->err_term, STDERR_FILENO, &env);
}

/* ---- speaking -------------------------------------------------------------------------------- */

static void say_line(struct cli *cli, enum term_style style, const char *text)
{
    const struct term *t = &cli->err_term;
    struct buf line = BUF_INIT;
    term_clean(&line, text);
    fflush(cli->out);
    fprintf(cli->err, "%stare%s%s:%s %s\n", term_style(t, style), cli->command ? " " : "",
            cli->command ? cli->command->name : "", term_style(t, TERM_PLAIN),
            line.failed ? "out of memory" : line.data);
    buf_release(&line);
}

/* The words of the printf format that `format` names, into an array `text`. */
#define FORMAT_INTO(text, format)                        \
    do {                                                 \
        va_list words_;                                  \
        va_start(words_, format);                        \
        vsnprintf(text, sizeof(text), format, words_);   \
        va_end(words_);                                  \
    } while (0)

int cli_fail(struct cli *cli)
{
    tare_status s = cli->error.status;
    say_line(cli, TERM_RED, cli->error.text[0] ? cli->error.text : tare_status_text(s));
    return s == TARE_INVALID || s == TARE_FORMAT ? CLI_USAGE : CLI_FAILED;
}

int cli_fail_input(struct cli *cli)
{
    int rc = cli_fail(cli);
    return cli->error.status == TARE_NOMEM || cli->error.status == TARE_BUSY ? rc : CLI_USAGE;
}

int cli_usage_error(struct cli *cli, const char *format, ...)
{
    char text[600];
    FORMAT_INTO(text, format);
    say_line(cli, TERM_RED, text);
    fprintf(cli->err, "try: tare %s%s-h\n", cli->command ? cli->command->name : "", cli->command ? " " : "");
    return CLI_USAGE;
}

tare_status cli_name_file(tare_error *err, const char *path)
{
    size_t n = strlen(path);
    bool named = strncmp(err->text, path, n) == 0 && err->text[n] == ':';
    return named ? err->status : error_wrap(err, "%s", path);
}

void cli_warn(struct cli *cli, const char *format, ...)
{
    char text[600], line[620];
    FORMAT_INTO(text, format);
    snprintf(line, sizeof line, "warning: %s", text);
    say_line(cli, TERM_YELLOW, line);
}

void cli_note(struct cli *cli, const char *format, ...)
{
    char text[4300];
    FORMAT_INTO(text, format);
    say_line(cli, TERM_PLAIN, text);
}

void cli_note_last(struct cli *cli, const char *format, ...)
{
    char text[4300];
    FORMAT_INTO(text, format);
    buf_printf(&cli->last, "%s\n", text);
}

/* Long answers of a terminal go through a pager. One that cannot be started is no failure: the answer is then printed
 * as it is. */
static void run_pager(const char *program, int from)
{
    if (dup2(from, STDIN_FILENO) < 0) _exit(127);
    signal(SIGPIPE, SIG_DFL);
    setenv("LESS", "FRXS",
           0); /* quit if it fits one screen, keep colours, leave the text there, cut long lines */
    execl("/bin/sh", "sh", "-c", program, (char *)NULL);
    _exit(127);
}

static void pager_start(struct cli *cli, const char *program)
{
    int ends[2];
    if (!*program || strcmp(program, "cat") == 0) return;
    fflush(cli->out);
    if (pipe2(ends, O_CLOEXEC) < 0) return;
    pid_t pid = fork();
    if (pid == 0) run_pager(program, ends[0]);
    close(ends[0]);
    if (pid > 0 && dup2(ends[1], fileno(cli->out)) >= 0) cli->pager = pid;
    close(ends[1]);
}

static void pager_wait(struct cli *cli)
{
    signal(SIGINT, SIG_IGN); /* for the pager, which owns the terminal now */
    while (waitpid(cli->pager, NULL, 0) < 0 && errno == EINTR) {
    }
    cli->pager = 0;
}

static const char *pager_program(void)
{
    const char *own = secure_getenv("TARE_PAGER"), *common = secure_getenv("PAGER");
    if (own) return own;
    if (common) return common;
    return "if command -v less >/dev/null; then exec less -FRXS; else exec cat; fi";
}

/* The pager starts with the answer, not before: until then the terminal belongs to the progress bar. */
bool cli_write_exact(struct cli *cli, const void *bytes, size_t n)
{
    if (cli->paged && cli->out_term.tty && !cli->answered) pager_start(cli, pager_program());
    cli->answered = true;
    if (fwrite(bytes, 1, n, cli->out) < n && !cli->write_errno) cli->write_errno = errno;
    return !ferror(cli->out);
}

bool cli_write(struct cli *cli, const void *bytes, size_t n)
{
    struct buf shown = BUF_INIT;
    term_show(&shown, &cli->out_term, bytes, n);
    if (shown.failed && !cli->write_errno) cli->write_errno = ENOMEM;
    bool written = cli_write_exact(cli, shown.data, shown.len) && !shown.failed;
    buf_release(&shown);
    return written;
}

int cli_put(struct cli *cli, const struct buf *text)
{
    if (buf_status(text, &cli->error) < 0) return cli_fail(cli);
    cli_write(cli, text->data, text->len);
    return 0;
}

bool cli_cache_dir(char *out, size_t size)
{
    const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
    int n = -1;
    if (cache && cache[0] == '/')
        n = snprintf(out, size, "%s/tare", cache);
    else if (home && home[0] == '/')
        n = snprintf(out, size, "%s/.cache/tare", home);
    return n > 0 && (size_t)n < size;
}

struct ort_places cli_ort_places(const char *chosen)
{
    setenv("ORT_DISABLE_TELEMETRY", "1", 0); /* fails without memory only: then the rest does too */
    return (struct ort_places){.chosen = chosen,
                               .tare_ort_lib = secure_getenv("TARE_ORT_LIB"),
                               .ort_dylib_path = secure_getenv("ORT_DYLIB_PATH"),
                               .virtual_env = secure_getenv("VIRTUAL_ENV"),
                               .path = secure_getenv("PATH"),
                               .home = secure_getenv("HOME")};
}

const char *cli_python(char *room, size_t size)
{
    const char *chosen = secure_getenv("TARE_PYTHON"), *env = secure_getenv("VIRTUAL_ENV");
    if (chosen && *chosen) return chosen;
    if (env && *env && snprintf(room, size, "%s/bin/python3", env) < (int)size && access(room, X_OK) == 0)
        return room;
    return "python3";
}

/* ---- interruptions --------------------------------------------------------------------------- */

volatile sig_atomic_t interrupted;

static const int signals[INTERRUPT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

static void on_interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

void interrupt_catch(struct interrupt *i)
{
    struct sigaction now = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    interrupted = 0;
    for (int k = 0; k < INTERRUPT_SIGNALS; k++) sigaction(signals[k], &now, &i->was[k]);
}

void interrupt_restore(const struct interrupt *i)
{
    for (int k = 0; k < INTERRUPT_SIGNALS; k++) sigaction(signals[k], &i->was[k], NULL);
}

/* ---- options --------------------------------------------------------------------------------- */

static void env_name(char *out, size_t size, const char *command, const char *option)
{
    snprintf(out, size, "TARE_%s%s%s", command, *command ? "_" : "", option);
    for (char *c = out; *c; c++) {
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
        else if (*c == '-')
            *c = '_';
    }
}

/* Names that mean something else already: they set up recording, and tare itself may be recorded. */
static bool is_taken(const char *name)
{
    static const char *const taken[] = {"TARE_TRACE", "TARE_MODE",           "TARE_CLOCK",
                                        "TARE_DISK",  "TARE_MEMORY",         "TARE_WEIGH",
                                        "TARE_PAGER", "TARE_CLOCK_FALLBACK", NULL};
    for (const char *const *t = taken; *t; t++)
        if (strcmp(*t, name) == 0) return true;
    return false;
}

/* TARE_<COMMAND>_<OPTION>, or else TARE_<OPTION>. */
static const char *environment(const struct opt_request *req, const struct opt *row, char *origin,
                               size_t size)
{
    const char *text = NULL;
    if (*req->command) {
        env_name(origin, size, req->command, row->name);
        text = secure_getenv(origin);
    }
    if (text && *text) return text;
    env_name(origin, size, "", row->name);
    return is_taken(origin) ? NULL : secure_getenv(origin);
}

/* The command's section of the project's tare.yaml, else what is set for all. */
static const char *project_file(const struct opt_request *req, const struct opt *row, char *origin,
                                size_t size)
{
    const struct cli *cli = req->layer_ctx;
    const struct setting *s = settings_get(&cli->settings, req->command, row->name);
    if (!s) s = settings_get(&cli->settings, "", row->name);
    if (!s) return NULL;
    snprintf(origin, size, "%s:%u: %s", cli->settings.path, s->line, s->name);
    return s->value;
}

/* The sources of settings below the command line, weakest first. */
static opt_layer_fn *const layers[] = {project_file, environment, NULL};

static const char *nearest_option(const struct opt_request *req, const char *name)
{
    struct suggest near;
    suggest_init(&near, name, strlen(name));
    for (const struct opt *row = req->rows; row->type != OPT_TYPE_END; row++)
        if (row->type != OPT_TYPE_GROUP && !(row->flags & OPT_HIDDEN)) suggest_offer(&near, row->name);
    return suggest_best(&near);
}

static const char *nearest_command(const char *name)
{
    struct suggest near;
    suggest_init(&near, name, strlen(name));
    for (const struct opt_choice *c = command_words(); c->name; c++) suggest_offer(&near, c->name);
    return suggest_best(&near);
}

/* Names in tare.yaml that no command or option has: better said than silently without effect. */
static tare_status check_settings(struct cli *cli, const struct opt_request *req)
{
    for (size_t i = 0; i < cli->settings.items.n; i++) {
        const struct setting *s = &cli->settings.items.items[i];
        const char *near = s->section[0] && !command_find(s->section) ? nearest_command(s->section) : NULL;
        if (s->section[0] && !command_find(s->section))
            return error_set(&cli->error, TARE_INVALID, "%s:%u: tare has no command '%s'%s%s%s",
                             cli->settings.path, s->line, s->section, near ? "; did you mean " : "",
                             near ? near : "", near ? "?" : "");
        if (strcmp(s->section, req->command) != 0 || opt_find(req, s->name, strlen(s->name))) continue;
        const char *best = nearest_option(req, s->name);
        return error_set(&cli->error, TARE_INVALID, "%s:%u: tare %s has no option '%s'%s%s%s",
                         cli->settings.path, s->line, s->section, s->name, best ? "; did you mean " : "",
                         best ? best : "", best ? "?" : "");
    }
    return TARE_OK;
}

static tare_status load_settings(struct cli *cli, const struct opt_request *req)
{
    if (!cli->command || (cli->command->flags & CMD_PLUMBING)) return TARE_OK;
    struct buf strangers = BUF_INIT;
    tare_status s = cli->settings.path ? TARE_OK : settings_find(&cli->settings, &strangers, &cli->error);
    if (strangers.len) cli_warn(cli, "%s belongs to another user: not read", strangers.data);
    buf_release(&strangers);
    return s == TARE_OK ? check_settings(cli, req) : s;
}

/* Completion comes first and ends here: it needs the rows, which only the command itself has, but nothing may be read,
 * set or run for it. A mistake in tare.yaml is told before the words of the command line are read. */
/* ---- files that will be written ---- */

/* The folder that a file would be in; "." for a bare name. */
static bool has_folder(const char *path, char *folder, size_t size)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    int n = slash > path ? (int)(slash - path) : 1;
    snprintf(folder, size, "%.*s", n, slash ? path : ".");
    return stat(folder, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Written beside and renamed, unlike a device or what a link leads to. */
static bool is_file_or_new(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 || S_ISREG(st.st_mode);
}

/* For a file it is the folder that must be writable, since it is written beside its name and renamed. */
int cli_check_written(struct cli *cli, const char *name, const char *path)
{
    struct stat st;
    char folder[4096];
    if (!*path) return cli_usage_error(cli, "--%s: an empty name", name);
    if (strcmp(path, "-") == 0) return 0;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return cli_usage_error(cli, "--%s %s: is a folder; give the name of a file", name, path);
    if (!has_folder(path, folder, sizeof folder))
        return cli_usage_error(cli, "--%s %s: there is no folder %s", name, path, folder);
    if (there && access(path, W_OK) != 0)
        return cli_usage_error(cli, "--%s %s: cannot be overwritten: %s", name, path, strerror(errno));
    if (is_file_or_new(path) && access(folder, W_OK | X_OK) != 0)
        return cli_usage_error(cli, "--%s %s: cannot write to the folder %s: %s", name, path, folder,
                               strerror(errno));
    return 0;
}

static int check_all_written(struct cli *cli, const struct opt *rows)
{
    int rc = 0;
    for (size_t i = 0; !rc && rows[i].type != OPT_TYPE_END; i++)
        if (rows[i].flags & OPT_WRITTEN && cli->given.row[i])
            rc = cli_check_written(cli, rows[i].name, *rows[i].to.string);
    return rc;
}

static const struct opt_choice color_words[] = {
    {"auto", COLOR_AUTO, "on a terminal, or where FORCE_COLOR is set"},
    {"always", COLOR_ALWAYS, "also in a pipe or a file"},
    {"never", COLOR_NEVER, NULL},
    {NULL, 0, NULL},
};

static void choose_color(struct cli *cli)
{
    if (cli->color != COLOR_AUTO) cli->out_term.color = cli->err_term.color = cli->color == COLOR_ALWAYS;
}

int cli_options(struct cli *cli, const struct opt_usage *usage, const struct opt *rows, int *argc,
                char ***argv)
{
    bool no_color = false;
    const struct opt common[] = {
        OPT_ENUM(0, "color", &cli->color, color_words, "colour"),
        OPT_FLAG(0, "no-color", &no_color, "as --color never", .flags = OPT_HIDDEN),
        OPT_FLAG(0, "wide", &cli->wide, "all columns, nothing shortened or wrapped"),
        OPT_FLAG('h', "help", NULL, "print this help and exit", .flags = OPT_NO_ENV),
        OPT_END,
    };
    struct opt all[OPT_ROWS_MAX];
    opt_append(rows ? opt_append(all, rows) : all, common);
    struct opt_request req = {
        cli->command ? cli->command->name : "", usage, all, layers, cli, &cli->given};
    struct buf text = BUF_INIT;
    bool help = false;
    int rc = 0;
    if (cli->complete) {
        opt_complete(cli->complete, &req, *argc - 1, *argv + 1);
        return CLI_DONE;
    }
    cli->given = (struct opt_given){0};
    if (load_settings(cli, &req) < 0) return cli_fail(cli);
    if (opt_read(&req, argc, argv, &help, &cli->error) < 0)
        return cli->error.status == TARE_NOMEM ? cli_fail(cli) : cli_usage_error(cli, "%s", cli->error.text);
    cli->paged = help || (cli->command && (cli->command->flags & CMD_PAGER));
    if (no_color) cli->color = COLOR_NEVER;
    choose_color(cli);
    if (help) {
        opt_help(&text, &req);
        rc = cli_put(cli, &text);
        if (rc == 0) rc = CLI_DONE;
    }
    buf_release(&text);
    return rc ? rc : check_all_written(cli, all);
}

int cli_check_kind(struct cli *cli, const struct opt_usage *usage, const struct opt *rows, unsigned kind)
{
    struct opt_request req = {.usage = usage, .rows = rows, .given = &cli->given};
    if (opt_check_kind(&req, kind, &cli->error) == TARE_OK) return 0;
    return cli_usage_error(cli, "%s", cli->error.text);
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool reader_left(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    return fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

/* The answer is out, and `out` perhaps closed. */
static void say_last(struct cli *cli)
{
    FILE *out = cli->out;
    cli->out = cli->err;
    for (char *line = cli->last.data, *end; cli->last.len && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        say_line(cli, TERM_PLAIN, line);
    }
    cli->out = out;
    buf_release(&cli->last);
}

/* Flush, wait for the pager, and turn a failed write into an exit code: `rc` unless the answer was lost (3).
 * A reader that left early is no failure. */
static int cli_finish(struct cli *cli, int rc)
{
    settings_release(&cli->settings);
    if (rc == CLI_DONE) rc = CLI_GOOD;
    bool paged = cli->pager != 0;
    bool lost = ferror(cli->out) || cli->write_errno;
    errno = 0;
    if (fflush(cli->out) != 0) {
        lost = true;
        if (!cli->write_errno) cli->write_errno = errno;
    }
    bool left = cli->write_errno == EPIPE || (lost && !cli->write_errno && reader_left(fileno(cli->out)));
    if (paged) {
        fclose(cli->out);
        pager_wait(cli);
    }
    say_last(cli);
    if (!lost || left || paged) return rc;
    error_set(&cli->error, TARE_IO, "could not write the answer%s%s", cli->write_errno ? ": " : "",
              cli->write_errno ? strerror(cli->write_errno) : "");
    FILE *out = cli->out;
    cli->out = cli->err; /* nothing more goes there */
    rc = cli_fail(cli);
    cli->out = out;
    return rc;
}

/* ---- tare itself ----------------------------------------------------------------------------- */

static void list_group(struct buf *out, const char *title, unsigned flag)
{
    buf_printf(out, "%s%s:\n", out->len ? "\n" : "", title);
    for (const struct command *c = command_table; c->name; c++)
        if ((c->flags & (CMD_LOOK | CMD_SHARE | CMD_MORE)) == flag && !(c->flags & CMD_PLUMBING))
            buf_printf(out, "  %-11s %s\n", c->name, c->summary);
}

/* By what somebody wants to do. What profiles Python is a command like the others, of which another program does the
 * work. */
static void list_commands(struct buf *out)
{
    list_group(out, "Measure", 0);
    buf_add_str(out, "\nPython programs (they need the Python package of tare: pip install .):\n");
    for (const struct python_word *w = python_words; w->name; w++)
        if (!command_find(w->name)) buf_printf(out, "  %-11s %s\n", w->name, w->help);
    list_group(out, "Look at results", CMD_LOOK);
    list_group(out, "Share", CMD_SHARE);
    list_group(out, "More", CMD_MORE);
}

static int unknown_command(struct cli *cli, const char *name)
{
    const char *best = nearest_command(name);
    if (!best) return cli_usage_error(cli, "unknown command '%.80s'", name);
    return cli_usage_error(cli, "unknown command '%.80s'; did you mean %s?", name, best);
}

static int run_command(struct cli *cli, const char *name, int argc, char **argv)
{
    cli->command = command_find(name);
    if (cli->command) return cli->command->run(cli, argc, argv);
    return is_python_word(name) ? cmd_python(cli, argc, argv) : unknown_command(cli, name);
}

/* `tare` alone prints what `tare --help` does, but exits as wrong usage. `--version` is only another way to write the
 * command, so that there is one answer. */
int cli_top(struct cli *cli, int argc, char **argv)
{
    struct buf list = BUF_INIT;
    bool version = false;
    const struct opt rows[] = {
        OPT_FLAG('V', "version", &version, "print the version and exit", .flags = OPT_NO_ENV),
        OPT_END,
    };
    list_commands(&list);
    struct opt_usage usage = {
        .synopsis = "tare <command> [options] [arguments]",
        .about = "tare benchmarks, profiles and watches machine-learning workloads. Its own cost is measured, shown "
                 "beside each result and subtracted from call trees.",
        .list = list.data,
        .tail = "'tare COMMAND -h' explains a command. Exit codes: 0 good, 1 a finding you asked\n"
                "to be told about, 2 wrong usage or bad input, 3 could not measure.",
        .max_args = OPT_ANY,
        .words = command_words(),
        .stop_at_arg = true,
    };
    char *bare[] = {argc > 0 ? argv[0] : NULL, NULL, NULL}, help[] = "--help";
    bool alone = false;
    int rc = cli_options(cli, &usage, rows, &argc, &argv);
    if (rc == 0 && !version && argc == 0) { /* tare alone: the help, but as an unfinished command */
        alone = true;
        bare[1] = help;
        argc = 2;
        argv = bare;
        rc = cli_options(cli, &usage, rows, &argc, &argv);
    }
    buf_release(&list);
    if (alone) return CLI_USAGE;
    if (rc) return rc;
    if (!version) return run_command(cli, argv[0], argc, argv);
    char name[] = "version", *words[] = {name, NULL};
    return run_command(cli, name, 1, words);
}

int cli_main(struct cli *cli, int argc, char **argv)
{
    return cli_finish(cli, cli_top(cli, argc, argv));
}
