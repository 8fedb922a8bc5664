#include "parsimony/programs/exported/editor.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/slice.h"
#include "parsimony/programs/exported/json_tree_impl.h"
#include "parsimony/speedup/masked_values.h"

namespace parsimony::programs {
namespace {

using Json = nlohmann::ordered_json;

UnsupportedError cannot_rewrite(std::string_view node, std::string_view why) {
  return UnsupportedError("node ", in_quotes(node), " of the program: ", why);
}

/// {"as_int": 3}
Json tagged(const char* kind, Json value) {
  Json json = Json::object();
  json[kind] = std::move(value);
  return json;
}

Json named(const std::string& value) { return tagged("as_tensor", tagged("name", value)); }

/// The name of {"as_tensor": {"name": "x"}}; empty for anything else.
std::string tensor_in(const Json& argument) {
  if (!argument.is_object() || !argument.contains("as_tensor")) return {};
  return argument["as_tensor"].value("name", "");
}

/// Calls `visit` with every name of a value in a JSON tree: {"name": "x"}, {"as_name": "x"}.
void for_each_name(Json& json, const std::function<void(Json& name)>& visit) {
  if (json.is_object() && json.size() == 1) {
    for (const char* key : {"name", "as_name"}) {
      if (json.contains(key) && json[key].is_string()) return visit(json[key]);
    }
  }
  if (json.is_structured()) {
    for (Json& item : json) for_each_name(item, visit);
  }
}

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
void resize(Json& meta, const Shape& before, const Shape& after) {
  Json& sizes = meta["sizes"];
  Json& strides = meta["strides"];
  const size_t rank = sizes.size();
  if (before.size() != rank || after.size() != rank || strides.size() != rank) return;
  const Json old = strides;
  for (size_t d = 0; d < rank; ++d) {
    if (before[d] == after[d]) continue;
    for (size_t outer = 0; outer < rank; ++outer) {
      if (hint_of(old[outer]) > hint_of(old[d]) && before[d] != 0) {
        const int64_t stride = hint_of(strides[outer]);
        strides[outer] = scaled(strides[outer], stride, stride / before[d] * after[d]);
      }
    }
    sizes[d] = scaled(sizes[d], before[d], after[d]);
  }
}

const ElementType* element_type_of(DType dtype) { return element_type_of_name(name_of(dtype)); }

}  // namespace

/// What becomes of a tensor.
class EditedElements final : public LateElements {
 public:
  explicit EditedElements(const Weight& original) : original_(original) {}

  void slice(std::span<const AxisKeep> axes) {
    steps_.push_back({.axes = {axes.begin(), axes.end()}});
  }
  void zero_smallest(int64_t count) { steps_.push_back({.smallest = count}); }
  void assign(std::span<const std::byte> values) {
    steps_.push_back({.values = std::vector<std::byte>(values.begin(), values.end())});
  }

  std::vector<std::byte> make() const override {
    if (steps_.empty()) return dense_bytes(original_);
    Weight now = original_;
    std::vector<std::byte> bytes;
    auto step = steps_.begin();
    // What comes before new values shows in their shape alone.
    const auto last = std::find_if(steps_.rbegin(), steps_.rend(),
                                   [](const Step& one) { return one.values.has_value(); });
    for (; step + 1 < last.base(); ++step) now.dims = sliced(now.dims, step->axes);
    for (; step != steps_.end(); ++step) {
      if (step->values) {
        bytes = *step->values;
      } else if (step->smallest > 0) {
        if (bytes.empty()) bytes = dense_bytes(now);
        mask_values({.tensor = now.name, .smallest = step->smallest},
                    {.dtype = now.dtype, .dims = now.dims, .values = bytes});
      } else {
        bytes = sliced_bytes(now.data, now.dims, now.stride, step->axes);
        now.dims = sliced(now.dims, step->axes);
      }
      now.data = bytes.data();
    }
    return bytes;
  }

 private:
  struct Step {
    std::vector<AxisKeep> axes = {};
    int64_t smallest = 0;
    std::optional<std::vector<std::byte>> values = {};
  };

