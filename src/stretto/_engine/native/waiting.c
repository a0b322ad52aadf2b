/* Waiting for a tree of results. The twin in Python: `api/waiting.py`. */

#include "native.h"

/* `unfinished(tree, array, absent, placed)`: the device faces of those arrays that have no NumPy
   face, as a list; None where the tree is not one of arrays in plain containers, or the buffer of
   one is absent. `placed` is a list, of the class of arrays with a sharding if there may be any. */
PyObject *
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
