/* What an extension module needs of CPython's stable ABI (PEP 384), which is the same for every Python 3. Declared
 * here, so that Python's headers aren't needed. */
#ifndef SIM_PYTHON_H
#define SIM_PYTHON_H

#include <stddef.h>

typedef struct {
    ptrdiff_t references;
    void *type;
} PyObject;

typedef PyObject *(*PyCFunction)(PyObject *module, PyObject *arguments);

typedef struct {
    const char *name;
    PyCFunction function;
    int flags;
    const char *doc;
} PyMethodDef;

typedef struct {
    PyObject base;
    PyObject *(*init)(void);
    ptrdiff_t index;
    PyObject *copy;
    const char *name;
    const char *doc;
    ptrdiff_t size;
    PyMethodDef *methods;
    void *slots, *traverse, *clear, *free;
} PyModuleDef;

enum { METH_VARARGS = 1, PYTHON_ABI_VERSION = 3 };

PyObject *PyModule_Create2(PyModuleDef *definition, int version);
int PyModule_AddObject(PyObject *module, const char *name, PyObject *value);
PyObject *PyImport_GetModuleDict(void);
int PyDict_SetItemString(PyObject *dictionary, const char *key, PyObject *value);
int PyArg_ParseTuple(PyObject *arguments, const char *format, ...);
PyObject *Py_BuildValue(const char *format, ...);

#endif
