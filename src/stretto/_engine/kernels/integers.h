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

/* Vectors of words of as many elements, and of pairs of halves of twice as many. GCC 12 converts such
vectors element by element, which took 8 times as long as the products. */
#if BYTES == 64
#define WIDENED(name, p) (Vec)_mm512_cvt##name##_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define WIDENED_HALVES(p) (Vec)_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(p)))
#define PAIRED(name, p) (Vec)_mm512_cvt##name##_epi16(_mm256_loadu_si256((const __m256i *)(p)))
#define TO_HALVES(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtepi32_epi16((__m512i)(v)))
#define TO_BYTES(p, v) _mm_storeu_si128((__m128i *)(p), _mm512_cvtepi32_epi8((__m512i)(v)))
#elif BYTES == 32
#define WIDENED(name, p) (Vec)_mm256_cvt##name##_epi32(_mm_loadl_epi64((const __m128i *)(p)))
#define WIDENED_HALVES(p) (Vec)_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define PAIRED(name, p) (Vec)_mm256_cvt##name##_epi16(_mm_loadu_si128((const __m128i *)(p)))
#endif
#if BYTES < 64
typedef int16_t NAME(Half) __attribute__((may_alias));
#define TO_HALVES(p, v)                                                                            \
    for (int i_ = 0; i_ < LANES; i_++)                                                             \
    ((NAME(Half) *)(p))[i_] = (int16_t)(v)[i_]
#define TO_BYTES(p, v)                                                                             \
    for (int i_ = 0; i_ < LANES; i_++)                                                             \
    ((int8_t *)(p))[i_] = (int8_t)(v)[i_]
#endif
#if BYTES < 32
typedef int8_t NAME(epi8) __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef uint8_t NAME(epu8) __attribute__((vector_size(LANES), aligned(1), may_alias));
typedef int16_t NAME(halves) __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
#define WIDENED(name, p) (Vec)__builtin_convertvector(*(const NAME(name) *)(p), Places)
#define WIDENED_HALVES(p) (Vec)__builtin_convertvector(*(const NAME(halves) *)(p), Places)
#define PAIRED(name, p) ((Vec){0}) /* there are no words */
#endif
typedef T NAME(Looser) __attribute__((vector_size(LANES * sizeof(T)), aligned(1), may_alias));

INLINE int NAME(size)(int kind) { return kind == PLAIN ? (int)sizeof(T) : TYPE(kind) == INT16 ? 2 : 1; }

/* The elements that lie side by side in a word, or -1 where they lie apart. */
INLINE int NAME(beside)(int kind) { return PARTS(kind) ? -1 : WORD(kind) ? WORD(kind) : 1; }

INLINE Vec NAME(widened)(const char *p, const int type)
{
    return type == UINT8 ? WIDENED(epu8, p) : type == INT8 ? WIDENED(epi8, p) : WIDENED_HALVES(p);
}

INLINE Vec NAME(load)(const void *base, int64_t at, int64_t apart, const int kind)
{
    const int size = NAME(size)(kind), word = WORD(kind), parts = PARTS(kind);
    const char *p = (const char *)base + at * size;
    if (kind == PLAIN || (!parts && word * size == 4))
        return *(const NAME(Looser) *)p;
    if (!parts && word == 2)
        return TYPE(kind) == UINT8 ? PAIRED(epu8, p) : PAIRED(epi8, p);
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
    else if (kind == INT16) {
        TO_HALVES((int16_t *)base + at, v);
    } else {
        TO_BYTES((int8_t *)base + at, v);
    }
}

/* How many elements a word of this product has: 1 where there are no words. */
INLINE int NAME(word_of)(int kind)
{
    return !WITH_PAIRS || kind == PLAIN ? 1 : WITH_QUADS && stretto_quads && kind == INT8 ? 4 : 2;
}

INLINE int NAME(word_kind)(int kind, int word, int parts) { return KIND_OF(kind, word, parts); }
INLINE int NAME(last_kind)(int kind, int odd) { return KIND_OF(kind & 255, 0, odd); }
INLINE int NAME(element_kind)(int kind) { return TYPE(kind); }