  Weight original_;
  std::vector<Step> steps_;
};

struct ProgramEditor::Impl {
  Impl(const Archive& from, const Program& read, const std::vector<InputSpec>& read_with)
      : archive(from), program(read), inputs(read_with), values(read.graph) {
    for (const Weight& weight : program.graph.weights) weights.emplace(weight.name, &weight);
  }

  using Place = std::pair<int, int>;  // call and input
  /// What an argument becomes: a list changes by items, of which those that are known are here.
  struct Change {
    std::optional<HostTensor> whole;
    std::map<int, int64_t> items;
    std::map<int, int64_t> known;
    std::string node;  ///< for messages
    std::string what;
  };
  struct Duplicate {
    std::string of;
    std::vector<SourceLocation> readers;
  };

  const Archive& archive;
  const Program& program;
  const std::vector<InputSpec>& inputs;
  GraphEditor values;  ///< has the tensors' shapes as they are now
  /// Of tensors with other elements, by name.
  std::map<std::string, std::shared_ptr<EditedElements>> elements;
  std::unordered_map<std::string_view, const Weight*> weights;
  std::map<Place, Change> changes;
  std::map<int, std::vector<int64_t>> splits;  ///< calls that get an explicit list of sizes
  std::map<std::string, Duplicate> duplicates;
  std::vector<Place> bypasses;
  std::map<std::string, Shape> cut_inputs;  ///< by name
  bool edited = false;

  EditedElements& elements_of(const std::string& tensor) {
    const auto weight = weights.find(tensor);
    if (weight == weights.end() && !elements.contains(tensor)) {
      throw ModelError("there is no tensor ", in_quotes(tensor));
    }
    std::shared_ptr<EditedElements>& known = elements[tensor];
    if (!known) known = std::make_shared<EditedElements>(*weight->second);
    edited = true;
    return *known;
  }

  SourceLocation operand(NodeId id, int input) const { return program.sources.operand(id, input); }

  EditedProgram finish() const;
};

namespace {

/// The JSON of a program while edits are written into it.
class Draft {
 public:
  Draft(const Archive& archive, const Program& program)
      : archive_(archive), program_(program), json_(tree_of(archive.program())) {
    read_at_first_ = names_read();
  }

  Json& at(const std::string& place) { return json_.at(Json::json_pointer(place)); }
  Json& graph() { return at(kTopGraph); }
  Json& signature() { return json_["graph_module"]["signature"]; }
  Json& values() { return values_of(kTopGraph); }
  /// What a graph declares of its tensors; an empty object if it declares none.
  Json& values_of(const std::string& graph) {
    Json& declared = at(graph)["tensor_values"];
    if (!declared.is_object()) declared = Json::object();
    return declared;
  }
  /// The members of an object, by name, for as long as it gets no others.
  static std::unordered_map<std::string_view, Json*> members_of(Json& object) {
    std::unordered_map<std::string_view, Json*> members;
    for (auto& [name, value] : object.get_ref<Json::object_t&>()) members.emplace(name, &value);
    return members;
  }
  std::string text() const { return json_.dump(); }

  Json& node_of(int call) { return at(program_.calls[static_cast<size_t>(call)].place); }

  /// Null if the argument has its default.
  static Json* argument(Json& node, const std::string& name) {
    for (Json& input : node["inputs"]) {
      if (input["name"] == name) return &input["arg"];
    }
    return nullptr;
  }

