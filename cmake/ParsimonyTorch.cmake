# The target `torch`: libtorch from the first of
#
#   PARSIMONY_PYTORCH   the folder `torch` of an installed PyTorch
#   Torch_DIR           as for find_package(Torch)
#   python3             the PyTorch of the one in the path: of pyenv, conda, a virtual environment
#   tools/setup.sh      the one that it installed
#   find_package(Torch) a package of the distribution, 2.6 or later
#
# The CMake files of PyTorch's own packages want a CUDA toolkit even of those who compile nothing for
# CUDA, so these packages are described here. Torch_FOUND says whether there is one.
if(TARGET torch)
  return()
endif()

# The folder, if it is one of PyTorch's own packages. Those before 2.7 have the ABI of C++ before C++11, with
# which no other library here can be linked.
function(parsimony_pytorch_folder result folder)
  set(version 0)
  if(EXISTS "${folder}/version.py" AND EXISTS "${folder}/include/torch/csrc/api/include/torch/torch.h")
    file(STRINGS "${folder}/version.py" version REGEX "^__version__ = ")
    string(REGEX REPLACE ".*'([0-9.]+).*" "\\1" version "${version}")
  endif()
  if(version VERSION_GREATER_EQUAL 2.7 AND EXISTS "${folder}/lib/libtorch_cpu.so")
    set(${result} "${folder}" PARENT_SCOPE)
  endif()
endfunction()

set(pytorch "${PARSIMONY_PYTORCH}")
if(NOT pytorch AND Torch_DIR)
  get_filename_component(folder "${Torch_DIR}/../../.." ABSOLUTE)
  parsimony_pytorch_folder(pytorch "${folder}")
elseif(NOT pytorch)
  execute_process(COMMAND python3 -c "import importlib.util
found = importlib.util.find_spec('torch')
print(list(found.submodule_search_locations)[0] if found else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  parsimony_pytorch_folder(pytorch "${folder}")
endif()
if(NOT pytorch AND NOT Torch_DIR AND PARSIMONY_CACHE)
  file(GLOB folder "${PARSIMONY_CACHE}/torch/lib/python*/site-packages/torch")
  parsimony_pytorch_folder(pytorch "${folder}")
endif()

if(NOT pytorch)
  find_package(Torch QUIET)
  if(Torch_VERSION VERSION_LESS 2.6)
    set(Torch_FOUND FALSE)
    unset(Torch_DIR CACHE)  # next time another may be there
  endif()
  return()
endif()
set(Torch_FOUND TRUE)
message(STATUS "libtorch of ${pytorch}")

# cuda_runtime_api.h includes this one, which lies in another package.
find_path(PARSIMONY_CUDA_HEADERS crt/host_config.h NO_DEFAULT_PATH PATHS
  "${pytorch}/../nvidia/cu13/include" "${pytorch}/../nvidia/cuda_runtime/include"
  /usr/local/cuda/include /usr/include)
mark_as_advanced(PARSIMONY_CUDA_HEADERS)

add_library(torch INTERFACE IMPORTED GLOBAL)
# Beside its own headers lie those of a protobuf that is not the system's.
set(headers "${PROJECT_BINARY_DIR}/libtorch")
file(MAKE_DIRECTORY "${headers}")
foreach(folder IN ITEMS ATen c10 caffe2 torch)
  file(CREATE_LINK "${pytorch}/include/${folder}" "${headers}/${folder}" SYMBOLIC)
endforeach()
target_include_directories(torch SYSTEM INTERFACE "${headers}"
  "${headers}/torch/csrc/api/include")
target_compile_definitions(torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
set(libraries c10 torch_cpu)
if(PARSIMONY_CUDA_HEADERS AND EXISTS "${pytorch}/lib/libtorch_cuda.so")
  list(APPEND libraries c10_cuda torch_cuda)
  target_include_directories(torch SYSTEM INTERFACE "${PARSIMONY_CUDA_HEADERS}")
  target_compile_definitions(torch INTERFACE PARSIMONY_CUDA)
endif()
list(TRANSFORM libraries REPLACE "(.+)" "${pytorch}/lib/lib\\1.so")
# Kernels register themselves when their library is loaded: nothing else asks for it. What it needs in
# turn is found where it runs.
target_link_libraries(torch INTERFACE -Wl,--no-as-needed ${libraries} -Wl,--as-needed
  -Wl,--allow-shlib-undefined "-Wl,-rpath,${pytorch}/lib")
