# ./dev package wheels [PYTHON...]: wheels of the Python package for any Linux with glibc 2.28 or newer. A Python makes one where
# none that is there serves it, from 3.12 on for all later ones; then it installs as somebody does who has no compiler.
# shellcheck shell=bash  # sourced by dev

# try_wheel PYTHON VENV: the index folder, the command, the module, the committed logits from both.
try_wheel() {
    local start
    rm -rf "$2"
    "$1" -m venv "$2"
    start=$EPOCHREALTIME
    "$2/bin/pip" install -q --find-links "$dist" fovea-engine
    say "$1: installed in $(awk "BEGIN { printf \"%.1f\", $EPOCHREALTIME - $start }") s"
    hold_to_hashes "$2" '' "$2/bin/fovea"
    "$2/bin/pip" install -q pytest
    "$2/bin/python" -m pytest -q bindings/python/tests/test_command.py
}

# build_wheel PYTHON FOLDER PLATFORM: a wheel in FOLDER, whose name says that platform.
build_wheel() {
    rm -rf "$2" "$2-build"
    make_wheel "$1" "$PWD" "$2" "${2#*/}-build"
    build/wheel-tools/bin/python -m wheel tags --remove --platform-tag "$3" "$2"/*.whl >"$2/tags.log"
}

package_wheels() {
    local python twice name built platform
    platform=manylinux_2_28_$(uname -m)
    rm -f "$dist"/*.whl
    [[ $# -gt 0 ]] || set -- python3
    [[ -d build/wheel-tools ]] || { "$1" -m venv build/wheel-tools && build/wheel-tools/bin/pip install -q wheel; }
    for python; do
        name=build/wheel-$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
        built=
        if ! "$python" -m pip download -q --no-deps --no-index --find-links "$dist" -d "$name-had" fovea-engine 2>/dev/null; then
            say "$python: building twice"
            build_wheel "$python" "$name" "$platform"
            build_wheel "$python" "$name-again" "$platform"
            twice=$(cd "$name" && sha256sum -- *.whl)
            (cd "$name-again" && sha256sum --quiet -c <<<"$twice") || fail "$name: expected the same wheel of two builds"
            built=$dist/$(cd "$name" && ls -- *.whl)
            mv "$name"/*.whl "$built"
        fi
        try_wheel "$python" "$name-try"
        [[ -z $built ]] || check_wheel "$name-try/bin" "$built"
    done
    (cd "$dist" && ls -l -- *.whl) >&2
}
