/* Loops over rows, strip by strip: what lies between two loops stays in the nearest cache.
 *
 * All but the additions into tables are written so that compilers turn them into vectors: no branch
 * and no call inside. The Python twins are in numpy_engine.py and hashing.py, under the same names.
 */

#include "loops.h"

#include <math.h>
#include <string.h>

enum { HALF = N_BINS / 2, ROWS_OF_GROUP = 2 * N_BINS };

static const double BINS_PER_UNIT = 2.5, LIMIT = 38.0, EPS = 2.220446049250313e-16;
static const uint64_t GOLDEN = 0x9E3779B97F4A7C15u, FIRST_FACTOR = 0xBF58476D1CE4E5B9u,
                      SECOND_FACTOR = 0x94D049BB133111EBu, ID_FACTOR = 0xD6E8FEB86659FD93u,
                      LABEL_FACTOR = 0xA0761D6478BD642Fu, WEIGHT_FACTOR = 0xE7037ED1A0B428DBu,
                      BITS_OF_ONE = 0x3FF0000000000000u;

/* 2^52: added to a whole number below it, which then stands in the lowest bits. Vectors convert
 * between float64 and integers in this way on all processors. */
static const double TWO_52 = 4503599627370496.0;
static const uint64_t BITS_OF_TWO_52 = 0x4330000000000000u, LOW_HALF = 0xFFFFFFFFu;

INLINE uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE double whole(uint64_t below_2_52) { return double_of(below_2_52 | BITS_OF_TWO_52) - TWO_52; }

/* ---- hashes ---- */

INLINE uint64_t mix(uint64_t x) {
    uint64_t z = x + GOLDEN;
    z = (z ^ (z >> 30)) * FIRST_FACTOR;
    z = (z ^ (z >> 27)) * SECOND_FACTOR;
    return z ^ (z >> 31);
}

INLINE uint64_t word_of(uint64_t id, double label) {
    return id * ID_FACTOR + bits_of(label + 0.0) * LABEL_FACTOR; /* + 0.0 makes 0.0 of -0.0 */
}

INLINE void add_hash(uint64_t word, HashSums *sums) {
    uint64_t low = mix(word);
    sums->upper += low >> 32;
    sums->low += low;
    sums->high += mix(low);
}

INLINE void add_hashes(const uint64_t *id, const double *label, const double *weight, ptrdiff_t n,
               HashSums *sums) {
    HashSums own = {0, 0, 0};
    if (weight) {
        for (ptrdiff_t i = 0; i < n; i++)
            add_hash(word_of(id[i], label[i]) +
                         (bits_of(weight[i] + 0.0) - BITS_OF_ONE) * WEIGHT_FACTOR,
                     &own);
    } else {
        for (ptrdiff_t i = 0; i < n; i++) add_hash(word_of(id[i], label[i]), &own);
    }
    sums->upper += own.upper, sums->low += own.low, sums->high += own.high;
}

FOR_EACH_PROCESSOR
void hash_sums(const uint64_t *id, const double *label, const double *weight, ptrdiff_t n,
               HashSums *sums) {
    add_hashes(id, label, weight, n, sums);
}

/* ---- logits ---- */

/* In bins, log(p / (1 - p)) = e log 2 + 2 atanh f, for p in [EPS, 1 - EPS]: e is the power of two that
 * brings q = 2^e (1 - p) nearest to p, by the bits of the two numbers, and f = (p - q) / (p + q). */
INLINE double scaled_logit(double p) {
    const uint64_t bias = (uint64_t)1024 << 52, half = (uint64_t)1 << 51;
    uint64_t q_bits = bits_of(1.0 - p) - bias;
    uint64_t exponent = (bits_of(p) - q_bits + half) >> 52; /* e + 1024, which is positive */
    double q = double_of(q_bits + (exponent << 52));
    double e = double_of(exponent | BITS_OF_TWO_52) - (TWO_52 + 1024.0);
    double f = (p - q) / (p + q), s = f * f;
    /* 2 atanh(f) / f by powers of f^2, for |f| <= 0.2, to 3e-17 of it; in pairs, which wait less. */
    double square = s * s;
    double lowest = BINS_PER_UNIT * 0.6666666666667552 * s + BINS_PER_UNIT * 2.0;
    double low = BINS_PER_UNIT * 0.28571429493291656 * s + BINS_PER_UNIT * 0.39999999995366287;
    double high = BINS_PER_UNIT * 0.18186564022689808 * s + BINS_PER_UNIT * 0.22222132327182004;
    double highest = BINS_PER_UNIT * 0.15392596696221966 * s + BINS_PER_UNIT * 0.15246625336719352;
    double series = (high + highest * square) * (square * square) + (lowest + low * square);
    return e * (BINS_PER_UNIT * 0.6931471805599453) + series * f;
}

/* ---- moments ---- */

/* Rows of a strip: the place in the bin, and the row of the table. */
typedef struct {
    _Alignas(64) double u[STRIP]; /* as long as a line of the cache, which vectors may fill */
    double weight[STRIP];
    uint64_t bin[STRIP], id[STRIP];
} Strip;

