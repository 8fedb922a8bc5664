// Classifies operands, and finds values that depend only on weights.
#pragma once

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
IdVector<ValueId, bool> made_of_weights(const Graph& graph,
                                        const IdVector<ValueId, bool>& also = {});

}  // namespace parsimony
