/* Attention, and its gradients: for one type and one level of vectors.

Scores are computed for a block of queries and a block of keys, and used while they are in the cache,
as in FlashAttention (Dao et al., arXiv 2205.14135 and 2307.08691): the greatest score of a row and
the sum of its exponentials are brought up to date block by block, and what was added up before is
scaled (Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv 1805.02867). For
gradients the exponentials are computed again from what was subtracted in each row, so that no
array of all scores is stored.

- A task has some rows of one pair of matrices; for gradients all that share keys and values, so that
  each sum over rows is taken by one thread, block by block in order. Bits depend on sizes alone.
- Keys behind the last one that a row may see, by a causal mask or by one that is the same for all
  rows, are left out where their exponentials are zeros: where a row's greatest score is so far above
  what is put there, and where everything that those zeros would be multiplied by is finite. Otherwise
  nothing is left out.
- Examples of lengths of their own lie one behind the other, or in a rectangle.
- Of one to three queries, as in decoding, lanes run along the features, and keys and values are read
  where they lie.

`T`, `LANES`, `ROWS` and `NAME` are those of lanes.h; tiles and packing are those of product.h,
exponentials those of rows.h.
*/

#define LEAST (-(T)__builtin_inf())
#define LIMIT (sizeof(T) == 4 ? (T)110 : (T)760)   /* e to the power of less than -LIMIT is 0 */

#define VECTORS (ROWS == 4 ? 3 : 2)     /* of a tile of scores */
#define PANEL (VECTORS * LANES)
#define QUERIES 32                      /* rows of a block */
#define KEYS (256 / PANEL * PANEL)      /* columns of a block */
#define PITCH (KEYS + 16)               /* of scores: rows do not meet in the cache */
#define TASK_ROWS 256                   /* rows of a task: keys are packed once for them */
#define IN_PLACE 48                     /* rows up to which values are read where they lie */
#define FEW 3

typedef struct {
    const Attention *p;
    int64_t parts, pairs, each; /* of the rows of a pair; of all; of an example */
    int64_t causal, ends;     /* the steps that hide the last keys, of each row or of all; else -1 */
    T hidden;                 /* the most that hidden scores become */
    int failed;
} NAME(AttentionPlan);
#define Plan NAME(AttentionPlan)

/* Where the arrays of a pair begin */
typedef struct {
    const T *q, *k, *v, *d_out, *out;
    T *d_q, *d_k, *d_v;
    int64_t rows, keys;
    int64_t lead, end;        /* the end of the keys that rows see at most */
    int skips;                /* whether any keys may be left out */
    const void *step[ATTENTION_STEPS];
} NAME(AttentionPair);
#define Pair NAME(AttentionPair)

static Pair NAME(attention_pair)(const Plan *plan, int64_t index)
{
    const Attention *p = plan->p;
    int64_t example = index / plan->each, start = p->starts ? p->starts[example] : 0;
    int64_t length = p->starts ? p->lengths[example] : 0, moved = start - example;
    if (start < 0 || length < 0 || length > p->room - start) /* wrong lengths read nothing */
        start = length = moved = 0;
#define AT(array, n)                                                              \
    ((T *)p->array.data + offset(ATTENTION_AXES, p->batch, p->array.batch, index) \
     + (p->ragged >> n & 1) * moved * p->array.batch[0])
    Pair pair = {.q = AT(q, 2), .k = AT(k, 3), .v = AT(v, 4), .out = AT(out, 5), .d_out = AT(d_out, 6),
                 .d_q = AT(d_q, 7), .d_k = AT(d_k, 8), .d_v = AT(d_v, 9)};
#undef AT
    pair.rows = p->ragged & 1 && length < p->rows ? length : p->rows;
    pair.keys = p->ragged & 2 && length < p->keys ? length : p->keys;
    pair.lead = offset(ATTENTION_AXES, p->batch, p->lead, index) + (p->ragged >> 10 & 1) * moved;
    for (int64_t i = 0; i < p->steps; i++) {
        const AttentionArray *array = &p->step[i].array;
        int64_t size = p->step[i].kind == ATTENTION_SELECT ? 1 : sizeof(T);
        pair.step[i] = (const char *)array->data + size * offset(ATTENTION_AXES, p->batch, array->batch, index);
    }
    pair.end = pair.keys;
    if (plan->ends >= 0) {
        const AttentionStep *step = p->step + plan->ends;
        const uint8_t *mask = pair.step[plan->ends];
        while (pair.end && mask[(pair.end - 1) * step->array.column] == step->offset)
            pair.end--;
    }
    pair.skips = plan->causal >= 0 || pair.end < pair.keys;
    return pair;
}

