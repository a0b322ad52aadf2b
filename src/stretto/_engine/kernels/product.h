/* Matrix products, of one pair or of many: for one type and one level of vectors.

The method is that of Goto and van de Geijn (Anatomy of high-performance matrix multiplication, ACM
TOMS 34, 2008): a tile of C stays in registers, `ROWS` rows by up to three vectors, while the sum
runs over a part of K; the rows of A lie in the nearest cache, and the columns of B in the next.

- What several tasks read is packed once, by all threads, before they start; what one task reads
  alone it packs for itself, or reads as it lies where packing would not be repaid.
- An element's sum is taken in the same order whatever the tasks, the threads, the batch and the
  place: parts of K of a length that K alone decides, each from its first product to its last.
- Where there are few rows and B lies along K (x Wᵀ of a few rows), lanes run along K instead.
- Operands of bfloat16 or float16 become floats as they are packed, and C is rounded from floats, once,
  as a row of tiles is finished. Where the processor multiplies pairs of bfloat16 (`stretto_pairs`), two
  that follow each other along K are packed as a word of T's size, and K counts words: twice the rate.
  That instruction takes numbers below 2^-126 for zeros, as XLA has the others do.
- Of X Xᵀ the tiles below the diagonal are those above it, turned: the same products in the same order.
- Integers are summed modulo 2^32, in words of two or of four where they are narrow: integers.h.

`T`, `LANES`, `ROWS` and `NAME` are those of lanes.h.
*/

#include <string.h>

#define COLUMNS (3 * LANES)

#define FEW_ROWS 24    /* up to which lanes run along K where B lies so */
#define UNPACKED 48    /* rows below which B is read as it lies */
#define DEPTH 320      /* the most of K in a part */
#define MIRRORED 96    /* rows from which X Xᵀ is computed above its diagonal alone */
#define PART_COLUMNS (11 * COLUMNS)
#define BESIDE (1 << 18) /* elements that are summed beside C: what the second cache holds */
#define AHEAD 10       /* rows of B that are fetched ahead */

/* Do this with the kind as a constant: of all kinds, of those of single elements of a row, of those
that few rows have along K (words that lie side by side, where there are words), or of last words. */
#undef BY_KIND
#undef BY_ROW
#undef BY_ALONG
#undef BY_LAST
#undef MULTIPLIED
#undef WITH_PAIRS
#undef WITH_QUADS
#define CASE_OF(kind, ...) case kind: { enum { KIND = kind }; __VA_ARGS__; } break;
#if defined(INTEGERS)
#define BY_ROW(kind, ...)                                                                          \
    switch (kind) {                                                                                \
        CASE_OF(PLAIN, __VA_ARGS__) CASE_OF(INT8, __VA_ARGS__)                                     \
        CASE_OF(UINT8, __VA_ARGS__) CASE_OF(INT16, __VA_ARGS__)                                    \
    }
#define WORDS_BESIDE(...)                                                                          \
    CASE_OF(KIND_OF(INT8, 2, 0), __VA_ARGS__) CASE_OF(KIND_OF(UINT8, 2, 0), __VA_ARGS__)           \
    CASE_OF(KIND_OF(INT16, 2, 0), __VA_ARGS__) CASE_OF(KIND_OF(INT8, 4, 0), __VA_ARGS__)
#define BY_ALONG(kind, ...)                                                                        \
    switch (kind) {                                                                                \
        CASE_OF(PLAIN, __VA_ARGS__) WORDS_BESIDE(__VA_ARGS__)                                      \
    }
#define BY_KIND(kind, ...)                                                                         \
    switch (kind) {                                                                                \
        WORDS_BESIDE(__VA_ARGS__)                                                                  \
        CASE_OF(KIND_OF(INT8, 2, 2), __VA_ARGS__) CASE_OF(KIND_OF(UINT8, 2, 2), __VA_ARGS__)       \
        CASE_OF(KIND_OF(INT16, 2, 2), __VA_ARGS__) CASE_OF(KIND_OF(INT8, 4, 4), __VA_ARGS__)       \
    default:                                                                                       \
        BY_ROW(kind, __VA_ARGS__)                                                                  \
    }
#define BY_LAST(kind, ...)                                                                         \
    switch (kind) {                                                                                \
        CASE_OF(KIND_OF(INT8, 2, 1), __VA_ARGS__) CASE_OF(KIND_OF(UINT8, 2, 1), __VA_ARGS__)       \
        CASE_OF(KIND_OF(INT16, 2, 1), __VA_ARGS__) CASE_OF(KIND_OF(INT8, 4, 1), __VA_ARGS__)       \
        CASE_OF(KIND_OF(INT8, 4, 2), __VA_ARGS__) CASE_OF(KIND_OF(INT8, 4, 3), __VA_ARGS__)        \
    }
#elif defined(NARROW)
#define BY_ROW(kind, ...)                                                                          \
    switch (kind) {                                                                                \
        CASE_OF(PLAIN, __VA_ARGS__) CASE_OF(BFLOAT16, __VA_ARGS__) CASE_OF(FLOAT16, __VA_ARGS__)   \
    }
#define BY_ALONG(kind, ...)                                                                        \
    switch (kind) {                                                                                \
        CASE_OF(PAIRS, __VA_ARGS__)                                                                \
    default:                                                                                       \
        BY_ROW(kind, __VA_ARGS__)                                                                  \
    }
#define BY_KIND(kind, ...)                                                                         \
    switch (kind) {                                                                                \
        CASE_OF(APART, __VA_ARGS__)                                                                \
    default:                                                                                       \
        BY_ALONG(kind, __VA_ARGS__)                                                                \
    }
