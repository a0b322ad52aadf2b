/* Convolutions by windows of three by three, with fewer products: for one type and one level.

Two outputs beside each other, of windows of three elements, take four products in place of six
(Winograd, Arithmetic complexity of computations, 1980; Lavin and Gray, Fast algorithms for
convolutional neural networks, arXiv 1509.09308):

    m0 = (d0 - d2) g0,  m1 = (d1 + d2) (g0 + g1 + g2) / 2,
    m3 = (d1 - d3) g2,  m2 = (d2 - d1) (g0 - g1 + g2) / 2,
    y0 = m0 + m1 + m2,  y1 = m1 - m2 - m3.

Along both axes that is 16 products for a square of two by two outputs, a tile, in place of 36. For
each of the 16 they are a matrix product over features: of the kernels' words and the image's. Those
of one side are made once for all; each task makes those of its part of the other, which stay near.

- No output reads what its own window does not hold: y0 is made of d0 to d2 alone. So what is not
  finite stays where it belongs. But infinity less infinity is NaN, where a sum in order would be
  infinite: where any output is not finite, all are computed again by sums in order.
- An element's sum is taken in an order that the geometry alone decides, whatever the tasks.
*/

#define WORDS 16 /* of a tile, and of a window */
#define TAPS 9
#define ENOUGH 16 /* tiles that repay making the kernels' words */
#define WORDS_OF_IMAGE (1 << 21) /* elements: what stays in the cache that all share */
#define OUTPUTS 32    /* of a task that makes the words of kernels */
#define DEEPEST 256   /* features whose products it sums in one go */
#define FEATURES 16   /* of a task that makes words of the image */
#define FAR 16        /* features after which a kernel's windows are fetched */
#define MOST 6 /* vectors of tiles in a task */

typedef struct {
    const Convolution *p;
    int64_t across, down;  /* tiles of an example: in a row of them, and rows */
    int64_t tiles;         /* of all examples */
    int64_t columns, wide; /* tiles of a task, and tasks of them */
    int64_t rows, tall;    /* outputs of a task, and tasks of them */
    int64_t high;          /* tiles of ROWS outputs in all */
    int64_t apart;         /* between words of a tile of rows: not a power of 2 */
    int64_t group, depth;  /* where the image is made first: the group, and features in one go */
    T *image;              /* words of the image: by word, feature, tile */
    size_t size;           /* of these, and of runs of tiles */
    const struct NAME(Runs) *all; /* of all tiles */
    T *kernel;             /* words of kernels: by group, tile of rows, word, feature, row */
    int failed, strange;   /* strange: whether any output is not finite */
} NAME(Winograd);

/* The kernels' words */

