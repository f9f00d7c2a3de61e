/* SPDX-License-Identifier: MIT
 * watch_places.c - where the trace and the document of a watched program go, see watch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/str.h"
#include "watch/watch.h"

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
    const char *set = secure_getenv("TARE_TRACE"), *nested = secure_getenv(WATCH_CHILD_MARK);
    return set && *set && !strchr(set, '%') && !nested ? set : NULL;
}

/* Reserve a new name for both; without one the program runs untraced. */
static int take_name(struct watch_places *p, const struct watch_options *o, const struct run *run)
{
    tare_error why = TARE_ERROR_INIT;
    struct run_file f = {o->output_dir, run->kind, run->subject.name, run->created};
    if (run_reserve(&f, ".tare", p->stem, sizeof p->stem, &why) == TARE_OK)
        return snprintf(p->trace, sizeof p->trace, "%s.tare", p->stem);
    p->stem[0] = 0;
    watch_say(o, WATCH_WARNING, "no trace: %s", why.text);
    return 0;
}

/* TARE_TRACE from outside counts only where neither file is named: whoever names the document wants its trace beside
 * it. */
tare_status places_choose(struct watch_places *p, const struct watch_options *o, const struct run *run,
                          tare_error *err)
{
    const char *named = o->trace;
    const char *dot = o->output ? strrchr(str_file_name(o->output), '.') : NULL;
    int n = 0;
    if (!named && !o->output) named = trace_from_outside();
    *p = (struct watch_places){.beside = !named};
    if (named)
        n = snprintf(p->trace, sizeof p->trace, "%s", named);
    else if (o->output)
        n = snprintf(p->trace, sizeof p->trace, "%.*s.tare",
                     (int)(dot ? (size_t)(dot - o->output) : strlen(o->output)), o->output);
    else if (!o->no_save)
        n = take_name(p, o, run);
    if (n >= (int)sizeof p->trace || (p->trace[0] && !name_for_program(p))) p->trace[0] = 0;
    if (!o->output || strcmp(o->output, p->trace) != 0) return TARE_OK;
    return error_set(
        err, TARE_INVALID,
        "%s: the run document and the trace cannot be one file (-o names the document, --trace the "
        "trace)",
        o->output); /* the document is written last, over whatever is there */
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

tare_status places_save(const struct watch_places *p, const struct watch_options *o, const struct run *run,
                        char path[PATH_MAX], tare_error *err)
{
    tare_error taken = TARE_ERROR_INIT;
    path[0] = 0;
    if (o->output) return save_as(run, o->output, FILE_SHARED, err);
    if (o->no_save) return TARE_OK;
    int n = p->stem[0] ? snprintf(path, PATH_MAX, "%s.json", p->stem) : PATH_MAX;
    if (n < PATH_MAX && save_as(run, path, FILE_NO_REPLACE, &taken) == TARE_OK) return TARE_OK;
    return run_save(run, o->output_dir, path, PATH_MAX, err); /* somebody has the name meanwhile */
}
