#include "parsimony/api/sample.h"

#include "parsimony/api/data/arrays.h"
#include "parsimony/api/errors.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony {

TensorList read_arrays(const std::string& source) {
  const ArrayFiles files(source);
  TensorList arrays;
  for (const ArrayView& view : files.arrays()) arrays.push_back(view.all());
  return arrays;
}

TensorList place_sample(TensorList arrays, const Graph& graph) {
  TensorList placed(graph.inputs.size());
  for (const TensorBytes& array : arrays) {
    const size_t at = input_of(graph, array.name);
    if (at == placed.size()) throw no_such_input(graph, array.name, array.dims);
    const Value& input = graph.value(graph.inputs[at]);
    if (input.declared && !fits_declared(array.dims, *input.declared)) {
      throw errors::array_of_other_shape(array.name, to_string(array.dims),
                                         to_string(*input.declared));
    }
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
