/* SPDX-License-Identifier: MIT
 * py_io.c - files from Python: what decides how one is read, reading in several ways, packing. All of it on open files
 * or buffers, without the GIL. What to choose is the package's business. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/stored.h"
#include "files.h"
#include "part.h"
#include "probe/file_facts.h"

static const char *const way_names[] = {
#define X(name) #name,
    READ_WAYS(X)
#undef X
};

/* ---- facts ---- */

static PyObject *tell_resident(struct resident r)
{
    return Py_BuildValue("Ns", number_or_none(r.share), r.by);
}

static PyObject *facts_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct file_facts f;
    tare_error err = TARE_ERROR_INIT;
    const char *name;
    tare_status s;
    int fd;
    if (!PyArg_ParseTuple(args, "is:file_facts", &fd, &name)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    s = file_facts_read(fd, name, &f, &err);
    Py_END_ALLOW_THREADS;
    if (s < 0) return raise_error(&err);
    return Py_BuildValue("{sKsNsssOsz}", "size", (unsigned long long)f.size, "resident",
                         tell_resident(f.resident), "file_system", f.fs->name, "local",
                         f.fs->local ? Py_True : Py_False, "packed", f.packed);
}

static PyObject *resident_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    unsigned long long offset, n;
    struct resident r;
    int fd;
    if (!PyArg_ParseTuple(args, "iKK:file_resident", &fd, &offset, &n)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    r = file_resident(fd, offset, n);
    Py_END_ALLOW_THREADS;
    return tell_resident(r);
}

static PyObject *why_no_uring(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    char why[URING_WHY];
    return uring_refused(why) ? PyUnicode_FromString(why) : Py_NewRef(Py_None);
}

/* ---- reading ---- */

static int read_way(const char *name, enum read_way *out)
{
    for (*out = 0; *out < READ_WAY_COUNT; ++*out)
        if (strcmp(name, way_names[*out]) == 0) return 0;
    return refuse(PyExc_ValueError, "'%s' is no way to read: read, threads, direct, uring", name);
}

/* In windows, so that Ctrl-C is heard. */
static tare_status read_windows(struct read_job job, enum read_way way, const char *name, tare_error *err)
{
    enum { WINDOW = 256 << 20 };
    size_t left = job.n;
    tare_status s = TARE_OK;
    while (left > 0 && s == TARE_OK) {
        job.n = left < WINDOW ? left : WINDOW;
        Py_BEGIN_ALLOW_THREADS;
        s = read_job_run(&job, way, name, err);
        Py_END_ALLOW_THREADS;
        if (s == TARE_OK && PyErr_CheckSignals() < 0) return TARE_BUSY;
        job.offset += job.n;
        job.to += job.n;
        left -= job.n;
    }
    return s;
}

/* A large result is new memory, and the kernel would give it page by page while it is read into: as large pages it
 * is a 500th of the faults. Where there are none, nothing is lost. */
static void ask_large_pages(unsigned char *to, size_t n)
{
    enum { LARGE = 2 << 20 };
    uintptr_t from = ((uintptr_t)to + LARGE - 1) / LARGE * LARGE, end = ((uintptr_t)to + n) / LARGE * LARGE;
    if (end > from) (void)madvise(to + (from - (uintptr_t)to), end - from, MADV_HUGEPAGE);
}

static PyObject *read_range(PyObject *Py_UNUSED(self), PyObject *args, PyObject *named)
{
    static char *names[] = {"fd", "offset", "n", "way", "name", "depth", "piece", NULL};
    unsigned long long offset, n;
    const char *way_name, *name;
    enum read_way way;
    unsigned depth = 8;
    Py_ssize_t piece = 1 << 20;
    int fd;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTupleAndKeywords(args, named, "iKKss|In:file_read", names, &fd, &offset, &n, &way_name,
                                     &name, &depth, &piece) ||
        read_way(way_name, &way) < 0)
        return NULL;
    if (depth < 1 || depth > READ_DEPTH_MAX || piece < READ_ALIGN || piece > (64 << 20) || piece % READ_ALIGN)
        return PyErr_Format(PyExc_ValueError,
                            "file_read: depth 1 to %d, pieces of whole %d bytes up to 64 MiB", READ_DEPTH_MAX,
                            READ_ALIGN);
    if ((way >= READ_direct || read_is_direct(fd)) && offset % READ_ALIGN)
        return PyErr_Format(PyExc_ValueError, "file_read: %s reads from multiples of %d bytes on", way_name,
                            READ_ALIGN);
    if (n > PY_SSIZE_T_MAX) return PyErr_NoMemory();
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (!out) return NULL;
    struct read_job job = {fd, offset, (unsigned char *)PyBytes_AS_STRING(out), n, (size_t)piece, depth};
    ask_large_pages(job.to, job.n);
    if (read_windows(job, way, name, &err) == TARE_OK) return out;
    Py_DECREF(out);
    return PyErr_Occurred() ? NULL : raise_error(&err);
}

/* Paths as bytes, kept alive by the list that the caller has made. */
static PyObject *tell_small(struct small_file *f)
{
    if (f->failed) return PyLong_FromLong(f->failed);
    return PyBytes_FromStringAndSize((const char *)f->data, (Py_ssize_t)f->n);
}