#define BY_LAST(kind, ...) switch (ALONE) { CASE_OF(ALONE, __VA_ARGS__) }
#else
#define BY_KIND(kind, ...) switch (PLAIN) { CASE_OF(PLAIN, __VA_ARGS__) }
#define BY_ROW BY_KIND
#define BY_ALONG BY_KIND
#define BY_LAST BY_KIND
#endif
#if defined(INTEGERS) && defined(PAIR_SUMS)
#define WITH_PAIRS 1
#define MULTIPLIED(sum, left, right)                                                               \
    if (pairs == 2)                                                                                \
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));                        \
    else if (pairs)                                                                                \
        sum += PAIR_SUMS(left, right);                                                             \
    else                                                                                           \
        sum += (left) * (right)
#elif defined(NARROW) && defined(HAS_PAIRS)
#define WITH_PAIRS 1
#define MULTIPLIED(sum, left, right)                                                               \
    if (pairs)                                                                                     \
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));                       \
    else                                                                                           \
        sum += (left) * (right)
#else
#define WITH_PAIRS 0
#define MULTIPLIED(sum, left, right) sum += (left) * (right)
#undef BY_ALONG /* there are no words */
#define BY_ALONG BY_ROW
#endif
#if defined(INTEGERS) && defined(HAS_PAIRS)
#define WITH_QUADS 1
#else
#define WITH_QUADS 0
#endif

/* Elements of any kind: `at` and `apart` count them as they lie. */

#if defined(INTEGERS)
#include "integers.h"
#else
#if defined(NARROW)
typedef uint16_t NAME(Halves) __attribute__((vector_size(LANES * 2), aligned(2), may_alias));
typedef T NAME(Looser) __attribute__((vector_size(LANES * sizeof(T)), aligned(2), may_alias));
#endif

INLINE Vec NAME(load)(const void *base, int64_t at, int64_t apart, const int kind)
{
#if defined(NARROW)
    const uint16_t *p = (const uint16_t *)base + at;
    switch (kind) {
    case BFLOAT16: return (Vec)((Naturals)FROM_HALVES(p) << 16);
    case FLOAT16: return FROM_FLOAT16(p);
    case PAIRS: return *(const NAME(Looser) *)p;
    case APART: return (Vec)((Naturals)FROM_HALVES(p) | (Naturals)FROM_HALVES(p + apart) << 16);
    case ALONE: return (Vec)(Naturals)FROM_HALVES(p);
    }
#endif
    return LOAD((const T *)base + at);
}

INLINE T NAME(one)(const void *base, int64_t at, int64_t apart, const int kind)
{
#if defined(NARROW)
    const uint16_t *p = (const uint16_t *)base + at;
    if (kind == FLOAT16)
        return ONE_FLOAT16(p);
    union {
        NATURAL bits;
        T value;
    } word = {kind == BFLOAT16 ? (NATURAL)p[0] << 16 : p[0]};
    if (kind == PAIRS || kind == APART)
        word.bits |= (NATURAL)p[apart] << 16;
    if (kind != PLAIN)
        return word.value;
#endif
    return ((const T *)base)[at];
}

/* Round to nearest even. */
INLINE void NAME(store)(void *base, int64_t at, Vec v, const int kind)
{
#if defined(NARROW)
    uint16_t *p = (uint16_t *)base + at;
    Naturals bits = (Naturals)v, nan = (Naturals)(v != v);
    Naturals rounded = bits + 0x7fff + (bits >> 16 & 1);
    if (kind == BFLOAT16) {
        rounded = ((rounded & ~nan) | ((bits | 0x400000) & nan)) >> 16;
        *(NAME(Halves) *)p = __builtin_convertvector(rounded, NAME(Halves));
    } else if (kind == FLOAT16)
        TO_FLOAT16(p, v);
    else
#endif
        STORE((T *)base + at, v);
}

INLINE int NAME(size)(int kind) { return kind == PLAIN ? (int)sizeof(T) : 2; }

/* The elements that lie side by side in a word, or -1 where they lie apart. */
INLINE int NAME(beside)(int kind) { return kind >= APART ? -1 : 1 + (kind == PAIRS); }

/* How many elements a word of this product has; kinds of words, of which so many lie apart, and of
the last one; and that of an element. */
INLINE int NAME(word_of)(int kind)
{
    return 1 + (WITH_PAIRS && stretto_pairs && kind == BFLOAT16);
}

INLINE int NAME(word_kind)(int kind, int word, int parts) { return parts ? APART : PAIRS; }
INLINE int NAME(last_kind)(int kind, int odd) { return ALONE; }
INLINE int NAME(element_kind)(int kind) { return kind == PAIRS ? BFLOAT16 : kind; }
#endif

/* Where an element lies. */
INLINE const void *NAME(place)(const void *base, int64_t at, int kind)
{
    return (const char *)base + at * NAME(size)(kind);
}

/* Of words of four: the first bits, and so what is added to each element of A. */
#undef SIGNS
#define SIGNS ((Naturals){0} + 0x80808080u)

/* One tile */

INLINE void NAME(tile)(
    const int rows, const int vectors, const int pairs, const T *a, int64_t a_m, int64_t a_k, const T *b,
    int64_t b_k, int64_t k, T *c, int64_t c_m, int add)
{
    Vec sum[ROWS][3], more[3] = {{0}};
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (Vec){0};
    for (int64_t l = 0; l < k; l++) {
        Vec right[3];
UNROLL
        for (int j = 0; j < vectors; j++) {
            right[j] = LOAD(b + j * LANES);
            __builtin_prefetch(b + AHEAD * b_k + j * LANES);
        }
        __builtin_prefetch(a + 32 * a_k);
        if (pairs == 2) {
            Vec left = (Vec)SIGNS;
UNROLL
            for (int j = 0; j < vectors; j++) {
                MULTIPLIED(more[j], left, right[j]);
            }
        }
UNROLL
        for (int i = 0; i < rows; i++) {
            Vec left = a[i * a_m] - (Vec){0};
UNROLL
            for (int j = 0; j < vectors; j++) {
                MULTIPLIED(sum[i][j], left, right[j]);
            }
        }
        a += a_k;
        b += b_k;
    }
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < vectors; j++) {
            T *at = c + i * c_m + j * LANES;
            if (pairs == 2)
                sum[i][j] -= more[j];
            if (add)
                sum[i][j] += LOAD(at);
            STORE(at, sum[i][j]);
        }
}

