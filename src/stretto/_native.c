/* The hot paths of small calls, in C: what an array holds, operators at rest, the jitted call.

   Each type here has a twin in Python that passes the same tests: `xla/holder.py`,
   `numpy/methods.py` and `api/jit/dispatch.py`; so has `unfinished`, in `api/waiting.py`.
   `core/native.py` says which are used. Nothing here decides anything: whatever is not the common
   case goes to the general way, in Python.

   Two rules hold throughout. Whatever is used after a call that can run Python code (a method, an
   allocation that starts a collection, the release of a last reference) is held by a reference of
   its own until then. And no exception is cleared: what sends a call the general way is asked
   beforehand, so an error that comes out of the short way, an interrupt above all, is the call's. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <string.h>

#define REVISION 8 /* of what Python calls here: `core/native.py` takes no other */

static PyObject *str_interpreter, *str_key, *str_run, *str_to_host, *str_to_buffer, *str_general,
    *str_consume, *str_dtype, *str_astype, *str_sharding, *str_fields;

/* Holder: a NumPy face, a device face, a type. ------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    PyObject *host;   /* a NumPy array, or None */
    PyObject *buffer; /* a device buffer, what stands in its place, or None */
    PyObject *type;
} Holder;

static PyTypeObject HolderType;

static PyObject *
holder_make(PyTypeObject *cls, PyObject *host, PyObject *type, PyObject *buffer)
{
    Holder *self = (Holder *)cls->tp_alloc(cls, 0); /* the caller holds the three */
    if (self != NULL) {
        self->host = Py_NewRef(host);
        self->buffer = Py_NewRef(buffer);
        self->type = Py_NewRef(type);
    }
    return (PyObject *)self;
}

static PyObject *
holder_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"host", "type", "buffer", NULL};
    PyObject *host, *type, *buffer = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O", names, &host, &type, &buffer)) {
        return NULL;
    }
    return holder_make(cls, host, type, buffer);
}

static int
holder_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return 0; /* all is done by holder_new */
}

static int
holder_traverse(Holder *self, visitproc visit, void *arg)
{
    Py_VISIT(self->host);
    Py_VISIT(self->buffer);
    return 0;
}

static int
holder_clear(Holder *self)
{
    Py_CLEAR(self->host);
    Py_CLEAR(self->buffer);
    return 0;
}

static void
holder_dealloc(Holder *self)
{
    PyObject_GC_UnTrack(self);
    holder_clear(self);
    Py_CLEAR(self->type);
    Py_TYPE(self)->tp_free(self);
}

/* T_OBJECT_EX, as slots: CPython specialises the reading of no other member. */
static PyMemberDef holder_members[] = {
    {"_host", T_OBJECT_EX, offsetof(Holder, host), 0, "The NumPy face, or None."},
    {"_buffer", T_OBJECT_EX, offsetof(Holder, buffer), 0, "The device face, or None."},
    {"type", T_OBJECT_EX, offsetof(Holder, type), 0, "Shape, dtype and weakness."},
    {NULL},
};

static PyTypeObject HolderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Holder",
    .tp_doc = "What an array holds: a NumPy face, a device face, or both, and a type.",
    .tp_basicsize = sizeof(Holder),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = holder_new,
    .tp_init = holder_init,
    .tp_dealloc = (destructor)holder_dealloc,
    .tp_traverse = (traverseproc)holder_traverse,
    .tp_clear = (inquiry)holder_clear,
    .tp_members = holder_members,
};

/* Whether this thread traces nothing: 1, 0, or -1 with an error. */
static int
at_rest(PyObject *state, PyObject *eager)
{
    PyObject *interpreter = PyObject_GetAttr(state, str_interpreter);
    if (interpreter == NULL) {
        return -1;
    }
    Py_DECREF(interpreter);
    return interpreter == eager;
}

/* A face of the array, made by a method where it is not there; a new reference. */
static PyObject *
face(Holder *array, PyObject *there, PyObject *method)
{
    if (there != NULL && there != Py_None) {
        return Py_NewRef(there);
    }
    return PyObject_CallMethodNoArgs((PyObject *)array, method);
}

/* An item of a dictionary: 1 with a new reference, 0 where there is none, -1 with an error. */
static int
item_of(PyObject *dict, PyObject *key, PyObject **item)
{
    *item = Py_XNewRef(PyDict_GetItemWithError(dict, key));
    return *item != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* Quiet: calls a function in a context where NumPy gives no warnings. ---------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *context; /* one of contextvars, of one thread */
    PyObject *nested;  /* takes the call while the thread is in that context already */
    int busy;
} Quiet;

