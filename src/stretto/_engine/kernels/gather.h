/* Windows of a table read at indices, and sums, weighted sums and maxima of them, for one type and
one level of vectors: rows of embeddings, bags of rows, an element of each row.

Along each axis of the result both the table and the indices have a stride, either of which may be 0:
so tables and indices of members, windows of several axes and transposed tables are one form. Elements
that lie side by side in the table and in the result are a run, and all runs but those of one element
are copied as bytes, whatever their type. XLA computes the place of each element anew.

- A bag is a sum over one more axis, of `terms`: their places are found once, then some vectors of
  columns at a time are added up in registers, so that rows are read once and nothing between is
  stored. Rows that are not to be counted are left out: they would add zeros, or be -inf.
- Terms are added one after the other in parts of a fixed number, and parts likewise. So bits depend
  neither on threads nor on what else is computed.
- Indices beyond an axis are moved to its ends, or their windows are filled with a value.
*/

#define GATHER_PIECE 16384/* elements that a thread reads at once */
#define GATHER_RUN 4096   /* elements of a run that a thread takes: longer ones are cut */
#define GATHER_PLACE 32    /* elements that may be read in the time that a place takes */
#define GATHER_WORTH 131072 /* elements from which a second thread is woken */
#define BAG_TERMS 256     /* of a part */
#define BAG_VECTORS 4     /* of columns in registers */
#define BAG_AHEAD 64      /* columns of each row that are asked for before they are read */

/* The place of a window in the table, or -1 where it is to be filled. */
INLINE int64_t NAME(gather_place)(const Gather *p, int64_t table, int64_t at)
{
    for (int64_t k = 0; k < p->components; k++, at += p->apart) {
        int64_t index = p->wide ? ((const int64_t *)p->index)[at] : ((const int32_t *)p->index)[at];
        index += index < 0 ? p->wrap[k] : 0;
        int64_t inside = index < 0 ? 0 : least(index, p->last[k]);
        if (inside != index && p->fills)
            return -1;
        table += inside * p->stride[k];
    }
    return table;
}

/* Elements one by one, by indices of one component of such a width: so many along the last axis from
`row` on. */
INLINE void NAME(gather_line)(const Gather *given, const int64_t *at, int64_t row, int64_t many, int wide, int fills)
{
    enum { LAST = GATHER_AXES - 1 };
    Gather p = *given;
    p.wide = wide, p.fills = fills, p.components = 1;
    const int64_t table = at[GATHER_TABLE], index = at[GATHER_INDEX];
    const int64_t by_table = p.strides[GATHER_TABLE][LAST], by_index = p.strides[GATHER_INDEX][LAST];
    const INTEGER *from = p.table;
    INTEGER *out = (INTEGER *)p.out + row, fill;
    memcpy(&fill, p.fill, sizeof fill);
    for (int64_t j = 0; j < many; j++) {
        int64_t place = NAME(gather_place)(&p, table + j * by_table, index + j * by_index);
        out[j] = place < 0 ? fill : from[place];
    }
}

static void NAME(gather_ones)(const Gather *p, const int64_t *at, int64_t row, int64_t many)
{
    if (p->wide)
        p->fills ? NAME(gather_line)(p, at, row, many, 1, 1) : NAME(gather_line)(p, at, row, many, 1, 0);
    else
        p->fills ? NAME(gather_line)(p, at, row, many, 0, 1) : NAME(gather_line)(p, at, row, many, 0, 0);
}

INLINE void NAME(gather_copy)(const Gather *p, int64_t place, int64_t out, int64_t run)
{
    enum { NEAR = 1024 };
    char *to = (char *)p->out + out * p->size;
    const char *from = (const char *)p->table + place * p->size;
    int64_t bytes = run * p->size, b = 0;
    if (place < 0)
        for (; b < bytes; b += p->size)
            memcpy(to + b, p->fill, (size_t)p->size);
    else if (bytes < BYTES || bytes > NEAR)
        memcpy(to, from, (size_t)bytes);
    else {
        for (; b + BYTES <= bytes; b += BYTES)
            STORE(to + b, LOAD(from + b));
        STORE(to + bytes - BYTES, LOAD(from + bytes - BYTES));
    }
}

