/* SPDX-License-Identifier: MIT
 * onnx_bind.c - inputs and outputs that stay in the memory of a provider's device (IoBinding of the runtime). Binding a
 * value of the host makes the runtime copy it, once, to where the nodes that read it run; outputs are allocated on the
 * device by the first run and written again by those after it. So a timed run copies nothing but what the model itself
 * does, and it ends when the outputs are there. */
#include "core/mem.h"
#include "subject/onnx_model.h"

/* Outputs of a data-dependent shape are allocated anew in each run; what is no tensor stays the host's. */
static struct ort_status *bind_outputs(const struct onnx_instance *i, struct ort_io_binding *b,
                                       const struct ort_memory_info *to)
{
    struct ort_status *st = NULL;
    for (size_t k = 0; !st && k < i->outputs.items.n; k++) {
        const struct ort_io *io = &i->outputs.items.items[k];
        bool tensor = io->kind == ORT_TENSOR && io->type != ONNX_STRING;
        st = i->ort->call.BindOutputToDevice(b, i->out_names[k], tensor ? to : i->cpu);
    }
    return st;
}

/* *out is there also after a failure, to be released. */
static tare_status make_binding(const struct onnx_instance *i, const struct onnx_worker *w,
                                const struct ort_memory_info *outputs, struct ort_io_binding **out,
                                tare_error *err)
{
    const struct ort_calls *call = &i->ort->call;
    struct ort_status *st = call->CreateIoBinding(i->session, out);
    for (size_t k = 0; !st && k < i->inputs.items.n; k++)
        st = call->BindInput(*out, i->in_names[k], w->in[k]);
    if (!st) st = bind_outputs(i, *out, outputs);
    if (!st) st = call->SynchronizeBoundInputs(*out);
    return ort_check(i->ort, st, err, "binding inputs and outputs to the device");
}

tare_status onnx_bind(struct onnx_instance *i, const char *memory, tare_error *err)
{
    const struct ort_calls *call = &i->ort->call;
    if (!call->SynchronizeBoundOutputs)
        return error_set(err, TARE_UNSUPPORTED,
                         "io=" IO_GPU ": ONNX Runtime %s cannot wait for bound outputs; 1.10 and up can",
                         i->ort->version);
    tare_status s = ort_check(i->ort, call->CreateMemoryInfo(memory, ORT_ALLOCATOR_DEVICE, 0, 0, &i->device),
                              err, "memory '%s'", memory);
    for (unsigned k = 0; s == TARE_OK && k < i->n_workers; k++)
        s = make_binding(i, &i->workers[k], i->device, &i->workers[k].bound, err);
    return s;
}

void onnx_unbind(struct onnx_instance *i, struct onnx_worker *w)
{
    if (w->bound) i->ort->call.ReleaseIoBinding(w->bound);
    w->bound = NULL;
}

struct ort_status *onnx_bound_run(const struct onnx_instance *i, struct onnx_worker *w)
{
    struct ort_status *st = w->any_loose ? bind_outputs(i, w->bound, i->device) : NULL;
    if (!st) st = i->call_bound(i->session, w->calls.run, w->bound);
    return st ? st : i->call_wait(w->bound);
}

static void release_values(const struct ort *o, struct ort_value **values, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (values[k]) o->call.ReleaseValue(values[k]);
        values[k] = NULL;
    }
}

/* The outputs of a binding into `to`, which has a place for each and is all NULL: the runtime hands the values over,
 * and an array that its allocator takes back. */
static struct ort_status *take_outputs(const struct onnx_instance *i, const struct ort_io_binding *b,
                                       struct ort_value **to)
{
    const struct ort_calls *call = &i->ort->call;
    struct ort_allocator *allocator = NULL;
    struct ort_value **values = NULL;
    size_t n = 0;
    struct ort_status *st = call->GetAllocatorWithDefaultOptions(&allocator);
    if (!st) st = call->GetBoundOutputValues(b, allocator, &values, &n);
    if (st || !values) return st;
    for (size_t k = 0; k < n; k++) {
        if (k < i->outputs.items.n)
            to[k] = values[k];
        else
            call->ReleaseValue(values[k]);
    }
    return call->AllocatorFree(allocator, values);
}

static bool has_shape(const struct ort *o, const struct ort_value *v)
{
    int64_t dims[TENSOR_RANK_MAX];
    size_t rank = 0;
    int type;
    return v && ort_value_shape(o, v, &type, dims, &rank);
}

/* One that is not there yet, as before the first run, has not changed. */
static bool any_changed(const struct onnx_instance *i, struct ort_value **a, struct ort_value **b)
{
    bool changed = false;
    for (size_t k = 0; !changed && k < i->outputs.items.n; k++)
        changed =
            has_shape(i->ort, a[k]) && has_shape(i->ort, b[k]) && !ort_value_same_shape(i->ort, a[k], b[k]);
    return changed;
}

bool onnx_bound_retry(const struct onnx_instance *i, struct onnx_worker *w)
{
    size_t n = i->outputs.items.n;
    struct ort_value **values = w->any_loose ? NULL : mem_new(2 * n, sizeof(struct ort_value *));
    if (!values) return false;
    w->any_loose = true;
    bool ran = ort_done(i->ort, take_outputs(i, w->bound, values)) &&
               ort_done(i->ort, onnx_bound_run(i, w)) &&
               ort_done(i->ort, take_outputs(i, w->bound, values + n));
    w->any_loose = ran && any_changed(i, values, values + n);
    release_values(i->ort, values, 2 * n);
    mem_free(values);
    return w->any_loose;
}

tare_status onnx_bound_fetch(struct onnx_instance *i, tare_error *err)
{
    struct onnx_worker *w = &i->workers[0];
    struct ort_io_binding *host = NULL;
    tare_status s = make_binding(i, w, i->cpu, &host, err);
    if (s == TARE_OK) {
        guard_call(&w->calls);
        struct ort_status *st = i->ort->call.RunWithBinding(i->session, w->calls.run, host);
        if (!st) st = i->ort->call.SynchronizeBoundOutputs(host);
        guard_call(&w->calls);
        release_values(i->ort, w->out, i->outputs.items.n);
        if (!st) st = take_outputs(i, host, w->out);
        s = ort_check(i->ort, st, err, "fetching the outputs");
    }
    if (host) i->ort->call.ReleaseIoBinding(host);
    return s;
}
