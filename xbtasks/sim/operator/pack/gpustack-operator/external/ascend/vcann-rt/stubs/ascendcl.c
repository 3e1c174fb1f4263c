/* A stand-in of the toolkit's libascendcl.so for the linker. Like the real one it leaves a function of the
 * driver undefined, which no library of the toolkit image has. */
int halGetChipInfo(unsigned int device, void *info);

__attribute__((visibility("default"))) const char *aclrtGetSocName(void)
{
    return halGetChipInfo(0, (void *)0) == 0 ? "" : (const char *)0;
}
