/* Convolutions by windows of three by three, with fewer products: for one type and one level.

Two outputs beside each other, of windows of three elements, take four products in place of six
(Winograd, Arithmetic complexity of computations, 1980; Lavin and Gray, Fast algorithms for
convolutional neural networks, arXiv 1509.09308):

    m0 = (d0 - d2) g0,  m1 = (d1 + d2) (g0 + g1 + g2) / 2,
    m3 = (d1 - d3) g2,  m2 = (d2 - d1) (g0 - g1 + g2) / 2,
    y0 = m0 + m1 + m2,  y1 = m1 - m2 - m3.

Along both axes that is 16 products for a square of two by two outputs, a tile, in place of 36. For
each of the 16 they are a matrix product over features: of the kernels' words, which are made once
and packed, and those of the image, which each task makes of its tiles.

- No output reads what its own window does not hold: y0 is made of d0 to d2 alone. So what is not
  finite stays where it belongs. But infinity less infinity is NaN, where a sum in order would be
  infinite: where any output is not finite, all are computed again by sums in order.
- An element's sum is taken in an order that the geometry alone decides, whatever the tasks.
*/

#define WORDS 16 /* of a tile, and of a window */
#define TAPS 9
#define ENOUGH 112 /* tiles that repay a pass over the kernels' words, which may lie in memory */
#define MOST 6 /* vectors of tiles in a task */

typedef T NAME(Column) __attribute__((vector_size(ROWS * sizeof(T))));
typedef T NAME(LooseColumn)
    __attribute__((vector_size(ROWS * sizeof(T)), aligned(sizeof(T)), may_alias));

typedef struct {
    const Convolution *p;
    int64_t across, down;  /* tiles of an example: in a row of them, and rows */
    int64_t tiles;         /* of all examples */
    int64_t columns, wide; /* tiles of a task, and tasks of them */
    int64_t rows, tall;    /* outputs of a task, and tasks of them */
    int64_t high;          /* tiles of ROWS outputs in all */
    int64_t apart;         /* between words of a tile of rows: not a power of 2 */
    T *kernel;             /* words of kernels: by group, tile of rows, word, feature, row */
    int failed, strange;   /* strange: whether any output is not finite */
} NAME(Winograd);

/* The kernels' words */

static void NAME(winograd_kernel)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    const Convolution *p = plan->p;
    int64_t group = index / plan->high, tile = index % plan->high, row = p->rhs_stride[N];
    int64_t rows = NAME(least)(p->outputs - tile * ROWS, ROWS), apart = plan->apart;
    const int64_t *stride = p->rhs_stride;
    const T *a = (const T *)p->rhs + group * stride[G] + tile * ROWS * row;
    T *out = plan->kernel + (group * plan->high + tile) * WORDS * apart;
    /* Windows that lie side by side, as users keep them, or reversed in gradients by the image:
    their rows are turned by vectors. Where the last would be read past its end, one by one. */
    int back = stride[X] == -1 && stride[Y] == -3;
    int even = rows == ROWS && (back || (stride[X] == 1 && stride[Y] == 3)) && TAPS <= 2 * LANES;
    const T *first = back ? a - (TAPS - 1) : a;
    int64_t safe = tile + 1 < plan->high ? p->features : p->features - 1;
    T taps[2 * LANES * ROWS + TAPS * ROWS] __attribute__((aligned(64)));
    memset(taps, 0, sizeof taps);
    for (int64_t f = 0; f < p->features; f++, a += stride[F], first += stride[F], out += ROWS) {
        int turned = even && f < safe;
        if (turned)
            for (int64_t l = 0; l < TAPS; l += LANES) {
                if (l + LANES <= TAPS || l == 0)
                    NAME(turn_rows)(first + l, row, taps + l * ROWS);
                else
                    for (; l < TAPS; l++)
                        for (int64_t i = 0; i < ROWS; i++)
                            taps[l * ROWS + i] = first[i * row + l];
            }
        else
            for (int64_t l = 0; l < TAPS; l++)
                for (int64_t i = 0; i < rows; i++)
                    taps[l * ROWS + i] = a[i * row + l / 3 * stride[Y] + l % 3 * stride[X]];
        NAME(Column) words[4][3];
UNROLL
        for (int x = 0; x < 3; x++) {
            const NAME(LooseColumn) *g = (const NAME(LooseColumn) *)taps;
            int reversed = turned && back;
            NAME(Column) g0 = g[reversed ? 8 - x : x], g1 = g[reversed ? 5 - x : 3 + x];
            NAME(Column) g2 = g[reversed ? 2 - x : 6 + x], ends = g0 + g2;
            words[0][x] = g0;
            words[1][x] = (ends + g1) * (T)0.5;
            words[2][x] = (ends - g1) * (T)0.5;
            words[3][x] = g2;
        }
UNROLL
        for (int y = 0; y < 4; y++) {
            NAME(Column) ends = words[y][0] + words[y][2];
            T *to = out + 4 * y * apart;
            *(NAME(LooseColumn) *)to = words[y][0];
            *(NAME(LooseColumn) *)(to + apart) = (ends + words[y][1]) * (T)0.5;
            *(NAME(LooseColumn) *)(to + 2 * apart) = (ends - words[y][1]) * (T)0.5;
            *(NAME(LooseColumn) *)(to + 3 * apart) = words[y][2];
        }
    }
}

