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

package_wheels() {
    local python twice name built platform
    platform=manylinux_2_28-$(uname -m)
    rm -f "$dist"/*.whl
    [[ $# -gt 0 ]] || set -- python3
    for python; do
        name=build/wheel-$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
        built=
        if ! "$python" -m pip download -q --no-deps --no-index --find-links "$dist" -d "$name-had" fovea-engine 2>/dev/null; then
            rm -rf "$name" "$name-again" "$name-build" "$name-again-build"
            say "$python: building twice"
            _PYTHON_HOST_PLATFORM=$platform make_wheel "$python" "$PWD" "$name" "${name#*/}-build"
            _PYTHON_HOST_PLATFORM=$platform make_wheel "$python" "$PWD" "$name-again" "${name#*/}-again-build"
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
