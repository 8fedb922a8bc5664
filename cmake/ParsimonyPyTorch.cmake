# libtorch as PyTorch's package brings it: PARSIMONY_PYTORCH is the folder `torch` of an installed one.
# The package's own CMake files want a CUDA toolkit even of those who compile nothing for CUDA.

# cuda_runtime_api.h includes this one, which lies in another package.
find_path(PARSIMONY_CUDA_HEADERS crt/host_config.h NO_DEFAULT_PATH PATHS
  "${PARSIMONY_PYTORCH}/../nvidia/cu13/include" "${PARSIMONY_PYTORCH}/../nvidia/cuda_runtime/include"
  /usr/local/cuda/include /usr/include)
mark_as_advanced(PARSIMONY_CUDA_HEADERS)

add_library(torch INTERFACE IMPORTED GLOBAL)
# Beside its own headers lie those of a protobuf that is not the system's.
set(headers "${PROJECT_BINARY_DIR}/libtorch")
file(MAKE_DIRECTORY "${headers}")
foreach(folder IN ITEMS ATen c10 caffe2 torch)
  file(CREATE_LINK "${PARSIMONY_PYTORCH}/include/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()
target_include_directories(torch SYSTEM INTERFACE "${headers}"
  "${headers}/torch/csrc/api/include")
target_compile_definitions(torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
set(libraries c10 torch_cpu)
if(PARSIMONY_CUDA_HEADERS AND EXISTS "${PARSIMONY_PYTORCH}/lib/libtorch_cuda.so")
  list(APPEND libraries c10_cuda torch_cuda)
  target_include_directories(torch SYSTEM INTERFACE "${PARSIMONY_CUDA_HEADERS}")
  target_compile_definitions(torch INTERFACE PARSIMONY_CUDA)
endif()
list(TRANSFORM libraries REPLACE "(.+)" "${PARSIMONY_PYTORCH}/lib/lib\\1.so")
# Kernels register themselves when their library is loaded: nothing else asks for it. What it needs in
# turn is found where it runs.
target_link_libraries(torch INTERFACE -Wl,--no-as-needed ${libraries} -Wl,--as-needed
  -Wl,--allow-shlib-undefined "-Wl,-rpath,${PARSIMONY_PYTORCH}/lib")
