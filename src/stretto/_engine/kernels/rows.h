/* Programs over rows, for one type and one level of vectors: softmax, norms, their gradients, and
whatever else has sums or maxima along rows with elementwise operations around them.

A program is a list of instructions, each of which does one operation on some rows at once, while
they lie in the nearest cache: as interpreters of array languages do (Boncz, Zukowski and Nes,
MonetDB/X100: hyper-pipelining query execution, CIDR 2005). So any such part of a user's program
runs, whatever it is called, and gives NaN and infinities where its operations do. Results differ
from those of single operations in the order of sums, in exponentials, and where a product and a sum
are one instruction, which rounds once.

- Short rows are taken several at a time, long ones in chunks of columns. Instructions between two
  reductions are a phase, which goes over the chunks of a row once; what a later phase needs is kept
  for the whole row.
- Every row is computed by itself, and its sums in one order. Sums over rows are taken by parts of
  the rows that depend on sizes alone. So bits do not depend on threads.
- Booleans are masks of all ones in the lanes of the type. Lanes behind the end of a row hold
  anything; only what stores and reduces looks where a row ends.

`T`, `INTEGER`, `LANES` and `NAME` are those of lanes.h.
*/

#define ROWS_CHUNK (4096 / (int64_t)sizeof(T))   /* elements of a buffer: eight fit in 32 kB */
#ifndef ROWS_NEAR
/* Bytes that the buffers of a block of rows may take: with 16 kB, which is one row of 768, layer norm
takes 1.4 of the time, for instructions on single scalars; with 256 kB as long as with 64. */
#define ROWS_NEAR 65536
#endif
/* Bytes of a block whose lines are columns: with pieces of a line of 1 kB, and not of a page, a norm over
64 channels of 32x32 takes twice the time. */
#define ROWS_BELOW 393216
#define ROWS_PARTS 16                            /* of the rows, for sums over rows */
#define ROWS_TASK 16384                          /* elements below which no task is cut */
/* Rows of the last axis of rows from which blocks are of such rows alone, where an input is repeated along
some axes and not others, as the weights of each member are: else each row's place is found by divisions. */
#define ROWS_SPAN 8

typedef INTEGER NAME(bits) __attribute__((may_alias));
typedef INTEGER NAME(RowLoosePlaces)
    __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));
#define Bits NAME(bits)
#define LOAD_MASK(p) (*(const NAME(RowLoosePlaces) *)(p))
#define STORE_MASK(p, v) (*(NAME(RowLoosePlaces) *)(p) = (v))
#define CHOOSE(mask, x, y) ((Vec)(((mask) & (Places)(x)) | (~(mask) & (Places)(y))))
#define ALL_MASK(x) ((x) | (Places){0})

#define OF_TYPE(name, x) (sizeof(T) == 4 ? (T)name##f((float)(x)) : (T)name(x))

