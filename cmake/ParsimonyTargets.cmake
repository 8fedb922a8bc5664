# How rooms, the command, benchmarks and fuzzers become targets.

# `#include "parsimony/graph/graph.h"` reads the same here, in a fresh clone and where we are
# installed: include/parsimony/ has a link to each room that is a library. What only the command has,
# its own files and the networks that it knows, has links in cmake/command/parsimony/.
set(PARSIMONY_INCLUDE_ROOT "${PROJECT_SOURCE_DIR}/include")
set(PARSIMONY_COMMAND_INCLUDE_ROOT "${PROJECT_SOURCE_DIR}/cmake/command")

# Warnings stay private: they must not reach a user who links us. Those that are silenced are
# wrong about std::string with optimisation on (GCC bugs 105329 and 105651) and, where the address
# sanitizer is on, about std::regex (105562). Clang's -Wconversion holds subscripts to one sign;
# GCC's does not.
function(parsimony_warnings target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wshadow -Wconversion
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow;-Wno-array-bounds>"
    "$<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${PARSIMONY_SANITIZE}>>:-Wno-maybe-uninitialized>"
    $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
    $<$<BOOL:${PARSIMONY_WERROR}>:-Werror>)
endfunction()

# parsimony_rooms(TABLE): the targets of all rooms; cmake/rooms.txt says what its columns are. The
# rooms that need libtorch are PARSIMONY_TORCH_ROOMS: the command and most tests do without them.
function(parsimony_rooms table)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${table}")
  file(STRINGS "${table}" rows REGEX "^[a-z]")
  foreach(row IN LISTS rows)
    string(REPLACE ";" "," row "${row}")  # in what it owns
    string(REPLACE "|" ";" row "${row}")
    foreach(cell room owns below used shown packages public_packages)
      list(POP_FRONT row ${cell})
      string(STRIP "${${cell}}" ${cell})
      string(REPLACE " " ";" ${cell} "${${cell}}")
    endforeach()
    if("torch" IN_LIST public_packages)
      list(APPEND PARSIMONY_TORCH_ROOMS ${room})
      if(NOT PARSIMONY_TORCH)
        continue()
      endif()
    endif()
    if(room STREQUAL "cli")
      parsimony_command(${room} ${packages} ${public_packages})
    elseif(room STREQUAL "cli/torch")
      parsimony_component(${room})
    else()
      parsimony_room(${room} DEPENDS ${below} PACKAGES ${packages}
        PUBLIC_PACKAGES ${public_packages})
    endif()
  endforeach()
  set(PARSIMONY_TORCH_ROOMS ${PARSIMONY_TORCH_ROOMS} PARENT_SCOPE)
endfunction()

