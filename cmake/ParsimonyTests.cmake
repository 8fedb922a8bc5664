# How the folders of tests/ become test programs.

include(GoogleTest)

set(PARSIMONY_TEST_DATA "$ENV{PARSIMONY_TEST_DATA}" CACHE PATH
    "Folder with real models and data sets; empty: tests that need it are skipped")
if(NOT PARSIMONY_TEST_DATA AND EXISTS "${PROJECT_SOURCE_DIR}/../shared/models")
  get_filename_component(PARSIMONY_TEST_DATA "${PROJECT_SOURCE_DIR}/../shared" ABSOLUTE)
endif()
if(NOT PARSIMONY_TEST_DATA)
  message(STATUS "No test data (PARSIMONY_TEST_DATA): tests over real models will be skipped")
endif()

# What ctest gives its tests. Not by the property ENVIRONMENT: gtest_discover_tests() loses all but
# the first of several. The same random networks in every run; a test run by hand, or with
# RC_PARAMS set, takes others and prints its seed.
set(environment "set(ENV{PARSIMONY_TEST_DATA} \"${PARSIMONY_TEST_DATA}\")
if(NOT DEFINED ENV{RC_PARAMS})
  set(ENV{RC_PARAMS} seed=20261120)
endif()
")
# libtorch keeps what it allocates until the process ends, and ThreadSanitizer does not know how
# OpenMP synchronises: leaks are looked for without libtorch, races on one thread of OpenMP.
if(PARSIMONY_SANITIZE)
  set(leaks "suppressions=${PROJECT_SOURCE_DIR}/tests/leaks.txt:print_suppressions=0")
  set(races "suppressions=${PROJECT_SOURCE_DIR}/tests/races.txt")
  string(APPEND environment "set(ENV{LSAN_OPTIONS} \"${leaks}\")
set(ENV{TSAN_OPTIONS} \"${races}\")\n")
  if(PARSIMONY_TORCH)
    string(APPEND environment "set(ENV{ASAN_OPTIONS} detect_leaks=0:allocator_may_return_null=1)
set(ENV{OMP_NUM_THREADS} 1)\n")
  endif()
endif()
file(WRITE "${PROJECT_BINARY_DIR}/tests/environment.cmake" "${environment}")
set_property(DIRECTORY APPEND PROPERTY
  TEST_INCLUDE_FILES "${PROJECT_BINARY_DIR}/tests/environment.cmake")

# tests/support/ is a library that every test may use: "tests/support/fixture.h". It knows graph/
# and onnx_io/, which read the fixtures, so that a room's tests build without the rooms above it.
function(parsimony_test_support)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/support/*.cc")
  set(scope INTERFACE)
  if(sources)
    add_library(parsimony_test_support STATIC ${sources})
    set(scope PUBLIC)
    target_compile_definitions(parsimony_test_support PRIVATE
      PARSIMONY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    parsimony_warnings(parsimony_test_support)
  else()
    add_library(parsimony_test_support INTERFACE)
  endif()
  target_include_directories(parsimony_test_support ${scope} "${PROJECT_SOURCE_DIR}")
  target_link_libraries(parsimony_test_support ${scope}
    parsimony::graph parsimony::onnx_io ONNX::onnx ONNX::onnx_proto protobuf::libprotobuf
    nlohmann_json::nlohmann_json Eigen3::Eigen
    GTest::gtest rapidcheck Threads::Threads)
endfunction()

function(parsimony_test_program name label rooms)
  add_executable(${name} ${ARGN})
  list(TRANSFORM rooms PREPEND parsimony::)
  target_link_libraries(${name} PRIVATE ${rooms} parsimony_test_support GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    PARSIMONY_BINARY="${PROJECT_BINARY_DIR}/bin/parsimony"
    PARSIMONY_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    PARSIMONY_HAS_TORCH=$<BOOL:${PARSIMONY_TORCH}>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  parsimony_warnings(${name})
  # The rooms are optimised; the tests themselves compile in two thirds of the time without.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  if(TARGET parsimony AND name MATCHES "^test_cli")
    add_dependencies(${name} parsimony)
  endif()
  list(TRANSFORM PARSIMONY_TORCH_ROOMS PREPEND parsimony:: OUTPUT_VARIABLE torch_rooms)
  list(JOIN torch_rooms "|" torch_rooms)
  list(FILTER rooms INCLUDE REGEX "^(${torch_rooms})$")
  if(rooms)
    parsimony_discover_suites(${name} ${label})
  else()
    gtest_discover_tests(${name}
      DISCOVERY_MODE PRE_TEST
      WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
      PROPERTIES LABELS ${label})
  endif()
endfunction()

# Every suite of a program is a test. For programs that load libtorch, which takes longer than most
# of their tests.
function(parsimony_discover_suites name label)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake")
  set(include "${CMAKE_CURRENT_BINARY_DIR}/${name}_suites_include.cmake")
  file(GENERATE OUTPUT "${include}" CONTENT "
set(PROGRAM \"$<TARGET_FILE:${name}>\")
set(OUTPUT \"${list}\")
set(LABEL ${label})
set(FOLDER \"${PROJECT_SOURCE_DIR}\")
if(NOT EXISTS \"\${PROGRAM}\")
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
else()
  if(\"\${PROGRAM}\" IS_NEWER_THAN \"\${OUTPUT}\")
    include(\"${PROJECT_SOURCE_DIR}/cmake/ListSuites.cmake\")
  endif()
  include(\"${list}\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include}")
endfunction()

# parsimony_tests(FOLDER): the programs test_FOLDER from tests/FOLDER/*.cc, labelled `fast`, and
# test_FOLDER_slow from the files that end in _slow_test.cc. Files that do not end in _test.cc
# are helpers of both. A folder named as a room is linked with that room, any other with all.
function(parsimony_tests room)
  get_property(rooms GLOBAL PROPERTY PARSIMONY_ROOMS)
  if(room IN_LIST rooms)
    set(rooms ${room})
  else()
    list(REMOVE_ITEM rooms ${PARSIMONY_TORCH_ROOMS})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cc")
  set(slow ${sources})
  set(fast ${sources})
  set(helpers ${sources})
  list(FILTER helpers EXCLUDE REGEX "_test\\.cc$")
  list(FILTER slow INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER fast INCLUDE REGEX "_test\\.cc$")
  list(FILTER fast EXCLUDE REGEX "_slow_test\\.cc$")
  if(fast)
    parsimony_test_program(test_${room} fast "${rooms}" ${fast} ${helpers})
  endif()
  if(slow)
    parsimony_test_program(test_${room}_slow slow "${rooms}" ${slow} ${helpers})
  endif()
endfunction()

# A test that is a script: it passes by exit code 0. Tools that it needs were found at configure time.
function(parsimony_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS fast)
endfunction()
