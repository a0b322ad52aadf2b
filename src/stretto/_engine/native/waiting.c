/* Waiting for a tree of results. The twin in Python: `api/sharding/placement.py`. */

#include "native.h"

/* `unfinished(tree)`: the device faces of those arrays that have no NumPy face, as a list; None where
   the tree is not one of arrays in plain containers, or the buffer of one is absent. */
PyObject *
unfinished(PyObject *module, PyObject *tree)
{
    if (world.array == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "unfinished: call attach_eager first");
        return NULL;
    }
    PyObject *list = PyList_New(0); /* first: from here on, no Python code runs */
    if (list == NULL) {
        return NULL;
    }
    Walk w;
    walk_begin(&w, 1);
    int plain = walk(&w, tree, 0) == 0;
    for (Py_ssize_t i = 0; plain && i < w.nleaves; i++) {
        Holder *leaf = (Holder *)w.leaves[i];
        if (leaf->host != NULL && leaf->host != Py_None) {
            continue;
        }
        PyObject *buffer = leaf->buffer;
        if (buffer == NULL || buffer == Py_None
            || PyObject_TypeCheck(buffer, (PyTypeObject *)world.absent)) {
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
