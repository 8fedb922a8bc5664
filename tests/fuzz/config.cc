// Any text is a configuration that fits a small network, or an Error.
#include "parsimony/configs/config.h"

#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "tests/fuzz/support/memory.h"

using namespace parsimony;  // NOLINT(google-build-using-namespace)

namespace {

/// conv1 (torch's exporter: /features/0/Conv), relu, fc.
Graph small_network() {
  static const float kNumbers[32] = {};
  Graph graph;
  const auto weight = [&](const std::string& name, const Shape& dims) {
    const auto* data = reinterpret_cast<const std::byte*>(kNumbers);
    const WeightId id = graph.weights.push_back({name, DType::kFloat32, dims, data, 4});
    return graph.values.push_back({.name = name, .dtype = DType::kFloat32, .weight = id});
  };
  const auto node = [&](const std::string& name, const std::string& op,
                        const std::vector<ValueId>& inputs, const std::string& output) {
    const ValueId out = graph.values.push_back({.name = output});
    graph.nodes.push_back(
        {.name = name, .op = op, .domain = "", .opset = 17, .inputs = inputs, .outputs = {out}});
    return out;
  };
  const ValueId x = graph.values.push_back({.name = "x", .declared = Shape{1, 2, 4, 4}});
  graph.inputs = {x};
  const ValueId w1 = weight("features.0.weight", {4, 2, 1, 1});
  const ValueId conv = node("/features/0/Conv", "Conv", {x, w1}, "c");
  const ValueId relu = node("/features/1/Relu", "Relu", {conv}, "r");
  graph.outputs = {node("fc", "Gemm", {relu, weight("fc.weight", {4, 3})}, "y")};
  finish(graph);
  return graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Graph graph = small_network();
  const fuzz::MemoryLimit limit(size);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    resolve(parse_config(text, "config.json"), graph);
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