INLINE void put_place(Strip *strip, ptrdiff_t i, double scaled, double label) {
    double left = floor(scaled), twice = scaled - left;
    strip->u[i] = (twice + twice) - 1.0;
    strip->bin[i] = bits_of(left + (TWO_52 + HALF)) - BITS_OF_TWO_52 + (label != 0.0 ? N_BINS : 0);
}

/* Add weight u^k, k = 0 to 7: two vectors of four on one line of the cache. */
INLINE void add_powers(double *row, double u, double weight) {
    double square = u * u, fourth = square * square;
    double first = weight * u, second = weight * square, third = first * square;
    add_four(row, weight, first, second, third);
    add_four(row + 4, weight * fourth, first * fourth, second * fourth, third * fourth);
}

#ifdef SHUFFLE
INLINE void add_eight(double *row, Four powers, double fourth) {
    *(Four *)row += powers;
    *(Four *)(row + 4) += powers * fourth;
}

/* The same for four rows: what holds one power of all is turned into what holds all of one row. */
INLINE void add_powers_of_four(double *table, const uint64_t *bin, const double *at, Four weight) {
    Four u = *(const Four *)at, square = u * u, fourth = square * square;
    Four first = weight * u, second = weight * square, third = first * square;
    Four even = SHUFFLE(weight, first, 0, 4, 2, 6), even_high = SHUFFLE(second, third, 0, 4, 2, 6);
    Four odd = SHUFFLE(weight, first, 1, 5, 3, 7), odd_high = SHUFFLE(second, third, 1, 5, 3, 7);
    add_eight(table + ORDER * bin[0], SHUFFLE(even, even_high, 0, 1, 4, 5), fourth[0]);
    add_eight(table + ORDER * bin[1], SHUFFLE(odd, odd_high, 0, 1, 4, 5), fourth[1]);
    add_eight(table + ORDER * bin[2], SHUFFLE(even, even_high, 2, 3, 6, 7), fourth[2]);
    add_eight(table + ORDER * bin[3], SHUFFLE(odd, odd_high, 2, 3, 6, 7), fourth[3]);
}
#endif

INLINE void deposit_strip(const Strip *strip, const double *weight, ptrdiff_t m, double *table) {
    ptrdiff_t i = 0;
#ifdef SHUFFLE
    const Four ones = {1.0, 1.0, 1.0, 1.0};
    for (; i + 4 <= m; i += 4)
        add_powers_of_four(table, strip->bin + i, strip->u + i,
                           weight ? *(const Four *)(weight + i) : ones);
#endif
    for (; i < m; i++)
        add_powers(table + ORDER * strip->bin[i], strip->u[i], weight ? weight[i] : 1.0);
}

/* Return 0, some rows being added, if one does not lie in the table. */
FOR_EACH_PROCESSOR
int deposit(const double *logit, const int64_t *group, const double *label, const double *weight,
            ptrdiff_t n, double *table, int64_t n_table) {
    Strip strip;
    for (ptrdiff_t start = 0; start < n; start += STRIP) {
        ptrdiff_t m = smaller(STRIP, n - start);
        for (ptrdiff_t i = 0; i < m; i++) 
            put_place(&strip, i, logit[start + i] * BINS_PER_UNIT, label[start + i]);
        for (ptrdiff_t i = 0; i < m; i++)
            strip.bin[i] += ROWS_OF_GROUP * (uint64_t)group[start + i];
        if (!are_below(strip.bin, m, (uint64_t)n_table)) return 0;
        deposit_strip(&strip, weight ? weight + start : NULL, m, table);
    }
    return 1;
}

/* ---- the whole pass ---- */

/* Put the places of a strip, and tell whether its rows are valid and on the grid; NaN is neither. */
INLINE int place_strip(const Rows *rows, ptrdiff_t start, ptrdiff_t m, Strip *strip, int is_logit) {
    const double *label = rows->label + start, *prediction = rows->prediction + start;
    const double low = is_logit ? -LIMIT : EPS;
    const double high = is_logit ? nextafter(LIMIT, 0.0) : 1.0 - EPS;
    uint64_t n_bad = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        double y = label[i], x = prediction[i];
        n_bad += !((x >= low) & (x <= high) & (y * (1.0 - y) == 0.0)); /* y is 0 or 1 */
        put_place(strip, i, is_logit ? x * BINS_PER_UNIT : scaled_logit(x), y);
    }
    return n_bad == 0;
}

INLINE int are_weights(const double *weight, ptrdiff_t m) {
    uint64_t n_bad = 0;
    for (ptrdiff_t i = 0; i < m; i++) n_bad += !((weight[i] >= 0.0) & (weight[i] < INFINITY));
    return n_bad == 0;
}

INLINE void put_ids(const Rows *rows, ptrdiff_t start, ptrdiff_t m, Strip *strip) {
    if (rows->id)
        memcpy(strip->id, rows->id + start, m * sizeof *strip->id);
    else
        for (ptrdiff_t i = 0; i < m; i++) strip->id[i] = rows->first_row + (uint64_t)(start + i);
}

