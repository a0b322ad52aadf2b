/* Convolutions in the plane: for one type and one level of vectors.

Each is a product whose one matrix, the windows of the image, is never laid out as a whole. A task
copies the rows of the image that it needs, with their border of zeros, and multiplies from there:
the vectors where they lie, or, where rows of the result are shorter than vectors, after the parts
of windows have been put side by side (the implicit product of Chetlur et al., cuDNN: efficient
primitives for deep learning, arXiv 1410.0759, in the blocks of product.h). The ways differ in what
lies along the lanes:

- By pixels: lanes are positions of the output, and the kernel's elements are repeated along them.
  For images with many positions: forward, and gradients by the image. Where the image is spread out
  (the gradient of one with a step), each residue of positions meets only every so manyth element of
  the window, and is a convolution of its own, without the zeros. With a step, places of a row are
  copied apart by residue, so that what a vector reads lies side by side.
- By fewer products: windows of three by three (winograd.h).
- By panels: images that are spread out by two (panels.h).
- By few: the same where a group has few outputs or features, such as one for each channel: each
  output is read from the bordered rows on its own, and rows with their borders are one long run.
- By outputs: lanes are output features, and the image's elements are repeated along them. For large
  windows and few positions: gradients by the kernel.
- By elements: the same where there are few outputs: lanes are elements of a window's row.

An element's sum is taken in an order that the geometry alone decides, whatever the tasks and
threads: parts of the sum one after the other, each from its first product to its last.

`T`, `LANES`, `ROWS` and `NAME` are those of lanes.h; tiles and packing are those of product.h.
*/

#include <string.h>

#define BLOCK (6 * COLUMNS)  /* the most positions of a task, by pixels */
#define DEEP 288             /* of the sum in a part: about so many */
#define TALL 288             /* rows of a task, by outputs: about so many */
#define BROAD (4 * COLUMNS)  /* the most outputs of a task, by outputs */
#define FEW_OUTPUTS 4        /* up to which lanes are elements of windows */
#define NEXT 27              /* places after which what is read where it lies is fetched ahead */

static inline void NAME(copied)(const T *from, int64_t count, T *to)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        STORE(to + i, LOAD(from + i));
    if (i < count && count >= LANES)
        STORE(to + count - LANES, LOAD(from + count - LANES));
    else
        for (; i < count; i++)
            to[i] = from[i];
}

/* Write every second element: the first of pairs, of which so many are whole, or the others. The
first are written before the others, and zeros beside them. */
static inline void NAME(halves)(const T *from, int64_t count, int half, int64_t whole, T *to)
{
    int64_t i = 0;
#if defined(__GNUC__) && !defined(__clang__)
    Places l = NUMBERED, odd = (l & 1) != 0;
    Places low = (odd & LANES) | (~odd & (l >> 1)), high = (odd & LANES) | (~odd & ((l + LANES) >> 1));
    Places low_of_both = (odd & ((l >> 1) + LANES)) | (~odd & l), high_of_both = low_of_both + (odd & (LANES / 2));
    if (half == 1)
        for (; i + LANES <= least(count, whole); i += LANES) {
            Vec some = LOAD(from + i), none = {0};
            STORE(to + 2 * i, __builtin_shuffle(some, none, low));
            STORE(to + 2 * i + LANES, __builtin_shuffle(some, none, high));
        }
    else
        for (; i + LANES <= count; i += LANES) {
            T *pairs = to + 2 * i - 1;
            Vec some = LOAD(from + i), one = LOAD(pairs), other = LOAD(pairs + LANES);
            STORE(pairs, __builtin_shuffle(one, some, low_of_both));
            STORE(pairs + LANES, __builtin_shuffle(other, some, high_of_both));
        }
#endif
    for (; i < count; i++)
        to[2 * i] = from[i];
}

/* Put two vectors into each other: the first of one, the first of the other, and so on. */
static inline void NAME(paired)(Vec one, Vec other, T *to)
{
#if defined(__GNUC__) && !defined(__clang__)
    Places l = NUMBERED, low = (l >> 1) + ((l & 1) * LANES), high = low + LANES / 2;
    STORE(to, __builtin_shuffle(one, other, low));
    STORE(to + LANES, __builtin_shuffle(one, other, high));
#else
    for (int l = 0; l < LANES; l++)
        to[2 * l] = one[l], to[2 * l + 1] = other[l];
#endif
}

/* A bordered copy of a part of the image */

/* Copy `width` elements of a row from place `x` on, zeros outside it, every `phases`th one apart:
element i goes to i % phases * plane + i / phases. Only the first `kept` of `step` phases are. */
static void NAME(bordered)(
    const T *row, int64_t size, int64_t x, int64_t width, int64_t step, int64_t kept, int64_t plane,
    T *out)
{
    int64_t first = x < 0 ? least(-x, width) : 0;
    int64_t last = size - x < width ? size - x : width;
    last = last < first || !row ? first : last;
    if (step == 1) {
        for (int64_t i = 0; i < first; i++)
            out[i] = 0;
        if (last > first)
            NAME(copied)(row + x + first, last - first, out + first);
        for (int64_t i = last; i < width; i++)
            out[i] = 0;
        return;
    }
    for (int64_t phase = 0; phase < kept; phase++) {
        T *to = out + phase * plane;
        int64_t i = phase, count = 0;
        for (; i < first; i += step)
            to[count++] = 0;
#if defined(__GNUC__) && !defined(__clang__)
        if (step == 2) {
            Places l = NUMBERED, even = 2 * l;
            for (; i + 2 * LANES <= last; i += 2 * LANES, count += LANES) {
                const T *from = row + x + i;
                STORE(to + count, __builtin_shuffle(LOAD(from), LOAD(from + LANES), even));
            }
        }
#endif
        for (; i < last; i += step)
            to[count++] = row[x + i];
        for (; i < width; i += step)
            to[count++] = 0;
    }
}

/* So many rows from `y` on, bordered; only every so manyth is written. Returns what lies behind. */
static T *NAME(bordered_rows)(
    const T *image, int64_t row, const int64_t *size, int64_t y, int64_t rows, int64_t every,
    int64_t x, int64_t width, int64_t step, int64_t kept, int64_t plane, T *out)
{
    if (step == 1 && every == 1 && x == 0 && width == size[1] && width == row && y >= 0 && y + rows <= size[0])
        NAME(copied)(image + y * row, rows * row, out); /* there is no border */
    else
        for (int64_t r = 0; r < rows; r += every)
            NAME(bordered)(y + r < 0 || y + r >= size[0] ? NULL : image + (y + r) * row, size[1], x,
                           width, step, kept, plane, out + r * kept * plane);
    return out + rows * kept * plane;
}

/* Tiles that read one side where it lies */

