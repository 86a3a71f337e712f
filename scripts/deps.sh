#!/usr/bin/env bash
# deps.sh: installs what is missing, and only that: scripts/deps.sh demo|test|check|package|image|redis|all (all: demo, test and check)
# Looks for the tools and libraries themselves, so it is quick and quiet when everything is there, however it came there.
set -eu

want=${1:-all}
case $want in demo | test | check | package | image | redis | all) ;; *) echo "usage: scripts/deps.sh demo|test|check|package|image|redis|all" >&2; exit 2 ;; esac

missing=()
need() { # need PACKAGES COMMAND...: the command fails when the packages are missing
    local packages=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=($packages)
}
tool() { need "$1" command -v "$2"; }
lib() { need "$1" pkg-config --exists "$2"; }
websockets_on_libuv() { compgen -G "$(pkg-config --variable=libdir libwebsockets)/libwebsockets-evlib_uv.so" || compgen -G '/usr/lib/*/libwebsockets-evlib_uv.so'; }
node_18() { node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)'; }
header() { echo "#include <$1>" | gcc -E -x c - ; }

# what builds and checks the packages and the image; what the Dockerfile's own build needs, it installs itself
packaging() {
    tool debootstrap debootstrap
    tool iproute2 ip
    tool util-linux unshare
    if [ "$want" = package ]; then
        tool debhelper dh
        tool dpkg-dev dpkg-buildpackage
        tool lintian lintian
    else
        tool buildah buildah
    fi
}

find_missing() {
    missing=()
    if [ "$want" = image ]; then packaging; return; fi
    if [ "$want" = redis ]; then tool redis-server redis-server; return; fi
    tool gcc gcc
    need libc6-dev header stdio.h
    tool make make
    tool pkg-config pkg-config
    tool protobuf-c-compiler protoc-c
    lib libuv1-dev libuv
    lib libwebsockets-dev libwebsockets
    need libwebsockets-evlib-uv websockets_on_libuv
    lib libprotobuf-c-dev libprotobuf-c
    lib libinih-dev inih
    lib libssl-dev libssl
    lib liblzma-dev liblzma
    if [ "$want" = package ]; then packaging; return; fi
    [ "$want" = demo ] && return
    lib libcmocka-dev cmocka
    tool protobuf-compiler protoc
    tool openssl openssl
    tool python3 /usr/bin/python3
    need python3-protobuf /usr/bin/python3 -c 'import google.protobuf'
    need nodejs node_18
    tool npm npm
    [ "$want" = test ] && return
    tool clang clang
    tool clang-tidy clang-tidy
    tool clang-format clang-format
    need libclang-rt-14-dev clang_sanitizes
    tool valgrind valgrind
    tool binutils readelf
    tool git git
    [ "$(uname -m)" = x86_64 ] || return 0
    tool gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross test -e /usr/aarch64-linux-gnu/include/stdio.h
    tool qemu-user-static qemu-aarch64-static
}
clang_sanitizes() { [ -e "$(clang -print-file-name=libclang_rt.asan-"$(uname -m)".a)" ] || [ -e "$(clang -print-runtime-dir)/libclang_rt.asan.a" ]; }

find_missing
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "deps: please install with your package manager what Debian calls: ${missing[*]}" >&2
    exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "deps: missing: ${missing[*]}" >&2
        echo "deps: neither root nor sudo here; as root run: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    sudo=(sudo)
fi
echo "deps: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
[ "$want" != redis ] || export RUNLEVEL=1 # no service is started for a benchmark
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${sudo[@]}" apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >"$log" 2>&1; }
apt update -q || { echo "deps: apt-get update failed, trying with the lists that are there:" >&2; tail -n 3 "$log" >&2; }
if ! apt install -yq --no-install-recommends "${missing[@]}"; then
    tail -n 20 "$log" >&2
    echo "deps: could not install: ${missing[*]}" >&2
    exit 1
fi

asked=${missing[*]}
find_missing
if [ ${#missing[@]} -gt 0 ]; then
    echo "deps: still missing after installing $asked: ${missing[*]} (an older version may stand before it in PATH)" >&2
    exit 1
fi
