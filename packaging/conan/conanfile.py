"""Conan 2: `conan create packaging/conan` in a checkout; the engine library, and with -o with_host=True the host library."""

import pathlib
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

required_conan_version = ">=2.0"


class FoveaConan(ConanFile):
    name = "fovea"
    description = "An embeddable CPU inference engine for attention models"
    license = "Apache-2.0"
    homepage = "https://fovea.invalid"
    topics = ("inference", "attention", "transformer", "llm", "embedded")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {
        "shared": [True, False],
        "fPIC": [True, False],
        "threads": [True, False],
        "isas": ["ANY"],  # as FOVEA_ISAS: a list with semicolons, native, or nothing for all
        "with_host": [True, False],
        "xsimd": ["conan", "system"],
    }
    default_options = {
        "shared": False,
        "fPIC": True,
        "threads": True,
        "isas": "",
        "with_host": False,
        "xsimd": "conan",
    }

    def set_version(self):
        text = pathlib.Path(self.recipe_folder, "../../include/fovea/version.h").read_text()
        self.version = self.version or re.search(r'FOVEA_VERSION "(.*)"', text)[1]

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder, "../..")
        kept = ["CMakeLists.txt", "LICENSE", "README.md", "docs/fovea.1"]
        for folder in ("include", "engine", "platform", "host", "convert", "bindings/c", "toolchains"):
            kept.append(f"{folder}/*")
        for pattern in kept:
            copy(self, pattern, root, self.export_sources_folder)

    def config_options(self):
        if self.settings.os == "Windows":
            del self.options.fPIC

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def validate(self):
        check_min_cppstd(self, 20)
        if self.options.with_host and (self.options.shared or self.settings.os == "Windows"):
            raise ConanInvalidConfiguration("with_host: expected a static engine on a Unix, whose host library is shared by itself")

    def requirements(self):
        if self.options.with_host:
            self.requires("nlohmann_json/[>=3.11 <4]", visible=False)

    def build_requirements(self):
        if self.options.xsimd == "conan":
            self.test_requires("xsimd/[>=8]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        off = ("TOOLS", "TESTS", "EXAMPLES", "SERVE", "FETCH", "OPENMP")
        toolchain.cache_variables.update({f"FOVEA_{name}": "OFF" for name in off})
        toolchain.cache_variables["FOVEA_INSTALL"] = "ON"
        toolchain.cache_variables["FOVEA_THREADS"] = "ON" if self.options.threads else "OFF"
        toolchain.cache_variables["FOVEA_ISAS"] = str(self.options.isas)
        for name in ("CONVERT", "HOST"):
            toolchain.cache_variables[f"FOVEA_{name}"] = "ON" if self.options.with_host else "OFF"
        if self.options.xsimd == "conan":
            include = self.dependencies.build["xsimd"] if "xsimd" in self.dependencies.build else self.dependencies["xsimd"]
            toolchain.cache_variables["FOVEA_XSIMD_INCLUDE"] = include.cpp_info.includedirs[0]
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, str(pathlib.Path(self.package_folder, "licenses")))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "fovea")
        engine = self.cpp_info.components["engine"]
        engine.set_property("cmake_target_name", "fovea::fovea")
        engine.set_property("pkg_config_name", "fovea")
        engine.libs = ["fovea"]
        if self.settings.os in ("Linux", "FreeBSD") and self.options.threads:
            engine.system_libs = ["pthread"]
        if self.options.with_host:
            host = self.cpp_info.components["host"]
            host.set_property("cmake_target_name", "fovea::host")
            host.set_property("pkg_config_name", "fovea_host")
            host.libs = ["fovea_host"]
            host.requires = ["engine", "nlohmann_json::nlohmann_json"]
