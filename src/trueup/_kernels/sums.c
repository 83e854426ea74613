/* Sums at the codes of rows and in bins, and rows in the order of their codes. */

#include "loops.h"

#include <string.h>

/* Copies also keep what was checked from being changed by another thread before it is used. */
#define COPY(name, type, number)                                  \
    case name: {                                                  \
        const type *given = (const type *)column.data + start;    \
        for (ptrdiff_t i = 0; i < m; i++) out[i] = (number)given[i]; \
        return;                                                   \
    }

#define COPY_WHOLE(number)           \
    COPY(I64, int64_t, number)       \
    COPY(I32, int32_t, number)       \
    COPY(I16, int16_t, number)       \
    COPY(I8, int8_t, number)         \
    COPY(U64, uint64_t, number)      \
    COPY(U32, uint32_t, number)      \
    COPY(U16, uint16_t, number)      \
    COPY(U8, uint8_t, number)

static void copy_numbers(Column column, ptrdiff_t start, ptrdiff_t m, double *out) {
    switch (column.kind) {
        COPY(F64, double, double)
        COPY(F32, float, double)
        COPY_WHOLE(double)
    }
}

/* Copy whole numbers; negative ones become larger than the length of any table. */
static void copy_codes(Column column, ptrdiff_t start, ptrdiff_t m, uint64_t *out) {
    switch (column.kind) {
        COPY_WHOLE(uint64_t)
        case F64:
        case F32: memset(out, 0xFF, m * sizeof *out);
    }
}

INLINE int is_valid(double label, double proba) {
    return ((label == 0.0) | (label == 1.0)) & (proba >= 0.0) & (proba <= 1.0);
}

INLINE void add_cell(double *row, double y, double p, double w) {
    double square = w * w, miss = y - p;
    add_four(row, w, w * y, w * p, w * p * p);
    add_four(row + 4, square, 1.0, square * p * (1.0 - p), square * miss * miss);
}

/* Return 0, some rows being added, if a code is not below `n_codes`. */
FOR_EACH_PROCESSOR
int add_cells(Column code, const double *label, const double *proba, const double *weight,
              ptrdiff_t n, double *sums, int64_t n_codes) {
    uint64_t at[STRIP];
    for (ptrdiff_t start = 0; start < n; start += STRIP) {
        ptrdiff_t m = smaller(STRIP, n - start);
        copy_codes(code, start, m, at);
        if (!are_below(at, m, (uint64_t)n_codes)) return 0;
        for (ptrdiff_t i = 0; i < m; i++)
            add_cell(sums + CELL_COLUMNS * at[i], label[start + i], proba[start + i],
                     weight ? weight[start + i] : 1.0);
    }
    return 1;
}

/* Return the numbers of a strip: float64 where it lies, others in `space`. */
INLINE const double *numbers(Column column, ptrdiff_t start, ptrdiff_t m, double *space) {
    if (column.kind == F64) return (const double *)column.data + start;
    copy_numbers(column, start, m, space);
    return space;
}

INLINE int is_cell(uint64_t code, double y, double p, int64_t n_codes) {
    return (code < (uint64_t)n_codes) & is_valid(y, p);
}

/* Add the numbers of `add_cells`, or the first four of them without weights, at each code; return
 * how many rows were left out. */
FOR_EACH_PROCESSOR
ptrdiff_t sum_codes(Column code, Column label, Column proba, ptrdiff_t n, double *sums,
                    int64_t n_codes, int n_columns) {
    uint64_t at[STRIP]; /* a copy: another thread may change codes after they are checked */
    double of_y[STRIP], of_p[STRIP];
    ptrdiff_t n_bad = 0;
    for (ptrdiff_t start = 0; start < n; start += STRIP) {
        ptrdiff_t m = smaller(STRIP, n - start), n_out = 0;
        copy_codes(code, start, m, at);
        const double *y = numbers(label, start, m, of_y), *p = numbers(proba, start, m, of_p);
        for (ptrdiff_t i = 0; i < m; i++) n_out += !is_cell(at[i], y[i], p[i], n_codes);
        n_bad += n_out;
        for (ptrdiff_t i = 0; i < m; i++) {
            if (n_out && !is_cell(at[i], y[i], p[i], n_codes)) continue;
            if (n_columns == CELL_COLUMNS)
                add_cell(sums + CELL_COLUMNS * at[i], y[i], p[i], 1.0);
            else
                add_four(sums + CODE_COLUMNS * at[i], 1.0, y[i], p[i], p[i] * p[i]);
        }
    }
    return n_bad;
}

/* Add 1, label and proba to the bin of each row, of which `sums` has four copies: neighbours wait
 * for each other in one. The bin is guessed by arithmetic and corrected by its edges. */
ptrdiff_t sum_bins(Column label, Column proba, ptrdiff_t n, const double *edges, double *sums,
                   int64_t n_bins) {
    double y[STRIP], p[STRIP];
    ptrdiff_t n_bad = 0;
    for (ptrdiff_t start = 0; start < n; start += STRIP) {
        ptrdiff_t m = smaller(STRIP, n - start);
        copy_numbers(label, start, m, y);
        copy_numbers(proba, start, m, p);
        for (ptrdiff_t i = 0; i < m; i++) {
            if (!is_valid(y[i], p[i])) {
                n_bad++;
                continue;
            }
            int64_t bin = (int64_t)(p[i] * (double)n_bins);
            bin -= bin == n_bins;
            bin += (edges[bin + 1] < p[i]) - (edges[bin] >= p[i]);
            double *row = sums + 3 * ((i & 3) * n_bins + bin);
            row[0] += 1.0, row[1] += y[i], row[2] += p[i];
        }
    }
    return n_bad;
}

/* Count the rows of each code, and put rows in the order of the codes, those of a code as they came;
 * return 0 for a code that is none, or that another thread has changed. */
int sort_rows(const int64_t *code, const double *const *columns, double *const *sorted,
              ptrdiff_t n_columns, ptrdiff_t n, int64_t n_codes, int64_t *next, int64_t *count,
              int64_t *order) {
    memset(count, 0, n_codes * sizeof *count);
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t own = code[i];
        if (own < 0 || own >= n_codes) return 0;
        count[own]++;
    }
    for (int64_t c = 0, first = 0; c < n_codes; first += count[c++]) next[c] = first;
    for (ptrdiff_t i = 0; i < n; i++) {
        int64_t own = *(const volatile int64_t *)&code[i];
        if (own < 0 || own >= n_codes || next[own] >= n) return 0;
        int64_t place = next[own]++;
        order[place] = i;
        for (ptrdiff_t k = 0; k < n_columns; k++) sorted[k][place] = columns[k][i];
    }
    return 1;
}
