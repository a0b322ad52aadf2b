/* LAPACK's routines, batches of which wait for nobody.

A routine of jaxlib's, applied to each matrix of a batch, gives parts of the batch to the threads of
XLA's pool, and waits for them. It may run on such a thread itself; where all of them run routines,
each waits for parts that none is left to take, for ever. So XLA calls one of the functions below,
which divides the batch by `stretto_parallel`, whose caller takes parts as well, and has each part
done by jaxlib's routine in the thread that it is in. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

enum { BUFFERS = 8, AXES = 8, PARTS_A_THREAD = 4 };

typedef XLA_FFI_Error *Routine(XLA_FFI_CallFrame *frame);
static Routine *routines[LAPACK_ROUTINES];

/* What a routine is told of threads: that there is one, which does at once what it is given. */

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

static XLA_FFI_Api *alone; /* XLA's interface with these two; made by the first call, never freed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const XLA_FFI_Api *alone_of(const XLA_FFI_Api *api)
{
    pthread_mutex_lock(&lock);
    if (!alone && (alone = malloc(api->struct_size))) {
        memcpy(alone, api, api->struct_size);
        alone->XLA_FFI_ThreadPool_NumThreads = one_thread;
        alone->XLA_FFI_ThreadPool_Schedule = at_once;
    }
    pthread_mutex_unlock(&lock);
    return alone;
}

static int64_t bytes_of(XLA_FFI_DataType dtype)
{
    switch (dtype) {
    case XLA_FFI_DataType_PRED: case XLA_FFI_DataType_S8: case XLA_FFI_DataType_U8: return 1;
    case XLA_FFI_DataType_S32: case XLA_FFI_DataType_U32: case XLA_FFI_DataType_F32: return 4;
    case XLA_FFI_DataType_S64: case XLA_FFI_DataType_F64: case XLA_FFI_DataType_C64: return 8;
    case XLA_FFI_DataType_C128: return 16;
    default: return 0;
    }
}

/* A batch of calls of one routine. */
typedef struct {
    XLA_FFI_CallFrame *frame;
    Routine *routine;
    int64_t axes, count, parts; /* axes and matrices of the batch, and into how many parts it goes */
    _Atomic(XLA_FFI_Error *) error;
} Batch;

/* Whether a buffer has the axes of the batch in front, so that it can be divided. */
static int divides(const Batch *batch, const XLA_FFI_Buffer *first, const XLA_FFI_Buffer *buffer)
{
    return buffer->rank >= batch->axes && buffer->rank - batch->axes < AXES && bytes_of(buffer->dtype)
        && !memcmp(buffer->dims, first->dims, (size_t)batch->axes * sizeof *first->dims);
}

/* The buffer of some of the matrices. */
static void cut(const Batch *batch, const XLA_FFI_Buffer *whole, int64_t first, int64_t count,
                XLA_FFI_Buffer *part, int64_t *dims)
{
    int64_t each = bytes_of(whole->dtype), axis = 0;
    *part = *whole;
    part->rank = whole->rank - batch->axes + 1;
    dims[axis++] = count;
    for (int64_t i = batch->axes; i < whole->rank; i++)
        each *= dims[axis++] = whole->dims[i];
    part->dims = dims;
    part->data = (char *)whole->data + first * each;
}

static void run_part(void *work, int64_t index)
{
    Batch *batch = work;
    XLA_FFI_CallFrame frame = *batch->frame;
    XLA_FFI_Buffer buffers[2 * BUFFERS];
    int64_t dims[2 * BUFFERS][AXES];
    void *given[2 * BUFFERS];
    int64_t from = batch->count * index / batch->parts, to = batch->count * (index + 1) / batch->parts;
    for (int64_t i = 0; i < frame.args.size + frame.rets.size; i++) {
        int64_t of_rets = i - frame.args.size;
        const XLA_FFI_Buffer *whole = of_rets < 0 ? frame.args.args[i] : frame.rets.rets[of_rets];
        cut(batch, whole, from, to - from, buffers + i, dims[i]);
        given[i] = buffers + i;
    }
    frame.rets.rets = given + frame.args.size;
    frame.args.args = given;
    XLA_FFI_Error *none = NULL, *error = batch->routine(&frame);
    if (error && !atomic_compare_exchange_strong(&batch->error, &none, error)) {
        XLA_FFI_Error_Destroy_Args gone = {
            .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, .error = error};
        frame.api->XLA_FFI_Error_Destroy(&gone);
    }
}

static XLA_FFI_Error *call(XLA_FFI_CallFrame *frame, Routine *routine)
{
    if (frame->extension_start || frame->stage != XLA_FFI_ExecutionStage_EXECUTE)
        return routine(frame);
    XLA_FFI_CallFrame own = *frame;
    own.api = alone_of(frame->api);
    if (!own.api)
        return stretto_error(frame, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "no memory for a call of LAPACK");
    Batch batch = {.frame = &own, .routine = routine, .count = 1, .parts = 1};
    const XLA_FFI_Buffer *first =
        own.args.size && own.args.types[0] == XLA_FFI_ArgType_BUFFER ? own.args.args[0] : NULL;
    int whole = !first || first->rank < 3 || own.args.size > BUFFERS || own.rets.size > BUFFERS;
    double work = 1.0;
    if (!whole) {
        batch.axes = first->rank - 2;
        for (int64_t i = 0; i < batch.axes; i++)
            batch.count *= first->dims[i];
        for (int64_t i = 0; i < own.args.size; i++)
            whole |= own.args.types[i] != XLA_FFI_ArgType_BUFFER || !divides(&batch, first, own.args.args[i]);
        for (int64_t i = 0; i < own.rets.size; i++)
            whole |= own.rets.types[i] != XLA_FFI_RetType_BUFFER || !divides(&batch, first, own.rets.rets[i]);
        double m = (double)first->dims[batch.axes], n = (double)first->dims[batch.axes + 1];
        work = 4.0 * (double)batch.count * m * n * (m < n ? m : n);
    }
    int64_t threads = whole ? 1 : stretto_threads_for(frame, work);
    batch.parts = least(threads > 1 ? PARTS_A_THREAD * threads : 1, batch.count);
    if (whole || batch.parts < 2) {
        XLA_FFI_Error *error = routine(&own);
        frame->future = own.future;
        return error;
    }
    stretto_parallel(frame, threads, batch.parts, run_part, &batch);
    return atomic_load(&batch.error);
}

/* XLA tells a function that it calls nothing of the name that it was called by: there is one for each
routine. */
#define ONE(n) static XLA_FFI_Error *call_##n(XLA_FFI_CallFrame *frame) { return call(frame, routines[n]); }
#define TEN(DO, t) DO(t##0) DO(t##1) DO(t##2) DO(t##3) DO(t##4) DO(t##5) DO(t##6) DO(t##7) DO(t##8) DO(t##9)
#define ALL(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) \
    TEN(DO, 1) TEN(DO, 2) TEN(DO, 3) TEN(DO, 4) TEN(DO, 5) TEN(DO, 6) TEN(DO, 7)
ALL(ONE)
#define NAMED(n) call_##n,
static Routine *const calls[LAPACK_ROUTINES] = {ALL(NAMED)};

void *stretto_lapack(int index, void *routine)
{
    routines[index] = (Routine *)routine;
    return (void *)calls[index];
}