/* c[i] = sum over l of a[i][at[l]] b[l] */
INLINE void NAME(read_tile)(
    const int rows, const int vectors, const int pairs, const T *const *a, const int64_t *at, const T *b, int64_t k,
    T *c, int64_t c_m, int add)
{
    const T *row[ROWS];
    Vec sum[ROWS][3];
UNROLL
    for (int i = 0; i < rows; i++) {
        row[i] = a[i];
UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (Vec){0};
    }
    for (int64_t l = 0; l < k; l++) {
        Vec right[3];
        int64_t place = at[l];
        __builtin_prefetch(row[0] + at[l + NEXT]);
        __builtin_prefetch(row[rows / 2] + at[l + NEXT]);
UNROLL
        for (int j = 0; j < vectors; j++)
            right[j] = LOAD(b + j * LANES);
UNROLL
        for (int i = 0; i < rows; i++) {
            Vec left = row[i][place] - (Vec){0};
UNROLL
            for (int j = 0; j < vectors; j++) {
                MULTIPLIED(sum[i][j], left, right[j]);
            }
        }
        b += vectors * LANES;
    }
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < vectors; j++) {
            T *to = c + i * c_m + j * LANES;
            if (add)
                sum[i][j] += LOAD(to);
            STORE(to, sum[i][j]);
        }
}

#define READ_TILE(r, v)                                                                            \
    case 8 * (r) + (v):                                                                            \
        if (WITH_PAIRS && pairs)                                                                   \
            NAME(read_tile)(r, v, 1, a, at, b, k, c, c_m, add);                                    \
        else                                                                                       \
            NAME(read_tile)(r, v, 0, a, at, b, k, c, c_m, add);                                    \
        return;

static __attribute__((noinline)) void NAME(read_tile_of)(
    int rows, int vectors, int pairs, const T *const *a, const int64_t *at, const T *b, int64_t k,
    T *c, int64_t c_m, int add)
{
    switch (8 * rows + vectors) {
        EACH_TILE(READ_TILE)
    }
}

/* c[i] = sum over l of a[l][i] b[at[l]], each vector of positions in its own place */
INLINE void NAME(spot_tile)(
    const int rows, const int vectors, const int pairs, const T *a, const T *const *b, const int64_t *at, int64_t k,
    T *const *c, int64_t c_m, int add)
{
    const T *spot[3];
    Vec sum[ROWS][3];
UNROLL
    for (int j = 0; j < vectors; j++)
        spot[j] = b[j];
UNROLL
    for (int i = 0; i < rows; i++)
UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = (Vec){0};
    for (int64_t l = 0; l < k; l++) {
        Vec right[3];
        int64_t place = at[l];
UNROLL
        for (int j = 0; j < vectors; j++)
            right[j] = LOAD(spot[j] + place);
UNROLL
        for (int i = 0; i < rows; i++) {
            Vec left = a[i] - (Vec){0};
UNROLL
            for (int j = 0; j < vectors; j++) {
                MULTIPLIED(sum[i][j], left, right[j]);
            }
        }
        a += ROWS;
    }
UNROLL
    for (int j = 0; j < vectors; j++) {
        T *to = c[j];
UNROLL
        for (int i = 0; i < rows; i++, to += c_m) {
            if (add)
                sum[i][j] += LOAD(to);
            STORE(to, sum[i][j]);
        }
    }
}

#define SPOT_TILE(r, v)                                                                            \
    case 8 * (r) + (v):                                                                            \
        if (WITH_PAIRS && pairs)                                                                   \
            NAME(spot_tile)(r, v, 1, a, b, at, k, c, c_m, add);                                    \
        else                                                                                       \
            NAME(spot_tile)(r, v, 0, a, b, at, k, c, c_m, add);                                    \
        return;

static __attribute__((noinline)) void NAME(spot_tile_of)(
    int rows, int vectors, int pairs, const T *a, const T *const *b, const int64_t *at, int64_t k,
    T *const *c, int64_t c_m, int add)
{
    switch (8 * rows + vectors) {
        EACH_TILE(SPOT_TILE)
    }
}

/* By pixels */

typedef struct {
    const Convolution *p;
    int64_t taps, k;            /* of a window: in the plane, and in all */
    int64_t depth, parts;       /* features in a part, and the parts */
    int64_t pixels, columns, wide; /* positions of all examples, of a task, and tasks of them */
    int64_t rows, tall;         /* outputs of a task, and tasks of them */
    int64_t kept;               /* residues of places along x that windows reach */
    int flat;                   /* whether features and windows of the kernel lie side by side */
    T *a;                       /* the kernel, packed, if it is: by group, part, tile of rows */
    int failed;
} NAME(Pixels);

/* Positions that lie side by side in a tile, and in the bordered rows. */
typedef struct {
    int64_t from;
    int32_t to, count;
} NAME(Piece);

static void NAME(pack_kernel)(void *work, int64_t index)
{
    NAME(Pixels) *plan = work;
    const Convolution *p = plan->p;
    int64_t tiles = (p->outputs + ROWS - 1) / ROWS, each = plan->flat ? tiles : 1;
    int64_t part = index / each % plan->parts, group = index / each / plan->parts;
    int64_t features = least(p->features - part * plan->depth, plan->depth);
    int64_t k = features * plan->taps, from = part * plan->depth * plan->taps;
    int64_t row = p->rhs_stride[N], window = p->window[1];
    const T *a = (const T *)p->rhs + group * p->rhs_stride[G] + part * plan->depth * p->rhs_stride[F];
    T *out = plan->a + (group * plan->k + from) * tiles * ROWS;
    if (plan->flat) {
        int64_t tile = index % tiles;
        NAME(pack_rows)(a + tile * ROWS * row, row, 1, 0, PLAIN,
                        least(p->outputs - tile * ROWS, ROWS), k, out + tile * ROWS * k);
        return;
    }
    /* Feature by feature, whose outputs lie together where it is a gradient by the image. */
    for (int64_t f = 0; f < features; f++, a += p->rhs_stride[F])
        for (int64_t tile = 0; tile < tiles; tile++) {
            int64_t rows = least(p->outputs - tile * ROWS, ROWS);
            T *to = out + (tile * k + f * plan->taps) * ROWS;
            for (int64_t y = 0; y < p->window[0]; y++)
                for (int64_t x = 0; x < window; x++, to += ROWS) {
                    const T *at = a + tile * ROWS * row + y * p->rhs_stride[Y] + x * p->rhs_stride[X];
                    if (rows == ROWS)
UNROLL
                        for (int i = 0; i < ROWS; i++)
                            to[i] = at[i * row];
                    else
                        for (int64_t i = 0; i < rows; i++)
                            to[i] = at[i * row];
                }
        }
}