static const INTEGER NAME(lane_numbers)[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#define NUMBERS LOAD_MASK(NAME(lane_numbers))

/* An operand: its rows lie `pitch` elements apart; of a scalar there is one a row. */
typedef struct {
    T *at;
    int64_t pitch;
    int vec;
} NAME(Operand);

typedef struct {
    NAME(Operand) out, a, b, c;
    int64_t rows, width;  /* lines; the width is a multiple of LANES, but for reductions */
    int64_t start;        /* the first column */
    int more;             /* whether a reduction goes on, and this is not the first part of a row */
} NAME(RowCall);
#define Call NAME(RowCall)

/* Elementwise operations: on vectors `x` and `y`, each of an array or of one scalar a row. */

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define EACH for (int64_t i = 0; i < k->width; i += LANES)

#define UNARY(name, load, all, store, Value, expression)                                           \
    static void NAME(rows_##name)(const Call *k)                                                   \
    {                                                                                              \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            T *o = k->out.at + r * k->out.pitch;                                                   \
            const T *xs = k->a.at + r * k->a.pitch;                                                \
            if (k->a.vec)                                                                          \
                EACH {                                                                             \
                    Value x = load(xs + i);                                                        \
                    store(o + i, expression);                                                      \
                }                                                                                  \
            else {                                                                                 \
                Value x = all;                                                                     \
                EACH store(o + i, expression);                                                     \
            }                                                                                      \
        }                                                                                          \
    }

#define BINARY(name, load, all_x, all_y, store, Value, expression)                                 \
    static void NAME(rows_##name)(const Call *k)                                                   \
    {                                                                                              \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            T *o = k->out.at + r * k->out.pitch;                                                   \
            const T *xs = k->a.at + r * k->a.pitch, *ys = k->b.at + r * k->b.pitch;                \
            if (k->a.vec && k->b.vec)                                                              \
                EACH {                                                                             \
                    Value x = load(xs + i), y = load(ys + i);                                      \
                    store(o + i, expression);                                                      \
                }                                                                                  \
            else if (k->a.vec) {                                                                   \
                Value y = all_y;                                                                   \
                EACH {                                                                             \
                    Value x = load(xs + i);                                                        \
                    store(o + i, expression);                                                      \
                }                                                                                  \
            } else if (k->b.vec) {                                                                 \
                Value x = all_x;                                                                   \
                EACH {                                                                             \
                    Value y = load(ys + i);                                                        \
                    store(o + i, expression);                                                      \
                }                                                                                  \
            } else {                                                                               \
                Value x = all_x, y = all_y;                                                        \
                EACH store(o + i, expression);                                                     \
            }                                                                                      \
        }                                                                                          \
    }
#define MASK_X ALL_MASK(*(const Bits *)xs)
#define MASK_Y ALL_MASK(*(const Bits *)ys)
#define FLOATS_OF_ONE(name, expression) UNARY(name, LOAD, ALL(*xs), STORE, Vec, expression)
#define FLOATS(name, expression) BINARY(name, LOAD, ALL(*xs), ALL(*ys), STORE, Vec, expression)
#define COMPARISON(name, expression)                                                               \
    BINARY(name, LOAD, ALL(*xs), ALL(*ys), STORE_MASK, Vec, expression)
#define MASKS(name, expression)                                                                    \
    BINARY(name, LOAD_MASK, MASK_X, MASK_Y, STORE_MASK, Places, expression)

/* The greater or the less of a bound and x; NaN, if x is. */
static inline Vec NAME(rows_above)(Vec bound, Vec x)
{
#if BYTES == 64 && defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm512_max_ps((__m512)bound, (__m512)x)
                          : (Vec)_mm512_max_pd((__m512d)bound, (__m512d)x);
#elif defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm256_max_ps((__m256)bound, (__m256)x)
                          : (Vec)_mm256_max_pd((__m256d)bound, (__m256d)x);
#else
    return CHOOSE(bound > x, bound, x);
#endif
}

static inline Vec NAME(rows_below)(Vec bound, Vec x)
{
#if BYTES == 64 && defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm512_min_ps((__m512)bound, (__m512)x)
                          : (Vec)_mm512_min_pd((__m512d)bound, (__m512d)x);
#elif defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm256_min_ps((__m256)bound, (__m256)x)
                          : (Vec)_mm256_min_pd((__m256d)bound, (__m256d)x);
#else
    return CHOOSE(bound < x, bound, x);
#endif
}

/* e to the power of x, within 1 ulp: x = n ln 2 + r with |r| <= ln(2) / 2 as in Cody and Waite
(Software manual for the elementary functions, 1980), with ln 2 in two parts; then a polynomial,
for float32 the one of least relative error (3e-9, by Remez's exchange), for float64 Taylor's
(4e-18). It is multiplied by 2^n in two steps where there is no instruction for it, so that results
may be denormal. Rounding to n adds and subtracts a large number: -ffast-math would delete that. */
/* r */
INLINE Vec NAME(exp_rest)(Vec x, Vec n)
{
    const int single = sizeof(T) == 4;
    Vec r = x - n * (single ? (T)6.93145751953125e-01 : (T)6.931471804855391383e-01);
    return r - n * (single ? (T)1.42860682030942e-06 : (T)7.440617111158231989e-11);
}

/* e to the power of r, minus 1 and r */
INLINE Vec NAME(exp_beyond)(Vec r)
{
    const int single = sizeof(T) == 4;
    Vec p;
    if (single) {
        p = r * (T)1.381458395e-03 + (T)8.3687239347e-03;
        p = p * r + (T)4.1668388731e-02;
        p = p * r + (T)1.6666520574e-01;
        p = p * r + (T)4.9999993444e-01;
    } else {
        p = r * (T)(1.0 / 6227020800) + (T)(1.0 / 479001600);
        p = p * r + (T)(1.0 / 39916800);
        p = p * r + (T)(1.0 / 3628800);
        p = p * r + (T)(1.0 / 362880);
        p = p * r + (T)(1.0 / 40320);
        p = p * r + (T)(1.0 / 5040);
        p = p * r + (T)(1.0 / 720);
        p = p * r + (T)(1.0 / 120);
        p = p * r + (T)(1.0 / 24);
        p = p * r + (T)(1.0 / 6);
        p = p * r + (T)0.5;
    }
    return p * (r * r);
}

/* p times 2^n, where n was rounded by adding a large number */
INLINE Vec NAME(exp_scaled)(Vec p, Vec n, Vec shifted)
{
    const int single = sizeof(T) == 4;
#if BYTES == 64 && defined(__x86_64__)
    (void)shifted;
    return single ? (Vec)_mm512_scalef_ps((__m512)p, (__m512)n)
                  : (Vec)_mm512_scalef_pd((__m512d)p, (__m512d)n);
#else
    (void)n;
    const T shift = single ? (T)12582912 : (T)6755399441055744;
    const NATURAL digits = single ? 23 : 52, bias = single ? 127 : 1023;
    Naturals whole = (Naturals)shifted - (Naturals)ALL(shift); /* of NaN it is anything */
    Naturals half = ((whole + 4096) >> 1) - 2048, rest = whole - half;
    return p * (Vec)((half + bias) << digits) * (Vec)((rest + bias) << digits);
#endif
}

/* e to the power of x - low, where low is the rest of what x was rounded to */
INLINE Vec NAME(exp_less)(Vec x, Vec low)
{
    const int single = sizeof(T) == 4;
    x = NAME(rows_above)(ALL(single ? (T)-104 : (T)-746), x);
    x = NAME(rows_below)(ALL(single ? (T)89 : (T)710), x);
    const T shift = single ? (T)12582912 : (T)6755399441055744;
    Vec shifted = x * (T)1.44269504088896340736 + shift, n = shifted - shift;
    Vec r = NAME(exp_rest)(x, n) - low, p = NAME(exp_beyond)(r) + r + 1;
    return NAME(exp_scaled)(p, n, shifted);
}

INLINE Vec NAME(exp_of)(Vec x) { return NAME(exp_less)(x, (Vec){0}); }

/* Polynomials through Chebyshev's points, from the highest power down, of what is about -1 to 1: of erfc,
of erf, and of the logarithm's rest. */
static const T NAME(erfc_terms)[] = {
#ifdef NARROW
    2.8328488e-05, 2.1445343e-05, -0.000457864662, -0.00113405136, 0.00521374634, 0.0464623943,
    0.180300862, 0.46744898, 0.89362061, 1.29902959,
#else
    -2.84724701868882313e-11, -2.65313738327830398e-10, 7.10206853473788736e-10, 2.34299032450110207e-9,
    -7.7731030338376886e-9, -8.89478870350352197e-9, 5.97163845586760632e-8, -1.47735723333352238e-9,
    -3.9535547389940987e-7, 3.33124029488254469e-7, 2.59559349638188802e-6, -3.69800933995694282e-6,
    -0.0000192224741698727369, 0.0000297177397368496185, 0.000175970820161737389, -0.000141888784814708421,
    -0.0019148087748328788, -0.00208726866132788869, 0.0170992790125666985, 0.0959514250242497047,
    0.282275870355538558, 0.58507731071037389, 0.928567077822405554, 1.16469211523439592,
#endif
};
static const T NAME(erf_terms)[] = {
#ifdef NARROW
    -2.195740568e-6, 4.235726605e-5, -0.0006875033828, 0.009215314952, -0.09968678136, 1.018745011,
#else
    1.24738652749997641e-13, -4.3214787454789391e-12, 1.36000896996060908e-10, -3.86905196220655596e-9,
    9.81617015869591981e-8, -2.18992969768287054e-6, 0.0000422097937792798137, -0.000687505562669564823,
    0.0092153702785622299, -0.0996867812397277912, 1.01874500811987536,
#endif
};
static const T NAME(log_terms)[] = {
#ifdef NARROW
    0.2960069107, 0.39988319, 0.6666668618,
#else
    0.146436286019097976, 0.153295007542041771, 0.181829566080634589, 0.222222101992642115,
    0.285714286317643346, 0.399999999998866129, 0.666666666666667014,
#endif
};
#define POLYNOMIAL(x, terms) NAME(polynomial)(x, terms, (int)(sizeof terms / sizeof *terms))

INLINE Vec NAME(polynomial)(Vec x, const T *terms, int count)
{
    Vec p = ALL(terms[0]);
    for (int i = 1; i < count; i++)
        p = p * x + terms[i];
    return p;
}

/* erfc within 4 ulp: exp(-y^2) / (y + 3) times a polynomial in 1 / (y + 3) (the variable of Shepherd
and Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, 1981). What rounding takes from
the quotient would be 3 ulp more; y^2 is the square of the first half of y's digits, and a rest. */
INLINE Vec NAME(erfc_of)(Vec x)
{
    const int single = sizeof(T) == 4;
    Vec y = NAME(rows_below)(ALL(single ? (T)10.2 : (T)27.4), (Vec)((Places)x & ~(Places)ALL((T)-0.0)));
    Vec high = (Vec)((Places)y & ALL_MASK(single ? (INTEGER)-4096 : (INTEGER)-134217728)), sum = y + 3;
    Vec over = 1 / sum, lost = y - (sum - 3), more = (1 - sum * over - lost * over) * over;
    Vec place = single ? over * 8 - (T)1.625 + more * 8 : over * (T)6.5 - (T)1.1875 + more * (T)6.5;
    Vec p = POLYNOMIAL(place, NAME(erfc_terms)), e = NAME(exp_less)(-(high * high), (y - high) * (y + high));
    e *= p * over + p * more;
    return CHOOSE(x < 0, 2 - e, e);
}

/* erf within 2 ulp */
INLINE Vec NAME(erf_of)(Vec x)
{
    Vec zero = (Vec)((Places)ALL((T)-0.0) & (Places)x), y = (Vec)((Places)x ^ (Places)zero), far = 1 - NAME(erfc_of)(y);
    return CHOOSE(y < (T)0.8, x * POLYNOMIAL(x * x * (T)3.125 - 1, NAME(erf_terms)), (Places)far | (Places)zero);
}

/* The logarithm within 1 ulp: of 2^n (1 + f) it is n ln 2 + 2 artanh(s), where s = f / (2 + f), whose
series begins with 2 s = f - s f (as in Sun's fdlibm, 1993). */
INLINE Vec NAME(log_of)(Vec x)
{
    const int single = sizeof(T) == 4;
    const NATURAL digits = single ? 23 : 52;
    const Places small = x < (single ? (T)1.1754943508222875e-38 : (T)2.2250738585072014e-308);
    const T shift = single ? (T)12582912 : (T)6755399441055744;
    Vec y = CHOOSE(small, x * (single ? (T)8388608 : (T)4503599627370496), x);
    Places power = ((Places)y - (Places)ALL((T)0.70710678118654752)) >> digits;
    Vec n = (Vec)((Places)ALL(shift) + power) - shift - (Vec)(small & (Places)ALL((T)digits));
    Vec f = (Vec)((Naturals)y - ((Naturals)power << digits)) - 1, s = f / (f + 2), z = s * s, half = f * f * (T)0.5;
    Vec rest = n * (single ? (T)1.42860682030942e-06 : (T)7.440617111158231989e-11);
    rest = half - (s * (half + z * POLYNOMIAL(z, NAME(log_terms))) + rest) - f;
    y = n * (single ? (T)6.93145751953125e-01 : (T)6.931471804855391383e-01) - rest;
    return CHOOSE(x > 0, CHOOSE(x == (T)__builtin_inf(), x, y), CHOOSE(x == 0, ALL((T)-__builtin_inf()), ALL((T)__builtin_nan(""))));
}

/* log(u), and what rounding took from u = 1 + x */
INLINE Vec NAME(log1p_of)(Vec x)
{
    Vec u = x + 1, log = NAME(log_of)(u), rest = (x - (u - 1)) / u;
    return CHOOSE((u == 1) | (x == (T)__builtin_inf()), x, CHOOSE(u > 0, log + rest, log));
}

/* tanh within 2 ulp: with t = exp(2|x|) - 1 it is t / (t + 2), of the sign of x. The method is as
above, but t is 2^n (exp(r) - 1) + (2^n - 1), where 2^n - 1 is exact, so that nothing is lost where
x is small (as in Beebe, The mathematical-function computation handbook, 2017, chapter 12). Where 2|x|
is above the bound the quotient is 1. */
INLINE Vec NAME(tanh_of)(Vec x)
{
    const int single = sizeof(T) == 4;
    const Places sign = (Places)ALL((T)-0.0);
    Vec y = (Vec)((Places)x & ~sign);
    y = NAME(rows_below)(ALL(single ? (T)24 : (T)48), y + y);
    const T shift = single ? (T)12582912 : (T)6755399441055744;
    Vec shifted = y * (T)1.44269504088896340736 + shift, n = shifted - shift, low;
    Vec r = NAME(exp_rest)(y, n), p = NAME(exp_beyond)(r);
    const NATURAL digits = single ? 23 : 52, bias = single ? 127 : 1023;
    low = (Vec)(((Naturals)shifted - (Naturals)ALL(shift) + bias) << digits);
    Vec t = low * p + (low * r + (low - 1));
    /* What rounding took from the sum and the quotient is put back: without, it is 2.2 ulp. */
    Vec sum = t + 2, part = sum - t, lost = (t - (sum - part)) + (2 - part);
    Vec over = 1 / sum, q = t * over;
    q += (t - q * sum - q * lost) * over;
    return (Vec)((Places)q | (sign & (Places)x));
}

/* exp(-|x|), from which these are as exact where they are small as near 0 */
static inline Vec NAME(exp_minus_abs)(Vec x) { return NAME(exp_of)((Vec)((Places)x | (Places)ALL((T)-0.0))); }

static inline Vec NAME(logistic_of)(Vec x)
{
    Vec e = NAME(exp_minus_abs)(x);
    return CHOOSE(x < 0, e, ALL(1)) / (e + 1);
}

static inline Vec NAME(logistic_slope_of)(Vec x)
{
    Vec e = NAME(exp_minus_abs)(x);
    return e / ((e + 1) * (e + 1));
}

static inline Vec NAME(sech_squared_of)(Vec x)
{
    Vec h = 2 * NAME(exp_minus_abs)(x), root = h / (h * h * (T)0.25 + 1);
    return root * root;
}

/* tanh and its derivative within 3 and 4 ulp, from one exponential and one quotient: with t = exp(-2|x|) - 1
as above they are -t / (t + 2) and 4 exp(-2|x|) / (t + 2)^2. Where 2^n is below 2^-64, t is -1. */
INLINE Vec NAME(tanh_pair)(Vec x, Vec *slope)
{
    const int single = sizeof(T) == 4;
    const Places sign = (Places)ALL((T)-0.0);
    Vec y = (Vec)((Places)x & ~sign);
    y = -NAME(rows_below)(ALL(single ? (T)104 : (T)746), y + y);
    const T shift = single ? (T)12582912 : (T)6755399441055744;
    Vec shifted = y * (T)1.44269504088896340736 + shift, n = shifted - shift;
    Vec r = NAME(exp_rest)(y, n), p = NAME(exp_beyond)(r);
    const NATURAL digits = single ? 23 : 52, bias = single ? 127 : 1023;
    Vec near = NAME(rows_above)(ALL(shift - 64), shifted);
    Vec low = (Vec)(((Naturals)near - (Naturals)ALL(shift) + bias) << digits);
    Vec t = low * p + (low * r + (low - 1));
    Vec sum = t + 2, lost = t - (sum - 2), over = 1 / sum;
    over += (1 - over * sum - over * lost) * over;
    Vec q = (0 - t) * over;
    q += ((0 - t) - q * sum - q * lost) * over;
    *slope = NAME(exp_scaled)(4 * (p + r + 1), n, shifted) * (over * over);
    return (Vec)((Places)q | (sign & (Places)x));
}

/* The logistic function and its derivative */
INLINE Vec NAME(logistic_pair)(Vec x, Vec *slope)
{
    Vec e = NAME(exp_minus_abs)(x), over = 1 / (e + 1);
    *slope = e * over * over;
    return CHOOSE(x < 0, e, ALL(1)) * over;
}

static inline Vec NAME(sqrt_of)(Vec x)
{
#if BYTES == 64 && defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm512_sqrt_ps((__m512)x) : (Vec)_mm512_sqrt_pd((__m512d)x);
#elif defined(__x86_64__)
    return sizeof(T) == 4 ? (Vec)_mm256_sqrt_ps((__m256)x) : (Vec)_mm256_sqrt_pd((__m256d)x);
#else
    for (int i = 0; i < LANES; i++)
        x[i] = OF_TYPE(__builtin_sqrt, x[i]);
    return x;
#endif
}

FLOATS(add, x + y)
FLOATS(sub, x - y)
FLOATS(mul, x * y)
FLOATS(div, x / y)
/* Of equal ones, which may be zeros of two signs, the bits of both or of either. */
FLOATS(max, CHOOSE(x == y, (Places)x & (Places)y, CHOOSE((x > y) | (x != x), x, y)))
FLOATS(min, CHOOSE(x == y, (Places)x | (Places)y, CHOOSE((x < y) | (x != x), x, y)))
FLOATS(exp_difference, NAME(exp_of)(x - y))
COMPARISON(eq, x == y)
COMPARISON(ne, x != y)
COMPARISON(lt, x < y)
COMPARISON(le, x <= y)
COMPARISON(gt, x > y)
COMPARISON(ge, x >= y)
MASKS(and, x & y)
MASKS(or, x | y)
UNARY(not, LOAD_MASK, MASK_X, STORE_MASK, Places, ~x)
UNARY(number, LOAD_MASK, MASK_X, STORE, Places, (Vec)(x & (Places)ALL(1)))
UNARY(is_finite, LOAD, ALL(*xs), STORE_MASK, Vec, x - x == 0)
FLOATS_OF_ONE(copy, x)
FLOATS_OF_ONE(neg, -x)
FLOATS_OF_ONE(abs, CHOOSE(x < 0, -x, x + 0)) /* of -0 it is 0 */
FLOATS_OF_ONE(exp, NAME(exp_of)(x))
FLOATS_OF_ONE(tanh, NAME(tanh_of)(x))
FLOATS_OF_ONE(sech_squared, NAME(sech_squared_of)(x))
FLOATS_OF_ONE(logistic, NAME(logistic_of)(x))
FLOATS_OF_ONE(logistic_slope, NAME(logistic_slope_of)(x))
FLOATS_OF_ONE(erf, NAME(erf_of)(x))
FLOATS_OF_ONE(erfc, NAME(erfc_of)(x))
FLOATS_OF_ONE(log, NAME(log_of)(x))
FLOATS_OF_ONE(log1p, NAME(log1p_of)(x))
FLOATS_OF_ONE(sqrt, NAME(sqrt_of)(x))
FLOATS_OF_ONE(rsqrt, 1 / NAME(sqrt_of)(x))
FLOATS_OF_ONE(sign, CHOOSE((x == 0) | (x != x), x, CHOOSE(x < 0, ALL((T)-1), ALL((T)1))))

/* Two results of one operand: the second goes where the second operand is. */
#define PAIR(name)                                                                                 \
    static void NAME(rows_##name)(const Call *k)                                                   \
    {                                                                                              \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            T *o = k->out.at + r * k->out.pitch, *more = k->b.at + r * k->b.pitch;                 \
            const T *xs = k->a.at + r * k->a.pitch;                                                \
            EACH {                                                                                 \
                Vec x = ALL(*xs), slope;                                                           \
                if (k->a.vec) x = LOAD(xs + i);                                                    \
                x = NAME(name)(x, &slope);                                                         \
                STORE(o + i, x);                                                                   \
                STORE(more + i, slope);                                                            \
            }                                                                                      \
        }                                                                                          \
    }
PAIR(tanh_pair)
PAIR(logistic_pair)

/* Of scalars alone, one by one. */
static void NAME(rows_expm1)(const Call *k)
{
    for (int64_t i = 0; i < k->width; i++)
        k->out.at[i] = OF_TYPE(__builtin_expm1, k->a.at[k->a.vec ? i : 0]);
}

/* What a mask of floats or of masks says: the second operand where it is set, else the third. */
static void NAME(rows_select)(const Call *k)
{
    for (int64_t r = 0; r < k->rows; r++) {
        T *o = k->out.at + r * k->out.pitch;
        const T *mask = k->a.at + r * k->a.pitch;
        const T *xs = k->b.at + r * k->b.pitch, *ys = k->c.at + r * k->c.pitch;
        Vec x = ALL(*xs), y = ALL(*ys);
        if (!k->a.vec) {
            int first = *(const Bits *)mask != 0;
            const T *from = first ? xs : ys;
            if (first ? k->b.vec : k->c.vec)
                EACH STORE(o + i, LOAD(from + i));
            else
                EACH STORE(o + i, first ? x : y);
        } else if (k->b.vec && k->c.vec)
            EACH STORE(o + i, CHOOSE(LOAD_MASK(mask + i), LOAD(xs + i), LOAD(ys + i)));
        else if (k->b.vec)
            EACH STORE(o + i, CHOOSE(LOAD_MASK(mask + i), LOAD(xs + i), y));
        else if (k->c.vec)
            EACH STORE(o + i, CHOOSE(LOAD_MASK(mask + i), x, LOAD(ys + i)));
        else
            EACH STORE(o + i, CHOOSE(LOAD_MASK(mask + i), x, y));
    }
}

/* Two operations as one */
#define TERNARY(name, expression)                                                                  \
    static void NAME(rows_##name)(const Call *k)                                                   \
    {                                                                                              \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            T *o = k->out.at + r * k->out.pitch;                                                   \
            const T *xs = k->a.at + r * k->a.pitch, *ys = k->b.at + r * k->b.pitch;                \
            const T *zs = k->c.at + r * k->c.pitch;                                                \
            Vec y = ALL(*ys), z = ALL(*zs);                                                        \
            if (k->b.vec && k->c.vec)                                                              \
                EACH {                                                                             \
                    Vec x = LOAD(xs + i), y = LOAD(ys + i), z = LOAD(zs + i);                      \
                    STORE(o + i, expression);                                                      \
                }                                                                                  \
            else if (k->b.vec)                                                                     \
                EACH {                                                                             \
                    Vec x = LOAD(xs + i), y = LOAD(ys + i);                                        \
                    STORE(o + i, expression);                                                      \
                }                                                                                  \
            else if (k->c.vec)                                                                     \
                EACH {                                                                             \
                    Vec x = LOAD(xs + i), z = LOAD(zs + i);                                        \
                    STORE(o + i, expression);                                                      \
                }                                                                                  \
            else                                                                                   \
                EACH {                                                                             \
                    Vec x = LOAD(xs + i);                                                          \
                    STORE(o + i, expression);                                                      \
                }                                                                                  \
        }                                                                                          \
    }
TERNARY(mul_add, x * y + z)
TERNARY(sub_mul, (x - y) * z)
TERNARY(mul_mul, x * y * z)
TERNARY(add_mul, (x + y) * z)
TERNARY(add_add, x + y + z)

/* whether a column is the one that a row's integer names */
static void NAME(rows_is_column)(const Call *k)
{
    const Places count = NUMBERS;
    for (int64_t r = 0; r < k->rows; r++) {
        T *o = k->out.at + r * k->out.pitch;
        NATURAL at = (NATURAL)*(const Bits *)(k->a.at + r * k->a.pitch) - (NATURAL)k->start;
        if (k->a.vec) /* turned: a line is a column, and each lane has its own integer */
            EACH STORE_MASK(o + i, LOAD_MASK(k->a.at + i) == ALL_MASK((INTEGER)(k->start + r)));
        else
            EACH STORE_MASK(o + i, count == ALL_MASK((INTEGER)(at - (NATURAL)i)));
    }
}

/* Reductions along lines: the result of a row is combined with what is there, unless this is its first
part. Where a row is several lines, `out` has no pitch. */

static inline T NAME(plus_T)(T a, T b) { return a + b; }
static inline Vec NAME(plus_Vec)(Vec a, Vec b) { return a + b; }

/* the greater or the less, or NaN if there is any: of vectors by masks, as C has no choice of them */
#define EXTREMUM(name, sign)                                                                       \
    static inline T NAME(name##_T)(T a, T b) { return a sign b || a != a ? a : b; }                \
    static inline Vec NAME(name##_Vec)(Vec a, Vec b)                                               \
    {                                                                                              \
        Places mask = (a sign b) | (a != a);                                              \
        return CHOOSE(mask, a, b);                  \
    }
EXTREMUM(greatest, >)
EXTREMUM(least, <)

/* Reduce the lanes of a vector, halves with halves. */
#if defined(__GNUC__) && !defined(__clang__)
#define REDUCED(combine)                                                                           \
    static inline T NAME(reduced_##combine)(Vec x)                                                 \
    {                                                                                              \
        _Pragma("GCC unroll 4") for (int step = LANES / 2; step; step /= 2)                        \
        {                                                                                          \
            Places other = NUMBERS ^ (INTEGER)step;                                                \
            x = NAME(combine##_Vec)(x, __builtin_shuffle(x, other));                               \
        }                                                                                          \
        return x[0];                                                                               \
    }
#else
#define REDUCED(combine)                                                                           \
    static inline T NAME(reduced_##combine)(Vec x)                                                 \
    {                                                                                              \
        for (int step = LANES / 2; step; step /= 2)                                                \
            for (int i = 0; i < step; i++)                                                         \
                x[i] = NAME(combine##_T)(x[i], x[i + step]);                                       \
        return x[0];                                                                               \
    }
#endif
REDUCED(plus)
REDUCED(greatest)
REDUCED(least)

#define REDUCED_ROW(combine, identity, expression, Y)                                              \
    {                                                                                              \
        Vec sums[4];                                                                               \
        for (int j = 0; j < 4; j++)                                                                \
            sums[j] = ALL((T)(identity));                                                          \
        int64_t i = 0;                                                                             \
        for (; i + 4 * LANES <= k->width; i += 4 * LANES)                                          \
            for (int j = 0; j < 4; j++) {                                                          \
                Vec x = LOAD(xs + i + j * LANES), y = Y(i + j * LANES);                            \
                (void)y;                                                                           \
                sums[j] = NAME(combine##_Vec)(sums[j], expression);                                \
            }                                                                                      \
        for (; i < k->width; i += LANES) { /* rows end within a vector, or with it */              \
            Vec x = LOAD(xs + i), y = Y(i);                                                        \
            (void)y;                                                                               \
            x = CHOOSE(count < ALL_MASK((INTEGER)(k->width - i)), expression, ALL((T)(identity))); \
            sums[0] = NAME(combine##_Vec)(sums[0], x);                                             \
        }                                                                                          \
        sums[0] = NAME(combine##_Vec)(sums[0], sums[2]);                                           \
        sums[1] = NAME(combine##_Vec)(sums[1], sums[3]);                                           \
        T all = NAME(reduced_##combine)(NAME(combine##_Vec)(sums[0], sums[1]));                    \
        T *out = k->out.at + r * k->out.pitch;                                                     \
        *out = k->more || (r && !k->out.pitch) ? NAME(combine##_T)(*out, all) : all;               \
    }
#define REDUCTION(name, combine, identity, expression)                                             \
    static void NAME(rows_##name)(const Call *k)                                                   \
    {                                                                                              \
        const Places count = NUMBERS;                                                              \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            const T *xs = k->a.at + r * k->a.pitch, *ys = k->b.at + r * k->b.pitch;                \
            if (k->b.vec)                                                                          \
                REDUCED_ROW(combine, identity, expression, Y_VECTOR)                               \
            else {                                                                                 \
                Vec y_all = ys ? ALL(*ys) : ALL((T)0);                                             \
                REDUCED_ROW(combine, identity, expression, Y_ALL)                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define Y_VECTOR(i) LOAD(ys + (i))
#define Y_ALL(i) y_all

/* The same where lines are columns, and lanes are rows: what lies below each other is combined. */
#define DOWN(name, combine, identity, expression)                                                  \
    static void NAME(down_##name)(const Call *k)                                                   \
    {                                                                                              \
        T *o = k->out.at;                                                                          \
        if (!k->more)                                                                              \
            EACH STORE(o + i, ALL((T)(identity)));                                                 \
        for (int64_t r = 0; r < k->rows; r++) {                                                    \
            const T *xs = k->a.at + r * k->a.pitch, *ys = k->b.at + r * k->b.pitch;                \
            Vec all = ys ? ALL(*ys) : ALL((T)0);                                                   \
            EACH {                                                                                 \
                Vec x = LOAD(xs + i), y = all;                                                     \
                if (k->b.vec) y = LOAD(ys + i);                                                    \
                (void)y;                                                                           \
                STORE(o + i, NAME(combine##_Vec)(LOAD(o + i), expression));                        \
            }                                                                                      \
        }                                                                                          \
    }
#define BOTH_WAYS(name, combine, identity, expression)                                             \
    REDUCTION(name, combine, identity, expression)                                                 \
    DOWN(name, combine, identity, expression)
BOTH_WAYS(sum, plus, 0, x)
BOTH_WAYS(sum_of_products, plus, 0, x * y)
BOTH_WAYS(sum_of_differences, plus, 0, x - y)
BOTH_WAYS(sum_of_squared_differences, plus, 0, (x - y) * (x - y))
BOTH_WAYS(greatest, greatest, -__builtin_inf(), x)
BOTH_WAYS(least, least, __builtin_inf(), x)

static void NAME(rows_first)(const Call *k)
{
    for (int64_t r = 0; !k->more && r < (k->out.pitch ? k->rows : 1); r++)
        k->out.at[r] = k->a.at[r * k->a.pitch];
}

static void NAME(down_first)(const Call *k)
{
    if (!k->more)
        EACH STORE(k->out.at + i, LOAD(k->a.at + i));
}

/* Add rows to the sums over rows. */
static void NAME(rows_add_up)(const Call *k)
{
    T *o = k->out.at;
    for (int64_t r = 0; r < k->rows; r++) {
        const T *xs = k->a.at + r * k->a.pitch;
        Vec x = ALL(*xs);
        if (k->a.vec)
            EACH STORE(o + i, LOAD(o + i) + LOAD(xs + i));
        else
            EACH STORE(o + i, LOAD(o + i) + x);
    }
}

/* In the order of ops/row_program.py */
typedef void NAME(RowFunction)(const Call *);
static NAME(RowFunction) *const NAME(row_functions)[] = {
    NULL, NAME(rows_copy), NAME(rows_add), NAME(rows_sub), NAME(rows_mul), NAME(rows_div),
    NAME(rows_max), NAME(rows_min), NAME(rows_neg), NAME(rows_abs), NAME(rows_exp),
    NAME(rows_exp_difference), NAME(rows_log), NAME(rows_log1p), NAME(rows_expm1),
    NAME(rows_sqrt), NAME(rows_rsqrt), NAME(rows_eq), NAME(rows_ne), NAME(rows_lt),
    NAME(rows_le), NAME(rows_gt), NAME(rows_ge), NAME(rows_is_finite), NAME(rows_and),
    NAME(rows_or), NAME(rows_not), NAME(rows_select), NAME(rows_number), NAME(rows_is_column),
    NAME(rows_sum), NAME(rows_sum_of_products), NAME(rows_greatest), NAME(rows_least),
    NAME(rows_first), NAME(rows_add_up), NAME(rows_mul_add), NAME(rows_sub_mul),
    NAME(rows_sum_of_differences), NAME(rows_sum_of_squared_differences),
    NAME(rows_mul_mul), NAME(rows_add_mul), NAME(rows_add_add), NAME(rows_tanh),
    NAME(rows_sech_squared), NAME(rows_logistic), NAME(rows_logistic_slope), NAME(rows_sign),
    NAME(rows_erf), NAME(rows_erfc), NAME(rows_tanh_pair), NAME(rows_logistic_pair),
};

/* Where lanes are rows; from ROWS_FIRST_REDUCTION on */
static NAME(RowFunction) *const NAME(down_functions)[] = {
    NAME(down_sum), NAME(down_sum_of_products), NAME(down_greatest), NAME(down_least),
    NAME(down_first), NAME(rows_sum), NULL, NULL,
    NAME(down_sum_of_differences), NAME(down_sum_of_squared_differences),
};

/* Running a program: tile by tile, of lines that lie below each other.

- A line is a row, or a chunk of its columns; a value that rows have one of is one a line.
- Where values repeat within a row (a weight for each channel of a group), a line is a stretch of it,
  in which they are the same: they are one a line, those of rows one for all lines.
- Where the elements of a row are not side by side (channels with pixels behind), a line is a column,
  whose lanes are rows: values of a row are a line of their own, those of a column one a line. */

typedef struct {
    const RowProgram *p;
    int64_t rows, block, blocks;      /* of all; in a block; blocks */
    int64_t span;                     /* rows, of which no block has some of two */
    int64_t chunk, padded;            /* elements of a line: of a tile, and of a kept value */
    int64_t lines;                    /* of a tile */
    int64_t each, whole, wide;        /* elements of a buffer, of a kept value, of a slot for scalars */
    int64_t per_task;                 /* blocks in a task, but where there are sums over rows */
    T *sums;                          /* over rows, for each part */
    int64_t width;                    /* of a sum over rows */
    int64_t pitch[ROW_MOST];          /* of an input's lines, in elements; -1 where it varies */
    int64_t extent[ROW_MOST];         /* elements of it, or 0: what lies behind a line may be read */
    int64_t ahead;                    /* inputs of which the next chunk is fetched meanwhile */
    int failed;
} NAME(RowPlan);
#define Plan NAME(RowPlan)

/* The distance of rows, or -1 where there is no single one. */
static int64_t NAME(row_pitch)(const RowProgram *p, const int64_t *strides)
{
    int64_t inner = 1, pitch = 0, known = 0;
    for (int axis = ROW_AXES - 1; axis >= 0; axis--) {
        if (p->lead[axis] > 1) {
            if (known && strides[axis] != pitch * inner)
                return -1;
            if (!known)
                pitch = strides[axis];
            known = 1;
        }
        inner *= p->lead[axis];
    }
    return pitch;
}

/* Take elements of an operand of any type. */
static void NAME(rows_take)(const void *from, int64_t at, int64_t step, int type, int64_t count, T *to)
{
    Bits *bits = (Bits *)to;
    if (type == ROW_FLOATS) {
        const T *xs = (const T *)from + at;
        if (step == 1)
            INDEPENDENT for (int64_t i = 0; i < count; i++) to[i] = xs[i];
        else
            for (int64_t i = 0; i < count; i++) to[i] = xs[i * step];
    } else if (type == ROW_BOOLS) {
        const uint8_t *xs = (const uint8_t *)from + at;
        if (step == 1)
            INDEPENDENT for (int64_t i = 0; i < count; i++) bits[i] = -(Bits)(xs[i] != 0);
        else
            for (int64_t i = 0; i < count; i++) bits[i] = -(Bits)(xs[i * step] != 0);
    } else if (type == ROW_INTEGERS) {
        const int32_t *xs = (const int32_t *)from + at;
        for (int64_t i = 0; i < count; i++) bits[i] = xs[i * step];
    } else { /* no column is named by what is beyond 31 bits */
        const int64_t *xs = (const int64_t *)from + at;
        for (int64_t i = 0; i < count; i++)
            bits[i] = xs[i * step] == (int32_t)xs[i * step] ? (Bits)xs[i * step] : -1;
    }
}

static void NAME(rows_give)(const T *from, int type, int64_t count, void *to, int64_t at)
{
    if (type == ROW_FLOATS)
        __builtin_memcpy((T *)to + at, from, (size_t)count * sizeof(T));
    else {
        const Bits *bits = (const Bits *)from;
        uint8_t *out = (uint8_t *)to + at;
        INDEPENDENT for (int64_t i = 0; i < count; i++) out[i] = bits[i] != 0;
    }
}

/* Room for values in a block whose tiles are known. */
static void NAME(rows_sizes)(Plan *plan)
{
    const RowProgram *p = plan->p;
    plan->each = plan->lines * plan->chunk;
    plan->whole = (p->behind ? p->columns : p->stretches > 1 ? p->stretches : plan->block) * plan->padded;
    plan->wide = up(p->stretches > plan->block ? p->stretches : plan->block, LANES);
}

/* Where rows of the same task follow, which are written afterwards, what does not fill its last vector may
be written over their first elements: of rows of 50, copying each took a quarter of the time. */
static void NAME(rows_block)(const Plan *plan, int64_t first, int64_t rows, T *memory, T *sums, int followed)
{
    const RowProgram *p = plan->p;
    const int turned = p->behind > 0, plain = !turned && p->stretches == 1;
    const int over = followed && plain && p->columns >= LANES && plan->padded <= plan->chunk;
    int64_t columns = p->columns, each = plan->each, wide = plan->wide;
    int64_t length = turned ? rows : columns / p->stretches, beside = p->step;
    int64_t all = turned ? columns : plain ? rows : p->stretches;
    int64_t written = offset(ROW_AXES, p->lead, p->place, first);
    T *kept = memory + p->chunks * each;
    T *scalars = kept + p->kept * plan->whole;
    int64_t from[ROW_MOST]; /* where inputs begin */
    NAME(Operand) chunks[ROW_MOST];
    for (int64_t i = 0; i < p->inputs; i++) {
        const RowInput *in = p->input + i;
        int64_t pitch = plan->pitch[i];
        from[i] = plain && pitch >= 0 && plan->span == plan->rows ? first * pitch
                                                                  : offset(ROW_AXES, p->lead, in->lead, first);
        if (in->slot < 0)
            continue;
        T *to = scalars + in->slot * wide;
        int64_t count = plain || turned ? rows : in->step ? p->stretches : 1;
        if (!plain || pitch >= 0)
            NAME(rows_take)(in->data, from[i], turned ? in->lead[ROW_AXES - 1] : pitch, (int)in->type, count, to);
        else
            for (int64_t r = 0; r < rows; r++)
                NAME(rows_take)(in->data, offset(ROW_AXES, p->lead, in->lead, first + r), 0, (int)in->type, 1, to + r);
    }
    const char *ahead[ROW_MOST]; /* what the next chunk of columns reads from memory */
    for (int64_t section = 0; section < p->sections; section++) {
        int64_t begin = p->bounds[section], end = p->bounds[section + 1];
        int by_row = section % 2 == 0;   /* scalars, one a row */
        if (begin == end)
            continue;
        for (int64_t line = 0; line < (by_row ? 1 : all); line += plan->lines)
        for (int64_t start = 0; start < (by_row ? 1 : length); start += plan->chunk) {
            int64_t lines = by_row ? 1 : least(plan->lines, all - line);
            int64_t width = !by_row ? least(plan->chunk, length - start) : plain || turned ? rows : p->stretches;
            int whole = width % LANES == 0;
            int64_t coming = 0, fetched = 0, share = plan->ahead ? plan->ahead * 64 / (end - begin) + 1 : 0;
            for (int64_t n = begin; n < end; n++) {
                for (int64_t i = 0; i < share && fetched < coming * 64; i++, fetched++)
                    __builtin_prefetch(ahead[fetched / 64] + fetched % 64 * 64);
                const RowInstruction *one = p->instruction + n;
                Call k = {.rows = lines, .width = up(width, LANES), .start = turned ? line : start,
                          .more = line || start};
                NAME(Operand) *operands[] = {&k.a, &k.b, &k.c};
                T *own = one->out_kind == ROW_CHUNK ? memory + one->out * each : NULL;
                if (one->op == ROWS_LOAD) {
                    const RowInput *in = p->input + one->from[0];
                    int64_t pitch = plan->pitch[one->from[0]], at = from[one->from[0]] + line * pitch + start;
                    NAME(Operand) *to = chunks + one->out;
                    if (turned && !in->lead[ROW_AXES - 1]) { /* one a column */
                        *to = (NAME(Operand)){own, 1, 0};
                        NAME(rows_take)(in->data, at, pitch, (int)in->type, lines, own);
                        continue;
                    }
                    int near = at + (lines - 1) * pitch + k.width <= plan->extent[one->from[0]];
                    if (in->type == ROW_FLOATS && pitch >= 0 && (whole || near)) {
                        *to = (NAME(Operand)){(T *)in->data + at, pitch, 1};
                        if (plan->ahead)
                            ahead[coming++] = (const char *)(to->at + plan->chunk);
                        continue;
                    }
                    *to = (NAME(Operand)){own, pitch ? k.width : 0, 1};
                    for (int64_t r = 0; r < (pitch ? lines : 1); r++) {
                        int64_t here = pitch >= 0 ? at + r * pitch
                                                  : offset(ROW_AXES, p->lead, in->lead, first + r) + start;
                        NAME(rows_take)(in->data, here, 1, (int)in->type, width, own + r * k.width);
                        for (int64_t i = width; i < k.width; i++) own[r * k.width + i] = 0;
                    }
                    continue;
                }
                if (one->op >= ROWS_FIRST_PAIR && one->kind[1] == ROW_CHUNK)
                    chunks[one->from[1]] = (NAME(Operand)){memory + one->from[1] * each, k.width, 1};
                for (int j = 0; j < 3; j++) {
                    int64_t index = one->from[j];
                    switch (one->kind[j]) {
                    case ROW_CHUNK:
                        *operands[j] = chunks[index];
                        break;
                    case ROW_KEPT:
                        *operands[j] = (NAME(Operand)){
                            kept + index * plan->whole + line * plan->padded + start, plan->padded, 1};
                        break;
                    case ROW_SCALAR:
                        *operands[j] = (NAME(Operand)){
                            scalars + index * wide, plain, turned || (by_row && plain)};
                        break;
                    case ROW_PART:
                        *operands[j] = (NAME(Operand)){scalars + index * wide + line, 1, by_row};
                        break;
                    case ROW_LITERAL:
                        *operands[j] = (NAME(Operand)){(T *)p->literals + index * (8 / sizeof(T)), 0, 0};
                        break;
                    }
                }
                NAME(RowFunction) *function = NAME(row_functions)[one->op];
                int small = one->out_kind == ROW_SCALAR || one->out_kind == ROW_PART;
                if (one->op == ROWS_ADD_UP) {
                    k.out = (NAME(Operand)){sums + one->out * plan->width + k.start, 1, 0};
                    k.more = 1;
                } else if (small) {
                    int part = one->out_kind == ROW_PART;
                    k.out = (NAME(Operand)){scalars + one->out * wide + part * line, plain || part, 0};
                    k.more = part ? start > 0 : k.more;
                } else if (one->out_kind == ROW_KEPT) {
                    k.out = (NAME(Operand)){
                        kept + one->out * plan->whole + line * plan->padded + start, plan->padded, 1};
                } else {
                    const RowOutput *out = one->to >= 0 ? p->output + one->to : NULL;
                    if (out && out->type == ROW_FLOATS && (whole || over))
                        k.out = (NAME(Operand)){(T *)out->data + written + line * beside + start, beside, 1};
                    else
                        k.out = (NAME(Operand)){own, k.width, 1};
                    chunks[one->out] = k.out;
                }
                if (turned && !by_row && (small || one->op == ROWS_ADD_UP))
                    function = NAME(down_functions)[one->op - ROWS_FIRST_REDUCTION];
                if (small ? !by_row || (one->op >= ROWS_FIRST_REDUCTION && one->op < ROWS_ADD_UP)
                          : turned && one->op == ROWS_ADD_UP)
                    k.width = turned && small ? k.width : width; /* behind it there may be anything */
                if (!by_row && k.out.vec && k.rows > 1 && k.out.pitch == k.width
                    && (k.a.vec ? k.a.pitch == k.width : !k.a.pitch)
                    && (k.b.vec ? k.b.pitch == k.width : !k.b.pitch)
                    && (k.c.vec ? k.c.pitch == k.width : !k.c.pitch)
                    && one->op != ROWS_IS_COLUMN) { /* lines that lie together are one */
                    Call one_line = k;
                    one_line.width *= lines;
                    one_line.rows = 1;
                    function(&one_line);
                } else
                    function(&k);
                if (one->to >= 0 && one->op != ROWS_ADD_UP && !by_row && !small) {
                    const RowOutput *out = p->output + one->to;
                    int64_t size = out->type == ROW_FLOATS ? sizeof(T) : 1;
                    char *data = (char *)out->data + (written + line * beside + start) * size;
                    if ((char *)k.out.at != data)
                        for (int64_t r = 0; r < lines; r++)
                            NAME(rows_give)(k.out.at + r * k.out.pitch, (int)out->type, width, data, r * beside);
                }
            }
        }
    }
    for (int64_t i = 0; i < p->outputs; i++) {
        const RowOutput *out = p->output + i;
        if (out->slot >= 0)
            NAME(rows_give)(scalars + out->slot * wide, (int)out->type, rows * out->each, out->data, first * out->each);
    }
}

static size_t NAME(rows_memory)(const Plan *plan)
{
    const RowProgram *p = plan->p;
    return (size_t)(p->chunks * plan->each + p->kept * plan->whole + p->scalars * plan->wide) * sizeof(T);
}

static void NAME(rows_task)(void *work, int64_t index)
{
    Plan *plan = work;
    T *memory = stretto_scratch(SLOT_A, NAME(rows_memory)(plan) + 64);
    if (!memory) {
        plan->failed = 1;
        return;
    }
    int64_t begin = index * plan->per_task, end = begin + plan->per_task;
    int64_t by_span = (plan->span + plan->block - 1) / plan->block;
    T *sums = NULL;
    if (plan->sums) {
        int64_t size = plan->p->sums * plan->width;
        begin = plan->blocks * index / ROWS_PARTS;
        end = plan->blocks * (index + 1) / ROWS_PARTS;
        sums = plan->sums + index * size;
        for (int64_t i = 0; i < size; i++)
            sums[i] = 0;
    }
    for (int64_t block = begin; block < end && block < plan->blocks; block++) {
        int64_t within = block % by_span * plan->block;
        NAME(rows_block)(plan, block / by_span * plan->span + within,
                         least(plan->block, plan->span - within), memory, sums,
                         block + 1 < end && block + 1 < plan->blocks);
    }
}

/* How rows are cut into blocks, and blocks into tiles. */
static void NAME(rows_tiles)(Plan *plan)
{
    const RowProgram *p = plan->p;
    const int plain = !p->behind && p->stretches == 1;
    int64_t length = p->columns / p->stretches, arrays = p->kept + 1, size = sizeof(T);
    for (int64_t i = 0; i < p->inputs; i++) {
        plan->pitch[i] = plain ? NAME(row_pitch)(p, p->input[i].lead) : p->input[i].step;
        arrays += p->input[i].slot < 0 && plan->pitch[i];
        plan->extent[i] = 1 + (p->columns - 1) * (p->behind ? plan->pitch[i] : 1);
        for (int axis = 0; axis < ROW_AXES; axis++)
            plan->extent[i] += (p->lead[axis] - 1) * p->input[i].lead[axis];
    }
    for (int64_t i = 0; i < p->outputs; i++)
        arrays += p->output[i].slot < 0;
    plan->span = p->behind ? p->behind : plan->rows;
    int64_t inner = p->lead[ROW_AXES - 1], varying = 0;
    for (int64_t i = 0; i < p->inputs; i++)
        varying |= plan->pitch[i] < 0;
    if (plain && varying && inner >= ROWS_SPAN) { /* within the last axis of rows all are even */
        plan->span = inner;
        for (int64_t i = 0; i < p->inputs; i++)
            plan->pitch[i] = p->input[i].lead[ROW_AXES - 1];
    }
    plan->block = 1;
    if (p->behind) {
        int64_t most = least(ROWS_CHUNK, ROWS_BELOW / (p->columns * arrays * size)), parts;
        most = most < 256 / size ? 256 / size : most;
        parts = (p->behind + most - 1) / most;
        length = plan->block = up((p->behind + parts - 1) / parts, LANES);
    }
    plan->padded = up(length, LANES);
    plan->chunk = least(plan->padded, ROWS_CHUNK);
    plan->lines = least(p->behind ? p->columns : p->stretches, ROWS_CHUNK / plan->chunk);
    if (plain) {
        int64_t near = ROWS_NEAR / (plan->chunk * (arrays + p->chunks) * size);
        plan->lines = plan->block = plan->padded > plan->chunk || near < 1 ? 1 : least(near, 256);
    }
    plan->blocks = plan->rows / plan->span * ((plan->span + plan->block - 1) / plan->block);
    plan->width = up(p->columns, LANES);
    NAME(rows_sizes)(plan);
}

static int NAME(rows)(const XLA_FFI_CallFrame *frame, const RowProgram *p)
{
    Plan plan = {.p = p, .rows = 1};
    for (int axis = 0; axis < ROW_AXES; axis++)
        plan.rows *= p->lead[axis];
    if (!plan.rows || !p->columns)
        return 0;
    NAME(rows_tiles)(&plan);
    int64_t size = plan.rows * up(p->columns, p->behind ? 1 : LANES), tasks = 1, threads = stretto_threads(frame);
    if (p->sums) {
        plan.sums = stretto_scratch(SLOT_SHARED, (size_t)(ROWS_PARTS * p->sums * plan.width) * sizeof(T));
        if (!plan.sums)
            return -1;
        tasks = ROWS_PARTS;
    } else {
        tasks = least(4 * threads, (size + ROWS_TASK - 1) / ROWS_TASK);
        plan.per_task = (plan.blocks + tasks - 1) / tasks;
        tasks = (plan.blocks + plan.per_task - 1) / plan.per_task;
    }
    stretto_parallel(frame, size <= ROWS_TASK ? 1 : threads, tasks, NAME(rows_task), &plan);
    if (plan.failed)
        return -1;
    for (int64_t s = 0; s < p->sums; s++) {
        T *out = p->sum[s];
        for (int64_t i = 0; i < p->columns; i++)
            out[i] = plan.sums[s * plan.width + i];
        for (int64_t part = 1; part < ROWS_PARTS; part++) {
            const T *more = plan.sums + (part * p->sums + s) * plan.width;
            for (int64_t i = 0; i < p->columns; i++)
                out[i] += more[i];
        }
    }
    return 0;
}

#undef Plan