/* A case for each height and width of a tile. */
#define WIDTHS(CASE, r) CASE(r, 1) CASE(r, 2) CASE(r, 3)
#define FOUR_HIGH(CASE) WIDTHS(CASE, 1) WIDTHS(CASE, 2) WIDTHS(CASE, 3) WIDTHS(CASE, 4)
#if ROWS == 8
#define EACH_TILE(CASE)                                                                                \
    FOUR_HIGH(CASE) WIDTHS(CASE, 5) WIDTHS(CASE, 6) WIDTHS(CASE, 7) WIDTHS(CASE, 8)
#else
#define EACH_TILE(CASE) FOUR_HIGH(CASE)
#endif

#define TILE(r, v)                                                                                 \
    case 8 * (r) + (v):                                                                            \
        if (WITH_QUADS && packed == 3)                                                             \
            NAME(tile)(r, v, 2, a, 1, ROWS, b, b_k, k, c, c_m, add);                               \
        else if (WITH_PAIRS && packed == 2)                                                        \
            NAME(tile)(r, v, 1, a, 1, ROWS, b, b_k, k, c, c_m, add);                               \
        else if (packed)                                                                           \
            NAME(tile)(r, v, 0, a, 1, ROWS, b, b_k, k, c, c_m, add);                               \
        else                                                                                       \
            NAME(tile)(r, v, 0, a, a_m, a_k, b, b_k, k, c, c_m, add);                              \
        return;

/* `packed`: whether A is; 2 where both sides are words of two, 3 where they are of four. */
static __attribute__((noinline)) void NAME(tile_of)(
    int rows, int vectors, int packed, const T *a, int64_t a_m, int64_t a_k, const T *b,
    int64_t b_k, int64_t k, T *c, int64_t c_m, int add)
{
    switch (8 * rows + vectors) {
        EACH_TILE(TILE)
    }
}

/* Packing */

#if defined(__GNUC__) && !defined(__clang__)
#undef NUMBERED
#if LANES == 16
#define NUMBERED {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
#elif LANES == 8
#define NUMBERED {0, 1, 2, 3, 4, 5, 6, 7}
#elif LANES == 4
#define NUMBERED {0, 1, 2, 3}
#else
#define NUMBERED {0, 1}
#endif

/* Exchange the other half of each block of 2 `half` lanes of one row with the first of another. The
places are computed as vectors: of elements that a loop sets GCC makes no constants. */
INLINE void NAME(exchange)(
    Vec *one, Vec *other, const int half)
{
    Places i = NUMBERED;
    Places low = i + (((i & half) != 0) & (LANES - half));
    Vec first = *one;
    *one = __builtin_shuffle(first, *other, low);
    *other = __builtin_shuffle(first, *other, low + half);
}
#endif

/* Turn a square of LANES rows that lie along K into columns: in registers, by exchanging elements,
then pairs, and so on, where the compiler has shuffles of vectors. */
INLINE void NAME(turn)(
    const void *from, int64_t at, int64_t stride, const int kind, T *to, int64_t to_stride)
{
#if defined(__GNUC__) && !defined(__clang__)
    Vec row[LANES];
    for (int i = 0; i < LANES; i++)
        row[i] = NAME(load)(from, at + i * stride, 0, kind);
#pragma GCC unroll 4
    for (int half = 1; half < LANES; half *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & half))
                NAME(exchange)(&row[i], &row[i + half], half);
    for (int i = 0; i < LANES; i++)
        STORE(to + i * to_stride, row[i]);
#else
    for (int64_t l = 0; l < LANES; l++)
        for (int64_t j = 0; j < LANES; j++)
            to[l * to_stride + j] = NAME(one)(from, at + j * stride + l * NAME(beside)(kind), 1, kind);
#endif
}

/* Turn ROWS rows of LANES that lie along K: for each of K its rows side by side. */
INLINE void NAME(turn_rows)(
    const void *from, int64_t at, int64_t stride, const int kind, T *to)
{
#if ROWS >= LANES || !defined(__GNUC__) || defined(__clang__)
    for (int64_t i = 0; i < ROWS; i += LANES)
        NAME(turn)(from, at + i * stride, stride, kind, to + i, ROWS);
#else /* a vector holds the rows of two */
    Vec row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = NAME(load)(from, at + i * stride, 0, kind);
#pragma GCC unroll 4
    for (int half = 1; half < ROWS; half *= 2)
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
            if (!(i & half))
                NAME(exchange)(&row[i], &row[i + half], half);
    Places i = NUMBERED, low = i + ((i >= ROWS) & (LANES - ROWS)), high = low + ROWS;
    for (int r = 0; r < ROWS; r += 2) {
        STORE(to + r * ROWS, __builtin_shuffle(row[r], row[r + 1], low));
        STORE(to + (r + ROWS) * ROWS, __builtin_shuffle(row[r], row[r + 1], high));
    }
#endif
}

/* Put ROWS rows of A, if there are so many, along a part of K, side by side: for each k its rows. */
INLINE void NAME(pack_rows)(
    const void *a, int64_t a_m, int64_t a_k, int64_t apart, const int kind, int64_t rows, int64_t k,
    T *out)
{
    int64_t l = 0;
    if (a_k == NAME(beside)(kind) && rows >= ROWS)
        for (; l + LANES <= k; l += LANES)
            NAME(turn_rows)(a, l * a_k, a_m, kind, out + l * ROWS);
    else if (a_m == 1 && rows >= ROWS && kind == PLAIN)
        for (; l < k; l++)
            *(NAME(LooseColumn) *)(out + l * ROWS) = *(const NAME(LooseColumn) *)((const T *)a + l * a_k);
    else if (a_m == 1 && rows >= (ROWS > LANES ? ROWS : LANES))
        for (; l + 1 < k; l++) /* more is written than ROWS: over what follows, but for the last */
            for (int i = 0; i < ROWS; i += LANES)
                STORE(out + l * ROWS + i, NAME(load)(a, i + l * a_k, apart, kind));
    for (; l < k; l++)
        for (int64_t i = 0; i < rows && i < ROWS; i++)
            out[l * ROWS + i] = NAME(one)(a, i * a_m + l * a_k, apart, kind);
}