static PyObject *
quiet_call(Quiet *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n == 0) {
        PyErr_SetString(PyExc_TypeError, "Quiet: expected a function");
        return NULL;
    }
    if (self->busy) {
        return PyObject_Vectorcall(self->nested, args, n, kwnames);
    }
    if (PyContext_Enter(self->context) < 0) {
        return NULL;
    }
    self->busy = 1;
    PyObject *result = PyObject_Vectorcall(args[0], args + 1, n - 1, kwnames);
    self->busy = 0;
    if (PyContext_Exit(self->context) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
quiet_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"context", "nested", NULL};
    PyObject *context, *nested;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O", names, &PyContext_Type, &context,
                                     &nested)) {
        return NULL;
    }
    Quiet *self = (Quiet *)cls->tp_alloc(cls, 0);
    if (self != NULL) {
        self->vectorcall = (vectorcallfunc)quiet_call;
        self->context = Py_NewRef(context);
        self->nested = Py_NewRef(nested);
    }
    return (PyObject *)self;
}

static void
quiet_dealloc(Quiet *self)
{
    Py_XDECREF(self->context);
    Py_XDECREF(self->nested);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject QuietType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Quiet",
    .tp_doc = "Calls a function, with its arguments, in a context.",
    .tp_basicsize = sizeof(Quiet),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Quiet, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = quiet_new,
    .tp_dealloc = (destructor)quiet_dealloc,
};

/* Operator: a binary operator at rest, where the table has the types; else `general`. ----------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *array;    /* the class of concrete arrays */
    PyObject *state;    /* its `interpreter` is the current one of the thread */
    PyObject *eager;    /* the interpreter at rest */
    PyObject *quiet;    /* its `run` calls a function without NumPy's warnings */
    PyObject *ndarray;  /* the class of NumPy arrays */
    PyObject *asarray;  /* makes a NumPy array of a NumPy scalar */
    PyObject *function; /* of two NumPy arrays, or one and a Python number */
    PyObject *table;    /* by the type of self, by that of the other (a number's: its class), that
                           of the result; by `int`, also between which numbers it holds */
    PyObject *general;  /* takes any operands */
    PyObject *name;
    int reflected; /* whether self is the right operand */
} Operator;

/* The type of the result of `x op y` for a Python integer, whose record is (least, most, type):
   where it lies between the two, NumPy takes it as an element of x. */
static int
operator_integer(PyObject *record, PyObject *y, PyObject **out)
{
    int far;
    long long value = PyLong_AsLongLongAndOverflow(y, &far);
    if (far || !PyTuple_CheckExact(record) || PyTuple_GET_SIZE(record) != 3) {
        return 0;
    }
    long long least = PyLong_AsLongLong(PyTuple_GET_ITEM(record, 0));
    long long most = PyLong_AsLongLong(PyTuple_GET_ITEM(record, 1));
    if ((least == -1 || most == -1) && PyErr_Occurred()) {
        return -1;
    }
    if (value < least || value > most) {
        return 0;
    }
    *out = Py_NewRef(PyTuple_GET_ITEM(record, 2));
    return 1;
}

/* The type of the result: 1 with a new reference, 0 for the general way, -1 with an error. */
static int
operator_out(Operator *self, Holder *x, PyObject *y, PyObject **out)
{
    int array = (PyObject *)Py_TYPE(y) == self->array, integer = PyLong_CheckExact(y);
    PyObject *type = x->type, *row, *record;
    PyObject *other = array ? ((Holder *)y)->type : (PyObject *)Py_TYPE(y);
    if (type == NULL || other == NULL || !(array || integer || PyFloat_CheckExact(y))) {
        return 0;
    }
    Py_INCREF(type);
    Py_INCREF(other);
    int found = item_of(self->table, type, &row);
    Py_DECREF(type);
    if (found == 1) {
        found = PyDict_CheckExact(row) ? item_of(row, other, &record) : 0;
        Py_DECREF(row);
        if (found == 1) {
            if (integer) {
                found = operator_integer(record, y, out);
                Py_DECREF(record);
            }
            else {
                *out = record;
            }
        }
    }
    Py_DECREF(other);
    return found;
}

static PyObject *
operator_short(Operator *self, Holder *x, PyObject *y, PyObject *out)
{
    PyObject *one = face(x, x->host, str_to_host), *other = NULL, *run = NULL, *made = NULL;
    if (one != NULL) {
        other = (PyObject *)Py_TYPE(y) == self->array
                    ? face((Holder *)y, ((Holder *)y)->host, str_to_host)
                    : Py_NewRef(y);
    }
    if (other != NULL) {
        run = PyObject_GetAttr(self->quiet, str_run);
    }
    if (run != NULL) {
        PyObject *args[4] = {NULL, self->function, self->reflected ? other : one,
                             self->reflected ? one : other};
        made = PyObject_Vectorcall(run, args + 1, 3 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    Py_XDECREF(one);
    Py_XDECREF(other);
    Py_XDECREF(run);
    if (made != NULL && (PyObject *)Py_TYPE(made) != self->ndarray) {
        Py_SETREF(made, PyObject_CallOneArg(self->asarray, made));
    }
    if (made == NULL) {
        return NULL;
    }
    PyObject *result = holder_make((PyTypeObject *)self->array, made, out, Py_None);
    Py_DECREF(made);
    return result;
}

static PyObject *
operator_call(Operator *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) == 2 && kwnames == NULL
        && (PyObject *)Py_TYPE(args[0]) == self->array) {
        int rest = at_rest(self->state, self->eager);
        PyObject *out = NULL;
        int found = rest == 1 ? operator_out(self, (Holder *)args[0], args[1], &out) : rest;
        if (found < 0) {
            return NULL;
        }
        if (found == 1) {
            PyObject *result = operator_short(self, (Holder *)args[0], args[1], out);
            Py_DECREF(out);
            return result;
        }
    }
    return PyObject_Vectorcall(self->general, args, nargsf, kwnames);
}

