/* Running sums, products and extrema, linear recurrences, the places of extrema, and the k greatest,
along an axis, for one type and one level of vectors.

An array is outer x count x inner elements, and a line is what goes along `count`. Each line is gone
through from its first element to its last, so that what comes out depends on neither vectors nor
threads nor the lines beside it; a vector holds an element of each of LANES lines.

- Where inner is no less than a vector, lines lie side by side: up to ALONG_COLUMNS of them at once,
  so that memory is read row by row, with what they have so far in the first cache. The last vector
  overlaps the one before.
- Else squares of LANES elements of LANES lines are turned, and turned back.
- Places of extrema of few or long rows are found for each lane, and then of all.
- One line or two are gone through alone, with an element in all lanes: four cycles each. Turning
  would take more.

Sums are of blocks of ALONG_BLOCK elements. Those of whole blocks are compensated (Neumaier, 1974, with
Knuth's exact error of a sum), so that errors do not grow with the line. Extrema are NaN from the
first NaN on, and of zeros the positive is greater.

The k greatest are kept in order, with their places. Vectors of a row are compared with the least of
them; few hold a greater, which is put where it belongs. First the greatest of each of some more than
k groups of the row, whose elements lie apart, are taken instead of the row: the k-th of them is no
greater than what is looked for, and leaves little to be put in order where rows rise. */

#include <math.h>

#define ALONG_COLUMNS 256
#define ALONG_BLOCK 16   /* elements of a sum that are added up alone */
#define ALONG_LONG 512   /* elements of a row that is gone through by lanes */
#define ALONG_PART 16384 /* elements that a thread takes at once, or more */
#define ALONG_IS_PLACE(op) ((op) == ALONG_GREATEST || (op) == ALONG_LEAST)

/* What lines have so far: the sum of whole blocks, or what else there is; by how much that is too
great; the two as one number; the sum of the block; and of extrema the place. */
typedef struct {
    Vec value, excess, blocks, block;
    Places place;
} NAME(SoFar);

INLINE NAME(SoFar) NAME(along_begin)(const int op)
{
    int greatest = op == ALONG_MAX || op == ALONG_GREATEST, least = op == ALONG_MIN || op == ALONG_LEAST;
    Vec first = op == ALONG_PRODUCT ? ALL((T)1) : greatest ? ALL(-(T)INFINITY) : least ? ALL((T)INFINITY)
        : op == ALONG_WHOLE_SUM ? (Vec){0} : -(Vec){0};
    return (NAME(SoFar)){.value = first, .blocks = -(Vec){0}, .block = -(Vec){0}};
}

/* Go on to the next elements, which are the j-th, at these places; return what comes out. */
INLINE Vec NAME(along_step)(const int op, NAME(SoFar) *far, Vec x, Vec factor, int64_t j, Places places)
{
    Vec before = far->value;
    Places above = op == ALONG_MAX || op == ALONG_GREATEST ? x > before : x < before;
    switch (op) {
    case ALONG_SUM:
        far->block += x;
        x = far->blocks + far->block;
        if (j % ALONG_BLOCK == ALONG_BLOCK - 1) {
            far->value += far->block;
            Vec added = far->value - before, error = (before - (far->value - added)) + (far->block - added);
            far->excess -= (Vec)((error == error) & (Places)error); /* none of what is not finite */
            far->blocks = far->value - far->excess;
            far->block = -(Vec){0};
        }
        return x;
    case ALONG_WHOLE_SUM:
        return far->value = (Vec)((Naturals)before + (Naturals)x);
    case ALONG_PRODUCT:
        return far->value = before * x;
    case ALONG_RECURRENCE:
        return far->value = factor * before + x;
    case ALONG_MAX:
    case ALONG_MIN: { /* of equals zeros alone differ */
        Places one = (Places)x, other = (Places)before;
        Vec same = (Vec)(op == ALONG_MAX ? one & other : one | other);
        return far->value = CHOOSE(x == before, same, CHOOSE(above | (x != x), x, before));
    }
    default:
        above |= (x != x) & (before == before);
        far->place = (places & above) | (far->place & ~above);
        return far->value = CHOOSE(above, x, before);
    }
}

