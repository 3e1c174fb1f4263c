/* pyACL: the module `acl` and its part `acl.rt`. A function returns its result and then the code, or the code alone;
 * addresses and handles are whole numbers. */
#include <dlfcn.h>

#include "acl_api.h"
#include "python.h"

typedef unsigned long long address;

#define FUNCTION(name) static PyObject *name(PyObject *module, PyObject *arguments)

/* Reads the arguments, or returns null with Python's error set. */
#define ARGUMENTS(...)                              \
    (void)module;                                   \
    if (!PyArg_ParseTuple(arguments, __VA_ARGS__))  \
    return NULL

FUNCTION(init)
{
    const char *config = NULL;

    ARGUMENTS("|z", &config);
    return Py_BuildValue("i", aclInit(config));
}

FUNCTION(finalize)
{
    ARGUMENTS("");
    return Py_BuildValue("i", aclFinalize());
}

FUNCTION(get_version)
{
    int32_t major = 0, minor = 0, patch = 0;
    int code;

    ARGUMENTS("");
    code = aclrtGetVersion(&major, &minor, &patch);
    return Py_BuildValue("iiii", major, minor, patch, code);
}

FUNCTION(get_soc_name)
{
    ARGUMENTS("");
    return Py_BuildValue("z", aclrtGetSocName());
}

/* A function that takes a whole number and returns a code. */
#define DEVICE_FUNCTION(name, call)                  \
    FUNCTION(name)                                   \
    {                                                \
        int device;                                  \
                                                     \
        ARGUMENTS("i", &device);                     \
        return Py_BuildValue("i", call(device));     \
    }
DEVICE_FUNCTION(set_device, aclrtSetDevice)
DEVICE_FUNCTION(reset_device, aclrtResetDevice)

FUNCTION(get_device)
{
    int32_t device = 0;
    int code;

    ARGUMENTS("");
    code = aclrtGetDevice(&device);
    return Py_BuildValue("ii", device, code);
}

FUNCTION(get_device_count)
{
    uint32_t count = 0;
    int code;

    ARGUMENTS("");
    code = aclrtGetDeviceCount(&count);
    return Py_BuildValue("Ii", count, code);
}

FUNCTION(synchronize_device)
{
    ARGUMENTS("");
    return Py_BuildValue("i", aclrtSynchronizeDevice());
}

FUNCTION(create_context)
{
    void *context = NULL;
    int device, code;

    ARGUMENTS("i", &device);
    code = aclrtCreateContext(&context, device);
    return Py_BuildValue("Ki", (address)(uintptr_t)context, code);
}

FUNCTION(create_stream)
{
    void *stream = NULL;
    int code;

    ARGUMENTS("");
    code = aclrtCreateStream(&stream);
    return Py_BuildValue("Ki", (address)(uintptr_t)stream, code);
}

/* A function that takes an address or a handle and returns a code. */
#define HANDLE_FUNCTION(name, call)                                     \
    FUNCTION(name)                                                      \
    {                                                                   \
        address handle;                                                 \
                                                                        \
        ARGUMENTS("K", &handle);                                        \
        return Py_BuildValue("i", call((void *)(uintptr_t)handle));     \
    }
HANDLE_FUNCTION(destroy_context, aclrtDestroyContext)
HANDLE_FUNCTION(destroy_stream, aclrtDestroyStream)
HANDLE_FUNCTION(synchronize_stream, aclrtSynchronizeStream)
HANDLE_FUNCTION(release, aclrtFree)
HANDLE_FUNCTION(free_host, aclrtFreeHost)

/* A function that takes a size and a policy and returns an address and a code. */
#define MALLOC_FUNCTION(name, call)                                     \
    FUNCTION(name)                                                      \
    {                                                                   \
        address size;                                                   \
        void *pointer = NULL;                                           \
        int policy, code;                                               \
                                                                        \
        ARGUMENTS("Ki", &size, &policy);                                \
        code = call(&pointer, size, policy);                            \
        return Py_BuildValue("Ki", (address)(uintptr_t)pointer, code);  \
    }
MALLOC_FUNCTION(allocate, aclrtMalloc)
MALLOC_FUNCTION(malloc_align32, aclrtMallocAlign32)
MALLOC_FUNCTION(malloc_cached, aclrtMallocCached)

