/* The module: its types, its functions, and the strings that they use. */

#include "native.h"

#define REVISION 10 /* of what Python calls here: `native/__init__.py` takes no other */

Strings strings;

static PyMethodDef functions[] = {
    {"attach_eager", (PyCFunction)(void (*)(void))eager_attach, METH_VARARGS | METH_KEYWORDS,
     "Say what eager calls go by: the class of arrays, the interpreter at rest, the table."},
    {"running", running, METH_NOARGS,
     "Count the threads that are in a compiled program that a record led to."},
    {"unfinished", (PyCFunction)(void (*)(void))unfinished, METH_FASTCALL,
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
