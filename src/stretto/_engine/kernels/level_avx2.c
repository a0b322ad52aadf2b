/* For x86 with AVX2 and FMA: vectors of 256 bits, 16 registers. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define LEVEL avx2
#define BYTES 32
#define ROWS 4
#include "level.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
