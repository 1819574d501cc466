# ./dev package amalgamation: the engine as one file and its public headers, which one compiler call builds, as an archive; and
# Meson's wrap of it.
# shellcheck shell=bash disable=SC2154  # sourced by dev

amalgamation_most=$((448 << 10)) # bytes, packed

# try_meson FOLDER NAME: FOLDER/fovea.wrap, and somebody's program by Meson with it, if this machine has Meson.
try_meson() {
    local user=$1/user
    sed "s/@NAME@/$2/g; s/@HASH@/$(sha256sum "$1/$2.tar.gz" | cut -d ' ' -f 1)/" packaging/meson/fovea.wrap.in >"$1/fovea.wrap"
    command -v meson >/dev/null || { say 'without Meson' && return; }
    say 'a program by Meson'
    mkdir -p "$user/subprojects/packagecache"
    cp "$1/fovea.wrap" "$user/subprojects/"
    cp "$1/$2.tar.gz" "$user/subprojects/packagecache/"
    cp tests/consumers/c/main.c "$user/"
    printf '%s\n' "project('user', 'c')" "executable('app', 'main.c', dependencies: dependency('fovea'))" >"$user/meson.build"
    meson setup "$user/build" "$user" >"$user/setup.log" || fail "meson: $user/setup.log"
    meson compile -C "$user/build" >&2
    "$user/build/app" >&2
}

package_amalgamation() {
    local name folder=build/amalgamation cc fovea
    # shellcheck source=/dev/null
    source packaging/archives.sh
    name=fovea-$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)-amalgamation
    fovea=$(host_cli)
    for twice in "$folder" "$folder-again"; do
        rm -rf "$twice"
        python3 -B packaging/amalgamation.py . "$twice/$name"
        cp LICENSE examples/complete.c "$twice/$name/"
        pack_folder "$twice" "$name"
    done
    hold_to_same "$folder/$name.tar.gz" "$folder-again/$name.tar.gz" "$amalgamation_most"
    for cc in gcc clang; do
        command -v "$cc" >/dev/null || continue
        say "$cc: one call"
        cmake -D SOURCE="$PWD" -D SCRATCH="$PWD/$folder-$cc" -D FOLDER="$PWD/$folder/$name" -D CC="$cc" -D CXX="${cc/%gcc/g}++" \
            -D FOVEA="$PWD/$fovea" -P tests/packaging/amalgamation.cmake
    done
    try_meson "$folder" "$name"
    mv "$folder/$name.tar.gz" "$folder/fovea.wrap" "$dist/"
}
