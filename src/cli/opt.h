/* SPDX-License-Identifier: MIT
 * opt.h - options are data. A command states its options once, as an array of typed rows that point at its
 * own variables; from those rows tare parses, validates, prints help, completes and reads the environment.
 * Nothing here prints, exits or reads the environment: that is cli.c, through cli_options().
 *
 *     struct opt rows[] = {
 *         OPT_UINT('n', "runs", &runs, "measured runs"),
 *         OPT_ENUM('f', "format", &format, formats, "how to write it"),
 *         OPT_END,
 *     };
 *
 * The value a variable has before parsing is its default, and help says so. */
#ifndef CLI_OPT_H
#define CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/clock.h"

enum opt_type {
    OPT_TYPE_END,
    OPT_TYPE_GROUP, /* a heading in the help */
    OPT_TYPE_FLAG,
    OPT_TYPE_STRING,
    OPT_TYPE_ENUM,
    OPT_TYPE_INT,
    OPT_TYPE_UINT,
    OPT_TYPE_DURATION,
    OPT_TYPE_DOUBLE,
    OPT_TYPE_LIST,
    OPT_TYPE_CALLBACK,
};

enum opt_flags {
    OPT_HIDDEN = 1,     /* works, but neither in the help nor in completion */
    OPT_NO_ENV = 2,     /* the command line only */
    OPT_FILE = 4,       /* completes with file names */
    OPT_DIR = 8,        /* completes with folder names */
    OPT_NO_DEFAULT = 16, /* help does not print the default */
    OPT_WRITTEN = 32     /* a file that the command writes: looked at by cli_options(), before anything is done */
};

/* The words an OPT_ENUM takes; the array ends with {NULL}. */
struct opt_choice {
    const char *name;
    int value;
    const char *help; /* shown by completion; may be NULL */
};

/* What an OPT_LIST collects. Start with OPT_LIST_INIT, release with opt_list_release(). */
struct opt_list {
    char **items;
    size_t n;
    bool from_layer; /* the items came from the environment: the command line replaces them */
};
/* clang-format off */
#define OPT_LIST_INIT {0}
/* clang-format on */
void opt_list_release(struct opt_list *list);
/* The words of "a,b,c" in place of what was there. */
tare_status opt_list_split(struct opt_list *list, const char *text, tare_error *err);

/* Read `text` into *ctx. The error text is the cause alone ("not a target"): the option is named for you. */
typedef tare_status opt_callback_fn(void *ctx, const char *text, tare_error *err);

struct opt {
    enum opt_type type;
    char letter;      /* 'n' for -n; 0: none */
    const char *name; /* "runs" for --runs; never NULL */
    union {
        bool *flag;
        const char **string; /* points into argv or the environment: not owned */
        int *choice;
        int64_t *sint;
        uint64_t *uint;
        struct duration *duration;
        double *real;
        struct opt_list *list;
        void *ctx;
    } to;
    const char *help;
    const char *arg; /* placeholder in the help: "<file>"; NULL: one that fits the type */
    const struct opt_choice *choices;
    opt_callback_fn *callback;
    /* The value may be left out: is the word that follows one? --name=value always is. Without one the text is "".
     * NULL: the value must be there. */
    bool (*takes)(const char *word);
    int64_t lo; /* range of INT, UINT, DURATION (ns) */
    uint64_t hi;
    double min, max; /* range of DOUBLE */
    unsigned flags;  /* enum opt_flags */
    /* What it goes together with: held by opt_read() and, for only_for, by opt_check_kind(). Several names of options
     * are separated by blanks. */
    unsigned only_for;    /* kinds of the usage; 0: all of them */
    const char *hint;     /* said in brackets when it does not fit: "texts have --length" */
    const char *needs;    /* makes sense only with this one, or one of these two */
    const char *not_with; /* contradicts these */
    const char *required; /* must be given; the question that it answers */
};

/* What a command may be asked to work on, where its options differ by that. The list ends with {0}. */
struct opt_kind {
    unsigned bit;
    const char *many, *one; /* "models", "this is a model" */
};

/* clang-format off */
#define OPT_ROW_(t, c, n, member, ptr, h) \
    .type = OPT_TYPE_##t, .letter = (c), .name = (n), .to.member = (ptr), .help = (h)
