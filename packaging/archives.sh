# ./dev package archives [TARGET...]: an archive of each target with the command line, libraries, headers, the files of CMake and
# pkg-config, documents and licences, which works wherever it is unpacked; and SHA256SUMS.
# shellcheck shell=bash disable=SC2154  # sourced by dev

archive_targets=(linux-x86_64 linux-aarch64 linux-armv7 linux-riscv64 windows-x86_64 wasm32-wasi)
archive_most=$((24 << 20)) # bytes

# make_archive PRESET NAME FOLDER: FOLDER/NAME, installed from a build in FOLDER-build, and FOLDER/NAME.tar.gz.
make_archive() {
    rm -rf "$3" "$3-build"
    mkdir "$3"
    configure "$3-build" --preset "$1" -D FOVEA_PORTABLE=ON -D FOVEA_INSTALL=ON -D FOVEA_WITHOUT= -D FOVEA_TESTS=OFF \
        -D FOVEA_EXAMPLES=OFF -D CMAKE_INSTALL_LIBDIR=lib ${FOVEA_ISAS+"-DFOVEA_ISAS=$FOVEA_ISAS"}  # else the preset's
    build "$3-build" >&2
    cmake --install "$3-build" --prefix "$3/$2" --strip >"$3/install.log"
    [[ -f $3/$2/share/doc/fovea/sboms/fovea.spdx.json ]] || fail "$2: expected a bill of materials, got none: $3/install.log"
    pack_folder "$3" "$2"
}

# try_c_programs PREFIX FOLDER COMPILER EMULATOR: C programs, built by what pkg-config says of PREFIX: the example's answer, and the
# committed logits, of models that this machine's command line converts.
try_c_programs() {
    local flags program answer
    flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs fovea)
    for program in examples/complete tests/packaging/logits; do
        # shellcheck disable=SC2086  # lists of words
        $3 -std=gnu11 "$program.c" $flags -o "$2/${program##*/}.exe"
    done
    # shellcheck disable=SC2086
    answer=$($4 "$2/complete.exe" "$PWD/tools/demo/demo.fovea" 'turn on the lights in the kitchen' | tr -d '\r')
    [[ $answer == '{"do":"on","device":"lights","room":"kitchen"}' ]] || fail "$1: expected the lights' command, got $answer"
    hold_to_hashes "$PWD/$2" "${4// /;};$PWD/$2/logits.exe" "$(host_cli)"
}

# The command line of this machine's archive, if there is one, else of the release build.
host_cli() {
    local found
    found=$(ls -d build/archive-linux-"$(uname -m)"/fovea-*/bin/fovea 2>/dev/null) || { build_host_cli >&2 && found=build/release/fovea; }
    printf '%s' "$found"
}

# try_archive TARGET NAME FOLDER: which glibc it wants; others' programs with what is unpacked elsewhere; the committed logits.
try_archive() {
    local newer run=
    case $1 in
        wasm32-wasi) try_c_programs "$PWD/$3/$2" "$3" 'clang --target=wasm32-wasi' 'node --no-warnings toolchains/wasi.mjs' ;;
        windows-x86_64)
            try_c_programs "$PWD/$3/$2" "$3" 'x86_64-w64-mingw32-gcc-posix -static' \
                "env WINEDEBUG=-all PATH=$PATH:/usr/lib/wine wine64"
            ;;
    esac
    [[ $1 == linux-* ]] || return 0
    newer=$(find "$3/$2/bin" "$3/$2/lib" -type f \( -name fovea -o -name '*.so.*' \) -exec readelf -W --dyn-syms {} + |
        grep -oE 'GLIBC_2\.(29|[3-9][0-9])' | sort -u || true)
    [[ -z $newer ]] || fail "$2: expected symbols of glibc 2.28 at the latest, got ${newer//$'\n'/ }"
    if [[ $1 == "linux-$(uname -m)" ]]; then
        cmake -D HOW=archive -D ARCHIVE="$PWD/$3/$2.tar.gz" -D SOURCE="$PWD" -D SCRATCH="$PWD/$3-moved" -D CXX=c++ -D CC=cc \
            -D NM=nm -D GENERATOR=Ninja -D BUILD_TYPE=Release -P tests/packaging/consumers.cmake
    else
        run=$(emulator "${1#linux-}")
    fi
    hold_to_hashes "$3" '' "$run$3/$2/bin/fovea"
}

package_archives() {
    local target preset name folder
    [[ $# -gt 0 ]] || set -- "${archive_targets[@]}"
    for target; do
        [[ " ${archive_targets[*]} " == *" $target "* ]] || fail "archives: expected some of ${archive_targets[*]}, got '$target'"
        preset=${target#linux-}
        case $target in
            linux-x86_64) preset=release ;;
            windows-x86_64) preset=mingw ;;
            wasm32-wasi) preset=wasm ;;
        esac
        [[ $preset == release ]] || need_cross "$preset"
        name=fovea-$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)-$target
        folder=build/archive-$target
        make_archive "$preset" "$name" "$folder"
        make_archive "$preset" "$name" "$folder-again"
        hold_to_same "$folder/$name.tar.gz" "$folder-again/$name.tar.gz" "$archive_most"
        try_archive "$target" "$name" "$folder"
        mv "$folder/$name.tar.gz" "$dist/"
    done
    (cd "$dist" && sha256sum -- *.tar.gz >SHA256SUMS && ls -l) >&2
}
