// A network that an engine runs on inputs from host memory, without a dependency on libtorch.
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// The elements of an input or output, little-endian, row-major.
struct TensorBytes {
  std::string name;  ///< may be empty for outputs if the engine does not know it
  DType dtype = DType::kFloat32;
  Shape dims;
  std::vector<std::byte> bytes;

  bool operator==(const TensorBytes&) const = default;
};

/// The inputs or outputs of one run, in network order.
using TensorList = std::vector<TensorBytes>;

/// An operand of a node that selects among numbers (TopK, comparisons, rounding), in two networks.
struct ComparedChoice {
  std::string node;  ///< its display name
  size_t operand = 0;
  TensorBytes recorded;  ///< empty if the first network did not run the node
  TensorBytes found;     ///< empty if the second did not
};

/// The operands of nodes that select among numbers. A run with an empty record fills it; in a later
/// run of another network on the same engine, these nodes use the recorded operands.
struct ChoiceRecord {
  std::any recorded;                     ///< engine-specific
  std::vector<ComparedChoice> compared;  ///< filled by the later run
};

struct RunOptions {
  /// Compute by other kernels, or in another order, so that only rounding differs.
  bool otherwise = false;
  ChoiceRecord* choices = nullptr;  ///< left empty by engines that cannot record
};

/// A network loaded by an engine.
class Network {
 public:
  virtual ~Network() = default;

  /// The outputs for each of several inputs.
  virtual std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                                      const RunOptions& options) = 0;
  std::vector<TensorList> run(const std::vector<TensorList>& inputs) { return run(inputs, {}); }

  /// Copies inputs into engine-specific memory, for `compute`.
  /// @throws UnsupportedError for types that the engine does not support
  virtual void bind(const TensorList& inputs) = 0;

  /// Computes the outputs of the bound inputs once, in the engine's memory, without further copies
  /// or conversions.
  virtual void compute() = 0;

  /// Copies of the outputs of the last `compute`; none before.
  virtual TensorList outputs() = 0;

  /// The most memory that the engine took for values between inputs and outputs, and for outputs,
  /// in any run so far; empty: it does not count.
  virtual std::optional<int64_t> peak_bytes() { return {}; }
};

}  // namespace parsimony
