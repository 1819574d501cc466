# ./dev package image: an OCI image of the command line for x86-64 and aarch64, with the instruction sets that most servers have.
# shellcheck shell=bash disable=SC2154  # sourced by dev

image_most=10000000 # bytes of each architecture's, packed
declare -A image_isas=([amd64]=avx2 [arm64]='neon;neon_dotprod') image_presets=([amd64]=release [arm64]=aarch64)

# try_image ROOT SETTINGS: the image's files as a container's process sees them: nobody, and nothing else of this machine.
try_image() {
    local root=$1 nobody=(chroot --userspec=65534:65534 "$1" /usr/bin/fovea) port server said
    [[ $2 == *'"Entrypoint": ["/usr/bin/fovea"]'* ]] || fail "image: expected fovea as its entry point, got $2"
    said=$(as_root "${nobody[@]}" run -p 'turn on the lights in the kitchen')
    [[ $said == '{"do":"on","device":"lights","room":"kitchen"}' ]] || fail "image: expected the lights' command, got $said"
    hold_demo as_root "${nobody[@]}"
    # `timeout` ends it as a container's host does, by SIGTERM, whatever becomes of this script.
    as_root timeout 30 "${nobody[@]}" serve --host 0.0.0.0 --port 0 >"$root.log" 2>&1 &
    server=$!
    said=
    while kill -0 "$server" 2>/dev/null && [[ -z $said ]]; do
        sleep 1
        port=$(sed -n 's|^http://0.0.0.0:||p' "$root.log")
        [[ -z $port ]] || said=$(curl -s "http://127.0.0.1:$port/v1/models" || true)
    done
    wait "$server" || true
    [[ $said == *'"demo"'* ]] || fail "image: expected a server's list of models, got $said: $root.log"
}

# try_compose IMAGE FOLDER: compose.yaml by podman, which wants no daemon: the server's list of the models in a folder. In a network and
# with cgroups of its own; what podman keeps is in FOLDER.
try_compose() {
    local folder=$PWD/$2 said
    command -v podman-compose >/dev/null || { say 'without podman-compose: compose.yaml is not tried' && return; }
    say 'compose.yaml by podman'
    as_root rm -rf "$folder"
    mkdir -p "$folder/models"
    cp tools/demo/demo.fovea "$folder/models/"
    printf '%s\n' '[containers]' 'default_ulimits = ["nofile=4096:4096", "nproc=1000:1000"]' 'cgroups = "disabled"' '[network]' \
        "network_config_dir = \"$folder/networks\"" >"$folder/containers.conf"
    # shellcheck disable=SC2016  # that shell's variables
    said=$(as_root env FOLDER="$folder" IMAGE="$PWD/$1" unshare --mount --net bash -euc '
        ip link set lo up
        umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
        mount -t tmpfs run /run
        export CONTAINERS_CONF=$FOLDER/containers.conf MODELS=$FOLDER/models
        own="--root $FOLDER/podman --runroot $FOLDER/run"
        podman $own load -i "$IMAGE"
        compose() { podman-compose --podman-args "$own" -f packaging/compose.yaml "$@"; }
        compose up -d
        curl -sS --retry 20 --retry-delay 1 --retry-all-errors http://127.0.0.1:8080/v1/chat/completions \
            -d "{\"model\": \"demo\", \"messages\": [{\"role\": \"user\", \"content\": \"play jazz\"}]}"
        compose down' 2>"$folder/log") || { cat "$folder/log" >&2 && fail "compose.yaml: $folder/log"; }
    [[ $said == *'"content":"{\"do\":\"play\",\"what\":\"jazz\"}"'* ]] || fail "compose.yaml: expected to play jazz, got $said"
}

package_image() {
    local name version architecture trees=() settings
    # shellcheck source=/dev/null
    source packaging/archives.sh
    version=$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)
    name=build/image/fovea-$version-image
    need curl
    mkdir -p build/image
    for architecture in amd64 arm64; do
        [[ ${image_presets[$architecture]} == release ]] || need_cross "${image_presets[$architecture]}"
        FOVEA_ISAS=${image_isas[$architecture]} make_archive "${image_presets[$architecture]}" tree "build/image-$architecture"
        trees+=("$architecture=build/image-$architecture/tree")
        python3 -B packaging/image.py "$name-$architecture.tar" "$version" "${trees[-1]}"
        [[ $(stat -c %s "$name-$architecture.tar") -le $image_most ]] || fail "$name-$architecture.tar: expected at most $image_most bytes"
    done
    python3 -B packaging/image.py "$name.tar" "$version" "${trees[@]}"
    python3 -B packaging/image.py "$name-again.tar" "$version" "${trees[@]}"
    hold_to_same "$name.tar" "$name-again.tar" $((2 * image_most))
    for architecture in amd64 arm64; do
        say "$architecture: the image's files"
        rm -rf "build/image/$architecture-root"
        settings=$(python3 -B packaging/image.py --unpack "$name.tar" "$architecture" "build/image/$architecture-root")
        if [[ $architecture == "$(dpkg --print-architecture)" ]]; then
            try_image "$PWD/build/image/$architecture-root" "$settings"
        else
            hold_demo qemu-aarch64 -L "build/image/$architecture-root" "build/image/$architecture-root/usr/bin/fovea"
        fi
    done
    try_compose "$name.tar" build/image/compose
    mv "$name.tar" "$dist/"
    ls -l "$dist/"*-image.tar build/image/*.tar >&2
}