/* Tiles that lie side by side, in a task and in a row of the image. */
typedef struct {
    int64_t from;         /* in the bordered rows */
    int64_t n, y, x;      /* of the first */
    int64_t to, count;
} NAME(Run);

/* The words of one feature: of rows of an image whose places are apart by residue, evens first. */
static inline void NAME(winograd_image)(
    const T *rows, int64_t plane, const NAME(Run) *run, int64_t runs, T *words, int64_t apart)
{
    for (int64_t i = 0; i < runs; i++)
        for (int64_t q = 0; q < run[i].count; q += LANES) {
            const T *from = rows + run[i].from + q;
            T *to = words + run[i].to + q;
            Vec row[4][4];
UNROLL
            for (int y = 0; y < 4; y++, from += 2 * plane) {
                Vec d0 = LOAD(from), d1 = LOAD(from + plane);
                Vec d2 = LOAD(from + 1), d3 = LOAD(from + plane + 1);
                row[y][0] = d0 - d2;
                row[y][1] = d1 + d2;
                row[y][2] = d2 - d1;
                row[y][3] = d1 - d3;
            }
UNROLL
            for (int x = 0; x < 4; x++) {
                STORE(to + x * apart, row[0][x] - row[2][x]);
                STORE(to + (4 + x) * apart, row[1][x] + row[2][x]);
                STORE(to + (8 + x) * apart, row[2][x] - row[1][x]);
                STORE(to + (12 + x) * apart, row[1][x] - row[3][x]);
            }
        }
}

/* Put two vectors into each other: the first of one, the first of the other, and so on. */
static inline void NAME(paired)(Vec one, Vec other, T *to)
{
#if defined(__GNUC__) && !defined(__clang__)
    NAME(Places) low, high;
    for (int l = 0; l < LANES; l++) {
        low[l] = l / 2 + l % 2 * LANES;
        high[l] = l / 2 + l % 2 * LANES + LANES / 2;
    }
    STORE(to, __builtin_shuffle(one, other, low));
    STORE(to + LANES, __builtin_shuffle(one, other, high));
#else
    for (int l = 0; l < LANES; l++)
        to[2 * l] = one[l], to[2 * l + 1] = other[l];
#endif
}

/* The outputs of one feature's words. Returns zeros, or NaN if any is not finite. */
static inline Vec NAME(winograd_outputs)(
    const Convolution *p, const T *words, int64_t apart, const NAME(Run) *run, int64_t runs, T *out)
{
    Vec strange = {0};
    for (int64_t i = 0; i < runs; i++)
        for (int64_t q = 0; q < run[i].count; q += LANES) {
            const T *from = words + run[i].to + q;
            Vec row[2][4];
UNROLL
            for (int x = 0; x < 4; x++) {
                Vec m0 = LOAD(from + x * apart), m1 = LOAD(from + (4 + x) * apart);
                Vec m2 = LOAD(from + (8 + x) * apart), m3 = LOAD(from + (12 + x) * apart);
                row[0][x] = m0 + m1 + m2;
                row[1][x] = m1 - m2 - m3;
            }
            int64_t count = NAME(least)(run[i].count - q, LANES), x = 2 * (run[i].x + q);
            int64_t width = NAME(least)(2 * count, p->positions[1] - x);
            T *to = out + run[i].n * p->out_stride[N] + 2 * run[i].y * p->out_stride[Y] + x;
            NAME(Places) kept;
            for (int l = 0; l < LANES; l++)
                kept[l] = l < count ? -1 : 0;
            for (int y = 0; y < 2 && 2 * run[i].y + y < p->positions[0]; y++) {
                Vec y0 = row[y][0] + row[y][1] + row[y][2], y1 = row[y][1] - row[y][2] - row[y][3];
                Vec none = (y0 - y0) + (y1 - y1);
                strange += (Vec)((NAME(Places))none & kept);
                T pairs[2 * LANES] __attribute__((aligned(64)));
                if (width == 2 * LANES)
                    NAME(paired)(y0, y1, to + y * p->out_stride[Y]);
                else {
                    NAME(paired)(y0, y1, pairs);
                    memcpy(to + y * p->out_stride[Y], pairs, (size_t)width * sizeof(T));
                }
            }
        }
    return strange;
}

