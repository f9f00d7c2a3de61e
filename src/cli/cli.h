/* SPDX-License-Identifier: MIT
 * cli.h - what every command gets: where to write, how to speak, how to fail. A command is
 *
 *     int cmd_weigh(struct cli *cli, int argc, char **argv)
 *     {
 *         bool json = false;
 *         const struct opt rows[] = {OPT_JSON(&json), OPT_END};
 *         int rc = cli_options(cli, &usage, rows, &argc, &argv);   // first of all, before any other work
 *         if (rc) return rc;
 *         if (weigh(argv[0], &cli->error) < 0) return cli_fail(cli);
 *         cli_warn(cli, "...");                                    // stderr is the conversation,
 *         return cli_put(cli, &text);                              // stdout the answer
 *     }
 *
 * Commands never call exit(), never write by another way than cli_put() and cli_write(), and need not check
 * their writes: a full disk or a closed pipe is found once, when the command has returned. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/opt.h"
#include "cli/settings.h"
#include "cli/term.h"
#include "core/error.h"
#include "subject/ort_find.h"

struct command;

enum cli_exit {
    CLI_DONE = -1, /* inside tare only: help or completion was given; the program exits with 0 */
    CLI_GOOD = 0,
    CLI_FINDING = 1, /* what the user asked to be told about: a target missed, a regression */
    CLI_USAGE = 2,   /* wrong usage or bad input */
    CLI_FAILED = 3,  /* could not measure, read or write */
};

enum cli_color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER }; /* auto: as term_detect() finds */

struct cli {
    const struct command *command; /* the one running; NULL for tare itself */
    FILE *out, *err;
    struct term out_term, err_term;
    tare_error error;         /* for cli_fail() */
    int color;                /* enum cli_color */
    bool wide;                /* tables and sentences as long as they are, whatever the terminal */
    bool ignored_sigpipe;     /* as whoever started tare had it: for the program of `tare run` */
    bool paged;               /* the answer may be long */
    bool answered;            /* something was written to `out` */
    int write_errno;          /* why writing the answer failed first; 0 */
    pid_t pager;              /* its process; 0: none */
    struct buf last;          /* notes for the end, a line each */
    struct settings settings; /* the project's tare.yaml; empty: none */
    struct opt_given given;   /* which options the last cli_options() saw */
    struct buf *complete;     /* not NULL: cli_options() answers a completion here instead of parsing */
};

/* Set up for the standard streams. `cli` needs no release but cli_finish(). */
void cli_init(struct cli *cli);

/* Parse the command line into the rows (flag > environment > tare.yaml > default), print help, answer completion.
 * 0: go on, argc/argv are the arguments that are not options. Anything else: return it at once. */
int cli_options(struct cli *cli, const struct opt_usage *usage, const struct opt *rows, int *argc,
                char ***argv);

/* What the command works on is known now, one of the usage's kinds: 0, or the exit code after the user was told which
 * option is not for it. With the same rows, after cli_options(). */
/* Can this file of option --name be written? 0, or the exit code after the user was told why not. */
int cli_check_written(struct cli *cli, const char *name, const char *path);
int cli_check_kind(struct cli *cli, const struct opt_usage *usage, const struct opt *rows, unsigned kind);

/* `--json` as every command that answers spells it. */
#define OPT_JSON_HELP "print the answer as JSON"
#define OPT_JSON(ptr) OPT_FLAG(0, "json", ptr, OPT_JSON_HELP)

/* Say cli->error as "tare COMMAND: text" and return the exit code that fits it: bad input 2, else 3. */
int cli_fail(struct cli *cli);
/* The same of a file that the user named: one that is missing, unreadable or something else is bad input. */
int cli_fail_input(struct cli *cli);
/* Say what is wrong with the usage, point to -h, return CLI_USAGE. */
int cli_usage_error(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The error with the file in front, unless it begins with it already: some who report know the file, some do not. */
tare_status cli_name_file(tare_error *err, const char *path);
void cli_warn(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Something worth knowing that is no warning: where a file went, what was chosen. */
void cli_note(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same, when the whole answer is out and its pager has ended. */
void cli_note_last(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write bytes of the answer; the first ones start the pager. False: writing failed, more is not worth it. */
bool cli_write(struct cli *cli, const void *bytes, size_t n); /* text, cleaned by term_show() */
bool cli_write_exact(struct cli *cli, const void *bytes, size_t n);

/* Write a finished text to the answer. A failed buf becomes an out-of-memory failure: 0, or an exit code. */
int cli_put(struct cli *cli, const struct buf *text);

/* Where tare keeps what it can make again: $XDG_CACHE_HOME/tare, or ~/.cache/tare. False: there is no such place. */
bool cli_cache_dir(char *out, size_t size);

/* Where the environment says that ONNX Runtime is; `chosen`: --ort, NULL: not given. Whoever asks is about to load it.
 * Runtimes from 1.31 on keep an identity of the device and a database of events in the user's cache folder, and a
 * session file in TMPDIR, from the moment they are loaded: earlier than any call could forbid it. A measuring tool
 * leaves nothing behind that nobody asked for, so ORT_DISABLE_TELEMETRY is set here, unless the user set it. Call it
 * while there is one thread only. */
struct ort_places cli_ort_places(const char *chosen);

/* TARE_PYTHON, else that of the active virtual environment (its path made in `room`), else the one on PATH. */
const char *cli_python(char *room, size_t size);

/* SIGINT, SIGTERM and SIGHUP while something long is under way: the first of them asks for an orderly end with what is
 * there already, a second one ends tare at once. */
enum { INTERRUPT_SIGNALS = 3 };
struct interrupt { /* what was set before */
    struct sigaction was[INTERRUPT_SIGNALS];
};
extern volatile sig_atomic_t interrupted; /* by the first signal since interrupt_catch() */
void interrupt_catch(struct interrupt *i);
void interrupt_restore(const struct interrupt *i);

/* The whole program but exit(): cli_top() finds the command and runs it, cli_main() also finishes. */
int cli_top(struct cli *cli, int argc, char **argv);
int cli_main(struct cli *cli, int argc, char **argv);

#endif
