/* What all kernels share: XLA's calls, threads, scratch memory.

A kernel is a function that XLA calls while it runs a program, by its foreign function interface
(xla/ffi/api/c_api.h, which jaxlib ships). Its text is compiled once for each level of the
processor's vectors (level_*.c), and which one runs is chosen when the module is loaded.
*/

#ifndef STRETTO_KERNELS_H
#define STRETTO_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "xla/ffi/api/c_api.h"

/* Threads: work in parts, by XLA's own pool. */

typedef void Part(void *work, int64_t index);

/* The threads of XLA's pool for this call, and of the caller: at least 1. */
int64_t stretto_threads(const XLA_FFI_CallFrame *frame);

/* Those for so many multiply-adds: for few, no second one is woken. */
static inline int64_t stretto_threads_for(const XLA_FFI_CallFrame *frame, double work)
{
    return work <= 60000.0 ? 1 : stretto_threads(frame);
}

/* Run part(work, i) for all i below count, by this thread and, of those of the pool that are free, as
many as make up `threads`.

Which thread runs which part is not known; all have ended when it returns. */
void stretto_parallel(
    const XLA_FFI_CallFrame *frame, int64_t threads, int64_t count, Part *part, void *work);

/* Scratch memory of this thread, aligned to 64 bytes, kept for the next call: NULL if there is
none. Each slot is a piece of its own; what it held is lost where it has to grow. */
enum { SLOT_A, SLOT_B, SLOT_C, SLOT_SHARED, SLOT_WIDE, SLOTS };
void *stretto_scratch(int slot, size_t bytes);

/* Give the memory of a slot back, if it is much. */
void stretto_forget(int slot);

/* Pages: advise huge ones for the memory of this run, once, where it is much; and whether to. */
void stretto_huge_pages(const XLA_FFI_CallFrame *frame);
void stretto_want_huge_pages(int on);

/* What calls a routine of jaxlib's for LAPACK part by part (lapack.c), the same one each time; NULL if
there are too many. */
XLA_FFI_Handler *stretto_in_parts(XLA_FFI_Handler *routine);

/* Errors, which XLA raises where the program was called. */
XLA_FFI_Error *stretto_error(const XLA_FFI_CallFrame *frame, XLA_FFI_Error_Code code, const char *message);

/* Sizes and places */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

/* Where the one of so many by `sizes` begins, in what `strides` count. */
static inline int64_t offset(int axes, const int64_t *sizes, const int64_t *strides, int64_t index)
{
    int64_t at = 0;
    for (int axis = axes - 1; axis >= 0; axis--) {
        at += index % sizes[axis] * strides[axis];
        index /= sizes[axis];
    }
    return at;
}

/* What elements are: of a kernel's own type, or narrower, of which floats are made; or two of bfloat16,
that are a word for the instruction that multiplies pairs: side by side, apart, or one with a zero. */
enum { PLAIN, BFLOAT16, FLOAT16, PAIRS, APART, ALONE };
extern int stretto_pairs; /* whether there is that instruction, and it is to be used */
/* Of integers, beside PLAIN, which has 32 bits: integers.h. */
enum { INT8 = 8, UINT8, INT16 };
extern int stretto_quads; /* whether there is the instruction that multiplies four of 8 bits */

/* A product: C[b,m,n] = sum over k of A[b,m,k] B[b,k,n], and what follows.

Strides count elements, and may be 0 where all of a batch share an operand. C's columns lie side by
side. */
enum { BATCH_AXES = 3 };

typedef struct {
    int64_t m, n, k;
    int64_t batch[BATCH_AXES];
    int64_t a_batch[BATCH_AXES], b_batch[BATCH_AXES], c_batch[BATCH_AXES];
    int64_t a_m, a_k, b_k, b_n, c_m;
    const void *a, *b;
    void *c;
    const void *added;      /* what is added to C, if anything is: its columns lie side by side */
    int64_t added_batch[BATCH_AXES], added_m;
    int relu;               /* whether what is not above zero becomes zero */
    int a_kind, b_kind, c_kind; /* of operands, and of C and what is added */
    int64_t a_apart, b_apart;   /* of words: between their elements; how many elements they have, and */
    int word, odd;              /* the last of K, if it is not whole */
} Product;

/* A convolution of images in the plane, or of many groups of them:

    out[g,n,o,p] = sum over f and w of lhs[g,n,f,i] rhs[g,o,f,w],
    where i * spread = p * step + w * gap - low along both axes of the plane.

What lies outside the image, or between its elements where they are spread, is zero. Strides count
elements; those of rhs may be negative, where a kernel is reversed. */
enum { G, N, F, Y, X, CONVOLUTION_AXES };