static void NAME(pixel_task)(void *work, int64_t index)
{
    NAME(Pixels) *plan = work;
    const Convolution *p = plan->p;
    int64_t block = index % plan->wide, row = index / plan->wide % plan->tall;
    int64_t group = index / plan->wide / plan->tall;
    int64_t j0 = block * plan->columns, j1 = least(j0 + plan->columns, plan->pixels);
    int64_t o0 = row * plan->rows, outputs = least(p->outputs - o0, plan->rows);
    int64_t columns = j1 - j0, width = p->positions[1], height = p->positions[0];
    if (columns <= 0 || outputs <= 0)
        return;
    /* The bordered rows: those of each example that these positions' windows meet. Where all lie
    in one row, only its part. */
    int64_t along = width, begin = 0;
    int one_row = j0 / width == (j1 - 1) / width;
    if (one_row)
        along = columns, begin = j0 % width;
    int64_t reach = (p->window[0] - 1) * p->gap[0];
    int64_t plane = along + (p->window[1] - 1) * p->gap[1] / p->step[1];
    int64_t line = plane * plan->kept, across = (along - 1) * p->step[1] + (p->window[1] - 1) * p->gap[1] + 1;
    NAME(Piece) pieces[BLOCK];
    int64_t first[BLOCK / LANES + 2], count = 0, tiles = 0, lines = 0;
    for (int64_t j = j0, next = j0, y0 = -1, start = 0; j < j1;) {
        int64_t y = j / width % height, x = j % width;
        if (y0 < 0 || (y == 0 && x == 0)) { /* another example */
            start = y0 < 0 ? 0 : lines;
            y0 = y;
        }
        lines = start + (y - y0) * p->step[0] + reach + 1;
        if (j == next) { /* another tile */
            first[tiles++] = count;
            next += NAME(next)(j1 - j) * LANES;
        }
        int64_t left = least(least(next, j1) - j, width - x);
        pieces[count++] = (NAME(Piece)){
            (start + (y - y0) * p->step[0]) * line + x - begin, 0, (int32_t)left};
        j += left;
    }
    first[tiles] = count;
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t i = first[t], to = 0; i < first[t + 1]; to += pieces[i++].count)
            pieces[i].to = (int32_t)to;
    int64_t channel = lines * line, deepest = plan->depth * plan->taps;
    int64_t c_m = up(columns, LANES);
    /* Where vectors do not cross rows, they are read in place; whole ones are written there too. */
    int in_place = plan->a && (width % LANES == 0 || one_row);
    int flat = p->out_stride[X] == 1 && (p->out_stride[Y] == width || height == 1);
    int written = in_place && flat && columns % LANES == 0 && plan->parts;
    T *copy = stretto_scratch(SLOT_A, (size_t)(channel * plan->depth + 2 * LANES) * sizeof(T));
    size_t table = (size_t)(deepest + NEXT) * sizeof(int64_t);
    size_t room = in_place ? 0 : (size_t)(c_m * deepest + (tiles + 1) * LANES) * sizeof(T);
    char *memory = stretto_scratch(SLOT_B, table + 64 + room);
    int64_t *at = (int64_t *)memory; /* of each element of the sum: where it lies */
    T *panel = (T *)(memory + (table + 63) / 64 * 64);
    T *c = stretto_scratch(SLOT_C, (size_t)(outputs * c_m) * sizeof(T));
    if (!copy || !memory || !c) {
        plan->failed = 1;
        return;
    }
    T *out = (T *)p->out + group * p->out_stride[G] + o0 * p->out_stride[F];
    int64_t spot[BLOCK / LANES], goal[BLOCK / LANES];
    if (in_place)
        for (int64_t i = 0, j = j0; i < count; j += pieces[i++].count)
            for (int64_t q = 0; q < pieces[i].count; q += LANES) {
                int64_t v = (j - j0 + q) / LANES;
                spot[v] = pieces[i].from + q;
                goal[v] = j / (width * height) * p->out_stride[N] + (j + q) % (width * height);
            }
    if (!plan->parts)
        memset(c, 0, (size_t)(outputs * c_m) * sizeof(T));
    const T *lhs = (const T *)p->lhs + group * p->lhs_stride[G];
    int64_t row_tiles = (p->outputs + ROWS - 1) / ROWS;
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t f0 = part * plan->depth, features = least(p->features - f0, plan->depth);
        int64_t k = features * plan->taps;
        for (int64_t f = 0; f < features; f++) {
            T *to = copy + f * channel;
            for (int64_t j = j0; j < j1;) {
                int64_t n = j / (width * height), y = j / width % height;
                int64_t end = least((n + 1) * width * height, j1);
                int64_t last = (end - 1) / width % height;
                const T *image = lhs + n * p->lhs_stride[N] + (f0 + f) * p->lhs_stride[F];
                to = NAME(bordered_rows)(
                    image, p->lhs_stride[Y], p->image, y * p->step[0] - p->low[0],
                    (last - y) * p->step[0] + reach + 1,
                    p->window[0] == 1 ? p->step[0] : 1, /* which windows reach */
                    begin * p->step[1] - p->low[1], across, p->step[1], plan->kept, plane, to);
                j = end;
            }
        }
        int64_t l = 0; /* in the bordered rows, or in the kernel */
        for (int64_t f = 0; f < features; f++)
            for (int64_t y = 0; y < p->window[0]; y++)
                for (int64_t x = 0; x < p->window[1]; x++) {
                    int64_t place = x * p->gap[1];
                    at[l++] = in_place ? f * channel + y * p->gap[0] * line
                            + place % p->step[1] * plane + place / p->step[1]
                        : f * p->rhs_stride[F] + y * p->rhs_stride[Y] + x * p->rhs_stride[X];
                }
        for (; l < k + NEXT; l++)
            at[l] = at[0];
        for (int64_t t = 0, j = 0; t < tiles && !in_place; t++) {
            int64_t wide = NAME(next)(columns - j) * LANES;
            T *out = panel + j * k + t * LANES;
            const NAME(Piece) *piece = pieces + first[t];
            int64_t some = first[t + 1] - first[t];
            for (int64_t f = 0; f < features; f++)
                for (int64_t y = 0; y < p->window[0]; y++)
                    for (int64_t x = 0; x < p->window[1]; x++, out += wide) {
                        int64_t place = x * p->gap[1];
                        const T *from = copy + f * channel + y * p->gap[0] * line
                            + place % p->step[1] * plane + place / p->step[1];
                        /* Up to a vector more is written than a piece has: over what follows. */
                        for (int64_t i = 0; i < some; i++)
                            for (int64_t q = 0; q < piece[i].count; q += LANES)
                                STORE(out + piece[i].to + q, LOAD(from + piece[i].from + q));
                    }
            j += wide;
        }
        const T *a = plan->a ? plan->a + (group * plan->k + f0 * plan->taps) * row_tiles * ROWS
                             : (const T *)p->rhs + group * p->rhs_stride[G] + f0 * p->rhs_stride[F];
        int64_t a_m = plan->a ? k : p->rhs_stride[N];
        for (int64_t i = 0; i < outputs; i += ROWS) {
            int rows = (int)least(outputs - i, ROWS);
            for (int64_t t = 0, j = 0; t < tiles; t++) {
                int vectors = NAME(next)(columns - j);
                if (in_place) {
                    const T *b[3];
                    T *to[3];
                    for (int v = 0; v < vectors; v++, j += LANES) {
                        b[v] = copy + spot[j / LANES];
                        to[v] = written ? out + goal[j / LANES] + i * p->out_stride[F] : c + i * c_m + j;
                    }
                    NAME(spot_tile_of)(rows, vectors, p->pairs, a + (o0 + i) * k, b, at, k, to,
                                       written ? p->out_stride[F] : c_m, part > 0);
                    continue;
                }
                const T *panel_tile = panel + j * k + t * LANES;
                if (!plan->a && (!plan->flat || p->pairs)) {
                    const T *each[ROWS];
                    for (int r = 0; r < rows; r++)
                        each[r] = a + (o0 + i + r) * a_m;
                    NAME(read_tile_of)(rows, vectors, p->pairs, each, at, panel_tile, k, c + i * c_m + j,
                                       c_m, part > 0);
                    j += vectors * LANES;
                    continue;
                }
                NAME(tile_of)(rows, vectors, plan->a ? 1 + p->pairs : 0, a + (o0 + i) * a_m, a_m, 1, panel_tile,
                              vectors * LANES, k, c + i * c_m + j, c_m, part > 0);
                j += vectors * LANES;
            }
        }
    }
    for (int64_t j = j0; j < j1 && !written;) {
        int64_t n = j / (width * height), y = j / width % height, x = j % width;
        int64_t end = least(flat ? (n + 1) * width * height : j - x + width, j1);
        const T *from = c + j - j0;
        T *to = out + n * p->out_stride[N] + y * p->out_stride[Y] + x * p->out_stride[X];
        for (int64_t o = 0; o < outputs; o++, from += c_m, to += p->out_stride[F])
            if (flat)
                NAME(copied)(from, end - j, to);
            else if (p->half)
                NAME(halves)(from, end - j, p->half, p->paired - x, to);
            else
                for (int64_t i = 0; i < end - j; i++)
                    to[i * p->out_stride[X]] = from[i];
        j = end;
    }
}