static PyObject *read_many(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *paths;
    unsigned at_a_time;
    unsigned long long most = 0;
    if (!PyArg_ParseTuple(args, "O!I|K:files_read", &PyList_Type, &paths, &at_a_time, &most)) return NULL;
    size_t n = (size_t)PyList_GET_SIZE(paths);
    struct small_file *files = mem_new(n, sizeof *files);
    if (!files) return PyErr_NoMemory();
    PyObject *held = PyList_GetSlice(paths, 0, (Py_ssize_t)n), *out = held ? PyList_New(0) : NULL;
    for (size_t i = 0; out && i < n; i++) {
        char *path;
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(held, (Py_ssize_t)i), &path, NULL) < 0) Py_CLEAR(out);
        if (out) files[i].path = path;
    }
    if (out) {
        Py_BEGIN_ALLOW_THREADS;
        small_files_read(files, n, at_a_time < 1 ? 1 : at_a_time, most);
        Py_END_ALLOW_THREADS;
    }
    for (size_t i = 0; i < n; i++) {
        if (out) out = list_append(out, tell_small(&files[i]));
        mem_free(files[i].data);
    }
    Py_XDECREF(held);
    mem_free(files);
    return out;
}

/* ---- packing and storing ---- */

/* Without the GIL, `room` bytes at `to` are made of `from`, and *room is what they are then. */
struct packing {
    const struct codec *codec;
    int level; /* of packing; UNPACK: the other way */
    struct codec_bytes from;
};
enum { UNPACK = -1000 };

static PyObject *made_by(const struct packing *p, size_t room, const char *name)
{
    PyObject *out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)room);
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    if (!out) return NULL;
    void *to = PyBytes_AS_STRING(out);
    Py_BEGIN_ALLOW_THREADS;
    if (p->level == UNPACK)
        s = codec_unpack(p->codec, p->from, to, room);
    else
        s = codec_pack(p->codec, p->level, p->from, to, &room);
    Py_END_ALLOW_THREADS;
    if (s == TARE_OK) return _PyBytes_Resize(&out, (Py_ssize_t)room) < 0 ? NULL : out;
    Py_DECREF(out);
    if (p->level == UNPACK)
        error_set(&err, TARE_FORMAT, "%s: these are not %zu packed bytes", name, room);
    else
        error_set(&err, s, "%s: packing failed", name);
    return raise_error(&err);
}

static PyObject *pack(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer from;
    const char *name;
    int level;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "siy*:pack", &name, &level, &from)) return NULL;
    struct packing p = {codec_find(name, &err), level, {from.buf, (size_t)from.len}};
    size_t room = p.codec ? codec_bound(p.codec, p.from.n) : 0;
    if (p.codec && !room)
        error_set(&err, TARE_UNSUPPORTED, "%s: %zd bytes are more than it packs at a time", name, from.len);
    PyObject *out = room ? made_by(&p, room, name) : raise_error(&err);
    PyBuffer_Release(&from);
    return out;
}

static PyObject *unpack(PyObject *Py_UNUSED(self), PyObject *args)
{
    Py_buffer from;
    const char *name;
    Py_ssize_t n;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "sy*n:unpack", &name, &from, &n)) return NULL;
    struct packing p = {codec_find(name, &err), UNPACK, {from.buf, (size_t)from.len}};
    if (p.codec && n < 0) error_set(&err, TARE_INVALID, "%s: %zd bytes", name, n);
    PyObject *out = p.codec && n >= 0 ? made_by(&p, (size_t)n, name) : raise_error(&err);
    PyBuffer_Release(&from);
    return out;
}

static PyObject *pack_room(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *name;
    unsigned long long n;
    tare_error err = TARE_ERROR_INIT;
    if (!PyArg_ParseTuple(args, "sK:pack_room", &name, &n)) return NULL;
    const struct codec *c = codec_find(name, &err);
    return c ? PyLong_FromSize_t(codec_bound(c, n)) : raise_error(&err);
}

static PyObject *head_of(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct stored_head head;
    Py_buffer raw, body;
    const char *codec, *kind;
    tare_status s;
    if (!PyArg_ParseTuple(args, "ssy*y*:stored_head", &codec, &kind, &raw, &body)) return NULL;
    const struct codec_bytes of[] = {{raw.buf, (size_t)raw.len}, {body.buf, (size_t)body.len}};
    Py_BEGIN_ALLOW_THREADS;
    s = stored_head_make(&head, codec, kind, &of[0], &of[1]);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&raw);
    PyBuffer_Release(&body);
    if (s == TARE_OK) return PyBytes_FromStringAndSize((const char *)&head, sizeof head);
    return PyErr_Format(PyExc_ValueError, "stored_head: '%s' and '%s' have 8 letters at most", codec, kind);
}

static PyObject *kind_of(const struct stored_head *head)
{
    return PyUnicode_DecodeLatin1(head->kind, (Py_ssize_t)strnlen(head->kind, sizeof head->kind), NULL);
}