  static void set_argument(Json& node, const std::string& name, Json value) {
    if (Json* known = argument(node, name)) {
      *known = std::move(value);
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

  /// A new parameter or buffer, after the last of its kind: parameters come before buffers, and
  /// these before inputs. @returns the name of its value
  std::string add_input(const ArchivedTensor& added) {
    const std::string placeholder = (added.is_parameter ? "p_" : "b_") + added.name;
    Json spec;
    spec["arg"] = tagged("name", placeholder);
    spec[added.is_parameter ? "parameter_name" : "buffer_name"] = added.name;
    if (!added.is_parameter) spec["persistent"] = true;
    std::set<std::string_view> before{"token", "parameter"};
    if (!added.is_parameter) before.insert("buffer");
    Json& specs = signature()["input_specs"];
    std::ptrdiff_t offset = 0;
    while (offset < std::ssize(specs) && before.contains(specs[offset].begin().key())) ++offset;
    specs.insert(specs.begin() + offset, tagged(added.is_parameter ? "parameter" : "buffer", spec));
    Json& inputs = graph()["inputs"];
    inputs.insert(inputs.begin() + offset, named(placeholder));
    Json meta = values().empty() ? Json::object() : values().begin().value();
    meta["dtype"] = code_of(*added.type);
    meta["requires_grad"] = added.is_parameter;
    values()[placeholder] = std::move(meta);
    return placeholder;
  }

  void drop_input(const std::string& placeholder) {
    const Json input = named(placeholder);
    Json& inputs = graph()["inputs"];
    const auto at = std::ranges::find(inputs, input) - inputs.begin();
    if (at == std::ssize(inputs)) return;
    inputs.erase(at);
    signature()["input_specs"].erase(at);
    values().erase(placeholder);
  }

  /// What read one value reads another.
  void rename(const std::string& from, const std::string& to) {
    const auto replace = [&](Json& name) {
      if (name == from) name = to;
    };
    for (Json& node : graph()["nodes"]) for_each_name(node["inputs"], replace);
    for_each_name(graph()["outputs"], replace);
    for_each_name(signature()["output_specs"], replace);
  }

  /// Removes an addition: what read its result reads the operand.
  void bypass(int call, const std::string& argument_name) {
    const ProgramCall& of = program_.calls[static_cast<size_t>(call)];
    Json& node = node_of(call);
    const std::string target = node["target"].get<std::string>();
    if (graph_of(of.place) != kTopGraph) throw cannot_rewrite(target, "it is in a sub-graph");
    const Json* operand = argument(node, argument_name);
    const std::string kept = operand == nullptr ? "" : tensor_in(*operand);
    if (kept.empty()) throw cannot_rewrite(target, "its operand is not a tensor");
    const std::string gone = tensor_in(node["outputs"][0]);
    rename(gone, kept);
    node["outputs"] = Json::array();  // a node without results that checks nothing
    bypassed_.insert(&node);
  }

  /// Removes calls whose results nothing reads, checks of what these made, and inputs that only
  /// they have read. @returns the placeholders of these
  std::set<std::string> drop_dead() {
    std::set<const Json*> dead = bypassed_;
    std::set<std::string> removed;
    for (bool again = true; std::exchange(again, false);) {
      const std::set<std::string> read = names_read(dead);
      for (Json& node : graph()["nodes"]) {
        if (dead.contains(&node) || has_effect(node)) continue;
        std::vector<std::string> made;
        for_each_name(node["outputs"], [&](Json& name) { made.push_back(name); });
        const bool checks = made.empty();
        bool is_dead = !checks && std::ranges::none_of(made, [&](const std::string& name) {
          return read.contains(name);
        });
        if (checks) {
          for_each_name(node["inputs"], [&](Json& name) {
            is_dead = is_dead || removed.contains(name.get<std::string>());
          });
        }
        if (!is_dead) continue;
        dead.insert(&node);
        removed.insert(made.begin(), made.end());
        again = true;
      }
    }
    const std::set<std::string> read = names_read(dead);
    Json left = Json::array();
    for (Json& node : graph()["nodes"]) {
      if (!dead.contains(&node)) left.push_back(std::move(node));
    }
    graph()["nodes"] = std::move(left);
    Json::object_t declared;
    declared.reserve(values().size());
    for (auto& [name, meta] : values().get_ref<Json::object_t&>()) {
      if (!removed.contains(name)) declared.emplace_back(name, std::move(meta));
    }
    values() = std::move(declared);
    std::set<std::string> unread;
    for (const auto& [tensor, placeholder] : program_.placeholders) {
      if (read.contains(placeholder) || !read_at_first_.contains(placeholder)) continue;
      drop_input(placeholder);
      unread.insert(placeholder);
    }
    return unread;
  }

 private:
  /// Does it change what others see?
  static bool has_effect(const Json& node) {
    const std::string target = node["target"].get<std::string>();
    const std::string op = target.substr(0, target.rfind('.'));
    return op.ends_with('_') && !op.ends_with("__");
  }

  std::set<std::string> names_read(const std::set<const Json*>& without = {}) {
    std::set<std::string> names;
    const auto add = [&](Json& name) { names.insert(name.get<std::string>()); };
    for (Json& node : graph()["nodes"]) {
      const bool checks = node["outputs"].empty();
      if (!without.contains(&node) && !checks) for_each_name(node["inputs"], add);
    }
    for_each_name(graph()["outputs"], add);
    return names;
  }

  const Archive& archive_;
  const Program& program_;
  Json json_;
  std::set<std::string> read_at_first_;  ///< names of values
  std::set<const Json*> bypassed_;
};

Json number_json(const HostTensor& value, bool is_list) {
  if (!is_list && value.count() == 1) {
    return value.floating() ? tagged("as_float", value.floats[0]) : tagged("as_int", value.ints[0]);
  }
  return value.floating() ? tagged("as_floats", value.floats) : tagged("as_ints", value.ints);
}

}  // namespace

EditedProgram ProgramEditor::Impl::finish() const {
  Draft draft(archive, program);
  EditedProgram result;
  // Numbers.
  for (const auto& [place, change] : changes) {
    if (!change.whole && change.items.empty()) continue;
    const auto& [call, input] = place;
    Json& node = draft.node_of(call);
    const Schema* schema = program.calls[static_cast<size_t>(call)].schema;
    if (schema == nullptr || static_cast<size_t>(input) >= schema->parameters.size()) {
      throw not_written(change.node, change.what);
    }
    const Parameter& parameter = schema->parameters[static_cast<size_t>(input)];
    Json* known = Draft::argument(node, parameter.name);
    if (change.whole) {
      if (known != nullptr && !tensor_in(*known).empty()) {
        throw not_written(change.node, change.what);
      }
      Draft::set_argument(node, parameter.name, number_json(*change.whole, parameter.is_list));
      continue;
    }
    const bool is_list = known != nullptr && known->begin().value().is_array();
    Json list = is_list ? known->begin().value() : Json::array();
    const bool symbolic = is_list && known->contains("as_sym_ints");
    if (!is_list) {
      for (const auto& [item, number] : change.known) {
        if (item != std::ssize(list)) throw not_written(change.node, change.what);
        list.push_back(number);
      }
    }
    for (const auto& [item, number] : change.items) {
      if (item >= std::ssize(list)) throw not_written(change.node, change.what);
      list[static_cast<size_t>(item)] = symbolic ? tagged("as_int", number) : Json(number);
    }
    const char* kind = symbolic ? "as_sym_ints" : "as_ints";
    Draft::set_argument(node, parameter.name, tagged(kind, std::move(list)));
  }
  for (const auto& [call, sizes] : splits) {
    Json& node = draft.node_of(call);
    const std::string target = node["target"].get<std::string>();
    if (target.find("split") == std::string::npos && target.find("chunk") == std::string::npos) {
      throw not_written(target, "the sizes of the parts");
    }
    const Json* x = Draft::argument(node, "self");
    const Json* dim = Draft::argument(node, "dim");
    Json arguments = Json::array();
    const Json dim_value = dim == nullptr ? tagged("as_int", 0) : *dim;
    const Json x_value = *x;
    const bool has_kinds = node["inputs"][0].contains("kind");
    const auto add = [&](const char* name, const Json& value) {
      Json input;
      input["name"] = name;
      input["arg"] = value;
      if (has_kinds) input["kind"] = 1;
      arguments.push_back(std::move(input));
    };
    add("self", x_value);
    add("split_sizes", tagged("as_ints", sizes));
    add("dim", dim_value);
    node["target"] = "torch.ops.aten.split_with_sizes.default";
    node["inputs"] = std::move(arguments);
  }
  // Tensors.
  std::unordered_map<std::string, const Weight*> now;
  for (const Weight& weight : values.graph().weights) now[weight.name] = &weight;
  const auto fill = [&](ArchivedTensor& tensor, const Weight& weight) {
    const bool complex = weight.dims.size() == tensor.dims.size() + 1;
    tensor.dims = weight.dims;
    if (complex) tensor.dims.pop_back();
    const auto late = elements.find(weight.name);
    if (late == elements.end()) {
      tensor.elements = {weight.data, static_cast<size_t>(weight.count() * weight.stride)};
    } else if (is_literal(weight.dtype, weight.count())) {  // shapes may depend on it
      tensor.elements = result.literals.emplace_back(late->second->make());
    } else {
      tensor.elements = {};
      tensor.late = late->second;
    }
  };
  std::set<std::string> parameters;
  for (const Json& spec : draft.signature()["input_specs"]) {
    if (spec.contains("parameter")) {
      parameters.insert(spec["parameter"]["parameter_name"].get<std::string>());
    }
  }
  std::vector<ArchivedTensor> added;
  for (const auto& [name, duplicate] : duplicates) {
    const Weight& weight = *now.at(name);
    ArchivedTensor tensor{.name = name, .type = element_type_of(weight.dtype), .dims = weight.dims};
    const auto stored = archive.tensors().find(duplicate.of);
    if (stored != archive.tensors().end()) tensor = stored->second;  // else the program computes it
    tensor.name = name;
    std::ranges::replace(tensor.name, '.', '_');
    tensor.is_parameter = parameters.contains(duplicate.of);
    fill(tensor, weight);
    const std::string placeholder = draft.add_input(tensor);
    for (const SourceLocation& reader : duplicate.readers) {
      const ProgramCall& call = program.calls[static_cast<size_t>(reader.call)];
      Json& node = draft.node_of(reader.call);
      const std::string target = node["target"].get<std::string>();
      if (graph_of(call.place) != kTopGraph) {
        throw cannot_rewrite(target, "a sub-graph would have to read a new tensor");
      }
      if (reader.item != kNone) throw not_written(target, "a tensor in a list");
      Draft::set_argument(node, call.schema->parameters.at(static_cast<size_t>(reader.input)).name,
                          named(placeholder));
    }
    added.push_back(std::move(tensor));
  }
  for (const auto& [name, uses] : program.computed) {
    if (!elements.contains(name)) continue;
    const Weight& weight = *now.at(name);
    ArchivedTensor tensor{.name = name, .type = element_type_of(weight.dtype), .dims = weight.dims};
    fill(tensor, weight);
    const std::string placeholder = draft.add_input(tensor);
    for (const ProgramValue& value : uses) {
      if (value.graph != kTopGraph) {
        throw cannot_rewrite(value.name, "a sub-graph would have to read a new tensor");
      }
      draft.rename(value.name, placeholder);
    }
    added.push_back(std::move(tensor));
  }
  for (const auto& [call, input] : bypasses) {
    const Schema* schema = program.calls[static_cast<size_t>(call)].schema;
    draft.bypass(call, schema->parameters.at(static_cast<size_t>(input)).name);
  }
  const std::set<std::string> unread = draft.drop_dead();
  // Of the names of one tensor the program reads one: the others follow it.
  std::map<std::pair<const std::byte*, Shape>, std::string> owners;
  for (const auto& [name, placeholder] : program.placeholders) {
    const ArchivedTensor& tensor = archive.tensors().at(name);
    if (now.contains(name)) owners.emplace(std::pair(tensor.elements.data(), tensor.dims), name);
  }
  for (const std::string& name : archive.names()) {
    ArchivedTensor tensor = archive.tensors().at(name);
    const auto own = program.placeholders.find(name);
    const auto owner = owners.find({tensor.elements.data(), tensor.dims});
    const bool follows = owner != owners.end() && !tensor.elements.empty();
    const std::string& source = follows ? owner->second : name;
    const auto read_as = program.placeholders.find(source);
    if (read_as != program.placeholders.end() && unread.contains(read_as->second)) continue;
    if (own != program.placeholders.end() && unread.contains(own->second)) continue;
    tensor.is_parameter = parameters.contains(source);
    const auto weight = now.find(source);
    if (weight != now.end()) fill(tensor, *weight->second);
    result.tensors.push_back(std::move(tensor));
  }
  std::ranges::move(added, std::back_inserter(result.tensors));
  std::map<std::string, ArchivedTensor> by_name;
  for (const ArchivedTensor& tensor : result.tensors) by_name[tensor.name] = tensor;
  // Declared sizes: of tensors, of inputs, then of what these make.
  std::map<std::string, std::unordered_map<std::string_view, Json*>> declared;  // by graph
  const auto declared_in = [&](const std::string& graph) -> const auto& {
    const auto [found, fresh] = declared.try_emplace(graph);
    if (fresh) found->second = Draft::members_of(draft.values_of(graph));
    return found->second;
  };
  const auto& on_top = declared_in(kTopGraph);
  for (const Json& spec : draft.signature()["input_specs"]) {
    const Json& input = spec.begin().value();
    for (const char* key : {"parameter_name", "buffer_name", "tensor_constant_name"}) {
      if (!input.is_object() || !input.contains(key)) continue;
      const ArchivedTensor& tensor = by_name.at(input[key].get<std::string>());
      const auto found = on_top.find(input["arg"].value("name", ""));
      if (found == on_top.end()) continue;
      Json& meta = *found->second;
      meta["sizes"] = Json::array();
      meta["strides"] = Json::array();
      for (const int64_t size : tensor.dims) meta["sizes"].push_back(tagged("as_int", size));
      for (const int64_t stride : dense_strides(tensor.dims)) {
        meta["strides"].push_back(tagged("as_int", stride));
      }
    }
  }
  std::vector<InputSpec> small_inputs = inputs;
  size_t position = 0;
  for (const ValueId input : program.graph.inputs) {
    const std::string& name = program.graph.value(input).name;
    const auto cut = cut_inputs.find(name);
    if (cut != cut_inputs.end() && on_top.contains(name)) {
      Json& meta = *on_top.at(name);
      Shape before;
      for (const Json& size : meta["sizes"]) before.push_back(hint_of(size));
      resize(meta, before, cut->second);
    }
    if (cut != cut_inputs.end() && position < small_inputs.size()) {
      small_inputs[position].dims = cut->second;
    }
    ++position;
  }
  const JsonDocument edited_json(draft.text(), archive.path(), throw_as<ModelError>);
  const Program small =
      read_program(edited_json.root(), by_name, archive.path(), small_inputs, literals_of(archive));
  std::unordered_set<std::string_view> tensors;
  for (const auto& [name, placeholder] : program.placeholders) tensors.insert(placeholder);
  std::map<std::pair<std::string, std::string>, const ProgramValue*> before;
  for (const ProgramValue& value : program.values) before[{value.graph, value.name}] = &value;
  for (const ProgramValue& value : small.values) {
    const auto known = before.find({value.graph, value.name});
    if (known == before.end() || !value.dims || !known->second->dims) continue;
    if (*value.dims == *known->second->dims || cut_inputs.contains(value.name)) continue;
    if (value.graph == kTopGraph && tensors.contains(value.name)) continue;
    const auto& named_there = declared_in(value.graph);
    const auto meta = named_there.find(value.name);
    if (meta != named_there.end()) resize(*meta->second, *known->second->dims, *value.dims);
  }
  result.json = draft.text();
  result.inputs = std::move(small_inputs);
  return result;
}

ProgramEditor::ProgramEditor(const Archive& archive, const Program& program,
                             const std::vector<InputSpec>& inputs)
    : LiteralEditor(program.graph, program.sources),
      impl_(std::make_unique<Impl>(archive, program, inputs)) {}

ProgramEditor::~ProgramEditor() = default;

void ProgramEditor::bypass(std::span<const BypassedNode> nodes) {
  for (const auto& [key, input] : nodes) {
    const NodeId id = node(key);
    if (!can_bypass(impl_->program, id, input)) throw not_written(key, input_name(input));
    const SourceLocation location = impl_->operand(id, input);
    impl_->bypasses.emplace_back(location.call, location.input);
  }
  impl_->edited = true;
}

void ProgramEditor::copy(const std::string& name, const std::string& of,
                         const std::string& consumer, int input) {
  const NodeId id = node(consumer);
  impl_->values.copy(name, of, consumer, input);
  impl_->edited = true;
  impl_->elements[name] = std::make_shared<EditedElements>(impl_->elements_of(of));
  if (impl_->program.sources.synthetic.contains(of)) return;
  const SourceLocation location = impl_->operand(id, input);
  if (!location.known()) throw not_written(consumer, input_name(input));
  const auto original = impl_->duplicates.find(of);
  Impl::Duplicate& duplicate = impl_->duplicates[name];
  duplicate.of = original == impl_->duplicates.end() ? of : original->second.of;
  duplicate.readers.push_back(location);
}

void ProgramEditor::slice(const std::string& tensor, std::span<const AxisKeep> axes) {
  impl_->values.slice(tensor, axes);
  impl_->elements_of(tensor).slice(axes);
}

void ProgramEditor::slice_input(const std::string& input, std::span<const AxisKeep> axes) {
  const Graph& graph = impl_->program.graph;
  const auto found = std::ranges::find_if(
      graph.inputs, [&](ValueId value) { return graph.value(value).name == input; });
  if (found == graph.inputs.end()) throw ModelError("there is no input ", in_quotes(input));
  const Value& value = graph.value(*found);
  const auto known = impl_->cut_inputs.find(input);
  const Shape dims =
      known == impl_->cut_inputs.end() ? value.declared.value_or(Shape()) : known->second;
  check_slices(input, dims, axes);
  impl_->cut_inputs[input] = sliced(dims, axes);
  impl_->edited = true;
}

void ProgramEditor::zero_smallest(const std::string& tensor, int64_t count) {
  impl_->elements_of(tensor).zero_smallest(count);
}

void ProgramEditor::assign(const std::string& tensor, std::span<const std::byte> values) {
  impl_->values.assign(tensor, values);
  impl_->elements_of(tensor).assign(values);
}

void ProgramEditor::write(const SourceLocation& location, const HostTensor& value,
                          const std::string& node, const std::string& what) {
  const bool is_item = location.item != kNone;
  if (!location.known() || (is_item && (value.floating() || value.ints.size() != 1))) {
    throw not_written(node, what);
  }
  Impl::Change& change = impl_->changes[{location.call, location.input}];
  change.node = node;
  change.what = what;
  if (is_item) {
    change.items[location.item] = value.ints[0];
  } else {
    change.whole = value;
  }
  impl_->edited = true;
}

void ProgramEditor::write_parts(const SourceLocation& call, const std::vector<int64_t>& sizes,
                                const std::string& node) {
  const auto [it, fresh] = impl_->splits.emplace(call.call, sizes);
  if (!fresh && it->second != sizes) throw not_written(node, "the sizes of the parts");
  impl_->edited = true;
}

void ProgramEditor::note_item(const SourceLocation& location, int64_t number) {
  impl_->changes[{location.call, location.input}].known.emplace(location.item, number);
}

std::optional<HostTensor> ProgramEditor::written_at(const SourceLocation& location) const {
  const auto found = impl_->changes.find({location.call, location.input});
  if (found == impl_->changes.end()) return {};
  if (found->second.whole) return found->second.whole;
  const auto item = found->second.items.find(location.item);
  if (item == found->second.items.end()) return {};
  return HostTensor::scalar(item->second);
}

bool ProgramEditor::edited() const { return impl_->edited; }

EditedProgram ProgramEditor::finish() const { return impl_->finish(); }

bool ProgramEditor::can_bypass(const Program& program, NodeId sum, int kept) {
  const SourceLocation location = program.sources.operand(sum, kept);
  return adds_branches(program.graph.node(sum)) && location.known() && location.item == kNone;
}

}  // namespace parsimony::programs
