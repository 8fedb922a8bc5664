// Models without the elements of their weights: graphs of networks whose weights are elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony::onnx_io {

/// A tensor to fill into a skeleton.
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
  /// Modules whose weights may be in a checkpoint but not in the graph, such as classifiers used
  /// only in training.
  std::vector<std::string> ignored;
};

/// Returns the model in `bytes` without the elements of its weights, and without shapes except
/// those of its inputs: 100 kB, which compress to 10. Elements are kept if `is_constant(name)`, and
/// in weights of a few elements. @throws ModelError if the bytes are not an ONNX model
std::string skeleton_of(std::string_view bytes,
                        const std::function<bool(const std::string&)>& is_constant,
                        const std::vector<std::string>& ignored = {});

/// @throws ModelError if the bytes are not an ONNX model
Skeleton read_skeleton(std::string_view skeleton);

/// Writes the skeleton as a model with the weights that `fill` returns for their names; their dims
/// may differ from the skeleton's. Weights beyond 2 GB are written to `path`.data. @throws
/// ModelError, also if a weight remains without elements; IoError
void fill_skeleton(std::string_view skeleton,
                   const std::function<std::optional<Filling>(const SkeletonWeight&)>& fill,
                   const std::string& path);

}  // namespace parsimony::onnx_io
