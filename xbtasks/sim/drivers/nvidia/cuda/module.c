#include "module.h"

#include <stdlib.h>
#include <string.h>

#include "ptxtext.h"

struct CUmod_st {
    CUcontext context;
    char *text;
    CUfunction functions;
    CUmodule next;
};

static CUmodule modules;

/* Reads every ".entry NAME" of the text. */
static CUresult find_kernels(CUmodule module)
{
    for (const char *at = strstr(module->text, ".entry"); at != NULL; at = strstr(at, ".entry")) {
        CUfunction function = calloc(1, sizeof *function);
        size_t length;

        if (function == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        function->next = module->functions;
        module->functions = function;
        at = ptx_skip_blanks(at + strlen(".entry"));
        length = ptx_name_length(at);
        if (length >= sizeof function->name)
            return CUDA_ERROR_INVALID_PTX;
        memcpy(function->name, at, length);
        function->code = ptx_read(module->text, function->name);
        if (function->code == NULL)
            return CUDA_ERROR_INVALID_PTX;
    }
    return CUDA_SUCCESS;
}

static void drop(CUmodule module)
{
    CUfunction next;

    for (CUfunction function = module->functions; function != NULL; function = next) {
        next = function->next;
        ptx_free(function->code);
        free(function);
    }
    free(module->text);
    free(module);
}

/* Only PTX: there is nobody here to run the code of a cubin. PTX begins with its version and its target. */
static CUresult check(const char *text)
{
    if (memcmp(text, "\177ELF", 4) == 0 || memcmp(text, "\x50\xed\x55\xba", 4) == 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (strstr(text, ".version") == NULL || strstr(text, ".target") == NULL)
        return CUDA_ERROR_INVALID_PTX;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result;
    CUcontext context = cuda_current(&result);
    CUmodule fresh;

    if (context == NULL)
        return result;
    if (module == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    result = check(image);
    if (result != CUDA_SUCCESS)
        return result;
    fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fresh->context = context;
    fresh->text = ptx_without_comments(image);
    result = fresh->text == NULL ? CUDA_ERROR_OUT_OF_MEMORY : find_kernels(fresh);
    if (result != CUDA_SUCCESS) {
        drop(fresh);
        return result;
    }
    cuda_lock();
    fresh->next = modules;
    modules = fresh;
    cuda_unlock();
    *module = fresh;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                                     void **values)
{
    (void)options; /* hints for the compiler */
    return count > 0 && values == NULL ? CUDA_ERROR_INVALID_VALUE : cuModuleLoadData(module, image);
}

CUDA_API CUresult cuModuleUnload(CUmodule module)
{
    CUresult result = cuda_ready();
    CUmodule *link;

    if (result != CUDA_SUCCESS)
        return result;
    cuda_lock();
    for (link = &modules; *link != NULL && *link != module;)
        link = &(*link)->next;
    if (*link == NULL) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else {
        *link = module->next;
        drop(module);
    }
    cuda_unlock();
    return result;
}

CUDA_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = cuda_ready();

    if (result != CUDA_SUCCESS)
        return result;
    if (function == NULL || module == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (CUfunction found = module->functions; found != NULL; found = found->next)
        if (strcmp(found->name, name) == 0) {
            *function = found;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

int kernel_exists(CUfunction function)
{
    int exists = 0;

    cuda_lock();
    for (CUmodule module = modules; module != NULL; module = module->next)
        for (CUfunction found = module->functions; found != NULL; found = found->next)
            exists |= found == function;
    cuda_unlock();
    return exists;
}

int kernel_takes(CUfunction function, void **parameters)
{
    return function->code->parameters == 0 || parameters != NULL;
}

/* What a kernel takes depends on its parameters alone, so it is found out once for each set of them. */
uint64_t kernel_cycles(CUfunction function, void **parameters, int clock_mhz)
{
    unsigned char values[sizeof function->values] = {0};
    const struct ptx *code = function->code;
    uint64_t cycles;

    for (int i = 0; i < code->parameters; i++)
        if (code->sizes[i] <= sizeof(uint64_t))
            memcpy(values + (size_t)i * sizeof(uint64_t), parameters[i], code->sizes[i]);
    cuda_lock();
    if (function->cycles == 0 || memcmp(values, function->values, sizeof values) != 0) {
        memcpy(function->values, values, sizeof values);
        function->cycles = ptx_cycles(code, parameters, clock_mhz);
    }
    cycles = function->cycles;
    cuda_unlock();
    return cycles;
}
