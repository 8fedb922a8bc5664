// What people are told of the program: which line a node comes from, what results are called.
#include <algorithm>
#include <set>

#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

/// "net.py:12: y = torch.foo(x)"; empty for what no file says.
std::string line_of(const jit::Node& node) {
  jit::SourceRange range = node.sourceRange();
  if (const auto python = range.findSourceRangeThatGenerated()) range = *python;
  const auto place = range.file_line_col();
  if (!place) return {};
  const auto& [file, line, column] = *place;
  std::string text = range.text().str();
  text = text.substr(0, text.find('\n'));
  return file + ":" + std::to_string(line) + ": " + text;
}

/// Names of a tuple's fields; empty where they have none.
std::vector<std::string> fields_of(const c10::TypePtr& type) {
  const auto tuple = type->cast<c10::TupleType>();
  std::vector<std::string> names;
  if (!tuple || !tuple->schema()) return names;
  for (const c10::Argument& field : tuple->schema()->arguments()) names.push_back(field.name());
  return names;
}

std::string inside(const std::string& outer, const std::string& name) {
  return outer.empty() ? name : outer + "." + name;
}

void collect(const Binding& binding, const std::vector<std::string>& fields,
             const std::string& name, std::vector<std::string>& names) {
  if (binding.is(Kind::kTensor)) names.push_back(name);
  if (!binding.is(Kind::kList)) return;
  const std::vector<Binding>& items = *binding.items;
  const bool dictionary = binding.text == kDictionary;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool keyed = dictionary && i % 2 == 1 && items[i - 1].is(Kind::kString);
    const std::string own = keyed               ? items[i - 1].text
                            : i < fields.size() ? fields[i]
                                                : std::to_string(dictionary ? i / 2 : i);
    collect(items[i], {}, inside(name, own), names);
  }
}

}  // namespace

/// Says of the node that was emitted last what call it stands for. `effect`: the call changes what
/// others see, which the Graph does not say.
void Interpreter::describe(const jit::Node* node, bool effect) {
  auto& attributes = graph_.nodes.back().attributes;
  attributes.emplace_back("call", std::string(node->kind().toQualString()));
  if (std::string line = line_of(*node); !line.empty()) {
    attributes.emplace_back("line", std::move(line));
  }
  if (effect) attributes.emplace_back("effect", std::string("writes"));
}

std::vector<std::string> Interpreter::result_names() const {
  std::vector<std::string> names;
  for (const jit::Value* output : origins_.graph->outputs()) {
    collect(of(output), fields_of(output->type()), "", names);
  }
  std::set<std::string> taken;
  for (const ValueId input : graph_.inputs) taken.insert(graph_.value(input).name);
  for (std::string& name : names) {
    const bool plain = std::all_of(
        name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
    if (plain) name = "output" + name;
    const std::string base = name;
    for (int i = 2; !taken.insert(name).second; ++i) name = base + "_" + std::to_string(i);
  }
  return names;
}

}  // namespace parsimony::torch_io::script
