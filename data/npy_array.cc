#include "parsimony/data/errors.h"
#include "parsimony/data/npy_array_impl.h"

namespace parsimony {

NpyArray read_npy_array(const std::string& path) {
  DataFile file = read_data_file(path);
  NpyHeader header = parse_npy(file.bytes, path);
  if (header.dims.empty() || element_count(header.dims) == 0) throw errors::no_samples(path);
  return {std::move(header), std::move(file)};
}

}  // namespace parsimony
