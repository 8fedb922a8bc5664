// The JSON of a program during an edit: values, tensors, declared sizes.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/exported/draft_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

namespace {

Json literal(const c10::IValue& value) {
  if (value.isNone()) return tagged("as_none", true);
  if (value.isBool()) return tagged("as_bool", value.toBool());
  if (value.isInt()) return tagged("as_int", value.toInt());
  if (value.isDouble()) return tagged("as_float", value.toDouble());
  if (value.isIntList()) return tagged("as_ints", value.toIntVector());
  return {};
}

const char* kind_of(const jit::Value& value) {
  switch (value.type()->kind()) {
    case c10::TypeKind::IntType:
      return "as_sym_int";
    case c10::TypeKind::FloatType:
      return "as_sym_float";
    case c10::TypeKind::BoolType:
      return "as_sym_bool";
    default:
      return "as_tensor";
  }
}

/// Returns the name in `target` of the value that `graph` calls `name`.
std::optional<std::string> renamed(const std::vector<Alias>& aliases, const std::string& graph,
                                   const std::string& name, const std::string& target) {
  if (graph == target) return name;
  for (const Alias& alias : aliases) {
    if (alias.from_graph != graph || alias.from != name) continue;
    if (auto found = renamed(aliases, alias.to_graph, alias.to, target)) return found;
  }
  return std::nullopt;
}

}  // namespace

Json tagged(const char* kind, Json value) {
  Json json = Json::object();
  json[kind] = std::move(value);
  return json;
}

Draft::Draft(const Archive& read_from, const Program& as_read, const EditedScript& with_edits,
             const jit::Module& with_tensors)
    : archive(read_from),
      program(as_read),
      edited(with_edits),
      small(with_tensors),
      json(Json::parse(read_from.program())),
      placeholders(as_read.placeholders) {}

std::string Draft::name_of(const jit::Value& value, const std::string& graph) const {
  const std::string path = attribute_path(value);
  const auto step = path.empty() ? step_of(*value.node()) : std::nullopt;
  const std::string home = step ? graph_of(program.steps[*step].place) : kTopGraph;
  std::string name = value.debugName();  // of an input
  if (!path.empty()) name = placeholders.at(path);
  if (step) name = program.steps[*step].outputs.at(value.offset());
  auto found = renamed(program.aliases, home, name, graph);
  if (!found) throw errors::cannot_rewrite(name, "a subgraph would have to read it");
  return *std::move(found);
}

Json Draft::named(const jit::Value& value, const std::string& graph) const {
  const char* kind = kind_of(value);
  const char* key = std::string_view(kind) == "as_tensor" ? "name" : "as_name";
  return tagged(kind, tagged(key, name_of(value, graph)));
}

Json Draft::argument(const jit::Value& value, const std::string& graph) const {
  const jit::Node* node = value.node();
  if (node->kind() == c10::prim::Constant) return literal(*jit::toIValue(&value));
  if (node->kind() != c10::prim::ListConstruct) return named(value, graph);
  bool fixed = true;
  std::vector<Json> items;
  Json numbers = Json::array();
  for (const jit::Value* item : node->inputs()) {
    items.push_back(item->node()->kind() == c10::prim::Constant ? literal(*jit::toIValue(item))
                                                                : named(*item, graph));
    fixed = fixed && items.back().contains("as_int");
    if (fixed) numbers.push_back(items.back()["as_int"]);
  }
  const auto type = value.type()->expect<c10::ListType>()->getElementType();
  if (type->kind() != c10::TypeKind::IntType) {
    const bool optional = type->kind() == c10::TypeKind::OptionalType;
    Json list = Json::array();
    for (Json& item : items) list.push_back(optional ? item : item["as_tensor"]);
    return tagged(optional ? "as_optional_tensors" : "as_tensors", std::move(list));
  }
  if (fixed) return tagged("as_ints", std::move(numbers));
  Json list = Json::array();
  for (Json& item : items) {
    list.push_back(item.contains("as_sym_int") ? item["as_sym_int"] : item);
  }
  return tagged("as_sym_ints", std::move(list));
}

at::Tensor Draft::tensor(const std::string& path) const {
  jit::Module owner = small;
  size_t begin = 0;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    owner = owner.attr(path.substr(begin, dot - begin)).toModule();
    begin = dot + 1;
  }
  return owner.attr(path.substr(begin)).toTensor();
}

