/* SPDX-License-Identifier: MIT
 * python.c - frames of Python, read where the interpreter keeps them for this thread: no hook of its own, nothing
 * to pay for calls. Where things lie differs by version; each code object is checked to be one. What is not known
 * is refused by name. Also part of Python's allocator, whose small objects malloc never sees. Needs no header of
 * Python. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "agent/hot.h"

enum {
    NAME_MOST = 500,
    OBJ_TYPE = 8,
    STR_LENGTH = 16,
    STR_STATE = 32,
    BYTES_SIZE = 16,
    BYTES_DATA = 32,
    OWNED_BY_C = 3,
    STATE_BYTES = 240 /* of a thread's state, in all versions, at least */
};

/* Offsets in bytes, x86-64 and aarch64 alike, of builds without debugging. */
struct layout {
    uint32_t version;
    bool frame_objects;    /* before 3.11 */
    int entry, entry_then; /* in the thread's state: the frame, or what has it; -1: no second step */
    int back, code, instruction, owner;
    int file, name, first_line, table, bytecode;
    int ascii, wide; /* data of a str */
};
static const struct layout layouts[] = {
    {0x0309, true, 24, -1, 24, 32, 104, -1, 104, 112, 40, 120, -1, 48, 72},
    {0x030a, true, 24, -1, 24, 32, 96, -1, 104, 112, 40, 120, -1, 48, 72},
    {0x030b, false, 56, 8, 48, 32, 56, -1, 112, 128, 72, 136, 184, 48, 72},
    {0x030c, false, 56, 0, 8, 0, 56, 70, 112, 128, 68, 136, 192, 40, 56},
    {0x030d, false, 72, -1, 8, 0, 56, 70, 112, 128, 68, 136, 200, 40, 56},
};

static struct {
    const struct layout *layout; /* NULL: no Python, or none that we know */
    const void *code_type;
    void *(*this_thread)(void), *(*current_thread)(void);
    int thread_id_at; /* in its state; 0: not known */
    int (*holds_gil)(void);
    int (*is_initialized)(void);
    char why[160]; /* "": nothing to say */
} py;
struct interpreter interpreter;

static inline uint64_t at64(const void *p, int offset)
{
    uint64_t v;
    memcpy(&v, (const char *)p + offset, sizeof v);
    return v;
}

static inline uint32_t at32(const void *p, int offset)
{
    uint32_t v;
    memcpy(&v, (const char *)p + offset, sizeof v);
    return v;
}

static inline const void *pointer_at(const void *p, int offset)
{
    return (const void *)(uintptr_t)at64(p, offset);
}

/* ---- which one it is ---- */

static void choose_layout(const char *version)
{
    unsigned minor = 0;
    if (version[0] != '3' || version[1] != '.') return;
    for (const char *c = version + 2; *c >= '0' && *c <= '9'; c++) minor = minor * 10 + (unsigned)(*c - '0');
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == (0x0300 | minor)) py.layout = &layouts[i];
    if (!py.layout)
        snprintf(py.why, sizeof py.why, "Python 3.%u: where it keeps its frames is not known to this tare",
                 minor);
}

