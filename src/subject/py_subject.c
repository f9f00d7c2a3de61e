/* SPDX-License-Identifier: MIT
 * py_subject.c - a Python function as a subject: one Python process imports it, makes the inputs and runs
 * it, each lane in a thread of its own, and tells times by its own clock. Short runs are asked for some at
 * a time, so that they follow one another as they would in a program. A process that a run takes along (the kernel
 * kills what is out of memory) is replaced before the next case. Never runs Python in this process. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mem.h"
#include "subject/peer.h"
#include "subject/py_wire.h"
#include "subject/subject.h"

#define GROUP_NS INT64_C(2000000)     /* runs for so long are asked for at once */
#define GRACE_NS UINT64_C(1000000000) /* an interruption waits so long for the runs under way */

struct py_subject {
    struct subject base;
    struct peer peer;
    struct peer_patience patience;
    struct py_hello hello;
    struct py_options o; /* its texts are copies in `texts` */
    struct arena texts;
    uint32_t last_id;
    unsigned launch;           /* number of the process: how often one was started */
    struct process_state seen; /* for when it was interrupted */
    char failed[400];          /* why it cannot go on; under peer.lock */
};

struct py_lane {
    bool begun;
    uint64_t times[PY_TIMES_MAX], switches;
    size_t n, at;
    size_t slowest; /* the switches are laid to its charge */
};

struct py_instance {
    struct instance base;
    struct py_subject *subject;
    uint32_t id;
    unsigned launch; /* in which it was prepared */
    int64_t units;
    uint64_t per_sample; /* calls */
    bool ungrouped;
    unsigned workers;
    struct py_lane *lanes;
};

/* ---- what Python says: see py_wire.h ---- */

/* A reply that says why not. */
static tare_status refusal(const struct py_reply *head, const char *text, size_t n, tare_error *err)
{
    size_t len = head->n < n ? head->n : n;
    tare_status s = head->status < TARE_BUSY ? TARE_DENIED : (tare_status)head->status;
    return error_set(err, s, "%.*s", (int)strnlen(text, len), text);
}

tare_status py_reply_read(const void *bytes, size_t n, struct py_reply *out, uint64_t *numbers,
                          tare_error *err)
{
    const char *rest = (const char *)bytes + sizeof *out;
    if (n < sizeof *out) return error_set(err, TARE_FORMAT, "a reply of %zu bytes", n);
    memcpy(out, bytes, sizeof *out);
    n -= sizeof *out;
    if (out->status < 0) return refusal(out, rest, n, err);
    if (out->n > PY_TIMES_MAX || out->n * sizeof *numbers != n)
        return error_set(err, TARE_FORMAT, "a reply of %zu bytes for %u numbers", n, out->n);
    memcpy(numbers, rest, n);
    return TARE_OK;
}

/* The version of the protocol is checked before anything else is read: the rest may have another layout.
 * Texts without an end are refused, since the other side may be any program. */
tare_status py_hello_read(const void *bytes, size_t n, struct py_hello *out, tare_error *err)
{
    struct py_reply head;
    const char *at = bytes, *end = at + n;
    char *const to[] = {out->name, out->path, out->version};
    const size_t room[] = {sizeof out->name, sizeof out->path, sizeof out->version};
    if (n < sizeof head) return error_set(err, TARE_FORMAT, "a greeting of %zu bytes", n);
    memcpy(&head, bytes, sizeof head);
    if (head.status < 0) return refusal(&head, at + sizeof head, n - sizeof head, err);
    if (head.value != PY_PROTOCOL)
        return error_set(err, TARE_UNSUPPORTED,
                         "the Python package tare there is of another version: install this one");
    at += sizeof head;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        if (!stop) return error_set(err, TARE_FORMAT, "a greeting without its end");
        snprintf(to[i], room[i], "%s", at);
        at = stop + 1;
    }
    return TARE_OK;
}

tare_status py_piece_read(const void *bytes, size_t n, struct py_reply *out, const char **text,
                          tare_error *err)
{
    if (n < sizeof *out) return error_set(err, TARE_FORMAT, "a reply of %zu bytes", n);
    memcpy(out, bytes, sizeof *out);
    *text = (const char *)bytes + sizeof *out;
    if (out->status < 0) return refusal(out, *text, n - sizeof *out, err);
    if (out->n != n - sizeof *out)
        return error_set(err, TARE_FORMAT, "a reply of %zu bytes for a text of %u", n, out->n);
    return TARE_OK;
}

static struct known_u64 known_at(const uint64_t *words)
{
    return (struct known_u64){words[0] != 0, words[0] ? words[1] : 0};
}

