/* The jitted call, looked up by its arguments' fingerprint. The twin in Python: `api/jit/dispatch.py`.

   The fingerprint of a call: the addresses of all that its signature is made of (the key of the
   settings, the types of arrays, their shardings if they have any, the classes and lengths of
   containers, the names in dictionaries, interned), in the order in which a walk through the
   arguments meets them. All of them live for ever or are kept by the record, so equal fingerprints
   are equal signatures. What is compared by value, static arguments and the static data of nodes,
   stands beside the addresses: the fingerprint is then a tuple of the addresses and these. */

#include "native.h"

/* CallRecord: how a call whose fingerprint is known is run. Made once, and never changed. ------------ */

typedef struct {
    PyObject_HEAD
    PyObject *interpret; /* of the list of arrays, gives that of the results; or None, and then */
    PyObject *run;       /* `run(buffers).consume_with_handlers(handlers)` gives their buffers */
    PyObject *handlers;
    PyObject *constants; /* a tuple: the arrays that are passed after the leaves */
    PyObject *out_types; /* a tuple: the types of what `run` gives */
    PyObject *unflatten; /* of the list of results; None for one result that is no container */
    PyObject *tidy;      /* lets go of what the runtime keeps of past calls; called now and then */
    PyObject *alive;     /* names, classes and shardings whose addresses are in fingerprints */
    Py_ssize_t nleaves;
    Py_ssize_t *leaves; /* which leaves are passed, as the walk numbers them, and in which order */
} CallRecord;

/* The numbers in a tuple, or NULL with an error; no Python code runs here. */
static Py_ssize_t *
numbers_in(PyObject *tuple)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    Py_ssize_t *numbers = PyMem_New(Py_ssize_t, n > 0 ? n : 1);
    if (numbers == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *number = PyTuple_GET_ITEM(tuple, i);
        if (!PyLong_CheckExact(number)) {
            PyErr_SetString(PyExc_TypeError, "CallRecord: leaves must be whole numbers");
        }
        else {
            numbers[i] = PyLong_AsSsize_t(number);
        }
        if (PyErr_Occurred()) {
            PyMem_Free(numbers);
            return NULL;
        }
    }
    return numbers;
}

static PyObject *
record_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"interpret", "run", "handlers", "leaves", "constants", "out_types",
                            "unflatten", "tidy", "alive", NULL};
    PyObject *interpret, *run, *handlers, *leaves, *constants, *out_types, *unflatten, *tidy,
        *alive;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OOOO!O!O!OOO", names, &interpret, &run,
                                     &handlers, &PyTuple_Type, &leaves, &PyTuple_Type, &constants,
                                     &PyTuple_Type, &out_types, &unflatten, &tidy, &alive)) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        if (!PyObject_TypeCheck(PyTuple_GET_ITEM(constants, i), &HolderType)) {
            PyErr_SetString(PyExc_TypeError, "CallRecord: constants must be arrays");
            return NULL;
        }
    }
    Py_ssize_t *numbers = numbers_in(leaves);
    if (numbers == NULL) {
        return NULL;
    }
    CallRecord *self = (CallRecord *)cls->tp_alloc(cls, 0);
    if (self == NULL) {
        PyMem_Free(numbers);
        return NULL;
    }
    self->leaves = numbers;
    self->nleaves = PyTuple_GET_SIZE(leaves);
    self->interpret = Py_NewRef(interpret);
    self->run = Py_NewRef(run);
    self->handlers = Py_NewRef(handlers);
    self->constants = Py_NewRef(constants);
    self->out_types = Py_NewRef(out_types);
    self->unflatten = Py_NewRef(unflatten);
    self->tidy = Py_NewRef(tidy);
    self->alive = Py_NewRef(alive);
    return (PyObject *)self;
}

/* As tuples have none, there is no `tp_clear`: what refers back to a record can let go of it. */
static int
record_traverse(CallRecord *self, visitproc visit, void *arg)
{
    Py_VISIT(self->interpret);
    Py_VISIT(self->run);
    Py_VISIT(self->handlers);
    Py_VISIT(self->constants);
    Py_VISIT(self->out_types);
    Py_VISIT(self->unflatten);
    Py_VISIT(self->tidy);
    Py_VISIT(self->alive);
    return 0;
}

