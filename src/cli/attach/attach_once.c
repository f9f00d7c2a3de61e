/* SPDX-License-Identifier: MIT
 * attach_once.c - a snapshot of a process for people, as a traceback read upside down, and for programs. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/attach/attach.h"
#include "core/fmt.h"
#include "symbol/symbol.h"

static const char *const doings[] = {
#define X(name, text) text,
    STACK_DOING_MAP(X)
#undef X
};

/* "waits for I/O: read, pipe" */
static void put_doing(struct buf *b, const struct shot_thread *t)
{
    const struct thread_look *l = &t->look;
    static const char *const words[STACK_DOINGS] = {
        [STACK_UNKNOWN] = "state unknown", [STACK_RUNS] = "runs", [STACK_WAITS] = "waits",
        [STACK_WAITS_LOCK] = "waits for a lock", [STACK_WAITS_GIL] = "waits for the GIL", [STACK_SLEEPS] = "sleeps",
        [STACK_WAITS_IO] = "waits for I/O", [STACK_WAITS_NETWORK] = "waits for the network",
        [STACK_WAITS_EVENTS] = "waits for events", [STACK_WAITS_CHILD] = "waits for a child",
        [STACK_WAITS_SIGNAL] = "waits for a signal", [STACK_WAITS_DISK] = "waits for a disk",
        [STACK_STOPPED] = "stopped", [STACK_ENDED] = "ended"};
    buf_add_str(b, words[l->doing]);
    const char *call = thread_call_name(l->call);
    if (*call) buf_printf(b, ": %s", call);
    if (t->target[0]) buf_printf(b, ", %s", t->target);
}

static const char *doubt_word(unsigned doubt)
{
    if (doubt & PY_BROKEN) return "a frame could not be read: the thread moved on";
    if (doubt & (PY_MOVED | PY_OUTSIDE)) return "the thread moved on while it was read";
    return doubt & PY_CUT ? "deeper frames are left out" : NULL;
}

/* ---- names of native frames ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* One frame of code may be several functions, inlined into each other. */
static tare_status name_thread(struct snapshot *s, struct shot_thread *t, struct symbols *symbols, tare_error *err)
{
    VEC(struct shot_frame) out = VEC_INIT;
    tare_status st = TARE_OK;
    for (size_t i = 0; st == TARE_OK && i < t->n; i++) {
        struct shot_frame f = t->frames[i];
        const struct symbol_place *p = NULL;
        if (f.native && f.file) p = symbols_find(symbols, f.file, f.build_id, f.offset);
        for (size_t k = 0; st == TARE_OK && p && k < p->n; k++) {
            f.name = arena_str(&s->arena, p->frames[k].function);
            f.source = arena_str(&s->arena, p->frames[k].file);
            f.line = p->frames[k].line;
            st = vec_push(&out, f, err);
        }
        if (!p || !p->n) st = vec_push(&out, f, err);
    }
    struct shot_frame *kept = st == TARE_OK ? arena_new(&s->arena, out.n + 1, sizeof *kept) : NULL;
    if (kept && out.n) memcpy(kept, out.items, out.n * sizeof *kept);
    if (kept) {
        t->frames = kept;
        t->n = out.n;
    }
    vec_release(&out);
    return st == TARE_OK && s->arena.failed ? error_nomem(err, "names of functions") : st;
}

tare_status attach_name_frames(struct snapshot *s, tare_error *err)
{
    struct symbols *symbols = symbols_new(NULL, err);
    tare_status st = symbols ? TARE_OK : TARE_NOMEM;
    for (size_t i = 0; st == TARE_OK && i < s->threads.n; i++)
        if (s->threads.items[i].native) st = name_thread(s, &s->threads.items[i], symbols, err);
    symbols_free(symbols);
    return st;
}

/* ---- in words ---- */

static void say_native(struct answer *a, const struct shot_frame *f)
{
    char where[32];
    snprintf(where, sizeof where, "0x%" PRIx64, f->offset);
    answer_bool(a, "native", true, NULL);
    if (f->name)
        answer_str(a, "name", f->name, "    %s", f->name);
    else
        answer_null(a, "name", "    ?");
    answer_str(a, "address", where, f->name ? NULL : " %s", where);
    if (f->file)
        answer_str(a, "module", f->file, "  [%s]", base_name(f->file));
    else
        answer_null(a, "module", "  [made at run time]");
    if (f->source)
        answer_str(a, "file", f->source, "  %s", f->source);
    else
        answer_null(a, "file", NULL);
    if (f->source && f->line)
        answer_uint(a, "line", f->line, ":%" PRIu32 "\n", f->line);
    else
        answer_null(a, "line", "\n");
}

