/* A stand-in of the driver's libcuda.so.1 for the linker: only its name matters. */
__attribute__((visibility("default"))) int cuInit(unsigned int flags)
{
    return flags == 0 ? 100 : 1; /* CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_VALUE */
}
