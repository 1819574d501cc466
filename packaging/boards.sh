# ./dev package boards: the engine for boards' package managers (boards.py says which), as an archive that all of them read and as
# a CMSIS pack; a Buildroot package and a Yocto recipe. The demo of the archive must compute the committed logits on an emulated board, built
# by CMake and by Arduino's builder. Others try it where variables say where their trees are: PICO_SDK_PATH, IDF_PATH, ZEPHYR_BASE,
# BUILDROOT, CMSIS_SCHEMA (the specification's PACK.xsd).
# shellcheck shell=bash disable=SC2154  # sourced by dev

boards_most=$((1536 << 10)) # bytes, packed

# zip_folder FOLDER ARCHIVE [PREFIX]: a zip archive whose bytes depend on the files alone.
zip_folder() {
    python3 -B - "$@" <<'END'
import os, pathlib, sys, time, zipfile
folder, archive, prefix = (sys.argv[1:] + [""])[:3]
date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for file in sorted(file for file in pathlib.Path(folder).rglob("*") if file.is_file()):
        entry = zipfile.ZipInfo(prefix + file.relative_to(folder).as_posix(), date)
        entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        out.writestr(entry, file.read_bytes())
END
}

# hold_board PROGRAM FOLDER: an emulated Cortex-M7 that says the committed logits and what the command line answers to the same model.
hold_board() {
    local said wanted
    wanted=$(sed -n 's/^q4 //p' tests/golden/logit_hashes.txt)
    said=$(timeout 300 qemu-system-arm -M mps2-an500 -display none -semihosting-config enable=on,target=native -kernel "$1" 2>&1) || fail "$1: expected status 0, got $said"
    printf '%s\n' "$said" >&2
    [[ $said == *"logits $wanted"* && $said == *'{"do":"on","device":"dehumidifier","room":"garden"}'* ]] ||
        fail "$1: expected logits $wanted, got $said"
}

# try_arduino FOLDER: the sketch by Arduino's own builder, for a board whose core is the tests'.
try_arduino() {
    local work=$PWD/$1/arduino core
    core=$work/hardware/tests/emulated/cores/core
    rm -rf "$work"
    mkdir -p "$core" "$work/build" "$work/libraries"
    cp tests/packaging/boards/arduino/*.txt "$work/hardware/tests/emulated/"
    cp tests/packaging/boards/arduino/core/* packaging/cortex_m/start.[ch] examples/bare_metal/{mps2,sections}.ld "$core/"
    cp -r "$1/fovea" "$work/libraries/Fovea"
    arduino-builder -compile -hardware /usr/share/arduino-builder -hardware "$work/hardware" -tools "$work/hardware" -libraries "$work/libraries" -build-path "$work/build" \
        -fqbn tests:emulated:m7 -prefs=runtime.ide.version=10819 -ide-version=10819 "$1/fovea/examples/demo/demo.ino" >"$work/log" 2>&1 ||
        { tail -n 30 "$work/log" >&2 && fail "arduino: $work/log"; }
    hold_board "$work/build/demo.ino.elf"
}

# try_elsewhere FOLDER: package managers whose trees are others'.
try_elsewhere() {
    local package=$PWD/$1/fovea
    if [[ -n ${PICO_SDK_PATH-} ]]; then
        say 'Pico SDK'
        configure "$1/pico" -S "$package/examples/pico" -G Ninja -D PICO_NO_PICOTOOL=1
        build "$1/pico" >&2
    fi
    if [[ -n ${IDF_PATH-} ]]; then
        say "ESP-IDF: ${IDF_TARGET-esp32c3}"
        idf.py -C "$package/examples/esp_idf" -B "$PWD/$1/esp_idf" -D IDF_TARGET="${IDF_TARGET-esp32c3}" build >&2
    fi
    if [[ -n ${ZEPHYR_BASE-} ]]; then
        say 'Zephyr'
        west build -d "$1/zephyr" -b "${ZEPHYR_BOARD-mps2/an385}" "$package/examples/zephyr" -- -D ZEPHYR_EXTRA_MODULES="$package" >&2
    fi
    if [[ -n ${CMSIS_SCHEMA-} ]]; then
        xmllint --noout --schema "$CMSIS_SCHEMA" "$package/Fovea.Fovea.pdsc"
    fi
    if [[ -n ${BUILDROOT-} ]]; then
        say 'Buildroot'
        "$PWD/$1-tools/bin/python" "$BUILDROOT/utils/check-package" -b "$1"/buildroot/package/fovea/*
    fi
}

# try_linters FOLDER: what PyPI has for them reads the metadata.
try_linters() {
    local bin=$PWD/$1-tools/bin package=$PWD/$1/fovea
    [[ -x $bin/oelint-adv ]] || { python3 -m venv "$1-tools" && "$bin/pip" install -q idf-component-manager kconfiglib oelint-adv platformio python-magic flake8; }
    say "PlatformIO's, ESP-IDF's, Kconfig's and Yocto's own readers"
    "$bin/python" - "$package" <<'END' || fail 'boards: expected metadata that others can read'
import sys
import kconfiglib
from platformio.package.manifest.parser import ManifestParserFactory
from platformio.package.manifest.schema import ManifestSchema
if len(kconfiglib.Kconfig(sys.argv[1] + "/Kconfig").unique_defined_syms) < 20:
    sys.exit("Kconfig: expected a switch for each part")
library = ManifestParserFactory.new_from_file(sys.argv[1] + "/library.json").as_dict()
del library["license"]  # held against a list on another server
ManifestSchema().load_manifest(library)
END
    "$bin/compote" component pack --name fovea --project-dir "$package" --dest-dir "$PWD/$1/idf" >"$1/idf.log" 2>&1 || fail "$1/idf.log"
    "$bin/oelint-adv" --quiet --suppress oelint.vars.homepageping "$1"/yocto/*.bb
}

package_boards() {
    local folder=build/boards twice name version fovea
    # shellcheck source=/dev/null
    source packaging/archives.sh
    need gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib qemu-system-arm
    version=$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)
    name=fovea-$version-boards
    fovea=$(host_cli)
    for twice in "$folder" "$folder-again"; do
        python3 -B packaging/boards.py . "$twice" "$fovea"
        zip_folder "$twice/fovea" "$twice/$name.zip" fovea/
        zip_folder "$twice/fovea" "$twice/Fovea.Fovea.$version.pack"
        hold_to_same "$folder/$name.zip" "$twice/$name.zip" "$boards_most"
    done
    say 'CMake, an emulated Cortex-M7'
    configure "$folder/cmake" -S tests/packaging/boards -G Ninja -D CMAKE_TOOLCHAIN_FILE="$PWD/toolchains/cortex-m7.cmake" \
        -D PACKAGE="$PWD/$folder/fovea" -D SOURCE="$PWD"
    build "$folder/cmake" >&2
    hold_board "$folder/cmake/firmware"
    if command -v arduino-builder >/dev/null; then
        say 'Arduino'
        try_arduino "$folder"
    else
        say 'without arduino-builder'
    fi
    try_linters "$folder"
    try_elsewhere "$folder"
    mv "$folder/$name.zip" "$folder/Fovea.Fovea.$version.pack" "$dist/"
}