#define OPT_END {.type = OPT_TYPE_END}
#define OPT_GROUP(heading) {.type = OPT_TYPE_GROUP, .name = "", .help = (heading)}
/* Behind the text of the help more members may follow: .flags, .only_for, .needs and so on. */
#define OPT_FLAG(c, n, ptr, h, ...) {OPT_ROW_(FLAG, c, n, flag, ptr, h), ##__VA_ARGS__} /* --name, --no-name */
#define OPT_STRING(c, n, ptr, a, h, ...) {OPT_ROW_(STRING, c, n, string, ptr, h), .arg = (a), ##__VA_ARGS__}
#define OPT_PATH(c, n, ptr, a, h, ...) \
    {OPT_ROW_(STRING, c, n, string, ptr, h), .arg = (a), .flags = OPT_FILE, ##__VA_ARGS__}
#define OPT_OUT(c, n, ptr, a, h, ...) \
    {OPT_ROW_(STRING, c, n, string, ptr, h), .arg = (a), .flags = OPT_FILE | OPT_WRITTEN, ##__VA_ARGS__}
#define OPT_ENUM(c, n, ptr, words, h, ...) \
    {OPT_ROW_(ENUM, c, n, choice, ptr, h), .choices = (words), ##__VA_ARGS__}
#define OPT_INT_IN(c, n, ptr, low, high, h, ...) \
    {OPT_ROW_(INT, c, n, sint, ptr, h), .lo = (low), .hi = (uint64_t)(high), ##__VA_ARGS__}
#define OPT_UINT(c, n, ptr, h) OPT_UINT_IN(c, n, ptr, 0, UINT64_MAX, h)
#define OPT_UINT_IN(c, n, ptr, low, high, h, ...) \
    {OPT_ROW_(UINT, c, n, uint, ptr, h), .lo = (low), .hi = (high), ##__VA_ARGS__}
#define OPT_TIME_IN(c, n, ptr, low, high, h, ...) \
    {OPT_ROW_(DURATION, c, n, duration, ptr, h), .lo = (low), .hi = (high), ##__VA_ARGS__}
#define OPT_DOUBLE(c, n, ptr, low, high, h, ...) \
    {OPT_ROW_(DOUBLE, c, n, real, ptr, h), .min = (low), .max = (high), ##__VA_ARGS__}
#define OPT_LIST(c, n, ptr, a, h, ...) /* may be repeated */ \
    {OPT_ROW_(LIST, c, n, list, ptr, h), .arg = (a), ##__VA_ARGS__}
#define OPT_CALLBACK(c, n, fn, context, a, h, ...) \
    {OPT_ROW_(CALLBACK, c, n, ctx, context, h), .callback = (fn), .arg = (a), ##__VA_ARGS__}
/* clang-format on */

/* Add `rows`, up to OPT_END, at `to`; returns where the next ones go. For tables that are put together. */
struct opt *opt_append(struct opt *to, const struct opt *rows);

/* What stands around the options. */
enum opt_args { OPT_ARGS_NONE, OPT_ARGS_FILES, OPT_ARGS_DIRS };
#define OPT_ANY UINT32_MAX

struct opt_usage {
    const char *synopsis;           /* "tare report [options] <trace>"; several lines allowed */
    const char *about;              /* what it does, in sentences; wrapped by the help */
    const char *list;               /* printed as it is before the options; may be NULL */
    const char *tail;               /* printed as it is after the options: examples; may be NULL */
    uint32_t min_args, max_args;    /* how many arguments that are not options */
    enum opt_args args;             /* what they complete with */
    const struct opt_choice *words; /* the first completes with these, not enforced; may be NULL */
    bool stop_at_arg;               /* options end at the first argument (it begins another command line) */
    const struct opt_kind *kinds;   /* NULL: all options are for all */
};

/* A weaker source of settings than the command line. Returns the text set for `row` of `command`, or NULL,
 * and names where it stands in `origin` ("TARE_BENCH_RUNS"). */
struct opt_request;
typedef const char *opt_layer_fn(const struct opt_request *req, const struct opt *row, char *origin,
                                 size_t size);

/* Which rows of the command were set, by the command line or a layer; which by the command line itself. */
#define OPT_ROWS_MAX 128
struct opt_given {
    bool row[OPT_ROWS_MAX], said[OPT_ROWS_MAX];
};

struct opt_request {
    const char *command; /* "bench"; "" for tare itself */
    const struct opt_usage *usage;
    const struct opt *rows;      /* the command's own, then the common ones */
    opt_layer_fn *const *layers; /* weakest first, NULL-terminated; may be NULL */
    void *layer_ctx;
    struct opt_given *given; /* filled; NULL: what goes together is not looked at */
};

/* Apply layers, then the command line argv[1..]. On success *argc and *argv become the arguments that are not
 * options, in their order, without argv[0]. *help: -h was seen; nothing was applied. Never allocates but for
 * OPT_LIST. On failure err is one sentence that names the option, the cause and the nearest thing meant. */
tare_status opt_read(const struct opt_request *req, int *argc, char ***argv, bool *help, tare_error *err);

/* Once it is known which kind the command works on: no option may be for other kinds alone. After opt_read(). */
tare_status opt_check_kind(const struct opt_request *req, unsigned kind, tare_error *err);

/* Is this a yes or a no, as flags are set in the environment? */
bool opt_is_switch(const char *text, bool *on);

/* Set one row from text as if `--name=text` had been given. */
tare_status opt_set(const struct opt *row, const char *text, tare_error *err);

/* The row of --name, `len` bytes long, or of -letter; NULL if there is none. */
const struct opt *opt_find(const struct opt_request *req, const char *name, size_t len);
const struct opt *opt_find_letter(const struct opt_request *req, char letter);
const char *opt_default_arg(const struct opt *row); /* "<n>"; "" for flags */

/* help.c: the text of -h, 80 columns wide. Printed with the defaults the variables hold now. */
void opt_help(struct buf *out, const struct opt_request *req);
/* `text` folded at blanks; the first line goes on at `column`, later ones are indented by `indent`. */
void opt_wrap(struct buf *out, const char *text, unsigned column, unsigned indent);
#define OPT_HELP_WIDTH 80

/* cmd_complete.c: what may follow. `words` are the command's own, the last one being typed (may be "").
 * Writes "word TAB description" lines; ":files" or ":dirs" asks the shell to add names. */
void opt_complete(struct buf *out, const struct opt_request *req, int n, char **words);

#endif
