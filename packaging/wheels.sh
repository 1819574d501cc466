# ./dev package wheels [PYTHON...]: wheels of the Python package for any Linux with glibc 2.28 or newer. A Python makes one where
# none that is there serves it, from 3.12 on for all later ones; then it installs as somebody does who has no compiler.
# shellcheck shell=bash  # sourced by dev

# make_wheel PYTHON FOLDER BUILD
make_wheel() {
    local log=$2.log
    say "$1: building in $3"
    mkdir -p "$2"
    # The compilers by the names that CMake gives them: a Python's own names would be others to a compiler's cache.
    CC=${CC-cc} CXX=${CXX-c++} _PYTHON_HOST_PLATFORM=manylinux_2_28-$(uname -m) "$1" -m pip wheel --no-deps -w "$2" . \
        --config-settings=build-dir="$3" --config-settings=cmake.define.FOVEA_ISAS="${FOVEA_ISAS-}" >"$log" 2>&1 || { cat "$log" >&2 && fail "no wheel: $log"; }
}

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

package_wheels() {
    local python twice name built
    rm -f "$dist"/*.whl
    [[ $# -gt 0 ]] || set -- python3  # builds are as deep as others, so that a compiler's cache knows their objects
    for python; do
        name=build/wheel-$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
        built=
        if ! "$python" -m pip download -q --no-deps --no-index --find-links "$dist" -d "$name-had" fovea-engine 2>/dev/null; then
            rm -rf "$name" "$name-again" "$name-build" "$name-again-build"
            make_wheel "$python" "$name" "$name-build"
            make_wheel "$python" "$name-again" "$name-again-build"
            twice=$(cd "$name" && sha256sum -- *.whl)
            (cd "$name-again" && sha256sum --quiet -c <<<"$twice") || fail "$name: expected the same wheel of two builds"
            built=$dist/$(cd "$name" && ls)
            mv "$name"/*.whl "$built"
        fi
        try_wheel "$python" "$name-try"
        [[ -z $built ]] || check_wheel "$name-try/bin" "$built"
    done
    (cd "$dist" && ls -l -- *.whl) >&2
}
