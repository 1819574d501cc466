# ./dev package amalgamation: the engine as one file and its public headers, which one compiler call builds, as an archive.
# shellcheck shell=bash disable=SC2154  # sourced by dev

amalgamation_most=$((320 << 10)) # bytes, packed

package_amalgamation() {
    local name folder=build/amalgamation cc
    name=fovea-$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)-amalgamation
    build_host_cli
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
            -D FOVEA="$PWD/build/release/fovea" -P tests/packaging/amalgamation.cmake
    done
    mv "$folder/$name.tar.gz" "$dist/"
}