static void
record_dealloc(CallRecord *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->interpret);
    Py_XDECREF(self->run);
    Py_XDECREF(self->handlers);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->out_types);
    Py_XDECREF(self->unflatten);
    Py_XDECREF(self->tidy);
    Py_XDECREF(self->alive);
    PyMem_Free(self->leaves);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject CallRecordType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.CallRecord",
    .tp_doc = "How a call whose fingerprint is known is run; made of keyword arguments.",
    .tp_basicsize = sizeof(CallRecord),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = record_new,
    .tp_dealloc = (destructor)record_dealloc,
    .tp_traverse = (traverseproc)record_traverse,
};

/* Dispatcher: a compiled function. ----------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *numbers, *names; /* tuples: which arguments are static; NULL until attached */
    PyObject *table;    /* records, by fingerprint */
    PyObject *last;     /* the fingerprint found last, and its record */
    CallRecord *record;
    PyObject *dict;
    PyObject *weak;
} Dispatcher;

/* Walk an argument that is static: it is compared by its class and value. */
static int
walk_static(Walk *w, PyObject *value)
{
    return walk_word(w, Py_TYPE(value)) < 0 ? -1 : walk_value(w, value);
}

/* Say whether the argument at this position of `count` is static: 1, 0, or -1 with an error. */
static int
is_static(Dispatcher *self, Py_ssize_t position, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->numbers); i++) {
        Py_ssize_t number = PyLong_AsSsize_t(PyTuple_GET_ITEM(self->numbers, i));
        if (number == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (number == position || number + count == position) {
            return 1;
        }
    }
    return 0;
}

