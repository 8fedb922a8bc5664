// What the operands of a node are to it, and which values are made of weights.
#pragma once

#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// A weight of floating point numbers or of bytes, or one of wider integers that only quantised
/// operators read: their biases and zero points. Other constants are shapes, indices and tables.
bool is_weight(const Graph& graph, const Value& value);

/// The operand that says which integer of operand `input` means zero; -1 if none does.
int zero_point_of(const Node& node, int input);

/// γ of a BatchNormalization: a gain beside statistics kept from training.
bool is_gain_of_statistics(const Node& node, ValueId value);

/// Mean or variance that a normalisation keeps from training.
bool is_statistic(const Node& node, int input);

/// Per value: it is a weight or made of weights alone, whatever pieces of it are taken. `also`
/// counts as weights; may be empty.
IdVector<ValueId, bool> made_of_weights(const Graph& graph,
                                        const IdVector<ValueId, bool>& also = {});

}  // namespace parsimony