/* Copy `rows` bordered rows of an array, places apart by residue. */
static void NAME(winograd_rows)(
    const T *from, int64_t stride, const int64_t *size, int64_t y, int64_t x, int64_t rows,
    int64_t plane, T *to)
{
    for (int64_t i = 0; i < rows; i++, y++, to += 2 * plane)
        NAME(bordered)(y < 0 || y >= size[0] ? NULL : from + y * stride, size[1], x, 2 * plane, 2, 2,
                       plane, to);
}

/* c = a b, or c += a b, of one word: a packed, its tiles of rows `high` apart; b and c in rows of
`width`. */
static void NAME(winograd_product)(
    int64_t rows, int64_t width, int64_t k, const T *a, int64_t high, const T *b, T *c, int add)
{
    for (int64_t i = 0; i < rows; i += ROWS, a += high, c += ROWS * width)
        for (int64_t j = 0; j < width;) {
            int vectors = NAME(next)(width - j);
            NAME(tile_of)((int)NAME(least)(rows - i, ROWS), vectors, 1, a, 0, 0, b + j, width, k, c + j,
                          width, add);
            j += vectors * LANES;
        }
}

static void NAME(winograd_task)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    const Convolution *p = plan->p;
    int64_t row = index % plan->tall, block = index / plan->tall % plan->wide;
    int64_t group = index / plan->tall / plan->wide;
    int64_t j0 = block * plan->columns, columns = NAME(least)(plan->tiles - j0, plan->columns);
    int64_t o0 = row * plan->rows, outputs = NAME(least)(p->outputs - o0, plan->rows);
    if (columns <= 0 || outputs <= 0)
        return;
    /* The bordered rows: those that these tiles meet, of each example; of one row its part. */
    int64_t across = plan->across, down = plan->down, begin = 0, along = across;
    if (j0 / across == (j0 + columns - 1) / across)
        begin = j0 % across, along = columns;
    int64_t plane = along + 1, lines = 0, runs = 0;
    NAME(Run) run[MOST * LANES];
    for (int64_t j = 0; j < columns; j += run[runs++].count) {
        int64_t n = (j0 + j) / (across * down), y = (j0 + j) / across % down, x = (j0 + j) % across;
        if (runs && run[runs - 1].n == n)
            lines -= 2; /* which two rows of tiles share */
        run[runs] = (NAME(Run)){
            lines * 2 * plane + x - begin, n, y, x, j, NAME(least)(columns - j, across - x)};
        lines += 4;
    }
    int64_t width = NAME(up)(columns, LANES), apart = p->features * width + LANES;
    int64_t high = outputs * width + LANES;
    T *copy = stretto_scratch(SLOT_A, (size_t)(lines * 2 * plane + 2 * LANES) * sizeof(T));
    T *image = stretto_scratch(SLOT_B, (size_t)(WORDS * apart) * sizeof(T));
    T *sums = stretto_scratch(SLOT_C, (size_t)(WORDS * high) * sizeof(T));
    if (!copy || !image || !sums) {
        plan->failed = 1;
        return;
    }
    const T *lhs = (const T *)p->lhs + group * p->lhs_stride[G];
    for (int64_t f = 0; f < p->features; f++, lhs += p->lhs_stride[F]) {
        for (int64_t i = 0; i < runs;) {
            int64_t first = i, y = 2 * run[i].y - p->low[0];
            for (i++; i < runs && run[i].n == run[first].n;)
                i++;
            T *to = copy + run[first].from - (run[first].x - begin);
            NAME(winograd_rows)(lhs + run[first].n * p->lhs_stride[N], p->lhs_stride[Y], p->image, y,
                                2 * begin - p->low[1], 2 * (i - first) + 2, plane, to);
        }
        /* Up to a vector more is written than a run has: over what follows. */
        NAME(winograd_image)(copy, plane, run, runs, image + f * width, apart);
    }
    const T *a = plan->kernel + (group * plan->high + o0 / ROWS) * WORDS * plan->apart;
    for (int64_t w = 0; w < WORDS; w++)
        NAME(winograd_product)(outputs, width, p->features, a + w * plan->apart, WORDS * plan->apart,
                               image + w * apart, sums + w * high, 0);
    T *out = (T *)p->out + group * p->out_stride[G] + o0 * p->out_stride[F];
    Vec strange = {0};
    for (int64_t o = 0; o < outputs; o++, out += p->out_stride[F])
        strange += NAME(winograd_outputs)(p, sums + o * width, high, run, runs, out);
    for (int l = 0; l < LANES; l++)
        if (!(strange[l] == 0))
            plan->strange = 1;
}