/* Copy rows, times a number, to rows of whole vectors, with zeros behind. */
static void NAME(attention_rows)(
    const T *from, int64_t row, int64_t column, int64_t rows, int64_t columns, T scale, T *to)
{
    int64_t width = up(columns, LANES);
    for (int64_t i = 0; i < rows; i++, from += row, to += width) {
        int64_t j = 0;
        if (column == 1)
            for (; j + LANES <= columns; j += LANES)
                STORE(to + j, LOAD(from + j) * scale);
        for (; j < columns; j++)
            to[j] = from[j * column] * scale;
        for (; j < width; j++)
            to[j] = 0;
    }
}

/* Pack columns, of which each is a key, for tiles of scores. */
static void NAME(attention_keys)(
    const T *k, int64_t row, int64_t column, int64_t keys, int64_t depth, T *to)
{
    for (int64_t j = 0; j < keys; j += PANEL)
        NAME(pack_columns)(k + j * row, column, row, 0, PLAIN, keys - j < PANEL ? keys - j : PANEL, depth,
                           VECTORS, to + j * depth);
}

static int NAME(attention_finite)(const T *x, int64_t row, int64_t rows, int64_t columns)
{
    Vec sum = {0};
    T rest = 0;
    for (int64_t i = 0; i < rows; i++, x += row) {
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES)
            sum += LOAD(x + j) * 0;
        for (; j < columns; j++)
            rest += x[j] * 0;
    }
    return NAME(reduced_plus)(sum) + rest == 0;
}

/* Do the steps for the scores of a row, from key j0 on; or go back with the gradient of what they make. */
static void NAME(attention_steps)(
    const Attention *p, const Pair *pair, int64_t row, int64_t j0, int64_t n, int back, T *s)
{
    for (int64_t k = 0; k < p->steps; k++) {
        int64_t at = back ? p->steps - 1 - k : k, i = 0;
        const AttentionStep *step = p->step + at;
        const int64_t column = step->array.column, first = row * step->array.row + j0 * column;
        const T constant = (T)step->constant, hidden = back ? 0 : constant;
        if (step->kind == ATTENTION_MULTIPLY) {
            for (; i < n; i++)
                s[i] *= constant;
        } else if (step->kind == ATTENTION_ADD) {
            const T *added = (const T *)pair->step[at] + first;
            if (column == 1)
                for (; i < n && !back; i++)
                    s[i] += added[i];
            for (; i < n && !back; i++)
                s[i] += added[i * column];
        } else if (step->kind == ATTENTION_SELECT) {
            const uint8_t *mask = (const uint8_t *)pair->step[at] + first;
            const uint8_t hides = (uint8_t)step->offset;
            if (column == 1)
                for (; i < n; i++)
                    s[i] = mask[i] == hides ? hidden : s[i];
            for (; i < n; i++)
                s[i] = mask[i * column] == hides ? hidden : s[i];
        } else {
            i = row + step->offset + 1 - j0;
            for (i = i < 0 ? 0 : i; i < n; i++)
                s[i] = hidden;
        }
    }
}

/* The keys, of n from j0 on, that the tile of rows from `row` on sees: whole tiles of them, and all
where nothing is left out. */
static int64_t NAME(attention_seen)(
    const Plan *plan, int64_t end, int whole, int64_t row, int64_t j0, int64_t n)
{
    if (whole)
        return n;
    if (plan->causal >= 0 && row + ROWS + plan->p->step[plan->causal].offset < end)
        end = row + ROWS + plan->p->step[plan->causal].offset;
    int64_t seen = up(end, ROWS) - j0;
    return seen < 0 ? 0 : seen < n ? seen : n;
}

/* C of `rows` rows += A B for all columns of B, which fill whole vectors. */
static void NAME(attention_product)(
    int rows, const T *a, int64_t a_m, int64_t a_k, const T *b, int64_t b_k, int64_t k, int64_t width,
    T *c)
{
    for (int64_t j = 0; j < width;) {
        int vectors = NAME(next)(width - j);
        NAME(tile_of)(rows, vectors, 0, a, a_m, a_k, b + j, b_k, k, c + j, width, 1);
        j += (int64_t)vectors * LANES;
    }
}