void python_find(void)
{
    const char *(*version)(void);
    *(void **)&version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    *(void **)&py.this_thread = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *(void **)&py.holds_gil = dlsym(RTLD_DEFAULT, "PyGILState_Check");
    *(void **)&py.is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&py.current_thread = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    if (!py.current_thread) *(void **)&py.current_thread = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    py.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    if (!version || !py.this_thread || !py.holds_gil || !py.is_initialized || !py.code_type) return;
    const char *text = version();
    choose_layout(text);
    if (strstr(text, "free-threading"))
        snprintf(py.why, sizeof py.why, "a free-threaded build of Python keeps its frames in another way");
    else if (dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount"))
        snprintf(py.why, sizeof py.why, "a debug build of Python keeps its frames in another way");
    if (py.why[0]) py.layout = NULL;
    interpreter.known = py.layout;
}

void python_tell(struct slot *s)
{
    if (!py.why[0]) return;
    char text[sizeof py.why + 60];
    snprintf(text, sizeof text, "no frames of Python: %s", py.why);
    slot_text(s, (struct memory_record){.kind = MEMORY_NOTE, .v = {MEMORY_NOTE_NO_PYTHON}}, text);
}

void python_find_code(void)
{
    int m = module_at((uint64_t)(uintptr_t)py.this_thread);
    if (m < 0) return;
    interpreter.start = agent->modules[m].start;
    interpreter.end = agent->modules[m].end;
}

/* ---- frames ---- */

/* Walking is done once for each version, with its offsets as constants: it is what an allocation costs most. */
#define BY_VERSION static inline __attribute__((always_inline))

/* Where in the code the interpreter is, as it keeps it. */
BY_VERSION uint64_t place_of(const struct layout *l, const void *frame)
{
    return l->frame_objects ? at32(frame, l->instruction) : at64(frame, l->instruction);
}

/* The same in bytes from the function's first instruction. */
BY_VERSION uint64_t instruction_of(const struct layout *l, uint64_t place, const void *code)
{
    if (l->frame_objects) {
        int32_t last = (int32_t)(uint32_t)place;
        if (last < 0) return 0;
        return (uint64_t)last * (l->version == 0x030a ? 2 : 1);
    }
    uint64_t from = (uint64_t)(uintptr_t)code + (uint64_t)l->bytecode;
    return place > from && place - from < 1 << 24 ? place - from : 0;
}

/* Of this thread. Before 3.12 the interpreter's own word for it is of another thread while that one has the GIL: so it
 * is asked only where the GIL is held. An extension may get that wrong: then it says another thread. */
static const void *this_thread(bool object)
{
    if (object && py.thread_id_at) {
        const void *thread = py.current_thread();
        if (thread && at64(thread, py.thread_id_at) == (uint64_t)(uintptr_t)__builtin_thread_pointer())
            return thread;
    }
    return py.this_thread();
}

const void *python_innermost(bool object)
{
    const struct layout *l = py.layout;
    const void *thread = l ? this_thread(object) : NULL;
    const void *f = thread ? pointer_at(thread, l->entry) : NULL;
    return f && l->entry_then >= 0 ? pointer_at(f, l->entry_then) : f;
}

/* Where a thread's state has who it is. Asked of one that has the GIL, and so is the current one. */
static void find_thread_id(void)
{
    const void *thread = py.this_thread();
    if (!py.current_thread || py.current_thread() != thread) return;
    for (int at = 8; at < STATE_BYTES; at += 8)
        if (at64(thread, at) == (uint64_t)(uintptr_t)__builtin_thread_pointer()) {
            py.thread_id_at = at;
            return;
        }
}

BY_VERSION bool is_shim(const struct layout *l, const void *frame)
{
    return l->owner >= 0 && *((const uint8_t *)frame + l->owner) >= OWNED_BY_C;
}

BY_VERSION uint64_t code_key(const struct layout *l, const void *code)
{
    return at64(code, l->table) ^ (uint64_t)at32(code, l->first_line) << 48;
}

/* False: there is no code of Python in it. */
BY_VERSION bool describe(const struct layout *l, const void *frame, struct python_at *out)
{
    const void *code = is_shim(l, frame) ? NULL : pointer_at(frame, l->code);
    if (!code || pointer_at(code, OBJ_TYPE) != py.code_type) return false;
    *out = (struct python_at){frame, code, code_key(l, code), place_of(l, frame)};
    return true;
}

BY_VERSION void keep(const struct layout *l, struct last_stack *last, uint32_t i, const struct python_at *at)
{
    last->python[i] = *at;
    last->frames[last->n_scopes + i] = (struct frame){.kind = MEMORY_PYTHON,
                                                      .where = (uint64_t)(uintptr_t)at->code,
                                                      .at = instruction_of(l, at->place, at->code),
                                                      .key = at->key};
}

/* All of them. */
BY_VERSION uint32_t walk(const struct layout *l, struct last_stack *last, const void *f, uint32_t most)
{
    uint32_t n = 0, first = UINT32_MAX;
    for (; f && n < most; f = pointer_at(f, l->back)) n += describe(l, f, &last->walked[n]);
    for (uint32_t i = 0; i < n; i++) {
        const struct python_at *at = &last->walked[n - 1 - i], *was = &last->python[i];
        if (i < last->n_python && was->frame == at->frame && was->code == at->code && was->key == at->key &&
            was->place == at->place)
            continue;
        keep(l, last, i, at);
        if (first == UINT32_MAX) first = last->n_scopes + i;
    }
    last->n_python = n;
    last->whole = !f;
    return first;
}

/* Mostly a few of the innermost frames are new or gone, and one has moved on. A frame at the same place need not be the
 * same, nor need what is around it: so all are looked at. False: there is more to it; what is told is right then. */
BY_VERSION bool moved(const struct layout *l, struct last_stack *last, const void *f, uint32_t most,
                      uint32_t *first)
{
    enum { FRESH_MOST = 8, GONE_MOST = 16 };
    uint32_t fresh = 0, i = last->n_python;
    for (; f && fresh < FRESH_MOST; f = pointer_at(f, l->back)) {
        uint32_t end = last->n_python > GONE_MOST ? last->n_python - GONE_MOST : 0;
        for (i = last->n_python; i > end && last->python[i - 1].frame != f;) i--;
        if (i > end) break;
        fresh += describe(l, f, &last->walked[fresh]);
    }
    if (!f || fresh == FRESH_MOST || i + fresh > most) return false;
    uint32_t n = i;
    for (; f; f = pointer_at(f, l->back)) {
        if (is_shim(l, f)) continue;
        if (!i) return false;
        struct python_at *was = &last->python[--i];
        if (was->frame != f || was->code != pointer_at(f, l->code) || was->key != code_key(l, was->code))
            return false;
        uint64_t place = place_of(l, f);
        if (was->place == place) continue;
        was->place = place;
        last->frames[last->n_scopes + i].at = instruction_of(l, place, was->code);
        *first = last->n_scopes + i;
    }
    if (i) return false;
    if (fresh && *first == UINT32_MAX) *first = last->n_scopes + n;
    while (fresh) keep(l, last, n++, &last->walked[--fresh]);
    last->n_python = n;
    return true;
}

BY_VERSION uint32_t frames(const struct layout *l, struct last_stack *last, const void *f, uint32_t most)
{
    uint32_t first = UINT32_MAX, of_walk;
    if (last->whole && last->n_python && moved(l, last, f, most, &first)) return first;
    of_walk = walk(l, last, f, most);
    return first < of_walk ? first : of_walk;
}

#define LAYOUT_MAP(X) X(0) X(1) X(2) X(3) X(4)
#define X(i)                                                                                         \
    static uint32_t frames_##i(struct last_stack *last, const void *f, uint32_t most)                \
    {                                                                                                \
        return frames(&layouts[i], last, f, most);                                                   \
    }
LAYOUT_MAP(X)
#undef X
static uint32_t (*const by_layout[])(struct last_stack *, const void *, uint32_t) = {
#define X(i) frames_##i,
    LAYOUT_MAP(X)
#undef X
};
_Static_assert(sizeof by_layout / sizeof *by_layout == sizeof layouts / sizeof *layouts,
               "one for each layout");

/* The thread's own frames: they cannot change under it. */
uint32_t python_frames(struct last_stack *last, const void *innermost, uint32_t most)
{
    return by_layout[py.layout - layouts](last, innermost, most);
}

/* ---- names ---- */

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    size_t n = 2;
    if (c >= 0x800) n = c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) to[i] = (char)(0x80 | (c & 63));
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(first[n] | c);
    return n;
}