static int
walk_args(Dispatcher *self, Walk *w, PyObject *args)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (walk_begins(w, args, n) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *arg = PyTuple_GET_ITEM(args, i);
        int fixed = is_static(self, i, n);
        if (fixed < 0 || (fixed ? walk_static(w, arg) : walk(w, arg, 1)) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
walk_kwargs(Dispatcher *self, Walk *w, PyObject *kwargs)
{
    Py_ssize_t place = 0, n = PyDict_GET_SIZE(kwargs);
    PyObject *name, *arg;
    if (walk_begins(w, kwargs, n) < 0) {
        return -1;
    }
    while (PyDict_Next(kwargs, &place, &name, &arg)) {
        if (walk_name(w, name) < 0) {
            return -1;
        }
        int fixed = PyTuple_GET_SIZE(self->names) == 0 ? 0
                                                       : PySequence_Contains(self->names, name);
        if (fixed < 0 || (fixed ? walk_static(w, arg) : walk_held(w, arg, 1)) < 0
            || PyDict_GET_SIZE(kwargs) != n) {
            return -1;
        }
    }
    return 0;
}

/* 1, 0 where the call has no fingerprint, -1 with an error. */
static int
walk_call(Dispatcher *self, Walk *w, PyObject *args, PyObject *kwargs)
{
    PyObject *key = PyObject_GetAttr(world.settings, strings.key);
    if (key == NULL) {
        return -1;
    }
    Py_DECREF(key); /* kept for ever, where it was registered */
    int walked = walk_word(w, key);
    if (walked == 0) {
        walked = walk_args(self, w, args);
    }
    if (walked == 0 && kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        walked = walk_kwargs(self, w, kwargs);
    }
    return walked == 0 ? 1 : PyErr_Occurred() ? -1 : 0;
}

static PyObject *
fingerprint_of(Walk *w)
{
    PyObject *words = PyBytes_FromStringAndSize((const char *)w->words,
                                                w->nwords * sizeof(void *));
    if (words == NULL || w->values == NULL) {
        return words;
    }
    Py_ssize_t n = PyList_GET_SIZE(w->values);
    PyObject *whole = PyTuple_New(n + 1);
    if (whole == NULL) {
        Py_DECREF(words);
        return NULL;
    }
    PyTuple_SET_ITEM(whole, 0, words);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(whole, i + 1, Py_NewRef(PyList_GET_ITEM(w->values, i)));
    }
    return whole;
}

/* The record for a walk: 1 with a new reference, 0 where there is none, -1 with an error. */
static int
look_up(Dispatcher *self, Walk *w, CallRecord **record)
{
    if (self->last != NULL && w->values == NULL
        && PyBytes_GET_SIZE(self->last) == w->nwords * (Py_ssize_t)sizeof(void *)
        && memcmp(PyBytes_AS_STRING(self->last), w->words, PyBytes_GET_SIZE(self->last)) == 0) {
        *record = (CallRecord *)Py_NewRef(self->record);
        return 1;
    }
    PyObject *fingerprint = fingerprint_of(w);
    if (fingerprint == NULL) {
        return -1;
    }
    int found = item_of(self->table, fingerprint, (PyObject **)record);
    if (found < 0 && w->values != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* a value is not hashable: the general way says which */
        found = 0;
    }
    if (found == 1 && w->values == NULL) {
        PyObject *last = self->last;
        CallRecord *before = self->record;
        self->last = Py_NewRef(fingerprint);
        self->record = (CallRecord *)Py_NewRef(*record);
        Py_XDECREF(last);
        Py_XDECREF(before);
    }
    Py_DECREF(fingerprint);
    return found;
}

#define UNTIDY 64 /* so many runs are kept at most */

/* The number of the i-th leaf that is passed; -1 where the walk has no such leaf. */
static Py_ssize_t
leaf_at(Walk *w, CallRecord *record, Py_ssize_t i)
{
    Py_ssize_t leaf = record->leaves[i];
    return leaf < 0 || leaf >= w->nleaves ? -1 : leaf;
}

/* Array `i` of those that are passed; held by the walk or by the record. */
static Holder *
array_at(Walk *w, CallRecord *record, Py_ssize_t i)
{
    if (i >= record->nleaves) {
        return (Holder *)PyTuple_GET_ITEM(record->constants, i - record->nleaves);
    }
    Py_ssize_t leaf = leaf_at(w, record, i);
    return leaf < 0 ? NULL : (Holder *)w->leaves[leaf];
}

/* Have arrays stand for the NumPy arrays among the leaves that are passed: 1, 0 for the general
   way, -1 with an error. */
static int
as_arrays(Walk *w, CallRecord *record)
{
    for (Py_ssize_t i = 0; i < record->nleaves; i++) {
        Py_ssize_t leaf = leaf_at(w, record, i);
        if (leaf < 0 || PyObject_TypeCheck(w->leaves[leaf], &HolderType)) {
            continue;
        }
        PyObject *made = PyObject_CallOneArg(world.as_array, w->leaves[leaf]);
        if (made == NULL) {
            return -1;
        }
        if ((PyObject *)Py_TYPE(made) != world.array) {
            Py_DECREF(made);
            return 0;
        }
        Py_SETREF(w->leaves[leaf], made);
    }
    return 1;
}

/* List what is passed, arrays or their buffers: 1, 0 for the general way, -1 with an error.
   No Python code runs while the list is not whole, so that nobody sees it so. */
static int
passed(Walk *w, CallRecord *record, int buffers, PyObject **list)
{
    Py_ssize_t n = record->nleaves + PyTuple_GET_SIZE(record->constants);
    for (Py_ssize_t i = 0; i < n; i++) {
        Holder *array = array_at(w, record, i);
        if (array == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "a record has a leaf that the call has not");
            return -1;
        }
        if (buffers && (array->buffer == NULL || array->buffer == Py_None)) {
            PyObject *made = PyObject_CallMethodNoArgs((PyObject *)array, strings.to_buffer);
            if (made == NULL) {
                return -1;
            }
            Py_DECREF(made); /* kept by the array */
        }
    }
    *list = PyList_New(n);
    if (*list == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        Holder *array = array_at(w, record, i);
        PyObject *item = buffers ? array->buffer : (PyObject *)array;
        if (item == NULL || item == Py_None
            || PyObject_TypeCheck(item, (PyTypeObject *)world.absent)) {
            Py_CLEAR(*list); /* the general way waits for it, or says to whom it was donated */
            return 0;
        }
        PyList_SET_ITEM(*list, i, Py_NewRef(item));
    }
    return 1;
}

