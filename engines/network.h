// Networks that an engine runs, and their inputs and outputs.
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

/// A tensor in its engine's memory: on the host, in a runtime, or on a device. Immutable and
/// thread-safe.
class EngineTensor {
 public:
  virtual ~EngineTensor() = default;

  virtual DType dtype() const = 0;
  virtual Shape dims() const = 0;
  /// Returns a copy without a name.
  virtual TensorBytes to_host() const = 0;
};

/// Null: none.
using EngineValue = std::shared_ptr<const EngineTensor>;
using EngineValues = std::vector<EngineValue>;

/// Returns a value in host memory, which any engine accepts.
EngineValue host_value(TensorBytes tensor);
EngineValues host_values(TensorList tensors);
/// Copies values to host memory.
TensorList on_host(const EngineValues& values);

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
  /// Use other kernels or another order of operations, so that only rounding differs.
  bool alternate_kernels = false;
  ChoiceRecord* choices = nullptr;  ///< left empty by engines that cannot record
};

/// A network loaded by an engine.
class Network {
 public:
  virtual ~Network() = default;

  /// Returns the outputs for each of several inputs.
  virtual std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                                      const RunOptions& options) = 0;
  std::vector<TensorList> run(const std::vector<TensorList>& inputs) { return run(inputs, {}); }

  /// Computes outputs from inputs in network order; both may be in this engine's memory, inputs
  /// also in host memory. Thread-safe.
  virtual EngineValues forward(const EngineValues& inputs);

  /// Copies inputs into engine-specific memory, for `compute`.
  /// @throws UnsupportedError for types that the engine does not support
  virtual void bind(const TensorList& inputs) = 0;

  /// Computes the outputs of the bound inputs once, in the engine's memory, without further copies
  /// or conversions.
  virtual void compute() = 0;

  /// Returns copies of the outputs of the last `compute`; none before.
  virtual TensorList outputs() = 0;

  /// Returns the peak memory of intermediate values and outputs over all runs; empty if not
  /// measured.
  virtual std::optional<int64_t> peak_bytes() { return {}; }
};

}  // namespace parsimony
