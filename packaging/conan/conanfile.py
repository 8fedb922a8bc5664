"""Builds the checkout that it lies in, without libtorch."""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Parsimony(ConanFile):
    name = "parsimony"
    description = "Prunes neural networks, rebuilds them smaller and proves the result"
    license = "Apache-2.0"
    topics = ("neural-network", "pruning", "onnx")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    # These are linked by name, so theirs must be all that the linker needs.
    default_options = {"libsndfile/*:shared": True, "re2/*:shared": True}

    @property
    def _root(self):
        return os.path.normpath(os.path.join(self.recipe_folder, "..", ".."))

    def set_version(self):
        text = load(self, os.path.join(self._root, "CMakeLists.txt"))
        self.version = re.search(r"^  VERSION ([\d.]+)$", text, re.MULTILINE).group(1)

    def export_sources(self):
        without = ("build/*", "build-*", ".git/*", "*node_modules*")
        copy(self, "*", self._root, self.export_sources_folder, excludes=without)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        self.requires("abseil/[>=20220623 <20240000]", transitive_headers=True)
        self.requires("cli11/[>=2.1 <3]")
        self.requires("eigen/[>=3.4 <4]", transitive_headers=True)
        self.requires("libjpeg/9e")
        self.requires("libpng/[>=1.6 <2]")
        self.requires("libsndfile/[>=1.2 <2]")
        self.requires("nlohmann_json/[>=3.11 <4]")
        self.requires("onnx/[>=1.12 <2]")
        self.requires("openssl/[>=3 <4]")
        self.requires("protobuf/[>=3.21 <4]")
        self.requires("re2/[>=20220601 <20240000]")
        self.requires("zlib/[>=1.2.11 <2]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "TORCH", "CHARTS", "MIMALLOC"):
            toolchain.cache_variables[f"PARSIMONY_{part}"] = False
        for name in ("libsndfile", "re2"):
            info = self.dependencies[name].cpp_info.aggregated_components()
            toolchain.extra_cxxflags += [f"-I{folder}" for folder in info.includedirs]
            toolchain.extra_exelinkflags += [f"-L{folder}" for folder in info.libdirs]
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # Its own CMake package knows the rooms and what each is linked with.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "parsimony")]