/* Whether fewer products are worth their words: for so many examples of features and outputs, where
axes of `three` elements meet those of `many`, which are cut into tiles. */
static int NAME(fewer)(
    const Convolution *p, int64_t examples, int64_t features, const int64_t *three, const int64_t *many)
{
    if (sizeof(T) != 4 || features < 32 || p->outputs < 32)
        return 0;
    for (int axis = 0; axis < 2; axis++)
        if (three[axis] != 3 || p->step[axis] != 1 || p->gap[axis] != 1 || p->spread[axis] != 1)
            return 0;
    int64_t tiles = examples * ((many[0] + 1) / 2) * ((many[1] + 1) / 2);
    return tiles >= ENOUGH && examples * many[0] * many[1] >= 3 * tiles;
}

static int NAME(suits_winograd)(const Convolution *p)
{
    if (p->by_outputs)
        return p->rhs_stride[X] == 1 && NAME(fewer)(p, p->features, p->batch, p->positions, p->window);
    return p->out_stride[X] == 1 && NAME(fewer)(p, p->batch, p->features, p->window, p->positions);
}

static int NAME(winograd)(
    const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads, int *strange)
{
    NAME(Winograd) plan = {.p = p, .across = (p->positions[1] + 1) / 2, .down = (p->positions[0] + 1) / 2};
    plan.tiles = p->batch * plan.across * plan.down;
    int64_t vectors = (plan.tiles + LANES - 1) / LANES;
    int64_t most = vectors <= MOST ? MOST : 3;
    plan.wide = (vectors + most - 1) / most;
    plan.columns = (vectors + plan.wide - 1) / plan.wide * LANES;
    plan.wide = (plan.tiles + plan.columns - 1) / plan.columns;
    int64_t tasks = p->groups * plan.wide, each = threads == 1 ? 1 : (4 * threads + tasks - 1) / tasks;
    plan.high = (p->outputs + ROWS - 1) / ROWS;
    plan.rows = NAME(up)((p->outputs + each - 1) / each, ROWS);
    plan.tall = (p->outputs + plan.rows - 1) / plan.rows;
    plan.apart = p->features * ROWS + LANES;
    plan.kernel = stretto_scratch(SLOT_SHARED, (size_t)(p->groups * plan.high * WORDS * plan.apart) * sizeof(T));
    if (!plan.kernel)
        return -1;
    NAME(run_tasks)(frame, threads, p->groups * plan.high, NAME(winograd_kernel), &plan);
    NAME(run_tasks)(frame, threads, tasks * plan.tall, NAME(winograd_task), &plan);
    *strange = plan.strange;
    return plan.failed ? -1 : 0;
}

/* Gradients by the kernel: three outputs beside each other of two elements, which is the transpose
of the above. The words of the image are the same, those of the gradient take no product:

    a0 = y0,  a1 = y0 + y1,  a2 = y0 - y1,  a3 = -y1,  m = a (words of the image),
    g0 = m0 + (m1 + m2) / 2,  g1 = (m1 - m2) / 2,  g2 = (m1 + m2) / 2 + m3.

For each word a product sums over tiles, block by block of them: in one phase all make its words,
turned so that those of a tile lie side by side, in the next they multiply. */

