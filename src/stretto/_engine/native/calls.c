/* Calls of other functions: without NumPy's warnings, and with what they raise kept.
   The twins in Python: `core/errors.py` and `xla/callbacks.py`. */

#include "native.h"

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

PyTypeObject QuietType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.Quiet",
    .tp_doc = "Calls a function, with its arguments, in a context.",
    .tp_basicsize = sizeof(Quiet),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Quiet, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = quiet_new,
    .tp_dealloc = (destructor)quiet_dealloc,
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

PyTypeObject GuardType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.Guard",
    .tp_doc = "Calls a function, and puts what it raises, but the expected, into a list.",
    .tp_basicsize = sizeof(Guard),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Guard, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = guard_new,
    .tp_dealloc = (destructor)guard_dealloc,
};
