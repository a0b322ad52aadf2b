/* The eager way of operators and primitives: of types in the table by NumPy, else in general.

   The table has, by function and then by the type of each operand in turn (a Python number's is its
   class), a record: what computes the result, and of which type that is. `eager/table.py` fills it;
   whatever it has not goes to `general`, in Python, which may enter it. */

#include "native.h"

/* EagerRecord: what computes the result for operands of these types. ----------------------------- */

typedef struct {
    PyObject_HEAD
    PyObject *function; /* of NumPy arrays, or of one and a Python number */
    PyObject *type;     /* of the result */
    PyObject *dtype;    /* of the result; None where what NumPy returns has it for certain */
    long long least, most; /* between these NumPy takes a Python integer as an element */
} EagerRecord;

static PyObject *
record_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"function", "type", "dtype", "least", "most", NULL};
    PyObject *function, *type, *dtype = Py_None;
    long long least = 0, most = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OLL", names, &function, &type, &dtype,
                                     &least, &most)) {
        return NULL;
    }
    EagerRecord *self = (EagerRecord *)cls->tp_alloc(cls, 0);
    if (self != NULL) {
        self->function = Py_NewRef(function);
        self->type = Py_NewRef(type);
        self->dtype = Py_NewRef(dtype);
        self->least = least;
        self->most = most;
    }
    return (PyObject *)self;
}

static void
record_dealloc(EagerRecord *self)
{
    Py_XDECREF(self->function);
    Py_XDECREF(self->type);
    Py_XDECREF(self->dtype);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef record_members[] = {
    {"function", T_OBJECT_EX, offsetof(EagerRecord, function), READONLY, NULL},
    {"type", T_OBJECT_EX, offsetof(EagerRecord, type), READONLY, NULL},
    {"dtype", T_OBJECT_EX, offsetof(EagerRecord, dtype), READONLY, NULL},
    {"least", T_LONGLONG, offsetof(EagerRecord, least), READONLY, NULL},
    {"most", T_LONGLONG, offsetof(EagerRecord, most), READONLY, NULL},
    {NULL},
};

PyTypeObject EagerRecordType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.EagerRecord",
    .tp_doc = "What computes the result of an operation for operands of certain types.",
    .tp_basicsize = sizeof(EagerRecord),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = record_new,
    .tp_dealloc = (destructor)record_dealloc,
    .tp_members = record_members,
};

/* EagerCall: an operator, or `process`, by the table or in general. ------------------------------ */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *table;   /* records: those of the operator, or for `process` by primitive */
    PyObject *general; /* takes any operands */
    PyObject *name;
    int reflected; /* whether the first argument is the right operand */
} EagerCall;

#define MOST_OPERANDS 8

/* Give what the table knows an operand by, a new reference; NULL where it knows no such operand. */
static inline PyObject *
key_of(PyObject *operand)
{
    if ((PyObject *)Py_TYPE(operand) == world.array) {
        return Py_XNewRef(((Holder *)operand)->type);
    }
    return PyFloat_CheckExact(operand) || PyLong_CheckExact(operand)
               ? Py_NewRef((PyObject *)Py_TYPE(operand))
               : NULL;
}

/* Say whether this is a record by which NumPy takes the operand, if it is a Python integer, as an
   element: 1, 0, or -1 with an error. */
static inline int
fits(PyObject *row, PyObject *operand)
{
    EagerRecord *record = (EagerRecord *)row;
    if (!Py_IS_TYPE(row, &EagerRecordType)) {
        return 0;
    }
    if (!PyLong_CheckExact(operand)) {
        return 1;
    }
    int far;
    long long value = PyLong_AsLongLongAndOverflow(operand, &far);
    if (value == -1 && !far && PyErr_Occurred()) {
        return -1;
    }
    return !far && record->least <= value && value <= record->most;
}

/* Go from a row to what it has for an operand: 1 with a new reference, 0 for the general way, -1 with
   an error. */
static inline int
descend(PyObject *row, PyObject *operand, PyObject **next)
{
    PyObject *key = PyDict_CheckExact(row) ? key_of(operand) : NULL;
    *next = NULL;
    if (key == NULL) {
        return 0;
    }
    int found = item_of(row, key, next);
    Py_DECREF(key);
    return found;
}

/* Give what NumPy is called with for an operand: the array's, made where it is not there, or the
   number; a new reference. */
static inline PyObject *
host_of(PyObject *operand)
{
    if ((PyObject *)Py_TYPE(operand) != world.array) {
        return Py_NewRef(operand);
    }
    PyObject *host = ((Holder *)operand)->host;
    return host != NULL && host != Py_None ? Py_NewRef(host)
                                           : PyObject_CallMethodNoArgs(operand, strings.to_host);
}