/* A str, as far as it fits; a lone surrogate stays one. */
static void read_str(const struct layout *l, const void *str, char out[NAME_MOST])
{
    out[0] = 0;
    if (!str) return;
    uint32_t state = at32(str, STR_STATE), kind = state >> 2 & 7;
    uint64_t length = at64(str, STR_LENGTH);
    if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4)) return;
    const uint8_t *data = (const uint8_t *)str + (state >> 6 & 1 ? l->ascii : l->wide);
    size_t n = 0;
    for (uint64_t i = 0; i < length && n + 5 < NAME_MOST; i++) {
        uint32_t c = 0;
        memcpy(&c, data + i * kind, kind); /* little-endian */
        if (c) n += put_utf8(out + n, c);
    }
    out[n] = 0;
}

uint64_t name_number(struct slot *s, const char *text)
{
    uint64_t key = UINT64_C(0x7461726500000003);
    bool fresh;
    for (const char *c = text; *c; c++) key = (key ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
    key = (key ^ key >> 31) * UINT64_C(0xBF58476D1CE4E5B9);
    uint32_t number = known_number(key, &fresh);
    if (!fresh) return number;
    number = __atomic_add_fetch(&agent->names, 1, __ATOMIC_RELAXED);
    slot_text(s, (struct memory_record){.kind = MEMORY_NAME, .v = {number}}, text);
    known_tell(key, number);
    return number;
}

uint32_t python_code(struct slot *s, const struct frame *f)
{
    const struct layout *l = py.layout;
    const void *code = (const void *)(uintptr_t)f->where, *table = pointer_at(code, l->table);
    uint64_t key = (f->where ^ f->key * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0x94D049BB133111EB);
    char text[NAME_MOST];
    bool fresh;
    uint32_t number = known_number(key, &fresh);
    if (!fresh) return number;
    number = __atomic_add_fetch(&agent->codes, 1, __ATOMIC_RELAXED);
    struct memory_record r = {.kind = MEMORY_CODE,
                              .v = {number, 0, 0, at32(code, l->first_line), l->version}};
    read_str(l, pointer_at(code, l->file), text);
    r.CODE.file = name_number(s, text);
    read_str(l, pointer_at(code, l->name), text);
    r.CODE.name = name_number(s, text);
    r.text = "";
    if (table && at64(table, BYTES_SIZE) <= MEMORY_TABLE_MOST) {
        r.text = (const char *)table + BYTES_DATA;
        r.text_bytes = at64(table, BYTES_SIZE);
    }
    slot_put(s, &r);
    known_tell(key, number);
    return number;
}

/* ---- its allocator ---- */

struct py_allocator { /* PyMemAllocatorEx */
    void *ctx;
    void *(*get)(void *ctx, size_t size);
    void *(*get_zeroed)(void *ctx, size_t n, size_t size);
    void *(*resize)(void *ctx, void *p, size_t size);
    void (*give_back)(void *ctx, void *p);
};
enum { DOMAIN_MEM = 1, DOMAIN_OBJ = 2, DOMAINS = 3 };
static struct py_allocator inner[DOMAINS];

#define HERE ((void *const *)__builtin_frame_address(0))

/* What Python's allocator asks of malloc meanwhile is the same memory once more: not counted. */
static int64_t go_within(struct self *me)
{
    self_renew(me);
    int64_t left = me->left;
    me->left = INT64_MAX;
    me->within++;
    return left;
}

static void come_out(struct self *me, int64_t left)
{
    me->within--;
    me->left = left;
}

static void *py_malloc(void *ctx, size_t size)
{
    const struct py_allocator *in = ctx;
    struct self *me = &self;
    int64_t left = go_within(me);
    void *p = in->get(in->ctx, size);
    come_out(me, left);
    if (__builtin_expect(attach_looks, 0)) attach_look();
    if (p && (me->left -= (int64_t)size) <= 0) note_object(p, size, HERE);
    return p;
}

static void *py_calloc(void *ctx, size_t n, size_t size)
{
    const struct py_allocator *in = ctx;
    struct self *me = &self;
    int64_t left = go_within(me);
    void *p = in->get_zeroed(in->ctx, n, size);
    come_out(me, left);
    if (p && (me->left -= (int64_t)(n * size)) <= 0) note_object(p, n * size, HERE);
    return p;
}

static void py_free(void *ctx, void *p)
{
    const struct py_allocator *in = ctx;
    struct self *me = &self;
    if (p && filter_may_know(p)) note_free(p);
    me->within++;
    in->give_back(in->ctx, p);
    me->within--;
}

/* Told as freed before, as nobody else gets the block while the GIL is held; if it fails, what is still there is not
 * known any more. */
static void *py_realloc(void *ctx, void *p, size_t size)
{
    const struct py_allocator *in = ctx;
    struct self *me = &self;
    if (p && filter_may_know(p)) note_free(p);
    int64_t left = go_within(me);
    void *q = in->resize(in->ctx, p, size);
    come_out(me, left);
    if (q && (me->left -= (int64_t)size) <= 0) note_object(q, size, HERE);
    return q;
}

typedef void allocator_fn(int domain, struct py_allocator *);
static bool hooked[DOMAINS];

static allocator_fn *allocator_call(const char *name)
{
    allocator_fn *fn;
    *(void **)&fn = dlsym(RTLD_DEFAULT, name);
    return fn;
}

/* Only with the GIL, under which these domains are used, and once Python has chosen its own. */
void python_hook(void)
{
    static bool looked;
    static allocator_fn *get, *set;
    if (hooked[DOMAIN_OBJ] || !py.layout || !py.this_thread() || !py.is_initialized() || !py.holds_gil())
        return;
    if (!looked) {
        get = allocator_call("PyMem_GetAllocator");
        set = allocator_call("PyMem_SetAllocator");
        find_thread_id();
        looked = true;
    }
    for (int domain = DOMAIN_MEM; get && set && domain <= DOMAIN_OBJ; domain++) {
        struct py_allocator ours = {&inner[domain], py_malloc, py_calloc, py_realloc, py_free};
        if (hooked[domain]) continue;
        hooked[domain] = true;
        get(domain, &inner[domain]);
        set(domain, &ours);
    }
    interpreter.hooked = hooked[DOMAIN_OBJ];
}

/* Who took part after us calls us for good: then we stay, and hand on. */
void python_unhook(void)
{
    allocator_fn *get = allocator_call("PyMem_GetAllocator"), *set = allocator_call("PyMem_SetAllocator");
    for (int domain = DOMAIN_MEM; get && set && domain <= DOMAIN_OBJ; domain++) {
        struct py_allocator now;
        if (!hooked[domain]) continue;
        get(domain, &now);
        if (now.ctx != &inner[domain] || now.get != py_malloc) continue;
        set(domain, &inner[domain]);
        interpreter.hooked = hooked[domain] = false;
    }
}
