// Samples of one input of a network, read when they are needed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/engines/network.h"

namespace parsimony {

class InputSource {
 public:
  virtual ~InputSource() = default;

  virtual int64_t samples() const = 0;
  /// Behind these, to test on: numbered on.
  virtual int64_t test_samples() const { return 0; }

  /// [count, …], of the type in which they are kept. The bounds must hold.
  virtual TensorBytes rows(int64_t first, int64_t count) const = 0;

  /// Of one sample; nothing where there are no labels.
  virtual std::optional<Shape> label_dims() const { return {}; }
  /// [count, ..label_dims]
  virtual std::vector<int64_t> labels(int64_t /*first*/, int64_t /*count*/) const { return {}; }
};

}  // namespace parsimony