/* Give what NumPy computes as an array of the dtype that it is to have. */
static Py_ALWAYS_INLINE inline PyObject *
compute(EagerRecord *record, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *stack[MOST_OPERANDS + 2], *made = NULL; /* the first is for who is called */
    Py_ssize_t have = 0;
    stack[1] = record->function;
    while (have < n) {
        PyObject *host = host_of(operands[have]);
        if (host == NULL) {
            break;
        }
        stack[2 + have++] = host;
    }
    PyObject *run = have == n ? PyObject_GetAttr(world.quiet, strings.run) : NULL;
    if (run != NULL) {
        made = PyObject_Vectorcall(run, stack + 1, (n + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        Py_DECREF(run);
    }
    while (have > 0) {
        Py_DECREF(stack[2 + --have]);
    }
    if (made != NULL && (PyObject *)Py_TYPE(made) != world.ndarray) {
        Py_SETREF(made, PyObject_CallOneArg(world.asarray, made));
    }
    if (made == NULL || record->dtype == Py_None) {
        return made;
    }
    PyObject *dtype = PyObject_GetAttr(made, strings.dtype);
    if (dtype == NULL) {
        Py_CLEAR(made);
    }
    else if (dtype != record->dtype) {
        Py_SETREF(made, PyObject_CallMethodOneArg(made, strings.astype, record->dtype));
    }
    Py_XDECREF(dtype);
    return made;
}

/* Give the result by a record, of which the reference is taken. */
static Py_ALWAYS_INLINE inline PyObject *
result_by(EagerRecord *record, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *made = compute(record, operands, n), *result = NULL;
    if (made != NULL) {
        result = holder_make((PyTypeObject *)world.array, made, record->type, Py_None);
        Py_DECREF(made);
    }
    Py_DECREF(record);
    return result;
}

/* An operator of two operands; by `reflected`, the method of the right one. */
static PyObject *
call_binary(EagerCall *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) == 2 && kwnames == NULL
        && (PyObject *)Py_TYPE(args[0]) == world.array) {
        PyObject *operands[2] = {args[self->reflected], args[!self->reflected]};
        PyObject *row, *record;
        int found = at_rest();
        if (found == 1) {
            found = descend(self->table, operands[0], &row);
        }
        if (found == 1) {
            found = descend(row, operands[1], &record);
            Py_DECREF(row);
        }
        if (found == 1) {
            found = fits(record, args[1]);
            if (found == 1) {
                return result_by((EagerRecord *)record, operands, 2);
            }
            Py_DECREF(record);
        }
        if (found < 0) {
            return NULL;
        }
    }
    return PyObject_Vectorcall(self->general, args, nargsf, kwnames);
}

/* The eager interpreter's `process(interpreter, primitive, operands)`. */
static PyObject *
call_process(EagerCall *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (PyVectorcall_NARGS(nargsf) == 3 && kwnames == NULL && PyTuple_CheckExact(args[2])
        && PyTuple_GET_SIZE(args[2]) <= MOST_OPERANDS) {
        PyObject *const *operands = ((PyTupleObject *)args[2])->ob_item;
        Py_ssize_t n = PyTuple_GET_SIZE(args[2]);
        PyObject *row, *next;
        int found = item_of(self->table, args[1], &row);
        for (Py_ssize_t i = 0; found == 1 && i < n; i++) {
            found = descend(row, operands[i], &next);
            Py_DECREF(row);
            row = next;
        }
        if (found == 1) {
            if (Py_IS_TYPE(row, &EagerRecordType)) {
                return result_by((EagerRecord *)row, operands, n);
            }
            Py_DECREF(row); /* records of operations with more operands */
        }
        if (found < 0) {
            return NULL;
        }
    }
    return PyObject_Vectorcall(self->general, args, nargsf, kwnames);
}

static PyObject *
call_new(PyTypeObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"general", "table", "by_primitive", "reflected", NULL};
    PyObject *general, *table;
    int by_primitive = 0, reflected = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO!|pp", names, &general, &PyDict_Type, &table,
                                     &by_primitive, &reflected)) {
        return NULL;
    }
    if (world.array == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "EagerCall: call attach_eager first");
        return NULL;
    }
    PyObject *name = PyObject_GetAttr(general, strings.name);
    if (name == NULL) {
        return NULL;
    }
    EagerCall *self = (EagerCall *)cls->tp_alloc(cls, 0);
    if (self == NULL) {
        Py_DECREF(name);
        return NULL;
    }
    self->vectorcall = (vectorcallfunc)(by_primitive ? call_process : call_binary);
    self->table = Py_NewRef(table);
    self->general = Py_NewRef(general);
    self->name = name;
    self->reflected = reflected;
    return (PyObject *)self;
}

static void
call_dealloc(EagerCall *self)
{
    Py_XDECREF(self->table);
    Py_XDECREF(self->general);
    Py_XDECREF(self->name);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *
call_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(self) : PyMethod_New(self, instance);
}

static PyMemberDef call_members[] = {
    {"__name__", T_OBJECT, offsetof(EagerCall, name), READONLY, NULL},
    {"__qualname__", T_OBJECT, offsetof(EagerCall, name), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(EagerCall, general), READONLY, NULL},
    {NULL},
};

PyTypeObject EagerCallType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.EagerCall",
    .tp_doc = "An operation on arrays: at rest, of types in the table, by NumPy; else in general.",
    .tp_basicsize = sizeof(EagerCall),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(EagerCall, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = call_new,
    .tp_dealloc = (destructor)call_dealloc,
    .tp_descr_get = call_get,
    .tp_members = call_members,
};
