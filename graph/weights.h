// Which of a network's weights training may change.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A source that tells parameters from buffers and constants.
class ParameterSource : public GraphSource {
 public:
  /// Their names, in the order in which an optimizer numbers them.
  virtual std::vector<std::string> parameters() const = 0;
};

/// Floating-point weights that are parameters, as the source says. If it does not tell, as ONNX,
/// which knows initializers only, or has none, as a frozen TorchScript module:
///
///   - what a layer multiplies by and its bias, gain and shift of a normalisation, a slope: by the
///     operator's row, also where the program first transposes, reshapes or combines them;
///   - tables that are looked up by an input of the network;
///   - gains and biases in nodes of their own: vectors as long as a layer's answer has channels,
///     which multiply what is made of that answer, or are added to it.
///
/// All else stays as it is: statistics, tables of positions, frequencies, masks, anchors,
/// constants.
IdVector<WeightId, bool> trained_weights(const Graph& graph);

}  // namespace parsimony
