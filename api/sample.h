// Arrays from a file as inputs of a network.
#pragma once

#include <string>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

/// All that ArrayFiles(source) has, copied. @throws as ArrayFiles
TensorList read_arrays(const std::string& source);

/// The same in the order of the graph's inputs, by their names, or by position where they are those
/// that numpy.savez makes up ("arr_0"), and of the inputs' element types. An input without an array
/// has no elements.
/// @throws ConfigError, naming the array, if there is no such input, or the model fixes another
/// shape; ModelError if an element does not fit the input's type
TensorList place_sample(TensorList arrays, const Graph& graph);

/// Specs that also have the shapes of the sample's arrays.
std::vector<InputSpec> with_shapes_of(const TensorList& sample, std::vector<InputSpec> specs);

}  // namespace parsimony
