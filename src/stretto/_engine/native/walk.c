/* The walk through a call's arguments: which types, classes and names it has, and its leaves. */

#include "native.h"

#define DEEPEST 64

void
walk_begin(Walk *w, int plain)
{
    w->plain = plain;
    w->words = w->words_here;
    w->leaves = w->leaves_here;
    w->values = NULL;
    w->nwords = w->nleaves = 0;
    w->wordroom = w->leafroom = HERE;
}

void
walk_end(Walk *w)
{
    if (w->words != w->words_here) {
        PyMem_Free(w->words);
    }
    Py_XDECREF(w->values);
    while (w->nleaves > 0) {
        Py_DECREF(w->leaves[--w->nleaves]);
    }
    if (w->leaves != w->leaves_here) {
        PyMem_Free(w->leaves);
    }
}

static int
enlarge(void **array, Py_ssize_t *room, void *here)
{
    size_t bytes = (size_t)*room * sizeof(void *);
    void *larger = PyMem_Realloc(*array == here ? NULL : *array, 2 * bytes);
    if (larger == NULL) {
        return -1;
    }
    if (*array == here) {
        memcpy(larger, here, bytes);
    }
    *array = larger;
    *room *= 2;
    return 0;
}

int
walk_word(Walk *w, const void *word)
{
    if (w->nwords == w->wordroom
        && enlarge((void **)&w->words, &w->wordroom, w->words_here) < 0) {
        return -1;
    }
    w->words[w->nwords++] = word;
    return 0;
}

static int
walk_leaf(Walk *w, PyObject *leaf, PyObject *type)
{
    if (w->nleaves == w->leafroom
        && enlarge((void **)&w->leaves, &w->leafroom, w->leaves_here) < 0) {
        return -1;
    }
    w->leaves[w->nleaves++] = Py_NewRef(leaf);
    return walk_word(w, type);
}

static const char by_value = 0; /* its address is the word for a value */

int
walk_value(Walk *w, PyObject *value)
{
    if (w->values == NULL) {
        w->values = PyList_New(0);
    }
    if (w->values == NULL || PyList_Append(w->values, value) < 0) {
        return -1;
    }
    return walk_word(w, &by_value);
}

int
walk_name(Walk *w, PyObject *name)
{
    if (!PyUnicode_CheckExact(name)) {
        return -1;
    }
    if (!PyUnicode_CHECK_INTERNED(name)) {
        Py_INCREF(name);
        PyUnicode_InternInPlace(&name);
        int put = walk_word(w, name);
        Py_DECREF(name); /* where a record has this name, it keeps the interned one alive */
        return put;
    }
    return walk_word(w, name);
}

/* The sharding of an array of this class, borrowed, read where its slot is; NULL for none. */
static PyObject *
sharding_of(PyObject *leaf)
{
    PyTypeObject *cls = Py_TYPE(leaf);
    PyObject *slot = PyDict_GetItemWithError(cls->tp_dict, strings.sharding);
    if (slot == NULL || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
        PyErr_Clear(); /* a string that is hashed already: there is none */
        return NULL;
    }
    return *(PyObject **)((char *)leaf + ((PyMemberDescrObject *)slot)->d_member->offset);
}

int
walk_begins(Walk *w, PyObject *container, Py_ssize_t size)
{
    return walk_word(w, Py_TYPE(container)) < 0 ? -1 : walk_word(w, (void *)size);
}

int
walk_held(Walk *w, PyObject *child, int depth)
{
    Py_INCREF(child);
    int walked = walk(w, child, depth);
    Py_DECREF(child);
    return walked;
}

