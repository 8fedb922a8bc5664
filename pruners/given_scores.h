// Scores of channels from elsewhere, for axes of weights.
#pragma once

#include <string>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/criterion.h"

namespace parsimony {

/// Reads a safetensors file of vectors named "WEIGHT@AXIS", as "layers.0.down_proj.weight@1".
/// @throws IoError; ModelError if the file is not well formed, a name has no axis, a tensor is no
/// vector of finite floating-point numbers
GivenScores read_scores(const std::string& path);

/// @throws ModelError if a name is not that of a weight, or a vector has another length than its
/// axis
void check_scores(const Graph& graph, const GivenScores& given);

/// Sums the scores of each channel's indices over the members of the group that have any; empty if
/// none has.
Scores given_scores(const Graph& graph, const Group& group, const GivenScores& given);

}  // namespace parsimony