/* Lines side by side: those from `from` to `to` of one of `outer`. */
INLINE void NAME(along_columns)(const Along *p, const int op, int64_t outer, int64_t from, int64_t to)
{
    NAME(SoFar) far[ALONG_COLUMNS / LANES];
    int64_t width = to - from, vectors = (width + LANES - 1) / LANES;
    for (int64_t v = 0; v < vectors; v++)
        far[v] = NAME(along_begin)(op);
    for (int64_t j = 0; j < p->count; j++) {
        int64_t at = (outer * p->count + (p->reverse ? p->count - 1 - j : j)) * p->inner + from;
        Places number = (Places){0} + (INTEGER)j;
        for (int64_t v = 0; v < vectors; v++) {
            int64_t i = at + least(v * LANES, width - LANES);
            Vec factor = op == ALONG_RECURRENCE && j ? (Vec)LOAD((const T *)p->factor + i) : ALL((T)1);
            Vec out = NAME(along_step)(op, far + v, LOAD((const T *)p->x + i), factor, j, number);
            if (!ALONG_IS_PLACE(op))
                STORE((T *)p->out + i, out);
        }
    }
    for (int64_t v = 0; ALONG_IS_PLACE(op) && v < vectors; v++)
        for (int l = 0; l < LANES; l++)
            ((int32_t *)p->out)[outer * p->inner + from + least(v * LANES, width - LANES) + l] =
                (int32_t)far[v].place[l];
}

/* Where a line begins. */
INLINE int64_t NAME(along_begins)(const Along *p, int64_t line)
{
    return line / p->inner * p->count * p->inner + line % p->inner;
}

/* Bring a square of lines into vectors, or elements of it; or vectors to where the lines are. */
static __attribute__((noinline)) void NAME(along_turn)(
    const Along *p, T *array, int64_t low, int64_t steps, int64_t first, int64_t lines, Vec *square, int back)
{
    if (steps == LANES && lines == LANES && p->inner == 1) {
        T *at = array + first * p->count + low;
        if (back)
            NAME(turn)(square, 0, LANES, PLAIN, at, p->count);
        else
            NAME(turn)(at, 0, p->count, PLAIN, (T *)square, LANES);
        return;
    }
    for (int64_t l = 0; l < lines; l++) {
        T *at = array + NAME(along_begins)(p, first + l) + low * p->inner;
        for (int64_t k = 0; k < steps; k++, at += p->inner)
            if (back)
                *at = square[k][l];
            else
                square[k][l] = *at;
    }
}

/* Up to LANES lines, a square after the other. */
INLINE void NAME(along_squares)(const Along *p, const int op, int64_t first, int64_t lines)
{
    NAME(SoFar) far = NAME(along_begin)(op);
    Vec x[LANES] = {{0}}, factor[LANES] = {{0}};
    for (int64_t j = 0; j < p->count; j += LANES) {
        int64_t steps = least(LANES, p->count - j), low = p->reverse ? p->count - j - steps : j;
        NAME(along_turn)(p, (T *)p->x, low, steps, first, lines, x, 0);
        if (op == ALONG_RECURRENCE)
            NAME(along_turn)(p, (T *)p->factor, low, steps, first, lines, factor, 0);
        for (int64_t i = 0; i < steps; i++) {
            int64_t k = p->reverse ? steps - 1 - i : i;
            Places number = (Places){0} + (INTEGER)(j + i);
            x[k] = NAME(along_step)(op, &far, x[k], j + i ? factor[k] : ALL((T)1), j + i, number);
        }
        if (!ALONG_IS_PLACE(op))
            NAME(along_turn)(p, p->out, low, steps, first, lines, x, 1);
    }
    for (int64_t l = 0; ALONG_IS_PLACE(op) && l < lines; l++)
        ((int32_t *)p->out)[first + l] = (int32_t)far.place[l];
}

/* One line alone. */
INLINE void NAME(along_alone)(const Along *p, const int op, int64_t line)
{
    NAME(SoFar) far = NAME(along_begin)(op);
    int64_t step = p->reverse ? -p->inner : p->inner;
    int64_t i = NAME(along_begins)(p, line) + (p->reverse ? (p->count - 1) * p->inner : 0);
    for (int64_t j = 0; j < p->count; j++, i += step) {
        Vec factor = ALL(op == ALONG_RECURRENCE && j ? ((const T *)p->factor)[i] : (T)1);
        Vec x = ALL(((const T *)p->x)[i]);
        ((T *)p->out)[i] = NAME(along_step)(op, &far, x, factor, j, (Places){0})[0];
    }
}