typedef struct {
    int64_t groups, batch, features, outputs;
    int64_t image[2], window[2], positions[2];
    int64_t step[2], gap[2], low[2], spread[2];
    int64_t lhs_stride[CONVOLUTION_AXES]; /* group, example, feature, y, x, which is 1 */
    int64_t rhs_stride[CONVOLUTION_AXES]; /* group, output, feature, y, x */
    int64_t out_stride[CONVOLUTION_AXES]; /* group, example, output, y, x */
    const void *lhs, *rhs;
    void *out;
    /* Set by the kernel: which half of each pair along x it writes, 1 or 2, and the whole pairs. */
    int half;
    int64_t paired;
    int by_outputs; /* whether lanes are outputs, and not positions; nothing is spread then */
    int kind, out_kind;             /* of elements; and what follows counts them, of whole arrays: */
    int64_t lhs_size, rhs_size, out_size, rhs_first; /* and the place of a window's first */
    int pairs;                      /* set by the kernel: whether elements are words */
} Convolution;
/* A program over rows: kernels/rows.h. Its operands are values of a row (`columns` of them), one value
a row, or one a stretch of it; rows are counted along up to four axes. */
enum { ROW_AXES = 4, ROW_MOST = 96 };
enum { ROW_CHUNK, ROW_KEPT, ROW_SCALAR, ROW_PART, ROW_LITERAL, ROW_NONE }; /* what an operand is */
enum { ROW_FLOATS, ROW_BOOLS, ROW_INTEGERS, ROW_LONGS };         /* types of arrays */
enum { ROWS_LOAD = 0, ROWS_IS_COLUMN = 29, ROWS_FIRST_REDUCTION = 30, ROWS_ADD_UP = 35,
       ROWS_FIRST_PAIR = 50 };

typedef struct {
    const void *data;
    int64_t type, slot;     /* slot: of the scalar, or -1 if there are whole rows */
    int64_t step;           /* between lines: stretches, or columns where others lie behind */
    int64_t lead[ROW_AXES]; /* strides in elements */
} RowInput;

typedef struct {
    void *data;
    int64_t type, slot, each; /* each: how many values a row has in a slot */
} RowOutput;

typedef struct {
    int64_t op, out_kind, out, to; /* to: the output where it is put as well, or -1 */
    int64_t kind[3], from[3];
} RowInstruction;

typedef struct {
    int64_t lead[ROW_AXES], columns;
    int64_t stretches, behind; /* of a row; and rows that lie side by side, or 0: the last axis of `lead` */
    int64_t step, place[ROW_AXES]; /* of outputs: between lines, and strides of `lead` */
    int64_t inputs, outputs, sums, chunks, kept, scalars, sections;
    RowInput input[ROW_MOST];
    RowOutput output[ROW_MOST];
    void *sum[ROW_MOST];
    const int64_t *literals; /* the bits of each */
    const int64_t *bounds;   /* of sections: of scalars and of rows in turn */
    const RowInstruction *instruction;
} RowProgram;

/* A loop whose body is products by matrices that stay and elementwise operations: kernels/recurrent.h.
All its values are rows, each of its own width; an operation reads and writes `width` columns of them
from `at` on, or repeats the one column that a value has where `at` is negative. */
enum { LOOP_VALUES = 256, LOOP_SLOTS = 128, LOOP_ARRAYS = 64 };
enum { LOOP_WHOLE, LOOP_NEAR, LOOP_CARRY, LOOP_NEXT, LOOP_STACK, LOOP_INPUT, LOOP_LITERAL };
enum { LOOP_PRODUCT = -1, LOOP_TO_NEXT = -2, LOOP_TO_STACK = -3, LOOP_LOAD = 0 }; /* beside rows' operations */

typedef struct {
    int64_t kind;  /* where it is: in scratch, all rows at once or some; or in what array */
    int64_t index; /* of the carry, the stack, the view or the literal */
    int64_t slot;  /* in scratch, or -1 */
    int64_t width;
} LoopValue;

typedef struct { /* of an input; strides in elements */
    int64_t input, type, turn, member, row, column;
} LoopView;

typedef struct {
    int64_t input, depth, columns, member, k, n; /* then strides */
} LoopMatrix;

typedef struct {
    int64_t op, width, out, out_at;
    int64_t from[3], at[3]; /* of a product: a value and a matrix; to a stack: a value, the stack */
} LoopInstruction;

typedef struct {
    int64_t members, rows, turns, reverse, apart; /* apart: whether stacks have members in front of turns */
    int64_t consts, carries, stacks, views, values, slots, matrices, literals, instructions;
    const LoopView *view;
    const LoopValue *value;
    const LoopMatrix *matrix;
    const int64_t *width; /* of carries, then of stacks */
    const int64_t *literal; /* the bits of each */
    const LoopInstruction *instruction;
    const void *in[LOOP_ARRAYS];
    void *out[LOOP_ARRAYS]; /* last carries, then stacks */
} Loop;
/* Attention: out = softmax(steps(scale q kᵀ)) v for each of a batch, and its gradients:
kernels/attention.h. */
enum { ATTENTION_AXES = 4, ATTENTION_STEPS = 4 };
enum { ATTENTION_MULTIPLY, ATTENTION_ADD, ATTENTION_SELECT, ATTENTION_CAUSAL }; /* of steps */

