/* Threads and scratch memory for all kernels. */

#include "kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Threads */

int64_t stretto_threads(const XLA_FFI_CallFrame *frame)
{
    int64_t count = 1;
    XLA_FFI_ThreadPool_NumThreads_Args args = {
        .struct_size = XLA_FFI_ThreadPool_NumThreads_Args_STRUCT_SIZE,
        .ctx = frame->ctx,
        .num_threads = &count,
    };
    XLA_FFI_Error *error = frame->api->XLA_FFI_ThreadPool_NumThreads(&args);
    if (error) {
        XLA_FFI_Error_Destroy_Args gone = {
            .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, .error = error};
        frame->api->XLA_FFI_Error_Destroy(&gone);
        return 1;
    }
    return count < 1 ? 1 : count;
}

/* Work that several threads take parts of. The threads of the pool that come when nothing is left
find `next` at the end and go, so that the caller waits for parts that run, never for threads that
may not come: kernels that wait for each other's threads would be a deadlock. */
typedef struct {
    Part *part;
    void *work;
    int64_t count;
    atomic_int_fast64_t next, done;
    atomic_int holders; /* threads that may still look at this */
    pthread_mutex_t lock;
    pthread_cond_t ended;
} Shared;

static void let_go(Shared *shared)
{
    if (atomic_fetch_sub(&shared->holders, 1) == 1) {
        pthread_mutex_destroy(&shared->lock);
        pthread_cond_destroy(&shared->ended);
        free(shared);
    }
}

static void take_parts(Shared *shared)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&shared->next, 1);
        if (index >= shared->count)
            return;
        shared->part(shared->work, index);
        if (atomic_fetch_add(&shared->done, 1) + 1 == shared->count) {
            pthread_mutex_lock(&shared->lock);
            pthread_cond_broadcast(&shared->ended);
            pthread_mutex_unlock(&shared->lock);
        }
    }
}

static void helper(void *data)
{
    take_parts(data);
    let_go(data);
}

static inline void rest(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void stretto_parallel(
    const XLA_FFI_CallFrame *frame, int64_t threads, int64_t count, Part *part, void *work)
{
    Shared *shared = threads > 1 && count > 1 ? malloc(sizeof *shared) : NULL;
    if (!shared) {
        for (int64_t index = 0; index < count; index++)
            part(work, index);
        return;
    }
    *shared = (Shared){.part = part, .work = work, .count = count};
    pthread_mutex_init(&shared->lock, NULL);
    pthread_cond_init(&shared->ended, NULL);
    int64_t helpers = least(threads, count) - 1;
    atomic_store(&shared->holders, (int)helpers + 1);
    for (int64_t i = 0; i < helpers; i++) {
        XLA_FFI_ThreadPool_Schedule_Args args = {
            .struct_size = XLA_FFI_ThreadPool_Schedule_Args_STRUCT_SIZE,
            .ctx = frame->ctx,
            .task = helper,
            .data = shared,
        };
        XLA_FFI_Error *error = frame->api->XLA_FFI_ThreadPool_Schedule(&args);
        if (error) { /* there is no pool: this thread does all */
            XLA_FFI_Error_Destroy_Args gone = {
                .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, .error = error};
            frame->api->XLA_FFI_Error_Destroy(&gone);
            let_go(shared);
        }
    }
    take_parts(shared);
    for (int spin = 0; spin < 4000 && atomic_load(&shared->done) < count; spin++)
        rest();
    if (atomic_load(&shared->done) < count) {
        pthread_mutex_lock(&shared->lock);
        while (atomic_load(&shared->done) < count)
            pthread_cond_wait(&shared->ended, &shared->lock);
        pthread_mutex_unlock(&shared->lock);
    }
    let_go(shared);
}

/* Scratch memory */

typedef struct {
    void *memory[SLOTS];
    size_t size[SLOTS];
} Scratch;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_key;

static void end_scratch(void *data)
{
    Scratch *scratch = data;
    for (int slot = 0; slot < SLOTS; slot++)
        free(scratch->memory[slot]);
    free(scratch);
}

static void begin_scratch(void) { has_key = !pthread_key_create(&key, end_scratch); }

void *stretto_scratch(int slot, size_t bytes)
{
    pthread_once(&once, begin_scratch);
    Scratch *scratch = has_key ? pthread_getspecific(key) : NULL;
    if (!scratch) {
        scratch = has_key ? calloc(1, sizeof *scratch) : NULL;
        if (!scratch)
            return NULL;
        if (pthread_setspecific(key, scratch)) {
            free(scratch);
            return NULL;
        }
    }
    if (scratch->size[slot] < bytes || !scratch->memory[slot]) {
        size_t size = (bytes + bytes / 4 + 4095) / 4096 * 4096;
        size = size ? size : 4096;
        free(scratch->memory[slot]);
        scratch->memory[slot] = NULL;
        scratch->size[slot] = 0;
        void *memory = NULL;
        if (posix_memalign(&memory, 64, size))
            return NULL;
        scratch->memory[slot] = memory;
        scratch->size[slot] = size;
    }
    return scratch->memory[slot];
}

enum { MUCH = 16 << 20 };

void stretto_forget(int slot)
{
    Scratch *scratch = has_key ? pthread_getspecific(key) : NULL;
    /* Fresh pages took 8 ms of 13 of a convolution whose floats are 19 MB: that slot may keep more. */
    if (scratch && scratch->size[slot] > (slot == SLOT_WIDE ? 4 * MUCH : MUCH)) {
        free(scratch->memory[slot]);
        scratch->memory[slot] = NULL;
        scratch->size[slot] = 0;
    }
}

/* Errors */

XLA_FFI_Error *stretto_error(
    const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *message)
{
    XLA_FFI_Error_Create_Args args = {
        .struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE,
        .message = message,
        .errc = code,
    };
    return frame->api->XLA_FFI_Error_Create(&args);
}