static int NAME(by_pixels)(const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads)
{
    NAME(Pixels) plan = {.p = p, .taps = p->window[0] * p->window[1]};
    plan.pixels = p->batch * p->positions[0] * p->positions[1];
    if (!plan.pixels)
        return 0;
    plan.k = plan.taps * p->features;
    plan.kept = least(p->step[1], p->window[1] ? (p->window[1] - 1) * p->gap[1] + 1 : 1);
    if (plan.k) {
        int64_t most = DEEP / plan.taps > 1 ? DEEP / plan.taps : 1;
        plan.parts = (p->features + most - 1) / most;
        plan.depth = (p->features + plan.parts - 1) / plan.parts;
        plan.parts = (p->features + plan.depth - 1) / plan.depth;
    }
    plan.wide = (plan.pixels + BLOCK - 1) / BLOCK;
    plan.columns = up((plan.pixels + plan.wide - 1) / plan.wide, COLUMNS);
    plan.wide = (plan.pixels + plan.columns - 1) / plan.columns;
    int64_t each = (p->outputs + 255) / 256, tasks = p->groups * plan.wide;
    if (threads > 1 && tasks * each < 2 * threads)
        each = (2 * threads + tasks - 1) / tasks;
    plan.rows = up((p->outputs + each - 1) / each, ROWS);
    plan.tall = (p->outputs + plan.rows - 1) / plan.rows;
    int64_t tiles = (p->outputs + ROWS - 1) / ROWS;
    plan.flat = (p->rhs_stride[X] == 1 || p->window[1] == 1)
        && (p->rhs_stride[Y] == p->window[1] || p->window[0] == 1)
        && (p->rhs_stride[F] == plan.taps || p->features == 1);
    /* One task reads each row of the kernel: packing would not be repaid. */
    if (plan.k && plan.wide > 1) {
        plan.a = stretto_scratch(SLOT_SHARED, (size_t)(p->groups * tiles * ROWS * plan.k) * sizeof(T));
        if (!plan.a)
            return -1;
        int64_t packs = p->groups * plan.parts * (plan.flat ? tiles : 1);
        stretto_parallel(frame, threads, packs, NAME(pack_kernel), &plan);
    }
    stretto_parallel(frame, threads, tasks * plan.tall, NAME(pixel_task), &plan);
    return plan.failed ? -1 : 0;
}

/* By pixels, of few features or outputs in a group: nothing is packed, and each output is read from
the bordered rows on its own. Where there is no step, the rows are one run, borders between them
included; else each is one. */

#define RUN 6 /* vectors of a run that are summed together */

INLINE void NAME(run_tile)(
    const int vectors, const T *a, const int64_t *at, int64_t k, const T *from, T *to)
{
    Vec sum[RUN];
UNROLL
    for (int j = 0; j < vectors; j++)
        sum[j] = (Vec){0};
    for (int64_t l = 0; l < k; l++) {
        Vec left = a[l] - (Vec){0};
        const T *place = from + at[l];
UNROLL
        for (int j = 0; j < vectors; j++)
            sum[j] += left * LOAD(place + j * LANES);
    }
UNROLL
    for (int j = 0; j < vectors; j++)
        STORE(to + j * LANES, sum[j]);
}

