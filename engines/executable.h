// A network that some engine runs on inputs from host memory; libtorch need not be there.
#pragma once

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

/// A network with its inputs in the engine's own memory: what is to be timed.
class BoundRun {
 public:
  virtual ~BoundRun() = default;

  /// Computes the outputs once, into memory of the engine. Nothing is copied or converted besides.
  virtual void run() = 0;

  /// Copies of the outputs of the last run, in the network's order.
  virtual std::vector<TensorBytes> outputs() = 0;
};

/// A network made ready by an engine.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Hands copies of the inputs, in the network's order, to the engine. The result must not outlive
  /// this. @throws UnsupportedError for types that the engine does not have
  virtual std::unique_ptr<BoundRun> bind(const std::vector<TensorBytes>& inputs) = 0;
};

}  // namespace parsimony