/* Runs from column `c` to `end`, so many along the last axis from `row` on. Some places are found before
anything is read there, so that it comes at the same time. */
static void NAME(gather_runs)(const Gather *p, const int64_t *at, int64_t row, int64_t many, int64_t c, int64_t end)
{
    enum { TOGETHER = 16, LAST = GATHER_AXES - 1 };
    int64_t place[TOGETHER];
    for (int64_t first = 0; first < many; first += TOGETHER) {
        int64_t some = least(many - first, TOGETHER);
        for (int64_t j = 0; j < some; j++) {
            place[j] = NAME(gather_place)(p, at[GATHER_TABLE] + (first + j) * p->strides[GATHER_TABLE][LAST],
                                          at[GATHER_INDEX] + (first + j) * p->strides[GATHER_INDEX][LAST]);
            __builtin_prefetch((const char *)p->table + (place[j] + c) * p->size);
        }
        for (int64_t j = 0; j < some; j++)
            NAME(gather_copy)(p, place[j] < 0 ? place[j] : place[j] + c, (row + first + j) * p->run + c, end - c);
    }
}

INLINE Vec NAME(bag_greater)(Vec a, Vec b)
{
    Places first = (Places)(a > b) | (Places)(a != a);
    return (Vec)(((Places)a & first) | ((Places)b & ~first));
}

/* Some vectors of columns of a bag, from column `c` on. */
INLINE void NAME(bag_columns)(
    const Gather *p, const T *const *from, const T *factor, int64_t terms, int64_t c, T *out, int op,
    int vectors)
{
    Vec none = ALL(op == BAG_GREATEST ? (T)-__builtin_inf() : (T)0), total[BAG_VECTORS], part[BAG_VECTORS];
UNROLL
    for (int v = 0; v < vectors; v++)
        total[v] = none;
    for (int64_t t = 0; t < terms;) {
UNROLL
        for (int v = 0; v < vectors; v++)
            part[v] = none;
        for (int64_t end = least(terms, t + BAG_TERMS); t < end; t++)
UNROLL
            for (int v = 0; v < vectors; v++) {
                Vec x = LOAD(from[t] + c + v * LANES);
                part[v] = op == BAG_GREATEST ? NAME(bag_greater)(part[v], x)
                    : part[v] + (op == BAG_WEIGHTED ? x * factor[t] : x);
            }
UNROLL
        for (int v = 0; v < vectors; v++)
            total[v] = op == BAG_GREATEST ? NAME(bag_greater)(total[v], part[v]) : total[v] + part[v];
    }
UNROLL
    for (int v = 0; v < vectors; v++)
        STORE(out + c + v * LANES, p->divided ? total[v] / ALL((T)p->divisor) : total[v]);
}

INLINE void NAME(bag_all)(
    const Gather *p, const T *const *from, const T *factor, int64_t terms, int64_t c, int64_t end, T *out,
    int op)
{
    for (; c + BAG_VECTORS * LANES <= end; c += BAG_VECTORS * LANES)
        NAME(bag_columns)(p, from, factor, terms, c, out, op, BAG_VECTORS);
    for (; c + LANES <= end; c += LANES)
        NAME(bag_columns)(p, from, factor, terms, c, out, op, 1);
    if (c < end) /* some of them again: a run has a vector at least */
        NAME(bag_columns)(p, from, factor, terms, end - LANES, out, op, 1);
}

