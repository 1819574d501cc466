//! Builds the host library with CMake and links it into the crate. FOVEA_ISAS: fewer instruction sets, sooner. FOVEA_BUILD_DIR: a
//! folder that is kept from one build to the next.
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    for name in ["FOVEA_ISAS", "FOVEA_BUILD_DIR", "FOVEA_LIB_DIR"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if env::var_os("CARGO_FEATURE_BUILD").is_none() {
        if let Ok(folder) = env::var("FOVEA_LIB_DIR") {
            println!("cargo:rustc-link-search=native={folder}");
        }
        println!("cargo:rustc-link-lib=dylib=fovea_host");
        return;
    }
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let packed = own.join("fovea"); // in a packed crate; else the crate lies in the tree
    let tree = if packed.is_dir() { packed } else { own.join("../..") };
    let out = env::var_os("FOVEA_BUILD_DIR").or_else(|| env::var_os("OUT_DIR").map(|out| Path::new(&out).join("fovea").into()));
    let build = PathBuf::from(out.unwrap());
    for watched in ["include", "engine", "platform", "host", "convert", "bindings/c", "CMakeLists.txt"] {
        println!("cargo:rerun-if-changed={}", tree.join(watched).display());
    }

    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(&tree).arg("-B").arg(&build).args(["-D", "CMAKE_BUILD_TYPE=Release"]);
    for option in ["CONVERT", "HOST"] {
        configure.arg("-D").arg(format!("FOVEA_{option}=ON"));
    }
    for option in ["TOOLS", "TESTS", "EXAMPLES", "INSTALL", "OPENMP", "SNDFILE_INCLUDE"] {
        configure.arg("-D").arg(format!("FOVEA_{option}=OFF"));
    }
    configure.arg("-D").arg(format!("FOVEA_ISAS={}", env::var("FOVEA_ISAS").unwrap_or_default()));
    run(&mut configure);
    let jobs = env::var("NUM_JOBS").unwrap_or_else(|_| "2".into());
    run(Command::new("cmake").arg("--build").arg(&build).args(["--target", "fovea_host_static", "--parallel", &jobs]));

    let mut libraries = Vec::new();
    find_libraries(&build, &mut libraries);
    libraries.sort();
    assert!(!libraries.is_empty(), "{}: expected libraries, got none", build.display());
    for library in libraries {
        println!("cargo:rustc-link-search=native={}", library.parent().unwrap().display());
        let name = library.file_stem().unwrap().to_str().unwrap();
        println!("cargo:rustc-link-lib=static={}", name.strip_prefix("lib").unwrap_or(name));
    }
    let apple = env::var("CARGO_CFG_TARGET_VENDOR").map_or(false, |vendor| vendor == "apple");
    println!("cargo:rustc-link-lib=dylib={}", if apple { "c++" } else { "stdc++" });
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("expected CMake, got {error}"));
    assert!(status.success(), "{command:?}: expected it to end well, got {status}");
}

fn find_libraries(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the build").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_libraries(&path, found);
        } else if path.extension().map_or(false, |ending| ending == "a") {
            found.push(path);
        }
    }
}
