# An overlay port: it builds the checkout that it lies in.
#
#   vcpkg install parsimony --overlay-ports=packaging/vcpkg --triplet=x64-linux-dynamic

get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

# re2 and libsndfile are linked by name, so the linker has to be told where they are.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    -DPARSIMONY_TESTS=OFF
    -DPARSIMONY_TORCH=OFF
    -DPARSIMONY_CHARTS=OFF
    -DPARSIMONY_MIMALLOC=OFF
    "-DCMAKE_CXX_FLAGS=-I${CURRENT_INSTALLED_DIR}/include"
    "-DCMAKE_EXE_LINKER_FLAGS=-L${CURRENT_INSTALLED_DIR}/lib"
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/parsimony)
vcpkg_copy_tools(TOOL_NAMES parsimony AUTO_CLEAN)

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
