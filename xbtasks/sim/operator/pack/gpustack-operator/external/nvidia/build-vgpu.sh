# build-vgpu.sh <source> <out> <toolkit> <commit>: builds <out>/libvgpu.so.
#
# Expects CC and CFLAGS from toolchain.sh. The driver belongs to the host, so the library is linked
# with stand-ins of it. No symbol of theirs is used directly: with --as-needed (Debian's default) the linker
# would drop them from NEEDED, and a program that is preloaded without a driver would run unlimited.
set -eux

source="${1:?source}"
out="${2:?out}"
toolkit="${3:?toolkit}"
commit="${4:?commit}"
work="$(mktemp -d)"

${CC} ${CFLAGS} -shared -Wl,-soname,libcuda.so.1 -o "${work}/libcuda.so" "${source}/stubs/cuda.c"
${CC} ${CFLAGS} -shared -Wl,-soname,libnvidia-ml.so.1 -o "${work}/libnvidia-ml.so" "${source}/stubs/nvml.c"

${CC} ${CFLAGS} -DVGPU_BUILD="\"${toolkit} ${commit}\"" -I"${source}" -shared \
    -Wl,-soname,libvgpu.so -Wl,-z,now -Wl,-z,relro -Wl,-z,defs \
    -o "${work}/libvgpu.so" "${source}"/*.c \
    -L"${work}" -Wl,--no-as-needed -lcuda -lnvidia-ml

mkdir -p "${out}"
install -m 0644 "${work}/libvgpu.so" "${out}/libvgpu.so"
rm -rf "${work}"
ls -l "${out}/libvgpu.so"