static void NAME(few_task)(void *work, int64_t index)
{
    NAME(Pixels) *plan = work;
    const Convolution *p = plan->p;
    int64_t block = index % plan->tall, n = index / plan->tall % p->batch;
    int64_t group = index / plan->tall / p->batch, width = p->positions[1];
    int64_t y0 = block * plan->rows, rows = least(p->positions[0] - y0, plan->rows);
    if (rows <= 0)
        return;
    int64_t reach = (p->window[0] - 1) * p->gap[0], lines = (rows - 1) * p->step[0] + reach + 1;
    int64_t plane = width + (p->window[1] - 1) * p->gap[1] / p->step[1], line = plane * plan->kept;
    int64_t across = (width - 1) * p->step[1] + (p->window[1] - 1) * p->gap[1] + 1;
    int64_t k = plan->k, channel = lines * line;
    int together = p->step[0] == 1 && plan->kept == 1;
    int64_t run = together ? (rows - 1) * line + width : width, runs = together ? 1 : rows;
    int64_t apart = together ? line : up(width, LANES); /* between rows of the results */
    size_t size = (size_t)(channel * p->features + RUN * LANES) * sizeof(T);
    T *copy = stretto_scratch(SLOT_A, size);
    int64_t *at = stretto_scratch(SLOT_B, (size_t)k * (sizeof(int64_t) + sizeof(T)));
    T *c = stretto_scratch(SLOT_C, (size_t)(rows * apart + RUN * LANES) * sizeof(T));
    if (!copy || !at || !c) {
        plan->failed = 1;
        return;
    }
    T *a = (T *)(at + k), *to = copy;
    const T *lhs = (const T *)p->lhs + group * p->lhs_stride[G] + n * p->lhs_stride[N];
    for (int64_t f = 0, l = 0; f < p->features; f++) {
        to = NAME(bordered_rows)(
            lhs + f * p->lhs_stride[F], p->lhs_stride[Y], p->image, y0 * p->step[0] - p->low[0], lines,
            1, -p->low[1], across, p->step[1], plan->kept, plane, to);
        for (int64_t y = 0; y < p->window[0]; y++)
            for (int64_t x = 0; x < p->window[1]; x++) {
                int64_t place = x * p->gap[1];
                at[l++] = f * channel + y * p->gap[0] * line + place % p->step[1] * plane
                    + place / p->step[1];
            }
    }
    for (int64_t o = 0; o < p->outputs; o++) {
        const T *rhs = (const T *)p->rhs + group * p->rhs_stride[G] + o * p->rhs_stride[N];
        for (int64_t f = 0, l = 0; f < p->features; f++)
            for (int64_t y = 0; y < p->window[0]; y++)
                for (int64_t x = 0; x < p->window[1]; x++)
                    a[l++] = rhs[f * p->rhs_stride[F] + y * p->rhs_stride[Y] + x * p->rhs_stride[X]];
        for (int64_t r = 0; r < runs; r++)
            for (int64_t j = 0; j < run;) {
                const T *from = copy + r * p->step[0] * line + j;
                T *result = c + r * apart + j;
                int64_t vectors = least((run - j + LANES - 1) / LANES, RUN);
                switch (vectors) {
                case 1: NAME(run_tile)(1, a, at, k, from, result); break;
                case 2: NAME(run_tile)(2, a, at, k, from, result); break;
                case 3: NAME(run_tile)(3, a, at, k, from, result); break;
                case 4: NAME(run_tile)(4, a, at, k, from, result); break;
                case 5: NAME(run_tile)(5, a, at, k, from, result); break;
                default: NAME(run_tile)(RUN, a, at, k, from, result);
                }
                j += vectors * LANES;
            }
        T *out = (T *)p->out + group * p->out_stride[G] + n * p->out_stride[N]
            + o * p->out_stride[F] + y0 * p->out_stride[Y];
        for (int64_t y = 0; y < rows; y++, out += p->out_stride[Y])
            if (p->out_stride[X] == 1)
                NAME(copied)(c + y * apart, width, out);
            else if (p->half)
                NAME(halves)(c + y * apart, width, p->half, p->paired, out);
            else
                for (int64_t x = 0; x < width; x++)
                    out[x * p->out_stride[X]] = c[y * apart + x];
    }
}

static int NAME(by_few)(const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads)
{
    NAME(Pixels) plan = {.p = p, .taps = p->window[0] * p->window[1]};
    plan.k = plan.taps * p->features;
    plan.kept = least(p->step[1], plan.taps ? (p->window[1] - 1) * p->gap[1] + 1 : 1);
    int64_t line = (p->positions[1] + p->window[1] * p->gap[1]) * p->step[1] * p->features;
    plan.rows = 1 + (1 << 16) / (line * p->step[0]); /* so that the bordered rows stay near */
    plan.tall = (p->positions[0] + plan.rows - 1) / plan.rows;
    stretto_parallel(frame, threads, p->groups * p->batch * plan.tall, NAME(few_task), &plan);
    return plan.failed ? -1 : 0;
}

static int64_t NAME(common)(int64_t a, int64_t b) { return b ? NAME(common)(b, a % b) : a; }

/* The convolution of positions `residue`, `residue` + spread, ... along an axis of a spread image:
position y and element w meet where y + w gap - low is a multiple of the spread. */
static void NAME(residue)(Convolution *p, int axis, int64_t residue)
{
    int64_t spread = p->spread[axis], gap = p->gap[axis], first = 0;
    while (first < p->window[axis] && (residue + first * gap - p->low[axis]) % spread)
        first++;
    int64_t apart = spread / NAME(common)(gap, spread);
    int64_t windows = (p->window[axis] - first + apart - 1) / apart;
    p->low[axis] = -(residue + first * gap - p->low[axis]) / spread;
    if (first >= p->window[axis])
        windows = 0, first = 0, p->low[axis] = 0;
    p->rhs = (const T *)p->rhs + first * p->rhs_stride[Y + axis];
    p->out = (T *)p->out + residue * p->out_stride[Y + axis];
    p->window[axis] = windows;
    p->rhs_stride[Y + axis] *= apart;
    p->gap[axis] = gap * apart / spread;
    p->out_stride[Y + axis] *= spread;
    if (axis == 1 && spread == 2 && p->out_stride[X] == 2) {
        p->half = (int)residue + 1;
        p->paired = p->positions[1] / 2;
    }
    p->positions[axis] = (p->positions[axis] - residue + spread - 1) / spread;
    p->spread[axis] = 1;
}

/* By outputs */

typedef struct {
    const Convolution *p;
    int64_t positions, elements; /* in the plane: of an example, and of a window */
    int64_t depth, parts;        /* of the sum, which is features times elements */
    int64_t cuts;                /* of a row of a window that is longer than a part, else 0 */
    int64_t examples, tall;      /* of a task, and tasks of them */
    int64_t columns, wide;       /* outputs of a task, and tasks of them */
    int failed;
} NAME(Outputs);