INLINE void NAME(copy_rows)(
    const void *b, int64_t b_k, int64_t apart, const int kind, int64_t k, const int vectors, T *out)
{
    for (int64_t l = 0; l < k; l++)
UNROLL
        for (int j = 0; j < vectors; j++)
            STORE(out + (l * vectors + j) * LANES, NAME(load)(b, l * b_k + j * LANES, apart, kind));
}

/* Put columns (at most COLUMNS) of B, along a part of K, in rows of so many vectors. */
INLINE void NAME(pack_columns)(
    const void *b, int64_t b_k, int64_t b_n, int64_t apart, const int kind, int64_t columns, int64_t k,
    int vectors, T *out)
{
    int64_t width = (int64_t)vectors * LANES;
    if (b_n == 1 && columns == width) {
        if (vectors == 3)
            NAME(copy_rows)(b, b_k, apart, kind, k, 3, out);
        else if (vectors == 2)
            NAME(copy_rows)(b, b_k, apart, kind, k, 2, out);
        else
            NAME(copy_rows)(b, b_k, apart, kind, k, 1, out);
        return;
    }
    int64_t along = b_k == NAME(beside)(kind), l0 = 0, deep = k / LANES * LANES;
    int64_t turned = along && columns >= LANES ? columns : 0; /* the last in part once more */
    if (b_n == 1 && b_k > 0 && NAME(beside)(kind) < 2) /* columns past the last are those of the next rows, and in vain */
        for (; l0 < k - (width - columns + b_k - 1) / b_k; l0++)
            for (int j = 0; j < vectors; j++)
                STORE(out + l0 * width + j * LANES, NAME(load)(b, l0 * b_k + j * LANES, apart, kind));
    for (int64_t j = 0; j < turned; j += LANES)
        for (int64_t l = 0, from = least(j, columns - LANES); l < deep; l += LANES)
            NAME(turn)(b, from * b_n + l * b_k, b_n, kind, out + l * width + from, width);
    for (int64_t j = 0; j < columns; j++)
        for (int64_t l = turned ? deep : l0; l < k; l++)
            out[l * width + j] = NAME(one)(b, j * b_n + l * b_k, apart, kind);
    for (int64_t l = l0; l < k; l++)
        for (int64_t j = columns; j < width; j++)
            out[l * width + j] = 0;
}

/* The vectors of the next tile, where so many columns are left: as equal as can be, since a tile of
one vector loads as much as it multiplies. */
static inline int NAME(next)(int64_t columns)
{
    int64_t vectors = (columns + LANES - 1) / LANES;
    return vectors == 4 ? 2 : vectors < 3 ? (int)vectors : 3;
}

/* `odd`: how many elements the last word of K has, if it is not whole. */
static void NAME(pack_tiles)(
    const void *b, int64_t b_k, int64_t b_n, int64_t apart, int kind, int odd, int64_t columns, int64_t k,
    T *out)
{
    for (int64_t j = 0; j < columns;) {
        int vectors = NAME(next)(columns - j);
        int64_t wide = (int64_t)vectors * LANES, some = least(columns - j, wide);
        const void *first = NAME(place)(b, j * b_n, kind);
        BY_KIND(kind, NAME(pack_columns)(first, b_k, b_n, apart, KIND, some, k - !!odd, vectors, out + j * k));
        if (odd) {
            const void *last = NAME(place)(first, (k - 1) * b_k, kind);
            T *end = out + j * k + (k - 1) * wide;
            BY_LAST(NAME(last_kind)(kind, odd), NAME(pack_columns)(last, 0, b_n, apart, KIND, some, 1, vectors, end));
        }
        j += wide;
    }
}

/* What is done with a finished part of C, which is that of a pair from row `i` and column `j` on */

INLINE Vec NAME(finished)(const Product *p, Vec v, const void *added, int64_t at, const int kind)
{
    if (p->added) {
        T some[LANES];
        if (kind != PLAIN) /* as the product alone would be, which may be infinite */
            NAME(store)(some, 0, v, kind), v = NAME(load)(some, 0, 0, kind);
        v += NAME(load)(added, at, 0, kind);
    }
    if (p->relu)
        v = (Vec)((Places)v & ~(Places)(v <= 0)); /* NaN stays */
    return v;
}

INLINE void NAME(finish_as)(
    const Product *p, const T *c, int64_t c_m, void *out, const void *added, int64_t rows,
    int64_t columns, const int kind)
{
    const size_t size = (size_t)NAME(size)(kind);
    int64_t whole = columns / LANES * LANES, rest = columns - whole;
    for (int64_t i = 0; i < rows; i++, c += c_m) {
        for (int64_t j = 0; j < whole; j += LANES)
            NAME(store)(out, i * p->c_m + j,
                        NAME(finished)(p, LOAD(c + j), added, i * p->added_m + j, kind), kind);
        if (rest) {
            T some[LANES] = {0}, other[LANES] = {0};
            memcpy(some, c + whole, (size_t)rest * sizeof(T));
            if (p->added)
                memcpy(other, NAME(place)(added, i * p->added_m + whole, kind), (size_t)rest * size);
            NAME(store)(some, 0, NAME(finished)(p, LOAD(some), other, 0, kind), kind);
            memcpy((void *)NAME(place)(out, i * p->c_m + whole, kind), some, (size_t)rest * size);
        }
    }
}

