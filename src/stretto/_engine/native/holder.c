/* What an array holds: a NumPy face, a device face, a type. The twin in Python: `xla/array.py`. */

#include "native.h"

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

PyTypeObject HolderType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "stretto._engine.native._native.Holder",
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
