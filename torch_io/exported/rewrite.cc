#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/torch_io/exported/errors_impl.h"
#include "parsimony/torch_io/exported/rewrite_impl.h"
#include "parsimony/torch_io/exported/sizes_impl.h"
#include "parsimony/torch_io/exported/types_impl.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

using Json = nlohmann::ordered_json;

namespace {

constexpr std::string_view kSplit = "aten::split_with_sizes";

/// Calls by the number of their step.
std::map<size_t, jit::Node*> calls_of(std::shared_ptr<jit::Graph> graph) {
  std::map<size_t, jit::Node*> calls;
  jit::DepthFirstGraphNodeIterator nodes(graph);
  for (jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
    const auto step = step_of(*node);
    if (step && node->kind() != c10::prim::ListUnpack) calls.emplace(*step, node);
  }
  return calls;
}

/// {"as_int": 3}
Json one(const char* kind, Json value) {
  Json json = Json::object();
  json[kind] = std::move(value);
  return json;
}

Json literal(const c10::IValue& value) {
  if (value.isNone()) return one("as_none", true);
  if (value.isBool()) return one("as_bool", value.toBool());
  if (value.isInt()) return one("as_int", value.toInt());
  if (value.isDouble()) return one("as_float", value.toDouble());
  if (value.isIntList()) return one("as_ints", value.toIntVector());
  return {};  // of no kind that an edit makes
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

class Rewriter {
 public:
  Rewriter(const Archive& archive, const Program& program, const EditedScript& edited,
           const jit::Module& small)
      : archive_(archive),
        program_(program),
        edited_(edited),
        small_(small),
        json_(Json::parse(archive.program())),
        placeholders_(program.placeholders) {}

  void write(const std::string& path) {
    const auto before = calls_of(program_.module.get_method("forward").graph());
    const auto after = calls_of(edited_.graph);
    add_tensors();
    for (const auto& [step, call] : after) update(step, *before.at(step), *call);
    update_outputs();
    resize_tensors();
    resize_values(after);
    drop_nodes(before, after);
    drop_tensors();
    std::vector<NamedTensor> weights;
    std::vector<NamedTensor> constants;
    for (const NamedTensor& tensor : tensors()) {
      (archive_.is_constant(tensor.name) ? constants : weights).push_back(tensor);
    }
    archive_.write(path, json_.dump(), weights, constants);
  }

 private:
  Json& at(const std::string& place) { return json_.at(Json::json_pointer(place)); }
  Json& graph() { return json_["graph_module"]["graph"]; }
  Json& input_specs() { return json_["graph_module"]["signature"]["input_specs"]; }

  std::string name_of(const jit::Value& value) const {
    const std::string path = attribute_path(value);
    if (!path.empty()) return placeholders_.at(path);
    const auto step = step_of(*value.node());
    if (!step) return value.debugName();  // an input
    return program_.steps[*step].outputs.at(value.offset());
  }

  /// The argument that a call's input is.
  Json argument(const jit::Value& value) const {
    const jit::Node* node = value.node();
    if (node->kind() == c10::prim::Constant) return literal(*jit::toIValue(&value));
    if (node->kind() != c10::prim::ListConstruct) return named(value);
    bool fixed = true;
    std::vector<Json> items;
    Json numbers = Json::array();
    for (const jit::Value* item : node->inputs()) {
      items.push_back(item->node()->kind() == c10::prim::Constant ? literal(*jit::toIValue(item))
                                                                  : named(*item));
      fixed = fixed && items.back().contains("as_int");
      if (fixed) numbers.push_back(items.back()["as_int"]);
    }
    const auto type = value.type()->expect<c10::ListType>()->getElementType();
    if (type->kind() != c10::TypeKind::IntType) {
      const bool optional = type->kind() == c10::TypeKind::OptionalType;
      Json list = Json::array();
      for (Json& item : items) list.push_back(optional ? item : item["as_tensor"]);
      return one(optional ? "as_optional_tensors" : "as_tensors", std::move(list));
    }
    if (fixed) return one("as_ints", std::move(numbers));
    Json list = Json::array();
    for (Json& item : items) {
      list.push_back(item.contains("as_sym_int") ? item["as_sym_int"] : item);
    }
    return one("as_sym_ints", std::move(list));
  }

  Json named(const jit::Value& value) const {
    const char* kind = kind_of(value);
    const char* key = std::string_view(kind) == "as_tensor" ? "name" : "as_name";
    return one(kind, one(key, name_of(value)));
  }

  /// A tensor that the edits added, and which the program then takes like a parameter.
  void add_tensors() {
    std::shared_ptr<jit::Graph> program = edited_.graph;
    jit::DepthFirstGraphNodeIterator nodes(program);
    for (const jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
      if (node->kind() != c10::prim::GetAttr) continue;
      if (node->output()->type()->kind() != c10::TypeKind::TensorType) continue;
      const std::string path = attribute_path(*node->output());
      if (placeholders_.contains(path)) continue;
      const at::Tensor tensor = tensor_at(path);
      const bool is_parameter = at::isFloatingType(tensor.scalar_type());
      const std::string name = (is_parameter ? "p_" : "b_") + path;
      placeholders_[path] = name;
      added_.push_back({path, tensor, is_parameter});
      Json spec;
      spec["arg"] = one("name", name);
      spec[is_parameter ? "parameter_name" : "buffer_name"] = path;
      if (!is_parameter) spec["persistent"] = true;
      add_input(is_parameter ? "parameter" : "buffer", spec, name, tensor);
    }
  }

  /// Behind the last of its kind, for parameters come before buffers, and these before inputs.
  void add_input(const char* kind, const Json& spec, const std::string& name,
                 const at::Tensor& tensor) {
    Json& specs = input_specs();
    const std::set<std::string_view> before =
        std::string_view(kind) == "parameter"
            ? std::set<std::string_view>{"token", "parameter"}
            : std::set<std::string_view>{"token", "parameter", "buffer"};
    size_t place = 0;
    while (place < specs.size() && before.contains(specs[place].begin().key())) ++place;
    const auto offset = static_cast<std::ptrdiff_t>(place);
    specs.insert(specs.begin() + offset, one(kind, spec));
    Json& inputs = graph()["inputs"];
    inputs.insert(inputs.begin() + offset, one("as_tensor", one("name", name)));
    Json meta = graph()["tensor_values"].empty() ? Json::object()
                                                 : graph()["tensor_values"].begin().value();
    meta["dtype"] = type_of(tensor.scalar_type())->code;
    meta["requires_grad"] = std::string_view(kind) == "parameter";
    graph()["tensor_values"][name] = std::move(meta);
  }

  void update(size_t step, const jit::Node& before, const jit::Node& after) {
    Json& node = at(program_.steps[step].place);
    std::vector<std::string> names = program_.steps[step].arguments;
    if (before.kind() != after.kind()) {
      if (after.kind().toQualString() != kSplit) {
        throw errors::cannot_write(node["target"].get<std::string>(), "its operator changes");
      }
      node["target"] = "torch.ops.aten.split_with_sizes.default";
      names = {"self", "split_sizes", "dim"};
      node["inputs"] = Json::array();
      for (size_t i = 0; i < names.size(); ++i) {
        set_argument(node, names[i], argument(*after.input(i)));
      }
      return;
    }
    if (names.size() != after.inputs().size()) return;  // nothing in it can change
    for (size_t i = 0; i < names.size(); ++i) {
      Json now = argument(*after.input(i));
      if (now != argument(*before.input(i))) set_argument(node, names[i], std::move(now));
    }
  }

  void set_argument(Json& node, const std::string& name, Json value) {
    if (value.is_null()) {
      throw errors::cannot_write(node["target"].get<std::string>(),
                                 "argument " + in_quotes(name) + " has no form for its new value");
    }
    for (Json& input : node["inputs"]) {
      if (input["name"] != name) continue;
      input["arg"] = std::move(value);
      return;
    }
    constexpr int kKeyword = 2;
    Json input;
    input["name"] = name;
    input["arg"] = std::move(value);
    const Json& others = node["inputs"];
    if (!others.empty() && others[0].contains("kind")) input["kind"] = kKeyword;
    node["inputs"].push_back(std::move(input));
  }

  /// Results that are read elsewhere since the call that made them is gone.
  void update_outputs() {
    const auto results = [](jit::Graph& graph) {
      jit::Value* result = graph.outputs().at(0);
      return result->node()->kind() == c10::prim::TupleConstruct ? result->node()->inputs().vec()
                                                                 : std::vector<jit::Value*>{result};
    };
    const auto before = results(*program_.module.get_method("forward").graph());
    const auto after = results(*edited_.graph);
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
      const Json old = named(*before[i]);
      const Json now = named(*after[i]);
      if (old == now) continue;
      for (Json& output : graph()["outputs"]) {
        if (output == old) output = now;
      }
      for (Json& spec : json_["graph_module"]["signature"]["output_specs"]) {
        Json& arg = spec.begin().value()["arg"];
        if (arg == old) arg = now;
        if (arg == old.begin().value()) arg = now.begin().value();
      }
    }
  }

  void resize_values(const std::map<size_t, jit::Node*>& calls) {
    for (const auto& [step, call] : calls) {
      const std::string& place = program_.steps[step].place;
      Json& values = at(place.substr(0, place.rfind("/nodes/")))["tensor_values"];
      bool lost = false;
      const auto resize_all = [&](const jit::Node& node) {
        for (const jit::Value* output : node.outputs()) {
          const auto sizes = edited_.sizes.find(output);
          const std::string name = name_of(*output);
          lost = lost || !edited_.known.contains(output);
          if (sizes == edited_.sizes.end() || !values.contains(name)) continue;
          resize(values[name], sizes->second);
        }
      };
      resize_all(*call);
      for (const jit::Use& use :
           call->outputs().empty() ? jit::use_list{} : call->output(0)->uses()) {
        if (use.user->kind() == c10::prim::ListUnpack) resize_all(*use.user);
      }
      if (lost && call->blocks().empty()) resize_by_run(*call, values);
    }
  }

  void resize_tensors() {
    for (const auto& [path, name] : placeholders_) {
      if (!graph()["tensor_values"].contains(name)) continue;
      const at::Tensor tensor = tensor_at(path);
      Json& meta = graph()["tensor_values"][name];
      meta["sizes"] = Json::array();
      meta["strides"] = Json::array();
      for (const int64_t size : tensor.sizes()) meta["sizes"].push_back(one("as_int", size));
      for (const int64_t stride : tensor.contiguous().strides()) {
        meta["strides"].push_back(one("as_int", stride));
      }
    }
  }

  /// Results that no reader follows, such as the states behind a sequence: one call on zeros tells.
  void resize_by_run(const jit::Node& call, Json& values) {
    const auto tensor_of = [&](const jit::Value& value) -> c10::IValue {
      if (const auto constant = jit::toIValue(&value)) return *constant;
      const Json& meta = values.at(name_of(value));
      std::vector<int64_t> sizes;
      for (const Json& size : meta["sizes"]) sizes.push_back(hint_of(size));
      return at::zeros(sizes, type_of_code(meta["dtype"].get<int64_t>())->type);
    };
    std::vector<c10::IValue> stack;
    try {
      const at::NoGradGuard no_grad;
      for (const jit::Value* input : call.inputs()) {
        if (input->node()->kind() != c10::prim::ListConstruct) {
          stack.push_back(tensor_of(*input));
          continue;
        }
        std::vector<at::Tensor> tensors;
        for (const jit::Value* item : input->node()->inputs()) {
          tensors.push_back(tensor_of(*item).toTensor());
        }
        stack.emplace_back(tensors);
      }
      call.getOperation()(stack);
    } catch (const std::exception&) {
      return;  // sizes that only a run of the whole program tells
    }
    for (size_t i = 0; i < stack.size() && i < call.outputs().size(); ++i) {
      const std::string name = name_of(*call.output(i));
      if (!stack[i].isTensor() || !values.contains(name)) continue;
      Json& meta = values[name];
      ShapeChange change{{}, stack[i].toTensor().sizes().vec()};
      for (const Json& size : meta["sizes"]) change.before.push_back(hint_of(size));
      resize(meta, change);
    }
  }

  /// Nodes of calls that are gone, and checks of what these made.
  void drop_nodes(const std::map<size_t, jit::Node*>& before,
                  const std::map<size_t, jit::Node*>& after) {
    std::set<std::string> gone;
    std::map<std::string, std::set<size_t>> nodes;  // by the graph's place
    for (const auto& [step, call] : before) {
      if (after.contains(step)) continue;
      const std::string& place = program_.steps[step].place;
      const size_t slash = place.rfind('/');
      nodes[place.substr(0, slash)].insert(std::stoul(place.substr(slash + 1)));
      gone.insert(program_.steps[step].outputs.begin(), program_.steps[step].outputs.end());
    }
    if (nodes.empty()) return;
    const std::string top = "/graph_module/graph/nodes";
    for (size_t i = 0; i < at(top).size(); ++i) {
      for (const Json& input : at(top)[i]["inputs"]) {
        const Json& arg = input["arg"].begin().value();
        const bool reads = arg.is_object() && arg.contains("name") &&
                           gone.contains(arg["name"].get<std::string>());
        if (reads && at(top)[i]["outputs"].empty()) nodes[top].insert(i);
      }
    }
    for (const auto& [place, places] : nodes) {
      Json left = Json::array();
      size_t i = 0;
      for (Json& node : at(place)) {
        if (!places.contains(i++)) left.push_back(std::move(node));
      }
      at(place) = std::move(left);
      Json& values = at(place.substr(0, place.rfind('/')))["tensor_values"];
      for (const std::string& name : gone) values.erase(name);
    }
  }

  /// Parameters that only dropped nodes have read.
  void drop_tensors() {
    std::set<std::string> read;
    const auto collect = [&](std::shared_ptr<jit::Graph> graph, std::set<std::string>& paths) {
      jit::DepthFirstGraphNodeIterator nodes(graph);
      for (const jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
        for (const jit::Value* input : node->inputs()) {
          const std::string path = attribute_path(*input);
          if (!path.empty()) paths.insert(path);
        }
      }
    };
    std::set<std::string> had;
    collect(program_.module.get_method("forward").graph(), had);
    collect(edited_.graph, read);
    for (const std::string& path : had) {
      const auto found = placeholders_.find(path);
      if (read.contains(path) || found == placeholders_.end()) continue;
      dropped_.insert(path);
      const Json input = one("as_tensor", one("name", found->second));
      Json& inputs = graph()["inputs"];
      const auto at = std::find(inputs.begin(), inputs.end(), input) - inputs.begin();
      inputs.erase(at);
      input_specs().erase(at);
      graph()["tensor_values"].erase(found->second);
    }
  }

  at::Tensor tensor_at(const std::string& path) const {
    jit::Module owner = small_;
    size_t begin = 0;
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
      owner = owner.attr(path.substr(begin, dot - begin)).toModule();
      begin = dot + 1;
    }
    return owner.attr(path.substr(begin)).toTensor();
  }