/* `c`: sums, `beside` C or in it. */
static void NAME(finish)(
    const Product *p, const T *c, int64_t c_m, int64_t pair, int64_t i, int64_t j, int64_t rows,
    int64_t columns, int beside)
{
    if (!beside && !p->added && !p->relu)
        return;
    void *out = (void *)NAME(place)(p->c, offset(BATCH_AXES, p->batch, p->c_batch, pair) + i * p->c_m + j, p->c_kind);
    const void *added = p->added
        ? NAME(place)(p->added, offset(BATCH_AXES, p->batch, p->added_batch, pair) + i * p->added_m + j, p->c_kind) : NULL;
    BY_ROW(p->c_kind, NAME(finish_as)(p, c, c_m, out, added, rows, columns, KIND));
}

/* Tasks */

typedef struct {
    const Product *p;
    int64_t parts, depth;     /* of K: how many, and the length of all but the last */
    int64_t tall, wide;       /* how many parts the rows and the columns are cut into */
    int64_t rows, columns;    /* of such a part */
    int in_place, a_in_place; /* whether B and A are read as they lie */
    int mirrored;             /* whether C is symmetric, and what is below its diagonal is turned */
    int thin;                 /* of few rows: whether lanes run along columns */
    T *a, *b;                 /* what is packed before tasks start, if it is */
    int64_t a_each, b_each;   /* of one pair, in elements; 0 where all share it */
    int64_t width;            /* of all columns of B, packed */
    int failed;
} NAME(Plan);
#define Plan NAME(Plan)

static int64_t NAME(panel)(const Plan *plan, int64_t part)
{
    return least(plan->p->k - part * plan->depth, plan->depth);
}

static void NAME(pack_a)(const Product *p, int64_t first, int64_t rows, int64_t k, int last, T *out)
{
    int odd = last ? p->odd : 0;
    const void *a = NAME(place)(p->a, first, p->a_kind);
    BY_KIND(p->a_kind, NAME(pack_rows)(a, p->a_m, p->a_k, p->a_apart, KIND, rows, k - !!odd, out));
    if (odd)
        BY_LAST(NAME(last_kind)(p->a_kind, odd),
                NAME(pack_rows)(NAME(place)(a, (k - 1) * p->a_k, p->a_kind), p->a_m, 0, p->a_apart, KIND,
                                rows, 1, out + (k - 1) * ROWS));
#if WITH_QUADS
    for (int64_t i = 0; WORD(p->a_kind) == 4 && i < k * ROWS; i++)
        out[i] ^= 0x80808080u;
#endif
}

static void NAME(pack_b)(const Product *p, int64_t first, int64_t columns, int64_t k, int last, T *out)
{
    NAME(pack_tiles)(NAME(place)(p->b, first, p->b_kind), p->b_k, p->b_n, p->b_apart, p->b_kind,
                        last ? p->odd : 0, columns, k, out);
}

/* Of A, packed: part by part of K, and in each by tiles of rows; of B by tiles of columns. */
static void NAME(pack_a_part)(void *work, int64_t index)
{
    Plan *plan = work;
    const Product *p = plan->p;
    int64_t tiles = (p->m + ROWS - 1) / ROWS, pair = index / tiles, i = index % tiles * ROWS;
    int64_t first = offset(BATCH_AXES, p->batch, p->a_batch, plan->a_each ? pair : 0) + i * p->a_m;
    T *out = plan->a + pair * plan->a_each;
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t k = NAME(panel)(plan, part), from = part * plan->depth;
        NAME(pack_a)(p, first + from * p->a_k, p->m - i, k, from + k == p->k,
                     out + from * tiles * ROWS + i * k);
    }
}

static void NAME(pack_b_part)(void *work, int64_t index)
{
    Plan *plan = work;
    const Product *p = plan->p;
    int64_t pair = index / plan->wide, j0 = index % plan->wide * plan->columns;
    int64_t first = offset(BATCH_AXES, p->batch, p->b_batch, plan->b_each ? pair : 0) + j0 * p->b_n;
    T *out = plan->b + pair * plan->b_each;
    int64_t columns = least(p->n - j0, plan->columns);
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t k = NAME(panel)(plan, part), from = part * plan->depth;
        NAME(pack_b)(p, first + from * p->b_k, columns, k, from + k == p->k,
                     out + from * plan->width + j0 * k);
    }
}

