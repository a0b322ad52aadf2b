/* For x86 with AVX-512: vectors of 512 bits, 32 registers. */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,prefer-vector-width=512"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,prefer-vector-width=512")
#endif
#define LEVEL avx512
#define BYTES 64
#define ROWS 8
#define HAS_PAIRS
#include "level.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
