#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/graph_file.h"
#include "parsimony/torch_io/executor/own_kernel_impl.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

/// The node as a model of its own, with inputs of any shape.
Graph alone(const Call& call) {
  Graph graph;
  Node node = call.node;
  node.body = kNone;
  node.opset = std::max(node.opset, 1);
  const auto add = [&](const std::string& name, DType dtype) {
    Value& value = graph.values.emplace_back();
    value.name = name;
    value.dtype = dtype;
    return ValueId(graph.values.size() - 1);
  };
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!call.has_in(i)) {
      node.inputs[i] = kNone;
      continue;
    }
    node.inputs[i] = add("x" + std::to_string(i), call.type_in(i));
    graph.inputs.push_back(node.inputs[i]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    node.outputs[i] = add("y" + std::to_string(i), DType::kUnknown);
    graph.outputs.push_back(node.outputs[i]);
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

/// Opens each model once.
Network& session_of(const Graph& graph) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Network>> sessions;
  const std::lock_guard lock(mutex);
  static const runtime::OnnxRuntime library = runtime::find_onnx_runtime();
  std::string model = onnx_io::to_onnx(graph);
  std::unique_ptr<Network>& session = sessions[model];
  if (!session) {
    session = library.open_bytes(std::move(model), {.threads = at::get_num_threads()});
  }
  return *session;
}

/// ONNX Runtime takes the types of the file.
at::Tensor as_in_file(const Call& call, size_t i) {
  const at::Tensor& tensor = call.in(i);
  return tensor.to(torch_io::scalar_type_of(call.type_in(i)));
}

}  // namespace

Tensors run_own_kernel(const Call& call) {
  const Graph graph = alone(call);
  Tensors operands;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.has_in(i)) continue;
    if (at::GradMode::is_enabled() && call.in(i).requires_grad()) {
      call.unsupported("its kernel is one of ONNX Runtime, which gives no gradients");
    }
    operands.push_back(as_in_file(call, i));
  }
  TensorList inputs = torch_io::to_bytes(operands);
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i].name = graph.value(graph.inputs[i]).name;
  Tensors found = torch_io::to_tensors(session_of(graph).run({std::move(inputs)}).front());
  Tensors results(call.outputs());
  size_t next = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.node.outputs[i] != kNone) results[i] = std::move(found.at(next++));
  }
  return results;
}

namespace {

bool says_that_it_mixes(const OpSchema& row) {
  const notation::Line* line = compiled(row);
  return line != nullptr && std::ranges::any_of(line->alternatives, [](const auto& each) {
           return !each.mixes.empty();
         });
}

/// What is absent may change what a kernel makes of the rest, if the plan allows for it. Where no
/// rule is known, as when a plan is verified without, it is tried.
std::optional<SmallRun> run_mixing(const Call& call) {
  if (!call.mixes) return std::nullopt;
  const OpSchema* row = find_schema(call.node.domain, call.node.op);
  if (row != nullptr && !says_that_it_mixes(*row)) return std::nullopt;
  return run_without_absent(call);
}

Tensors kernel(const Call& call) {
  auto small = run_mixing(call);
  return small ? std::move(small->results) : run_own_kernel(call);
}

Tensors presence(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  if (auto small = run_mixing(call)) return std::move(small->present);
  if (call.mixes && says_that_it_mixes(schema_of(call.node))) {
    call.unsupported("it mixes channels, and which results belong to those removed is not known");
  }
  return found_by_trial(call, outputs);
}

}  // namespace

const Operator* own_operator() {
  static constexpr Operator kOwn = {.kernel = kernel, .presence = presence, .own_types = true};
  return runtime::has_kernel_libraries() ? &kOwn : nullptr;
}

}  // namespace parsimony::executor
