// A file with one NumPy array.
#pragma once

#include <cstdint>
#include <string>

#include "parsimony/base/npy.h"
#include "parsimony/data/data_file_impl.h"

namespace parsimony {

struct NpyArray : NpyHeader {
  DataFile file;

  int64_t count() const { return dims.front(); }
};

/// Reads the file and its header; does not check that all elements are present.
/// @throws IoError; ModelError for what is no array or has no element; UnsupportedError for Fortran
/// order and for elements that are not little-endian
NpyArray read_npy_array(const std::string& path);

}  // namespace parsimony
