/* The module `_kernels`: what XLA calls, as capsules by name, and the level that runs. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "kernels.h"

#define REVISION 13

extern const Level stretto_avx512, stretto_avx2, stretto_neon;

/* Of all levels, the best first. Those with bf16 and VNNI are avx512, whose products multiply pairs of
bfloat16 and four of int8. */
enum { LEVELS = 5 };
static const char *const names[LEVELS] = {"avx512_bf16", "avx512_vnni", "avx512", "avx2", "neon"};
int stretto_pairs, stretto_quads;

static const Level *level; /* NULL where this processor has none */

/* The level of this name, or NULL where this processor has not got it. */
static const Level *level_of(const char *name)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* and so F16C */
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    if (!strcmp(name, "avx2"))
        return avx2 ? &stretto_avx2 : NULL;
    int vnni = __builtin_cpu_supports("avx512vnni"), bf16 = vnni && __builtin_cpu_supports("avx512bf16");
    if (!strcmp(name, names[2]) || (!strcmp(name, names[1]) && vnni) || (!strcmp(name, names[0]) && bf16))
        return avx512 ? &stretto_avx512 : NULL;
#elif defined(__aarch64__)
    if (!strcmp(name, "neon"))
        return &stretto_neon;
#endif
    return NULL;
}

/* What XLA calls */

/* Answer XLA's question for the version of the interface: 1 if this was one. A call has the memory
of its run looked at. */
static int answered(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Extension_Base *extension = frame->extension_start;
    if (!extension || extension->type != XLA_FFI_Extension_Metadata) {
        stretto_huge_pages(frame);
        return 0;
    }
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)extension)->metadata;
    metadata->api_version.major_version = XLA_FFI_API_MAJOR;
    metadata->api_version.minor_version = XLA_FFI_API_MINOR;
    return 1;
}

/* The integers of the one attribute, or NULL. */
static const int64_t *all_numbers(const XLA_FFI_CallFrame *frame, const int64_t **end)
{
    if (frame->attrs.size != 1 || frame->attrs.types[0] != XLA_FFI_AttrType_ARRAY)
        return NULL;
    const XLA_FFI_Array *array = frame->attrs.attrs[0];
    *end = (const int64_t *)array->data + array->size;
    return array->dtype == XLA_FFI_DataType_S64 ? array->data : NULL;
}

/* The same, where there are `count`. */
static const int64_t *numbers(const XLA_FFI_CallFrame *frame, int64_t count)
{
    const int64_t *end, *given = all_numbers(frame, &end);
    return given && end - given == count ? given : NULL;
}

/* What a kernel returns, if not 0: there is no memory for its scratch, or it was called otherwise
than it can be. */
enum { NO_MEMORY = -1, UNFIT = -2 };

/* Memory that a loop is going to write, all of it: what is in it before is nobody's business. Or that
of an operand, which is the result as it is. */
static int unwritten(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args, *out = frame->rets.rets[0];
    return frame->args.size && args[0]->data != out->data ? UNFIT : 0;
}

static int kind_of(const XLA_FFI_Buffer *buffer)
{
    switch ((int)buffer->dtype) {
    case XLA_FFI_DataType_S8: return INT8;
    case XLA_FFI_DataType_U8: return UINT8;
    case XLA_FFI_DataType_S16: case XLA_FFI_DataType_U16: return INT16;
    }
    return buffer->dtype == XLA_FFI_DataType_BF16 ? BFLOAT16
        : buffer->dtype == XLA_FFI_DataType_F16   ? FLOAT16 : PLAIN;
}

static int64_t elements(const XLA_FFI_Buffer *buffer)
{
    int64_t count = 1;
    for (int64_t axis = 0; axis < buffer->rank; axis++)
        count *= buffer->dims[axis];
    return count;
}

enum { PRODUCT_NUMBERS = 3 + 5 * BATCH_AXES + 7 };