/* The configuration is a dict; here it is empty. */
FUNCTION(malloc_with_cfg)
{
    address size;
    PyObject *configuration;
    void *pointer = NULL;
    int policy, code;

    ARGUMENTS("KiO", &size, &policy, &configuration);
    code = aclrtMallocWithCfg(&pointer, size, policy, NULL);
    return Py_BuildValue("Ki", (address)(uintptr_t)pointer, code);
}

/* The properties are a dict; here all memory is the device's. */
FUNCTION(malloc_physical)
{
    address size, flags;
    PyObject *properties;
    void *handle = NULL;
    int code;

    ARGUMENTS("KOK", &size, &properties, &flags);
    code = aclrtMallocPhysical(&handle, size, NULL, flags);
    return Py_BuildValue("Ki", (address)(uintptr_t)handle, code);
}

FUNCTION(malloc_host)
{
    address size;
    void *pointer = NULL;
    int code;

    ARGUMENTS("K", &size);
    code = aclrtMallocHost(&pointer, size);
    return Py_BuildValue("Ki", (address)(uintptr_t)pointer, code);
}

FUNCTION(get_mem_info)
{
    size_t available = 0, total = 0;
    int kind, code;

    ARGUMENTS("i", &kind);
    code = aclrtGetMemInfo(kind, &available, &total);
    return Py_BuildValue("KKi", (address)available, (address)total, code);
}

FUNCTION(copy)
{
    address target, capacity, source, count;
    int kind;

    ARGUMENTS("KKKKi", &target, &capacity, &source, &count, &kind);
    return Py_BuildValue("i", aclrtMemcpy((void *)(uintptr_t)target, capacity, (void *)(uintptr_t)source, count, kind));
}

FUNCTION(fill)
{
    address target, capacity, count;
    int value;

    ARGUMENTS("KKiK", &target, &capacity, &value, &count);
    return Py_BuildValue("i", aclrtMemset((void *)(uintptr_t)target, capacity, value, count));
}

#define METHOD(name, function) {name, function, METH_VARARGS, NULL}

static PyMethodDef acl_methods[] = {
    METHOD("init", init),
    METHOD("finalize", finalize),
    METHOD("get_soc_name", get_soc_name),
    {0},
};

static PyMethodDef rt_methods[] = {
    METHOD("get_version", get_version),
    METHOD("set_device", set_device),
    METHOD("reset_device", reset_device),
    METHOD("get_device", get_device),
    METHOD("get_device_count", get_device_count),
    METHOD("synchronize_device", synchronize_device),
    METHOD("create_context", create_context),
    METHOD("destroy_context", destroy_context),
    METHOD("create_stream", create_stream),
    METHOD("destroy_stream", destroy_stream),
    METHOD("synchronize_stream", synchronize_stream),
    METHOD("malloc", allocate),
    METHOD("malloc_align32", malloc_align32),
    METHOD("malloc_cached", malloc_cached),
    METHOD("malloc_with_cfg", malloc_with_cfg),
    METHOD("malloc_physical", malloc_physical),
    METHOD("free", release),
    METHOD("malloc_host", malloc_host),
    METHOD("free_host", free_host),
    METHOD("get_mem_info", get_mem_info),
    METHOD("memcpy", copy),
    METHOD("memset", fill),
    {0},
};

static PyModuleDef acl_module = {.base = {.references = 1}, .name = "acl", .size = -1, .methods = acl_methods};
static PyModuleDef rt_module = {.base = {.references = 1}, .name = "acl.rt", .size = -1, .methods = rt_methods};

/* Python loads a module for itself alone. A preload library finds the runtime behind its hooks only if that is open
 * to the whole process. */
static int open_to_all(void)
{
    return dlopen("libascendcl.so", RTLD_NOW | RTLD_GLOBAL) != NULL;
}

__attribute__((visibility("default"))) PyObject *PyInit_acl(void)
{
    PyObject *acl = open_to_all() ? PyModule_Create2(&acl_module, PYTHON_ABI_VERSION) : NULL;
    PyObject *rt = acl == NULL ? NULL : PyModule_Create2(&rt_module, PYTHON_ABI_VERSION);

    if (rt == NULL || PyDict_SetItemString(PyImport_GetModuleDict(), "acl.rt", rt) != 0)
        return NULL;
    return PyModule_AddObject(acl, "rt", rt) == 0 ? acl : NULL;
}