static void NAME(output_task)(void *work, int64_t index)
{
    NAME(Outputs) *plan = work;
    const Convolution *p = plan->p;
    int64_t column = index % plan->wide, block = index / plan->wide % plan->tall;
    int64_t group = index / plan->wide / plan->tall;
    int64_t n0 = block * plan->examples, examples = least(p->batch - n0, plan->examples);
    int64_t o0 = column * plan->columns, columns = least(p->outputs - o0, plan->columns);
    if (examples <= 0 || columns <= 0)
        return;
    int64_t rows = examples * plan->positions, padded = up(columns, LANES);
    int64_t c_m = padded + LANES; /* not a power of 2, by which rows would share lines of a cache */
    int64_t window = p->window[1], elements = plan->elements;
    int64_t reach = (p->positions[0] - 1) * p->step[0], length = plan->cuts ? plan->depth : window;
    int64_t across = (p->positions[1] - 1) * p->step[1] + (length - 1) * p->gap[1] + 1;
    /* Where no window leaves the image, it is read where it lies, without a copy. */
    int inside = 1;
    for (int axis = 0; axis < 2; axis++) {
        int64_t end = (p->positions[axis] - 1) * p->step[axis] - p->low[axis]
            + (p->window[axis] - 1) * p->gap[axis] + 1;
        inside = inside && p->low[axis] <= 0 && end <= p->image[axis];
    }
    /* The most bordered rows of a part: those of each feature, for a part of its windows' rows. */
    int64_t lines = plan->depth / window + 2;
    int64_t most = plan->depth / elements + 2;
    lines = lines * p->gap[0] + most * (reach + 1);
    size_t tables = (size_t)(rows + plan->depth + NEXT) * sizeof(int64_t);
    char *memory = stretto_scratch(SLOT_A, tables + (inside ? 0 : (size_t)(lines * across * examples + LANES) * sizeof(T)) + 64);
    T *panel = stretto_scratch(SLOT_B, (size_t)(padded * plan->depth) * sizeof(T));
    T *c = stretto_scratch(SLOT_C, (size_t)(up(rows, LANES) * c_m) * sizeof(T));
    if (!memory || !panel || !c) {
        plan->failed = 1;
        return;
    }
    int64_t *row = (int64_t *)memory, *at = row + rows;
    T *copy = (T *)(memory + (tables + 63) / 64 * 64);
    const T *lhs = (const T *)p->lhs + group * p->lhs_stride[G] + n0 * p->lhs_stride[N];
    const T *rhs = (const T *)p->rhs + group * p->rhs_stride[G] + o0 * p->rhs_stride[N];
    int flat = p->rhs_stride[X] == 1 && p->rhs_stride[Y] == window;
    int64_t total = p->features * elements;
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t from = part * plan->depth, end = total, begin = 0, used = 0;
        if (plan->cuts) { /* a part of a row */
            begin = part % plan->cuts * plan->depth;
            from = part / plan->cuts * window + begin;
            end = (part / plan->cuts + 1) * window;
        }
        int64_t k = least(end - from, plan->depth);
        /* How many bordered rows there are, and where each element of the sum begins. */
        for (int64_t l = 0; l < k;) {
            int64_t first = (from + l) % elements, count = least(elements - first, k - l);
            int64_t y0 = first / window, y1 = (first + count - 1) / window;
            for (int64_t i = 0; i < count; i++) {
                int64_t y = (first + i) / window, x = (first + i) % window;
                at[l + i] = inside
                    ? (from + l) / elements * p->lhs_stride[F] + x * p->gap[1] - p->low[1]
                        + (y * p->gap[0] - p->low[0]) * p->lhs_stride[Y]
                    : (used + (y - y0) * p->gap[0]) * across + (x - begin) * p->gap[1];
            }
            used += (y1 - y0) * p->gap[0] + reach + 1;
            l += count;
        }
        for (int64_t l = k; l < k + NEXT; l++)
            at[l] = at[0];
        for (int64_t n = 0; n < examples && !inside; n++) {
            T *to = copy + n * used * across;
            for (int64_t l = 0; l < k;) {
                int64_t f = (from + l) / elements, first = (from + l) % elements;
                int64_t count = least(elements - first, k - l);
                int64_t y0 = first / window, y1 = (first + count - 1) / window;
                to = NAME(bordered_rows)(
                    lhs + n * p->lhs_stride[N] + f * p->lhs_stride[F], p->lhs_stride[Y], p->image,
                    y0 * p->gap[0] - p->low[0], (y1 - y0) * p->gap[0] + reach + 1, 1,
                    begin * p->gap[1] - p->low[1], across, 1, 1, across, to);
                l += count;
            }
        }
        for (int64_t n = 0, r = 0; n < examples; n++)
            for (int64_t y = 0; y < p->positions[0]; y++)
                for (int64_t x = 0; x < p->positions[1]; x++)
                    row[r++] = x * p->step[1]
                        + (inside ? n * p->lhs_stride[N] + y * p->step[0] * p->lhs_stride[Y]
                                  : (n * used + y * p->step[0]) * across);
        for (int64_t j = 0; j < columns;) {
            int vectors = NAME(next)(columns - j);
            int64_t wide = vectors * LANES, some = least(columns - j, wide);
            for (int64_t l = 0; l < k;) {
                int64_t f = (from + l) / elements, first = (from + l) % elements;
                int64_t y = first / window, x = first % window;
                int64_t count = least(flat ? elements - first : window - x, k - l);
                NAME(pack_columns)(rhs + j * p->rhs_stride[N] + f * p->rhs_stride[F]
                                       + y * p->rhs_stride[Y] + x * p->rhs_stride[X],
                                   p->rhs_stride[X], p->rhs_stride[N], 0, PLAIN, some, count, vectors,
                                   panel + j * k + l * wide);
                l += count;
            }
            j += wide;
        }
        for (int64_t i = 0; i < rows; i += ROWS) {
            int high = (int)least(rows - i, ROWS);
            const T *a[ROWS];
            for (int r = 0; r < high; r++)
                a[r] = (inside ? lhs : copy) + row[i + r];
            for (int64_t j = 0; j < columns;) {
                int vectors = NAME(next)(columns - j);
                NAME(read_tile_of)(high, vectors, p->pairs, a, at, panel + j * k, k, c + i * c_m + j, c_m,
                                   part > 0);
                j += vectors * LANES;
            }
        }
    }
    T *out = (T *)p->out + group * p->out_stride[G] + n0 * p->out_stride[N] + o0 * p->out_stride[F];
    int64_t stride = p->out_stride[F], whole = 0;
    int even = p->out_stride[X] == 1 && p->out_stride[Y] == p->positions[1]
        && (p->out_stride[N] == plan->positions || examples == 1);
    if (even) { /* rows lie side by side in the result */
        whole = rows / LANES * LANES;
        int64_t o = 0;
        for (; o + LANES <= columns; o += LANES)
            for (int64_t r = 0; r < whole; r += LANES)
                NAME(turn)(c, r * c_m + o, c_m, PLAIN, out + o * stride + r, stride);
        for (; o < columns; o++)
            for (int64_t r = 0; r < whole; r++)
                out[o * stride + r] = c[r * c_m + o];
    }
    for (int64_t r = whole; r < rows; r++) {
        int64_t n = r / plan->positions, y = r % plan->positions / p->positions[1];
        T *to = out + n * p->out_stride[N] + y * p->out_stride[Y]
            + r % p->positions[1] * p->out_stride[X];
        for (int64_t o = 0; o < columns; o++)
            to[o * stride] = c[r * c_m + o];
    }
}