static int product(XLA_FFI_CallFrame *frame)
{
    const int64_t *given = numbers(frame, PRODUCT_NUMBERS);
    int64_t operands = frame->args.size;
    if (!given || (operands != 2 && operands != 3) || frame->rets.size != 1)
        return UNFIT;
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args, *out = frame->rets.rets[0];
    Product p = {.m = given[0], .n = given[1], .k = given[2]};
    given += 3;
    int64_t *batches[] = {p.batch, p.a_batch, p.b_batch, p.c_batch, p.added_batch};
    for (int i = 0; i < 5; i++, given += BATCH_AXES)
        memcpy(batches[i], given, sizeof p.batch);
    p.a_m = given[0], p.a_k = given[1], p.b_k = given[2], p.b_n = given[3], p.c_m = given[4];
    p.added_m = given[5], p.relu = (int)given[6];
    p.a = args[0]->data;
    p.b = args[1]->data;
    p.c = out->data;
    p.added = operands == 3 ? args[2]->data : NULL;
    p.a_kind = p.b_kind = kind_of(args[0]);
    p.c_kind = kind_of(out);
    int integers = p.a_kind >= INT8 || out->dtype == XLA_FFI_DataType_S32 || out->dtype == XLA_FFI_DataType_U32;
    if (p.c_kind == UINT8) /* of sums in as many bits signs do not matter */
        p.a_kind = p.b_kind = p.c_kind = INT8;
    return level->product[integers ? 2 : out->dtype == XLA_FFI_DataType_F64](frame, &p);
}

enum { CONVOLUTION_NUMBERS = 4 + 14 + 3 * CONVOLUTION_AXES + 2 };

static int convolution(XLA_FFI_CallFrame *frame)
{
    const int64_t *given = numbers(frame, CONVOLUTION_NUMBERS);
    if (!given || frame->args.size != 2 || frame->rets.size != 1)
        return UNFIT;
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args, *out = frame->rets.rets[0];
    Convolution p = {
        .groups = given[0], .batch = given[1], .features = given[2], .outputs = given[3]};
    given += 4;
    int64_t *pairs[] = {p.image, p.window, p.positions, p.step, p.gap, p.low, p.spread};
    for (int i = 0; i < 7; i++, given += 2)
        memcpy(pairs[i], given, sizeof p.image);
    int64_t *strides[] = {p.lhs_stride, p.rhs_stride, p.out_stride};
    for (int i = 0; i < 3; i++, given += CONVOLUTION_AXES)
        memcpy(strides[i], given, sizeof p.lhs_stride);
    p.by_outputs = (int)given[1];
    p.rhs_first = given[0];
    p.kind = kind_of(args[0]), p.out_kind = kind_of(out);
    p.lhs = args[0]->data, p.rhs = args[1]->data, p.out = out->data;
    p.lhs_size = elements(args[0]), p.rhs_size = elements(args[1]), p.out_size = elements(out);
    return level->convolution[out->dtype == XLA_FFI_DataType_F64](frame, &p);
}

/* A program over rows. The numbers: whether floats are of 64 bits, the counts in RowProgram's order
from `lead` to `sections`, then those of literals and instructions; then each input's type, slot, step
and strides, each output's type, slot and values a row (sums over rows come after the others, without), literals,
bounds, instructions. */
enum { ROWS_HEAD = 1 + ROW_AXES + 4 + ROW_AXES + 7 + 2, ROWS_INPUT = 3 + ROW_AXES, ROWS_OUTPUT = 3 };

