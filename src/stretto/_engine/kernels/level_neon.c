/* For ARM: vectors of 128 bits, 32 registers. */
#if defined(__aarch64__)
#define LEVEL neon
#define BYTES 16
#define ROWS 8
#include "level.h"
#endif