void py_state_read(const uint64_t *words, struct process_state *out)
{
    *out = (struct process_state){
        .used = {.user_ns = words[PY_STATE_USER_NS],
                 .system_ns = words[PY_STATE_SYSTEM_NS],
                 .minor_faults = words[PY_STATE_MINOR_FAULTS],
                 .major_faults = words[PY_STATE_MAJOR_FAULTS],
                 .voluntary_switches = words[PY_STATE_VOLUNTARY],
                 .involuntary_switches = words[PY_STATE_INVOLUNTARY],
                 .migrations = known_at(words + PY_STATE_MIGRATIONS),
                 .read_bytes = known_at(words + PY_STATE_READ_BYTES),
                 .write_bytes = known_at(words + PY_STATE_WRITE_BYTES)},
        .rss = known_at(words + PY_STATE_RSS),
        .rss_peak = known_at(words + PY_STATE_RSS_PEAK),
        .peak_reset = words[PY_STATE_PEAK_RESET] != 0,
    };
}

/* ---- asking ---- */

/* A process that is gone, or does not answer, cannot be asked anything else: why, is what all later questions get until
 * another is started. An exception is no such thing: the next case may go well. */
static tare_status keep_failure(struct py_subject *s, const tare_error *why, tare_error *err)
{
    pthread_mutex_lock(&s->peer.lock);
    if (!s->failed[0]) snprintf(s->failed, sizeof s->failed, "%.399s", why->text);
    error_set(err, TARE_DENIED, "%s", s->failed);
    pthread_mutex_unlock(&s->peer.lock);
    return TARE_DENIED;
}

static bool has_failed(struct py_subject *s, tare_error *err)
{
    pthread_mutex_lock(&s->peer.lock);
    bool failed = s->failed[0] != 0;
    if (failed) error_set(err, TARE_DENIED, "%s", s->failed);
    pthread_mutex_unlock(&s->peer.lock);
    return failed;
}

/* A reply and its numbers, of which there may be PY_TIMES_MAX. */
struct answer {
    struct py_reply head;
    uint64_t *numbers;
};

/* What is asked and never answered ends the process: a late answer would be taken for that of the next
 * question. An exception in the user's code comes as a reply and only fails this one. */
static tare_status ask_python(struct py_subject *s, unsigned lane, const struct py_request *q,
                              struct answer *to, tare_error *err)
{
    char bytes[PY_PACKET_MAX];
    struct peer_packet packet = {bytes, sizeof bytes, 0};
    tare_error why = TARE_ERROR_INIT;
    if (has_failed(s, err)) return TARE_DENIED;
    if (!peer_say(&s->peer, lane, q, sizeof *q)) {
        peer_died(&s->peer, &why);
        error_wrap(&why, "before it was asked");
        return keep_failure(s, &why, err);
    }
    tare_status status = peer_hear(&s->peer, lane, &s->patience, &packet, &why);
    if (status < 0) {
        peer_kill(&s->peer); /* what did not answer in time cannot be asked anything else */
        return keep_failure(s, &why, err);
    }
    status = py_reply_read(bytes, packet.got, &to->head, to->numbers, &why);
    return status < 0 ? error_set(err, status, "%s", why.text) : status;
}

/* On lane 0, where only the head of the answer is wanted. */
static tare_status ask_plain(struct py_subject *s, struct py_request q, struct py_reply *head,
                             tare_error *err)
{
    uint64_t numbers[PY_TIMES_MAX];
    struct answer r = {.numbers = numbers};
    tare_status status = ask_python(s, 0, &q, &r, err);
    *head = r.head;
    return status;
}

/* ---- the process ---- */

tare_status py_start(struct peer *p, const char *python, const char *const *argv, unsigned lanes,
                     tare_error *err)
{
    struct spawn_options o = {.exe = python, .env = environ, .n_fds = lanes, .out = 2};
    o.argv = (char *const *)(uintptr_t)argv; /* posix_spawn copies them */
    return peer_start(p, o, err);
}

tare_status py_greeting(struct peer *p, const char *python, const volatile sig_atomic_t *interrupted,
                        struct py_hello *out, tare_error *err)
{
    char bytes[PY_PACKET_MAX];
    struct peer_packet packet = {bytes, sizeof bytes, 0};
    struct peer_patience patience = {.interrupted = interrupted}; /* imports take their time */
    tare_status status = peer_hear(p, 0, &patience, &packet, err);
    bool refused = !peer_alive(p) && WIFEXITED(p->status);
    if (status < 0 && refused) /* Python said why on stderr */
        return error_set(
            err, TARE_UNSUPPORTED,
            "%s cannot import tare: install the package there, or name another Python with TARE_PYTHON",
            python);
    return status < 0 ? status : py_hello_read(bytes, packet.got, out, err);
}