/* Read a program from as many numbers as there are; return what comes behind it, or NULL. */
static const int64_t *read_program(const int64_t *given, const int64_t *end, RowProgram *p, int *wide)
{
    if (end - given < ROWS_HEAD)
        return NULL;
    *p = (RowProgram){0};
    *wide = *given++ != 0;
    memcpy(p->lead, given, sizeof p->lead);
    given += ROW_AXES;
    p->columns = given[0], p->stretches = given[1], p->behind = given[2], p->step = given[3];
    memcpy(p->place, given + 4, sizeof p->place);
    given += 4 + ROW_AXES;
    p->inputs = given[0], p->outputs = given[1], p->sums = given[2];
    p->chunks = given[3], p->kept = given[4], p->scalars = given[5], p->sections = given[6];
    int64_t literals = given[7], instructions = given[8];
    given += 9;
    int64_t size = p->inputs * ROWS_INPUT + p->outputs * ROWS_OUTPUT + literals + p->sections + 1
        + instructions * (int64_t)(sizeof(RowInstruction) / sizeof(int64_t));
    if (size > end - given || p->inputs > ROW_MOST || p->outputs > ROW_MOST || p->sums > ROW_MOST
        || p->chunks > ROW_MOST || p->stretches < 1)
        return NULL;
    for (int64_t i = 0; i < p->inputs; i++, given += ROWS_INPUT) {
        p->input[i] = (RowInput){.type = given[0], .slot = given[1], .step = given[2]};
        memcpy(p->input[i].lead, given + 3, sizeof p->input[i].lead);
    }
    for (int64_t i = 0; i < p->outputs; i++, given += ROWS_OUTPUT)
        p->output[i] = (RowOutput){.type = given[0], .slot = given[1], .each = given[2]};
    p->literals = given;
    p->bounds = given + literals;
    p->instruction = (const RowInstruction *)(p->bounds + p->sections + 1);
    return (const int64_t *)(p->instruction + instructions);
}

static int rows(XLA_FFI_CallFrame *frame)
{
    RowProgram p;
    int wide;
    const int64_t *end, *given = all_numbers(frame, &end);
    if (!given || read_program(given, end, &p, &wide) != end || p.inputs != (int64_t)frame->args.size
        || p.outputs + p.sums != (int64_t)frame->rets.size)
        return UNFIT;
    for (int64_t i = 0; i < p.inputs; i++)
        p.input[i].data = ((XLA_FFI_Buffer **)frame->args.args)[i]->data;
    XLA_FFI_Buffer **rets = (XLA_FFI_Buffer **)frame->rets.rets;
    for (int64_t i = 0; i < p.outputs; i++)
        p.output[i].data = rets[i]->data;
    for (int64_t i = 0; i < p.sums; i++)
        p.sum[i] = rets[p.outputs + i]->data;
    return level->rows[wide](frame, &p);
}

/* A loop. The numbers: whether floats are of 64 bits, those of Loop from `members` to
`instructions`, then its tables in their order. */
enum { LOOP_HEAD = 15 };

static int loop(XLA_FFI_CallFrame *frame)
{
    const int64_t *end, *given = all_numbers(frame, &end);
    Loop p = {0};
    int64_t wide = 0, ok = 0;
    if (given && end - given >= LOOP_HEAD) {
        enum { WORD = sizeof(int64_t) };
        wide = given[0] != 0;
        memcpy(&p.members, given + 1, (LOOP_HEAD - 1) * WORD);
        given += LOOP_HEAD;
        int64_t size = p.views * (int64_t)(sizeof(LoopView) / WORD)
            + p.values * (int64_t)(sizeof(LoopValue) / WORD) + p.matrices * (int64_t)(sizeof(LoopMatrix) / WORD)
            + p.carries + p.stacks + p.literals + p.instructions * (int64_t)(sizeof(LoopInstruction) / WORD);
        ok = size == end - given && p.values <= LOOP_VALUES && p.slots <= LOOP_SLOTS
            && p.matrices <= LOOP_ARRAYS && frame->args.size <= LOOP_ARRAYS
            && p.carries + p.stacks <= LOOP_ARRAYS && p.carries + p.stacks == (int64_t)frame->rets.size;
    }
    if (!ok)
        return UNFIT;
    p.view = (const LoopView *)given;
    p.value = (const LoopValue *)(p.view + p.views);
    p.matrix = (const LoopMatrix *)(p.value + p.values);
    p.width = (const int64_t *)(p.matrix + p.matrices);
    p.literal = p.width + p.carries + p.stacks;
    p.instruction = (const LoopInstruction *)(p.literal + p.literals);
    for (int64_t i = 0; i < frame->args.size; i++)
        p.in[i] = ((XLA_FFI_Buffer **)frame->args.args)[i]->data;
    for (int64_t i = 0; i < frame->rets.size; i++)
        p.out[i] = ((XLA_FFI_Buffer **)frame->rets.rets)[i]->data;
    return level->loop[wide](frame, &p);
}

