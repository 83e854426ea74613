/* The bias terms of several selections of rows at once, by plain Newton steps; the twin is
 * `logit_shifts` in numpy_engine.py. */

#include "loops.h"

#include <math.h>
#include <string.h>

static const double TOLERANCE = 1e-7; /* a Newton step s leaves an error of s^2 */
enum { MAX_STEPS = 12 };

/* Rows in the order of their groups, and sums of each group. */
typedef struct {
    double *odds, *weight;                 /* of each row */
    double *total, *positive, *negative;   /* sums of weights: all, and by label */
    double *mean, *square;                 /* sums of w p and w p^2 at a bias of zero */
    int64_t *group, *first, *next;         /* group g is from first[g] to first[g + 1] */
} Sorted;

static Sorted in_space(double *space, ptrdiff_t n, ptrdiff_t n_groups) {
    Sorted rows = {.odds = space, .weight = space + n, .group = (int64_t *)(space + 2 * n)};
    rows.total = space + 3 * n, rows.positive = rows.total + n_groups;
    rows.negative = rows.positive + n_groups, rows.mean = rows.negative + n_groups;
    rows.square = rows.mean + n_groups, rows.next = (int64_t *)(rows.square + n_groups);
    rows.first = rows.next + n_groups;
    memset(rows.total, 0, space_of_shifts(n, n_groups) - 3 * n * sizeof(double));
    return rows;
}

size_t space_of_shifts(ptrdiff_t n, ptrdiff_t n_groups) {
    return (size_t)(3 * n + 7 * n_groups + 1) * sizeof(double);
}

static double over(Selections selections, ptrdiff_t k, const double *sums) {
    double total = 0.0;
    for (ptrdiff_t g = 0; g < selections.n_groups; g++)
        if (selections.chosen[k * selections.n_groups + g]) total += sums[g];
    return total;
}

/* Sum the weights of each group; return 0 if a group is not one of them. */
static int sum_weights(Sorted *rows, const double *label, const double *weight,
                       const int64_t *group, ptrdiff_t n, ptrdiff_t n_groups) {
    memcpy(rows->group, group, n * sizeof *group); /* which no other thread can change */
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t g = rows->group[i];
        if (g < 0 || g >= n_groups) return 0;
        double w = weight ? weight[i] : 1.0;
        rows->first[g + 1]++;
        rows->total[g] += w, rows->positive[g] += w * label[i];
        rows->negative[g] += w * (1.0 - label[i]);
    }
    for (ptrdiff_t g = 0; g < n_groups; g++) rows->first[g + 1] += rows->first[g];
    return 1;
}

static void sort(Sorted *rows, const double *margin, const double *weight, ptrdiff_t n,
                 ptrdiff_t n_groups, double sign) {
    memcpy(rows->next, rows->first, n_groups * sizeof *rows->next);
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t place = rows->next[rows->group[i]]++;
        rows->odds[place] = exp(-sign * margin[i]);
        rows->weight[place] = weight ? weight[i] : 1.0;
    }
}

/* Sum w p and w p^2 over the rows of a group, p = 1 / (1 + factor odds). */
FOR_EACH_PROCESSOR
static void add_group(const Sorted *rows, ptrdiff_t g, double factor, double *mean,
                      double *square) {
    const double *odds = rows->odds, *weight = rows->weight;
    const int64_t first = rows->first[g], end = rows->first[g + 1];
    double sum = 0.0, sum_of_squares = 0.0;
#pragma omp simd reduction(+ : sum, sum_of_squares)
    for (int64_t i = first; i < end; i++) {
        double p = 1.0 / (1.0 + factor * odds[i]), share = weight[i] * p;
        sum += share;
        sum_of_squares += share * p;
    }
    *mean += sum, *square += sum_of_squares;
}

/* Return the step on the logit of the mean, which is nearly linear in the bias. */
static double newton_step(double mean, double square, double total, double rarer) {
    double p = mean / total, rate = rarer / total, slope = p - square / total;
    return (log(p / (1.0 - p)) - log(rate / (1.0 - rate))) * p * (1.0 - p) / slope;
}

static double step_of(const Sorted *rows, Selections selections, ptrdiff_t k, double shift,
                      const double *rarer) {
    double mean = 0.0, square = 0.0;
    if (shift == 0.0) { /* where all selections begin, so that one pass serves all */
        mean = over(selections, k, rows->mean), square = over(selections, k, rows->square);
    } else {
        for (ptrdiff_t g = 0; g < selections.n_groups; g++)
            if (selections.chosen[k * selections.n_groups + g])
                add_group(rows, g, exp(shift), &mean, &square);
    }
    return newton_step(mean, square, over(selections, k, rows->total),
                       over(selections, k, rarer));
}

/* Return 1 and the shifts; 0 where plain steps don't find all of them, -1 for a group that is none.
 * `space` holds `space_of_shifts` bytes. */
int logit_shifts(const double *margin, const double *label, const double *weight,
                 const int64_t *group, ptrdiff_t n, Selections selections, double *space,
                 double *shifts) {
    Sorted rows = in_space(space, n, selections.n_groups);
    if (!sum_weights(&rows, label, weight, group, n, selections.n_groups)) return -1;
    int is_mirrored = over(selections, 0, rows.positive) > 0.5 * over(selections, 0, rows.total);
    const double *rarer = is_mirrored ? rows.negative : rows.positive; /* keeps its digits */
    const double sign = is_mirrored ? -1.0 : 1.0;
    sort(&rows, margin, weight, n, selections.n_groups, sign);
    for (ptrdiff_t g = 0; g < selections.n_groups; g++)
        add_group(&rows, g, 1.0, &rows.mean[g], &rows.square[g]);
    memset(shifts, 0, selections.n_selections * sizeof *shifts);
    for (int steps = 0; steps < MAX_STEPS; steps++) {
        double largest = 0.0;
        for (ptrdiff_t k = 0; k < selections.n_selections; k++) {
            double step = step_of(&rows, selections, k, shifts[k], rarer);
            if (!isfinite(step)) return 0;
            shifts[k] += step;
            largest = fmax(largest, fabs(step));
        }
        if (largest <= TOLERANCE) {
            for (ptrdiff_t k = 0; k < selections.n_selections; k++) shifts[k] *= sign;
            return 1;
        }
    }
    return 0;
}