static PyObject *
operator_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"array", "state", "eager", "quiet", "ndarray", "asarray", "function",
                            "table", "general", "name", "reflected", NULL};
    PyObject *array, *state, *eager, *quiet, *ndarray, *asarray, *function, *table, *general, *name;
    int reflected;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOO!OOp", names, &array, &state, &eager,
                                     &quiet, &ndarray, &asarray, &function, &PyDict_Type, &table,
                                     &general, &name, &reflected)) {
        return NULL;
    }
    if (!PyType_Check(array) || !PyType_IsSubtype((PyTypeObject *)array, &HolderType)) {
        PyErr_SetString(PyExc_TypeError, "Operator: array must be a subclass of Holder");
        return NULL;
    }
    Operator *self = (Operator *)cls->tp_alloc(cls, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = (vectorcallfunc)operator_call;
    self->array = Py_NewRef(array);
    self->state = Py_NewRef(state);
    self->eager = Py_NewRef(eager);
    self->quiet = Py_NewRef(quiet);
    self->ndarray = Py_NewRef(ndarray);
    self->asarray = Py_NewRef(asarray);
    self->function = Py_NewRef(function);
    self->table = Py_NewRef(table);
    self->reflected = reflected;
    self->general = Py_NewRef(general);
    self->name = Py_NewRef(name);
    return (PyObject *)self;
}

static void
operator_dealloc(Operator *self)
{
    Py_XDECREF(self->array);
    Py_XDECREF(self->state);
    Py_XDECREF(self->eager);
    Py_XDECREF(self->quiet);
    Py_XDECREF(self->ndarray);
    Py_XDECREF(self->asarray);
    Py_XDECREF(self->function);
    Py_XDECREF(self->table);
    Py_XDECREF(self->general);
    Py_XDECREF(self->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
operator_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyMemberDef operator_members[] = {
    {"__name__", T_OBJECT, offsetof(Operator, name), READONLY, NULL},
    {"__qualname__", T_OBJECT, offsetof(Operator, name), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Operator, general), READONLY, NULL},
    {NULL},
};

static PyTypeObject OperatorType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Operator",
    .tp_doc = "A binary operator: at rest, of types in its table, by NumPy; else in general.",
    .tp_basicsize = sizeof(Operator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Operator, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = operator_new,
    .tp_dealloc = (destructor)operator_dealloc,
    .tp_descr_get = operator_get,
    .tp_members = operator_members,
};

/* Process: the eager interpreter's `process(primitive, args)`, where the table has the types. ---- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *array;   /* the class of concrete arrays */
    PyObject *quiet;   /* as in Operator */
    PyObject *ndarray;
    PyObject *asarray;
    PyObject *table;   /* by primitive, by the type of the first argument, by that of the second …:
                          (reference rule, type of the result, its dtype) */
    PyObject *general; /* of (interpreter, primitive, args) */
} Process;

#define MOST_OPERANDS 8

/* The record for these arguments: 1 with a new reference, 0 for the general way, -1 with an error. */
static int
process_record(Process *self, PyObject *primitive, PyObject *args, PyObject **record)
{
    PyObject *row;
    int found = item_of(self->table, primitive, &row);
    for (Py_ssize_t i = 0; found == 1 && i < PyTuple_GET_SIZE(args); i++) {
        PyObject *x = PyTuple_GET_ITEM(args, i), *next;
        if ((PyObject *)Py_TYPE(x) != self->array || ((Holder *)x)->type == NULL
            || !PyDict_CheckExact(row)) {
            Py_DECREF(row);
            return 0;
        }
        PyObject *type = Py_NewRef(((Holder *)x)->type);
        found = item_of(row, type, &next);
        Py_DECREF(type);
        Py_SETREF(row, next);
    }
    if (found != 1) {
        return found;
    }
    if (!PyTuple_CheckExact(row) || PyTuple_GET_SIZE(row) != 3) {
        Py_DECREF(row);
        return 0;
    }
    *record = row;
    return 1;
}