/* Attention and its gradients. The numbers: `batch`, `lead`, sizes, `guarded`, counts of steps,
whether shifts and totals are results, or for gradients whether there is `beside`, `sharing`, the
bits of `scale`, the count of steps with arrays, `ragged` and `room`; then arrays as offset and strides, those of
steps after what the step is. */
enum { ATTENTION_ARRAY = 1 + ATTENTION_AXES + 2,
       ATTENTION_NUMBERS = 2 * ATTENTION_AXES + 12 + 4 * ATTENTION_ARRAY + ATTENTION_STEPS * (3 + ATTENTION_ARRAY),
       ATTENTION_GRADIENTS = ATTENTION_NUMBERS + 4 * ATTENTION_ARRAY };

static const int64_t *attention_array(
    const int64_t *given, const XLA_FFI_Buffer *buffer, int64_t size, AttentionArray *array)
{
    array->data = (const char *)buffer->data + given[0] * size;
    memcpy(array->batch, given + 1, sizeof array->batch);
    array->row = given[1 + ATTENTION_AXES], array->column = given[2 + ATTENTION_AXES];
    return given + ATTENTION_ARRAY;
}

static int attention_of(XLA_FFI_CallFrame *frame, int gradient)
{
    const int64_t *given = numbers(frame, gradient ? ATTENTION_GRADIENTS : ATTENTION_NUMBERS);
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args;
    XLA_FFI_Buffer **rets = (XLA_FFI_Buffer **)frame->rets.rets;
    Attention p = {0};
    int64_t kept = 0, masks = 0, ok = given != NULL;
    if (ok) {
        memcpy(p.batch, given, sizeof p.batch);
        memcpy(p.lead, given + ATTENTION_AXES, sizeof p.lead);
        given += 2 * ATTENTION_AXES;
        p.rows = given[0], p.keys = given[1], p.features = given[2], p.columns = given[3];
        p.guarded = given[4], p.steps = given[5], kept = given[6], p.sharing = given[7];
        memcpy(&p.scale, given + 8, sizeof p.scale);
        masks = given[9], p.ragged = given[10], p.room = given[11];
        given += 12;
        int64_t args_size = 3 + masks + (gradient ? 3 + !kept : 0) + 2 * (p.ragged != 0);
        ok = p.steps <= ATTENTION_STEPS && args_size == (int64_t)frame->args.size
            && (gradient ? 3 : 1 + 2 * kept) == (int64_t)frame->rets.size;
    }
    if (!ok)
        return UNFIT;
    int64_t wide = args[0]->dtype == XLA_FFI_DataType_F64, size = wide ? 8 : 4;
    if (p.ragged) { /* the last operands */
        p.lengths = args[frame->args.size - 2]->data;
        p.starts = args[frame->args.size - 1]->data;
    }
    given = attention_array(given, args[0], size, &p.q);
    given = attention_array(given, args[1], size, &p.k);
    given = attention_array(given, args[2], size, &p.v);
    XLA_FFI_Buffer **arg = args + 3;
    const int64_t *out = given;
    given += ATTENTION_ARRAY;
    for (int64_t i = 0; i < ATTENTION_STEPS; i++, given += 3 + ATTENTION_ARRAY) {
        AttentionStep *step = p.step + i;
        step->kind = given[0], step->offset = given[1];
        memcpy(&step->constant, given + 2, sizeof step->constant);
        if (i < p.steps && (step->kind == ATTENTION_ADD || step->kind == ATTENTION_SELECT))
            attention_array(given + 3, *arg++, step->kind == ATTENTION_ADD ? size : 1, &step->array);
    }
    if (gradient) {
        p.shift = (*arg++)->data;
        given = attention_array(given, *arg++, size, &p.d_out);
        if (kept) /* divided already */
            p.beside = (*arg++)->data;
        else {
            p.total = (*arg++)->data;
            attention_array(out, *arg++, size, &p.out);
        }
        given = attention_array(given, rets[0], size, &p.d_q);
        given = attention_array(given, rets[1], size, &p.d_k);
        attention_array(given, rets[2], size, &p.d_v);
        return level->attention_gradient[wide](frame, &p);
    }
    attention_array(out, rets[0], size, &p.out);
    p.shift = kept ? rets[1]->data : NULL;
    p.total = kept ? rets[2]->data : NULL;
    return level->attention[wide](frame, &p);
}