/* The place of the extremum of a row of no fewer elements than lanes: of each lane, then of all. */
INLINE void NAME(along_row)(const Along *p, const int op, int64_t row)
{
    const T *x = (const T *)p->x + row * p->count;
    NAME(SoFar) far = NAME(along_begin)(op);
    Places number = {0};
    for (int l = 0; l < LANES; l++)
        number[l] = l;
    for (int64_t j = 0; j < p->count; j += LANES) {
        INTEGER at = (INTEGER)least(j, p->count - LANES); /* the last overlap */
        NAME(along_step)(op, &far, LOAD(x + at), (Vec){0}, 0, number + at);
    }
    T best = far.value[0];
    INTEGER place = far.place[0];
    for (int l = 1; l < LANES; l++) {
        T other = far.value[l];
        INTEGER there = far.place[l];
        int same = other == best || (other != other && best != best);
        int better = op == ALONG_GREATEST ? other > best : other < best;
        if (same ? there < place : better || (other != other && best == best))
            best = other, place = there;
    }
    ((int32_t *)p->out)[row] = (int32_t)place;
}

enum { NAME(BY_COLUMNS), NAME(BY_LINE), NAME(BY_SQUARES) };

typedef struct {
    const Along *p;
    int64_t way, lines, units, chunks, together;
} NAME(AlongWork);

/* What is done at once: some columns, a row, or LANES lines, the last of them with those that remain. */
INLINE void NAME(along_unit)(const NAME(AlongWork) *w, const int op, int64_t unit)
{
    if (w->way == NAME(BY_COLUMNS)) {
        int64_t chunk = unit % w->chunks, inner = w->p->inner;
        NAME(along_columns)(w->p, op, unit / w->chunks, chunk * inner / w->chunks, (chunk + 1) * inner / w->chunks);
    } else if (w->way == NAME(BY_LINE)) {
        if (ALONG_IS_PLACE(op))
            NAME(along_row)(w->p, op, unit);
        else
            NAME(along_alone)(w->p, op, unit);
    } else {
        int64_t first = unit * LANES, end = unit == w->units - 1 ? w->lines : first + LANES;
        NAME(along_squares)(w->p, op, first, least(LANES, end - first));
        if (end - first > LANES)
            NAME(along_squares)(w->p, op, end - LANES, LANES);
    }
}

static void NAME(along_part)(void *work, int64_t index)
{
    const NAME(AlongWork) *w = work;
    int64_t end = least(w->units, (index + 1) * w->together);
    for (int64_t unit = index * w->together; unit < end; unit++)
        switch (w->p->op) {
        case ALONG_SUM: NAME(along_unit)(w, ALONG_SUM, unit); break;
        case ALONG_PRODUCT: NAME(along_unit)(w, ALONG_PRODUCT, unit); break;
        case ALONG_MAX: NAME(along_unit)(w, ALONG_MAX, unit); break;
        case ALONG_MIN: NAME(along_unit)(w, ALONG_MIN, unit); break;
        case ALONG_RECURRENCE: NAME(along_unit)(w, ALONG_RECURRENCE, unit); break;
        case ALONG_WHOLE_SUM: NAME(along_unit)(w, ALONG_WHOLE_SUM, unit); break;
        case ALONG_GREATEST: NAME(along_unit)(w, ALONG_GREATEST, unit); break;
        default: NAME(along_unit)(w, ALONG_LEAST, unit);
        }
}

static int NAME(along_axis)(const XLA_FFI_CallFrame *frame, const Along *p)
{
    int64_t lines = p->outer * p->inner, size = lines * p->count;
    if (!size)
        return 0;
    int alone = lines < 3;
    if (ALONG_IS_PLACE(p->op)) /* by lanes; squares are as good, and lanes of short rows take long to compare */
        alone = p->inner == 1 && p->count >= LANES && (lines < LANES || p->count >= ALONG_LONG);
    NAME(AlongWork) w = {.p = p, .lines = lines, .chunks = (p->inner + ALONG_COLUMNS - 1) / ALONG_COLUMNS};
    if (p->inner >= LANES) {
        w.way = NAME(BY_COLUMNS), w.units = p->outer * w.chunks;
    } else if (alone) {
        w.way = NAME(BY_LINE), w.units = lines;
    } else {
        w.way = NAME(BY_SQUARES), w.units = lines < LANES ? 1 : lines / LANES;
    }
    w.together = (w.units * ALONG_PART + size - 1) / size;
    stretto_parallel(frame, stretto_threads_for(frame, 2.0 * (double)size),
                     (w.units + w.together - 1) / w.together, NAME(along_part), &w);
    return 0;
}

