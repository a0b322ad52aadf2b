/* The module: its types, its functions, and the strings that they use. */

#include "native.h"

#define REVISION 11 /* of what Python calls here: `native/__init__.py` takes no other */

Strings strings;
World world;

static PyObject *
attach_eager(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"array", "placed", "absent", "state", "eager", "quiet", "ndarray",
                            "asarray", NULL};
    World given;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$O!O!O!OOOOO", names, &PyType_Type, &given.array,
                                     &PyList_Type, &given.placed, &PyType_Type, &given.absent,
                                     &given.state, &given.eager, &given.quiet, &given.ndarray,
                                     &given.asarray)) {
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)given.array, &HolderType)) {
        PyErr_SetString(PyExc_TypeError, "attach_eager: array must be a subclass of Holder");
        return NULL;
    }
    if (world.array != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "attach_eager: attached already");
        return NULL;
    }
    world.array = Py_NewRef(given.array);
    world.placed = Py_NewRef(given.placed);
    world.absent = Py_NewRef(given.absent);
    world.state = Py_NewRef(given.state);
    world.eager = Py_NewRef(given.eager);
    world.quiet = Py_NewRef(given.quiet);
    world.ndarray = Py_NewRef(given.ndarray);
    world.asarray = Py_NewRef(given.asarray);
    Py_RETURN_NONE;
}

static PyObject *
attach_jit(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"settings", "apart", "leaf_of", "as_array", NULL};
    World given;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$OO!OO", names, &given.settings, &PyDict_Type,
                                     &given.apart, &given.leaf_of, &given.as_array)) {
        return NULL;
    }
    if (world.array == NULL || world.settings != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "attach_jit: expected once, after attach_eager");
        return NULL;
    }
    world.settings = Py_NewRef(given.settings);
    world.apart = Py_NewRef(given.apart);
    world.leaf_of = Py_NewRef(given.leaf_of);
    world.as_array = Py_NewRef(given.as_array);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"attach_eager", (PyCFunction)(void (*)(void))attach_eager, METH_VARARGS | METH_KEYWORDS,
     "Say what eager calls go by: the class of arrays, the interpreter at rest, and their like."},
    {"attach_jit", (PyCFunction)(void (*)(void))attach_jit, METH_VARARGS | METH_KEYWORDS,
     "Say what jitted calls go by as well: the settings, and what takes their arguments apart."},
    {"running", running, METH_NOARGS,
     "Count the threads that are in a compiled program that a record led to."},
    {"unfinished", unfinished, METH_O,
     "List the device faces that must be waited for in a plain tree of arrays, or give None."},
    {NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stretto._engine.native._native",
    .m_doc = "The hot paths of small calls, in C.",
    .m_size = -1,
    .m_methods = functions,
};

static int
intern_strings(void)
{
    struct {
        PyObject **string;
        const char *text;
    } texts[] = {
        {&strings.interpreter, "interpreter"},
        {&strings.key, "key"},
        {&strings.run, "run"},
        {&strings.to_host, "to_host"},
        {&strings.to_buffer, "to_buffer"},
        {&strings.general, "_general"},
        {&strings.consume, "consume_with_handlers"},
        {&strings.dtype, "dtype"},
        {&strings.astype, "astype"},
        {&strings.sharding, "_sharding"},
        {&strings.fields, "_fields"},
        {&strings.name, "__name__"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        *texts[i].string = PyUnicode_InternFromString(texts[i].text);
        if (*texts[i].string == NULL) {
            return -1;
        }
    }
    return 0;
}

PyMODINIT_FUNC
PyInit__native(void)
{
    PyTypeObject *types[] = {&HolderType,    &QuietType,      &GuardType,     &EagerRecordType,
                             &EagerCallType, &CallRecordType, &DispatcherType};
    PyObject *made = intern_strings() < 0 ? NULL : PyModule_Create(&module);
    for (size_t i = 0; made != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (PyModule_AddType(made, types[i]) < 0) {
            Py_CLEAR(made);
        }
    }
    if (made != NULL && PyModule_AddIntConstant(made, "REVISION", REVISION) < 0) {
        Py_CLEAR(made);
    }
    return made;
}