static PyObject *
process_short(Process *self, PyObject *record, PyObject *args)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args), have = 0;
    PyObject *stack[MOST_OPERANDS + 2] = {NULL, PyTuple_GET_ITEM(record, 0)}, *made = NULL;
    while (have < n) {
        Holder *x = (Holder *)PyTuple_GET_ITEM(args, have);
        PyObject *host = face(x, x->host, str_to_host);
        if (host == NULL) {
            break;
        }
        stack[2 + have++] = host;
    }
    PyObject *run = have == n ? PyObject_GetAttr(self->quiet, str_run) : NULL;
    if (run != NULL) {
        made = PyObject_Vectorcall(run, stack + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(run);
    }
    while (have > 0) {
        Py_DECREF(stack[2 + --have]);
    }
    if (made != NULL && (PyObject *)Py_TYPE(made) != self->ndarray) {
        Py_SETREF(made, PyObject_CallOneArg(self->asarray, made));
    }
    PyObject *dtype = made == NULL ? NULL : PyObject_GetAttr(made, str_dtype);
    if (dtype != NULL && dtype != PyTuple_GET_ITEM(record, 2)) {
        Py_SETREF(made, PyObject_CallMethodOneArg(made, str_astype, PyTuple_GET_ITEM(record, 2)));
    }
    if (dtype == NULL || made == NULL) {
        Py_XDECREF(dtype);
        Py_XDECREF(made);
        return NULL;
    }
    Py_DECREF(dtype);
    PyObject *result = holder_make((PyTypeObject *)self->array, made, PyTuple_GET_ITEM(record, 1),
                                   Py_None);
    Py_DECREF(made);
    return result;
}

static PyObject *
process_call(Process *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) == 3 && kwnames == NULL && PyTuple_CheckExact(args[2])
        && PyTuple_GET_SIZE(args[2]) <= MOST_OPERANDS) {
        PyObject *record;
        int found = process_record(self, args[1], args[2], &record);
        if (found < 0) {
            return NULL;
        }
        if (found == 1) {
            PyObject *result = process_short(self, record, args[2]);
            Py_DECREF(record);
            return result;
        }
    }
    return PyObject_Vectorcall(self->general, args, nargsf, kwnames);
}

static PyObject *
process_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"array", "quiet", "ndarray", "asarray", "table", "general", NULL};
    PyObject *array, *quiet, *ndarray, *asarray, *table, *general;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO!O", names, &array, &quiet, &ndarray,
                                     &asarray, &PyDict_Type, &table, &general)) {
        return NULL;
    }
    if (!PyType_Check(array) || !PyType_IsSubtype((PyTypeObject *)array, &HolderType)) {
        PyErr_SetString(PyExc_TypeError, "Process: array must be a subclass of Holder");
        return NULL;
    }
    Process *self = (Process *)cls->tp_alloc(cls, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = (vectorcallfunc)process_call;
    self->array = Py_NewRef(array);
    self->quiet = Py_NewRef(quiet);
    self->ndarray = Py_NewRef(ndarray);
    self->asarray = Py_NewRef(asarray);
    self->table = Py_NewRef(table);
    self->general = Py_NewRef(general);
    return (PyObject *)self;
}

static void
process_dealloc(Process *self)
{
    Py_XDECREF(self->array);
    Py_XDECREF(self->quiet);
    Py_XDECREF(self->ndarray);
    Py_XDECREF(self->asarray);
    Py_XDECREF(self->table);
    Py_XDECREF(self->general);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef process_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Process, general), READONLY, NULL},
    {NULL},
};

static PyTypeObject ProcessType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Process",
    .tp_doc = "Evaluates an operation on arrays: of types in its table by NumPy, else in general.",
    .tp_basicsize = sizeof(Process),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(Process, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = process_new,
    .tp_dealloc = (destructor)process_dealloc,
    .tp_descr_get = operator_get,
    .tp_members = process_members,
};

/* Dispatcher: a call looked up by its arguments' fingerprint. ----------------------------------

   The fingerprint of a call: the addresses of all that its signature is made of (the key of the
   settings, the types of arrays, their shardings if they have any, the classes and lengths of
   containers, the names in dictionaries, interned), in the order in which a walk through the
   arguments meets them. All of them live for ever or are kept by the record, so equal fingerprints
   are equal signatures. What is compared by value, static arguments and the static data of nodes,
   stands beside the addresses: the fingerprint is then a tuple of the addresses and these. */

typedef struct {
    PyObject *array;   /* the class of concrete arrays */
    PyObject *placed;  /* a list: the class of arrays with a sharding, once there may be any */
    PyObject *apart;   /* a dictionary: what takes the objects of a class apart; NULL for no such */
    PyObject *leaf_of; /* an array for a number, the type of a NumPy array, None for all else */
} Kinds;

typedef struct {
    PyObject_HEAD
    Kinds kinds;
    PyObject *state;
    PyObject *eager;
    PyObject *settings; /* its `key` stands for the settings of the thread */
    PyObject *absent;   /* the class of what stands where a buffer was, or will be */
    PyObject *as_array; /* of a NumPy array */
    PyObject *numbers, *names; /* tuples: which arguments are static, by position and by name */
    PyObject *table;    /* records, by fingerprint */
    PyObject *last;     /* the fingerprint found last, and its record */
    PyObject *record;
    PyObject *dict;
    PyObject *weak;
} Dispatcher;

#define HERE 256 /* words or leaves that need no memory from the heap */
#define DEEPEST 64

typedef struct {
    Kinds kinds; /* borrowed */
    const void **words;
    PyObject **leaves; /* held: the arguments may let go of them while Python code runs */
    PyObject *values;  /* a list of what is compared by value, or NULL */
    Py_ssize_t nwords, nleaves, wordroom, leafroom;
    const void *words_here[HERE];
    PyObject *leaves_here[HERE];
} Walk;

