/* What Python may call: each function checks its buffers, lets other threads run and calls a loop.
 *
 * A wrong type, shape or code raises TypeError or ValueError, never more. The functions named
 * `column` and `table` do nothing once one of them has failed, so a function looks for an error
 * once, after all of them.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

#include "loops.h"

enum { MAX_BUFFERS = 9, READ = 0 };

/* The buffers of one call, released together. */
typedef struct {
    Py_buffer views[MAX_BUFFERS];
    int n;
} Buffers;

static PyObject *done(Buffers *buffers, PyObject *result) {
    while (buffers->n) PyBuffer_Release(&buffers->views[--buffers->n]);
    return result;
}

static int is_kind(const Py_buffer *view, Kind *kind) {
    static const Kind is_signed[] = {I8, I16, I32, I64}, is_unsigned[] = {U8, U16, U32, U64};
    const char *format = view->format ? view->format : "B";
    int power = 0;
    while (power < 4 && view->itemsize != 1 << power) power++;
    if (power == 4 || strlen(format) != 1) return 0;
    if (strchr("fd", *format)) return *kind = power == 3 ? F64 : F32, power >= 2;
    if (strchr("bhilqn", *format)) return *kind = is_signed[power], 1;
    if (strchr("?BHILQN", *format)) return *kind = is_unsigned[power], 1;
    return 0;
}

/* Return a contiguous array of plain numbers; its `data` is NULL after an error. */
static Column array(Buffers *buffers, PyObject *given, const char *name, int n_dim, int flags) {
    Column taken = {NULL, F64};
    Py_buffer *view = &buffers->views[buffers->n];
    if (PyErr_Occurred() ||
        PyObject_GetBuffer(given, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | flags))
        return taken;
    buffers->n++;
    if (view->ndim != n_dim || !is_kind(view, &taken.kind) ||
        (uintptr_t)view->buf % (size_t)view->itemsize)
        PyErr_Format(PyExc_TypeError, "%s must be an aligned array of numbers with %d dimensions",
                     name, n_dim);
    else
        taken.data = view->buf ? view->buf : ""; /* an empty array may have no address */
    return taken;
}

/* Return a column of n numbers of any kind, or, for n = -1, of as many as n then says. */
static Column column(Buffers *buffers, PyObject *given, const char *name, Py_ssize_t *n) {
    Column taken = array(buffers, given, name, 1, READ);
    if (!taken.data) return taken;
    Py_ssize_t length = buffers->views[buffers->n - 1].shape[0];
    if (*n < 0) *n = length;
    if (*n != length)
        PyErr_Format(PyExc_ValueError, "%s must have length %zd; got %zd", name, *n, length);
    return taken;
}

static const void *column_of(Buffers *buffers, PyObject *given, const char *name, Py_ssize_t *n,
                             Kind kind) {
    Column taken = column(buffers, given, name, n);
    if (taken.data && taken.kind != kind)
        PyErr_Format(PyExc_TypeError, "%s must hold numbers of another type", name);
    return taken.data;
}

static const double *floats(Buffers *buffers, PyObject *given, const char *name, Py_ssize_t *n) {
    return given == Py_None ? NULL : column_of(buffers, given, name, n, F64);
}

/* Return a writable table of float64 with so many columns, and say how many rows it has. */
static double *table(Buffers *buffers, PyObject *given, Py_ssize_t n_columns, Py_ssize_t *n_rows) {
    Column taken = array(buffers, given, "table", 2, PyBUF_WRITABLE);
    if (!taken.data) return NULL;
    const Py_ssize_t *shape = buffers->views[buffers->n - 1].shape;
    *n_rows = shape[0];
    if (taken.kind != F64 || shape[1] != n_columns)
        PyErr_Format(PyExc_ValueError, "table must hold float64 in %zd columns", n_columns);
    return (double *)taken.data;
}

/* Return a column to write to, of n numbers or, for n = -1, of any number. */
static void *writable(Buffers *buffers, PyObject *given, Py_ssize_t n, Kind kind) {
    Column taken = array(buffers, given, "out", 1, PyBUF_WRITABLE);
    if (!taken.data) return NULL;
    Py_ssize_t length = buffers->views[buffers->n - 1].shape[0];
    if (taken.kind != kind || (n >= 0 && length != n))
        PyErr_Format(PyExc_ValueError, "out must hold %zd numbers of another type", n);
    return (void *)taken.data;
}

