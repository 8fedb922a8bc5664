# What a user can choose, and the language settings that follow.

option(PARSIMONY_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PARSIMONY_BENCH "Build the benchmarks" OFF)
option(PARSIMONY_FUZZ "Build the fuzzers (needs clang)" OFF)
option(PARSIMONY_TORCH "Build the libtorch front end" ON)
option(PARSIMONY_WERROR "Treat warnings as errors" OFF)
option(PARSIMONY_MIMALLOC "Link the command with mimalloc, where it is installed" ON)
option(PARSIMONY_STATIC "Link the command with static libraries, to run on other distributions" OFF)
option(PARSIMONY_NATIVE "Optimise for the processor of this machine" OFF)
option(PARSIMONY_UNITY "Compile eight files at a time" OFF)
set(PARSIMONY_PYTORCH "" CACHE PATH
  "The folder `torch` of an installed PyTorch, to take libtorch from; empty: see ParsimonyTorch.cmake")
set(PARSIMONY_SANITIZE "" CACHE STRING
  "Build with sanitizers: \"address\", which looks for undefined behaviour too, or \"thread\"")

# Where tools/setup.sh puts what is not of the distribution.
set(PARSIMONY_CACHE "$ENV{PARSIMONY_CACHE}")
if(NOT PARSIMONY_CACHE)
  set(PARSIMONY_CACHE "$ENV{XDG_CACHE_HOME}")
  if(NOT PARSIMONY_CACHE)
    set(PARSIMONY_CACHE "$ENV{HOME}/.cache")
  endif()
  string(APPEND PARSIMONY_CACHE "/parsimony")
endif()
set(PARSIMONY_TORCH_PYTHON "${PARSIMONY_CACHE}/torch/bin/python")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A test's or a user's own flags come after these.
if(PARSIMONY_SANITIZE)
  set(flags_of_address -fsanitize=address,undefined)
  if(PARSIMONY_TORCH)
    list(APPEND flags_of_address -fno-sanitize=vptr)  # libtorch hides what it knows of some types
  endif()
  set(flags_of_thread -fsanitize=thread)
  set(PARSIMONY_SANITIZER_FLAGS ${flags_of_${PARSIMONY_SANITIZE}})
  if(NOT PARSIMONY_SANITIZER_FLAGS)
    message(FATAL_ERROR "PARSIMONY_SANITIZE is address or thread, not ${PARSIMONY_SANITIZE}")
  endif()
  add_compile_options(${PARSIMONY_SANITIZER_FLAGS} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(${PARSIMONY_SANITIZER_FLAGS})
  add_compile_definitions(_GLIBCXX_ASSERTIONS)  # an index beyond a vector's end, wherever it points
endif()
if(PARSIMONY_NATIVE)
  add_compile_options(-march=native)
endif()

# Most of the time that a file takes goes into the headers of libtorch, protobuf, nlohmann_json and
# GoogleTest, which eight files share here: less than half the time for everything, more for a single
# change. What is in an anonymous namespace needs a name of its own among its target's files.
if(PARSIMONY_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
endif()

# Another build folder or clone of the same sources is no difference to the cache. There are no
# precompiled headers: GCC 12 writes 100 MB for onnx_pb.h, now and then a broken file, and a broken
# one in the cache breaks every later build; the gain is half a second per file, once.
find_program(PARSIMONY_CCACHE ccache)
mark_as_advanced(PARSIMONY_CCACHE)
if(PARSIMONY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${PARSIMONY_CCACHE}")
endif()
