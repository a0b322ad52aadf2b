/* Convolutions of spread images: for one type and one level.

Where an image is spread out by two (the gradient by the image of a convolution with a step of two),
positions of each residue are a convolution of their own, by some elements of the window: place
y = 2 i + r meets element w in row i + t of the image, where w = 2 t + low - r. All residues meet the
same elements of the image, so these are laid out once, in panels, by all threads, a slab of
positions at a time. A task multiplies some outputs by some of them, for all residues, and writes
what lies side by side.

An element's sum goes part by part of the features, in each element by element of the window.
*/

#define SLAB (1 << 21)  /* elements of the panels: what stays in the cache that all share */
#define PART 384        /* of the sum in a part: about so many */
#define HIGH 64         /* outputs of a task */
#define MOST_TAPS 64     /* elements of a window */
#define STRIPS 3        /* tiles of positions of a task */

typedef struct {
    int64_t count;           /* of runs of elements that follow each other in a panel */
    int64_t first[MOST_TAPS], length[MOST_TAPS];
} NAME(Residue);

typedef struct {
    const Convolution *p;
    Convolution u;           /* whose windows and positions hold those of all residues */
    int64_t from[2];         /* of a spread axis: the first row that a window meets */
    int64_t taps, depth, parts, pairs; /* pairs: elements of all residues */
    int64_t residues, group;
    NAME(Residue) residue[4];
    int64_t element[MOST_TAPS]; /* of each pair */
    int64_t pixels, columns; /* positions in all, and of this slab */
    int64_t first, strip, strips; /* the slab's first, positions of a strip, strips in it */
    int64_t most, rows;      /* positions of a slab, and outputs of a task */
    size_t size;             /* of what is packed */
    T *a, *panel;
    int failed;
} NAME(Panels);

/* The element of the window that a residue has at place `t` of the windows of all, or -1. */
static int64_t NAME(element)(const NAME(Panels) *plan, int axis, int64_t residue, int64_t t)
{
    const Convolution *p = plan->p;
    int64_t w = p->spread[axis] == 1 ? t : p->spread[axis] * (t + plan->from[axis]) + p->low[axis] - residue;
    return w < p->window[axis] ? w : -1;
}

static void NAME(pack_taps)(void *work, int64_t index)
{
    NAME(Panels) *plan = work;
    const Convolution *p = plan->p;
    int64_t o = index * ROWS, rows = least(p->outputs - o, ROWS), row = p->rhs_stride[N];
    int64_t elements = p->window[0] * p->window[1], width = p->window[1];
    int64_t back = p->rhs_stride[X] < 0 ? elements - 1 : 0, side = back ? -1 : 1;
    const T *rhs = (const T *)p->rhs + plan->group * p->rhs_stride[G] + o * row - back;
    T *out = plan->a + o * plan->pairs * p->features;
    /* Windows that lie side by side, or reversed: their rows are turned by vectors, which may read
    into the next. */
    int even = rows == ROWS && p->rhs_stride[X] == side && p->rhs_stride[Y] == side * width
        && up(elements, LANES) <= 2 * elements;
    int64_t safe = o + ROWS < p->outputs ? p->features : p->features - 1;
    T turned[(MOST_TAPS + LANES) * ROWS] __attribute__((aligned(64)));
    for (int64_t f = 0; f < p->features; f++, rhs += p->rhs_stride[F]) {
        int64_t inside = f % plan->depth, features = least(p->features - f + inside, plan->depth);
        T *to = out + (f - inside) * plan->pairs * ROWS + inside * ROWS;
        for (int i = 0; i < ROWS && even; i++)
            __builtin_prefetch(rhs + i * row + 16 * p->rhs_stride[F]);
        if (even && f < safe)
            for (int64_t l = 0; l < elements; l += LANES)
                NAME(turn_rows)(rhs, l, row, PLAIN, turned + l * ROWS);
        else
            for (int64_t l = 0; l < elements; l++) {
                const T *at = rhs + back + l / width * p->rhs_stride[Y] + l % width * p->rhs_stride[X];
                T *column = turned + (back ? back - l : l) * ROWS;
                for (int64_t i = 0; i < rows; i++)
                    column[i] = at[i * row];
            }
        for (int64_t q = 0; q < plan->pairs; q++, to += features * ROWS) {
            int64_t e = plan->element[q];
            *(NAME(LooseColumn) *)to
                = *(const NAME(LooseColumn) *)(turned + (back ? back - e : e) * ROWS);
        }
    }
}

