# build.sh SOCKET OUT: compiles the driver's libraries and npu-smi, and the toolkit. Runs in the folder of the
# sources.
#
# SOCKET is the node's, as the programs see it. The driver lies as it does on a host: lib64/driver, dcmi, npu-smi;
# the toolkit as in an image: toolkit/<kind>/lib64 and python/site-packages. There are two kinds of it, see below.
set -eu

socket="${1:?socket}"
out="${2:?out}"
node="../nvidia/common"
flags="-std=c11 -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -O2 -g0 -fPIC -fvisibility=hidden -Wall -Wextra -Werror"
library="-shared -Wl,-z,now -Wl,-z,relro"
driver="${out}/lib64/driver"

compile() {
    # shellcheck disable=SC2086 # flags are several words
    gcc ${flags} -DSIM_NODE_SOCKET="\"${socket}\"" -I"${node}" -Icommon -Ihal "$@"
}

mkdir -p "${driver}" "${out}/lib64/common" "${out}/dcmi"
compile ${library} -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,libdcmi.so -o "${driver}/libdcmi.so" \
    "${node}/node.c" common/*.c dcmi/*.c
compile ${library} -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,libascend_hal.so -o "${driver}/libascend_hal.so" \
    "${node}/node.c" common/*.c hal/*.c
cp "${driver}/libdcmi.so" "${out}/dcmi/libdcmi.so"
compile -pie -o "${out}/npu-smi" "${node}/node.c" common/*.c smi/*.c
