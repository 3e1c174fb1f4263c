/* A stand-in of the driver's libnvidia-ml.so.1 for the linker: only its name matters. */
__attribute__((visibility("default"))) int nvmlInit_v2(void)
{
    return 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
}