static PyObject *refuse(const char *rule) {
    PyErr_SetString(PyExc_ValueError, rule);
    return NULL;
}

/* Return a list of numbers; None for n = -1. */
static PyObject *listed(const double *numbers, Py_ssize_t n) {
    if (n < 0) return Py_NewRef(Py_None);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *number = PyFloat_FromDouble(numbers[i]);
        if (!number || PyList_SetItem(list, i, number)) Py_CLEAR(list);
    }
    return list;
}

/* Return the high word of the sum modulo 2^128, with what the low words, below 2^32 rows, carry. */
static uint64_t high_word(HashSums sums) {
    uint64_t lower = sums.low - (sums.upper << 32);
    return sums.high + ((sums.upper + (lower >> 32)) >> 32);
}

/* absorb(label, prediction, weight, row_id, first_row, is_logit, (key, folds, limit), moments,
 * squared_moments, counts) -> (n, low word and high word of the sum of the hashes) */
static PyObject *py_absorb(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *label, *prediction, *weight, *id, *moments, *squared, *counts;
    Rows rows = {.n = -1};
    unsigned long long first_row, key, limit;
    long long folds;
    if (!PyArg_ParseTuple(args, "OOOOKp(KLK)OOO", &label, &prediction, &weight, &id, &first_row,
                          &rows.is_logit, &key, &folds, &limit, &moments, &squared, &counts))
        return NULL;
    if (folds < 0 || folds > MAX_FOLDS) return refuse("folds must be in [0, 2^18]");
    const Rule rule = {key, limit, folds};
    const Py_ssize_t n_cells = 2 * (folds ? folds : 2);
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1, n_table = 0, n_squared = n_cells * N_BINS;
    rows.label = column_of(&buffers, label, "label", &n, F64);
    rows.prediction = column_of(&buffers, prediction, "prediction", &n, F64);
    rows.weight = floats(&buffers, weight, "weight", &n);
    rows.id = id == Py_None ? NULL : column_of(&buffers, id, "row_id", &n, U64);
    rows.first_row = first_row, rows.n = n;
    double *own = table(&buffers, moments, ORDER, &n_table);
    double *own_squared = rows.weight ? table(&buffers, squared, ORDER, &n_squared) : NULL;
    int64_t *own_counts = writable(&buffers, counts, 2 * n_cells, I64);
    if (!PyErr_Occurred() && (n_table != n_cells * N_BINS || n_squared != n_table))
        refuse("table must have a row for each bin of each group and label");
    if (PyErr_Occurred()) return done(&buffers, NULL);
    HashSums sums = {0, 0, 0};
    ptrdiff_t taken;
    Py_BEGIN_ALLOW_THREADS
    taken = absorb(&rows, rule, own, own_squared, own_counts, &sums);
    Py_END_ALLOW_THREADS
    return done(&buffers, Py_BuildValue("nKK", taken, sums.low, high_word(sums)));
}

/* deposit(logit, group, label, weight, table) */
static PyObject *py_deposit(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *logit, *group, *label, *weight, *moments;
    if (!PyArg_ParseTuple(args, "OOOOO", &logit, &group, &label, &weight, &moments)) return NULL;
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1, n_table = 0;
    const double *own_logit = column_of(&buffers, logit, "logit", &n, F64);
    const int64_t *own_group = column_of(&buffers, group, "group", &n, I64);
    const double *own_label = column_of(&buffers, label, "label", &n, F64);
    const double *own_weight = floats(&buffers, weight, "weight", &n);
    double *own = table(&buffers, moments, ORDER, &n_table);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    int is_inside;
    Py_BEGIN_ALLOW_THREADS
    is_inside = deposit(own_logit, own_group, own_label, own_weight, n, own, n_table);
    Py_END_ALLOW_THREADS
    if (!is_inside) return done(&buffers, refuse("rows must lie in the table"));
    return done(&buffers, Py_NewRef(Py_None));
}

/* hash_sums(row_id, label, weight) -> low word and high word of the sum */
static PyObject *py_hash_sums(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *id, *label, *weight;
    if (!PyArg_ParseTuple(args, "OOO", &id, &label, &weight)) return NULL;
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1;
    const uint64_t *own_id = column_of(&buffers, id, "row_id", &n, U64);
    const double *own_label = column_of(&buffers, label, "label", &n, F64);
    const double *own_weight = floats(&buffers, weight, "weight", &n);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    HashSums sums = {0, 0, 0};
    Py_BEGIN_ALLOW_THREADS
    hash_sums(own_id, own_label, own_weight, n, &sums);
    Py_END_ALLOW_THREADS
    return done(&buffers, Py_BuildValue("KK", sums.low, high_word(sums)));
}