/* The k greatest */

/* Integers that rise as the numbers do: of zeros there is one, and NaN is above all. */
INLINE Places NAME(top_keys)(Vec x)
{
    const INTEGER most = (INTEGER)((NATURAL)-1 >> 1);
    Places bits = (Places)(x + (T)0);
    bits ^= (bits >> (8 * sizeof(T) - 1)) & most;
    return ((x != x) & most) | ((x == x) & bits);
}

INLINE int NAME(any)(Places mask)
{
#if BYTES == 64
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif BYTES == 32
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    INTEGER found = 0;
    for (int l = 0; l < LANES; l++)
        found |= mask[l];
    return found != 0;
#endif
}

typedef struct {
    INTEGER *keys;
    int32_t *places;
    int64_t count, k;
    INTEGER above; /* no other is looked for */
} NAME(Top);

/* Put a key that is greater than `above` behind those that are no less. */
static void NAME(top_put)(NAME(Top) *t, INTEGER key, int64_t place)
{
    int64_t low = 0, high = t->count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (t->keys[middle] >= key)
            low = middle + 1;
        else
            high = middle;
    }
    t->count += t->count < t->k;
    memmove(t->keys + low + 1, t->keys + low, (size_t)(t->count - 1 - low) * sizeof *t->keys);
    memmove(t->places + low + 1, t->places + low, (size_t)(t->count - 1 - low) * sizeof *t->places);
    t->keys[low] = key;
    t->places[low] = (int32_t)place;
    if (t->count == t->k)
        t->above = t->keys[t->k - 1];
}

typedef struct {
    const TopK *p;
    int64_t together;
    int failed;
} NAME(TopWork);

static void NAME(top_part)(void *data, int64_t index)
{
    NAME(TopWork) *work = data;
    const TopK *p = work->p;
    const INTEGER none = (INTEGER)((NATURAL)1 << (8 * sizeof(T) - 1));
    const int64_t vectors = (2 * p->k + LANES - 1) / LANES; /* the groups */
    Places *greatest = stretto_scratch(SLOT_A, (size_t)vectors * sizeof(Vec) + (size_t)p->k * sizeof(T));
    if (!greatest) {
        work->failed = 1;
        return;
    }
    int64_t end = least(p->rows, (index + 1) * work->together);
    for (int64_t row = index * work->together; row < end; row++) {
        const T *x = (const T *)p->x + row * p->columns;
        NAME(Top) top = {(INTEGER *)(greatest + vectors), p->places + row * p->k, 0, p->k, none};
        if (p->columns >= 4 * vectors * LANES) {
            for (int64_t v = 0; v < vectors; v++)
                greatest[v] = (Places){0} + none;
            for (int64_t j = 0, v = 0; j + LANES <= p->columns; j += LANES, v = v + 1 < vectors ? v + 1 : 0) {
                Places keys = NAME(top_keys)(LOAD(x + j)), more = keys > greatest[v];
                greatest[v] = (keys & more) | (greatest[v] & ~more);
            }
            for (int64_t v = 0; v < vectors; v++)
                for (int l = 0; l < LANES; l++)
                    if (greatest[v][l] > top.above)
                        NAME(top_put)(&top, greatest[v][l], 0);
            top.count = 0, top.above -= top.above > none;
        }
        for (int64_t j = 0; j < p->columns; j += LANES) {
            int64_t width = least(LANES, p->columns - j);
            Vec last = {0};
            if (width < LANES)
                memcpy(&last, x + j, (size_t)width * sizeof(T));
            Places keys = NAME(top_keys)(width < LANES ? last : (Vec)LOAD(x + j));
            for (int l = 0; NAME(any)(keys > top.above) && l < width; l++)
                if (keys[l] > top.above)
                    NAME(top_put)(&top, keys[l], j + l);
        }
        for (int64_t i = 0; i < p->k; i++)
            ((T *)p->values)[row * p->k + i] = x[top.places[i]];
    }
}

static int NAME(top_k)(const XLA_FFI_CallFrame *frame, const TopK *p)
{
    int64_t size = p->rows * p->columns;
    NAME(TopWork) work = {.p = p, .together = size ? (ALONG_PART + p->columns - 1) / p->columns : 1};
    stretto_parallel(frame, stretto_threads_for(frame, 2.0 * (double)size),
                     (p->rows + work.together - 1) / work.together, NAME(top_part), &work);
    return work.failed ? -1 : 0;
}
