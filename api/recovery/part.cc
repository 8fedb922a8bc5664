#include "parsimony/api/recovery/part.h"

#include <algorithm>
#include <utility>

#include "parsimony/base/ranges.h"

namespace parsimony {

size_t runs_at_once(const Engine& engine, int64_t bytes) {
  constexpr int64_t kMostBytes = int64_t{512} << 20;
  const int64_t fit = kMostBytes / std::max<int64_t>(1, bytes);
  return static_cast<size_t>(std::clamp<int64_t>(fit, 1, std::max(1, engine.at_once())));
}

Part::Part(Engine& engine, const Graph& graph) : engine_(engine), graph_(graph) {
  for (const ValueId v : graph.outputs) {
    if (!contains(graph.inputs, v)) computed_.push_back(v);
  }
}

/// Opens the network for inputs of these types, with the outputs that it computes. Nodes of ONNX
/// take any shape; other programs are for the batch size with which they were written.
Network& Part::opened_for(const EngineValues& inputs) {
  std::call_once(opening_, [&] {
    Graph typed = graph_;
    typed.outputs = computed_;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Value& value = typed.value(graph_.inputs[i]);
      value.declared.reset();
      if (inputs[i] == nullptr) continue;
      value.dtype = inputs[i]->dtype();
      if (graph_.format == "onnx") continue;
      value.declared = inputs[i]->dims();
      value.symbols.resize(value.declared->size());
    }
    network_ = engine_.open(typed);
  });
  return *network_;
}

EngineValues Part::run(const EngineValues& inputs) {
  EngineValues computed;
  if (!computed_.empty()) computed = opened_for(inputs).forward(inputs);
  EngineValues outputs;
  auto next = computed.begin();
  for (const ValueId v : graph_.outputs) {
    const auto input = std::ranges::find(graph_.inputs, v);
    outputs.push_back(input != graph_.inputs.end() ? inputs[input - graph_.inputs.begin()]
                                                   : std::move(*next++));
  }
  return outputs;
}

int64_t bytes_of(const EngineValue& value) {
  return element_count(value->dims()) * static_cast<int64_t>(size_of(value->dtype()));
}

Shape sample_dims(const EngineValue& value) {
  Shape dims = value->dims();
  if (!dims.empty()) dims.erase(dims.begin());
  return dims;
}

}  // namespace parsimony
