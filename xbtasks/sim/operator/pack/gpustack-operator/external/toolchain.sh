# Exports CC, STRIP and CFLAGS for the platform that is built for. To be sourced; TARGETARCH is BuildKit's.
case "${TARGETARCH}" in
    amd64) triplet=x86_64-linux-gnu ;;
    arm64) triplet=aarch64-linux-gnu ;;
    *)
        echo "toolchain: no compiler for '${TARGETARCH}'" >&2
        exit 1
        ;;
esac
export CC="${triplet}-gcc"
export STRIP="${triplet}-strip"
export CFLAGS="-std=c11 -O2 -g0 -fPIC -fvisibility=hidden -Wall -Wextra -Werror"
