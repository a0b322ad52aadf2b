/* Elements of integers, and words of several that follow each other along K: for one level of vectors.

Sums are modulo 2^32, exact in any order. Elements of 8 and 16 bits become words of 32 as they are
packed: two of 16 bits, which one instruction multiplies and adds up (`PAIR_SUMS`); or four of 8, where
they are signed and the processor has VNNI (`stretto_quads`). That instruction takes A's as unsigned. So
128 is added to each, which is to turn its first bit, and 128 times the sum of B's is subtracted.

A kind is an element's type, 16 times the number of them in a word (0 where there are no words), and
256 times the number of those that lie apart (0 where they lie side by side).
*/

#define TYPE(kind) ((kind) & 15)
#define WORD(kind) ((kind) >> 4 & 15)
#define PARTS(kind) ((kind) >> 8)
#define KIND_OF(type, word, parts) ((type) | (word) << 4 | (parts) << 8)
#define SIGNS 0x80808080u /* the first bits of four bytes */

typedef int8_t NAME(Bytes) __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint8_t NAME(NaturalBytes) __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int8_t NAME(TwoBytes) __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef uint8_t NAME(TwoNaturalBytes) __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef int16_t NAME(Halves) __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef int16_t NAME(Shorts) __attribute__((vector_size(4 * LANES)));
typedef T NAME(Looser) __attribute__((vector_size(LANES * sizeof(T)), aligned(1), may_alias));

INLINE int NAME(size)(int kind) { return kind == PLAIN ? (int)sizeof(T) : TYPE(kind) == INT16 ? 2 : 1; }

/* The elements that lie side by side in a word, or -1 where they lie apart. */
INLINE int NAME(beside)(int kind) { return PARTS(kind) ? -1 : WORD(kind) ? WORD(kind) : 1; }

INLINE Vec NAME(widened)(const char *p, const int type)
{
    if (type == UINT8)
        return __builtin_convertvector(*(const NAME(NaturalBytes) *)p, Vec);
    if (type == INT8)
        return (Vec)__builtin_convertvector(*(const NAME(Bytes) *)p, Places);
    return (Vec)__builtin_convertvector(*(const NAME(Halves) *)p, Places);
}

INLINE Vec NAME(load)(const void *base, int64_t at, int64_t apart, const int kind)
{
    const int size = NAME(size)(kind), word = WORD(kind), parts = PARTS(kind);
    const char *p = (const char *)base + at * size;
    if (kind == PLAIN || (!parts && word * size == 4))
        return *(const NAME(Looser) *)p;
    if (!parts && word == 2)
        return TYPE(kind) == UINT8
            ? (Vec)__builtin_convertvector(*(const NAME(TwoNaturalBytes) *)p, NAME(Shorts))
            : (Vec)__builtin_convertvector(*(const NAME(TwoBytes) *)p, NAME(Shorts));
    const int type = word == 4 ? UINT8 : TYPE(kind);
    Vec v = NAME(widened)(p, type);
    if (word == 2 && type != UINT8)
        v &= 0xffff;
UNROLL
    for (int i = 1; i < parts; i++)
        v |= NAME(widened)(p + i * apart * size, type) << i * 32 / word;
    return v;
}

INLINE T NAME(one)(const void *base, int64_t at, int64_t apart, const int kind)
{
    const int word = WORD(kind), parts = PARTS(kind) ? PARTS(kind) : word;
    if (kind == PLAIN)
        return ((const T *)base)[at];
    T v = 0;
    for (int i = 0; i < (word ? parts : 1); i++, at += apart) {
        T element = TYPE(kind) == INT8 ? (T)((const int8_t *)base)[at]
            : TYPE(kind) == UINT8      ? ((const uint8_t *)base)[at] : (T)((const int16_t *)base)[at];
        v |= word ? (element & 0xffffffffu >> (32 - 32 / word)) << i * 32 / word : element;
    }
    return v;
}

INLINE void NAME(store)(void *base, int64_t at, Vec v, const int kind)
{
    if (kind == PLAIN)
        STORE((T *)base + at, v);
    else if (kind == INT16)
        *(NAME(Halves) *)((int16_t *)base + at) = __builtin_convertvector((Places)v, NAME(Halves));
    else
        *(NAME(Bytes) *)((int8_t *)base + at) = __builtin_convertvector((Places)v, NAME(Bytes));
}

/* How many elements a word of this product has: 1 where there are no words. */
INLINE int NAME(word_of)(int kind, int few)
{
    return !WITH_PAIRS || kind == PLAIN ? 1 : WITH_QUADS && stretto_quads && kind == INT8 && !few ? 4 : 2;
}

INLINE int NAME(word_kind)(int kind, int word, int parts) { return KIND_OF(kind, word, parts); }
INLINE int NAME(last_kind)(int kind, int odd) { return KIND_OF(kind & 255, 0, odd); }
INLINE int NAME(element_kind)(int kind) { return TYPE(kind); }
