/* All kernels, for one level: its file sets BYTES of a vector, ROWS of a tile, and LEVEL. */

#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Vectors of words from as many halves, of floats from float16, and to it, to nearest even. */
#if BYTES == 64
#define FROM_FLOAT16(p) ((Vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p))))
#define FROM_HALVES(p) _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p)))
#define ONE_FLOAT16(p) _cvtsh_ss(*(p))
#define TO_FLOAT16(p, v) _mm256_storeu_si256((__m256i *)(p), _mm512_cvtps_ph((__m512)(v), 0))
#elif BYTES == 32
#define FROM_FLOAT16(p) ((Vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p))))
#define FROM_HALVES(p) _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define ONE_FLOAT16(p) _cvtsh_ss(*(p))
#define TO_FLOAT16(p, v) _mm_storeu_si128((__m128i *)(p), _mm256_cvtps_ph((__m256)(v), 0))
#else
#define FROM_FLOAT16(p) ((Vec){((const __fp16 *)(p))[0], ((const __fp16 *)(p))[1], ((const __fp16 *)(p))[2], ((const __fp16 *)(p))[3]})
#define FROM_HALVES(p) __builtin_convertvector(*(const NAME(Halves) *)(p), Naturals)
#define ONE_FLOAT16(p) ((T)*(const __fp16 *)(p))
#define TO_FLOAT16(p, v)                                                                           \
    for (int l_ = 0; l_ < LANES; l_++)                                                             \
    ((__fp16 *)(p))[l_] = (__fp16)(v)[l_]
#endif

/* Sums of the products of two halves each, in words. */
#if BYTES == 64
#define PAIR_SUMS(x, y) ((Vec)_mm512_madd_epi16((__m512i)(x), (__m512i)(y)))
#elif BYTES == 32
#define PAIR_SUMS(x, y) ((Vec)_mm256_madd_epi16((__m256i)(x), (__m256i)(y)))
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(f) JOIN(f, SUFFIX, LEVEL)

#define T float
#define SUFFIX f32
#define NARROW /* elements may be */
#define INTEGER int32_t
#define NATURAL uint32_t
#define LANES (BYTES / 4)
#include "lanes.h"
#include "product.h"
#include "convolution.h"
#include "rows.h"
#include "recurrent.h"
#include "attention.h"
#include "update.h"
#include "along.h"
#include "gather.h"
#undef T
#undef SUFFIX
#undef NARROW
#undef INTEGER
#undef NATURAL
#undef LANES

#define T double
#define SUFFIX f64
#define INTEGER int64_t
#define NATURAL uint64_t
#define LANES (BYTES / 8)
#include "lanes.h"
#include "product.h"
#include "convolution.h"
#include "rows.h"
#include "recurrent.h"
#include "attention.h"
#include "update.h"
#include "along.h"
#include "gather.h"
#undef T
#undef SUFFIX
#undef INTEGER
#undef NATURAL
#undef LANES

#define T uint32_t
#define SUFFIX i32
#define INTEGERS
#define INTEGER int32_t
#define NATURAL uint32_t
#define LANES (BYTES / 4)
#include "lanes.h"
#include "product.h"
#undef T
#undef SUFFIX
#undef INTEGERS
#undef INTEGER
#undef NATURAL
#undef LANES

#define LEVEL_NAME_(level) stretto_##level
#define LEVEL_NAME(level) LEVEL_NAME_(level)
#define BOTH(f) .f = {JOIN(f, f32, LEVEL), JOIN(f, f64, LEVEL)}
const Level LEVEL_NAME(LEVEL) = {
    .product = {JOIN(product, f32, LEVEL), JOIN(product, f64, LEVEL), JOIN(product, i32, LEVEL)},
    BOTH(convolution), BOTH(rows), BOTH(loop), BOTH(attention),
    BOTH(attention_gradient), BOTH(update), BOTH(along_axis), BOTH(top_k), BOTH(gather),
};