static int
walk_items(Walk *w, PyObject *sequence, int depth)
{
    Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PySequence_Fast_GET_SIZE(sequence) != n
            || walk_held(w, PySequence_Fast_GET_ITEM(sequence, i), depth) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
walk_dict(Walk *w, PyObject *dict, int depth)
{
    Py_ssize_t place = 0, n = PyDict_GET_SIZE(dict);
    PyObject *key, *child;
    while (PyDict_Next(dict, &place, &key, &child)) {
        if (walk_name(w, key) < 0 || walk_held(w, child, depth) < 0
            || PyDict_GET_SIZE(dict) != n) {
            return -1;
        }
    }
    return 0;
}

/* An object of a registered class: `taken` apart, (children, static data) and perhaps more. */
static int
walk_parts(Walk *w, PyObject *node, PyObject *taken, int depth)
{
    if (!PyTuple_CheckExact(taken) || PyTuple_GET_SIZE(taken) < 2) {
        return -1;
    }
    PyObject *children = PySequence_Tuple(PyTuple_GET_ITEM(taken, 0));
    if (children == NULL) {
        return -1;
    }
    PyObject *data = PyTuple_GET_ITEM(taken, 1);
    int walked = walk_begins(w, node, PyTuple_GET_SIZE(children));
    if (walked == 0) {
        walked = data == Py_None ? walk_word(w, data) : walk_value(w, data);
    }
    if (walked == 0) {
        walked = walk_items(w, children, depth);
    }
    Py_DECREF(children);
    return walked;
}

static int
walk_node(Walk *w, PyObject *node, PyObject *apart, int depth)
{
    if (apart == Py_None) {
        return -1;
    }
    Py_INCREF(apart);
    PyObject *taken = PyObject_CallOneArg(apart, node);
    Py_DECREF(apart);
    int walked = taken == NULL ? -1 : walk_parts(w, node, taken, depth);
    Py_XDECREF(taken);
    return walked;
}

/* Say whether this is a named tuple: 1, 0, or -1 with an error. */
static int
is_named(PyObject *tuple)
{
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(tuple), strings.fields);
    if (fields == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        return 0;
    }
    int named = PyTuple_CheckExact(fields);
    Py_DECREF(fields);
    return named;
}

static int
walk_other(Walk *w, PyObject *leaf)
{
    PyObject *known = PyObject_CallOneArg(world.leaf_of, leaf);
    if (known == NULL) {
        return -1;
    }
    int walked = -1;
    if ((PyObject *)Py_TYPE(known) == world.array) {
        walked = walk_leaf(w, known, ((Holder *)known)->type);
    }
    else if (known != Py_None) {
        walked = walk_leaf(w, leaf, known); /* types live for ever */
    }
    Py_DECREF(known);
    return walked;
}

int
walk(Walk *w, PyObject *tree, int depth)
{
    PyTypeObject *cls = Py_TYPE(tree);
    if ((PyObject *)cls == world.array) {
        return walk_leaf(w, tree, ((Holder *)tree)->type);
    }
    if (depth > DEEPEST) {
        return -1;
    }
    if (PyList_GET_SIZE(world.placed) > 0
        && (PyObject *)cls == PyList_GET_ITEM(world.placed, 0)) {
        PyObject *sharding = sharding_of(tree);
        return sharding == NULL || walk_word(w, sharding) < 0
                   ? -1
                   : walk_leaf(w, tree, ((Holder *)tree)->type);
    }
    if (cls == &PyDict_Type) {
        return walk_begins(w, tree, PyDict_GET_SIZE(tree)) < 0
                   ? -1
                   : walk_dict(w, tree, depth + 1);
    }
    if (cls == &PyTuple_Type || cls == &PyList_Type) {
        return walk_begins(w, tree, PySequence_Fast_GET_SIZE(tree)) < 0
                   ? -1
                   : walk_items(w, tree, depth + 1);
    }
    if (tree == Py_None) {
        return walk_word(w, tree);
    }
    if (w->plain) {
        return -1;
    }
    PyObject *apart = PyDict_GetItemWithError(world.apart, (PyObject *)cls);
    if (apart != NULL) {
        return walk_node(w, tree, apart, depth + 1);
    }
    if (PyErr_Occurred()) {
        return -1;
    }
    if (PyTuple_Check(tree)) {
        return is_named(tree) != 1 || walk_begins(w, tree, PyTuple_GET_SIZE(tree)) < 0
                   ? -1
                   : walk_items(w, tree, depth + 1);
    }
    return walk_other(w, tree);
}