/* Of up to ROWS outputs from `o` on, and so many features from `f0` on. */
static void NAME(kernel_words)(
    const Convolution *p, int64_t group, int64_t o, int64_t f0, int64_t features, T *out, int64_t apart)
{
    int64_t row = p->rhs_stride[N], rows = least(p->outputs - o, ROWS);
    const int64_t *stride = p->rhs_stride;
    const T *a = (const T *)p->rhs + group * stride[G] + o * row + f0 * stride[F];
    /* Windows that lie side by side, as users keep them, or reversed in gradients by the image:
    their rows are turned by vectors. Where the last would be read past its end, one by one. */
    int back = stride[X] == -1 && stride[Y] == -3;
    int even = rows == ROWS && (back || (stride[X] == 1 && stride[Y] == 3)) && TAPS <= 2 * LANES;
    const T *first = back ? a - (TAPS - 1) : a;
    int64_t safe = o + ROWS < p->outputs ? p->features : p->features - 1;
    T taps[2 * LANES * ROWS + TAPS * ROWS] __attribute__((aligned(64)));
    memset(taps, 0, sizeof taps);
    for (int64_t f = 0; f < features; f++, a += stride[F], first += stride[F], out += ROWS) {
        int turned = even && f0 + f < safe;
        for (int i = 0; i < ROWS; i++)
            __builtin_prefetch(first + i * row + FAR * stride[F]);
        if (turned)
            for (int64_t l = 0; l < TAPS; l += LANES) {
                if (l + LANES <= TAPS || l == 0)
                    NAME(turn_rows)(first, l, row, PLAIN, taps + l * ROWS);
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

static void NAME(winograd_kernel)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    NAME(kernel_words)(plan->p, index / plan->high, index % plan->high * ROWS, 0,
                       plan->p->features, plan->kernel + index * WORDS * plan->apart, plan->apart);
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
            int64_t count = least(run[i].count - q, LANES), x = 2 * (run[i].x + q);
            int64_t width = least(2 * count, p->positions[1] - x);
            T *to = out + run[i].n * p->out_stride[N] + 2 * run[i].y * p->out_stride[Y] + x;
            Places kept;
            for (int l = 0; l < LANES; l++)
                kept[l] = l < count ? -1 : 0;
            for (int y = 0; y < 2 && 2 * run[i].y + y < p->positions[0]; y++) {
                Vec y0 = row[y][0] + row[y][1] + row[y][2], y1 = row[y][1] - row[y][2] - row[y][3];
                Vec none = (y0 - y0) + (y1 - y1);
                strange += (Vec)((Places)none & kept);
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

/* c = a b, or c += a b, of one word: a packed, its tiles of rows `high` apart; b and c in rows of
`width`. */
static void NAME(winograd_product)(
    int64_t rows, int64_t width, int64_t k, const T *a, int64_t high, const T *b, T *c, int add)
{
    for (int64_t j = 0; j < width;) {
        int vectors = NAME(next)(width - j);
        for (int64_t i = 0; i < rows; i += ROWS)
            NAME(tile_of)((int)least(rows - i, ROWS), vectors, 1, a + i / ROWS * high, 0, 0, b + j,
                          width, k, c + i * width + j, width, add);
        j += vectors * LANES;
    }
}

/* The runs of some tiles, and the bordered rows that they meet, of each example; where all tiles are
in one row of them, its part. */
typedef struct NAME(Runs) {
    NAME(Run) *run;
    int64_t count, begin, plane, lines;
} NAME(Runs);

static void NAME(cut)(const NAME(Winograd) *plan, int64_t j0, int64_t columns, NAME(Runs) *all)
{
    int64_t across = plan->across, down = plan->down, along = across;
    NAME(Run) *run = all->run;
    if (j0 / across == (j0 + columns - 1) / across)
        all->begin = j0 % across, along = columns;
    all->plane = along + 1;
    for (int64_t j = 0; j < columns; j += run[all->count++].count) {
        int64_t n = (j0 + j) / (across * down), y = (j0 + j) / across % down, x = (j0 + j) % across;
        if (all->count && run[all->count - 1].n == n)
            all->lines -= 2; /* which two rows of tiles share */
        run[all->count] = (NAME(Run)){
            all->lines * 2 * all->plane + x - all->begin, n, y, x, j, least(columns - j, across - x)};
        all->lines += 4;
    }
}

/* The words of a feature, by a copy of its bordered rows. */
static void NAME(feature_words)(
    const Convolution *p, const T *lhs, const NAME(Runs) *all, T *copy, T *words, int64_t apart)
{
    const NAME(Run) *run = all->run;
    for (int64_t i = 0; i < all->count;) {
        int64_t first = i, y = 2 * run[i].y - p->low[0];
        for (i++; i < all->count && run[i].n == run[first].n;)
            i++;
        T *to = copy + run[first].from - (run[first].x - all->begin);
        NAME(bordered_rows)(lhs + run[first].n * p->lhs_stride[N], p->lhs_stride[Y], p->image, y,
                            2 * (i - first) + 2, 1, 2 * all->begin - p->low[1], 2 * all->plane, 2, 2,
                            all->plane, to);
    }
    NAME(winograd_image)(copy, all->plane, run, all->count, words, apart);
}

/* Write some outputs. Returns whether any is not finite. */
static int NAME(winograd_out)(
    const Convolution *p, int64_t outputs, const T *sums, int64_t width, int64_t apart,
    const NAME(Runs) *all, T *out)
{
    Vec strange = {0};
    for (int64_t o = 0; o < outputs; o++, out += p->out_stride[F])
        strange += NAME(winograd_outputs)(p, sums + o * width, apart, all->run, all->count, out);
    int any = 0;
    for (int l = 0; l < LANES; l++)
        any |= !(strange[l] == 0);
    return any;
}

static void NAME(winograd_task)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    const Convolution *p = plan->p;
    int64_t row = index % plan->tall, block = index / plan->tall % plan->wide;
    int64_t group = index / plan->tall / plan->wide;
    int64_t j0 = block * plan->columns, columns = least(plan->tiles - j0, plan->columns);
    int64_t o0 = row * plan->rows, outputs = least(p->outputs - o0, plan->rows);
    if (columns <= 0 || outputs <= 0)
        return;
    NAME(Run) run[MOST * LANES];
    NAME(Runs) all = {.run = run};
    NAME(cut)(plan, j0, columns, &all);
    int64_t width = up(columns, LANES), apart = p->features * width + LANES;
    int64_t high = outputs * width + LANES;
    T *copy = stretto_scratch(SLOT_A, (size_t)(all.lines * 2 * all.plane + 2 * LANES) * sizeof(T));
    T *image = stretto_scratch(SLOT_B, (size_t)(WORDS * apart) * sizeof(T));
    T *sums = stretto_scratch(SLOT_C, (size_t)(WORDS * high) * sizeof(T));
    if (!copy || !image || !sums) {
        plan->failed = 1;
        return;
    }
    const T *lhs = (const T *)p->lhs + group * p->lhs_stride[G];
    /* Up to a vector more is written than a run has: over what follows. */
    for (int64_t f = 0; f < p->features; f++, lhs += p->lhs_stride[F])
        NAME(feature_words)(p, lhs, &all, copy, image + f * width, apart);
    const T *a = plan->kernel + (group * plan->high + o0 / ROWS) * WORDS * plan->apart;
    for (int64_t w = 0; w < WORDS; w++)
        NAME(winograd_product)(outputs, width, p->features, a + w * plan->apart, WORDS * plan->apart,
                               image + w * apart, sums + w * high, 0);
    T *out = (T *)p->out + group * p->out_stride[G] + o0 * p->out_stride[F];
    if (NAME(winograd_out)(p, outputs, sums, width, high, &all, out))
        plan->strange = 1;
}

/* Where the words of the image are not many, they are made first. A task makes those of some of the
kernels, which it alone reads, so that they stay in the second cache: kernels are read from memory
once, and their words, nearly twice as many elements, do not go there and back. */

static void NAME(few_words)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    const Convolution *p = plan->p;
    const NAME(Runs) *all = plan->all;
    int64_t f0 = index * FEATURES, f1 = least(f0 + FEATURES, p->features), width = plan->columns;
    T *copy = stretto_scratch(SLOT_A, (size_t)(all->lines * 2 * all->plane + 2 * LANES) * sizeof(T));
    T *words = stretto_scratch(SLOT_B, (size_t)(WORDS * (width + LANES)) * sizeof(T));
    if (!copy || !words) {
        plan->failed = 1;
        return;
    }
    /* What is written past the words of one feature may be another task's. */
    const T *lhs = (const T *)p->lhs + plan->group * p->lhs_stride[G];
    for (int64_t f = f0; f < f1; f++) {
        NAME(feature_words)(p, lhs + f * p->lhs_stride[F], all, copy, words, width + LANES);
        for (int64_t w = 0; w < WORDS; w++)
            NAME(copied)(words + w * (width + LANES), width, plan->image + w * plan->apart + f * width);
    }
}

static void NAME(few_outputs)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work;
    const Convolution *p = plan->p;
    int64_t o0 = index * plan->rows, outputs = least(p->outputs - o0, plan->rows);
    int64_t width = plan->columns, high = outputs * width + LANES, apart = plan->depth * ROWS + LANES;
    T *kernel = stretto_scratch(SLOT_B, (size_t)(up(outputs, ROWS) / ROWS * WORDS * apart) * sizeof(T));
    T *sums = stretto_scratch(SLOT_C, (size_t)(WORDS * high) * sizeof(T));
    if (!kernel || !sums) {
        plan->failed = 1;
        return;
    }
    for (int64_t f0 = 0; f0 < p->features; f0 += plan->depth) {
        int64_t k = least(p->features - f0, plan->depth);
        for (int64_t i = 0; i < outputs; i += ROWS)
            NAME(kernel_words)(p, plan->group, o0 + i, f0, k, kernel + i / ROWS * WORDS * apart, apart);
        for (int64_t w = 0; w < WORDS; w++)
            NAME(winograd_product)(outputs, width, k, kernel + w * apart, WORDS * apart,
                                   plan->image + w * plan->apart + f0 * width, sums + w * high, f0 > 0);
    }
    T *out = (T *)p->out + plan->group * p->out_stride[G] + o0 * p->out_stride[F];
    if (NAME(winograd_out)(p, outputs, sums, width, high, plan->all, out))
        plan->strange = 1;
}

/* All of a group by one thread. */
static void NAME(few_group)(void *work, int64_t index)
{
    NAME(Winograd) *plan = work, own = *plan;
    own.image = stretto_scratch(SLOT_SHARED, plan->size);
    if (!own.image) {
        plan->failed = 1;
        return;
    }
    own.group = index;
    for (int64_t i = 0; i * FEATURES < own.p->features; i++)
        NAME(few_words)(&own, i);
    for (int64_t i = 0; i * own.rows < own.p->outputs; i++)
        NAME(few_outputs)(&own, i);
    plan->failed |= own.failed;
    plan->strange |= own.strange;
}

static int NAME(winograd_few)(
    const XLA_FFI_CallFrame *frame, NAME(Winograd) *plan, int64_t threads, int *strange)
{
    const Convolution *p = plan->p;
    plan->columns = up(plan->tiles, LANES);
    int64_t parts = (p->features + DEEPEST - 1) / DEEPEST, each = 2 * threads;
    plan->depth = (p->features + parts - 1) / parts;
    plan->rows = up(least((p->outputs + each - 1) / each, OUTPUTS), ROWS);
    plan->apart = p->features * plan->columns + LANES;
    plan->size = (size_t)(WORDS * plan->apart) * sizeof(T) + (size_t)plan->tiles * sizeof(NAME(Run));
    plan->image = stretto_scratch(SLOT_SHARED, plan->size);
    if (!plan->image)
        return -1;
    NAME(Runs) all = {.run = (NAME(Run) *)(plan->image + WORDS * plan->apart)};
    NAME(cut)(plan, 0, plan->tiles, &all);
    plan->all = &all;
    if (p->groups >= each)
        stretto_parallel(frame, threads, p->groups, NAME(few_group), plan);
    else
        for (; plan->group < p->groups; plan->group++) {
            stretto_parallel(frame, threads, (p->features + FEATURES - 1) / FEATURES, NAME(few_words), plan);
            stretto_parallel(frame, threads, (p->outputs + plan->rows - 1) / plan->rows, NAME(few_outputs), plan);
        }
    *strange = plan->strange;
    return plan->failed ? -1 : 0;
}

/* The tiles into which axes of `many` elements are cut, which meet those of `three`, or 0. */
static int64_t NAME(tiles)(
    const Convolution *p, int64_t examples, const int64_t *three, const int64_t *many)
{
    for (int axis = 0; axis < 2; axis++)
        if (three[axis] != 3 || p->step[axis] != 1 || p->gap[axis] != 1 || p->spread[axis] != 1)
            return 0;
    int64_t tiles = examples * ((many[0] + 1) / 2) * ((many[1] + 1) / 2);
    return examples * many[0] * many[1] >= 3 * tiles ? tiles : 0;
}

/* Whether fewer products are worth their words, as measured. For gradients by the kernel the bound
grows with the vectors: words are turned one by one. */
static int NAME(suits_winograd)(const Convolution *p)
{
    if (sizeof(T) != 4)
        return 0;
    if (!p->by_outputs)
        return p->features >= 32 && p->outputs >= 32 && p->out_stride[X] == 1
            && NAME(tiles)(p, p->batch, p->window, p->positions) >= ENOUGH;
    double side = (double)(p->batch * p->outputs) / (double)(p->batch + p->outputs);
    double tiles = (double)NAME(tiles)(p, p->features, p->positions, p->window);
    return p->rhs_stride[X] == 1 && tiles * side * side >= (32.0 * LANES) * (32.0 * LANES);
}

static int NAME(winograd)(
    const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads, int *strange)
{
    NAME(Winograd) plan = {.p = p, .across = (p->positions[1] + 1) / 2, .down = (p->positions[0] + 1) / 2};
    plan.tiles = p->batch * plan.across * plan.down;
    if (WORDS * p->features * plan.tiles <= WORDS_OF_IMAGE)
        return NAME(winograd_few)(frame, &plan, threads, strange);
    int64_t vectors = (plan.tiles + LANES - 1) / LANES;
    int64_t most = vectors <= MOST ? MOST : 3;
    plan.wide = (vectors + most - 1) / most;
    plan.columns = (vectors + plan.wide - 1) / plan.wide * LANES;
    plan.wide = (plan.tiles + plan.columns - 1) / plan.columns;
    int64_t tasks = p->groups * plan.wide, each = threads == 1 ? 1 : (4 * threads + tasks - 1) / tasks;
    plan.high = (p->outputs + ROWS - 1) / ROWS;
    plan.rows = up((p->outputs + each - 1) / each, ROWS);
    plan.tall = (p->outputs + plan.rows - 1) / plan.rows;
    plan.apart = p->features * ROWS + LANES;
    plan.kernel = stretto_scratch(SLOT_SHARED, (size_t)(p->groups * plan.high * WORDS * plan.apart) * sizeof(T));
    if (!plan.kernel)
        return -1;
    stretto_parallel(frame, threads, p->groups * plan.high, NAME(winograd_kernel), &plan);
    stretto_parallel(frame, threads, tasks * plan.tall, NAME(winograd_task), &plan);
    *strange = plan.strange;
    return plan.failed ? -1 : 0;
}

/* Gradients by the kernel: three outputs beside each other of two elements, which is the transpose
of the above. The words of the image are the same, those of the gradient take no product:

    a0 = y0,  a1 = y0 + y1,  a2 = y0 - y1,  a3 = -y1,  m = a (words of the image),
    g0 = m0 + (m1 + m2) / 2,  g1 = (m1 - m2) / 2,  g2 = (m1 + m2) / 2 + m3.

For each word a product sums over tiles, block by block of them: in one phase all make its words,
turned so that those of a tile lie side by side, in the next they multiply. */

#define TILES 128 /* of a block, where the words of the image are not many */
#define WORDS_OF_SUMS (1 << 18) /* elements: of a task, in the second cache */
#define WORDS_OF_BLOCK (1 << 20) /* elements of both sides: what stays in the nearer caches */

typedef struct {
    const Convolution *p;
    int64_t across, down;  /* tiles of an example: in a row of them, and rows */
    int64_t rows;          /* of tiles in a block */
    int64_t first, count;  /* rows of tiles of this block */
    int64_t group, width, high; /* features of the image, rounded up; tiles of ROWS outputs */
    int64_t image_apart, slope_apart, sum_apart; /* between words */
    int64_t begin, some;   /* the first tile of ROWS outputs of `slope` and `sums`, and outputs there */
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
    int64_t some = least((of_slope ? p->outputs : p->batch) - c0, many);
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
            NAME(bordered_rows)(from + f * stride[F] + c * stride[N], stride[Y],
                                of_slope ? p->window : p->image, of_slope ? y : y - p->low[0], lines, 1,
                                of_slope ? 0 : -p->low[1], 2 * plane, 2, 2, plane, copy + c * each);
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
                    NAME(turn_rows)(words, w * ROWS * LANES, LANES, PLAIN,
                                    plan->slope + ((index - plan->begin) * WORDS + w) * plan->slope_apart
                                        + tile * ROWS);
                else
                    NAME(turn)(words, w * LANES * LANES, LANES, PLAIN,
                               plan->image + w * plan->image_apart + tile * plan->width + c0, plan->width);
        }
    }
}