static int NAME(by_outputs)(const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads)
{
    NAME(Outputs) plan = {.p = p};
    plan.positions = p->positions[0] * p->positions[1];
    plan.elements = p->window[0] * p->window[1];
    int64_t total = plan.elements * p->features;
    int64_t whole = p->window[1] > DEEP ? p->window[1] : total;
    plan.parts = (whole + DEEP - 1) / DEEP;
    plan.depth = up((whole + plan.parts - 1) / plan.parts, 16);
    plan.parts = (whole + plan.depth - 1) / plan.depth;
    if (p->window[1] > DEEP) {
        plan.cuts = plan.parts;
        plan.parts *= p->features * p->window[0];
    }
    plan.wide = (p->outputs + BROAD - 1) / BROAD;
    plan.examples = least(p->batch, TALL / plan.positions > 1 ? TALL / plan.positions : 1);
    plan.tall = (p->batch + plan.examples - 1) / plan.examples;
    int64_t tasks = p->groups * plan.wide * plan.tall;
    if (threads > 1 && tasks < 2 * threads) {
        int64_t each = (2 * threads + tasks - 1) / tasks * plan.tall;
        plan.examples = (p->batch + each - 1) / each;
        plan.tall = (p->batch + plan.examples - 1) / plan.examples;
        /* Few examples, such as three colours: a task packs fewer outputs. */
        while (p->groups * plan.tall * plan.wide < 2 * threads && p->outputs >= 4 * LANES * plan.wide)
            plan.wide++;
    }
    plan.columns = up((p->outputs + plan.wide - 1) / plan.wide, LANES);
    plan.wide = (p->outputs + plan.columns - 1) / plan.columns;
    stretto_parallel(frame, threads, p->groups * plan.wide * plan.tall, NAME(output_task), &plan);
    return plan.failed ? -1 : 0;
}

/* By elements, where there are few outputs: lanes are elements of a window's row, and each position
has a vector of sums, which is added up in the end. Lanes past the end of a row are zeros on both
sides, since what lies there in the image need not be finite. */

#define SOME 8 /* positions that are summed together */

INLINE void NAME(row_sums)(
    const int count, const T *image, int64_t image_row, const int64_t *at, const T *window,
    int64_t window_row, int64_t rows, int64_t length, T *sums)
{
    Vec sum[SOME];
    Places kept;
    int64_t whole = length / LANES * LANES;
    for (int l = 0; l < LANES; l++)
        kept[l] = l < length - whole ? -1 : 0;
UNROLL
    for (int i = 0; i < count; i++)
        sum[i] = (Vec){0};
    for (int64_t y = 0; y < rows; y++, image += image_row, window += window_row) {
        for (int64_t x = 0; x < whole; x += LANES) {
            Vec right = LOAD(window + x);
UNROLL
            for (int i = 0; i < count; i++)
                sum[i] += right * LOAD(image + at[i] + x);
        }
        if (whole < length) {
            Vec right = LOAD(window + whole);
UNROLL
            for (int i = 0; i < count; i++) {
                Vec left = LOAD(image + at[i] + whole);
                sum[i] += right * (Vec)((Places)left & kept);
            }
        }
    }
UNROLL
    for (int i = 0; i < count; i++)
        STORE(sums + i * LANES, LOAD(sums + i * LANES) + sum[i]);
}

static void NAME(element_task)(void *work, int64_t index)
{
    NAME(Outputs) *plan = work;
    const Convolution *p = plan->p;
    int64_t n = index % p->batch, group = index / p->batch, length = p->window[1];
    int64_t positions = plan->positions, gap = p->gap[1], reach = (p->positions[0] - 1) * p->step[0];
    /* Elements of a window lie `gap` apart in the image: side by side, in planes by residue. */
    int64_t farthest = (p->positions[1] - 1) * p->step[1];
    int64_t kept = least(gap, farthest + 1), plane = length + farthest / gap;
    int64_t line = plane * kept, across = (length - 1) * gap + farthest + 1;
    int64_t lines = (plan->depth - 1) * p->gap[0] + reach + 1, row = up(length, LANES);
    T *copy = stretto_scratch(SLOT_A, (size_t)(lines * line + LANES) * sizeof(T));
    T *window = stretto_scratch(SLOT_B, (size_t)(plan->depth * row) * sizeof(T));
    T *sums = stretto_scratch(
        SLOT_C, (size_t)(p->outputs * positions * LANES) * sizeof(T) + (size_t)positions * sizeof(int64_t));
    if (!copy || !window || !sums) {
        plan->failed = 1;
        return;
    }
    int64_t *at = (int64_t *)(sums + p->outputs * positions * LANES), l = 0;
    for (int64_t y = 0; y < p->positions[0]; y++)
        for (int64_t x = 0; x < p->positions[1]; x++) {
            int64_t place = x * p->step[1];
            at[l++] = y * p->step[0] * line + place % gap * plane + place / gap;
        }
    memset(sums, 0, (size_t)(p->outputs * positions * LANES) * sizeof(T));
    for (int64_t f = 0; f < p->features; f++)
        for (int64_t y0 = 0; y0 < p->window[0]; y0 += plan->depth) {
            int64_t rows = least(p->window[0] - y0, plan->depth);
            const T *image = (const T *)p->lhs + group * p->lhs_stride[G] + n * p->lhs_stride[N]
                + f * p->lhs_stride[F];
            NAME(bordered_rows)(
                image, p->lhs_stride[Y], p->image, y0 * p->gap[0] - p->low[0],
                (rows - 1) * p->gap[0] + reach + 1, 1, -p->low[1], across, gap, kept, plane, copy);
            for (int64_t o = 0; o < p->outputs; o++) {
                const T *rhs = (const T *)p->rhs + group * p->rhs_stride[G] + o * p->rhs_stride[N]
                    + f * p->rhs_stride[F] + y0 * p->rhs_stride[Y];
                for (int64_t y = 0; y < rows; y++, rhs += p->rhs_stride[Y]) {
                    T *into = window + y * row;
                    if (p->rhs_stride[X] == 1)
                        NAME(copied)(rhs, length, into);
                    else
                        for (int64_t x = 0; x < length; x++)
                            into[x] = rhs[x * p->rhs_stride[X]];
                    for (int64_t x = length; x < row; x++)
                        into[x] = 0;
                }
                for (int64_t q = 0; q < positions; q += SOME) {
                    T *sum = sums + (o * positions + q) * LANES;
                    int64_t step = p->gap[0] * line;
#define SUMS(c)                                                                                    \
    case c:                                                                                        \
        NAME(row_sums)(c, copy, step, at + q, window, row, rows, length, sum);                     \
        break;
                    switch (least(positions - q, SOME)) {
                        SUMS(1) SUMS(2) SUMS(3) SUMS(4) SUMS(5) SUMS(6) SUMS(7) SUMS(8)
                    }
                }
            }
        }
    T *out = (T *)p->out + group * p->out_stride[G] + n * p->out_stride[N];
    for (int64_t o = 0; o < p->outputs; o++)
        for (int64_t q = 0; q < positions; q++) {
            T *sum = sums + (o * positions + q) * LANES;
            for (int half = LANES / 2; half; half /= 2)
                for (int s = 0; s < half; s++)
                    sum[s] += sum[s + half];
            out[o * p->out_stride[F] + q / p->positions[1] * p->out_stride[Y]
                + q % p->positions[1] * p->out_stride[X]] = sum[0];
        }
}

