// Arrays in files that are mapped into memory, and arrays as inputs of a network.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/data/data_file.h"
#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

struct ArrayView {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape dims;
  std::span<const std::byte> bytes;  ///< little-endian, in C order
  std::string file;                  ///< "x.npz: a.npy", for messages
  int64_t begin = 0;                 ///< byte of it at which they begin

  /// Returns rows along the first axis; the range must be valid.
  TensorBytes rows(int64_t first, int64_t count) const;
  TensorBytes all() const;
};

/// Returns the array of a .npy file. @throws ModelError for malformed or truncated files;
/// UnsupportedError for Fortran order, other byte orders and other types
ArrayView array_in(const DataFile& file, std::string name);

/// Returns NumPy's name of the type: "f4".
std::string_view descr_of(DType type);

/// The arrays of "npz:FILE" (of numpy.savez), "safetensors:FILE" or "npy:NAME=FILE,…", in order.
/// The prefix may be omitted if the file has that extension.
class ArrayFiles {
 public:
  /// @throws ConfigError for another source; IoError, ModelError, UnsupportedError
  explicit ArrayFiles(const std::string& source);

  const std::vector<ArrayView>& arrays() const { return arrays_; }

  void add_npz(const std::string& path);
  /// @param list  "NAME=FILE,…"
  void add_npy(const std::string& list);
  void add_safetensors(const std::string& path);

 private:
  const DataFile& open(const std::string& path);

  std::deque<DataFile> files_;
  std::deque<ZipReader> zips_;
  std::vector<ArrayView> arrays_;
};

/// Returns the index of an array's input: by name, or by number for names made by numpy.savez
/// ("arr_0"); graph.inputs.size() if there is none.
size_t input_of(const Graph& graph, std::string_view array);
ConfigError no_such_input(const Graph& graph, std::string_view array, const Shape& dims);

/// Converts the elements to another type, keeping their values. @throws ModelError, naming the
/// element, if one is no number of the type
TensorBytes converted(TensorBytes array, DType type);

/// Returns whether an array of this name has the samples' labels.
bool names_labels(std::string_view array);

/// Returns copies of all arrays of ArrayFiles(source). @throws like ArrayFiles
TensorList read_arrays(const std::string& source);

/// Returns the arrays in the order of the graph's inputs and with their element types. Arrays are
/// assigned by name, or by position where numpy.savez made up the names ("arr_0"). An input without
/// an array has no elements.
/// @throws ConfigError, naming the array, if there is no such input, or the model fixes another
/// shape; ModelError if an element does not fit the input's type
TensorList place_sample(TensorList arrays, const Graph& graph);

/// Returns the specs, completed by the shapes of the sample's arrays.
std::vector<InputSpec> with_shapes_of(const TensorList& sample, std::vector<InputSpec> specs);

}  // namespace parsimony