static void NAME(image_sides)(void *work, int64_t index)
{
    NAME(winograd_sides)(work, ((NAME(Slopes) *)work)->high + index);
}

static void NAME(winograd_sums)(void *work, int64_t index)
{
    NAME(Slopes) *plan = work;
    int64_t w = index % WORDS, first = index / WORDS * 8, k = plan->count * plan->across;
    int64_t rows = ROWS * least(plan->high - first, 8);
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
    T taps[TAPS + LANES][LANES] __attribute__((aligned(64)));
    memset(taps, 0, sizeof taps);
    Vec strange = {0};
    int even = p->out_stride[N] == TAPS && p->out_stride[Y] == 3 && p->out_stride[X] == 1;
    for (int64_t n = 0; n < p->batch; n += LANES) {
        const T *from = plan->sums + (index - plan->begin * ROWS) * plan->width + n;
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
            Vec g0 = row[y][0] + ends, g1 = (row[y][1] - row[y][2]) * (T)0.5, g2 = ends + row[y][3];
            STORE(taps[3 * y], g0);
            STORE(taps[3 * y + 1], g1);
            STORE(taps[3 * y + 2], g2);
            strange += (g0 - g0) + (g1 - g1) + (g2 - g2);
        }
        T *to = out + n * p->out_stride[N];
        int64_t t0 = 0;
        if (even && n + LANES < p->batch) /* with more than nine, over what follows */
            for (; t0 == 0 || t0 + LANES <= TAPS; t0 += LANES)
                NAME(turn)(taps[t0], 0, LANES, PLAIN, to + t0, TAPS);
        for (int64_t l = 0; l < least(LANES, p->batch - n); l++)
            for (int64_t t = t0; t < TAPS; t++)
                to[l * p->out_stride[N] + t / 3 * p->out_stride[Y] + t % 3 * p->out_stride[X]] = taps[t][l];
    }
    for (int l = 0; l < LANES; l++)
        if (!(strange[l] == 0))
            plan->strange = 1;
}

