/* The loops over rows, which know no Python: loops_module.c has checked every pointer and length. */

#ifndef TRUEUP_LOOPS_H
#define TRUEUP_LOOPS_H

#include <stddef.h>
#include <stdint.h>

enum { N_BINS = 190, ORDER = 8, CELL_COLUMNS = 8, CODE_COLUMNS = 4 };

/* A column of numbers of any of numpy's types, read strip by strip. */
typedef enum { F64, F32, I64, I32, I16, I8, U64, U32, U16, U8 } Kind;
typedef struct {
    const void *data;
    Kind kind;
} Column;

/* Rows of a binary classifier; `weight` is NULL for ones, `id` for `first_row` and what follows. */
typedef struct {
    const double *label, *prediction, *weight;
    const uint64_t *id;
    uint64_t first_row;
    ptrdiff_t n;
    int is_logit;
} Rows;

/* As `HashRule`: the group is the hash modulo `folds`, or with 0 folds whether it reaches `limit`. */
typedef struct {
    uint64_t key, limit;
    int64_t folds;
} Rule;

/* Sums of the upper halves and of all of the low words of the hashes, and of the high words. */
typedef struct {
    uint64_t upper, low, high;
} HashSums;

ptrdiff_t absorb(const Rows *rows, Rule rule, double *moments, double *squared_moments,
                 int64_t *counts, HashSums *sums);
int deposit(const double *logit, const int64_t *group, const double *label, const double *weight,
            ptrdiff_t n, double *table, int64_t n_table);
void hash_sums(const uint64_t *id, const double *label, const double *weight, ptrdiff_t n,
               HashSums *sums);
int add_cells(Column code, const double *label, const double *proba, const double *weight,
              ptrdiff_t n, double *sums, int64_t n_codes);
ptrdiff_t sum_codes(Column code, Column label, Column proba, ptrdiff_t n, double *sums,
                    int64_t n_codes, int n_columns);
ptrdiff_t sum_bins(Column label, Column proba, ptrdiff_t n, const double *edges, double *sums,
                   int64_t n_bins);

#endif