/* The panel of one part of the features and one strip of positions: by tiles of columns, in each by
element of the window, then feature. */
static void NAME(lay_out)(void *work, int64_t index)
{
    NAME(Panels) *plan = work;
    const Convolution *u = &plan->u;
    int64_t part = index % plan->parts, strip = index / plan->parts;
    int64_t f0 = part * plan->depth, features = least(u->features - f0, plan->depth);
    int64_t j0 = plan->first + strip * plan->strip;
    int64_t columns = least(plan->first + plan->columns - j0, plan->strip);
    int64_t width = u->positions[1], height = u->positions[0];
    int64_t reach = (u->window[0] - 1) * u->gap[0] + 1;
    int64_t across = (width - 1) * u->step[1] + (u->window[1] - 1) * u->gap[1] + 1;
    int64_t kept = least(u->step[1], (u->window[1] - 1) * u->gap[1] + 1);
    int64_t plane = (across + u->step[1] - 1) / u->step[1], line = plane * kept;
    NAME(Piece) pieces[STRIPS * COLUMNS];
    int64_t lines = 0, count = 0, first[STRIPS + 1], tiles = 0;
    for (int64_t j = 0, next = 0, to = 0; j < columns;) { /* rows of an example are one block */
        int64_t y = (j0 + j) / width % height, x = (j0 + j) % width;
        if (j == next) {
            first[tiles++] = count;
            next += NAME(next)(columns - j) * LANES, to = 0;
        }
        int64_t left = least(least(next, columns) - j, width - x);
        if (j == 0 || (y == 0 && x == 0))
            lines += reach;
        else if (x == 0)
            lines += u->step[0];
        pieces[count++] = (NAME(Piece)){(lines - reach) * line + x, (int32_t)to, (int32_t)left};
        j += left, to += left;
    }
    first[tiles] = count;
    T *copy = stretto_scratch(SLOT_A, (size_t)(lines * line + 2 * LANES) * sizeof(T));
    if (!copy) {
        plan->failed = 1;
        return;
    }
    T *panel = plan->panel + f0 * plan->taps * plan->strips * plan->strip + part * plan->strips * LANES
        + strip * (features * plan->taps * plan->strip + LANES);
    const T *lhs = (const T *)u->lhs + plan->group * u->lhs_stride[G] + f0 * u->lhs_stride[F];
    for (int64_t f = 0; f < features; f++, lhs += u->lhs_stride[F]) {
        T *to = copy;
        for (int64_t j = j0; j < j0 + columns;) {
            int64_t n = j / (width * height), y = j / width % height;
            int64_t end = least((n + 1) * width * height, j0 + columns);
            to = NAME(bordered_rows)(
                lhs + n * u->lhs_stride[N], u->lhs_stride[Y], u->image, y * u->step[0] - u->low[0],
                ((end - 1) / width % height - y) * u->step[0] + reach, reach > 1 ? 1 : u->step[0],
                -u->low[1], across, u->step[1], kept, plane, to);
            j = end;
        }
        T *tile = panel;
        for (int64_t s = 0, j = 0; s < tiles; s++) {
            int64_t wide = NAME(next)(columns - j) * LANES;
            for (int64_t t = 0; t < plan->taps; t++) {
                int64_t x = t % u->window[1] * u->gap[1];
                const T *from = copy + t / u->window[1] * u->gap[0] * line + x % u->step[1] * plane
                    + x / u->step[1];
                T *out = tile + (t * features + f) * wide;
                /* Up to a vector more is written than a piece has: over what follows, features in
                their order, but not what has been written of the next element. */
                for (int64_t i = first[s]; i < first[s + 1]; i++) {
                    int64_t q = 0, most = f + 1 < features ? pieces[i].count : pieces[i].count / LANES * LANES;
                    for (; q < most; q += LANES)
                        STORE(out + pieces[i].to + q, LOAD(from + pieces[i].from + q));
                    for (; q < pieces[i].count; q++)
                        out[pieces[i].to + q] = from[pieces[i].from + q];
                }
            }
            tile += plan->taps * features * wide;
            j += wide;
        }
    }
}