/* Where the words of the image are not many: a task makes those of some outputs, multiplies them, and
writes the result while the products are near. */
static void NAME(few_slopes)(void *work, int64_t index)
{
    NAME(Slopes) *plan = work, own = *plan;
    const Convolution *p = plan->p;
    int64_t o0 = index * plan->some, outputs = least(p->outputs - o0, plan->some);
    int64_t high = up(outputs, ROWS) / ROWS, rows = p->features * plan->down;
    own.begin = o0 / ROWS;
    own.slope = stretto_scratch(SLOT_C, (size_t)(WORDS * (high * own.slope_apart + own.sum_apart)) * sizeof(T));
    if (!own.slope) {
        plan->failed = 1;
        return;
    }
    own.sums = own.slope + WORDS * high * own.slope_apart;
    for (own.first = 0; own.first < rows && !own.failed; own.first += own.rows) {
        own.count = least(rows - own.first, own.rows);
        for (int64_t i = 0; i < high; i++)
            NAME(winograd_sides)(&own, own.begin + i);
        for (int64_t w = 0; w < WORDS; w++)
            NAME(winograd_product)(high * ROWS, own.width, own.count * own.across,
                                   own.slope + w * own.slope_apart, WORDS * own.slope_apart,
                                   own.image + w * own.image_apart + own.first * own.across * own.width,
                                   own.sums + w * own.sum_apart, own.first > 0);
    }
    for (int64_t o = 0; o < outputs; o++)
        NAME(winograd_slopes)(&own, o0 + o);
    if (own.failed)
        plan->failed = 1;
    if (own.strange)
        plan->strange = 1;
}