/* Scores of some rows and packed keys; of each tile of rows as many as it sees. */
static void NAME(attention_scores)(
    const T *q, int64_t width, int64_t rows, const T *keys, int64_t depth, const int64_t *seen, T *s)
{
    for (int64_t j = 0; j < seen[(rows - 1) / ROWS]; j += PANEL)
        for (int64_t i = 0; i < rows; i += ROWS)
            if (j < seen[i / ROWS])
                NAME(tile_of)(rows - i < ROWS ? (int)(rows - i) : ROWS, VECTORS, 0, q + i * width,
                              width, 1, keys + j * depth, PANEL, depth, s + i * PITCH + j, PITCH, 0);
}

/* Forward */

/* Make exponentials of the scores of a row, and bring its greatest and its sum up to date. What was
added up before is to be multiplied by the result. */
static T NAME(attention_exponentials)(T *s, int64_t n, T *most, T *sum)
{
    int64_t wide = up(n, LANES);
    for (int64_t i = n; i < wide; i++)
        s[i] = LEAST;
    Vec top = ALL(LEAST), sums = {0};
    for (int64_t i = 0; i < wide; i += LANES)
        top = NAME(rows_above)(top, LOAD(s + i));
    T greatest = NAME(reduced_greatest)(top), before = *most;
    if (greatest > before || greatest != greatest)
        *most = greatest;
    T shift = *most == LEAST ? 0 : *most;
    for (int64_t i = 0; i < wide; i += LANES) {
        Vec e = NAME(exp_of)(LOAD(s + i) - shift);
        sums += e;
        STORE(s + i, e);
    }
    T factor = before == *most ? 1 : NAME(exp_of)(ALL(before - shift))[0];
    *sum = *sum * factor + NAME(reduced_plus)(sums);
    return factor;
}

static void NAME(attention_result)(
    const Attention *p, const Pair *pair, int64_t row, const T *sums, T most, T total)
{
    if (p->guarded && most == LEAST)
        most = 0, total += 1;
    if (p->shift) {
        ((T *)p->shift)[pair->lead + row] = most;
        ((T *)p->total)[pair->lead + row] = total;
    }
    T *to = (T *)pair->out + row * p->out.row;
    int64_t j = 0;
    for (; j + LANES <= p->columns; j += LANES)
        STORE(to + j, LOAD(sums + j) / total);
    for (; j < p->columns; j++)
        to[j] = sums[j] / total;
}

/* Scores of one query, lanes along its features; keys are read where they lie. */
static void NAME(attention_dots)(
    const T *q, const T *k, int64_t row, int64_t features, int64_t keys, T *s)
{
    int64_t deep = features / LANES * LANES;
    for (int64_t j = 0; j < keys; j += LANES, k += LANES * row) {
        int count = keys - j < LANES ? (int)(keys - j) : LANES;
        Vec sum[LANES];
        for (int i = 0; i < LANES; i++)
            sum[i] = (Vec){0};
        if (count == LANES)
            for (int64_t l = 0; l < deep; l += LANES) {
                Vec x = LOAD(q + l);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 16
#endif
                for (int i = 0; i < LANES; i++)
                    sum[i] += x * LOAD(k + i * row + l);
            }
        else
            for (int64_t l = 0; l < deep; l += LANES)
                for (int i = 0; i < count; i++)
                    sum[i] += LOAD(q + l) * LOAD(k + i * row + l);
#if defined(__GNUC__) && !defined(__clang__)
        /* halves with halves: the rest of a sum comes to lie in the lane of its key */
#pragma GCC unroll 4
        for (int half = 1; half < LANES; half *= 2)
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i += 2 * half) {
                NAME(exchange)(&sum[i], &sum[i + half], half);
                sum[i] += sum[i + half];
            }
        STORE(s + j, sum[0]);
#else
        for (int i = 0; i < LANES; i++)
            s[j + i] = NAME(reduced_plus)(sum[i]);
#endif
        for (int64_t l = deep; l < features; l++)
            for (int i = 0; i < count; i++)
                s[j + i] += q[l] * k[i * row + l];
    }
}

