/* SPDX-License-Identifier: MIT
 * watch_places.c - see watch_places.h. */
#include "watch/watch_places.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch/watch.h"
#include "core/file.h"

const char *places_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *places_subject(const char *program)
{
    const char *file = places_file(program);
    return *file ? file : program;
}

/* ---- as the program is told ---- */

static void add_spelled(struct watch_places *p, const char *text)
{
    size_t n = strlen(p->named);
    for (const char *c = text; *c && n + 3 < sizeof p->named; c++) {
        if (*c == '%') p->named[n++] = '%';
        p->named[n++] = *c;
    }
    p->named[n] = 0;
}

/* The program may change its folder, and libtare reads % as the start of something. */
static bool name_for_program(struct watch_places *p)
{
    char here[PATH_MAX] = "";
    if (p->trace[0] != '/' && !getcwd(here, sizeof here)) return false;
    p->named[0] = 0;
    add_spelled(p, here);
    if (here[0]) add_spelled(p, "/");
    add_spelled(p, p->trace);
    return strlen(p->named) + 3 < sizeof p->named;
}

/* ---- choosing ---- */

/* What a person set, not a `tare run` around this one: that trace is its own. */
static const char *trace_from_outside(void)
{
    const char *set = getenv("TARE_TRACE"), *nested = getenv(WATCH_CHILD_MARK);
    return set && *set && !strchr(set, '%') && !nested ? set : NULL;
}

static int take_name(struct watch_places *p, const struct watch_options *a, const struct run *run,
                     tare_error *err)
{
    struct run_file f = {a->history.output_dir, run->kind, places_subject(a->command[0]), run->created};
    if (run_reserve(&f, ".tare", p->stem, sizeof p->stem, err) != TARE_OK) {
        p->stem[0] = 0;
        return 0;
    }
    return snprintf(p->trace, sizeof p->trace, "%s.tare", p->stem);
}

/* The document is written last, over whatever is there. */
static int check(struct cli *cli, const struct watch_options *a, const struct watch_places *p)
{
    if (a->output && !*a->output) return cli_usage_error(cli, "-o: an empty name");
    if (a->output && strcmp(a->output, p->trace) == 0)
        return cli_usage_error(
            cli,
            "%s: the run document and the trace cannot be one file (-o names the document, "
            "--trace the trace)",
            a->output);
    return 0;
}

int places_choose(struct watch_places *p, struct cli *cli, const struct watch_options *a,
                  const struct run *run)
{
    const char *named = a->trace ? a->trace : a->output ? NULL : trace_from_outside();
    const char *dot = a->output ? strrchr(places_file(a->output), '.') : NULL;
    tare_error err = TARE_ERROR_INIT;
    int n = 0;
    *p = (struct watch_places){.beside = !named};
    if (named)
        n = snprintf(p->trace, sizeof p->trace, "%s", named);
    else if (a->output)
        n = snprintf(p->trace, sizeof p->trace, "%.*s.tare",
                     dot ? (int)(dot - a->output) : (int)strlen(a->output), a->output);
    else if (!a->no_save)
        n = take_name(p, a, run, &err);
    if (err.status != TARE_OK) cli_warn(cli, "no trace: %s", err.text);
    if (n >= (int)sizeof p->trace || (p->trace[0] && !name_for_program(p))) p->trace[0] = 0;
    return check(cli, a, p);
}

void places_leave(const struct watch_places *p)
{
    struct stat st;
    if (p->stem[0] && p->trace[0] && stat(p->trace, &st) == 0 && st.st_size == 0) unlink(p->trace);
}

/* ---- the document ---- */

static tare_status save_as(const struct run *run, const char *path, unsigned flags, tare_error *err)
{
    struct buf text = BUF_INIT;
    tare_status s = run_write(run, &text, err);
    if (s == TARE_OK) s = file_write_atomic(path, text.data, text.len, flags, err);
    buf_release(&text);
    return s;
}

tare_status places_save(const struct watch_places *p, const struct watch_options *a, const struct run *run,
                        char path[PATH_MAX], tare_error *err)
{
    tare_error taken = TARE_ERROR_INIT;
    path[0] = 0;
    if (a->output) return save_as(run, a->output, 0, err);
    if (a->no_save) return TARE_OK;
    int n = p->stem[0] ? snprintf(path, PATH_MAX, "%s.json", p->stem) : PATH_MAX;
    if (n < PATH_MAX && save_as(run, path, FILE_NO_REPLACE, &taken) == TARE_OK) return TARE_OK;
    return run_save(run, a->history.output_dir, path, PATH_MAX, err); /* somebody has the name meanwhile */
}