/* Add the rows of the table before the group of each row. A remainder is taken in exact float64. */
INLINE void add_groups(Strip *strip, ptrdiff_t m, Rule rule) {
    if (rule.folds == 1) return;
    if (rule.folds == 0) {
        for (ptrdiff_t i = 0; i < m; i++)
            strip->bin[i] += mix(strip->id[i] ^ rule.key) >= rule.limit ? ROWS_OF_GROUP : 0;
        return;
    }
    const double size = (double)rule.folds, inverse = 1.0 / size;
    const double half = 0.5 * inverse; /* more than rounding can take */
    const double carry = (double)(((uint64_t)1 << 32) % (uint64_t)rule.folds);
    for (ptrdiff_t i = 0; i < m; i++) {
        uint64_t hashed = mix(strip->id[i] ^ rule.key);
        double x = whole(hashed >> 32) * carry + whole(hashed & LOW_HALF);
        double group = x - floor(x * inverse + half) * size;
        strip->bin[i] += bits_of(group * ROWS_OF_GROUP + TWO_52) - BITS_OF_TWO_52;
    }
}

FOR_EACH_PROCESSOR
void groups_of(const uint64_t *id, ptrdiff_t n, Rule rule, int64_t *out) {
    Strip strip;
    if (rule.folds > MAX_FOLDS)
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = (int64_t)(mix(id[i] ^ rule.key) % (uint64_t)rule.folds);
    for (ptrdiff_t start = 0; rule.folds <= MAX_FOLDS && start < n; start += STRIP) {
        ptrdiff_t m = smaller(STRIP, n - start);
        memcpy(strip.id, id + start, m * sizeof *id);
        memset(strip.bin, 0, m * sizeof *strip.bin);
        add_groups(&strip, m, rule);
        for (ptrdiff_t i = 0; i < m; i++) out[start + i] = (int64_t)strip.bin[i] / ROWS_OF_GROUP;
    }
}

/* Count rows, and rows of positive weight, by group and label. */
INLINE void count(const Strip *strip, const double *weight, ptrdiff_t m, int64_t *counts,
                  int64_t n_cells) {
    for (ptrdiff_t i = 0; i < m; i++) {
        uint64_t cell = strip->bin[i] / N_BINS;
        counts[cell] += 1;
        counts[n_cells + cell] += weight[i] > 0.0;
    }
}

/* The bins count the rows themselves where there are no weights: add or subtract them. */
static void count_by_bins(const double *moments, int64_t n_cells, int sign, int64_t *counts) {
    for (int64_t cell = 0; cell < n_cells; cell++) {
        double rows = 0.0;
        for (int i = 0; i < N_BINS; i++) rows += moments[ORDER * (N_BINS * cell + i)];
        counts[cell] += sign * (int64_t)rows;
        counts[n_cells + cell] += sign * (int64_t)rows;
    }
}

FOR_EACH_PROCESSOR
static int absorb_strip(const Rows *rows, ptrdiff_t start, ptrdiff_t m, Rule rule, double *moments,
                        double *squared_moments, int64_t *counts, HashSums *sums) {
    Strip strip;
    const int64_t n_groups = rule.folds ? rule.folds : 2;
    const double *weight = rows->weight ? rows->weight + start : NULL;
    if (rows->is_logit ? !place_strip(rows, start, m, &strip, 1)
                       : !place_strip(rows, start, m, &strip, 0))
        return 0;
    if (weight && !are_weights(weight, m)) return 0;
    put_ids(rows, start, m, &strip);
    add_groups(&strip, m, rule);
    if (!are_below(strip.bin, m, (uint64_t)(n_groups * ROWS_OF_GROUP))) return 0;
    deposit_strip(&strip, weight, m, moments);
    if (weight) {
        count(&strip, weight, m, counts, 2 * n_groups);
        for (ptrdiff_t i = 0; i < m; i++) strip.weight[i] = weight[i] * weight[i];
        deposit_strip(&strip, strip.weight, m, squared_moments);
    }
    add_hashes(strip.id, rows->label + start, weight, m, sums);
    return 1;
}

/* Absorb the leading rows up to the first strip that is not plain; return how many. */
ptrdiff_t absorb(const Rows *rows, Rule rule, double *moments, double *squared_moments,
                 int64_t *counts, HashSums *sums) {
    const int64_t n_cells = 2 * (rule.folds ? rule.folds : 2);
    ptrdiff_t start = 0;
    if (!rows->weight) count_by_bins(moments, n_cells, -1, counts);
    while (start < rows->n) {
        ptrdiff_t m = smaller(STRIP, rows->n - start);
        if (!absorb_strip(rows, start, m, rule, moments, squared_moments, counts, sums)) break;
        start += m;
    }
    if (!rows->weight) count_by_bins(moments, n_cells, 1, counts);
    return start;
}
