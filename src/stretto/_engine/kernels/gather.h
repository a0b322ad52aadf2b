/* Windows of a table read at indices, and sums, weighted sums and maxima of them, for one type and
one level of vectors: rows of embeddings, bags of rows, an element of each row.

Along each axis of the result both the table and the indices have a stride, either of which may be 0:
so tables and indices of members, windows of several axes and transposed tables are one form. Elements
that lie side by side in the table and in the result are a run, and all runs but those of one element
are copied as bytes, whatever their type. XLA computes the place of each element anew.

- A bag is a sum over one more axis, of `terms`: their places are found once, then columns are added
  up in registers, so that rows come from memory once and nothing between is stored. Rows that do not
  count are left out: they would add zeros, or be -inf. Without weights all are 1.
- Terms are added one after the other in parts of a fixed number, and parts likewise. So bits depend
  neither on threads nor on what else is computed.
- Indices beyond an axis are moved to its ends, or their windows are filled with a value.
*/

#define GATHER_PIECE 16384  /* elements that a thread reads at once */
#define GATHER_RUN 4096     /* elements of a run that a thread takes: longer ones are cut */
#define GATHER_PLACE 32     /* elements that may be read in the time that a place takes */
#define GATHER_WORTH 131072 /* elements from which a second thread is woken */
#define BAG_TERMS 256       /* of a part */
#define BAG_AHEAD 64        /* columns of each row that are asked for before they are read */

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

INLINE void NAME(gather_copy)(const Gather *p, int64_t place, int64_t out, int64_t run)
{
    enum { NEAR = 1024 };
    char *to = (char *)p->out + out * p->size;
    const char *from = (const char *)p->table + place * p->size;
    int64_t bytes = run * p->size, b = 0;
    if (place < 0)
        for (; b < bytes; b += p->size)
            memcpy(to + b, p->fill, (size_t)p->size);
    else if (bytes == sizeof(T))
        memcpy(to, from, sizeof(T));
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

/* Columns from `c` to `end` of a bag whose rows are known, a vector of them at a time: the processor
adds up several at once, since none needs another. The last may have some again: a run has a vector. */
INLINE void NAME(bag_columns)(
    const Gather *p, const T *const *from, const T *factor, int64_t terms, int64_t c, int64_t end, T *out,
    int op)
{
    const Vec none = ALL(op == BAG_GREATEST ? (T)-__builtin_inf() : (T)0);
    for (; c < end; c += LANES) {
        int64_t at = least(c, end - LANES);
        Vec total = none;
        for (int64_t t = 0; t < terms;) {
            Vec part = none;
            for (int64_t last = least(terms, t + BAG_TERMS); t < last; t++) {
                Vec x = LOAD(from[t] + at);
                part = op == BAG_GREATEST ? NAME(bag_greater)(part, x) : part + x * factor[t];
            }
            total = op == BAG_GREATEST ? NAME(bag_greater)(total, part) : total + part;
        }
        STORE(out + at, p->divided ? total / ALL((T)p->divisor) : total);
    }
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
        factor[terms] = p->weights ? ((const T *)p->weights)[at[GATHER_WEIGHT] + t * p->term[GATHER_WEIGHT]] : 1;
        from[terms] = place < 0 ? filled : (const T *)p->table + place;
        for (int64_t i = c; i < least(end, c + BAG_AHEAD); i += 64 / (int64_t)sizeof(T))
            __builtin_prefetch(from[terms] + i);
        terms++;
    }
    if (p->op == BAG_GREATEST)
        NAME(bag_columns)(p, from, factor, terms, c, end, out, BAG_GREATEST);
    else
        NAME(bag_columns)(p, from, factor, terms, c, end, out, BAG_SUM);
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
        if (p->op == BAG_NONE)
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