static tare_status start_python(struct py_subject *s, tare_error *err)
{
    const struct py_options *o = &s->o;
    char lanes[16];
    snprintf(lanes, sizeof lanes, "%u", o->workers);
    const char *argv[] = {o->python, "-m", "tare", "_worker", lanes, o->target, o->inputs ? o->inputs : "",
                          NULL};
    s->launch++;
    return py_start(&s->peer, o->python, argv, o->workers, err);
}

static tare_status hear_greeting(struct py_subject *s, tare_error *err)
{
    return py_greeting(&s->peer, s->o.python, s->patience.interrupted, &s->hello, err);
}

/* A fresh process where the last one is gone; no lane may be in use. What one case did must not lose the others. */
static tare_status revive_python(struct py_subject *s, tare_error *err)
{
    tare_error why = TARE_ERROR_INIT;
    if (peer_alive(&s->peer)) return TARE_OK;
    if (s->patience.interrupted && *s->patience.interrupted)
        return TARE_OK; /* the next question is refused */
    peer_stop(&s->peer);
    s->failed[0] = 0;
    tare_status status = start_python(s, &why);
    if (status == TARE_OK) status = hear_greeting(s, &why);
    if (status == TARE_OK) return TARE_OK;
    peer_kill(&s->peer);
    return keep_failure(s, &why, err);
}

static bool py_is_lost(struct instance *base)
{
    const struct py_instance *i = (const struct py_instance *)base;
    return i->launch != i->subject->launch || !peer_alive(&i->subject->peer);
}

/* Such an end is nobody's who asks next: a thread that a run left behind crashes after its answer, the kernel takes
 * memory back. All that is known is who had the last answer. */
static bool py_died(struct subject *base, tare_error *why)
{
    struct py_subject *s = (struct py_subject *)base;
    tare_error end = TARE_ERROR_INIT;
    if (has_failed(s, NULL) || !peer_over(&s->peer)) return false;
    peer_died(&s->peer, &end);
    error_wrap(&end, "after an answer, before the next question");
    keep_failure(s, &end, why);
    return true;
}

/* ---- one case ---- */

static void py_finish(struct instance *base)
{
    struct py_instance *i = (struct py_instance *)base;
    struct py_reply head = {0};
    if (!py_is_lost(base))
        ask_plain(i->subject, (struct py_request){.kind = PY_ASK_DROP, .id = i->id}, &head, NULL);
    mem_free(i->lanes);
    mem_free(i);
}

/* All memory is taken before Python is asked, so that no case is made there that nobody will drop. */
static tare_status py_prepare(struct subject *base, const struct case_params *p, const struct case_record *to,
                              struct instance **out, tare_error *err)
{
    struct py_subject *s = (struct py_subject *)base;
    struct py_request q = {PY_ASK_PREPARE, ++s->last_id, p->batch, case_dim(p, "length")};
    struct py_reply head = {0};
    unsigned workers = p->workers ? p->workers : 1;
    struct py_instance *i = mem_new(1, sizeof *i);
    struct py_lane *lanes = mem_new(workers, sizeof *lanes);
    tare_status status = i && lanes ? TARE_OK : error_nomem(err, "a case");
    if (status == TARE_OK && workers > s->peer.n)
        status = error_set(err, TARE_INVALID, "%u runs at once, but %u lanes", workers, s->peer.n);
    if (status == TARE_OK) status = revive_python(s, err);
    if (status == TARE_OK) status = ask_plain(s, q, &head, err);
    if (status < 0 || !i) {
        mem_free(i);
        mem_free(lanes);
        return status;
    }
    case_say_params(p, to);
    *i = (struct py_instance){.base = {base},
                              .subject = s,
                              .id = q.id,
                              .launch = s->launch,
                              .units = head.value ? (int64_t)head.value : 1,
                              .ungrouped = p->ungrouped,
                              .workers = workers,
                              .lanes = lanes};
    *out = &i->base;
    return TARE_OK;
}

/* Many runs are asked for at once, so that the round trip is not paid for each; the very first alone,
 * because it is told apart as the first run. Switches are known for the whole stretch only: the slowest
 * run is held to be the one that had them. */
static tare_status refill(struct py_instance *i, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct py_lane *l = &i->lanes[worker];
    bool one = i->ungrouped || !l->begun;
    struct py_request q = {PY_ASK_RUN, i->id, i->ungrouped ? 0 : GROUP_NS, one ? 1 : PY_TIMES_MAX};
    struct answer r = {.numbers = l->times};
    tare_status s = ask_python(i->subject, worker, &q, &r, err);
    if (s < 0) cost->wall_ns = r.head.value;
    if (s < 0) return s;
    if (r.head.n == 0) return error_set(err, TARE_FORMAT, "a reply without times");
    l->begun = true;
    l->n = r.head.n;
    l->at = l->slowest = 0;
    l->switches = r.head.switches;
    if (worker == 0) i->per_sample = r.head.value; /* lanes are asked by threads */
    for (size_t k = 1; k < l->n; k++)
        if (l->times[k] > l->times[l->slowest]) l->slowest = k;
    return TARE_OK;
}