/* Buffers to arrays, in place. */
static int
wrap(PyObject *outs, PyObject *out_types)
{
    Py_ssize_t n = PyTuple_GET_SIZE(out_types);
    if (!PyList_CheckExact(outs) || PyList_GET_SIZE(outs) != n || n == 0) {
        PyErr_SetString(PyExc_RuntimeError, "an executable gave another number of results");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *buffer = Py_XNewRef(PyList_GetItem(outs, i));
        PyObject *made = buffer == NULL ? NULL
                                        : holder_make((PyTypeObject *)world.array, Py_None,
                                                      PyTuple_GET_ITEM(out_types, i), buffer);
        Py_XDECREF(buffer);
        if (made == NULL || PyList_SetItem(outs, i, made) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Let go of what the runtime keeps of past calls, every so many of them. */
static int
tidy(CallRecord *record)
{
    static int runs = 0;
    if (++runs < UNTIDY) {
        return 0;
    }
    runs = 0;
    PyObject *none = PyObject_CallNoArgs(record->tidy);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

/* The number of threads in the runtime by way of a record; changed while the thread has the GIL. */
static int in_runtime = 0;

/* List the results as arrays: 1, 0 for the general way, -1 with an error. */
static int
results_of(Walk *w, CallRecord *record, PyObject **outs)
{
    PyObject *interpret = record->interpret, *list;
    int whole = as_arrays(w, record);
    if (whole == 1) {
        whole = passed(w, record, interpret == Py_None, &list);
    }
    if (whole != 1) {
        return whole;
    }
    *outs = NULL;
    if (interpret != Py_None) {
        *outs = PyObject_CallOneArg(interpret, list);
    }
    else if (tidy(record) == 0) {
        in_runtime++;
        PyObject *ran = PyObject_CallOneArg(record->run, list);
        in_runtime--;
        if (ran != NULL) {
            *outs = PyObject_CallMethodOneArg(ran, strings.consume, record->handlers);
            Py_DECREF(ran);
        }
        if (*outs != NULL && wrap(*outs, record->out_types) < 0) {
            Py_CLEAR(*outs);
        }
    }
    Py_DECREF(list);
    if (*outs != NULL && !PyList_CheckExact(*outs)) {
        Py_CLEAR(*outs); /* no list of results: the general way knows better */
        return 0;
    }
    return *outs == NULL ? -1 : 1;
}

/* `running()`: how many threads have called a compiled program, which has not returned yet. */
PyObject *
running(PyObject *module, PyObject *nothing)
{
    return PyLong_FromLong(in_runtime);
}

/* Make what the function gives from the list of its results. */
static PyObject *
unflattened(CallRecord *record, PyObject *outs)
{
    return record->unflatten == Py_None ? Py_XNewRef(PyList_GetItem(outs, 0))
                                        : PyObject_CallOneArg(record->unflatten, outs);
}

static PyObject *
dispatch(Dispatcher *self, PyObject *args, PyObject *kwargs)
{
    Walk w;
    CallRecord *record = NULL;
    PyObject *outs = NULL;
    walk_begin(&w, 0);
    int found = self->names == NULL || PyDict_GET_SIZE(self->table) == 0 ? 0 : at_rest();
    if (found == 1) {
        found = walk_call(self, &w, args, kwargs);
    }
    if (found == 1) {
        found = look_up(self, &w, &record);
    }
    if (found == 1) {
        found = results_of(&w, record, &outs);
    }
    walk_end(&w);
    PyObject *result = NULL;
    if (found == 1) {
        result = unflattened(record, outs);
        Py_DECREF(outs);
    }
    else if (found == 0) {
        PyObject *named = kwargs == NULL ? PyDict_New() : Py_NewRef(kwargs);
        if (named != NULL) {
            result = PyObject_CallMethodObjArgs((PyObject *)self, strings.general, args, named, NULL);
            Py_DECREF(named);
        }
    }
    Py_XDECREF(record);
    return result;
}

static PyObject *
dispatcher_fingerprint(Dispatcher *self, PyObject *given)
{
    PyObject *args, *kwargs, *result = NULL;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) {
        return NULL;
    }
    Walk w;
    walk_begin(&w, 0);
    int found = self->names == NULL ? 0 : walk_call(self, &w, args, kwargs);
    if (found >= 0) {
        result = found == 1 ? fingerprint_of(&w) : Py_NewRef(Py_None);
    }
    walk_end(&w);
    return result;
}

static PyObject *
dispatcher_remember(Dispatcher *self, PyObject *given)
{
    PyObject *fingerprint, *record;
    if (!PyArg_ParseTuple(given, "OO!", &fingerprint, &CallRecordType, &record)) {
        return NULL;
    }
    if (self->table == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "Dispatcher: cleared already");
        return NULL;
    }
    if (PyDict_SetItem(self->table, fingerprint, record) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
dispatcher_forget(Dispatcher *self, PyObject *unused)
{
    PyObject *last = self->last;
    CallRecord *record = self->record;
    self->last = NULL; /* both at once: Python code may run when either goes */
    self->record = NULL;
    Py_XDECREF(last);
    Py_XDECREF(record);
    if (self->table != NULL) {
        PyDict_Clear(self->table);
    }
    Py_RETURN_NONE;
}

static PyObject *
dispatcher_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    Dispatcher *self = (Dispatcher *)cls->tp_alloc(cls, 0);
    if (self == NULL) {
        return NULL;
    }
    self->table = PyDict_New();
    if (self->table == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *
dispatcher_attach(Dispatcher *self, PyObject *given)
{
    PyObject *numbers, *names;
    if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &numbers, &PyTuple_Type, &names)) {
        return NULL;
    }
    if (world.settings == NULL || self->names != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "Dispatcher: expected once, after attach_jit");
        return NULL;
    }
    self->numbers = Py_NewRef(numbers);
    self->names = Py_NewRef(names);
    Py_RETURN_NONE;
}

static int
dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg)
{
    Py_VISIT(self->numbers);
    Py_VISIT(self->names);
    Py_VISIT(self->table);
    Py_VISIT(self->last);
    Py_VISIT(self->record);
    Py_VISIT(self->dict);
    return 0;
}

static int
dispatcher_clear(Dispatcher *self)
{
    Py_CLEAR(self->numbers);
    Py_CLEAR(self->names);
    Py_CLEAR(self->table);
    Py_CLEAR(self->last);
    Py_CLEAR(self->record);
    Py_CLEAR(self->dict);
    return 0;
}

static void
dispatcher_dealloc(Dispatcher *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weak != NULL) {
        PyObject_ClearWeakRefs((PyObject *)self);
    }
    dispatcher_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMethodDef dispatcher_methods[] = {
    {"_attach", (PyCFunction)dispatcher_attach, METH_VARARGS,
     "Say which arguments are static, by position and by name."},
    {"_fingerprint", (PyCFunction)dispatcher_fingerprint, METH_VARARGS,
     "What a call with these positional and keyword arguments is looked up by, or None."},
    {"_remember", (PyCFunction)dispatcher_remember, METH_VARARGS,
     "Let calls with this fingerprint go the short way, by this record."},
    {"_forget", (PyCFunction)dispatcher_forget, METH_NOARGS, "Forget all records."},
    {NULL},
};

static PyGetSetDef dispatcher_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

PyTypeObject DispatcherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.Dispatcher",
    .tp_doc = "Calls what was compiled for its arguments, or its method _general.",
    .tp_basicsize = sizeof(Dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = dispatcher_new,
    .tp_call = (ternaryfunc)dispatch,
    .tp_dealloc = (destructor)dispatcher_dealloc,
    .tp_traverse = (traverseproc)dispatcher_traverse,
    .tp_clear = (inquiry)dispatcher_clear,
    .tp_methods = dispatcher_methods,
    .tp_getset = dispatcher_getset,
    .tp_dictoffset = offsetof(Dispatcher, dict),
    .tp_weaklistoffset = offsetof(Dispatcher, weak),
};
