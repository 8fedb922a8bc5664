// A network that some engine runs on inputs from host memory; libtorch need not be there.
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// The elements of an input or output, little-endian, row-major.
struct TensorBytes {
  std::string name;  ///< may be empty for outputs, where an engine does not know it
  DType dtype = DType::kFloat32;
  Shape dims;
  std::vector<std::byte> bytes;
};

/// The inputs or outputs of one run, in the network's order.
using TensorList = std::vector<TensorBytes>;

/// An operand from which a node chooses (TopK, comparisons, rounding), in two networks.
struct ComparedChoice {
  std::string node;  ///< what messages call it
  size_t operand = 0;
  TensorBytes recorded;  ///< without elements where the first network had no such run
  TensorBytes found;     ///< without elements where the second did not ask
};

/// What the nodes of a network choose from. The first run that is given an empty record fills it;
/// in a later run of another network of the same engine, nodes choose from what was recorded.
struct ChoiceRecord {
  std::any recorded;                     ///< the engine's own
  std::vector<ComparedChoice> compared;  ///< filled by the later run
};

struct RunOptions {
  /// Compute by other kernels, or in another order, than usual: what differs is rounding.
  bool otherwise = false;
  ChoiceRecord* choices = nullptr;  ///< engines that cannot record leave it empty
};

/// A network made ready by an engine.
class Network {
 public:
  virtual ~Network() = default;

  /// The outputs for each of several inputs.
  virtual std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                                      const RunOptions& options) = 0;
  std::vector<TensorList> run(const std::vector<TensorList>& inputs) { return run(inputs, {}); }

  /// Copies inputs into the engine's own memory: what `compute` is to be timed on.
  /// @throws UnsupportedError for types that the engine does not have
  virtual void bind(const TensorList& inputs) = 0;

  /// Computes the outputs of what is bound once, into memory of the engine. Nothing is copied or
  /// converted besides.
  virtual void compute() = 0;

  /// Copies of the outputs of the last `compute`; none before.
  virtual TensorList outputs() = 0;
};

}  // namespace parsimony