static void
walk_begin(Walk *w, Kinds kinds)
{
    w->kinds = kinds;
    w->words = w->words_here;
    w->leaves = w->leaves_here;
    w->values = NULL;
    w->nwords = w->nleaves = 0;
    w->wordroom = w->leafroom = HERE;
}

static void
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

static int
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

static int
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

static int
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
    PyObject *slot = PyDict_GetItemWithError(cls->tp_dict, str_sharding);
    if (slot == NULL || !Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
        PyErr_Clear(); /* a string that is hashed already: there is none */
        return NULL;
    }
    return *(PyObject **)((char *)leaf + ((PyMemberDescrObject *)slot)->d_member->offset);
}

/* The walk: 0, or -1 where the call goes the general way, perhaps with an error. Functions of Python
   run on the way, so a container is held meanwhile, and what it holds may change: then the leaves
   and their types are still those that were met. */
static int walk(Walk *w, PyObject *tree, int depth);

static int
walk_begins(Walk *w, PyObject *container, Py_ssize_t size)
{
    return walk_word(w, Py_TYPE(container)) < 0 ? -1 : walk_word(w, (void *)size);
}

static int
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

/* Whether this is a named tuple: 1, 0, or -1 with an error. */
static int
is_named(PyObject *tuple)
{
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(tuple), str_fields);
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
    PyObject *known = PyObject_CallOneArg(w->kinds.leaf_of, leaf);
    if (known == NULL) {
        return -1;
    }
    int walked = -1;
    if ((PyObject *)Py_TYPE(known) == w->kinds.array) {
        walked = walk_leaf(w, known, ((Holder *)known)->type);
    }
    else if (known != Py_None) {
        walked = walk_leaf(w, leaf, known); /* types live for ever */
    }
    Py_DECREF(known);
    return walked;
}

static int
walk(Walk *w, PyObject *tree, int depth)
{
    PyTypeObject *cls = Py_TYPE(tree);
    if ((PyObject *)cls == w->kinds.array) {
        return walk_leaf(w, tree, ((Holder *)tree)->type);
    }
    if (depth > DEEPEST) {
        return -1;
    }
    if (PyList_GET_SIZE(w->kinds.placed) > 0
        && (PyObject *)cls == PyList_GET_ITEM(w->kinds.placed, 0)) {
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
    if (w->kinds.apart == NULL) {
        return -1;
    }
    PyObject *apart = PyDict_GetItemWithError(w->kinds.apart, (PyObject *)cls);
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

/* An argument that is static: compared by its class and value. */
static int
walk_static(Walk *w, PyObject *value)
{
    return walk_word(w, Py_TYPE(value)) < 0 ? -1 : walk_value(w, value);
}

/* Whether the argument at this position of `count` is static: 1, 0, or -1 with an error. */
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
    PyObject *key = PyObject_GetAttr(self->settings, str_key);
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
look_up(Dispatcher *self, Walk *w, PyObject **record)
{
    if (self->last != NULL && w->values == NULL
        && PyBytes_GET_SIZE(self->last) == w->nwords * (Py_ssize_t)sizeof(void *)
        && memcmp(PyBytes_AS_STRING(self->last), w->words, PyBytes_GET_SIZE(self->last)) == 0) {
        *record = Py_NewRef(self->record);
        return 1;
    }
    PyObject *fingerprint = fingerprint_of(w);
    if (fingerprint == NULL) {
        return -1;
    }
    int found = item_of(self->table, fingerprint, record);
    if (found < 0 && w->values != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear(); /* a value is not hashable: the general way says which */
        found = 0;
    }
    if (found == 1 && w->values == NULL) {
        PyObject *last = self->last, *before = self->record;
        self->last = Py_NewRef(fingerprint);
        self->record = Py_NewRef(*record);
        Py_XDECREF(last);
        Py_XDECREF(before);
    }
    Py_DECREF(fingerprint);
    return found;
}

/* A record: (interpret, run, handlers, places, constants, out_types, unflatten, tidy).
   `interpret` takes the list of arrays and gives those of the results; where it is None,
   `run(buffers).consume_with_handlers(handlers)` gives their buffers. `places`: which of the leaves
   are passed, in which order (bytes of Py_ssize_t). `constants`: the arrays that are passed after
   them.
   `unflatten` is None for one result that is no container. `tidy()` lets go of what the runtime
   keeps of past calls; it is called now and then. */
enum { INTERPRET, RUN, HANDLERS, PLACES, CONSTANTS, OUT_TYPES, UNFLATTEN, TIDY, FIELDS };

#define UNTIDY 64 /* so many runs are kept at most */

/* The place among the leaves of the i-th that is passed; -1 where the walk has no such leaf. */
static Py_ssize_t
place_at(Walk *w, PyObject *record, Py_ssize_t i)
{
    Py_ssize_t place;
    memcpy(&place, PyBytes_AS_STRING(PyTuple_GET_ITEM(record, PLACES)) + i * sizeof(Py_ssize_t),
           sizeof(Py_ssize_t));
    return place < 0 || place >= w->nleaves ? -1 : place;
}

static Py_ssize_t
places_in(PyObject *record)
{
    return PyBytes_GET_SIZE(PyTuple_GET_ITEM(record, PLACES)) / sizeof(Py_ssize_t);
}

/* Array `i` of those that are passed; held by the walk or by the record. */
static Holder *
array_at(Walk *w, PyObject *record, Py_ssize_t i)
{
    Py_ssize_t n = places_in(record);
    if (i >= n) {
        return (Holder *)PyTuple_GET_ITEM(PyTuple_GET_ITEM(record, CONSTANTS), i - n);
    }
    Py_ssize_t place = place_at(w, record, i);
    return place < 0 ? NULL : (Holder *)w->leaves[place];
}

/* Have arrays stand for the NumPy arrays among the leaves that are passed: 1, 0 for the general
   way, -1 with an error. */
static int
as_arrays(Dispatcher *self, Walk *w, PyObject *record)
{
    Py_ssize_t n = places_in(record);
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t place = place_at(w, record, i);
        if (place < 0 || PyObject_TypeCheck(w->leaves[place], &HolderType)) {
            continue;
        }
        PyObject *made = PyObject_CallOneArg(self->as_array, w->leaves[place]);
        if (made == NULL) {
            return -1;
        }
        if ((PyObject *)Py_TYPE(made) != self->kinds.array) {
            Py_DECREF(made);
            return 0;
        }
        Py_SETREF(w->leaves[place], made);
    }
    return 1;
}

/* What is passed, arrays or their buffers, as a list: 1, 0 for the general way, -1 with an error.
   No Python code runs while the list is not whole, so that nobody sees it so. */
static int
passed(Dispatcher *self, Walk *w, PyObject *record, int buffers, PyObject **list)
{
    Py_ssize_t n = places_in(record) + PyTuple_GET_SIZE(PyTuple_GET_ITEM(record, CONSTANTS));
    for (Py_ssize_t i = 0; i < n; i++) {
        Holder *array = array_at(w, record, i);
        if (array == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "a record has a place that the call has not");
            return -1;
        }
        if (buffers && (array->buffer == NULL || array->buffer == Py_None)) {
            PyObject *made = PyObject_CallMethodNoArgs((PyObject *)array, str_to_buffer);
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
            || PyObject_TypeCheck(item, (PyTypeObject *)self->absent)) {
            Py_CLEAR(*list); /* the general way waits for it, or says to whom it was donated */
            return 0;
        }
        PyList_SET_ITEM(*list, i, Py_NewRef(item));
    }
    return 1;
}