/* Columns from `c` to `end` of one bag. `at` is where it begins along the arrays. */
static void NAME(bag)(const Gather *p, const int64_t *at, int64_t c, int64_t end, T *out, void *memory)
{
    const T **from = memory, *filled = (const T *)(from + p->terms) + p->terms;
    T *factor = (T *)(from + p->terms);
    int64_t terms = 0;
    for (int64_t t = 0; t < p->terms; t++) {
        if (p->kept && !((const uint8_t *)p->kept)[at[GATHER_KEPT] + t * p->term[GATHER_KEPT]])
            continue;
        int64_t place = NAME(gather_place)(p, at[GATHER_TABLE] + t * p->term[GATHER_TABLE],
                                           at[GATHER_INDEX] + t * p->term[GATHER_INDEX]);
        if (p->weights)
            factor[terms] = ((const T *)p->weights)[at[GATHER_WEIGHT] + t * p->term[GATHER_WEIGHT]];
        from[terms] = place < 0 ? filled : (const T *)p->table + place;
        for (int64_t i = c; i < least(end, c + BAG_AHEAD); i += 64 / (int64_t)sizeof(T))
            __builtin_prefetch(from[terms] + i);
        terms++;
    }
    if (p->op == BAG_GREATEST)
        NAME(bag_all)(p, from, factor, terms, c, end, out, BAG_GREATEST);
    else if (p->op == BAG_WEIGHTED)
        NAME(bag_all)(p, from, factor, terms, c, end, out, BAG_WEIGHTED);
    else
        NAME(bag_all)(p, from, factor, terms, c, end, out, BAG_SUM);
}

typedef struct {
    const Gather *p;
    int64_t rows, each, cuts; /* of the result; rows and runs that a thread takes */
    int failed;
} NAME(GatherWork);

static void NAME(gather_part)(void *data, int64_t index)
{
    NAME(GatherWork) *work = data;
    const Gather *p = work->p;
    enum { LAST = GATHER_AXES - 1 };
    int64_t cut = index % work->cuts, c = cut * GATHER_RUN;
    int64_t end = cut == work->cuts - 1 ? p->run : c + GATHER_RUN;
    int64_t row = index / work->cuts * work->each, stop = least(work->rows, row + work->each);
    void *memory = NULL;
    if (p->op != BAG_NONE) {
        size_t one = sizeof(T *) + sizeof(T);
        memory = stretto_scratch(SLOT_A, (size_t)p->terms * one + (size_t)p->run * sizeof(T));
        if (!memory) {
            work->failed = 1;
            return;
        }
        for (int64_t i = 0; p->fills && i < p->run; i++)
            memcpy((char *)memory + (size_t)p->terms * one + (size_t)i * sizeof(T), p->fill, sizeof(T));
    }
    while (row < stop) { /* along the last axis without divisions */
        int64_t first = row % p->lead[LAST], at[GATHER_ARRAYS], left = least(stop - row, p->lead[LAST] - first);
        for (int i = 0; i < GATHER_ARRAYS; i++)
            at[i] = offset(LAST, p->lead, p->strides[i], row / p->lead[LAST]) + first * p->strides[i][LAST];
        if (p->op == BAG_NONE && p->run == 1 && p->size == sizeof(T) && p->components == 1)
            NAME(gather_ones)(p, at, row, left);
        else if (p->op == BAG_NONE)
            NAME(gather_runs)(p, at, row, left, c, end);
        for (int64_t j = 0; p->op != BAG_NONE && j < left; j++) {
            NAME(bag)(p, at, c, end, (T *)p->out + (row + j) * p->run, memory);
            for (int i = 0; i < GATHER_ARRAYS; i++)
                at[i] += p->strides[i][LAST];
        }
        row += left;
    }
}

static int NAME(gather)(const XLA_FFI_CallFrame *frame, const Gather *p)
{
    NAME(GatherWork) work = {.p = p, .rows = 1, .cuts = p->run / GATHER_RUN};
    work.cuts = work.cuts < 1 ? 1 : work.cuts;
    for (int axis = 0; axis < GATHER_AXES; axis++)
        work.rows *= p->lead[axis];
    int64_t each = (least(p->run, GATHER_RUN) + GATHER_PLACE) * p->terms; /* of a row, to be read at once */
    work.each = GATHER_PIECE / each;
    work.each = work.each < 1 ? 1 : work.each;
    int64_t parts = (work.rows + work.each - 1) / work.each * work.cuts;
    int64_t threads = work.rows * work.cuts * each < GATHER_WORTH ? 1 : stretto_threads(frame);
    stretto_parallel(frame, threads, parts, NAME(gather_part), &work);
    return work.failed ? -1 : 0;
}
