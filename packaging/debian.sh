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

# try_debs FOLDER: installed where nothing else is but the distribution's least.
try_debs() {
    local root=$PWD/$1/bare
    say "$1: in a bare root"
    rm -rf "$root"
    as_root debootstrap --variant=minbase "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$root" >"$1/debootstrap.log"
    cp "$1"/*.deb "$root/tmp/"
    as_root chroot "$root" sh -ec 'dpkg -i /tmp/*.deb && ldconfig -p | grep libfovea' >&2
    hold_demo as_root chroot "$root" fovea
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
        [[ $architecture != "$(dpkg --print-architecture)" ]] || try_debs "$folder"
        mv "$folder"/*.deb "$dist/"
    done
    (cd "$dist" && ls -l -- *.deb) >&2
}