static void NAME(attend_few)(void *work, int64_t index)
{
    Plan *plan = work;
    const Attention *p = plan->p;
    Pair pair = NAME(attention_pair)(plan, index);
    int64_t width = up(p->columns, LANES);
    T *q = stretto_scratch(SLOT_A, (size_t)(up(p->features, LANES) + PITCH + width) * sizeof(T));
    if (!q) {
        plan->failed = 1;
        return;
    }
    T *s = q + up(p->features, LANES), *sums = s + PITCH;
    for (int64_t r = 0; r < pair.rows; r++) {
        NAME(attention_rows)(pair.q + r * p->q.row, 0, p->q.column, 1, p->features, (T)p->scale, q);
        T most = LEAST, total = 0;
        for (int64_t j = 0; j < width; j++)
            sums[j] = 0;
        for (int64_t j0 = 0; j0 < pair.keys; j0 += KEYS) {
            int64_t n = pair.keys - j0 < KEYS ? pair.keys - j0 : KEYS, l = 0;
            NAME(attention_dots)(q, pair.k + j0 * p->k.row, p->k.row, p->features, n, s);
            NAME(attention_steps)(p, &pair, r, j0, n, 0, s);
            T factor = NAME(attention_exponentials)(s, n, &most, &total);
            if (j0 && factor != 1)
                for (int64_t j = 0; j < width; j++)
                    sums[j] *= factor;
            const T *v = pair.v + j0 * p->v.row;
            for (; l + 8 <= n; l += 8)
                NAME(along_rows)(1, 8, PLAIN, s + l, 0, 1, v + l * p->v.row, p->v.row, p->columns, sums, 0, 1);
            for (; l < n; l++)
                NAME(along_rows)(1, 1, PLAIN, s + l, 0, 1, v + l * p->v.row, p->v.row, p->columns, sums, 0, 1);
        }
        NAME(attention_result)(p, &pair, r, sums, most, total);
    }
}

/* A block of rows from r0 on; 0 if keys were left out that count after all. */
static int NAME(attend_block)(
    const Plan *plan, const Pair *pair, int64_t r0, int64_t rows, const T *q, const T *keys,
    const T *v, int64_t v_row, T *s, T *sums, int whole)
{
    const Attention *p = plan->p;
    int64_t width = up(p->columns, LANES), q_width = up(p->features, LANES);
    int64_t seen[QUERIES / ROWS];
    T most[QUERIES], total[QUERIES];
    for (int64_t i = 0; i < rows; i++)
        most[i] = LEAST, total[i] = 0;
    for (int64_t j = 0; j < rows * width; j++)
        sums[j] = 0;
    for (int64_t j0 = 0; j0 < pair->keys; j0 += KEYS) {
        int64_t n = pair->keys - j0 < KEYS ? pair->keys - j0 : KEYS;
        for (int64_t i = 0; i < rows; i += ROWS)
            seen[i / ROWS] = NAME(attention_seen)(plan, pair->end, whole, r0 + i, j0, n);
        if (!seen[(rows - 1) / ROWS])
            break;
        NAME(attention_scores)(q, q_width, rows, keys + j0 * p->features, p->features, seen, s);
        for (int64_t i = 0; i < rows; i += ROWS) {
            int64_t high = rows - i < ROWS ? rows - i : ROWS, k = seen[i / ROWS];
            if (!k)
                continue;
            for (int64_t r = i; r < i + high; r++) {
                NAME(attention_steps)(p, pair, r0 + r, j0, k, 0, s + r * PITCH);
                T factor = NAME(attention_exponentials)(s + r * PITCH, k, most + r, total + r);
                if (j0 && factor != 1)
                    for (int64_t j = 0; j < width; j += LANES)
                        STORE(sums + r * width + j, LOAD(sums + r * width + j) * factor);
            }
            NAME(attention_product)((int)high, s + i * PITCH, PITCH, 1, v + j0 * v_row, v_row, k, width,
                                    sums + i * width);
        }
    }
    for (int64_t r = 0; r < rows && !whole; r++)
        if (!(most[r] - plan->hidden > LIMIT))
            return 0;
    for (int64_t r = 0; r < rows; r++)
        NAME(attention_result)(p, pair, r0 + r, sums + r * width, most[r], total[r]);
    return 1;
}

