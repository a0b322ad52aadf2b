/* Loops whose body is products by matrices that stay and elementwise operations, for one type and one
level of vectors: recurrent layers, forward and backward, and whatever else has this form.

The rows of a batch are independent of each other: each needs its own state and the matrices alone.
So a task takes a block of rows of one member of an ensemble through all turns of the loop, and
nobody waits for anybody between turns. Keeping the matrices near over all turns is the idea of
Diamos and others (Persistent RNNs: stashing recurrent weights on-chip, ICML 2016); here they are
packed once, and lie in the second cache.

- A turn is a list of instructions. Products, with the tiles of product.h, take all rows of the block;
  the operations between two of them, which are those of rows.h, a few rows at a time, so that what
  one writes is near when the next reads it.
- A slice of columns is an address, and so is what is read or written in place: inputs, stacks, and
  the next turn's carries, of which there are two, one for each parity of turns. Where vectors do not
  end with the columns, values are copied from and to scratch, whose rows end behind a vector.
- An element's sums are taken in one order, whatever the rows beside it. So bits do not depend on
  blocks, and these may go by the number of threads.

`T`, `LANES`, `ROWS` and `NAME` are those of lanes.h.
*/

#define LOOP_DEPTH 320      /* the most terms of a product that are taken at once */
#define LOOP_BLOCK 64       /* the most rows of a block */
#define LOOP_NEARBY 131072   /* bytes that a few rows' values may take */

typedef struct {
    const Loop *p;
    int64_t block, blocks, few;   /* rows of a block; blocks of a member; rows taken at a time */
    int in_place[LOOP_VALUES];    /* whether a value may be where it lies outside of scratch */
    int64_t pitch[LOOP_VALUES];   /* in scratch */
    int64_t slot[LOOP_SLOTS];     /* where it begins, in elements */
    int64_t carry[LOOP_ARRAYS][2], carry_pitch[LOOP_ARRAYS];
    int64_t memory;               /* elements of scratch */
    int64_t matrix[LOOP_ARRAYS];  /* where it begins, packed */
    int64_t packed;               /* elements of all matrices of a member */
    T *shared;                    /* what is packed before tasks start, if it is */
    int64_t members;              /* of which there are matrices of their own: 1 if all share them */
    int failed;
} NAME(LoopPlan);
#define Plan NAME(LoopPlan)

typedef struct {
    const Plan *plan;
    NAME(Operand) value[LOOP_VALUES];
    int64_t member, first, rows, turn, parity;
    T *memory;
    const T *packed;
} NAME(LoopTask);
#define Task NAME(LoopTask)

static void NAME(loop_pack)(void *work, int64_t index)
{
    Plan *plan = work;
    const Loop *p = plan->p;
    int64_t member = index / p->matrices;
    const LoopMatrix *m = p->matrix + index % p->matrices;
    const T *from = (const T *)p->in[m->input] + member * m->member;
    NAME(pack_tiles)(from, m->k, m->n, 0, PLAIN, 0, m->columns, m->depth,
                     plan->shared + member * plan->packed + plan->matrix[index % p->matrices]);
}

/* Multiply all rows by a matrix. Rows are a multiple of vectors long. */
static void NAME(loop_product)(
    const Task *task, NAME(Operand) a, const LoopMatrix *m, const T *packed, NAME(Operand) out)
{
    int64_t parts = (m->depth + LOOP_DEPTH - 1) / LOOP_DEPTH;
    int64_t each = (m->depth + parts - 1) / parts;
    for (int64_t j = 0; j < m->columns;) {
        int vectors = NAME(next)(m->columns - j);
        int64_t wide = (int64_t)vectors * LANES;
        for (int64_t l = 0; l < m->depth; l += each) {
            int64_t k = m->depth - l < each ? m->depth - l : each;
            for (int64_t i = 0; i < task->rows; i += ROWS) {
                int64_t left = task->rows - i;
                NAME(tile_of)(left < ROWS ? (int)left : ROWS, vectors, 0, a.at + i * a.pitch + l, a.pitch, 1,
                              packed + j * m->depth + l * wide, wide, k, out.at + i * out.pitch + j, out.pitch, l > 0);
            }
        }
        j += wide;
    }
}

/* Where an array has a turn's rows of the block, in elements. */
static int64_t NAME(loop_stack_at)(const Task *task, int64_t width)
{
    const Loop *p = task->plan->p;
    int64_t block = p->apart ? task->member * p->turns + task->turn : task->turn * p->members + task->member;
    return (block * p->rows + task->first) * width;
}