static int attention(XLA_FFI_CallFrame *frame) { return attention_of(frame, 0); }
static int attention_gradient(XLA_FFI_CallFrame *frame) { return attention_of(frame, 1); }

/* Element-wise programs over many arrays. The numbers: how many programs and how many segments there
are; then each program, as above, how many segments it has, and of each its rows, its columns and
the arguments that it reads. */
static int update(XLA_FFI_CallFrame *frame)
{
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args;
    Updates u = {.in = args, .out = (XLA_FFI_Buffer **)frame->rets.rets};
    int wide = 0, ok = 0;
    int64_t programs = 0, segments = 0, outputs = 0;
    const int64_t *end = NULL, *given = all_numbers(frame, &end);
    if (given && end - given >= 2) {
        programs = given[0], segments = given[1];
        given += 2;
        ok = programs >= 0 && segments >= 0 && programs <= end - given && segments <= end - given;
    }
    RowProgram *program = NULL;
    if (ok && !(program = stretto_scratch(SLOT_SHARED, (size_t)programs * sizeof *program
                                                           + (size_t)segments * sizeof(Segment))))
        return NO_MEMORY;
    Segment *segment = (Segment *)(program + programs);
    for (int64_t n = 0; ok && n < programs; n++, program++) {
        given = read_program(given, end, program, &wide);
        ok = given && given < end && !program->sums;
        for (int64_t left = ok ? *given++ : 0; ok && left; left--) {
            ok = u.segments < segments && end - given >= 2 + program->inputs;
            if (!ok)
                break;
            segment[u.segments++] = (Segment){program, given[0], given[1], given + 2, outputs};
            for (int64_t i = 0; i < program->inputs; i++)
                ok &= given[2 + i] >= 0 && given[2 + i] < (int64_t)frame->args.size;
            given += 2 + program->inputs;
            outputs += program->outputs;
        }
    }
    u.segment = segment;
    if (!ok || given != end || u.segments != segments || outputs != (int64_t)frame->rets.size)
        return UNFIT;
    return level->update[wide](frame, &u);
}

/* Whether elements are of 64 bits. */
static int is_wide(const XLA_FFI_Buffer *buffer)
{
    return buffer->dtype == XLA_FFI_DataType_F64 || buffer->dtype == XLA_FFI_DataType_S64
        || buffer->dtype == XLA_FFI_DataType_U64;
}

static int along_axis(XLA_FFI_CallFrame *frame)
{
    const int64_t *given = numbers(frame, 5);
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args, **rets = (XLA_FFI_Buffer **)frame->rets.rets;
    if (!given || frame->args.size != 1 + (given[0] == ALONG_RECURRENCE) || frame->rets.size != 1)
        return UNFIT;
    Along p = {given[0], given[1], given[2], given[3], given[4], args[0]->data, NULL, rets[0]->data};
    if (frame->args.size == 2)
        p.factor = args[1]->data;
    return level->along_axis[is_wide(args[0])](frame, &p);
}