static void NAME(attend)(void *work, int64_t at)
{
    Plan *plan = work;
    const Attention *p = plan->p;
    int64_t index = at / plan->parts, from = at % plan->parts * TASK_ROWS;
    Pair pair = NAME(attention_pair)(plan, index);
    int64_t rows = pair.rows - from < TASK_ROWS ? pair.rows - from : TASK_ROWS;
    int64_t width = up(p->columns, LANES), q_width = up(p->features, LANES);
    int64_t all = up(pair.keys, PANEL) * p->features;
    if (rows <= 0)
        return;
    int copied = width != p->columns || p->v.column != 1 || (rows > IN_PLACE && p->v.row != width);
    T *memory = stretto_scratch(
        SLOT_A, (size_t)(QUERIES * (q_width + PITCH + width)) * sizeof(T));
    T *keys = stretto_scratch(SLOT_B, (size_t)(all + LANES + (copied ? pair.keys * width : 0)) * sizeof(T));
    if (!memory || !keys) {
        plan->failed = 1;
        return;
    }
    T *q = memory, *s = q + QUERIES * q_width, *sums = s + QUERIES * PITCH;
    NAME(attention_keys)(pair.k, p->k.row, p->k.column, pair.keys, p->features, keys);
    const T *v = pair.v;
    int64_t v_row = p->v.row;
    if (copied) {
        T *to = keys + up(all, LANES);
        NAME(attention_rows)(v, v_row, p->v.column, pair.keys, p->columns, 1, to);
        v = to, v_row = width;
    }
    int whole = !pair.skips || !NAME(attention_finite)(v, v_row, pair.keys, width);
    for (int64_t i = 0; i < rows; i += QUERIES) {
        int64_t high = rows - i < QUERIES ? rows - i : QUERIES;
        NAME(attention_rows)(pair.q + (from + i) * p->q.row, p->q.row, p->q.column, high, p->features,
                             (T)p->scale, q);
        if (whole || !NAME(attend_block)(plan, &pair, from + i, high, q, keys, v, v_row, s, sums, 0))
            NAME(attend_block)(plan, &pair, from + i, high, q, keys, v, v_row, s, sums, 1);
    }
    stretto_forget(SLOT_B);
}

/* Gradients. With e the exponentials and x the gradient of `out` divided by totals: that of values is
eᵀ x, that of scores e (x vᵀ + beside), where beside is -sum(out x) for each row. */

typedef struct {
    const T *q, *x, *beside, *shift;   /* of all rows of the task */
    const T *keys, *values, *k_rows;   /* of the block of keys */
    T *d_q, *d_k, *d_v, *s, *d;
    int64_t k_row, j0, n;
} NAME(AttentionBlock);

static void NAME(gradient_block)(
    const Plan *plan, const Pair *pair, const NAME(AttentionBlock) *b, int64_t at, int64_t r0,
    int64_t rows, int whole)
{
    const Attention *p = plan->p;
    int64_t width = up(p->columns, LANES), q_width = up(p->features, LANES);
    int64_t seen[QUERIES / ROWS];
    for (int64_t r = 0; r < rows && !whole; r++)
        whole = !(b->shift[at + r] - plan->hidden > LIMIT);
    for (int64_t i = 0; i < rows; i += ROWS)
        seen[i / ROWS] = NAME(attention_seen)(plan, pair->end, whole, r0 + i, b->j0, b->n);
    int64_t most = seen[(rows - 1) / ROWS];
    if (!most)
        return;
    const T *q = b->q + at * q_width, *x = b->x + at * width;
    NAME(attention_scores)(q, q_width, rows, b->keys, p->features, seen, b->s);
    NAME(attention_scores)(x, width, rows, b->values, p->columns, seen, b->d);
    for (int64_t r = 0; r < rows; r++) {
        T *s = b->s + r * PITCH, *d = b->d + r * PITCH;
        int64_t k = seen[r / ROWS];
        if (!k)
            continue;
        NAME(attention_steps)(p, pair, r0 + r, b->j0, k, 0, s);
        for (int64_t i = k; i < up(k, LANES); i++)
            s[i] = LEAST;
        Vec shift = ALL(b->shift[at + r]), beside = ALL(b->beside[at + r]);
        for (int64_t i = 0; i < k; i += LANES) {
            Vec e = NAME(exp_of)(LOAD(s + i) - shift);
            STORE(s + i, e);
            STORE(d + i, (LOAD(d + i) + beside) * e);
        }
        NAME(attention_steps)(p, pair, r0 + r, b->j0, k, 1, d);
    }
    for (int64_t i = 0; i < rows; i += ROWS)
        NAME(attention_product)(rows - i < ROWS ? (int)(rows - i) : ROWS, b->d + i * PITCH, PITCH, 1,
                                b->k_rows, b->k_row, seen[i / ROWS], q_width, b->d_q + (at + i) * q_width);
    for (int64_t j = 0; j < most; j += ROWS) {
        int64_t i = 0;
        while (seen[i / ROWS] <= j) /* the rows that see these keys */
            i += ROWS;
        NAME(attention_product)(ROWS, b->s + i * PITCH + j, 1, PITCH, x + i * width, width, rows - i,
                                width, b->d_v + j * width);
        NAME(attention_product)(ROWS, b->d + i * PITCH + j, 1, PITCH, q + i * q_width, q_width, rows - i,
                                q_width, b->d_k + j * q_width);
    }
}