/* A head may be made up, sums and all: what it says of the size is believed as far as memory goes. */
static PyObject *stored_data(PyObject *Py_UNUSED(self), PyObject *args)
{
    struct stored_head head;
    Py_buffer from;
    const char *name;
    unsigned long long most;
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    PyObject *out = NULL;
    if (!PyArg_ParseTuple(args, "y*sK:stored_data", &from, &name, &most)) return NULL;
    const struct codec_bytes file = {from.buf, (size_t)from.len};
    Py_BEGIN_ALLOW_THREADS;
    s = stored_read(&file, name, &head, &err);
    Py_END_ALLOW_THREADS;
    if (s == TARE_OK && (head.raw > most || head.raw > PY_SSIZE_T_MAX))
        s = error_set(&err, TARE_FORMAT, "%s: is %llu bytes unpacked, more than the %llu that are free", name,
                      (unsigned long long)head.raw, most);
    if (s == TARE_OK && (out = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)head.raw))) {
        Py_BEGIN_ALLOW_THREADS;
        s = stored_unpack(&file, name, &head, PyBytes_AS_STRING(out), &err);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&from);
    if (s == TARE_OK) return out ? Py_BuildValue("NN", kind_of(&head), out) : NULL;
    Py_XDECREF(out);
    return raise_error(&err);
}

/* What was written at `at` of an open file comes back. */
static tare_status reads_back(int fd, size_t at, const Py_buffer *what, const char *name, tare_error *err)
{
    enum { STEP = 1 << 18 };
    unsigned char *got = mem_new(STEP, 1);
    tare_status s = got ? TARE_OK : error_nomem(err, "%s: a buffer of %d bytes", name, STEP);
    for (size_t done = 0, n = (size_t)what->len; s == TARE_OK && done < n; done += STEP) {
        struct read_job job = {fd, at + done, got, n - done < STEP ? n - done : STEP, STEP, 1};
        s = read_exactly(&job, got, 0, name, err);
        if (s == TARE_OK && memcmp(got, (const char *)what->buf + done, job.n) != 0)
            s = error_set(err, TARE_IO, "%s: does not read back as it was written", name);
    }
    mem_free(got);
    return s;
}

/* Read back before it takes the name: what was there stays until then. Pipes and devices cannot be. */
static tare_status store_whole(const char *name, const Py_buffer *head, const Py_buffer *body,
                               tare_error *err)
{
    struct file_out f = FILE_OUT_INIT;
    tare_status s = file_out_open(&f, name, FILE_SHARED, err);
    if (s == TARE_OK) s = file_write_all(f.fd, head->buf, (size_t)head->len, name, err);
    if (s == TARE_OK) s = file_write_all(f.fd, body->buf, (size_t)body->len, name, err);
    if (s == TARE_OK && f.folder >= 0) s = reads_back(f.fd, 0, head, name, err);
    if (s == TARE_OK && f.folder >= 0) s = reads_back(f.fd, (size_t)head->len, body, name, err);
    if (s == TARE_OK) s = file_out_commit(&f, err);
    file_out_close(&f);
    return s;
}

static PyObject *store(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *path;
    Py_buffer head, body;
    tare_error err = TARE_ERROR_INIT;
    tare_status s;
    if (!PyArg_ParseTuple(args, "O&y*y*:file_store", PyUnicode_FSConverter, &path, &head, &body)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    s = store_whole(PyBytes_AS_STRING(path), &head, &body, &err);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&head);
    PyBuffer_Release(&body);
    Py_DECREF(path);
    return s < 0 ? raise_error(&err) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"file_facts", facts_of, METH_VARARGS, "file_facts(fd, name): size, resident share, file system, packing"},
    {"file_resident", resident_of, METH_VARARGS,
     "file_resident(fd, offset, n): the share in memory (None: unknown), and what told it"},
    {"uring_refused", why_no_uring, METH_NOARGS, "why io_uring cannot be used here; None: it can"},
    {"file_read", (PyCFunction)(void (*)(void))read_range, METH_VARARGS | METH_KEYWORDS,
     "file_read(fd, offset, n, way, name, depth=8, piece=1 MiB): bytes; way: read, threads, direct, uring"},
    {"files_read", read_many, METH_VARARGS,
     "files_read(paths as bytes, at a time, most=0): bytes of each, or a number: an errno, -1 no regular file, -2 cut, "
     "-3 left for later: all would be more than `most` bytes"},
    {"pack", pack, METH_VARARGS, "pack(codec, level, buffer): bytes"},
    {"pack_room", pack_room, METH_VARARGS, "pack_room(codec, n): bytes that n take at most; 0: too many for it"},
    {"unpack", unpack, METH_VARARGS, "unpack(codec, buffer, n): exactly n bytes"},
    {"stored_head", head_of, METH_VARARGS, "stored_head(codec, kind, raw, packed): the head of a stored file"},
    {"stored_data", stored_data, METH_VARARGS, "stored_data(file, name, most): (kind, bytes)"},
    {"file_store", store, METH_VARARGS, "file_store(path, head, body): the file as a whole or not at all"},
    {NULL, NULL, 0, NULL},
};

const struct part io_part = {functions, NULL};
