# Installs the package into WORK, then configures, builds and runs the project in SOURCE with it.

function(step what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${output}")
  endif()
  message(STATUS "${what}: done")
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")
step(install "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")

# A header that is there only in our tree would show here, and so would a private one that is not.
file(GLOB_RECURSE private "${WORK}/prefix/include/*_impl.h")
if(private)
  message(FATAL_ERROR "private headers were installed: ${private}")
endif()

step(configure "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${WORK}/build"
     "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_COMPILER=${CXX}"
     "-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
     -DCMAKE_BUILD_TYPE=Release "-DTORCH=${TORCH}")
step(build "${CMAKE_COMMAND}" --build "${WORK}/build")
step(run "${WORK}/build/consumer" "${MODEL}" "${WORK}/same.onnx" "${WORK}/small.onnx")

if(TORCH)
  step("prune a module" "${WORK}/build/live")
endif()

file(SHA256 "${MODEL}" before)
file(SHA256 "${WORK}/same.onnx" after)
if(NOT before STREQUAL after)
  message(FATAL_ERROR "an unchanged model did not come out byte for byte")
endif()
file(SIZE "${MODEL}" before)
file(SIZE "${WORK}/small.onnx" after)
if(NOT after LESS before)
  message(FATAL_ERROR "the pruned model has ${after} bytes, the original ${before}")
endif()