static int NAME(winograd_by_kernel)(
    const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads, int *strange)
{
    NAME(Slopes) plan = {.p = p, .across = (p->window[1] + 1) / 2, .down = (p->window[0] + 1) / 2};
    plan.width = up(p->batch, LANES);
    plan.high = (p->outputs + ROWS - 1) / ROWS;
    int64_t rows = p->features * plan.down, both = WORDS * (plan.width + plan.high * ROWS);
    int64_t most = WORDS_OF_BLOCK / (both * plan.across) > 1 ? WORDS_OF_BLOCK / (both * plan.across) : 1;
    int64_t few = WORDS * rows * plan.across * plan.width <= WORDS_OF_IMAGE;
    if (few) {
        most = TILES / plan.across + 1;
        plan.some = WORDS_OF_SUMS / (WORDS * plan.width);
        plan.some = up(least(plan.some, (p->outputs + 2 * threads - 1) / (2 * threads)), ROWS);
    }
    int64_t blocks = (rows + most - 1) / most;
    plan.rows = (rows + blocks - 1) / blocks;
    int64_t tiles = plan.rows * plan.across + LANES;
    plan.image_apart = tiles * plan.width + LANES;
    plan.slope_apart = tiles * ROWS + LANES;
    plan.sum_apart = (few ? plan.some : plan.high * ROWS) * plan.width + LANES;
    size_t size = (size_t)(WORDS * (plan.image_apart + plan.high * plan.slope_apart + plan.sum_apart));
    if (few) {
        plan.image_apart = (rows * plan.across + LANES) * plan.width + LANES;
        size = (size_t)(WORDS * plan.image_apart);
    }
    plan.image = stretto_scratch(SLOT_SHARED, size * sizeof(T));
    if (!plan.image)
        return -1;
    plan.slope = plan.image + WORDS * plan.image_apart;
    plan.sums = plan.slope + WORDS * plan.high * plan.slope_apart;
    for (; plan.group < p->groups; plan.group++) {
        if (few) {
            plan.count = rows;
            stretto_parallel(frame, threads, plan.width / LANES, NAME(image_sides), &plan);
            stretto_parallel(frame, threads, (p->outputs + plan.some - 1) / plan.some, NAME(few_slopes), &plan);
            if (plan.failed)
                return -1;
            continue;
        }
        for (plan.first = 0; plan.first < rows; plan.first += plan.rows) {
            plan.count = least(rows - plan.first, plan.rows);
            stretto_parallel(frame, threads, plan.high + plan.width / LANES, NAME(winograd_sides), &plan);
            if (plan.failed)
                return -1;
            stretto_parallel(frame, threads, WORDS * ((plan.high + 7) / 8), NAME(winograd_sums), &plan);
        }
        stretto_parallel(frame, threads, p->outputs, NAME(winograd_slopes), &plan);
    }
    *strange = plan.strange;
    return 0;
}