# A room is a folder and a library of everything in it. DEPENDS are the rooms below it; PACKAGES are
# third-party libraries that only our .cc files know, PUBLIC_PACKAGES those that our headers show.
function(parsimony_room name)
  cmake_parse_arguments(room "" "" "DEPENDS;PACKAGES;PUBLIC_PACKAGES" ${ARGN})
  set(folder "${PROJECT_SOURCE_DIR}/${name}")
  set(target parsimony_${name})
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc" "${folder}/*/*.cc")

  if(sources)
    add_library(${target} ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${room_PACKAGES} PUBLIC ${room_PUBLIC_PACKAGES})
    parsimony_warnings(${target})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  list(TRANSFORM room_DEPENDS PREPEND parsimony_)
  target_link_libraries(${target} ${scope} ${room_DEPENDS})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PARSIMONY_INCLUDE_ROOT}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  if(sources)
    # The component is a shared library of rooms; no other library replaces their functions.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  add_library(parsimony::${name} ALIAS ${target})
  set_property(GLOBAL APPEND PROPERTY PARSIMONY_ROOMS ${name})
endfunction()

# The analysis makes many small vectors that live long. The C library's allocator needs twice the
# time for them, and more than its share when there are many.
function(parsimony_allocator program)
  if(mimalloc_FOUND)
    target_link_libraries(${program} PRIVATE mimalloc)
    target_compile_definitions(${program} PRIVATE PARSIMONY_HAS_MIMALLOC)
  endif()
endfunction()

# The `parsimony` command from the files of a folder, linked with all rooms and the packages that
# follow; lands in <build>/bin.
function(parsimony_command folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  get_property(rooms GLOBAL PROPERTY PARSIMONY_ROOMS)
  list(REMOVE_ITEM rooms ${PARSIMONY_TORCH_ROOMS})  # comes as a component, when it is needed
  list(TRANSFORM rooms PREPEND parsimony::)
  add_executable(parsimony ${sources})
  target_link_libraries(parsimony PRIVATE ${rooms} ${ARGN})
  target_include_directories(parsimony PRIVATE "${PARSIMONY_COMMAND_INCLUDE_ROOT}")
  # ONNX's checker serves the component only.
  target_link_options(parsimony PRIVATE LINKER:--as-needed)
  parsimony_allocator(parsimony)
  if(PARSIMONY_STATIC)
    target_link_libraries(parsimony PRIVATE parsimony_static)
  endif()
  target_compile_definitions(parsimony PRIVATE PARSIMONY_VERSION="${PROJECT_VERSION}")
  set_target_properties(parsimony PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  parsimony_warnings(parsimony)
  # The graphs that checkpoints are recognised by; see api/known_networks.h.
  get_filename_component(place "${PROJECT_BINARY_DIR}/bin/${PARSIMONY_COMPONENT_FROM_BIN}" ABSOLUTE)
  configure_file("${PROJECT_SOURCE_DIR}/share/networks.zip" "${place}/networks.zip" COPYONLY)
endfunction()

# Where the command looks for its component, from the folder that it lies in: the same in the build
# tree and installed.
set(PARSIMONY_COMPONENT_FOLDER "${CMAKE_INSTALL_FULL_LIBDIR}/parsimony")
file(RELATIVE_PATH PARSIMONY_COMPONENT_FROM_BIN
  "${CMAKE_INSTALL_FULL_BINDIR}" "${PARSIMONY_COMPONENT_FOLDER}")

# All that needs libtorch, as a library that the command loads when it is first needed: libtorch
# brings hundreds of others, and half a second before main.
function(parsimony_component folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  get_property(rooms GLOBAL PROPERTY PARSIMONY_ROOMS)
  list(TRANSFORM rooms PREPEND parsimony::)
  add_library(parsimony_component MODULE ${sources})
  target_link_libraries(parsimony_component PRIVATE ${rooms})
  target_include_directories(parsimony_component PRIVATE "${PARSIMONY_COMMAND_INCLUDE_ROOT}")
  target_compile_definitions(parsimony_component PRIVATE PARSIMONY_VERSION="${PROJECT_VERSION}")
  get_filename_component(place "${PROJECT_BINARY_DIR}/bin/${PARSIMONY_COMPONENT_FROM_BIN}" ABSOLUTE)
  # One symbol leaves it: the command has rooms of the same names.
  set(symbols "${PROJECT_SOURCE_DIR}/${folder}/symbols.map")
  target_link_options(parsimony_component PRIVATE
    "LINKER:--version-script=${symbols}" LINKER:-z,defs)
  set_target_properties(parsimony_component PROPERTIES
    OUTPUT_NAME parsimony_torch PREFIX "" LINK_DEPENDS "${symbols}"
    LIBRARY_OUTPUT_DIRECTORY "${place}")
  parsimony_warnings(parsimony_component)
  # An interface that changed must not meet yesterday's component.
  if(NOT PARSIMONY_STATIC)  # no component goes with it
    add_dependencies(parsimony parsimony_component)
  endif()
endfunction()

# parsimony_hash_interface(TARGET HEADER): gives the target torch_interface(), a hash of the header and
# of all of ours that it includes. PARSIMONY_INTERFACE_HASH is its source file.
function(parsimony_hash_interface target header)
  set(output "${PROJECT_BINARY_DIR}/torch_interface.cc")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DENTRY=${header}"
      "-DOUTPUT=${output}" "-DDEPFILE=${output}.d" -P "${PROJECT_SOURCE_DIR}/cmake/HashInterface.cmake"
    DEPENDS "${PROJECT_SOURCE_DIR}/cmake/HashInterface.cmake"
    DEPFILE "${output}.d"
    COMMENT "Hashing the interface of the libtorch component" VERBATIM)
  set_source_files_properties("${output}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${output}")
  set(PARSIMONY_INTERFACE_HASH "${output}" PARENT_SCOPE)
endfunction()

# One executable per .cc file of a folder, linked with every room and with a library of the
# folder's support/, if there is one. EXCEPT: the names of files that are no such programs.
function(parsimony_programs folder)
  cmake_parse_arguments(arg "" "PREFIX" "EXCEPT;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  foreach(name IN LISTS arg_EXCEPT)
    list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/${folder}/${name}.cc")
  endforeach()
  file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/support/*.cc")
  get_property(rooms GLOBAL PROPERTY PARSIMONY_ROOMS)
  list(REMOVE_ITEM rooms ${PARSIMONY_TORCH_ROOMS})
  list(TRANSFORM rooms PREPEND parsimony::)
  if(support)
    add_library(${arg_PREFIX}support STATIC ${support})
    target_include_directories(${arg_PREFIX}support PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${arg_PREFIX}support PUBLIC ${rooms} ${arg_LINK})
    parsimony_warnings(${arg_PREFIX}support)
    set(arg_LINK ${arg_PREFIX}support)
  endif()
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${arg_PREFIX}${name} "${source}")
    target_include_directories(${arg_PREFIX}${name} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${arg_PREFIX}${name} PRIVATE ${rooms} ${arg_LINK})
    set_target_properties(${arg_PREFIX}${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
    parsimony_warnings(${arg_PREFIX}${name})
  endforeach()
endfunction()

function(parsimony_benchmarks folder)
  set(with_torch elements live_resnet50 script_memory training training_step)
  parsimony_programs(${folder} PREFIX bench_ EXCEPT baseline_test ${with_torch}
    LINK benchmark::benchmark ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf Eigen3::Eigen
      nlohmann_json::nlohmann_json)
  if(PARSIMONY_TORCH)
    foreach(name IN LISTS with_torch)
      add_executable(bench_${name} "${PROJECT_SOURCE_DIR}/${folder}/${name}.cc")
      target_include_directories(bench_${name} PRIVATE "${PROJECT_SOURCE_DIR}")
      target_link_libraries(bench_${name} PRIVATE bench_support parsimony::training)
      target_compile_definitions(bench_${name} PRIVATE
        PARSIMONY_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
        PARSIMONY_TORCH_PYTHON="${PARSIMONY_TORCH_PYTHON}")
      set_target_properties(bench_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
      parsimony_warnings(bench_${name})
    endforeach()
  endif()
  # These measure in their own process.
  parsimony_allocator(bench_check)
  parsimony_allocator(bench_physical)
  parsimony_allocator(bench_resnet50)
  parsimony_allocator(bench_growth)
  if(TARGET bench_training)
    parsimony_allocator(bench_training)
  endif()
  if(TARGET parsimony)
    add_dependencies(bench_support parsimony)
  endif()
endfunction()

# The rooms need coverage counters too, or the fuzzer would be blind inside them.
function(parsimony_fuzzers folder)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PARSIMONY_FUZZ=ON needs clang: -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  get_property(rooms GLOBAL PROPERTY PARSIMONY_ROOMS)
  foreach(room IN LISTS rooms)
    get_target_property(kind parsimony_${room} TYPE)
    if(NOT kind STREQUAL "INTERFACE_LIBRARY")
      target_compile_options(parsimony_${room} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endforeach()
  add_library(parsimony_fuzzing INTERFACE)
  target_compile_options(parsimony_fuzzing INTERFACE -fsanitize=fuzzer)
  target_link_options(parsimony_fuzzing INTERFACE -fsanitize=fuzzer)
  # A TorchScript file before libtorch sees it.
  add_library(fuzz_readers STATIC "${PROJECT_SOURCE_DIR}/torch_io/script/archive.cc")
  target_compile_options(fuzz_readers PRIVATE -fsanitize=fuzzer-no-link)
  target_link_libraries(fuzz_readers PUBLIC parsimony::api parsimony::checkpoints ZLIB::ZLIB)
  parsimony_programs(${folder} PREFIX fuzz_
    LINK parsimony_fuzzing fuzz_readers ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf)

  # What they start from is made of the tests' text fixtures.
  add_executable(make_seeds "${PROJECT_SOURCE_DIR}/${folder}/tools/make_seeds.cc"
    "${PROJECT_SOURCE_DIR}/tests/properties/workbench.cc"
    "${PROJECT_SOURCE_DIR}/tests/support/fixture.cc"
    "${PROJECT_SOURCE_DIR}/tests/support/temporary_folder.cc")
  target_include_directories(make_seeds PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(make_seeds PRIVATE PARSIMONY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  list(TRANSFORM rooms PREPEND parsimony::)
  target_link_libraries(make_seeds PRIVATE ${rooms} ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf
    Eigen3::Eigen)
  add_custom_command(TARGET make_seeds POST_BUILD
    COMMAND make_seeds "${PROJECT_BINARY_DIR}/${folder}/seeds")
endfunction()