/* Say where values are in this turn. */
static void NAME(loop_place)(Task *task)
{
    const Plan *plan = task->plan;
    const Loop *p = plan->p;
    for (int64_t v = 0; v < p->values; v++) {
        const LoopValue *value = p->value + v;
        NAME(Operand) *at = task->value + v;
        *at = (NAME(Operand)){value->slot < 0 ? NULL : task->memory + plan->slot[value->slot], plan->pitch[v], 1};
        if (value->kind == LOOP_CARRY || (value->kind == LOOP_NEXT && plan->in_place[v]))
            *at = (NAME(Operand)){task->memory + plan->carry[value->index][task->parity ^ (value->kind == LOOP_NEXT)],
                                  plan->carry_pitch[value->index], 1};
        else if (value->kind == LOOP_STACK && plan->in_place[v])
            *at = (NAME(Operand)){(T *)p->out[p->carries + value->index] + NAME(loop_stack_at)(task, value->width), value->width, 1};
        else if (value->kind == LOOP_INPUT && plan->in_place[v]) {
            const LoopView *view = p->view + value->index;
            *at = (NAME(Operand)){(T *)p->in[view->input] + task->turn * view->turn + task->member * view->member
                                      + task->first * view->row, view->row, 1};
        } else if (value->kind == LOOP_LITERAL)
            *at = (NAME(Operand)){(T *)(p->literal + value->index), 0, 0};
    }
}

static void NAME(loop_load)(const Task *task, int64_t v, int64_t row, int64_t rows)
{
    const LoopValue *value = task->plan->p->value + v;
    const LoopView *view = task->plan->p->view + value->index;
    int64_t at = task->turn * view->turn + task->member * view->member + (task->first + row) * view->row;
    for (int64_t r = 0; r < rows; r++)
        NAME(rows_take)(task->plan->p->in[view->input], at + r * view->row, view->column, (int)view->type, value->width,
                        task->value[v].at + (row + r) * task->value[v].pitch);
}

/* Copy rows to the next turn's carry, or to a stack, whose type is in `out`. */
static void NAME(loop_give)(const Task *task, const LoopInstruction *one, NAME(Operand) from, int64_t row, int64_t rows)
{
    const Plan *plan = task->plan;
    int64_t index = one->from[1], width = one->width, pitch = width, at = row;
    void *to = NULL;
    if (one->op == LOOP_TO_STACK) {
        to = plan->p->out[plan->p->carries + index];
        at = NAME(loop_stack_at)(task, width) + row * pitch;
    } else {
        pitch = plan->carry_pitch[index];
        to = task->memory + plan->carry[index][task->parity ^ 1];
        at *= pitch;
    }
    int floats = one->out == ROW_FLOATS;
    if (floats && (T *)to + at == from.at)
        return; /* it was written there */
    if (floats && from.vec && pitch == width && from.pitch == width)
        width *= rows, rows = 1;
    for (int64_t r = 0; r < rows; r++)
        if (from.vec)
            NAME(rows_give)(from.at + r * from.pitch, (int)one->out, width, to, at + r * pitch);
        else
            for (int64_t i = 0; i < width; i++)
                NAME(rows_give)(from.at + r * from.pitch, (int)one->out, 1, to, at + r * pitch + i);
}

/* Do elementwise operations on some rows of the block. */
static void NAME(loop_some)(const Task *task, int64_t begin, int64_t end, int64_t row, int64_t rows)
{
    const Plan *plan = task->plan;
    const Loop *p = plan->p;
    for (int64_t n = begin; n < end; n++) {
        const LoopInstruction *one = p->instruction + n;
        NAME(RowCall) k = {.rows = rows, .width = up(one->width, LANES)};
        NAME(Operand) *operands[] = {&k.a, &k.b, &k.c};
        if (one->op == LOOP_LOAD) {
            if (!plan->in_place[one->out])
                NAME(loop_load)(task, one->out, row, rows);
            continue;
        }
        for (int j = 0; j < (one->op < 0 ? 1 : 3) && one->from[j] >= 0; j++) {
            NAME(Operand) from = task->value[one->from[j]];
            if (p->value[one->from[j]].kind != LOOP_NEAR)
                from.at += row * from.pitch;
            if (one->at[j] < 0)
                from.vec = 0;
            else
                from.at += one->at[j];
            *operands[j] = from;
        }
        if (one->op < 0) {
            NAME(loop_give)(task, one, k.a, row, rows);
            continue;
        }
        k.out = task->value[one->out];
        if (p->value[one->out].kind != LOOP_NEAR)
            k.out.at += row * k.out.pitch;
        k.out.at += one->out_at;
        if (rows > 1 && k.out.pitch == k.width && (k.a.vec ? k.a.pitch == k.width : !k.a.pitch)
            && (k.b.vec ? k.b.pitch == k.width : !k.b.pitch) && (k.c.vec ? k.c.pitch == k.width : !k.c.pitch)) {
            k.width *= rows; /* rows that lie together are one */
            k.rows = 1;
        }
        NAME(row_functions)[one->op](&k);
    }
}