namespace {

/// Returns the paths of the tensors that calls read.
std::set<std::string> tensors_read_by(jit::Graph& graph) {
  std::set<std::string> paths;
  script::for_each_node(*graph.block(), [&](const jit::Node* node) {
    for (const jit::Value* input : node->inputs()) {
      if (input->type()->kind() != c10::TypeKind::TensorType) continue;
      std::string path = attribute_path(*input);
      if (!path.empty()) paths.insert(std::move(path));
    }
  });
  return paths;
}

/// Inserts it after the last of its kind: parameters come before buffers, and these before inputs.
void add_input(Draft& draft, const NamedTensor& added, const std::string& placeholder) {
  const char* kind = added.is_parameter ? "parameter" : "buffer";
  Json spec;
  spec["arg"] = tagged("name", placeholder);
  spec[added.is_parameter ? "parameter_name" : "buffer_name"] = added.name;
  if (!added.is_parameter) spec["persistent"] = true;
  std::set<std::string_view> before{"token", "parameter"};
  if (!added.is_parameter) before.insert("buffer");
  Json& specs = draft.input_specs();
  std::ptrdiff_t offset = 0;
  while (offset < std::ssize(specs) && before.contains(specs[offset].begin().key())) ++offset;
  specs.insert(specs.begin() + offset, tagged(kind, spec));
  Json& inputs = draft.graph()["inputs"];
  inputs.insert(inputs.begin() + offset, tagged("as_tensor", tagged("name", placeholder)));
  Json& values = draft.graph()["tensor_values"];
  Json meta = values.empty() ? Json::object() : values.begin().value();
  meta["dtype"] = type_of(added.tensor.scalar_type())->code;
  meta["requires_grad"] = added.is_parameter;
  values[placeholder] = std::move(meta);
}

/// Makes tensors added by the edits parameters or buffers of the program.
std::vector<NamedTensor> add_tensors(Draft& draft, const std::set<std::string>& read) {
  std::vector<NamedTensor> all;
  for (const std::string& path : read) {
    if (draft.placeholders.contains(path)) continue;
    const at::Tensor tensor = draft.tensor(path);
    const auto& type = *draft.small.type();
    const bool is_parameter = type.is_parameter(type.getAttributeSlot(path));
    std::string& placeholder = draft.placeholders[path];
    placeholder = (is_parameter ? "p_" : "b_") + path;
    all.push_back({path, tensor, is_parameter});
    add_input(draft, all.back(), placeholder);
  }
  return all;
}

/// Removes the inputs of tensors that only dropped calls have read; returns their paths.
std::set<std::string> drop_tensors(Draft& draft, const std::set<std::string>& read) {
  std::set<std::string> dropped;
  for (const std::string& path :
       tensors_read_by(*draft.program.module.get_method("forward").graph())) {
    const auto found = draft.placeholders.find(path);
    if (read.contains(path) || found == draft.placeholders.end()) continue;
    dropped.insert(path);
    const Json input = tagged("as_tensor", tagged("name", found->second));
    Json& inputs = draft.graph()["inputs"];
    const auto at = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
    inputs.erase(at);
    draft.input_specs().erase(at);
    draft.graph()["tensor_values"].erase(found->second);
  }
  return dropped;
}

}  // namespace

std::vector<NamedTensor> settle_tensors(Draft& draft) {
  const std::set<std::string> read = tensors_read_by(*draft.edited.graph);
  const std::vector<NamedTensor> added = add_tensors(draft, read);
  const std::set<std::string> dropped = drop_tensors(draft, read);
  std::set<std::string> parameters;
  for (const Json& spec : draft.input_specs()) {
    if (spec.contains("parameter")) {
      parameters.insert(spec["parameter"]["parameter_name"].get<std::string>());
    }
  }
  // Of several names of one tensor the program reads one: the others follow it.
  std::map<const void*, std::string> first_names;
  for (const auto& [name, placeholder] : draft.program.placeholders) {
    first_names.emplace(draft.archive.tensors().at(name).unsafeGetTensorImpl(), name);
  }
  std::vector<NamedTensor> all;
  for (const std::string& name : draft.archive.names()) {
    const at::Tensor& tensor = draft.archive.tensors().at(name);
    const bool used = draft.program.placeholders.contains(name);
    const auto tied = first_names.find(tensor.unsafeGetTensorImpl());
    const std::string source = used || tied == first_names.end() ? name : tied->second;
    if (dropped.contains(source)) continue;
    const bool follows = used || source != name;
    all.push_back({name, follows ? draft.tensor(source) : tensor, parameters.contains(source)});
  }
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

namespace {

/// Returns the number of {"as_int": 3} or {"as_expr": {"expr_str": "…", "hint": {"as_int": 3}}},
/// the forms of sizes in programs.
int64_t hint_of(const Json& size) {
  if (size.contains("as_int")) return size["as_int"].get<int64_t>();
  const Json& expression = size["as_expr"];
  const bool known = expression.contains("hint") && expression["hint"].is_object();
  return known ? expression["hint"].value("as_int", int64_t{1}) : 1;
}

/// Scales the size by `after / before`. @source sympy's srepr, the format of expressions
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

/// Changes the declared sizes and strides of a tensor; its dimensions keep their memory order.
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

/// Updates sizes of inputs that the plan cuts.
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

/// Returns one call's results on zeros; empty if its sizes depend on data.
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

/// Updates results without readers, such as the final states of a sequence.
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
