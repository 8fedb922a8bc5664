#include <torch/csrc/jit/ir/constants.h>

#include <optional>
#include <string_view>
#include <utility>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/exported/draft_impl.h"

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

/// The name in `target` of what `graph` calls `name`.
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
  if (!found) throw errors::cannot_rewrite(name, "a sub-graph would have to read it");
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

}  // namespace parsimony::torch_io::exported
