// A file with one NumPy array.
#pragma once

#include <cstdint>
#include <string>

#include "parsimony/base/types.h"
#include "parsimony/training/data/data_file_impl.h"

namespace parsimony::training {

struct NpyArray {
  DataFile file;
  std::string descr;  ///< without the byte order: "f4"
  Shape dims;
  int64_t data = 0;  ///< byte at which the elements begin

  int64_t count() const { return dims.front(); }
};

/// Reads the file and its header; does not check that all elements are present.
/// @throws IoError; ModelError for what is no array or has no element; UnsupportedError for Fortran
/// order and for elements that are not little-endian
NpyArray read_npy_array(const std::string& path);

}  // namespace parsimony::training