static void NAME(panel_task)(void *work, int64_t index)
{
    NAME(Panels) *plan = work;
    const Convolution *p = plan->p, *u = &plan->u;
    int64_t strip = index % plan->strips, o0 = index / plan->strips * plan->rows;
    int64_t outputs = least(p->outputs - o0, plan->rows), j0 = plan->first + strip * plan->strip;
    int64_t columns = least(plan->first + plan->columns - j0, plan->strip);
    int64_t c_m = up(columns, LANES), each = outputs * c_m + LANES;
    T *c = stretto_scratch(SLOT_C, (size_t)(plan->residues * each) * sizeof(T));
    if (!c) {
        plan->failed = 1;
        return;
    }
    for (int64_t part = 0; part < plan->parts; part++) {
        int64_t f0 = part * plan->depth, features = least(u->features - f0, plan->depth);
        const T *panel = plan->panel + f0 * plan->taps * plan->strips * plan->strip + part * plan->strips * LANES
            + strip * (features * plan->taps * plan->strip + LANES);
        for (int64_t j = 0; j < columns;) {
            int vectors = NAME(next)(columns - j);
            int64_t wide = vectors * LANES;
            for (int64_t i = 0; i < outputs; i += ROWS) {
                int rows = (int)least(outputs - i, ROWS);
                const T *a = plan->a + ((o0 + i) * p->features + f0 * ROWS) * plan->pairs;
                for (int64_t r = 0; r < plan->residues; r++) {
                    const NAME(Residue) *one = &plan->residue[r];
                    for (int64_t s = 0; s < one->count; s++) {
                        int64_t k = one->length[s] * features;
                        NAME(tile_of)(rows, vectors, 1 + p->pairs, a, 0, 0, panel + one->first[s] * features * wide,
                                      wide, k, c + r * each + i * c_m + j, c_m, part + s > 0);
                        a += k * ROWS;
                    }
                }
            }
            panel += plan->taps * features * wide;
            j += wide;
        }
    }
    for (int64_t r = 0; r < plan->residues; r++)
        if (!plan->residue[r].count)
            memset(c + r * each, 0, (size_t)(outputs * c_m) * sizeof(T));
    int64_t width = u->positions[1], height = u->positions[0];
    int64_t high = p->spread[0], beside = p->spread[1];
    T *out = (T *)p->out + plan->group * p->out_stride[G] + o0 * p->out_stride[F];
    for (int64_t j = 0; j < columns;) {
        int64_t n = (j0 + j) / (width * height), y = (j0 + j) / width % height, x = (j0 + j) % width;
        int64_t count = least(columns - j, width - x);
        int64_t some = least(beside * count, p->positions[1] - beside * x);
        for (int64_t r = 0; r < high && high * y + r < p->positions[0]; r++) {
            const T *from = c + r * beside * each + j;
            T *to = out + n * p->out_stride[N] + (high * y + r) * p->out_stride[Y] + beside * x * p->out_stride[X];
            for (int64_t o = 0; o < outputs; o++, from += c_m, to += p->out_stride[F]) {
                if (p->out_stride[X] != 1)
                    for (int64_t i = 0; i < some; i++)
                        to[i * p->out_stride[X]] = from[i % beside * each + i / beside];
                else if (beside == 1)
                    NAME(copied)(from, count, to);
                else
                    for (int64_t q = 0; 2 * q < some; q += LANES) {
                        T pairs[2 * LANES] __attribute__((aligned(64)));
                        int whole = 2 * q + 2 * LANES <= some;
                        NAME(paired)(LOAD(from + q), LOAD(from + each + q), whole ? to + 2 * q : pairs);
                        if (!whole)
                            memcpy(to + 2 * q, pairs, (size_t)(some - 2 * q) * sizeof(T));
                    }
            }
        }
        j += count;
    }
}

static int NAME(suits_panels)(const Convolution *p)
{
    int64_t spread = p->spread[0] * p->spread[1], pixels = p->batch * p->positions[0] * p->positions[1];
    for (int axis = 0; axis < 2; axis++)
        if (p->spread[axis] > 2 || (p->spread[axis] == 2 && (p->gap[axis] != 1 || p->step[axis] != 1)))
            return 0;
    int64_t elements = p->window[0] * p->window[1];
    return spread > 1 && elements && elements <= MOST_TAPS && p->features && p->outputs > 4
        && pixels > 2 * LANES * spread;
}

