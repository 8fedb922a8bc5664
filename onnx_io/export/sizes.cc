#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/export/sizes_impl.h"

namespace parsimony::onnx_io {
namespace {

// Added to the batch: 1 would make of one image two, and 2 is a size that networks like to have.
constexpr int64_t kMore = 2;

Facts facts_for(const Graph& graph, const std::vector<InputSpec>& inputs) {
  Graph sized = graph;
  for (size_t i = 0; i < inputs.size() && i < sized.inputs.size(); ++i) {
    sized.value(sized.inputs[i]).declared = inputs[i].dims;
  }
  return infer(sized, {.inputs = inputs});
}

}  // namespace

std::vector<InputSpec> with_other_batch(std::vector<InputSpec> inputs) {
  if (inputs.empty() || inputs[0].dims.empty()) return inputs;
  const int64_t batch = inputs[0].dims[0];
  for (InputSpec& input : inputs) {
    if (!input.dims.empty() && input.dims[0] == batch) input.dims[0] += kMore;
  }
  return inputs;
}

Sizes::Sizes(const Graph& graph, const std::vector<InputSpec>& inputs, bool open_batch)
    : graph_(graph), inputs_(inputs), facts_(facts_for(graph, inputs)) {
  if (!open_batch) return;
  try {
    other_ = facts_for(graph, with_other_batch(inputs));
  } catch (const ShapeError& error) {
    throw errors::batch_is_fixed(error.what());
  }
}

const HostTensor* Sizes::constant(ValueId value) const {
  const auto& known = facts_.constants[value];
  if (!known || graph_.value(value).weight != kNone) return nullptr;
  if (other_ && other_->constants[value] != known) return nullptr;
  return &*known;
}

bool Sizes::fixed_input(ValueId value) const {
  for (size_t i = 0; i < inputs_.size() && i < graph_.inputs.size(); ++i) {
    if (graph_.inputs[i] == value) return inputs_[i].value.has_value();
  }
  return false;
}

std::pair<Shape, std::vector<std::string>> Sizes::declared(ValueId value) const {
  const auto& shape = facts_.shapes[value];
  if (!shape) throw errors::not_lowered("", graph_.value(value).name, "its shape is not known");
  Shape dims = *shape;
  std::vector<std::string> symbols(dims.size());
  if (!other_) return {dims, symbols};
  const auto& other = other_->shapes[value];
  for (size_t d = 0; d < dims.size(); ++d) {
    if (other && other->size() == dims.size() && (*other)[d] == dims[d]) continue;
    const bool batch =
        other && !inputs_.empty() && !inputs_[0].dims.empty() && dims[d] == inputs_[0].dims[0];
    dims[d] = -1;
    if (batch) symbols[d] = kBatchSymbol;
  }
  return {dims, symbols};
}

}  // namespace parsimony::onnx_io