#define WORDS_OF_BLOCK (1 << 20) /* elements of both sides: what stays in the nearer caches */

typedef struct {
    const Convolution *p;
    int64_t across, down;  /* tiles of an example: in a row of them, and rows */
    int64_t rows;          /* of tiles in a block */
    int64_t first, count;  /* rows of tiles of this block */
    int64_t group, width, high; /* features of the image, rounded up; tiles of ROWS outputs */
    int64_t image_apart, slope_apart, sum_apart; /* between words */
    T *image, *slope, *sums;
    int failed, strange;
} NAME(Slopes);

static void NAME(winograd_sides)(void *work, int64_t index)
{
    NAME(Slopes) *plan = work;
    const Convolution *p = plan->p;
    int of_slope = index < plan->high;
    int64_t many = of_slope ? ROWS : LANES, lines = of_slope ? 2 : 4;
    int64_t c0 = (of_slope ? index : index - plan->high) * many;
    int64_t some = NAME(least)((of_slope ? p->outputs : p->batch) - c0, many);
    const int64_t *stride = of_slope ? p->rhs_stride : p->lhs_stride;
    const T *from = (const T *)(of_slope ? p->rhs : p->lhs) + plan->group * stride[G] + c0 * stride[N];
    int64_t plane = plan->across + 1, each = lines * 2 * plane;
    T *copy = stretto_scratch(SLOT_A, (size_t)(many * each + 2 * LANES) * sizeof(T));
    T *words = stretto_scratch(SLOT_B, (size_t)(WORDS * LANES * LANES + WORDS * ROWS * LANES) * sizeof(T));
    if (!copy || !words) {
        plan->failed = 1;
        return;
    }
    if (some < many)
        memset(words, 0, (size_t)(WORDS * many * LANES) * sizeof(T));
    for (int64_t r = 0; r < plan->count; r++) {
        int64_t f = (plan->first + r) / plan->down, y = 2 * ((plan->first + r) % plan->down);
        for (int64_t c = 0; c < some; c++)
            NAME(winograd_rows)(from + f * stride[F] + c * stride[N], stride[Y],
                                of_slope ? p->window : p->image, of_slope ? y : y - p->low[0],
                                of_slope ? 0 : -p->low[1], lines, plane, copy + c * each);
        for (int64_t q = 0; q < plan->across; q += LANES) {
            int64_t tile = r * plan->across + q;
            for (int64_t c = 0; c < some; c++) {
                const T *at = copy + c * each + q;
                T *to = words + c * LANES;
                if (!of_slope) {
                    NAME(Run) one = {0, 0, 0, 0, 0, 1};
                    NAME(winograd_image)(at, plane, &one, 1, to, LANES * LANES);
                    continue;
                }
                Vec row[2][4];
UNROLL
                for (int i = 0; i < 2; i++) {
                    Vec y0 = LOAD(at + 2 * i * plane), y1 = LOAD(at + (2 * i + 1) * plane);
                    row[i][0] = y0;
                    row[i][1] = y0 + y1;
                    row[i][2] = y0 - y1;
                    row[i][3] = -y1;
                }
UNROLL
                for (int x = 0; x < 4; x++) {
                    STORE(to + x * ROWS * LANES, row[0][x]);
                    STORE(to + (4 + x) * ROWS * LANES, row[0][x] + row[1][x]);
                    STORE(to + (8 + x) * ROWS * LANES, row[0][x] - row[1][x]);
                    STORE(to + (12 + x) * ROWS * LANES, -row[1][x]);
                }
            }
            /* Up to a vector more of tiles is written than a row has: over what follows. */
            for (int64_t w = 0; w < WORDS; w++)
                if (of_slope)
                    NAME(turn_rows)(words + w * ROWS * LANES, LANES,
                                    plan->slope + (index * WORDS + w) * plan->slope_apart + tile * ROWS);
                else
                    NAME(turn)(words + w * LANES * LANES, LANES,
                               plan->image + w * plan->image_apart + tile * plan->width + c0, plan->width);
        }
    }
}

