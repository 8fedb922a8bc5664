# Run as a script: writes OUTPUT, a C++ source with a hash of the header ENTRY in ROOT and of all of
# ours that it includes, and DEPFILE, which names them.

cmake_minimum_required(VERSION 3.25)

set(open "${ENTRY}")
set(known)
while(open)
  list(POP_FRONT open header)
  if(header IN_LIST known)
    continue()
  endif()
  list(APPEND known "${header}")
  file(STRINGS "${ROOT}/${header}" lines REGEX "^#include \"parsimony/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"parsimony/([^\"]+)\".*" "\\1" other "${line}")
    list(APPEND open "${other}")
  endforeach()
endwhile()
list(SORT known)
set(sums)
foreach(header IN LISTS known)
  file(SHA256 "${ROOT}/${header}" sum)
  string(APPEND sums "${header} ${sum}\n")
endforeach()
string(SHA256 hash "${sums}")
file(WRITE "${OUTPUT}" "// Written by cmake/HashInterface.cmake.
#include \"parsimony/api/torch_component.h\"

namespace parsimony {

const char* torch_interface() { return \"${hash}\"; }

}  // namespace parsimony
")
list(TRANSFORM known PREPEND "${ROOT}/")
list(JOIN known " " headers)
file(WRITE "${DEPFILE}" "${OUTPUT}: ${headers}\n")
