#include "module.h"

#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    CUcontext context;
    char *text;
    CUfunction functions;
    CUmodule next;
};

static CUmodule modules;

enum { THREAD_NANOSECONDS = 30000 };

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

static int blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Notes every ".entry NAME" of the text; tells whether there is memory for it. */
static int find_kernels(CUmodule module)
{
    for (const char *at = strstr(module->text, ".entry"); at != NULL; at = strstr(at, ".entry")) {
        CUfunction function;
        size_t length = 0;

        at += strlen(".entry");
        while (blank(*at))
            at++;
        while (is_name(at[length]) && length + 1 < sizeof function->name)
            length++;
        function = calloc(1, sizeof *function);
        if (function == NULL)
            return 0;
        memcpy(function->name, at, length);
        function->module = module;
        function->next = module->functions;
        module->functions = function;
    }
    return 1;
}

static void drop(CUmodule module)
{
    CUfunction next;

    for (CUfunction function = module->functions; function != NULL; function = next) {
        next = function->next;
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
    fresh->text = strdup(image);
    if (fresh->text == NULL || !find_kernels(fresh)) {
        drop(fresh);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    cuda_lock();
    fresh->next = modules;
    modules = fresh;
    cuda_unlock();
    *module = fresh;
    return CUDA_SUCCESS;
}

CUDA_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options, void **values)
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

uint64_t kernel_thread_time(CUfunction function, void **parameters, const struct sim_card *card)
{
    (void)function;
    (void)parameters;
    (void)card;
    return THREAD_NANOSECONDS;
}