/* groups_of(row_id, (key, folds, limit), out) */
static PyObject *py_groups_of(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *id, *out;
    unsigned long long key, limit;
    long long folds;
    if (!PyArg_ParseTuple(args, "O(KLK)O", &id, &key, &folds, &limit, &out)) return NULL;
    if (folds < 0) return refuse("folds must not be negative");
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1;
    const uint64_t *own_id = column_of(&buffers, id, "row_id", &n, U64);
    int64_t *own = writable(&buffers, out, n, I64);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    Py_BEGIN_ALLOW_THREADS
    groups_of(own_id, n, (Rule){key, limit, folds}, own);
    Py_END_ALLOW_THREADS
    return done(&buffers, Py_NewRef(Py_None));
}

/* logit_shifts(margin, label, weight, group, chosen) -> shifts, or None where none were found */
static PyObject *py_logit_shifts(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *margin, *label, *weight, *group, *chosen, *result = NULL;
    if (!PyArg_ParseTuple(args, "OOOOO", &margin, &label, &weight, &group, &chosen)) return NULL;
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1;
    const double *own_margin = column_of(&buffers, margin, "margin", &n, F64);
    const double *own_label = column_of(&buffers, label, "label", &n, F64);
    const double *own_weight = floats(&buffers, weight, "weight", &n);
    const int64_t *own_group = column_of(&buffers, group, "group", &n, I64);
    const Column table = array(&buffers, chosen, "chosen", 2, READ);
    if (!PyErr_Occurred() && table.kind != U8) refuse("chosen must hold bool");
    if (PyErr_Occurred()) return done(&buffers, NULL);
    const Py_ssize_t *shape = buffers.views[buffers.n - 1].shape;
    const Selections selections = {table.data, shape[0], shape[1]};
    double *shifts = PyMem_Malloc((size_t)shape[0] * sizeof(double) + 8);
    double *space = PyMem_Malloc(space_of_shifts(n, shape[1]));
    int found = 0;
    if (!shifts || !space) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        found = logit_shifts(own_margin, own_label, own_weight, own_group, n, selections, space,
                             shifts);
        Py_END_ALLOW_THREADS
        result = found < 0 ? refuse("group must be one of those of chosen") : listed(shifts, found ? shape[0] : -1);
    }
    PyMem_Free(shifts);
    PyMem_Free(space);
    return done(&buffers, result);
}

/* add_cells(code, label, proba, weight, sums) */
static PyObject *py_add_cells(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *code, *label, *proba, *weight, *sums;
    if (!PyArg_ParseTuple(args, "OOOOO", &code, &label, &proba, &weight, &sums)) return NULL;
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1, n_codes = 0;
    const Column own_code = column(&buffers, code, "code", &n);
    const double *own_label = column_of(&buffers, label, "label", &n, F64);
    const double *own_proba = column_of(&buffers, proba, "proba", &n, F64);
    const double *own_weight = floats(&buffers, weight, "weight", &n);
    double *own = table(&buffers, sums, CELL_COLUMNS, &n_codes);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    int are_below;
    Py_BEGIN_ALLOW_THREADS
    are_below = add_cells(own_code, own_label, own_proba, own_weight, n, own, n_codes);
    Py_END_ALLOW_THREADS
    if (!are_below) return done(&buffers, refuse("code must be below the rows of the table"));
    return done(&buffers, Py_NewRef(Py_None));
}

