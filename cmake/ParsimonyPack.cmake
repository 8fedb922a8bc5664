# Debian packages, by cpack: the command, what a program needs to link the library, what loads
# libtorch, and ONNX Runtime. tools/package.sh runs it.

set(PARSIMONY_ONNXRUNTIME_LIBRARY "" CACHE FILEPATH
  "ONNX Runtime's shared library, for the package parsimony-onnxruntime")

set(CPACK_PACKAGE_NAME parsimony)
set(CPACK_PACKAGE_VENDOR Parsimony)
set(CPACK_PACKAGE_CONTACT "the Parsimony team" CACHE STRING "Name and address for the packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENTS_ALL command dev)
if(PARSIMONY_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL torch)
endif()
if(PARSIMONY_ONNXRUNTIME_LIBRARY)
  list(APPEND CPACK_COMPONENTS_ALL onnxruntime)
  install(FILES "${PARSIMONY_ONNXRUNTIME_LIBRARY}" RENAME libonnxruntime.so.1 COMPONENT onnxruntime
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  set_target_properties(parsimony PROPERTIES  # where it looks for it first
    INSTALL_RPATH "${CMAKE_INSTALL_FULL_LIBDIR}/parsimony")
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME parsimony)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "parsimony-torch, parsimony-onnxruntime")
set(CPACK_COMPONENT_COMMAND_DESCRIPTION
  "The command works on ONNX files. parsimony-onnxruntime adds their proof,
 parsimony-torch libtorch, PyTorch\'s files and training.")

set(CPACK_DEBIAN_TORCH_PACKAGE_NAME parsimony-torch)
set(CPACK_DEBIAN_TORCH_PACKAGE_SECTION science)
set(CPACK_COMPONENT_TORCH_DEPENDS command)
set(CPACK_COMPONENT_TORCH_DESCRIPTION
  "What needs libtorch: lets the parsimony command read PyTorch\'s files, prove
 with libtorch, measure criteria on data, recover and train.")

set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_NAME parsimony-onnxruntime)
set(CPACK_DEBIAN_ONNXRUNTIME_PACKAGE_SECTION science)
set(CPACK_COMPONENT_ONNXRUNTIME_DESCRIPTION
  "ONNX Runtime\'s library, in which the parsimony command proves ONNX files
 and measures them where libtorch is not installed.")
set(licence_of_onnxruntime "${PROJECT_SOURCE_DIR}/packaging/licences/onnxruntime")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libparsimony-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libonnx-dev, libprotobuf-dev, protobuf-compiler, libeigen3-dev, nlohmann-json3-dev, libabsl-dev, libre2-dev, libssl-dev, libjpeg62-turbo-dev, libpng-dev, libsndfile1-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libtorch-dev, libgloo-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "Headers and static libraries, for programs that prune models or live
 modules themselves, with CMake\'s find_package(parsimony).")

# What Debian wants to find with every package; dates are those of the commit.
find_program(PARSIMONY_GZIP gzip)
if(PARSIMONY_GZIP)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH
  foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER ${component} key)
    set(name ${CPACK_DEBIAN_${key}_PACKAGE_NAME})
    set(folder "${PROJECT_BINARY_DIR}/debian/${name}")
    file(WRITE "${folder}/changelog" "parsimony (${PROJECT_VERSION}) unstable; urgency=low\n\n"
      "  * See CHANGELOG.md in the sources.\n\n -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
    execute_process(COMMAND "${PARSIMONY_GZIP}" -9nf "${folder}/changelog")
    if(DEFINED licence_of_${component})
      configure_file("${licence_of_${component}}" "${folder}/copyright" COPYONLY)
    else()
      file(WRITE "${folder}/copyright"
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        "Upstream-Name: parsimony\n\nFiles: *\nCopyright: 2026 the Parsimony authors\n"
        "License: Apache-2.0\n On Debian systems the text of the licence is in\n"
        " /usr/share/common-licenses/Apache-2.0.\n")
    endif()
    install(FILES "${folder}/changelog.gz" "${folder}/copyright" COMPONENT ${component}
      DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${name}")
  endforeach()
endif()

include(CPack)
