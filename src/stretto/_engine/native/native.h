/* What the files of the extension share: strings, the array, and the walk through trees.

   Each type has a twin in Python that passes the same tests: `xla/array.py`, `core/errors.py`,
   `xla/callbacks.py`, `eager/interpreter.py` with `numpy/methods.py`, and `api/jit/dispatch.py`; so
   has `unfinished`, in `api/sharding/placement.py`. `native/__init__.py` says which are used.
   Nothing here decides anything: whatever is not the common case goes to the general way, in Python.

   Two rules hold throughout. Whatever is used after a call that can run Python code (a method, an
   allocation that starts a collection, the release of a last reference) is held by a reference of
   its own until then. And no exception is cleared but the one by which a question is asked: what
   sends a call the general way is asked beforehand, so an error that comes out of the short way, an
   interrupt above all, is the call's. */

#ifndef STRETTO_NATIVE_H
#define STRETTO_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <string.h>

#ifdef Py_GIL_DISABLED
#error "free-threaded builds of Python are not supported: nothing here locks what threads share"
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* Names of attributes and methods, interned when the module is made. */
typedef struct {
    PyObject *interpreter, *key, *run, *to_host, *to_buffer, *general, *consume, *dtype, *astype,
        *sharding, *fields, *name;
} Strings;

extern Strings strings;

extern PyTypeObject HolderType, QuietType, GuardType, EagerRecordType, EagerCallType,
    CallRecordType, DispatcherType;

/* module.c: what all short ways go by, each set once, by name. */

typedef struct {
    /* by attach_eager */
    PyObject *array;    /* the class of concrete arrays, a subclass of Holder */
    PyObject *placed;   /* a list: the class of arrays with a sharding, once there may be any */
    PyObject *absent;   /* the class of what stands where a buffer was, or will be */
    PyObject *state;    /* its `interpreter` is the current one of the thread */
    PyObject *eager;    /* the interpreter at rest */
    PyObject *quiet;    /* its `run` calls a function without NumPy's warnings */
    PyObject *ndarray;  /* the class of NumPy arrays */
    PyObject *asarray;  /* makes a NumPy array of a NumPy scalar */
    /* by attach_jit */
    PyObject *settings; /* its `key` stands for the settings of the thread */
    PyObject *apart;    /* a dictionary: what takes the objects of a class apart */
    PyObject *leaf_of;  /* an array for a number, the type of a NumPy array, None for all else */
    PyObject *as_array; /* makes an array of a NumPy array */
} World;

extern World world;

/* holder.c: what an array holds. */

typedef struct {
    PyObject_HEAD
    PyObject *host;   /* a NumPy array, or None */
    PyObject *buffer; /* a device buffer, what stands in its place, or None */
    PyObject *type;
} Holder;

static inline PyObject *
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

/* Say whether this thread traces nothing: 1, 0, or -1 with an error. */
static inline int
at_rest(void)
{
    PyObject *interpreter = PyObject_GetAttr(world.state, strings.interpreter);
    if (interpreter == NULL) {
        return -1;
    }
    Py_DECREF(interpreter);
    return interpreter == world.eager;
}

/* Look up an item of a dictionary: 1 with a new reference, 0 for none, -1 with an error. */
static inline int
item_of(PyObject *dict, PyObject *key, PyObject **item)
{
    *item = Py_XNewRef(PyDict_GetItemWithError(dict, key));
    return *item != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

/* walk.c: what a call's signature is made of, as words. */

#define HERE 256 /* words or leaves that need no memory from the heap */

typedef struct {
    int plain; /* whether only plain containers and arrays are gone into */
    const void **words;
    PyObject **leaves; /* held: the arguments may let go of them while Python code runs */
    PyObject *values;  /* a list of what is compared by value, or NULL */
    Py_ssize_t nwords, nleaves, wordroom, leafroom;
    const void *words_here[HERE];
    PyObject *leaves_here[HERE];
} Walk;

/* Functions that return an int give 0, or -1 where the call goes the general way, perhaps with an
   error. Functions of Python run on the way, so a container is held meanwhile, and what it holds may
   change: then the leaves and their types are still those that were met. */

void walk_begin(Walk *w, int plain);
void walk_end(Walk *w);
int walk(Walk *w, PyObject *tree, int depth);
int walk_held(Walk *w, PyObject *child, int depth); /* the same, and holds the child */
int walk_begins(Walk *w, PyObject *container, Py_ssize_t size);
int walk_word(Walk *w, const void *word);
int walk_name(Walk *w, PyObject *name);
int walk_value(Walk *w, PyObject *value);

/* jit.c: calls of compiled programs. */

PyObject *running(PyObject *module, PyObject *nothing);

/* waiting.c: results that are still being computed. */

PyObject *unfinished(PyObject *module, PyObject *tree);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