/* Write rows of whole vectors to where they belong. */
static void NAME(attention_store)(
    const T *from, int64_t rows, int64_t columns, T *to, int64_t row, int64_t column)
{
    int64_t width = up(columns, LANES);
    for (int64_t i = 0; i < rows; i++, from += width, to += row)
        for (int64_t j = 0; j < columns; j++)
            to[j * column] = from[j];
}

static void NAME(gradient_task)(void *work, int64_t index)
{
    Plan *plan = work;
    const Attention *p = plan->p;
    int64_t width = up(p->columns, LANES), q_width = up(p->features, LANES);
    int64_t high = KEYS + ROWS, first = index * p->sharing;
    Pair pair = NAME(attention_pair)(plan, first);
    int64_t rows = pair.rows, all = p->sharing * rows;
    T *memory = stretto_scratch(
        SLOT_A, (size_t)(all * (2 * q_width + width) + 2 * up(all, LANES) + 2 * QUERIES * PITCH) * sizeof(T));
    T *block = stretto_scratch(
        SLOT_B, (size_t)(KEYS * (p->features + p->columns) + high * (2 * q_width + width)) * sizeof(T));
    if (!memory || !block) {
        plan->failed = 1;
        return;
    }
    T *q = memory, *x = q + all * q_width, *d_q = x + all * width, *beside = d_q + all * q_width;
    T *shift = beside + up(all, LANES);
    T *keys = block, *values = keys + KEYS * p->features, *k_rows = values + KEYS * p->columns;
    NAME(AttentionBlock) b = {
        .q = q, .x = x, .d_q = d_q, .beside = beside, .keys = keys, .values = values, .k_rows = k_rows,
        .k_row = q_width, .d_k = k_rows + high * q_width, .shift = shift};
    b.d_v = b.d_k + high * q_width;
    b.s = shift + up(all, LANES), b.d = b.s + QUERIES * PITCH;
    for (int64_t g = 0; g < p->sharing; g++) {
        pair = NAME(attention_pair)(plan, first + g);
        NAME(attention_rows)(pair.q, p->q.row, p->q.column, rows, p->features, (T)p->scale,
                             q + g * rows * q_width);
        NAME(attention_rows)(pair.d_out, p->d_out.row, p->d_out.column, rows, p->columns, 1,
                             x + g * rows * width);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = g * rows + r, from = pair.lead + r;
            shift[at] = ((const T *)p->shift)[from];
            if (p->beside) {
                beside[at] = ((const T *)p->beside)[from];
                continue;
            }
            T *row = x + at * width, sum = 0;
            const T *out = pair.out + r * p->out.row;
            for (int64_t j = 0; j < width; j += LANES)
                STORE(row + j, LOAD(row + j) / ((const T *)p->total)[from]);
            for (int64_t j = p->columns; j < width; j++)
                row[j] = 0; /* zero by zero is NaN */
            T nothing = 0; /* or NaN: infinite gradients of all weights make it the sum of those */
            for (int64_t j = 0; j < p->columns; j++)
                sum -= out[j * p->out.column] * row[j], nothing += row[j] * 0;
            beside[at] = sum + nothing;
        }
    }
    for (int64_t j = 0; j < all * q_width; j++)
        d_q[j] = 0;
    pair = NAME(attention_pair)(plan, first);
    int whole = !pair.skips || !NAME(attention_finite)(q, q_width, all, q_width)
        || !NAME(attention_finite)(x, width, all, width);
    for (int64_t j = 0; j < pair.keys && !whole; j++) /* whatever their order in memory */
        for (int64_t l = 0; l < p->features; l++)
            whole |= pair.k[j * p->k.row + l * p->k.column] * 0 != 0;
    for (int64_t j = 0; j < pair.keys && !whole; j++)
        for (int64_t l = 0; l < p->columns; l++)
            whole |= pair.v[j * p->v.row + l * p->v.column] * 0 != 0;
    for (b.j0 = 0; b.j0 < pair.keys; b.j0 += KEYS) {
        b.n = pair.keys - b.j0 < KEYS ? pair.keys - b.j0 : KEYS;
        const T *k = pair.k + b.j0 * p->k.row, *v = pair.v + b.j0 * p->v.row;
        NAME(attention_keys)(k, p->k.row, p->k.column, b.n, p->features, keys);
        NAME(attention_keys)(v, p->v.row, p->v.column, b.n, p->columns, values);
        NAME(attention_rows)(k, p->k.row, p->k.column, b.n, p->features, 1, k_rows);
        for (int64_t j = 0; j < high * q_width; j++)
            b.d_k[j] = 0;
        for (int64_t j = 0; j < high * width; j++)
            b.d_v[j] = 0;
        for (int64_t g = 0; g < p->sharing; g++) {
            Pair own = NAME(attention_pair)(plan, first + g);
            for (int64_t r = 0; r < rows; r += QUERIES)
                NAME(gradient_block)(plan, &own, &b, g * rows + r, r,
                                     rows - r < QUERIES ? rows - r : QUERIES, whole);
        }
        NAME(attention_store)(b.d_k, b.n, p->features, pair.d_k + b.j0 * p->d_k.row, p->d_k.row,
                              p->d_k.column);
        NAME(attention_store)(b.d_v, b.n, p->columns, pair.d_v + b.j0 * p->d_v.row, p->d_v.row,
                              p->d_v.column);
    }
    for (int64_t g = 0; g < p->sharing; g++)
        NAME(attention_store)(d_q + g * rows * q_width, rows, p->features,
                              NAME(attention_pair)(plan, first + g).d_q, p->d_q.row, p->d_q.column);
    stretto_forget(SLOT_A);
}