static int NAME(by_elements)(const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads)
{
    NAME(Outputs) plan = {.p = p, .positions = p->positions[0] * p->positions[1]};
    int64_t line = (p->window[1] + p->positions[1] * p->step[1]) * p->gap[1] * p->gap[0];
    plan.depth = least(1 + (1 << 14) / line, p->window[0]); /* rows whose image stays near */
    stretto_parallel(frame, threads, p->groups * p->batch, NAME(element_task), &plan);
    return plan.failed ? -1 : 0;
}

#include "winograd.h"
#include "panels.h"

/* The whole */

static int NAME(convolution_of)(const XLA_FFI_CallFrame *frame, const Convolution *p)
{
    int64_t positions = p->batch * p->positions[0] * p->positions[1];
    if (!p->groups || !p->outputs || !positions)
        return 0;
    int64_t elements = p->features * p->window[0] * p->window[1];
    double work = (double)p->groups * (double)p->outputs * (double)positions * (double)elements;
    int64_t threads = stretto_threads_for(frame, work);
    if (!p->pairs && NAME(suits_winograd)(p)) {
        int strange = 0, failed = p->by_outputs ? NAME(winograd_by_kernel)(frame, p, threads, &strange)
                                                : NAME(winograd)(frame, p, threads, &strange);
        if (failed || !strange)
            return failed;
    }
    if (p->by_outputs && elements)
        return p->outputs <= FEW_OUTPUTS ? NAME(by_elements)(frame, p, threads)
                                         : NAME(by_outputs)(frame, p, threads);
    if (NAME(suits_panels)(p))
        return NAME(by_panels)(frame, p, threads);
    for (int64_t y = 0; y < p->spread[0]; y++)
        for (int64_t x = 0; x < p->spread[1]; x++) {
            Convolution one = *p;
            if (p->spread[0] > 1)
                NAME(residue)(&one, 0, y);
            if (p->spread[1] > 1)
                NAME(residue)(&one, 1, x);
            if (one.batch * one.positions[0] * one.positions[1] == 0)
                continue;
            int few = one.window[0] * one.window[1] > 0
                && (one.outputs <= 2 || (one.groups > 1 && one.features <= 4 && one.outputs <= 3));
            int failed = few ? NAME(by_few)(frame, &one, threads)
                             : NAME(by_pixels)(frame, &one, threads);
            if (failed)
                return failed;
        }
    return 0;
}

/* Arrays of half width, as they lie: operands become floats, or words of two features that lie
`apart`, each in the place of the first; results are rounded. */

typedef struct {
    const void *from;
    void *to;
    int64_t size, apart; /* 0: of floats */
    int kind, rounds;
} NAME(Whole);

#define CHUNK 16384 /* elements of a task */

static void NAME(convert_part)(void *work, int64_t index)
{
    const NAME(Whole) *w = work;
    int64_t i = index * CHUNK, end = least(w->size, i + CHUNK), apart = w->apart;
    if (w->rounds) {
        BY_KIND(w->kind, for (; i + LANES <= end; i += LANES)
                             NAME(store)(w->to, i, LOAD((const T *)w->from + i), KIND);
                if (i < end) { /* there is room behind what is rounded */
                    T some[LANES];
                    NAME(store)(some, 0, LOAD((const T *)w->from + i), KIND);
                    memcpy((uint16_t *)w->to + i, some, (size_t)(end - i) * 2);
                })
        return;
    }
    /* Of features whose planes are large, every second is left out. */
    for (int64_t stop = end; i < end; i = stop) {
        int64_t plane = apart > LANES ? i / apart : 0;
        stop = apart > LANES ? least(end, (plane + 1) * apart) : end;
        BY_KIND(w->kind, while (i < stop && plane % 2 == 0)
            if (i + LANES <= end && i + LANES + apart <= w->size) {
                STORE((T *)w->to + i, NAME(load)(w->from, i, apart, KIND));
                i += LANES;
            } else {
                if (i + apart < w->size)
                    ((T *)w->to)[i] = NAME(one)(w->from, i, apart, KIND);
                i++;
            })
    }
}

static int NAME(convolution)(const XLA_FFI_CallFrame *frame, const Convolution *p)
{
    Convolution wide = *p;
    if (p->kind == PLAIN) {
        wide.rhs = (const T *)p->rhs + p->rhs_first;
        return NAME(convolution_of)(frame, &wide);
    }
    int64_t *f = wide.lhs_stride + F, *g = wide.rhs_stride + F, threads = stretto_threads(frame);
    int64_t lhs = up(p->lhs_size, LANES), rhs = up(p->rhs_size, LANES);
    int rounds = p->out_kind != PLAIN;
    int64_t out = rounds ? up(p->out_size, LANES) + LANES : 0;
    T *memory = stretto_scratch(SLOT_WIDE, (size_t)(lhs + rhs + out) * sizeof(T));
    if (!memory)
        return -1;
    wide.lhs = memory, wide.rhs = memory + lhs + p->rhs_first;
    wide.out = rounds ? memory + lhs + rhs : p->out;
    wide.pairs = WITH_PAIRS && stretto_pairs && p->kind == BFLOAT16 && p->features % 2 == 0 && *f > 0
        && *g > 0 && p->features >= 16 && p->outputs > FEW_OUTPUTS;
    int kind = wide.pairs ? APART : p->kind;
    NAME(Whole) each[] = {{p->lhs, memory, p->lhs_size, wide.pairs ? *f : 0, kind, 0},
                          {p->rhs, memory + lhs, p->rhs_size, wide.pairs ? *g : 0, kind, 0},
                          {wide.out, p->out, p->out_size, 0, p->out_kind, 1}};
    for (int i = 0; i < 2; i++)
        stretto_parallel(frame, threads, (each[i].size + CHUNK - 1) / CHUNK, NAME(convert_part), each + i);
    if (wide.pairs)
        wide.features /= 2, *f *= 2, *g *= 2;
    int failed = NAME(convolution_of)(frame, &wide);
    if (rounds && !failed)
        stretto_parallel(frame, threads, (p->out_size + CHUNK - 1) / CHUNK, NAME(convert_part), each + 2);
    stretto_forget(SLOT_WIDE);
    return failed;
}
