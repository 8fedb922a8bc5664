#include "parsimony/api/feed.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/slice.h"

namespace parsimony {
namespace {

size_t number_of(const Graph& graph, const std::vector<ValueId>& ends, std::string_view name,
                 std::string_view what) {
  const auto at =
      std::ranges::find_if(ends, [&](ValueId v) { return graph.value(v).name == name; });
  if (at == ends.end()) throw errors::not_in_model(what, name);
  return static_cast<size_t>(at - ends.begin());
}

void shorten(TensorBytes& tensor, const std::vector<AxisKeep>& axes) {
  if (axes.empty() || tensor.bytes.empty()) return;
  check_slices(tensor.name, tensor.dims, axes);
  tensor.bytes = sliced_bytes(tensor.bytes.data(), tensor.dims, size_of(tensor.dtype), axes);
  tensor.dims = sliced(tensor.dims, axes);
}

/// Which indices `axis` lacks.
AxisKeep complement(const AxisKeep& axis) {
  AxisKeep rest{axis.axis, axis.size, {}};
  for (int64_t i = 0; i < axis.size; ++i) {
    if (!std::ranges::binary_search(axis.keep, i)) rest.keep.push_back(i);
  }
  return rest;
}

/// The last elements along every dimension that is longer than wanted.
void take_end(TensorBytes& tensor, const Shape& wanted) {
  std::vector<AxisKeep> axes;
  for (int d = 0; d < std::ssize(tensor.dims) && d < std::ssize(wanted); ++d) {
    if (tensor.dims[d] <= wanted[d]) continue;
    AxisKeep axis{d, tensor.dims[d], std::vector<int64_t>(wanted[d])};
    std::iota(axis.keep.begin(), axis.keep.end(), tensor.dims[d] - wanted[d]);
    axes.push_back(std::move(axis));
  }
  shorten(tensor, axes);
}

}  // namespace

Feed::Feed(const Graph& graph, const Plan& plan)
    : inputs_(graph.inputs.size()), outputs_(graph.outputs.size()) {
  for (const PlanEnd& end : plan.ends) {
    const size_t at = number_of(graph, end.input ? graph.inputs : graph.outputs, end.value,
                                end.input ? "input" : "output");
    (end.input ? inputs_ : outputs_)[at].push_back({end.axis, end.size, end.keep});
  }
  for (const PlanState& state : plan.states) {
    states_.emplace_back(number_of(graph, graph.outputs, state.output, "output"),
                         number_of(graph, graph.inputs, state.input, "input"));
  }
}

void Feed::feed_back(const TensorList& outputs, TensorList& inputs) const {
  for (const auto& [from, to] : states_) {
    TensorBytes state = outputs.at(from);
    TensorBytes& input = inputs.at(to);
    take_end(state, input.dims);
    state.name = input.name;
    input = std::move(state);
  }
}

void Feed::mask(TensorList& inputs) const {
  for (size_t i = 0; i < inputs.size() && i < inputs_.size(); ++i) {
    TensorBytes& input = inputs[i];
    for (const AxisKeep& axis : inputs_[i]) {
      const AxisKeep gone = complement(axis);
      if (gone.keep.empty()) continue;
      check_slices(input.name, input.dims, {&gone, 1});
      for_each_run(input.bytes.data(), input.dims, size_of(input.dtype), {&gone, 1},
                   [&](const std::byte* run, int64_t bytes) {
                     std::memset(input.bytes.data() + (run - input.bytes.data()), 0, bytes);
                   });
    }
  }
}

TensorList Feed::cut(TensorList tensors, const Cuts& cuts) {
  for (size_t i = 0; i < tensors.size() && i < cuts.size(); ++i) {
    shorten(tensors[i], cuts[i]);
  }
  return tensors;
}

}  // namespace parsimony