/* One part of C, of one pair */
static void NAME(task)(void *work, int64_t index)
{
    Plan *plan = work;
    const Product *p = plan->p;
    int64_t column = index % plan->wide, row = index / plan->wide % plan->tall;
    int64_t pair = index / plan->wide / plan->tall;
    if (plan->mirrored) /* the longest first */
        column = plan->wide - 1 - column;
    int64_t j0 = column * plan->columns, i0 = row * plan->rows;
    int64_t columns = least(p->n - j0, plan->columns), rows = least(p->m - i0, plan->rows);
    if (plan->mirrored)
        rows = least(rows, j0 + columns - i0);
    int64_t a_first = offset(BATCH_AXES, p->batch, p->a_batch, pair) + i0 * p->a_m;
    int64_t b_first = offset(BATCH_AXES, p->batch, p->b_batch, pair) + j0 * p->b_n;
    /* What is rounded in the end is summed beside: a row of tiles, or all where there are parts. */
    T *c = (T *)p->c + offset(BATCH_AXES, p->batch, p->c_batch, pair) + i0 * p->c_m + j0;
    int64_t c_m = p->c_m, c_tile = c_m;
    T edge[ROWS * COLUMNS] __attribute__((aligned(64)));
    int beside = p->c_kind != PLAIN;
    if (beside) {
        c_m = up(columns, LANES), c_tile = plan->parts > 1 ? c_m : 0;
        c = stretto_scratch(SLOT_C, (size_t)((c_tile ? up(rows, ROWS) : ROWS) * c_m) * sizeof(T));
    }
    int64_t a_tiles = (p->m + ROWS - 1) / ROWS;
    int packed = plan->a_in_place ? 0 : p->word == 4 ? 3 : p->word == 2 ? 2 : 1;
    T *own_a = plan->a || plan->a_in_place
        ? NULL : stretto_scratch(SLOT_A, (size_t)(ROWS * plan->depth) * sizeof(T));
    T *own_b = plan->b ? NULL
        : stretto_scratch(SLOT_B, (size_t)((plan->in_place ? LANES : up(columns, LANES)) * plan->depth) * sizeof(T));
    if (!c || (!own_a && !plan->a && !plan->a_in_place) || (!own_b && !plan->b)) {
        plan->failed = 1;
        return;
    }
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t k = NAME(panel)(plan, part), from = part * plan->depth;
        const T *b_part = (const T *)p->b + b_first + from * p->b_k;
        int64_t ragged = columns % LANES, last = columns - ragged;
        if (!plan->b && !plan->in_place)
            NAME(pack_b)(p, b_first + from * p->b_k, columns, k, from + k == p->k, own_b);
        else if (!plan->b && ragged)
            NAME(pack_columns)(b_part + last, p->b_k, 1, 0, PLAIN, ragged, k, 1, own_b);
        for (int64_t i = 0; i < rows; i += ROWS) {
            int height = (int)least(rows - i, ROWS);
            const T *a_tile;
            if (plan->a)
                a_tile = plan->a + pair * plan->a_each + from * a_tiles * ROWS + (i0 + i) * k;
            else {
                int64_t first = a_first + i * p->a_m + from * p->a_k;
                a_tile = plan->a_in_place ? (const T *)p->a + first : own_a;
                if (!plan->a_in_place)
                    NAME(pack_a)(p, first, p->m - i0 - i, k, from + k == p->k, own_a);
            }
            int64_t j = 0;
            while (j < columns) {
                int vectors = NAME(next)(plan->in_place && j < last ? last - j : columns - j);
                int64_t wide = (int64_t)vectors * LANES, b_k = wide;
                if (plan->mirrored && j0 + j + wide <= i0 + i) {
                    j += wide;
                    continue;
                }
                const T *b_tile;
                if (plan->b)
                    b_tile = plan->b + pair * plan->b_each + from * plan->width + (j0 + j) * k;
                else if (!plan->in_place)
                    b_tile = own_b + j * k;
                else if (j < last)
                    b_tile = b_part + j, b_k = p->b_k;
                else
                    b_tile = own_b;
                int whole = beside || j + wide <= columns;
                T *to = c + i * c_tile + j;
                NAME(tile_of)(height, vectors, packed, a_tile, p->a_m, p->a_k, b_tile, b_k, k,
                              whole ? to : edge, whole ? c_m : COLUMNS, whole && part > 0);
                for (int r = 0; r < height && !whole; r++)
                    for (int64_t q = 0; q < columns - j; q++)
                        to[r * c_m + q] = (part ? to[r * c_m + q] : 0) + edge[r * COLUMNS + q];
                j += wide;
            }
            if (part == plan->parts - 1 && !plan->mirrored) /* while they are near */
                NAME(finish)(p, c + i * c_tile, c_m, pair, i0 + i, j0, height, columns, beside);
        }
    }
}

INLINE T *NAME(of_pair)(const Product *p, int64_t pair)
{
    return (T *)p->c + offset(BATCH_AXES, p->batch, p->c_batch, pair);
}

/* Turn what is above the diagonal of C, below which nothing may have been computed: for some rows. */
static void NAME(mirror)(void *work, int64_t index)
{
    const Plan *plan = work;
    const Product *p = plan->p;
    int64_t blocks = (p->m + LANES - 1) / LANES, i = index % blocks * LANES, rows = least(p->m - i, LANES);
    T *c = NAME(of_pair)(p, index / blocks);
    for (int64_t j = 0; j < i; j += LANES) {
        T *to = c + i * p->c_m + j;
        if (rows == LANES)
            NAME(turn)(c, j * p->c_m + i, p->c_m, PLAIN, to, p->c_m);
        else
            for (int64_t r = 0; r < rows; r++)
                for (int64_t q = 0; q < LANES; q++)
                    to[r * p->c_m + q] = c[(j + q) * p->c_m + i + r];
    }
}

static void NAME(finish_mirrored)(void *work, int64_t index)
{
    const Product *p = ((const Plan *)work)->p;
    int64_t blocks = (p->m + LANES - 1) / LANES, i = index % blocks * LANES;
    NAME(finish)(p, NAME(of_pair)(p, index / blocks) + i * p->c_m, p->c_m, index / blocks, i, 0,
                 least(p->m - i, LANES), p->n, 0);
}

/* A few rows times columns that lie along K, as many at once as there are registers for: where any of
these loops is not unrolled, GCC keeps the sums on the stack. */

#define STRIP (ROWS == 4 ? 3 : 4)

INLINE T NAME(added_up)(Vec sum)
{
#if defined(INTEGERS) && BYTES == 64
    __m256i half = _mm256_add_epi32(_mm512_castsi512_si256((__m512i)sum), _mm512_extracti64x4_epi64((__m512i)sum, 1));
    __m128i some = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    some = _mm_add_epi32(some, _mm_shuffle_epi32(some, 0x4e)); /* in registers: rows of bytes are short */
    return (T)_mm_cvtsi128_si32(_mm_add_epi32(some, _mm_shuffle_epi32(some, 0xb1)));
#else
    T total[LANES];
    STORE(total, sum);
    for (int step = LANES / 2; step; step /= 2)
        for (int s = 0; s < step; s++)
            total[s] += total[s + step];
    return total[0];
#endif
}

INLINE void NAME(along)(
    const int rows, const int columns, const int kind, const void *a, int64_t a_m, const void *b,
    int64_t b_n, int64_t k, T *c, int64_t c_m)
{
    const int word = NAME(beside)(kind), pairs = word / 2, step = word * LANES;
    Vec sum[4][4], more[4] = {{0}};
    T rest[4][4];
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < columns; j++)
            sum[i][j] = (Vec){0}, rest[i][j] = 0;
    int64_t l = 0;
    for (; l + step <= k; l += step) {
        Vec right[4];
UNROLL
        for (int j = 0; j < columns; j++) {
            __builtin_prefetch(NAME(place)(b, (j + columns) * b_n + l, kind));
            right[j] = NAME(load)(b, j * b_n + l, 0, kind);
            if (pairs == 2) {
                MULTIPLIED(more[j], (Vec)SIGNS, right[j]);
            }
        }
UNROLL
        for (int i = 0; i < rows; i++) {
            Vec left = NAME(load)(a, i * a_m + l, 0, kind);
            if (pairs == 2)
                left = (Vec)((Naturals)left ^ SIGNS);
UNROLL
            for (int j = 0; j < columns; j++) {
                MULTIPLIED(sum[i][j], left, right[j]);
            }
        }
    }
    const int alone = NAME(element_kind)(kind);
    for (; l < k; l++)
