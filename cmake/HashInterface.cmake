# Run as a script: writes OUTPUT, a C++ source with a hash of the header ENTRY in ROOT and of all of
# ours that it includes, and DEPFILE, which names them.

include("${CMAKE_CURRENT_LIST_DIR}/IncludedHeaders.cmake")
parsimony_included_headers(known "${ROOT}" "${ENTRY}")
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
