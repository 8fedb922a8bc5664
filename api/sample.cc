#include "parsimony/api/sample.h"

#include <algorithm>

#include "parsimony/api/arrays.h"
#include "parsimony/api/errors.h"

namespace parsimony {
namespace {

/// Where "arr_3" belongs.
size_t position_of(const TensorBytes& array, const Graph& graph) {
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    names.push_back(graph.value(graph.inputs[i]).name);
    if (array.name == names.back() || array.name == "arr_" + std::to_string(i)) return i;
  }
  throw errors::no_input_for_array(array.name, to_string(array.dims), names);
}

void check_shape(const TensorBytes& array, const Value& input) {
  if (!input.declared) return;
  const bool fits = std::equal(
      array.dims.begin(), array.dims.end(), input.declared->begin(), input.declared->end(),
      [](int64_t found, int64_t wanted) { return wanted < 0 || found == wanted; });
  if (!fits) {
    throw errors::array_of_other_shape(array.name, to_string(array.dims),
                                       to_string(*input.declared));
  }
}

}  // namespace

TensorList read_arrays(const std::string& source) {
  const ArrayFiles files(source);
  TensorList arrays;
  for (const ArrayView& view : files.arrays()) arrays.push_back(view.all());
  return arrays;
}

TensorList place_sample(TensorList arrays, const Graph& graph) {
  TensorList placed(graph.inputs.size());
  for (const TensorBytes& array : arrays) {
    const size_t at = position_of(array, graph);
    const Value& input = graph.value(graph.inputs[at]);
    check_shape(array, input);
    placed[at] = converted(array, input.dtype);
    placed[at].name = input.name;
  }
  return placed;
}

std::vector<InputSpec> with_shapes_of(const TensorList& sample, std::vector<InputSpec> specs) {
  InputSpec nothing;
  nothing.open = true;
  if (specs.size() < sample.size()) specs.resize(sample.size(), nothing);
  for (size_t i = 0; i < sample.size(); ++i) {
    if (sample[i].name.empty()) continue;
    specs[i].dims = sample[i].dims;
    specs[i].open = false;
  }
  return specs;
}

}  // namespace parsimony