/* sort_rows(code, columns, count, order, out): one to three columns, as many to write to */
static PyObject *py_sort_rows(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *code, *given, *count, *order, *out;
    if (!PyArg_ParseTuple(args, "OO!OOO!", &code, &PyTuple_Type, &given, &count, &order,
                          &PyTuple_Type, &out))
        return NULL;
    const Py_ssize_t n_columns = PyTuple_Size(given);
    if (n_columns > 3 || n_columns != PyTuple_Size(out)) return refuse("at most three columns");
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1;
    const double *columns[3];
    double *sorted[3];
    const int64_t *own_code = column_of(&buffers, code, "code", &n, I64);
    for (Py_ssize_t k = 0; k < n_columns; k++) {
        columns[k] = column_of(&buffers, PyTuple_GetItem(given, k), "column", &n, F64);
        sorted[k] = writable(&buffers, PyTuple_GetItem(out, k), n, F64);
    }
    int64_t *own_order = writable(&buffers, order, n, I64);
    int64_t *own_count = writable(&buffers, count, -1, I64);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    const Py_ssize_t n_codes = buffers.views[buffers.n - 1].shape[0];
    int64_t *next = PyMem_Malloc((size_t)n_codes * sizeof *next + 8);
    if (!next) return done(&buffers, PyErr_NoMemory());
    int are_sorted;
    Py_BEGIN_ALLOW_THREADS
    are_sorted = sort_rows(own_code, columns, sorted, n_columns, n, n_codes, next, own_count,
                           own_order);
    Py_END_ALLOW_THREADS
    PyMem_Free(next);
    if (!are_sorted) return done(&buffers, refuse("code must be below the number of counts"));
    return done(&buffers, Py_NewRef(Py_None));
}

/* sum_codes(code, label, proba, sums) -> rows left out; sums of shape (n_codes, 4 or 8) */
static PyObject *py_sum_codes(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *code, *label, *proba, *sums;
    int n_columns;
    if (!PyArg_ParseTuple(args, "OOOOi", &code, &label, &proba, &sums, &n_columns)) return NULL;
    if (n_columns != CODE_COLUMNS && n_columns != CELL_COLUMNS) return refuse("4 or 8 columns");
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1, n_codes = 0;
    const Column own_code = column(&buffers, code, "code", &n);
    const Column own_label = column(&buffers, label, "label", &n);
    const Column own_proba = column(&buffers, proba, "proba", &n);
    double *own = table(&buffers, sums, n_columns, &n_codes);
    if (PyErr_Occurred()) return done(&buffers, NULL);
    ptrdiff_t n_bad;
    Py_BEGIN_ALLOW_THREADS
    n_bad = sum_codes(own_code, own_label, own_proba, n, own, n_codes, n_columns);
    Py_END_ALLOW_THREADS
    return done(&buffers, PyLong_FromSsize_t(n_bad));
}

/* sum_bins(label, proba, edges, sums) -> rows left out; edges beyond 0 and 1, sums of shape
 * (4 n_bins, 3) */
static PyObject *py_sum_bins(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *label, *proba, *edges, *sums;
    if (!PyArg_ParseTuple(args, "OOOO", &label, &proba, &edges, &sums)) return NULL;
    Buffers buffers = {.n = 0};
    Py_ssize_t n = -1, n_edges = -1, n_rows = 0;
    const Column own_label = column(&buffers, label, "label", &n);
    const Column own_proba = column(&buffers, proba, "proba", &n);
    const double *own_edges = column_of(&buffers, edges, "edges", &n_edges, F64);
    double *own = table(&buffers, sums, 3, &n_rows);
    if (!PyErr_Occurred() && (n_edges < 2 || n_rows != 4 * (n_edges - 1) ||
                              !(own_edges[0] < 0.0 && own_edges[n_edges - 1] > 1.0)))
        refuse("edges must reach beyond 0 and 1, with four rows of sums to a bin");
    if (PyErr_Occurred()) return done(&buffers, NULL);
    ptrdiff_t n_bad;
    Py_BEGIN_ALLOW_THREADS
    n_bad = sum_bins(own_label, own_proba, n, own_edges, own, n_edges - 1);
    Py_END_ALLOW_THREADS
    return done(&buffers, PyLong_FromSsize_t(n_bad));
}

static PyMethodDef methods[] = {
    {"absorb", py_absorb, METH_VARARGS, NULL},       {"deposit", py_deposit, METH_VARARGS, NULL},
    {"hash_sums", py_hash_sums, METH_VARARGS, NULL}, {"add_cells", py_add_cells, METH_VARARGS, NULL},
    {"sum_codes", py_sum_codes, METH_VARARGS, NULL}, {"sum_bins", py_sum_bins, METH_VARARGS, NULL},
    {"sort_rows", py_sort_rows, METH_VARARGS, NULL},
    {"groups_of", py_groups_of, METH_VARARGS, NULL},
    {"logit_shifts", py_logit_shifts, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "loops", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit_loops(void) { return PyModuleDef_Init(&definition); }