  std::vector<NamedTensor> tensors() const {
    std::set<std::string> parameters;
    for (const Json& spec : json_["graph_module"]["signature"]["input_specs"]) {
      if (spec.contains("parameter")) {
        parameters.insert(spec["parameter"]["parameter_name"].get<std::string>());
      }
    }
    // Of the names of one tensor the program reads one: the others follow it.
    std::map<const void*, std::string> read;
    for (const auto& [name, placeholder] : program_.placeholders) {
      read.emplace(archive_.tensors().at(name).unsafeGetTensorImpl(), name);
    }
    std::vector<NamedTensor> all;
    for (const std::string& name : archive_.names()) {
      const at::Tensor& tensor = archive_.tensors().at(name);
      const bool used = program_.placeholders.contains(name);
      const auto tied = read.find(tensor.unsafeGetTensorImpl());
      const std::string source = used || tied == read.end() ? name : tied->second;
      if (dropped_.contains(source)) continue;
      const bool follows = used || source != name;
      all.push_back({name, follows ? tensor_at(source) : tensor, parameters.contains(source)});
    }
    all.insert(all.end(), added_.begin(), added_.end());
    return all;
  }

  const Archive& archive_;
  const Program& program_;
  const EditedScript& edited_;
  const jit::Module& small_;
  Json json_;
  std::map<std::string, std::string> placeholders_;
  std::vector<NamedTensor> added_;
  std::set<std::string> dropped_;
};

}  // namespace

void write_edited(const Archive& archive, const Program& program, const EditedScript& edited,
                  const jit::Module& small, const std::string& path) {
  Rewriter(archive, program, edited, small).write(path);
}

}  // namespace parsimony::torch_io::exported
