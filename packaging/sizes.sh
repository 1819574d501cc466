# ./dev package sizes: bounds of what people download, in seconds where a compiler's cache is warm: the newest wheel, the library for one
# CPU and a C program with it, an image of the wheel's command, which is also run.
# shellcheck shell=bash disable=SC2154  # sourced by dev

size_isa=avx2 # the one CPU's
wheel_most=$((13 << 20)) library_most=$((3 << 20)) library_packed_most=$((1200 << 10)) # bytes; a wheel's with that set alone
program_most=1900000

# hold_size NAME BYTES MOST
hold_size() {
    [[ $2 -le $3 ]] || fail "$1: expected at most $3 bytes, got $2"
    printf '%s %s bytes of at most %s\n' "$1" "$2" "$3"
}

package_sizes() {
    local wheel folder=build/sizes image=build/sizes/image.tar settings
    # shellcheck source=/dev/null
    source packaging/image.sh
    wheel=$(ls -t build/python/wheels/*.whl build/python/wheels/*/*.whl "$dist"/*.whl 2>/dev/null | head -n 1 || true)
    need curl
    [[ -n $wheel ]] || fail 'sizes: expected a wheel (./dev python), got none'
    rm -rf "$folder"
    mkdir -p "$folder"
    hold_size "${wheel##*/}" "$(stat -c %s "$wheel")" "$wheel_most"

    # With the host library and its programs, which are not built here: so objects are the release build's, and an archive's.
    configure "$folder-library" --preset release -D FOVEA_TESTS=OFF -D FOVEA_ISAS="$size_isa"
    build "$folder-library" fovea_example_complete >&2
    strip --strip-debug -o "$folder/libfovea.a" "$folder-library/libfovea.a"
    hold_size libfovea.a "$(stat -c %s "$folder/libfovea.a")" "$library_most"
    hold_size 'libfovea.a, packed' "$(gzip -9nc "$folder/libfovea.a" | wc -c)" "$library_packed_most"

    strip -o "$folder/complete" "$folder-library/examples/fovea_example_complete"
    hold_size 'examples/complete.c, linked' "$(stat -c %s "$folder/complete")" "$program_most"

    python3 -m zipfile -e "$wheel" "$folder/wheel"
    mkdir -p "$folder/tree/bin" "$folder/tree/share/doc/fovea"
    install "$folder"/wheel/*.data/scripts/fovea "$folder/tree/bin/"
    cp -r "$folder"/wheel/*.dist-info/licenses "$folder"/wheel/*.dist-info/sboms LICENSE "$folder/tree/share/doc/fovea/"
    python3 -B packaging/image.py "$image" 0 "amd64=$folder/tree"
    hold_size image "$(stat -c %s "$image")" "$image_most"
    settings=$(python3 -B packaging/image.py --unpack "$image" amd64 "$folder/root")
    try_image "$PWD/$folder/root" "$settings" >&2
}
