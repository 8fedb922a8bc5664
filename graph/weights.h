// Weights: the constants of a network that are weights, what is made of them, and those that
// training may change.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// True for floating-point and 8-bit weights, and for wider integers that only quantised operators
/// read: their biases and zero points. Other constants are shapes, indices and tables.
bool is_weight(const Graph& graph, const Value& value);

/// True for the other constants that can be cut: indices, conditions. They follow the weights whose
/// axes they lie along, and are neither scored nor counted.
bool is_table(const Graph& graph, const Value& value);

/// The operand that says which integer of operand `input` means zero; -1 if none does.
int zero_point_of(const Node& node, int input);

/// γ of a BatchNormalization: the scale of a normalisation with running statistics.
bool is_gain_of_statistics(const Node& node, ValueId value);

/// A running statistic: mean or variance.
bool is_statistic(const Node& node, int input);

/// Per value: is it a weight or computed from weights alone, slices included? `also` counts as
/// weights; may be empty.
IdVector<ValueId, bool> depends_on_weights_only(const Graph& graph,
                                                const IdVector<ValueId, bool>& also = {});

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
///   - tables that are looked up by an input of the network, and matrices among which data choose;
///   - gains and biases in nodes of their own: vectors as long as a layer's answer has channels,
///     which multiply what is made of that answer, or are added to it.
///
/// All else stays as it is: statistics, tables of positions, frequencies, masks, anchors,
/// constants.
IdVector<WeightId, bool> trained_weights(const Graph& graph);

/// Those by the operators' rows alone, whatever the source says: the same in every file of a
/// network.
IdVector<WeightId, bool> weights_of_layers(const Graph& graph);

}  // namespace parsimony