static void say_locals(struct answer *a, const struct shot_frame *f)
{
    if (!f->n_locals) return;
    answer_list(a, "locals");
    for (size_t i = 0; i < f->n_locals; i++) {
        answer_object_flat(a, NULL);
        answer_str(a, "name", f->locals[i].name, "        %s = ", f->locals[i].name);
        answer_str(a, "value", f->locals[i].value, "%s\n", f->locals[i].value);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void say_frames(struct answer *a, const struct shot_thread *t)
{
    answer_list(a, "frames");
    for (size_t i = 0; i < t->n; i++) {
        const struct shot_frame *f = &t->frames[i];
        answer_object_flat(a, NULL);
        if (f->native) {
            say_native(a, f);
            answer_object_end(a);
            continue;
        }
        answer_str(a, "name", f->name, "    %s", f->name);
        answer_str(a, "file", f->file, "  %s", f->file);
        if (f->line)
            answer_uint(a, "line", f->line, ":%" PRIu32 "\n", f->line);
        else
            answer_null(a, "line", "\n");
        say_locals(a, f);
        answer_object_end(a);
    }
    answer_list_end(a);
}

static void say_call(struct answer *a, const struct shot_thread *t)
{
    const char *call = thread_call_name(t->look.call);
    if (*call)
        answer_str(a, "call", call, NULL);
    else
        answer_null(a, "call", NULL);
    if (t->target[0])
        answer_str(a, "target", t->target, NULL);
    else
        answer_null(a, "target", NULL);
}

static void say_thread(struct answer *a, const struct shot_thread *t, bool gil_known)
{
    struct buf doing = BUF_INIT;
    const char *doubt = doubt_word(t->doubt);
    put_doing(&doing, t);
    answer_object(a, NULL);
    if (t->tid)
        answer_int(a, "tid", t->tid, "\nthread %d", (int)t->tid);
    else
        answer_null(a, "tid", "\nthread");
    answer_str(a, "name", t->look.name, " %s", t->look.name);
    answer_str(a, "state", doings[t->look.doing], "  %s", doing.data);
    say_call(a, t);
    answer_bool(a, "python", t->python, NULL);
    if (gil_known && t->python)
        answer_bool(a, "holds_gil", t->holds_gil, "%s", t->holds_gil ? ", holds the GIL" : "");
    else
        answer_null(a, "holds_gil", NULL);
    answer_bool(a, "collects_garbage", t->collects, "%s\n", t->collects ? ", collects garbage" : "");
    if (doubt)
        answer_str(a, "doubt", doubt, "    (%s)\n", doubt);
    else
        answer_null(a, "doubt", NULL);
    say_frames(a, t);
    if (t->native && t->end != NATIVE_WHOLE)
        answer_str(a, "cut", native_end_words[t->end], "    (not further: %s)\n", native_end_words[t->end]);
    else
        answer_null(a, "cut", NULL);
    if (!t->python && !t->native) answer_say(a, "    (native code: no frames of Python)\n");
    if (t->python && !t->n) answer_say(a, "    (no Python runs in it)\n");
    answer_object_end(a);
    buf_release(&doing);
}

static void say_python(struct answer *a, const struct snapshot *s, const char *why)
{
    char version[32];
    if (!s->python) {
        answer_null(a, "python", "no frames of Python: ");
        answer_str(a, "no_python", why, "%s\n", why);
        return;
    }
    snprintf(version, sizeof version, s->version & 0xffff ? "3.%u.%u" : "3.%u", s->version >> 16 & 255,
             s->version >> 8 & 255);
    answer_object_flat(a, "python");
    answer_str(a, "version", version, "Python %s", version);
    answer_str(a, "file", s->file, " (%s)\n", s->file);
    answer_object_end(a);
    answer_null(a, "no_python", NULL);
}

void attach_say_once(struct answer *a, pid_t pid, const struct snapshot *s, const char *why)
{
    answer_str(a, "schema", "tare.threads/1", NULL);
    answer_int(a, "pid", pid, "process %d, ", (int)pid);
    say_python(a, s, why);
    answer_list(a, "threads");
    for (size_t i = 0; i < s->threads.n; i++) say_thread(a, &s->threads.items[i], s->gil_known);
    answer_list_end(a);
}