UNROLL
        for (int i = 0; i < rows; i++)
UNROLL
            for (int j = 0; j < columns; j++)
                rest[i][j] += NAME(one)(a, i * a_m + l, 0, alone) * NAME(one)(b, j * b_n + l, 0, alone);
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < columns; j++) {
            if (pairs == 2)
                sum[i][j] -= more[j];
            c[i * c_m + j] = NAME(added_up)(sum[i][j]) + rest[i][j];
        }
}

static void NAME(few_rows)(
    const Product *p, const void *a, const void *b, int64_t columns, T *c, int64_t c_m)
{
    for (int64_t j = 0, wide; j < columns; j += wide) {
        wide = columns - j < STRIP ? 1 : STRIP;
        const void *right = NAME(place)(b, j * p->b_n, p->b_kind);
        for (int64_t i = 0; i < p->m; i += 4) {
            int high = (int)least(p->m - i, 4);
            const void *left = NAME(place)(a, i * p->a_m, p->a_kind);
            T *to = c + i * c_m + j;
#define ALONG(r, v)                                                                                \
    case 8 * (r) + (v):                                                                            \
        NAME(along)(r, v, KIND, left, p->a_m, right, p->b_n, p->k, to, c_m);                       \
        break;
            BY_ALONG(p->a_kind, switch (8 * high + wide) {
                ALONG(1, 1) ALONG(1, STRIP) ALONG(2, 1) ALONG(2, STRIP)
                ALONG(3, 1) ALONG(3, STRIP) ALONG(4, 1) ALONG(4, STRIP)
            })
        }
    }
}

/* A row or a few times B, row by row of B, which is read once, in the order in which it lies. */

INLINE void NAME(along_rows)(
    const int rows, const int deep, const int kind, const void *a, int64_t a_m, int64_t a_k,
    const void *b, int64_t b_k, int64_t columns, T *c, int64_t c_m, int add)
{
    T left[4][8];
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int l = 0; l < deep; l++)
            left[i][l] = NAME(one)(a, i * a_m + l * a_k, 0, kind);
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        Vec right[8];
UNROLL
        for (int l = 0; l < deep; l++)
            __builtin_prefetch(NAME(place)(b, (l + deep) * b_k + j, kind)),
                right[l] = NAME(load)(b, l * b_k + j, 0, kind);
UNROLL
        for (int i = 0; i < rows; i++) {
            Vec sum = {0};
            if (add)
                sum = LOAD(c + i * c_m + j);
UNROLL
            for (int l = 0; l < deep; l++)
                sum += left[i][l] * right[l];
            STORE(c + i * c_m + j, sum);
        }
    }
    for (; j < columns; j++)
        for (int i = 0; i < rows; i++) {
            T sum = add ? c[i * c_m + j] : 0;
            for (int l = 0; l < deep; l++)
                sum += left[i][l] * NAME(one)(b, l * b_k + j, 0, kind);
            c[i * c_m + j] = sum;
        }
}

static void NAME(thin)(
    const Product *p, const void *a, const void *b, int64_t columns, T *c, int64_t c_m)
{
    for (int64_t l = 0, deep; l < p->k; l += deep) {
        deep = p->k - l >= 8 ? 8 : 1;
        const void *left = NAME(place)(a, l * p->a_k, p->a_kind);
        const void *right = NAME(place)(b, l * p->b_k, p->b_kind);
#define THIN(r, d)                                                                                 \
    case 16 * (r) + (d):                                                                           \
        NAME(along_rows)(r, d, KIND, left, p->a_m, p->a_k, right, p->b_k, columns, c, c_m, l > 0); \
        break;
        BY_ROW(p->a_kind, switch (16 * p->m + deep) {
            THIN(1, 1) THIN(2, 1) THIN(3, 1) THIN(1, 8) THIN(2, 8) THIN(3, 8)
        })
    }
}

/* Some columns of few rows: summed in C, or beside where they are rounded in the end. */
static void NAME(strip_task)(void *work, int64_t index)
{
    Plan *plan = work;
    const Product *p = plan->p;
    int64_t pair = index / plan->wide, j0 = index % plan->wide * plan->columns;
    int64_t columns = least(p->n - j0, plan->columns), c_m = p->c_m;
    int rounded = p->c_kind != PLAIN;
    const void *a = NAME(place)(p->a, offset(BATCH_AXES, p->batch, p->a_batch, pair), p->a_kind);
    const void *b = NAME(place)(
        p->b, offset(BATCH_AXES, p->batch, p->b_batch, pair) + j0 * p->b_n, p->b_kind);
    T *c = (T *)p->c + offset(BATCH_AXES, p->batch, p->c_batch, pair) + j0;
    if (rounded) {
        c_m = columns;
        c = stretto_scratch(SLOT_C, (size_t)(p->m * columns) * sizeof(T));
    }
    if (!c) {
        plan->failed = 1;
        return;
    }
    (plan->thin ? NAME(thin) : NAME(few_rows))(p, a, b, columns, c, c_m);
    NAME(finish)(p, c, c_m, pair, 0, j0, p->m, columns, rounded);
}

/* The whole */

#define MOST_SCRATCH (32L << 20)

static int NAME(shared_by_all)(const Product *p, const int64_t *strides)
{
    for (int axis = 0; axis < BATCH_AXES; axis++)
        if (p->batch[axis] > 1 && strides[axis])
            return 0;
    return 1;
}

