// The sizes that a program declares for its values.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>

#include <numeric>
#include <string>
#include <utility>

#include "parsimony/torch_io/exported/draft_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

namespace {

/// The number of {"as_int": 3} or {"as_expr": {"expr_str": "…", "hint": {"as_int": 3}}}, as
/// programs write sizes.
int64_t hint_of(const Json& size) {
  if (size.contains("as_int")) return size["as_int"].get<int64_t>();
  const Json& expression = size["as_expr"];
  const bool known = expression.contains("hint") && expression["hint"].is_object();
  return known ? expression["hint"].value("as_int", int64_t{1}) : 1;
}

/// The size by `after / before`. @source sympy's srepr, in which expressions are written
Json scaled(Json size, int64_t before, int64_t after) {
  if (before == after || before == 0) return size;
  if (size.contains("as_int")) return Json{{"as_int", after}};
  Json& expression = size["as_expr"];
  const int64_t common = std::gcd(before, after);
  const std::string factor = common == before ? "Integer(" + std::to_string(after / common) + ")"
                                              : "Rational(" + std::to_string(after / common) +
                                                    ", " + std::to_string(before / common) + ")";
  expression["expr_str"] = "Mul(" + factor + ", " + expression["expr_str"].get<std::string>() + ")";
  if (expression.contains("hint") && expression["hint"].is_object()) {
    expression["hint"] = {{"as_int", hint_of(size) * after / before}};
  }
  return size;
}

/// Changes the declared sizes and strides of a tensor; its dimensions keep their order in memory.
void resize(Json& meta, const ShapeChange& change) {
  Json& sizes = meta["sizes"];
  Json& strides = meta["strides"];
  const size_t rank = sizes.size();
  if (change.before.size() != rank || change.after.size() != rank || strides.size() != rank) return;
  const Json old = strides;
  for (size_t d = 0; d < rank; ++d) {
    if (change.before[d] == change.after[d]) continue;
    for (size_t outer = 0; outer < rank; ++outer) {
      if (hint_of(old[outer]) > hint_of(old[d])) {
        const int64_t stride = hint_of(strides[outer]);
        strides[outer] =
            scaled(strides[outer], stride, stride / change.before[d] * change.after[d]);
      }
    }
    sizes[d] = scaled(sizes[d], change.before[d], change.after[d]);
  }
}

void settle_placeholders(Draft& draft) {
  for (const auto& [path, name] : draft.placeholders) {
    if (!draft.graph()["tensor_values"].contains(name)) continue;
    const at::Tensor tensor = draft.tensor(path);
    Json& meta = draft.graph()["tensor_values"][name];
    meta["sizes"] = Json::array();
    meta["strides"] = Json::array();
    for (const int64_t size : tensor.sizes()) meta["sizes"].push_back(tagged("as_int", size));
    for (const int64_t stride : tensor.contiguous().strides()) {
      meta["strides"].push_back(tagged("as_int", stride));
    }
  }
}

/// Those of inputs that the plan cuts.
void settle_inputs(Draft& draft) {
  Json& values = draft.graph()["tensor_values"];
  for (const auto& [value, sizes] : draft.edited.sizes) {
    const bool is_input = value->node()->kind() == c10::prim::Param;
    if (is_input && values.contains(value->debugName())) resize(values[value->debugName()], sizes);
  }
}

std::vector<int64_t> hints_of(const Json& sizes) {
  std::vector<int64_t> hints;
  for (const Json& size : sizes) hints.push_back(hint_of(size));
  return hints;
}

/// What one call on zeros gives; empty for a call whose sizes only a run of the program tells.
std::vector<c10::IValue> results_on_zeros(const Draft& draft, const jit::Node& call,
                                          const std::string& graph, const Json& values) {
  const auto value_of = [&](const jit::Value& value) -> c10::IValue {
    if (const auto constant = jit::toIValue(&value)) return *constant;
    const Json& meta = values.at(draft.name_of(value, graph));
    return at::zeros(hints_of(meta["sizes"]), type_of_code(meta["dtype"].get<int64_t>())->type);
  };
  std::vector<c10::IValue> stack;
  try {
    const at::NoGradGuard no_grad;
    for (const jit::Value* input : call.inputs()) {
      if (input->node()->kind() != c10::prim::ListConstruct) {
        stack.push_back(value_of(*input));
        continue;
      }
      std::vector<at::Tensor> tensors;
      for (const jit::Value* item : input->node()->inputs()) {
        tensors.push_back(value_of(*item).toTensor());
      }
      stack.emplace_back(tensors);
    }
    call.getOperation()(stack);
    return stack;
  } catch (const std::exception&) {
    return {};
  }
}

/// Results that no reader follows, such as the states behind a sequence.
void settle_by_run(const Draft& draft, const jit::Node& call, const std::string& graph,
                   Json& values) {
  const std::vector<c10::IValue> results = results_on_zeros(draft, call, graph, values);
  for (size_t i = 0; i < results.size() && i < call.outputs().size(); ++i) {
    const std::string name = draft.name_of(*call.output(i), graph);
    if (!results[i].isTensor() || !values.contains(name)) continue;
    Json& meta = values[name];
    resize(meta, {hints_of(meta["sizes"]), results[i].toTensor().sizes().vec()});
  }
}

void settle_results(Draft& draft, const jit::Node& call, const std::string& graph) {
  Json& values = draft.at(graph)["tensor_values"];
  bool lost = false;
  const auto settle = [&](const jit::Node& node) {
    for (const jit::Value* output : node.outputs()) {
      const auto sizes = draft.edited.sizes.find(output);
      const std::string name = draft.name_of(*output, graph);
      lost = lost || !draft.edited.known.contains(output);
      if (sizes == draft.edited.sizes.end() || !values.contains(name)) continue;
      resize(values[name], sizes->second);
    }
  };
  settle(call);
  if (!call.outputs().empty()) {
    for (const jit::Use& use : call.output(0)->uses()) {
      if (use.user->kind() == c10::prim::ListUnpack) settle(*use.user);
    }
  }
  if (lost && call.blocks().empty()) settle_by_run(draft, call, graph, values);
}

}  // namespace

void settle_sizes(Draft& draft, const std::map<size_t, jit::Node*>& calls) {
  settle_placeholders(draft);
  settle_inputs(draft);
  for (const auto& [step, call] : calls) {
    settle_results(draft, *call, graph_of(draft.program.steps[step].place));
  }
  for (const Alias& alias : draft.program.aliases) {
    const Json& from = draft.at(alias.from_graph)["tensor_values"];
    Json& to = draft.at(alias.to_graph)["tensor_values"];
    if (!from.contains(alias.from) || !to.contains(alias.to)) continue;
    to[alias.to]["sizes"] = from[alias.from]["sizes"];
    to[alias.to]["strides"] = from[alias.from]["strides"];
  }
}

}  // namespace parsimony::torch_io::exported
