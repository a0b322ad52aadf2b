/* What all kernels are written with: vectors, for one type and one level.

`T` is the type, `INTEGER` and `NATURAL` integers of its size, `LANES` its number in a vector, `ROWS`
the rows of a tile, `NAME(f)` the name of a function at this level. The files that follow are read
twice, once for each type: what they define is the same text, and of two that define one name
differently the compiler complains.
*/

typedef T NAME(vec) __attribute__((vector_size(LANES * sizeof(T))));
typedef T NAME(loose)
    __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef INTEGER NAME(places) __attribute__((vector_size(LANES * sizeof(T))));
typedef NATURAL NAME(naturals) __attribute__((vector_size(LANES * sizeof(T))));
/* A column of a tile. */
typedef T NAME(Column) __attribute__((vector_size(ROWS * sizeof(T))));
typedef T NAME(LooseColumn)
    __attribute__((vector_size(ROWS * sizeof(T)), aligned(sizeof(T)), may_alias));
#define Vec NAME(vec)
#define Places NAME(places)
#define Naturals NAME(naturals)
#define LOAD(p) (*(const NAME(loose) *)(p))
#define STORE(p, v) (*(NAME(loose) *)(p) = (v))
#define ALL(x) ((x) - (Vec){0}) /* in all lanes; -0 - 0 is -0 */

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif
#define INLINE static inline __attribute__((always_inline))