static void NAME(loop_turn)(Task *task)
{
    const Plan *plan = task->plan;
    const Loop *p = plan->p;
    NAME(loop_place)(task);
    for (int64_t n = 0; n < p->instructions;) {
        const LoopInstruction *one = p->instruction + n;
        if (one->op == LOOP_PRODUCT) {
            NAME(Operand) a = task->value[one->from[0]];
            a.at += one->at[0];
            NAME(loop_product)(task, a, p->matrix + one->from[1], task->packed + plan->matrix[one->from[1]],
                               task->value[one->out]);
            n++;
            continue;
        }
        int64_t end = n;
        while (end < p->instructions && p->instruction[end].op != LOOP_PRODUCT)
            end++;
        for (int64_t row = 0; row < task->rows; row += plan->few) {
            int64_t left = task->rows - row;
            NAME(loop_some)(task, n, end, row, left < plan->few ? left : plan->few);
        }
        n = end;
    }
}

static void NAME(loop_task)(void *work, int64_t index)
{
    Plan *plan = work;
    const Loop *p = plan->p;
    Task task = {.plan = plan, .member = index / plan->blocks, .first = index % plan->blocks * plan->block};
    task.rows = p->rows - task.first < plan->block ? p->rows - task.first : plan->block;
    task.memory = stretto_scratch(SLOT_A, (size_t)plan->memory * sizeof(T));
    T *own = plan->shared ? NULL : stretto_scratch(SLOT_B, (size_t)plan->packed * sizeof(T) + 64);
    if (!task.memory || !(own || plan->shared)) {
        plan->failed = 1;
        return;
    }
    task.packed = own ? own : plan->shared + (plan->members > 1 ? task.member * plan->packed : 0);
    for (int64_t i = 0; own && i < p->matrices; i++) {
        const LoopMatrix *m = p->matrix + i;
        NAME(pack_tiles)((const T *)p->in[m->input] + task.member * m->member, m->k, m->n, 0, PLAIN, 0,
                         m->columns, m->depth, own + plan->matrix[i]);
    }
    for (int64_t c = 0; c < p->carries; c++) {
        int64_t width = p->width[c], at = (task.member * p->rows + task.first) * width;
        for (int64_t r = 0; r < task.rows; r++)
            __builtin_memcpy(task.memory + plan->carry[c][0] + r * plan->carry_pitch[c],
                             (const T *)p->in[p->consts + c] + at + r * width, (size_t)width * sizeof(T));
    }
    for (int64_t turn = 0; turn < p->turns; turn++) {
        task.turn = p->reverse ? p->turns - 1 - turn : turn;
        task.parity = turn % 2;
        NAME(loop_turn)(&task);
    }
    for (int64_t c = 0; c < p->carries; c++) {
        int64_t width = p->width[c], at = (task.member * p->rows + task.first) * width;
        for (int64_t r = 0; r < task.rows; r++)
            __builtin_memcpy((T *)p->out[c] + at + r * width,
                             task.memory + plan->carry[c][p->turns % 2] + r * plan->carry_pitch[c], (size_t)width * sizeof(T));
    }
}

