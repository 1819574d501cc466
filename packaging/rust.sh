# ./dev package rust: the crate with the library's sources, as an archive; what is in it is built, tested and linked into programs by the
# cargo that the machine has.
# shellcheck shell=bash disable=SC2154  # sourced by dev

rust_most=$((10 << 20)) # bytes; crates.io takes no larger ones

package_rust() {
    local version folder=build/rust crate answer again
    version=$(sed -n 's/.*FOVEA_VERSION "\(.*\)"/\1/p' include/fovea/version.h)
    command -v cargo >/dev/null || need cargo
    export CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$PWD/$folder/target
    crate=$folder/crate
    for again in 1 2; do
        rm -rf "$crate"
        mkdir -p "$crate/fovea"
        git ls-files bindings/rust | while read -r file; do install -D -m 644 "$file" "$crate/${file#bindings/rust/}"; done
        git ls-files CMakeLists.txt include engine platform host convert bindings/c toolchains/cmake | while read -r file; do
            install -D -m 644 "$file" "$crate/fovea/$file"
        done
        cp LICENSE "$crate/"
        (cd "$crate" && cargo package --quiet --no-verify --allow-dirty)
        cp "$folder/target/package/fovea-engine-$version.crate" "$folder/$again.crate"
    done
    hold_to_same "$folder/1.crate" "$folder/2.crate" "$rust_most"
    rm -rf "$folder/packed"
    mkdir "$folder/packed"
    tar xf "$folder/1.crate" -C "$folder/packed" --strip-components=1

    say 'the crate, built and tested'
    export FOVEA_TREE=$PWD FOVEA_BUILD_DIR=$PWD/$folder/packed/fovea/build/release FOVEA_ISAS=${FOVEA_ISAS-}
    export XDG_CACHE_HOME=$PWD/$folder/cache # where tests' models are converted to
    (cd "$folder/packed" && cargo build --release --examples && cargo test --release --tests && cargo test --release --doc)
    answer=$(echo 'play jazz' | "$folder/target/release/examples/chat" tools/demo/demo.fovea)
    [[ $answer == '{"do":"play","what":"jazz"}' ]] || fail "chat: expected to play jazz, got $answer"
    "$folder/target/release/examples/embed" tests/golden/encoders/bert_sentence 'a lamp' 'a lamp' | grep -qx 1.0000 ||
        fail 'embed: expected 1.0000 of the same text twice'
    mv "$folder/1.crate" "$dist/fovea-engine-$version.crate"
}