static int top_k(XLA_FFI_CallFrame *frame)
{
    const int64_t *given = numbers(frame, 3);
    XLA_FFI_Buffer **args = (XLA_FFI_Buffer **)frame->args.args, **rets = (XLA_FFI_Buffer **)frame->rets.rets;
    if (!given || frame->args.size != 1 || frame->rets.size != 2)
        return UNFIT;
    TopK p = {given[0], given[1], given[2], args[0]->data, rets[0]->data, rets[1]->data};
    return level->top_k[is_wide(args[0])](frame, &p);
}

/* The table, the indices, and what weighs and counts the rows of bags, if anything. The numbers are
those of Gather from `op` to `term`, then whether there are weights and counts. */
static int gather(XLA_FFI_CallFrame *frame)
{
    enum { HEAD = offsetof(Gather, wide) / sizeof(int64_t) };
    const int64_t *given = numbers(frame, HEAD + 2);
    int64_t args = frame->args.size, next = 2;
    if (!given || args != 2 + given[HEAD] + given[HEAD + 1] || frame->rets.size != 1)
        return UNFIT;
    XLA_FFI_Buffer **arg = (XLA_FFI_Buffer **)frame->args.args, *out = frame->rets.rets[0];
    Gather p = {0};
    memcpy(&p, given, HEAD * sizeof *given);
    p.wide = arg[1]->dtype == XLA_FFI_DataType_S64;
    p.table = arg[0]->data, p.index = arg[1]->data, p.out = out->data;
    p.weights = given[HEAD] ? arg[next++]->data : NULL;
    p.kept = given[HEAD + 1] ? arg[next]->data : NULL;
    return level->gather[p.size == 8](frame, &p);
}

/* Call a kernel. In a loop over arrays it may read and write the elements at an index, so that
nothing is copied out of arrays, nor into them. Then there is a second attribute: how many operands
the kernel has, the bytes of an element of each of them and of each result, 0 where it is a whole.
Behind those operands come the arrays that results are put into, and last the index, of 32 bits. */
enum { ELEMENTS_MOST = 1024 };

static int called(XLA_FFI_CallFrame *frame, int (*kernel)(XLA_FFI_CallFrame *))
{
    if (frame->attrs.size != 2)
        return kernel(frame);
    const XLA_FFI_Array *array = frame->attrs.attrs[1];
    const int64_t *bytes = array->data, args = frame->args.size, rets = frame->rets.size;
    int64_t operands = array->size ? *bytes++ : -1;
    if (operands < 0 || operands >= args || (int64_t)array->size != 1 + operands + rets
        || operands + rets > ELEMENTS_MOST)
        return UNFIT;
    XLA_FFI_Buffer **given = (XLA_FFI_Buffer **)frame->args.args;
    XLA_FFI_Buffer **results = (XLA_FFI_Buffer **)frame->rets.rets;
    int64_t index = *(const int32_t *)given[args - 1]->data;
    XLA_FFI_Buffer elements[ELEMENTS_MOST];
    void *places[ELEMENTS_MOST];
    for (int64_t i = 0; i < operands + rets; i++) {
        elements[i] = i < operands ? *given[i] : *results[i - operands];
        elements[i].data = (char *)elements[i].data + index * bytes[i];
        if (bytes[i])
            elements[i].dims++, elements[i].rank--;
        places[i] = elements + i;
    }
    XLA_FFI_CallFrame inner = *frame;
    inner.args.args = places;
    inner.args.size = operands;
    inner.rets.rets = places + operands;
    inner.attrs.size = 1;
    return kernel(&inner);
}

