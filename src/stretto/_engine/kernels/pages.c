/* Huge pages for the memory that a program's results and temporaries get at each call.

XLA allocates the temporaries of a program as one block at each call, and where that is large the
system maps it anew: every page of 4 kB is found, cleared and entered as it is first touched, which
took a quarter of a training step of ResNet-50 (0.8 ms of processor time for each MB). In pages of
2 MB it takes a tenth of that. Linux gives them where a program advises it (madvise(2),
MADV_HUGEPAGE; Documentation/admin-guide/mm/transhuge.rst), as NumPy does for its arrays.

Nobody tells where the block is, so the first kernels of a run look for the memory that their results
lie in, among all that the process has mapped. What they advise changes no result. */

#include "kernels.h"

#include <stdatomic.h>

static atomic_int wanted = 1;

void stretto_want_huge_pages(int on) { atomic_store(&wanted, on); }

#if defined(__linux__)

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RESULT = 1 << 20, /* bytes of a result from which on the run may have large temporaries */
    BLOCK = 1 << 25,  /* bytes from which on malloc always has a block mapped: below, it is kept */
    TRIES = 3,        /* results of a run that are looked for: the first may be an argument's memory */
    RUNS = 8,         /* runs at once that are known */
    SMALL = 16,       /* places known to lie in less than a block */
    OFTEN = 256,      /* times until such a place is looked for again: looking takes 0.1 ms or so */
};

typedef struct {
    uintptr_t begin, end;
} Range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int64_t run;
    int left; /* tries */
} runs[RUNS];
static struct {
    Range range;
    int uses; /* left */
} small[SMALL];
static int next_run, next_small;

/* Find the memory that an address lies in: 1 if it is plain memory that the process had mapped. */
static int mapping(uintptr_t at, Range *found)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return 0;
    char line[256];
    int plain = 0, begins = 1;
    while (fgets(line, sizeof line, maps)) {
        int whole = !!strchr(line, '\n'), here = begins;
        begins = whole;
        if (!here)
            continue; /* the rest of a long line */
        char *rest;
        *found = (Range){.begin = strtoull(line, &rest, 16)};
        if (*rest != '-' || found->begin > at)
            break;
        found->end = strtoull(rest + 1, &rest, 16);
        if (at >= found->end)
            continue;
        /* Its rights, offset, device, inode, and behind spaces what it is, if it is not plain. */
        char rights[5];
        unsigned long long inode;
        int read = 0;
        if (sscanf(rest, " %4s %*s %*s %llu %n", rights, &inode, &read) == 2)
            plain = whole && !strncmp(rights, "rw", 2) && !inode && !rest[read];
        break;
    }
    fclose(maps);
    return plain;
}

static void advise(uintptr_t begin, uintptr_t end)
{
    const uintptr_t page = 1 << 12;
    begin = (begin + page - 1) / page * page, end = end / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* where it cannot, nothing changes */
}

/* Say whether an address lies in less than a block, as far as is known. */
static int is_small(uintptr_t at)
{
    for (int i = 0; i < SMALL; i++)
        if (small[i].uses > 0 && small[i].range.begin <= at && at < small[i].range.end) {
            small[i].uses--;
            return 1;
        }
    return 0;
}

/* Look where an address lies, and advise if that is a block: 1 if so. */
static int found_block(uintptr_t at)
{
    Range range = {0}; /* nothing, if nobody tells */
    if (is_small(at))
        return 0;
    if (mapping(at, &range) && range.end - range.begin >= BLOCK) {
        advise(range.begin, range.end);
        return 1;
    }
    if (range.begin <= at && at < range.end) {
        small[next_small].range = range;
        small[next_small].uses = OFTEN;
        next_small = (next_small + 1) % SMALL;
    }
    return 0;
}

/* The number of this run; 0 if nobody tells. */
static int64_t run_of(const XLA_FFI_CallFrame *frame)
{
    const XLA_FFI_Api *api = frame->api;
    if (api->struct_size < offsetof(XLA_FFI_Api, XLA_FFI_RunId_Get) + sizeof api->XLA_FFI_RunId_Get)
        return 0;
    XLA_FFI_RunId_Get_Args args = {
        .struct_size = XLA_FFI_RunId_Get_Args_STRUCT_SIZE, .ctx = frame->ctx};
    XLA_FFI_Error *error = api->XLA_FFI_RunId_Get(&args);
    if (error) {
        XLA_FFI_Error_Destroy_Args gone = {
            .struct_size = XLA_FFI_Error_Destroy_Args_STRUCT_SIZE, .error = error};
        api->XLA_FFI_Error_Destroy(&gone);
        return 0;
    }
    return args.run_id;
}

static int64_t bytes_of(const XLA_FFI_Buffer *buffer)
{
    int64_t size = buffer->dtype == XLA_FFI_DataType_F64 ? 8 : buffer->dtype == XLA_FFI_DataType_F32 ? 4 : 1;
    for (int64_t i = 0; i < buffer->rank; i++)
        size *= buffer->dims[i];
    return size;
}

void stretto_huge_pages(const XLA_FFI_CallFrame *frame)
{
    if (!atomic_load_explicit(&wanted, memory_order_relaxed) || !frame->rets.size)
        return;
    const XLA_FFI_Buffer *out = frame->rets.rets[0];
    int64_t bytes = bytes_of(out), run = bytes < RESULT ? 0 : run_of(frame);
    if (!run)
        return;
    uintptr_t at = (uintptr_t)out->data;
    if (bytes >= BLOCK) /* it may have a block of its own */
        advise(at, at + (uintptr_t)bytes);
    pthread_mutex_lock(&lock);
    int known = 0;
    while (known < RUNS && runs[known].run != run)
        known++;
    if (known == RUNS) {
        known = next_run;
        next_run = (next_run + 1) % RUNS;
        runs[known].run = run;
        runs[known].left = TRIES;
    }
    if (runs[known].left > 0) {
        runs[known].left--;
        if (found_block(at))
            runs[known].left = 0;
    }
    pthread_mutex_unlock(&lock);
}

#else

void stretto_huge_pages(const XLA_FFI_CallFrame *frame) {}

#endif
