// Models without the elements of their weights: graphs of networks whose weights lie elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony::onnx_io {

/// A tensor that a skeleton is filled with.
struct Filling {
  DType dtype = DType::kUnknown;
  Shape dims;
  std::vector<std::byte> bytes;  ///< row-major, little-endian
};

/// A weight of a skeleton.
struct SkeletonWeight {
  std::string name;
  DType dtype = DType::kUnknown;
  Shape dims;
  bool filled = false;  ///< it has its elements: a constant
};

struct Skeleton {
  std::vector<SkeletonWeight> weights;
  /// Modules whose weights a checkpoint may have and the graph has not, such as the classifiers
  /// that only training uses.
  std::vector<std::string> ignored;
};

/// The model in `bytes` without the elements of its weights, and without shapes except those of its
/// inputs: 100 kB, which compress to 10. Elements stay where `is_constant`, given a name, says so,
/// and in weights of a few elements.
/// @throws ModelError if the bytes are no ONNX model
std::string skeleton_of(std::string_view bytes,
                        const std::function<bool(const std::string&)>& is_constant,
                        const std::vector<std::string>& ignored = {});

/// @throws ModelError if the bytes are no ONNX model
Skeleton read_skeleton(std::string_view skeleton);

/// Writes the skeleton as a model whose weights have what `fill` gives for their names; their
/// dims may be others than the skeleton's. What a model of 2 GB cannot hold lies in `path`.data.
/// @throws ModelError, also if a weight remains without elements; IoError
void fill_skeleton(std::string_view skeleton,
                   const std::function<std::optional<Filling>(const SkeletonWeight&)>& fill,
                   const std::string& path);

}  // namespace parsimony::onnx_io
