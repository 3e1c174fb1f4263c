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
    ${CC:-gcc} ${flags} -DSIM_NODE_SOCKET="\"${socket}\"" -I"${node}" -Icommon -Ihal "$@"
}

mkdir -p "${driver}" "${out}/lib64/common" "${out}/dcmi"
compile ${library} -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,libdcmi.so -o "${driver}/libdcmi.so" \
    "${node}/node.c" common/*.c dcmi/*.c
compile ${library} -Wl,-Bsymbolic -Wl,-z,defs -Wl,-soname,libascend_hal.so -o "${driver}/libascend_hal.so" \
    "${node}/node.c" common/*.c hal/*.c
cp "${driver}/libdcmi.so" "${out}/dcmi/libdcmi.so"
compile -pie -o "${out}/npu-smi" "${node}/node.c" common/*.c smi/*.c

# The toolkit leaves the driver's libascend_hal.so to the host. Its own libraries call each other through the PLT,
# so a preload library can get between them (CANN up to 9.1); in the merged kind ACL's allocation is part of the
# runtime, which is bound to itself (CANN 9.2 and later).
toolkit() {
    kind="$1"
    place="${out}/toolkit/${kind}"
    mkdir -p "${place}/lib64" "${place}/python/site-packages"
    compile ${library} -Wl,-z,defs -Wl,-soname,libc_sec.so -o "${place}/lib64/libc_sec.so" toolkit/c_sec/*.c
    if [ "${kind}" = merged ]; then
        runtime="toolkit/runtime/*.c toolkit/acl/*.c -Wl,-Bsymbolic"
        below="-lruntime"
    else
        runtime="toolkit/runtime/*.c"
        below="-lacl_rt_impl"
    fi
    # shellcheck disable=SC2086 # several words
    compile ${library} -Itoolkit/runtime -Wl,-z,defs -Wl,-soname,libruntime.so -o "${place}/lib64/libruntime.so" \
        ${runtime} -L"${driver}" -lascend_hal
    if [ "${kind}" != merged ]; then
        compile ${library} -Itoolkit/runtime -Wl,-soname,libacl_rt_impl.so -o "${place}/lib64/libacl_rt_impl.so" \
            toolkit/acl/*.c -L"${place}/lib64" -lruntime
    fi
    compile ${library} -Wl,-soname,libascendcl.so -o "${place}/lib64/libascendcl.so" toolkit/acl/forward.S \
        -L"${place}/lib64" "${below}"
    compile ${library} -o "${place}/python/site-packages/acl.so" toolkit/pyacl/*.c -L"${place}/lib64" -lascendcl
}

toolkit split
toolkit merged
