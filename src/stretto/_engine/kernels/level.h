/* All kernels, for one level: its file sets BYTES of a vector, ROWS of a tile, and LEVEL. */

#include "kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(f) JOIN(f, SUFFIX, LEVEL)

#define T float
#define SUFFIX f32
#define INTEGER int32_t
#define NATURAL uint32_t
#define LANES (BYTES / 4)
#include "product.h"
#include "convolution.h"
#include "rows.h"
#include "recurrent.h"
#include "attention.h"
#include "update.h"
#undef T
#undef SUFFIX
#undef INTEGER
#undef NATURAL
#undef LANES

#define T double
#define SUFFIX f64
#define INTEGER int64_t
#define NATURAL uint64_t
#define LANES (BYTES / 8)
#include "product.h"
#include "convolution.h"
#include "rows.h"
#include "recurrent.h"
#include "attention.h"
#include "update.h"
#undef T
#undef SUFFIX
#undef INTEGER
#undef NATURAL
#undef LANES

#define LEVEL_NAME_(level) stretto_##level
#define LEVEL_NAME(level) LEVEL_NAME_(level)
const Level LEVEL_NAME(LEVEL) = {
    .product_f32 = JOIN(product, f32, LEVEL),
    .product_f64 = JOIN(product, f64, LEVEL),
    .convolution_f32 = JOIN(convolution, f32, LEVEL),
    .convolution_f64 = JOIN(convolution, f64, LEVEL),
    .rows_f32 = JOIN(rows, f32, LEVEL),
    .rows_f64 = JOIN(rows, f64, LEVEL),
    .loop_f32 = JOIN(loop, f32, LEVEL),
    .loop_f64 = JOIN(loop, f64, LEVEL),
    .attention_f32 = JOIN(attention, f32, LEVEL),
    .attention_f64 = JOIN(attention, f64, LEVEL),
    .attention_gradient_f32 = JOIN(attention_gradient, f32, LEVEL),
    .attention_gradient_f64 = JOIN(attention_gradient, f64, LEVEL),
    .update_f32 = JOIN(update, f32, LEVEL),
    .update_f64 = JOIN(update, f64, LEVEL),
};
