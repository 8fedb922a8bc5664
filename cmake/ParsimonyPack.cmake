# Debian packages, by cpack: the command, what a program needs to link the library, and what loads
# libtorch. tools/package.sh runs it.

set(CPACK_PACKAGE_NAME parsimony)
set(CPACK_PACKAGE_VENDOR Parsimony)
set(CPACK_PACKAGE_CONTACT "Parsimony <parsimony@localhost.localdomain>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_COMPONENTS_ALL command dev)
if(PARSIMONY_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL torch)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME parsimony)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS parsimony-torch)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION
  "Prunes neural networks, rebuilds them smaller and proves the result
 The command works on ONNX files. Proofs run in ONNX Runtime if its library is
 there; parsimony-torch adds libtorch, PyTorch's files and training.")

set(CPACK_DEBIAN_TORCH_PACKAGE_NAME parsimony-torch)
set(CPACK_DEBIAN_TORCH_PACKAGE_SECTION science)
set(CPACK_COMPONENT_TORCH_DEPENDS command)
set(CPACK_COMPONENT_TORCH_DESCRIPTION
  "Pruning of neural networks: what needs libtorch
 Lets the parsimony command read PyTorch's files, prove with libtorch, measure
 criteria on data, recover and train.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libparsimony-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "libonnx-dev, libprotobuf-dev, protobuf-compiler, libeigen3-dev, nlohmann-json3-dev, libabsl-dev, libre2-dev, libssl-dev, libjpeg62-turbo-dev, libpng-dev, libsndfile1-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "libtorch-dev, libgloo-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION
  "Pruning of neural networks: headers and static libraries
 For programs that prune models or live modules themselves, with CMake's
 find_package(parsimony).")

include(CPack)
