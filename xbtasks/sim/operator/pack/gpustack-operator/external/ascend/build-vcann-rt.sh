# build-vcann-rt.sh <source> <out> <toolkit> <commit>: builds <out>/lib/libvruntime.so and
# <out>/tools/enpu-monitor.
#
# Expects CC, STRIP and CFLAGS from toolchain.sh. dcmi belongs to the host's driver and the C and ACL libraries
# to the toolkit, so the products are linked with stand-ins of them.
set -eux

source="${1:?source}"
out="${2:?out}"
toolkit="${3:?toolkit}"
commit="${4:?commit}"
work="$(mktemp -d)"

# Commits from 37f5ece on open the runtime when they need the chip's name; earlier ones ask ACL, and link it.
case "${commit}" in
    4d7e4b1*) acl="-DACL_LINKED" ;;
    *) acl="" ;;
esac

for library in ascendcl c_sec dcmi; do
    ${CC} ${CFLAGS} -I"${source}" -shared -Wl,-soname,"lib${library}.so" \
        -o "${work}/lib${library}.so" "${source}/stubs/${library}.c"
done

build() {
    ${CC} ${CFLAGS} ${acl} -DVRUNTIME_BUILD="\"${toolkit} ${commit}\"" -I"${source}" -Wl,-z,now -Wl,-z,relro "$@"
}
common="${source}/config.c ${source}/dcmi.c ${source}/log.c ${source}/log_queue.c ${source}/soc.c ${source}/vnpu.c"
libraries="-L${work} -Wl,--as-needed -ldcmi -lc_sec -lascendcl"

build -shared -Wl,-soname,libvruntime.so -o "${work}/libvruntime.so" ${common} \
    "${source}/compute.c" "${source}/compute_hooks.S" "${source}/device.c" "${source}/lock.c" "${source}/memory.c" \
    "${source}/quota.c" "${source}/runtime.c" "${source}/schedule.c" "${source}/shared.c" "${source}/slice.c" \
    ${libraries}

# libascendcl.so itself needs the driver's libraries, which the toolkit image doesn't have: an executable links
# only if symbols that shared libraries leave undefined are let pass.
build -pie -Wl,--allow-shlib-undefined -o "${work}/enpu-monitor" ${common} \
    "${source}/monitor.c" ${libraries}

${STRIP} "${work}/libvruntime.so" "${work}/enpu-monitor"
mkdir -p "${out}/lib" "${out}/tools"
install -m 0644 "${work}/libvruntime.so" "${out}/lib/libvruntime.so"
install -m 0755 "${work}/enpu-monitor" "${out}/tools/enpu-monitor"
rm -rf "${work}"
ls -l "${out}/lib/libvruntime.so" "${out}/tools/enpu-monitor"