static tare_status py_run(struct instance *base, unsigned worker, struct subject_cost *cost, tare_error *err)
{
    struct py_instance *i = (struct py_instance *)base;
    struct py_lane *l = &i->lanes[worker];
    if (l->at == l->n) {
        tare_status s = refill(i, worker, cost, err);
        if (s < 0) return s;
    }
    cost->used.involuntary_switches = l->at == l->slowest ? l->switches : 0;
    cost->wall_ns = l->times[l->at] ? l->times[l->at] : 1;
    l->at++;
    return TARE_OK;
}

static uint64_t py_overhead(struct instance *base)
{
    struct py_instance *i = (struct py_instance *)base;
    struct py_request q = {.kind = PY_ASK_OVERHEAD, .id = i->id};
    struct py_reply head = {0};
    bool told = !py_is_lost(base) && ask_plain(i->subject, q, &head, NULL) == TARE_OK;
    return told ? head.value : 0;
}

static tare_status py_report(struct instance *base, struct run *run, struct run_case *c, tare_error *err)
{
    (void)run;
    (void)err;
    c->calls_per_sample = known_u64(((const struct py_instance *)base)->per_sample);
    return TARE_OK;
}

static int64_t py_units(const struct instance *base)
{
    return ((const struct py_instance *)base)->units;
}

/* ---- the subject ---- */

static tare_status py_process(struct subject *base, bool reset, struct process_state *out, tare_error *err)
{
    struct py_subject *s = (struct py_subject *)base;
    struct py_request q = {.kind = PY_ASK_STATE, .a = reset};
    uint64_t words[PY_TIMES_MAX] = {0};
    struct answer r = {.numbers = words};
    tare_status status = reset ? revive_python(s, err) : TARE_OK;
    if (status == TARE_OK) status = ask_python(s, 0, &q, &r, err);
    if (status == TARE_OK && r.head.n != PY_STATE_WORDS)
        status = error_set(err, TARE_FORMAT, "%u numbers for the state of a process", r.head.n);
    if (status == TARE_OK) py_state_read(words, &s->seen);
    s->seen.pid = s->peer.pid;
    *out = s->seen;
    /* what was measured before an interruption is kept, though nobody can say any more what it used last */
    return status < 0 && s->patience.interrupted && *s->patience.interrupted ? TARE_OK : status;
}

static tare_status py_describe(struct subject *base, struct run *run, tare_error *err)
{
    struct py_subject *s = (struct py_subject *)base;
    struct arena *a = &run->arena;
    run->subject.type = base->ops->type;
    run->subject.name = arena_str(a, s->hello.name);
    if (s->hello.path[0]) run->subject.path = arena_str(a, s->hello.path);
    run->subject.runtime = (struct run_runtime){true, "python", arena_str(a, s->hello.version)};
    run_map_text(a, &run->config, "function", s->o.target);
    run_map_text(a, &run->config, "python", s->o.python);
    if (s->o.inputs) run_map_text(a, &run->config, "inputs", s->o.inputs);
    return a->failed ? error_nomem(err, "the description of a function") : TARE_OK;
}

static void py_close(struct subject *base)
{
    struct py_subject *s = (struct py_subject *)base;
    peer_stop(&s->peer);
    arena_release(&s->texts);
    mem_free(s);
}

static const struct subject_ops py_ops = {
    .type = "python",
    .reports_time = true,
    .describe = py_describe,
    .prepare = py_prepare,
    .run = py_run,
    .report = py_report,
    .units = py_units,
    .finish = py_finish,
    .close = py_close,
    .overhead_ns = py_overhead,
    .process = py_process,
    .is_lost = py_is_lost,
    .died = py_died,
};

/* ---- opening ---- */

tare_status subject_open_py(struct subject **out, const struct py_options *o, tare_error *err)
{
    struct py_subject *s = mem_new(1, sizeof *s);
    if (!s) return error_nomem(err, "a function");
    s->base.ops = &py_ops;
    s->peer = (struct peer)PEER_INIT("the Python process");
    s->patience = (struct peer_patience){o->timeout_ns, GRACE_NS, o->interrupted};
    s->o = *o;
    s->o.target = arena_str(&s->texts, o->target);
    s->o.python = arena_str(&s->texts, o->python);
    s->o.inputs = arena_str(&s->texts, o->inputs);
    tare_status status = s->texts.failed ? error_nomem(err, "a function") : start_python(s, err);
    if (status == TARE_OK) status = hear_greeting(s, err);
    if (status < 0) {
        py_close(&s->base);
        return status;
    }
    *out = &s->base;
    return TARE_OK;
}