/* Buffers to arrays, in place. */
static int
wrap(Dispatcher *self, PyObject *outs, PyObject *out_types)
{
    Py_ssize_t n = PyTuple_GET_SIZE(out_types);
    if (!PyList_CheckExact(outs) || PyList_GET_SIZE(outs) != n || n == 0) {
        PyErr_SetString(PyExc_RuntimeError, "an executable gave another number of results");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *buffer = Py_XNewRef(PyList_GetItem(outs, i));
        PyObject *made = buffer == NULL ? NULL
                                        : holder_make((PyTypeObject *)self->kinds.array, Py_None,
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
tidy(PyObject *record)
{
    static int runs = 0;
    if (++runs < UNTIDY) {
        return 0;
    }
    runs = 0;
    PyObject *none = PyObject_CallNoArgs(PyTuple_GET_ITEM(record, TIDY));
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
}

/* How many threads are in the runtime by way of a record; changed while the thread has the GIL. */
static int in_runtime = 0;

/* The results as a list of arrays: 1, 0 for the general way, -1 with an error. */
static int
results_of(Dispatcher *self, Walk *w, PyObject *record, PyObject **outs)
{
    PyObject *interpret = PyTuple_GET_ITEM(record, INTERPRET), *list;
    int whole = as_arrays(self, w, record);
    if (whole == 1) {
        whole = passed(self, w, record, interpret == Py_None, &list);
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
        PyObject *ran = PyObject_CallOneArg(PyTuple_GET_ITEM(record, RUN), list);
        in_runtime--;
        if (ran != NULL) {
            *outs = PyObject_CallMethodOneArg(ran, str_consume, PyTuple_GET_ITEM(record, HANDLERS));
            Py_DECREF(ran);
        }
        if (*outs != NULL && wrap(self, *outs, PyTuple_GET_ITEM(record, OUT_TYPES)) < 0) {
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

/* What the function gives, of the list of its results. */
static PyObject *
unflattened(PyObject *record, PyObject *outs)
{
    PyObject *unflatten = PyTuple_GET_ITEM(record, UNFLATTEN);
    return unflatten == Py_None ? Py_XNewRef(PyList_GetItem(outs, 0))
                                : PyObject_CallOneArg(unflatten, outs);
}

static PyObject *
dispatch(Dispatcher *self, PyObject *args, PyObject *kwargs)
{
    Walk w;
    PyObject *record = NULL, *outs = NULL;
    walk_begin(&w, self->kinds);
    int found = self->state == NULL || PyDict_GET_SIZE(self->table) == 0
                    ? 0
                    : at_rest(self->state, self->eager);
    if (found == 1) {
        found = walk_call(self, &w, args, kwargs);
    }
    if (found == 1) {
        found = look_up(self, &w, &record);
    }
    if (found == 1) {
        found = results_of(self, &w, record, &outs);
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
            result = PyObject_CallMethodObjArgs((PyObject *)self, str_general, args, named, NULL);
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
    walk_begin(&w, self->kinds);
    int found = self->settings == NULL ? 0 : walk_call(self, &w, args, kwargs);
    if (found >= 0) {
        result = found == 1 ? fingerprint_of(&w) : Py_NewRef(Py_None);
    }
    walk_end(&w);
    return result;
}

/* Whether all is of the kind that the fields of a record are. */
static int
is_record(PyObject *record)
{
    if (PyTuple_GET_SIZE(record) < FIELDS || !PyBytes_CheckExact(PyTuple_GET_ITEM(record, PLACES))
        || !PyTuple_CheckExact(PyTuple_GET_ITEM(record, CONSTANTS))
        || !PyTuple_CheckExact(PyTuple_GET_ITEM(record, OUT_TYPES))) {
        return 0;
    }
    PyObject *constants = PyTuple_GET_ITEM(record, CONSTANTS);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        if (!PyObject_TypeCheck(PyTuple_GET_ITEM(constants, i), &HolderType)) {
            return 0;
        }
    }
    return 1;
}

static PyObject *
dispatcher_remember(Dispatcher *self, PyObject *given)
{
    PyObject *fingerprint, *record;
    if (!PyArg_ParseTuple(given, "OO!", &fingerprint, &PyTuple_Type, &record)) {
        return NULL;
    }
    if (self->table == NULL || !is_record(record)) {
        PyErr_SetString(PyExc_TypeError, "remember: expected a record");
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
    PyObject *last = self->last, *record = self->record;
    self->last = self->record = NULL; /* both at once: Python code may run when either goes */
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
    PyObject *array, *state, *eager, *settings, *absent, *placed, *apart, *leaf_of, *as_array,
        *numbers, *names;
    if (!PyArg_ParseTuple(given, "O!OOOO!O!O!OOO!O!", &PyType_Type, &array, &state, &eager,
                          &settings, &PyType_Type, &absent, &PyList_Type, &placed, &PyDict_Type,
                          &apart, &leaf_of, &as_array, &PyTuple_Type, &numbers, &PyTuple_Type,
                          &names)) {
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)array, &HolderType)) {
        PyErr_SetString(PyExc_TypeError, "Dispatcher: array must be a subclass of Holder");
        return NULL;
    }
    if (self->kinds.array != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "Dispatcher: attached already");
        return NULL;
    }
    self->kinds.array = Py_NewRef(array);
    self->state = Py_NewRef(state);
    self->eager = Py_NewRef(eager);
    self->settings = Py_NewRef(settings);
    self->absent = Py_NewRef(absent);
    self->kinds.placed = Py_NewRef(placed);
    self->kinds.apart = Py_NewRef(apart);
    self->kinds.leaf_of = Py_NewRef(leaf_of);
    self->as_array = Py_NewRef(as_array);
    self->numbers = Py_NewRef(numbers);
    self->names = Py_NewRef(names);
    Py_RETURN_NONE;
}

static int
dispatcher_traverse(Dispatcher *self, visitproc visit, void *arg)
{
    Py_VISIT(self->kinds.array);
    Py_VISIT(self->state);
    Py_VISIT(self->eager);
    Py_VISIT(self->settings);
    Py_VISIT(self->absent);
    Py_VISIT(self->kinds.placed);
    Py_VISIT(self->kinds.apart);
    Py_VISIT(self->kinds.leaf_of);
    Py_VISIT(self->as_array);
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
    Py_CLEAR(self->kinds.array);
    Py_CLEAR(self->state);
    Py_CLEAR(self->eager);
    Py_CLEAR(self->settings);
    Py_CLEAR(self->absent);
    Py_CLEAR(self->kinds.placed);
    Py_CLEAR(self->kinds.apart);
    Py_CLEAR(self->kinds.leaf_of);
    Py_CLEAR(self->as_array);
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
     "Say what the class of arrays, the state, the interpreter at rest and the settings are."},
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

static PyTypeObject DispatcherType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Dispatcher",
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

/* Guard: calls a function, and keeps what it raises, but the expected. ---------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *expected; /* a class of exceptions that are not kept */
    PyObject *kept;     /* a list */
} Guard;

/* Put the exception that is set into a list, and leave it set. */
static void
keep_error(PyObject *list)
{
#if PY_VERSION_HEX >= 0x030c0000
    PyObject *error = PyErr_GetRaisedException();
    if (PyList_Append(list, error) < 0) {
        PyErr_Clear(); /* of the memory that keeping it would have taken: it is raised all the same */
    }
    PyErr_SetRaisedException(error);
#else
    PyObject *cls, *error, *traceback;
    PyErr_Fetch(&cls, &error, &traceback);
    PyErr_NormalizeException(&cls, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    if (PyList_Append(list, error) < 0) {
        PyErr_Clear(); /* as above */
    }
    PyErr_Restore(cls, error, traceback);
#endif
}

static PyObject *
guard_call(Guard *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *result = PyObject_Vectorcall(self->function, args, nargsf, kwnames);
    if (result == NULL && !PyErr_ExceptionMatches(self->expected)) {
        keep_error(self->kept);
    }
    return result;
}

static PyObject *
guard_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "expected", "kept", NULL};
    PyObject *function, *expected, *kept;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO!", names, &function, &expected,
                                     &PyList_Type, &kept)) {
        return NULL;
    }
    Guard *self = (Guard *)cls->tp_alloc(cls, 0);
    if (self != NULL) {
        self->vectorcall = (vectorcallfunc)guard_call;
        self->function = Py_NewRef(function);
        self->expected = Py_NewRef(expected);
        self->kept = Py_NewRef(kept);
    }
    return (PyObject *)self;
}

