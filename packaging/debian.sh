# ./dev package debian [ARCHITECTURE...]: packages for Debian 10, Ubuntu 18.10 and later: both libraries, what programs are built with,
# the command line.
# shellcheck shell=bash disable=SC2154  # sourced by dev

declare -A debian_presets=([amd64]=release [arm64]=aarch64 [armhf]=armv7 [riscv64]=riscv64)

# make_debs ARCHITECTURE FOLDER: FOLDER/*.deb
make_debs() {
    local preset=${debian_presets[$1]} triplet strip=strip
    triplet=$(dpkg-architecture -a "$1" -q DEB_HOST_MULTIARCH)
    [[ $preset == release ]] || strip=$triplet-strip
    rm -rf "$2" "$2-build"
    configure "$2-build" --preset "$preset" -D FOVEA_PORTABLE=ON -D FOVEA_INSTALL=ON -D FOVEA_TESTS=OFF -D FOVEA_EXAMPLES=OFF \
        -D CMAKE_INSTALL_PREFIX=/usr -D CMAKE_INSTALL_LIBDIR="lib/$triplet" -D FOVEA_ISAS="${FOVEA_ISAS-}"
    build "$2-build" >&2
    mkdir -p "$2"
    DESTDIR=$PWD/$2/root cmake --install "$2-build" --strip >"$2/install.log"
    STRIP=$strip python3 -B packaging/debs.py "$2/root" "$1" "$2" 2>"$2/debs.log" || { cat "$2/debs.log" >&2 && fail "$1: $2/debs.log"; }
}

# try_debs ARCHITECTURE FOLDER: installed where nothing else is but the distribution's least. Another machine's: unpacked, and by its own
# dpkg in an emulator, by proot in chroot's place; for to set up the rest there would take minutes.
try_debs() {
    local root=$PWD/$2/bare enter=(chroot "$PWD/$2/bare") foreign=() qemu suite deb
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    [[ $1 != riscv64 ]] || suite=trixie # the first that has it
    if [[ $1 != "$(dpkg --print-architecture)" ]]; then
        need proot
        qemu=$(emulator "${debian_presets[$1]}")
        enter=(env PROOT_NO_SECCOMP=1 PATH=/usr/sbin:/usr/bin:/sbin:/bin proot -q "${qemu%%;*}" -0 -b /proc -b /dev -r "$root" -w /)
        foreign=(--foreign "--arch=$1")
    fi
    say "$2: in a bare root"
    as_root rm -rf "$root"
    as_root debootstrap "${foreign[@]}" --variant=minbase "$suite" "$root" >"$2/debootstrap.log"
    if [[ ${#foreign[@]} != 0 ]]; then
        for deb in "$root"/var/cache/apt/archives/*.deb; do
            dpkg-deb -f "$deb" && printf 'Status: install ok installed\n\n'
        done | as_root tee "$root/var/lib/dpkg/status" >"$2/status"
        as_root rm -rf "$root/proc"
        as_root mkdir "$root/proc"
    fi
    as_root cp "$2"/*.deb "$root/tmp/"
    as_root "${enter[@]}" sh -ec 'dpkg -i /tmp/*.deb && ldconfig && ldconfig -p | grep libfovea' >&2
    hold_demo as_root "${enter[@]}" fovea
}

package_debian() {
    local architecture folder
    [[ $# -gt 0 ]] || set -- "$(dpkg --print-architecture)"
    need dpkg-dev lintian debootstrap
    for architecture; do
        [[ -n ${debian_presets[$architecture]-} ]] || fail "debian: expected some of ${!debian_presets[*]}, got '$architecture'"
        [[ ${debian_presets[$architecture]} == release ]] || need_cross "${debian_presets[$architecture]}"
        folder=build/debian-$architecture
        make_debs "$architecture" "$folder"
        lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$folder"/*.deb
        try_debs "$architecture" "$folder"
        mv "$folder"/*.deb "$dist/"
    done
    (cd "$dist" && ls -l -- *.deb) >&2
}
