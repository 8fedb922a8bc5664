// Arrays in NumPy's file format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony {

struct NpyHeader {
  std::string descr;  ///< without the byte order: "f4"
  Shape dims;
  int64_t data = 0;  ///< byte at which the elements begin; they may not all be there
};

/// @throws ModelError for what is no array; UnsupportedError for Fortran order and for elements
/// that are not little-endian
NpyHeader parse_npy(std::string_view bytes, std::string_view file_name);

namespace errors {

ModelError ends_early(std::string_view file, int64_t size, int64_t requested,
                      std::string_view what);
ModelError bad_array(std::string_view file, int64_t offset, std::string_view why);
UnsupportedError bad_element(std::string_view file, std::string_view descr,
                             std::string_view requested);

}  // namespace errors
}  // namespace parsimony