static XLA_FFI_Error *call(XLA_FFI_CallFrame *frame, int (*kernel)(XLA_FFI_CallFrame *), const char *name)
{
    int failed = answered(frame) ? 0 : called(frame, kernel);
    if (!failed)
        return NULL;
    char message[128];
    snprintf(message, sizeof message, "%s: %s", name, failed == UNFIT
             ? "operands or attributes are not its own" : "there is no memory for its scratch");
    return stretto_error(frame, failed == UNFIT ? XLA_FFI_Error_Code_INVALID_ARGUMENT
                                                : XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, message);
}

/* All kernels, and for each what XLA calls: `X(name)` once a name. */
#define KERNELS(X) \
    X(product) X(convolution) X(rows) X(loop) X(attention) X(attention_gradient) X(update) X(along_axis) X(top_k) \
    X(gather) X(unwritten)
#define CALL(kernel) \
    static XLA_FFI_Error *call_##kernel(XLA_FFI_CallFrame *f) { return call(f, kernel, "stretto_" #kernel); }
KERNELS(CALL)

/* What Python calls */

static PyObject *use(PyObject *self, PyObject *args)
{
    const char *name;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    const Level *found = level_of(name);
    if (!found) {
        PyErr_Format(PyExc_ValueError, "this processor has no kernels for %s", name);
        return NULL;
    }
    level = found;
    stretto_pairs = !strcmp(name, names[0]);
    stretto_quads = stretto_pairs || !strcmp(name, names[1]);
    Py_RETURN_NONE;
}

static PyObject *huge_pages(PyObject *self, PyObject *on)
{
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0)
        return NULL;
    stretto_want_huge_pages(wanted);
    Py_RETURN_NONE;
}

static PyObject *levels(PyObject *self, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < LEVELS; i++)
        if (level_of(names[i])) {
            PyObject *name = PyUnicode_FromString(names[i]);
            if (!name || PyList_Append(list, name))
                Py_CLEAR(list);
            Py_XDECREF(name);
        }
    return list;
}

#define NAMED(kernel) {"stretto_" #kernel, call_##kernel},
static PyObject *handlers(PyObject *self, PyObject *unused)
{
    static const struct {
        const char *name;
        XLA_FFI_Handler *handler;
    } all[] = { KERNELS(NAMED) };
    PyObject *table = PyDict_New();
    for (size_t i = 0; table && i < sizeof all / sizeof *all; i++) {
        PyObject *capsule = PyCapsule_New((void *)all[i].handler, "xla._CUSTOM_CALL_TARGET", NULL);
        if (!capsule || PyDict_SetItemString(table, all[i].name, capsule))
            Py_CLEAR(table);
        Py_XDECREF(capsule);
    }
    return table;
}

static PyObject *in_parts(PyObject *self, PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    void *routine = PyErr_Occurred() ? NULL : PyCapsule_GetPointer(capsule, name);
    if (!routine)
        return NULL;
    XLA_FFI_Handler *handler = stretto_in_parts((XLA_FFI_Handler *)routine);
    if (!handler)
        return PyErr_Format(PyExc_RuntimeError, "there are more routines of LAPACK than can be called in parts");
    return PyCapsule_New((void *)handler, "xla._CUSTOM_CALL_TARGET", NULL);
}

static PyMethodDef methods[] = {
    {"use", use, METH_VARARGS, "Have the kernels of a level run from now on, by its name."},
    {"huge_pages", huge_pages, METH_O, "Say whether kernels advise huge pages, as they do at first."},
    {"levels", levels, METH_NOARGS, "Return the levels that this processor has, the best first."},
    {"handlers", handlers, METH_NOARGS, "Return what XLA calls, by name."},
    {"in_parts", in_parts, METH_O, "Return what calls a routine of jaxlib's for LAPACK part by part."},
    {NULL, NULL, 0, NULL},
};

static int exec(PyObject *module)
{
    for (int i = LEVELS - 1; i >= 0; i--)
        if (level_of(names[i]))
            level = level_of(names[i]), stretto_pairs = i == 0, stretto_quads = i <= 1;
    return PyModule_AddIntConstant(module, "REVISION", REVISION);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
