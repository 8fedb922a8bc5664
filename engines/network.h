// Networks that an engine runs, and the values that they take and give.
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

/// A tensor where its engine has it: in host memory, in a runtime's, on a device. It does not
/// change, and several threads may read it.
class EngineTensor {
 public:
  virtual ~EngineTensor() = default;

  virtual DType dtype() const = 0;
  virtual Shape dims() const = 0;
  /// A copy, without a name.
  virtual TensorBytes to_host() const = 0;
};

/// Null: none.
using EngineValue = std::shared_ptr<const EngineTensor>;
using EngineValues = std::vector<EngineValue>;

/// In host memory; any engine takes it.
EngineValue host_value(TensorBytes tensor);
EngineValues host_values(TensorList tensors);

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
  bool alternate_kernels = false;
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

  /// From values of this engine, or in host memory, in the order of the network's inputs to its
  /// outputs, which stay with the engine. Several threads may call it.
  virtual EngineValues forward(const EngineValues& inputs);

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