/* The whole */

static Plan NAME(attention_plan)(const Attention *p)
{
    Plan plan = {.p = p, .parts = 1, .each = 1, .causal = -1, .ends = -1, .hidden = LEAST};
    for (int axis = 1; axis < ATTENTION_AXES; axis++)
        plan.each *= p->batch[axis];
    plan.pairs = p->batch[0] * plan.each;
    for (int64_t i = 0; i < p->steps; i++) {
        const AttentionStep *step = p->step + i;
        int masks = step->kind == ATTENTION_CAUSAL || step->kind == ATTENTION_SELECT;
        if (step->kind == ATTENTION_CAUSAL && plan.causal < 0)
            plan.causal = i;
        else if (step->kind == ATTENTION_SELECT && plan.ends < 0 && !step->array.row)
            plan.ends = i;
        if (!masks) /* what is hidden is changed again */
            plan.causal = plan.ends = -1, plan.hidden = LEAST;
        else if (plan.causal + plan.ends > -2 && step->constant > plan.hidden)
            plan.hidden = (T)step->constant;
    }
    return plan;
}

static int NAME(attention_run)(const XLA_FFI_CallFrame *frame, Plan *plan, int64_t tasks, Part *part)
{
    const Attention *p = plan->p;
    double work = (double)plan->pairs * (double)p->rows * (double)p->keys * (double)(p->features + p->columns);
    stretto_parallel(frame, stretto_threads_for(frame, work), tasks, part, plan);
    return plan->failed ? -1 : 0;
}

static int NAME(attention)(const XLA_FFI_CallFrame *frame, const Attention *p)
{
    Plan plan = NAME(attention_plan)(p);
    if (p->rows <= FEW && p->k.column == 1 && p->v.column == 1)
        return NAME(attention_run)(frame, &plan, plan.pairs, NAME(attend_few));
    plan.parts = (p->rows + TASK_ROWS - 1) / TASK_ROWS;
    return NAME(attention_run)(frame, &plan, plan.pairs * plan.parts, NAME(attend));
}

static int NAME(attention_gradient)(const XLA_FFI_CallFrame *frame, const Attention *p)
{
    Plan plan = NAME(attention_plan)(p);
    return NAME(attention_run)(frame, &plan, plan.pairs / p->sharing, NAME(gradient_task));
}

#undef Plan
