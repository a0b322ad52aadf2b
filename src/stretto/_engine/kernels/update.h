/* Element-wise programs over many arrays in one call, for one type and one level of vectors: the
updates of optimisers, which do the same with each parameter, its gradient and its moments.

A program is one of rows.h with no reductions: each instruction does one operation on a chunk of
elements, which lie in the nearest cache from the first to the last. So an array is read once and
written once, whatever the program, and where all operands lie in memory of their own, the time is
that of the memory. PyTorch calls this a fused, multi-tensor update.

- Arrays that take the same program are its segments: a segment is rows of columns, one row but for
  members of an ensemble, whose scalars differ. Segments are cut into pieces of a fixed number of
  elements, which threads take.
- A result may lie where an operand lies: all instructions that read an operand come no later than
  the one that writes there, and each piece reads and writes its own elements alone.
- Elements do not depend on each other, so bits depend neither on pieces nor on threads.
*/

#define UPDATE_CHUNK (4096 / (int64_t)sizeof(T)) /* elements of a buffer, as in rows.h */
#define UPDATE_PIECE 16384                       /* elements that a thread takes at once */

#define UPDATE_PAGE (4096 / (int64_t)sizeof(T))

/* The elements of a page before a row begins. Pieces end with pages: where each chunk is one, the time
is 0.75 of what it is where each lies in two. */
static int64_t NAME(update_before)(const Updates *u, const Segment *s, int64_t row)
{
    for (int64_t i = 0; i < s->program->inputs; i++)
        if (s->program->input[i].slot < 0 && s->program->input[i].type == ROW_FLOATS)
            return (int64_t)((uintptr_t)u->in[s->inputs[i]]->data / sizeof(T)
                             + (uintptr_t)(row * s->columns)) % UPDATE_PAGE;
    return 0;
}

/* The pieces of a long row, of which the last may be empty; 1 of a short one. */
static int64_t NAME(update_by_row)(const Segment *s)
{
    return s->columns > UPDATE_PIECE ? (s->columns + UPDATE_PAGE + UPDATE_PIECE - 1) / UPDATE_PIECE : 1;
}

/* How a segment is cut: short rows by several, long ones by columns. */
static int64_t NAME(update_pieces)(const Segment *s)
{
    int64_t by_row = NAME(update_by_row)(s);
    if (by_row > 1)
        return s->rows * by_row;
    int64_t together = s->columns ? UPDATE_PIECE / s->columns : 1;
    return s->columns ? (s->rows + together - 1) / together : 0;
}

static void NAME(update_piece)(const Updates *u, const Segment *s, int64_t piece, int *failed)
{
    const RowProgram *given = s->program;
    RowProgram p = *given;
    NAME(RowPlan) plan = {.p = &p};
    int64_t row, column = 0, rows = 1, columns = s->columns;
    int64_t by_row = NAME(update_by_row)(s);
    if (by_row > 1) {
        row = piece / by_row;
        column = piece % by_row * UPDATE_PIECE - NAME(update_before)(u, s, row);
        int64_t end = column + UPDATE_PIECE;
        column = column < 0 ? 0 : column;
        columns = (end < columns ? end : columns) - column;
        if (columns <= 0)
            return;
    } else {
        rows = UPDATE_PIECE / columns;
        row = piece * rows;
        rows = s->rows - row < rows ? s->rows - row : rows;
    }
    for (int axis = 0; axis < ROW_AXES; axis++)
        p.lead[axis] = 1, p.place[axis] = 0;
    p.lead[ROW_AXES - 1] = rows;
    p.columns = p.step = p.place[ROW_AXES - 1] = columns;
    for (int64_t i = 0; i < p.inputs; i++) {
        RowInput *in = p.input + i;
        int64_t size = in->type == ROW_FLOATS ? sizeof(T) : 1;
        /* Scalars are one for all rows, or one a row. */
        int64_t pitch = in->slot < 0 ? s->columns : in->lead[ROW_AXES - 1] ? 1 : 0;
        for (int axis = 0; axis < ROW_AXES; axis++)
            in->lead[axis] = 0;
        in->lead[ROW_AXES - 1] = plan.pitch[i] = pitch;
        in->data = (const char *)u->in[s->inputs[i]]->data + (row * pitch + column) * size;
        if (in->slot >= 0)
            in->data = (const char *)u->in[s->inputs[i]]->data + row * pitch * size;
    }
    for (int64_t i = 0; i < p.outputs; i++) {
        RowOutput *out = p.output + i;
        int64_t size = out->type == ROW_FLOATS ? sizeof(T) : 1;
        out->data = (char *)u->out[s->output + i]->data + (row * s->columns + column) * size;
    }
    plan.rows = plan.span = rows;
    plan.ahead = rows == 1 ? p.inputs : 0;
    plan.padded = up(columns, LANES);
    plan.chunk = plan.padded < UPDATE_CHUNK ? plan.padded : UPDATE_CHUNK;
    plan.block = UPDATE_CHUNK / plan.padded;
    plan.lines = plan.block = plan.block < 1 ? 1 : plan.block > rows ? rows : plan.block;
    NAME(rows_sizes)(&plan);
    T *memory = stretto_scratch(SLOT_A, NAME(rows_memory)(&plan) + 64);
    if (!memory) {
        *failed = 1;
        return;
    }
    for (int64_t first = 0; first < rows; first += plan.block) {
        int64_t left = rows - first;
        NAME(rows_block)(&plan, first, left < plan.block ? left : plan.block, memory, NULL, 0);
    }
}

typedef struct {
    const Updates *u;
    const int64_t *ends; /* of each segment, in pieces */
    int failed;
} NAME(UpdateWork);

static void NAME(update_part)(void *data, int64_t index)
{
    NAME(UpdateWork) *work = data;
    int64_t low = 0, high = work->u->segments - 1; /* the first segment that ends behind it */
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (work->ends[middle] > index)
            high = middle;
        else
            low = middle + 1;
    }
    int64_t begin = low ? work->ends[low - 1] : 0;
    NAME(update_piece)(work->u, work->u->segment + low, index - begin, &work->failed);
}

static int NAME(update)(const XLA_FFI_CallFrame *frame, const Updates *u)
{
    int64_t *ends = stretto_scratch(SLOT_B, (size_t)u->segments * sizeof *ends), pieces = 0, size = 0;
    if (!ends)
        return -1;
    for (int64_t s = 0; s < u->segments; s++) {
        ends[s] = pieces += NAME(update_pieces)(u->segment + s);
        size += u->segment[s].rows * u->segment[s].columns;
    }
    NAME(UpdateWork) work = {.u = u, .ends = ends};
    int64_t threads = size <= 2 * UPDATE_PIECE ? 1 : stretto_threads(frame);
    stretto_parallel(frame, threads, pieces, NAME(update_part), &work);
    return work.failed ? -1 : 0;
}