static int NAME(product)(const XLA_FFI_CallFrame *frame, const Product *p)
{
    int64_t pairs = p->batch[0] * p->batch[1] * p->batch[2];
    if (!pairs || !p->m || !p->n)
        return 0;
    double work = (double)pairs * (double)p->m * (double)p->n * (double)(p->k ? p->k : 1);
    int64_t threads = stretto_threads_for(frame, work);
    Plan plan = {.p = p, .wide = 1, .tall = 1, .rows = p->m, .columns = p->n};
    Product words = *p;
    int few = p->k > 1 && p->m <= FEW_ROWS && p->a_k == 1 && p->b_k == 1 && (p->b_n != 1 || p->n == 1);
    plan.thin = !few && p->m <= 3 && p->b_n == 1 && p->k;
    int word = plan.thin || p->k <= 1 ? 1 : NAME(word_of)(p->a_kind);
    if (word > 1) {
        words.word = word;
        words.a_kind = NAME(word_kind)(p->a_kind, word, p->a_k == 1 ? 0 : word);
        words.b_kind = NAME(word_kind)(p->b_kind, word, p->b_k == 1 ? 0 : word);
        words.a_apart = p->a_k, words.b_apart = p->b_k;
        if (!few)
            words.a_k *= word, words.b_k *= word, words.odd = (int)(p->k % word), words.k = (p->k + word - 1) / word;
        plan.p = p = &words;
    }
    if (few || plan.thin) {
        int64_t parts = threads == 1 ? 1 : (4 * threads + pairs - 1) / pairs;
        plan.columns = up((p->n + parts - 1) / parts, 4 * LANES);
        plan.wide = (p->n + plan.columns - 1) / plan.columns;
        stretto_parallel(frame, threads, pairs * plan.wide, NAME(strip_task), &plan);
        return plan.failed ? -1 : 0;
    }
    plan.parts = p->k > DEPTH ? (p->k + DEPTH - 1) / DEPTH : 1;
    plan.depth = plan.parts > 1 ? up((p->k + plan.parts - 1) / plan.parts, 16) : p->k;
    plan.in_place = p->b_kind == PLAIN && p->b_n == 1 && p->m < UNPACKED;
    plan.a_in_place = p->a_kind == PLAIN && p->a_k == 1 && p->n <= COLUMNS;
    plan.mirrored = p->m >= MIRRORED && p->k > 2 && p->a == p->b && p->m == p->n && p->a_m == p->b_n
        && p->a_k == p->b_k && !memcmp(p->a_batch, p->b_batch, sizeof p->a_batch) && p->added != p->c
        && p->c_kind == PLAIN;
    int64_t each = threads == 1 || pairs >= 4 * threads ? 1 : (2 * threads + pairs - 1) / pairs;
    if (p->n >= COLUMNS * 2 * each || p->n >= p->m || each == 1) {
        int64_t cut = (p->n + each - 1) / each;
        plan.columns = up(cut < PART_COLUMNS ? cut : PART_COLUMNS, COLUMNS);
        plan.wide = (p->n + plan.columns - 1) / plan.columns;
    } else {
        plan.columns = p->n < PART_COLUMNS ? p->n : PART_COLUMNS;
        plan.wide = (p->n + plan.columns - 1) / plan.columns;
        plan.rows = up((p->m + each - 1) / each, ROWS);
        plan.tall = (p->m + plan.rows - 1) / plan.rows;
    }
    int64_t most = up(BESIDE / plan.columns, ROWS);
    if (plan.parts > 1 && p->c_kind != PLAIN && plan.rows > most) {
        plan.rows = most;
        plan.tall = (p->m + most - 1) / most;
    }
    plan.width = up(p->n, LANES);
    /* Pack beforehand what several tasks read, if there is room. */
    int a_shared = NAME(shared_by_all)(p, p->a_batch), b_shared = NAME(shared_by_all)(p, p->b_batch);
    int64_t a_size = up(p->m, ROWS) * p->k, b_size = plan.width * p->k;
    int64_t a_pairs = a_shared ? 1 : pairs, b_pairs = b_shared ? 1 : pairs;
    int pack_a = !plan.a_in_place && (plan.wide > 1 || (a_shared && pairs > 1));
    int pack_b = !plan.in_place && (plan.tall > 1 || (b_shared && pairs > 1));
    double room = MOST_SCRATCH / sizeof(T);
    if (pack_a && (double)a_size * (double)a_pairs > room) pack_a = 0;
    if (pack_b && (double)b_size * (double)b_pairs > room) pack_b = 0;
    if (pack_a || pack_b) {
        size_t bytes = ((pack_a ? (size_t)(a_size * a_pairs) : 0) + (pack_b ? (size_t)(b_size * b_pairs) : 0)) * sizeof(T);
        T *memory = stretto_scratch(SLOT_SHARED, bytes + 128);
        if (!memory)
            return -1;
        if (pack_a) {
            plan.a = memory;
            plan.a_each = a_shared ? 0 : a_size;
            memory += up(a_size * a_pairs, 64 / sizeof(T));
            stretto_parallel(frame, threads, a_pairs * ((p->m + ROWS - 1) / ROWS), NAME(pack_a_part), &plan);
        }
        if (pack_b) {
            plan.b = memory;
            plan.b_each = b_shared ? 0 : b_size;
            stretto_parallel(frame, threads, b_pairs * plan.wide, NAME(pack_b_part), &plan);
        }
    }
    stretto_parallel(frame, threads, pairs * plan.tall * plan.wide, NAME(task), &plan);
    if (plan.mirrored && !plan.failed) {
        int64_t blocks = pairs * ((p->m + LANES - 1) / LANES);
        stretto_parallel(frame, threads, blocks, NAME(mirror), &plan);
        if (p->added || p->relu)
            stretto_parallel(frame, threads, blocks, NAME(finish_mirrored), &plan);
    }
    stretto_forget(SLOT_SHARED);
    return plan.failed ? -1 : 0;
}

#undef Plan
