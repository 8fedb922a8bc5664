# The libraries we stand on; all of them are Debian packages (tools/setup.sh installs them).

find_package(Threads REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Protobuf REQUIRED)  # before ONNX, whose targets name it
find_package(ONNX REQUIRED)
foreach(name onnx onnx_proto)  # bookworm's targets have no namespace
  if(NOT TARGET ONNX::${name})
    add_library(ONNX::${name} ALIAS ${name})
  endif()
endforeach()
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)

# Optional, and for programs only: a library does not choose its user's allocator. Sanitizers bring
# their own.
if(PARSIMONY_MIMALLOC AND NOT PARSIMONY_SANITIZE)
  find_package(mimalloc QUIET)
  # A beta: with 3.0.1 libtorch's graphs are damaged where with 2.0, or without it, nothing is.
  if(mimalloc_VERSION VERSION_EQUAL 3.0)
    set(mimalloc_FOUND OFF)
  endif()
endif()

if(PARSIMONY_TORCH)
  include(ParsimonyTorch)
  if(NOT Torch_FOUND)
    message(FATAL_ERROR "There is no libtorch of PyTorch 2.6 or later: run tools/setup.sh, or install PyTorch "
      "for the python3 in the path, or configure with -DPARSIMONY_TORCH=OFF for the tool without it")
  endif()
  # libtorch's header of Gloo includes Gloo's own.
  find_path(PARSIMONY_GLOO_HEADERS gloo/algorithm.h)
  if(NOT PARSIMONY_GLOO_HEADERS)
    message(FATAL_ERROR "There are no headers of Gloo: install libgloo-dev")
  endif()
endif()

# For data of image files; sound is read by libsndfile, which has no CMake package.
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)

if(PARSIMONY_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(PARSIMONY_BENCH)
  find_package(benchmark REQUIRED)
endif()

if(PARSIMONY_STATIC)
  include(ParsimonyStatic)
endif()
