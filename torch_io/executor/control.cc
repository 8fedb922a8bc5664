#include <algorithm>
#include <limits>
#include <utility>

#include "parsimony/torch_io/executor/control_impl.h"

namespace parsimony::executor {
namespace {

bool is_true(const at::Tensor& flag) { return flag.item<bool>(); }

Tensors branch(const Call& call, std::span<const BodyProgram> bodies, const RunBody& run) {
  const std::string_view wanted = is_true(call.in(0)) ? "then_branch" : "else_branch";
  const auto body = std::find_if(bodies.begin(), bodies.end(),
                                 [&](const BodyProgram& b) { return b.attribute == wanted; });
  if (body == bodies.end()) call.unsupported("it has no " + std::string(wanted));
  return run(*body, {});
}

/// The body maps (iteration, condition, carried…) to (condition, carried…, scanned…). What it scans
/// is stacked along a new first axis.
Tensors loop(const Call& call, const BodyProgram& body, const RunBody& run) {
  const int64_t most =
      call.has_in(0) ? call.in(0).item<int64_t>() : std::numeric_limits<int64_t>::max();
  const size_t carried = call.inputs.size() - std::min<size_t>(2, call.inputs.size());
  bool goes_on = !call.has_in(1) || is_true(call.in(1));
  Tensors state(call.inputs.end() - index(carried), call.inputs.end());
  std::vector<Tensors> scanned(call.outputs() - std::min(carried, call.outputs()));
  for (int64_t i = 0; i < most && goes_on; ++i) {
    Tensors inputs = {at::scalar_tensor(i, at::kLong), at::scalar_tensor(goes_on, at::kBool)};
    inputs.insert(inputs.end(), state.begin(), state.end());
    Tensors outputs = run(body, std::move(inputs));
    if (outputs.size() < 1 + carried + scanned.size())
      call.unsupported("its body returns too little");
    goes_on = is_true(outputs[0]);
    std::move(outputs.begin() + 1, outputs.begin() + 1 + index(carried), state.begin());
    for (size_t s = 0; s < scanned.size(); ++s) {
      scanned[s].push_back(std::move(outputs[1 + carried + s]));
    }
  }
  for (const Tensors& parts : scanned) {
    state.push_back(parts.empty() ? at::empty({0}) : at::stack(parts));
  }
  return state;
}

}  // namespace

bool is_control(const Node& node) {
  if (!node.domain.empty() || node.bodies.empty()) return false;
  return node.op == "If" || node.op == "Loop";
}

Tensors run_control(const Call& call, std::span<const BodyProgram> bodies, const RunBody& run) {
  return call.node.op == "If" ? branch(call, bodies, run) : loop(call, bodies[0], run);
}

}  // namespace parsimony::executor