typedef struct {
    const void *data;
    int64_t batch[ATTENTION_AXES], row, column; /* strides in elements */
} AttentionArray;

/* What is done to scores: they are multiplied by the constant; the array is added; or they become
the constant, where the array, of booleans, is `offset`, or where row + offset < key. */
typedef struct {
    int64_t kind, offset;
    double constant;
    AttentionArray array;
} AttentionStep;

typedef struct {
    int64_t batch[ATTENTION_AXES], rows, keys, features, columns;
    int64_t steps;
    int64_t guarded;        /* whether a row of -inf alone gives zeros, not NaN */
    double scale;           /* of queries */
    AttentionArray q, k, v, out;
    AttentionStep step[ATTENTION_STEPS];
    void *shift, *total;    /* of each row: what is subtracted, and the sum; or NULL */
    int64_t lead[ATTENTION_AXES]; /* where those of a pair begin, whose rows lie side by side */
    /* For gradients: that of out, and one value a row, `beside`, if out's is divided by totals
    already; else NULL, and out is read. What shares keys lies along the last axes of the batch. */
    AttentionArray d_out, d_q, d_k, d_v;
    const void *beside;
    int64_t sharing;        /* how many of the batch share keys and values */
    /* Examples of their own lengths lie along the batch's first axis. Bits of `ragged`: rows are as many;
    keys; of q to d_v, and shift, whether they lie one behind the other, in `room`; one always set. */
    int64_t ragged, room;
    const int32_t *lengths, *starts;
} Attention;
/* Element-wise programs over many arrays: kernels/update.h. Each segment has the arguments that its
program reads, by number, and the first of its results, which lie one after the other. */
typedef struct {
    const RowProgram *program;
    int64_t rows, columns;
    const int64_t *inputs;
    int64_t output;
} Segment;

typedef struct {
    XLA_FFI_Buffer **in, **out;
    int64_t segments;
    const Segment *segment;
} Updates;

/* Something along an axis of outer x count x inner elements: kernels/along.h. The order of operations is
that in ops/reducing/along.py. */
enum { ALONG_SUM, ALONG_PRODUCT, ALONG_MAX, ALONG_MIN, ALONG_RECURRENCE, ALONG_WHOLE_SUM,
       ALONG_GREATEST, ALONG_LEAST };

typedef struct {
    int64_t op, outer, count, inner, reverse;
    const void *x, *factor; /* the latter of a recurrence */
    void *out;              /* as x; of places int32, without the axis */
} Along;

/* The k greatest of each row, falling, and their places. */
typedef struct {
    int64_t rows, columns, k;
    const void *x;
    void *values;
    int32_t *places;
} TopK;
/* Windows of a table at indices, or sums of them: kernels/gather.h. The result's axes but the last, a
run of elements side by side, are `lead`; strides count elements, of what weighs and counts rows too. */
enum { GATHER_AXES = 4, GATHER_COMPONENTS = 4 };
enum { GATHER_TABLE, GATHER_INDEX, GATHER_WEIGHT, GATHER_KEPT, GATHER_ARRAYS };
enum { BAG_NONE, BAG_SUM, BAG_GREATEST }; /* what is done with the terms of a bag */

typedef struct {
    int64_t op, terms, run, size;           /* size: the bytes of an element */
    int64_t fills, fill[2];                 /* whether it fills, and the bytes of an element of that */
    int64_t components, apart;              /* of an index, and how far they lie apart */
    int64_t stride[GATHER_COMPONENTS], last[GATHER_COMPONENTS];
    int64_t wrap[GATHER_COMPONENTS];        /* what is added to negative ones */
    int64_t divided;                        /* whether bags are divided by a number */
    double divisor;
    int64_t lead[GATHER_AXES], strides[GATHER_ARRAYS][GATHER_AXES], term[GATHER_ARRAYS];
    int64_t wide; /* whether indices have 64 bits */
    const void *table, *index, *weights, *kept;
    void *out;
} Gather;

/* The kernels of one level, for float32 and for float64, products also for integers: each returns 0, or
-1 where there is no memory. */
typedef struct {
    int (*product[3])(const XLA_FFI_CallFrame *, const Product *);
    int (*convolution[2])(const XLA_FFI_CallFrame *, const Convolution *);
    int (*rows[2])(const XLA_FFI_CallFrame *, const RowProgram *);
    int (*loop[2])(const XLA_FFI_CallFrame *, const Loop *);
    int (*attention[2])(const XLA_FFI_CallFrame *, const Attention *);
    int (*attention_gradient[2])(const XLA_FFI_CallFrame *, const Attention *);
    int (*update[2])(const XLA_FFI_CallFrame *, const Updates *);
    int (*along_axis[2])(const XLA_FFI_CallFrame *, const Along *);
    int (*top_k[2])(const XLA_FFI_CallFrame *, const TopK *);
    int (*gather[2])(const XLA_FFI_CallFrame *, const Gather *);
} Level;

#endif