/* All of a group, slab by slab. */
static void NAME(panel_group)(
    const XLA_FFI_CallFrame *frame, NAME(Panels) *plan, int64_t threads)
{
    const Convolution *p = plan->p;
    stretto_parallel(frame, threads, (p->outputs + ROWS - 1) / ROWS, NAME(pack_taps), plan);
    for (plan->first = 0; plan->first < plan->pixels; plan->first += plan->most) {
        plan->columns = least(plan->pixels - plan->first, plan->most);
        plan->strips = (plan->columns + plan->strip - 1) / plan->strip;
        stretto_parallel(frame, threads, plan->strips * plan->parts, NAME(lay_out), plan);
        stretto_parallel(frame, threads, plan->strips * ((p->outputs + plan->rows - 1) / plan->rows),
                        NAME(panel_task), plan);
    }
}

static void NAME(panel_group_task)(void *work, int64_t index)
{
    NAME(Panels) *plan = work, own = *plan;
    own.a = stretto_scratch(SLOT_SHARED, plan->size);
    if (own.a) {
        own.panel = own.a + (plan->panel - plan->a);
        own.group = index;
        NAME(panel_group)(NULL, &own, 1);
    }
    if (!own.a || own.failed)
        plan->failed = 1;
}

static int NAME(by_panels)(const XLA_FFI_CallFrame *frame, const Convolution *p, int64_t threads)
{
    NAME(Panels) plan = {.p = p, .u = *p, .residues = p->spread[0] * p->spread[1]};
    Convolution *u = &plan.u;
    for (int axis = 0; axis < 2; axis++)
        if (p->spread[axis] == 2) {
            int64_t low = p->low[axis], end = p->window[axis] - low;
            plan.from[axis] = low >= 0 ? -(low / 2) : (1 - low) / 2;
            u->window[axis] = (end >= 0 ? end / 2 : -((1 - end) / 2)) - plan.from[axis] + 1;
            u->low[axis] = -plan.from[axis];
            u->positions[axis] = (p->positions[axis] + 1) / 2;
        }
    plan.taps = u->window[0] * u->window[1];
    for (int64_t r = 0; r < plan.residues; r++) {
        NAME(Residue) *one = &plan.residue[r];
        for (int64_t t = 0, last = -2; t < plan.taps; t++) {
            int64_t y = NAME(element)(&plan, 0, r / p->spread[1], t / u->window[1]);
            int64_t x = NAME(element)(&plan, 1, r % p->spread[1], t % u->window[1]);
            if (y < 0 || x < 0)
                continue;
            plan.element[plan.pairs++] = y * p->window[1] + x;
            if (last != t - 1)
                one->first[one->count++] = t;
            one->length[one->count - 1]++;
            last = t;
        }
    }
    int64_t most = PART / plan.taps > 1 ? PART / plan.taps : 1;
    plan.parts = (p->features + most - 1) / most;
    plan.depth = (p->features + plan.parts - 1) / plan.parts;
    plan.parts = (p->features + plan.depth - 1) / plan.depth;
    plan.pixels = p->batch * u->positions[0] * u->positions[1];
    int64_t strips = (plan.pixels + STRIPS * COLUMNS - 1) / (STRIPS * COLUMNS);
    plan.strip = strips > 4 ? STRIPS * COLUMNS : up((plan.pixels + strips - 1) / strips, LANES);
    int64_t k = plan.taps * p->features, slab = SLAB / (k * plan.strip);
    slab = least(slab > 1 ? slab : 1, (plan.pixels + plan.strip - 1) / plan.strip);
    int64_t tiles = (p->outputs + ROWS - 1) / ROWS, tasks = 2 * threads;
    plan.rows = up((p->outputs * slab + tasks - 1) / tasks, ROWS);
    plan.rows = least(plan.rows, HIGH);
    int64_t a = tiles * ROWS * plan.pairs * p->features;
    plan.size = (size_t)(a + slab * (k * plan.strip + plan.parts * LANES)) * sizeof(T);
    plan.a = stretto_scratch(SLOT_SHARED, plan.size);
    if (!plan.a)
        return -1;
    plan.panel = plan.a + a;
    plan.most = slab * plan.strip;
    if (p->groups >= tasks)
        stretto_parallel(frame, threads, p->groups, NAME(panel_group_task), &plan);
    else
        for (; plan.group < p->groups; plan.group++)
            NAME(panel_group)(frame, &plan, threads);
    return plan.failed ? -1 : 0;
}
