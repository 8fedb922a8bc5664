// NumPy's files, and tensors of numbers.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/engines/network.h"

namespace parsimony::test {

template <typename T>
std::string bytes_of(const std::vector<T>& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)};
}

/// An array of elements such as "<f4" and a shape such as "(2, 3)".
template <typename T>
std::string npy(const std::string& descr, const std::string& shape,
                const std::vector<T>& elements) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  std::string text = "\x93NUMPY";
  text += {'\1', '\0', static_cast<char>(header.size()), '\0'};
  return text + header + bytes_of(elements);
}

/// As numpy.savez does.
inline void write_npz(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& arrays) {
  NewFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, content] : arrays) zip.add(name + ".npy", content);
  zip.finish();
  file.commit();
}

inline TensorBytes tensor(const std::string& name, Shape dims, const std::vector<float>& values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {name, DType::kFloat32, std::move(dims), {bytes, bytes + 4 * values.size()}};
}

template <typename T>
std::vector<T> elements(const TensorBytes& tensor) {
  std::vector<T> found(tensor.bytes.size() / sizeof(T));
  std::memcpy(found.data(), tensor.bytes.data(), tensor.bytes.size());
  return found;
}

}  // namespace parsimony::test