static void
guard_dealloc(Guard *self)
{
    Py_XDECREF(self->function);
    Py_XDECREF(self->expected);
    Py_XDECREF(self->kept);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject GuardType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._native.Guard",
    .tp_doc = "Calls a function, and puts what it raises, but the expected, into a list.",
    .tp_basicsize = sizeof(Guard),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Guard, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = guard_new,
    .tp_dealloc = (destructor)guard_dealloc,
};

/* Waiting for a tree of results. ---------------------------------------------------------------- */

/* `unfinished(tree, array, absent, placed)`: the device faces of those arrays that have no NumPy
   face, as a list; None where the tree is not one of arrays in plain containers, or the buffer of
   one is absent. `placed` is a list, of the class of arrays with a sharding if there may be any. */
static PyObject *
unfinished(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 4 || !PyType_Check(args[1]) || !PyType_Check(args[2])
        || !PyList_CheckExact(args[3])
        || !PyType_IsSubtype((PyTypeObject *)args[1], &HolderType)) {
        PyErr_SetString(PyExc_TypeError, "unfinished: expected a tree, a subclass of Holder, a "
                                         "class, and a list");
        return NULL;
    }
    PyObject *list = PyList_New(0); /* first: from here on, no Python code runs */
    if (list == NULL) {
        return NULL;
    }
    Walk w;
    walk_begin(&w, (Kinds){.array = args[1], .placed = args[3]});
    int plain = walk(&w, args[0], 0) == 0;
    for (Py_ssize_t i = 0; plain && i < w.nleaves; i++) {
        Holder *leaf = (Holder *)w.leaves[i];
        if (leaf->host != NULL && leaf->host != Py_None) {
            continue;
        }
        PyObject *buffer = leaf->buffer;
        if (buffer == NULL || buffer == Py_None
            || PyObject_TypeCheck(buffer, (PyTypeObject *)args[2])) {
            plain = 0;
        }
        else if (PyList_Append(list, buffer) < 0) {
            Py_CLEAR(list);
            break;
        }
    }
    walk_end(&w);
    if (!plain && list != NULL) {
        Py_SETREF(list, Py_NewRef(Py_None));
    }
    return list;
}

