/* LAPACK for batches: jaxlib's functions, called so that none waits for a thread that may not come.

They hand parts of a batch to XLA's pool and wait for all of them, by a thread that may be the pool's.
Where each of its threads waits so, in calls that run beside each other, nobody is left for the parts.
Here they hear of one thread, so that they do all in the thread that calls them; the parts are made in
front of them, a call for each, and are shared as other kernels share theirs. */

#include "kernels.h"

#include <stdatomic.h>
#include <string.h>

/* How many routines there may be, buffers of a call, axes of a matrix, and bytes of XLA's table. */
enum { ROUTINES = 128, BUFFERS = 16, AXES = 2, TABLE = 1024 };

static XLA_FFI_Error *one_thread(XLA_FFI_ThreadPool_NumThreads_Args *args)
{
    *args->num_threads = 1;
    return NULL;
}

static XLA_FFI_Error *at_once(XLA_FFI_ThreadPool_Schedule_Args *args)
{
    args->task(args->data);
    return NULL;
}

static int64_t bytes_of(XLA_FFI_DataType type)
{
    switch (type) {
    case XLA_FFI_DataType_S32: case XLA_FFI_DataType_F32: return 4;
    case XLA_FFI_DataType_S64: case XLA_FFI_DataType_F64: case XLA_FFI_DataType_C64: return 8;
    case XLA_FFI_DataType_C128: return 16;
    default: return 0;
    }
}

/* A call for a batch: buffers begin with the same `axes`, which count `batch` of what they hold. */
typedef struct {
    XLA_FFI_Handler *routine;
    const XLA_FFI_CallFrame *frame; /* whose table says that there is one thread */
    const XLA_FFI_Api *api;         /* XLA's own table */
    int64_t axes, batch, parts;
    double work;                    /* of one, in multiply-adds, roughly */
    _Atomic(XLA_FFI_Error *) failed;
} Batch;

/* The buffer of a number: an operand, or a result behind them. */
static const XLA_FFI_Buffer *buffer_of(const XLA_FFI_CallFrame *frame, int64_t i)
{
    return i < frame->args.size ? frame->args.args[i] : frame->rets.rets[i - frame->args.size];
}

/* Look at the buffers: whether they can be had in parts. */
static int has_parts(Batch *b)
{
    int64_t args = b->frame->args.size, count = args + b->frame->rets.size, most = 0;
    if (count > BUFFERS || !args)
        return 0;
    for (int64_t i = 0; i < args; i++)
        if (b->frame->args.types[i] != XLA_FFI_ArgType_BUFFER)
            return 0;
        else if (buffer_of(b->frame, i)->rank > most)
            most = buffer_of(b->frame, i)->rank;
    b->axes = most - AXES;
    if (b->axes < 1)
        return 0;
    b->batch = 1;
    b->work = 0;
    for (int64_t i = 0; i < count; i++) {
        const XLA_FFI_Buffer *x = buffer_of(b->frame, i), *first = buffer_of(b->frame, 0);
        if (x->rank < b->axes || x->rank > most || first->rank < b->axes || !bytes_of(x->dtype)
            || memcmp(x->dims, first->dims, b->axes * sizeof *x->dims))
            return 0;
        if (i < args && x->rank == most) {
            double rows = x->dims[most - 2], columns = x->dims[most - 1];
            double work = rows * columns * (rows < columns ? rows : columns);
            if (work > b->work)
                b->work = work;
        }
    }
    for (int64_t axis = 0; axis < b->axes; axis++)
        b->batch *= buffer_of(b->frame, 0)->dims[axis];
    return b->batch > 1;
}

static void one_part(void *work, int64_t index)
{
    Batch *b = work;
    int64_t begin = b->batch * index / b->parts, end = b->batch * (index + 1) / b->parts;
    int64_t args = b->frame->args.size, count = args + b->frame->rets.size;
    XLA_FFI_Buffer parts[BUFFERS];
    void *places[BUFFERS];
    int64_t dims[BUFFERS][1 + AXES];
    for (int64_t i = 0; i < count; i++) {
        parts[i] = *buffer_of(b->frame, i);
        int64_t each = bytes_of(parts[i].dtype);
        parts[i].rank -= b->axes - 1;
        dims[i][0] = end - begin;
        for (int64_t axis = 1; axis < parts[i].rank; axis++)
            each *= dims[i][axis] = parts[i].dims[b->axes + axis - 1];
        parts[i].dims = dims[i];
        parts[i].data = (char *)parts[i].data + begin * each;
        places[i] = parts + i;
    }
    XLA_FFI_CallFrame frame = *b->frame;
    frame.args.args = places;
    frame.rets.rets = places + args;
    XLA_FFI_Error *error = b->routine(&frame), *none = NULL;
    if (error && !atomic_compare_exchange_strong(&b->failed, &none, error)) {
        XLA_FFI_Error_Destroy_Args gone = {
            .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, .error = error};
        b->api->XLA_FFI_Error_Destroy(&gone);
    }
}

static XLA_FFI_Error *in_parts(XLA_FFI_CallFrame *frame, XLA_FFI_Handler *routine)
{
    XLA_FFI_Extension_Base *extension = frame->extension_start;
    if (extension && extension->type == XLA_FFI_Extension_Metadata)
        return routine(frame);
    union {
        XLA_FFI_Api api;
        char room[TABLE]; /* a later XLA's is longer */
    } table;
    size_t size = frame->api->struct_size;
    memcpy(&table, frame->api, size < TABLE ? size : TABLE);
    table.api.XLA_FFI_ThreadPool_NumThreads = one_thread;
    table.api.XLA_FFI_ThreadPool_Schedule = at_once;
    XLA_FFI_CallFrame alone = *frame;
    alone.api = &table.api;
    Batch b = {.routine = routine, .frame = &alone, .api = frame->api};
    int64_t threads = has_parts(&b) ? stretto_threads_for(frame, b.batch * b.work) : 1;
    if (threads == 1)
        return routine(&alone);
    b.parts = least(b.batch, 2 * threads);
    stretto_parallel(frame, threads, b.parts, one_part, &b);
    return b.failed;
}

/* What XLA calls has nothing to know its routine by: so each has a function of its own. */
static XLA_FFI_Handler *routines[ROUTINES];

#define SIXTEEN(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \
    X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define ALL(X) SIXTEEN(X, 0x0) SIXTEEN(X, 0x1) SIXTEEN(X, 0x2) SIXTEEN(X, 0x3) \
    SIXTEEN(X, 0x4) SIXTEEN(X, 0x5) SIXTEEN(X, 0x6) SIXTEEN(X, 0x7)
#define CALL(n) static XLA_FFI_Error *call_##n(XLA_FFI_CallFrame *f) { return in_parts(f, routines[n]); }
#define NAME(n) call_##n,
ALL(CALL)
static XLA_FFI_Handler *const calls[ROUTINES] = { ALL(NAME) };

XLA_FFI_Handler *stretto_in_parts(XLA_FFI_Handler *routine)
{
    for (int i = 0; i < ROUTINES; i++) {
        if (!routines[i])
            routines[i] = routine;
        if (routines[i] == routine)
            return calls[i];
    }
    return NULL;
}
