// How far a small network's outputs are from the dense one's.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/api/reference.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// Returns what cuts the dense network's inputs and outputs to those of a small one.
InputSlicer slicer_of(const SmallNetwork& small);

/// The outputs of a network for the batches of a source, while they take at most 256 MB.
class KnownOutputs {
 public:
  /// Returns those of batch `b`; null if they are not known.
  const TensorList* find(int64_t b) const { return b < std::ssize(known_) ? &known_[b] : nullptr; }
  /// Adds those of batch `b`, if it is the next one.
  void add(int64_t b, TensorList outputs);

 private:
  std::vector<TensorList> known_;
  int64_t bytes_ = 0;
};

/// ‖small − dense‖ / ‖dense‖ (Frobenius) over all floating-point outputs, at the indices that both
/// have, and all batches; 0 if both are zero. Outputs that are fed back are not compared, unless
/// there are no others. @param dense  on the engine
/// @param feed, small_feed  the same batches, as each network takes them
/// @param known  outputs of the dense network, which are computed where they are not known
double output_error(Engine& engine, Part& dense, const SmallNetwork& small, const ValueSource& feed,
                    const ValueSource& small_feed, KnownOutputs& known);

}  // namespace parsimony
