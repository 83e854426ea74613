/* The loops over rows, which know no Python: loops_module.c has checked every pointer and length. */

#ifndef TRUEUP_LOOPS_H
#define TRUEUP_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* One wheel for all processors: the loader takes the fastest of these that it finds usable. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && __GNUC__ >= 12 && \
    !defined(__clang__)
#define FOR_EACH_PROCESSOR \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define SHUFFLE __builtin_shufflevector /* of vectors of four: slow where those are two of two */
#else
#define FOR_EACH_PROCESSOR
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

enum { N_BINS = 190, ORDER = 8, CELL_COLUMNS = 8, CODE_COLUMNS = 4 };
enum { MAX_FOLDS = 1 << 18 }; /* up to here the remainder is exact in float64 */

enum { STRIP = 512 }; /* rows that go through all loops before the next */

INLINE ptrdiff_t smaller(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

INLINE int are_below(const uint64_t *at, ptrdiff_t m, uint64_t end) {
    uint64_t n_beyond = 0;
    for (ptrdiff_t i = 0; i < m; i++) n_beyond += at[i] >= end;
    return n_beyond == 0;
}

/* Add four numbers to as many neighbours in memory. */
#if defined(__clang__) || defined(__GNUC__)
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

INLINE void add_four(double *to, double a, double b, double c, double d) {
    *(Four *)to += (Four){a, b, c, d};
}
#else
INLINE void add_four(double *to, double a, double b, double c, double d) {
    to[0] += a, to[1] += b, to[2] += c, to[3] += d;
}
#endif

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

/* Selections of rows by their groups: `chosen` holds 0 or 1 for each selection and group. */
typedef struct {
    const uint8_t *chosen;
    ptrdiff_t n_selections, n_groups;
} Selections;

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
int sort_rows(const int64_t *code, const double *const *columns, double *const *sorted,
              ptrdiff_t n_columns, ptrdiff_t n, int64_t n_codes, int64_t *next, int64_t *count,
              int64_t *order);
ptrdiff_t sum_bins(Column label, Column proba, ptrdiff_t n, const double *edges, double *sums,
                   int64_t n_bins);
void groups_of(const uint64_t *id, ptrdiff_t n, Rule rule, int64_t *out);
size_t space_of_shifts(ptrdiff_t n, ptrdiff_t n_groups);
int logit_shifts(const double *margin, const double *label, const double *weight,
                 const int64_t *group, ptrdiff_t n, Selections selections, double *space,
                 double *shifts);

#endif