static void NAME(winograd_sums)(void *work, int64_t index)
{
    NAME(Slopes) *plan = work;
    int64_t w = index % WORDS, first = index / WORDS * 8, k = plan->count * plan->across;
    int64_t rows = ROWS * NAME(least)(plan->high - first, 8);
    NAME(winograd_product)(rows, plan->width, k, plan->slope + (first * WORDS + w) * plan->slope_apart,
                           WORDS * plan->slope_apart, plan->image + w * plan->image_apart,
                           plan->sums + w * plan->sum_apart + first * ROWS * plan->width,
                           plan->first > 0);
}

static void NAME(winograd_slopes)(void *work, int64_t index)
{
    NAME(Slopes) *plan = work;
    const Convolution *p = plan->p;
    T *out = (T *)p->out + plan->group * p->out_stride[G] + index * p->out_stride[F];
    T taps[TAPS][LANES] __attribute__((aligned(64)));
    int strange = 0;
    for (int64_t n = 0; n < p->batch; n += LANES) {
        const T *from = plan->sums + index * plan->width + n;
        Vec row[3][4];
UNROLL
        for (int x = 0; x < 4; x++) {
            Vec m0 = LOAD(from + x * plan->sum_apart), m1 = LOAD(from + (4 + x) * plan->sum_apart);
            Vec m2 = LOAD(from + (8 + x) * plan->sum_apart), m3 = LOAD(from + (12 + x) * plan->sum_apart);
            Vec ends = (m1 + m2) * (T)0.5;
            row[0][x] = m0 + ends;
            row[1][x] = (m1 - m2) * (T)0.5;
            row[2][x] = ends + m3;
        }
UNROLL
        for (int y = 0; y < 3; y++) {
            Vec ends = (row[y][1] + row[y][2]) * (T)0.5;
            STORE(taps[3 * y], row[y][0] + ends);
            STORE(taps[3 * y + 1], (row[y][1] - row[y][2]) * (T)0.5);
            STORE(taps[3 * y + 2], ends + row[y][3]);
        }
        for (int64_t l = 0; l < NAME(least)(LANES, p->batch - n); l++)
            for (int t = 0; t < TAPS; t++) {
                strange |= !(taps[t][l] - taps[t][l] == 0);
                out[(n + l) * p->out_stride[N] + t / 3 * p->out_stride[Y] + t % 3 * p->out_stride[X]]
                    = taps[t][l];
            }
    }
    if (strange)
        plan->strange = 1;
}

static int NAME(winograd_by_kernel)(
    const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads, int *strange)
{
    NAME(Slopes) plan = {.p = p, .across = (p->window[1] + 1) / 2, .down = (p->window[0] + 1) / 2};
    plan.width = NAME(up)(p->batch, LANES);
    plan.high = (p->outputs + ROWS - 1) / ROWS;
    int64_t rows = p->features * plan.down, both = WORDS * (plan.width + plan.high * ROWS);
    int64_t most = WORDS_OF_BLOCK / (both * plan.across) > 1 ? WORDS_OF_BLOCK / (both * plan.across) : 1;
    int64_t blocks = (rows + most - 1) / most;
    plan.rows = (rows + blocks - 1) / blocks;
    int64_t tiles = plan.rows * plan.across + LANES;
    plan.image_apart = tiles * plan.width + LANES;
    plan.slope_apart = tiles * ROWS + LANES;
    plan.sum_apart = plan.high * ROWS * plan.width + LANES;
    size_t size = (size_t)(WORDS * (plan.image_apart + plan.high * plan.slope_apart + plan.sum_apart));
    plan.image = stretto_scratch(SLOT_SHARED, size * sizeof(T));
    if (!plan.image)
        return -1;
    plan.slope = plan.image + WORDS * plan.image_apart;
    plan.sums = plan.slope + WORDS * plan.high * plan.slope_apart;
    for (; plan.group < p->groups; plan.group++) {
        for (plan.first = 0; plan.first < rows; plan.first += plan.rows) {
            plan.count = NAME(least)(rows - plan.first, plan.rows);
            NAME(run_tasks)(frame, threads, plan.high + plan.width / LANES, NAME(winograd_sides), &plan);
            if (plan.failed)
                return -1;
            NAME(run_tasks)(frame, threads, WORDS * ((plan.high + 7) / 8), NAME(winograd_sums), &plan);
        }
        NAME(run_tasks)(frame, threads, p->outputs, NAME(winograd_slopes), &plan);
    }
    *strange = plan.strange;
    return 0;
}

#undef WORDS
#undef WORDS_OF_BLOCK
#undef TAPS
#undef MOST
#undef ENOUGH