/* `running()`: how many threads have called a compiled program, which has not returned yet. */
static PyObject *
running(PyObject *module, PyObject *nothing)
{
    return PyLong_FromLong(in_runtime);
}

static PyMethodDef functions[] = {
    {"running", running, METH_NOARGS,
     "How many threads are in a compiled program that a record led to."},
    {"unfinished", (PyCFunction)(void (*)(void))unfinished, METH_FASTCALL,
     "The device faces that must be waited for in a plain tree of arrays, or None."},
    {NULL},
};

/* The module. ----------------------------------------------------------------------------------- */

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._native",
    .m_doc = "The hot paths of small calls, in C.",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC
PyInit__native(void)
{
    struct {
        PyObject **place;
        const char *text;
    } strings[] = {
        {&str_interpreter, "interpreter"},
        {&str_key, "key"},
        {&str_run, "run"},
        {&str_to_host, "to_host"},
        {&str_to_buffer, "to_buffer"},
        {&str_general, "_general"},
        {&str_consume, "consume_with_handlers"},
        {&str_dtype, "dtype"},
        {&str_astype, "astype"},
        {&str_sharding, "_sharding"},
        {&str_fields, "_fields"},
    };
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        *strings[i].place = PyUnicode_InternFromString(strings[i].text);
        if (*strings[i].place == NULL) {
            return NULL;
        }
    }
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddType(made, &HolderType) < 0
        || PyModule_AddType(made, &GuardType) < 0
        || PyModule_AddType(made, &QuietType) < 0
        || PyModule_AddType(made, &OperatorType) < 0
        || PyModule_AddType(made, &ProcessType) < 0
        || PyModule_AddType(made, &DispatcherType) < 0
        || PyModule_AddIntConstant(made, "REVISION", REVISION) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
