/* cuGetProcAddress: a function by its base name, in the version that a CUDA version has of it. */
#include <string.h>

#include "cuda.h"

enum { FOUND = 0, NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

#define ENTRY(base, function, version) {base, (void *)function, version},
static const struct {
    const char *base;
    void *function;
    int version;
} entries[] = {
#include "entries.def"
};
#undef ENTRY

CUDA_API CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags, int *status)
{
    int answer = NOT_FOUND;

    if (symbol == NULL || function == NULL || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        if (strcmp(entries[i].base, symbol) != 0)
            continue;
        if (entries[i].version <= version)
            *function = entries[i].function;
        answer = *function == NULL ? VERSION_NOT_SUFFICIENT : FOUND;
    }
    if (status != NULL)
        *status = answer;
    return *function == NULL && status == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUDA_API CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