/* Decide where values are, and give them scratch; the rows that a few are. */
static void NAME(loop_places)(Plan *plan)
{
    const Loop *p = plan->p;
    int ends[LOOP_VALUES]; /* whether all vectors that are read or written end within its columns */
    int near[LOOP_SLOTS] = {0};
    int64_t slots[LOOP_SLOTS] = {0}, phase[LOOP_VALUES] = {0}, most = 1;
    for (int64_t v = 0; v < p->values; v++)
        ends[v] = 1;
    for (int64_t n = 0; n < p->instructions; n++) {
        const LoopInstruction *one = p->instruction + n;
        int64_t wide = up(one->width, LANES);
        if (one->op > LOOP_LOAD)
            for (int j = 0; j < 3; j++)
                if (one->from[j] >= 0 && one->at[j] >= 0 && one->at[j] + wide > p->value[one->from[j]].width)
                    ends[one->from[j]] = 0;
        if ((one->op > LOOP_LOAD || one->op == LOOP_PRODUCT) && one->out_at + wide > p->value[one->out].width)
            ends[one->out] = 0;
    }
    for (int64_t c = 0; c < p->carries; c++)
        plan->carry_pitch[c] = p->width[c];
    for (int64_t v = 0; v < p->values; v++) {
        const LoopValue *value = p->value + v;
        plan->pitch[v] = ends[v] ? value->width : up(value->width, LANES) + LANES;
        plan->in_place[v] = ends[v];
        if (value->kind == LOOP_INPUT) {
            const LoopView *view = p->view + value->index;
            plan->in_place[v] &= view->type == ROW_FLOATS && (view->column == 1 || value->width == 1);
        } else if ((value->kind == LOOP_CARRY || value->kind == LOOP_NEXT) && !ends[v]) {
            plan->carry_pitch[value->index] = up(value->width, LANES) + LANES;
            plan->in_place[v] = 1;
        }
        if (value->slot >= 0 && slots[value->slot] < plan->pitch[v])
            slots[value->slot] = plan->pitch[v];
        if (value->kind == LOOP_NEAR)
            near[value->slot] = 1;
    }
    int64_t width = 0, phases = 1; /* of the values that operations between two products touch */
    for (int64_t n = 0; n < p->instructions; n++) {
        const LoopInstruction *one = p->instruction + n;
        if (one->op == LOOP_PRODUCT) {
            width = 0, phases++;
            continue;
        }
        for (int j = -1; j < (one->op < 0 ? 1 : 3); j++) {
            int64_t v = j < 0 ? one->op < 0 ? -1 : one->out : one->from[j];
            if (v >= 0 && phase[v] != phases && p->value[v].kind != LOOP_LITERAL)
                phase[v] = phases, width += plan->pitch[v];
        }
        most = width > most ? width : most;
    }
    plan->few = LOOP_NEARBY / (most * (int64_t)sizeof(T));
    plan->few = plan->few < 1 ? 1 : plan->few > plan->block ? plan->block : plan->few;
    for (int64_t s = 0; s < p->slots; s++) {
        plan->slot[s] = plan->memory;
        plan->memory += up(slots[s] * (near[s] ? plan->few : plan->block), LANES) + 2 * LANES;
    }
    for (int64_t c = 0; c < p->carries; c++)
        for (int i = 0; i < 2; i++) {
            plan->carry[c][i] = plan->memory;
            plan->memory += up(plan->carry_pitch[c] * plan->block, LANES) + 2 * LANES;
        }
}

static int NAME(loop)(const XLA_FFI_CallFrame *frame, const Loop *p)
{
    if (!p->members || !p->rows)
        return 0;
    Plan plan = {.p = p, .members = 1};
    double work = 0;
    for (int64_t i = 0; i < p->matrices; i++) {
        const LoopMatrix *m = p->matrix + i;
        plan.matrix[i] = plan.packed;
        plan.packed += up(m->columns, LANES) * m->depth;
        work += (double)(m->depth * m->columns) * (double)p->rows * (double)(p->members * p->turns);
        if (m->member && p->members > 1)
            plan.members = p->members;
    }
    int64_t threads = stretto_threads_for(frame, work);
    int64_t each = (threads + p->members - 1) / p->members, most = (p->rows + each - 1) / each;
    plan.block = most < ROWS && p->rows >= ROWS ? ROWS : most;
    if (p->rows > ROWS)
        plan.block = (plan.block + ROWS - 1) / ROWS * ROWS;
    if (plan.block > LOOP_BLOCK)
        plan.block = LOOP_BLOCK;
    plan.blocks = (p->rows + plan.block - 1) / plan.block;
    NAME(loop_places)(&plan);
    if (plan.blocks > 1 || plan.members < p->members) {
        plan.shared = stretto_scratch(SLOT_SHARED, (size_t)(plan.members * plan.packed) * sizeof(T) + 64);
        if (!plan.shared)
            return -1;
        stretto_parallel(frame, threads, plan.members * p->matrices, NAME(loop_pack), &plan);
    }
    stretto_parallel(frame, threads, p->members * plan.blocks, NAME(loop_task), &plan);
    stretto_forget(SLOT_SHARED);
    return plan.failed ? -1 : 0;
}

#undef Plan
