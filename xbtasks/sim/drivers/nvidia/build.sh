# build.sh SOCKET OUT: compiles the driver's libraries and nvidia-smi. Runs in the folder of the sources.
#
# SOCKET is the node's, as the programs see it. -Bsymbolic: a preload library that exports the same names must
# not get between a library and itself.
set -eu

socket="${1:?socket}"
out="${2:?out}"
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -O2 -g0 -fPIC -fvisibility=hidden -Wall -Wextra -Werror"
library="-shared -Wl,-Bsymbolic -Wl,-z,defs -Wl,-z,now -Wl,-z,relro"

compile() {
    # shellcheck disable=SC2086 # flags are several words
    ${CC:-gcc} ${flags} -DSIM_NODE_SOCKET="\"${socket}\"" "$@"
}

mkdir -p "${out}"
compile ${library} -Wl,-soname,libcuda.so.1 -o "${out}/libcuda.so.1" common/*.c cuda/*.c
compile ${library} -Wl,-soname,libnvidia-ml.so.1 -o "${out}/libnvidia-ml.so.1" common/*.c nvml/*.c
# libdl by its own name: in the linker's eyes it is empty, on older systems it is where dlopen lives.
# The library is looked for beside the program too: there it lies on the simulated host itself.
compile -pie -nostartfiles -Wl,-rpath,'$ORIGIN' -o "${out}/nvidia-smi" smi/*.c -Wl,--no-as-needed -l:libdl.so.2
