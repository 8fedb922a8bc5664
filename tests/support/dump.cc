#include "tests/support/dump.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace parsimony {
namespace {

constexpr size_t kMaxListed = 16;

std::string text_of(int64_t number) { return std::to_string(number); }

/// The shortest decimal that reads back as the same number.
std::string text_of(double number) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

/// Quoted, on one line whatever the file puts into it.
std::string text_of(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return out + '"';
}

template <typename T>
std::string listed(const std::vector<T>& items) {
  std::string out;
  for (size_t i = 0; i < std::min(items.size(), kMaxListed); ++i) {
    out += (i > 0 ? ", " : "") + text_of(items[i]);
  }
  if (items.size() > kMaxListed) out += ", … " + std::to_string(items.size()) + " in all";
  return out;
}

template <typename T>
std::string text_of(const std::vector<T>& items) {
  return '[' + listed(items) + ']';
}

std::string on_one_line(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < ' '; }, '?');
  return name;
}

class Dumper {
 public:
  Dumper(const Graph& graph, const Facts* facts) : graph_(graph), facts_(facts) {}

  std::string text() const {
    std::string out;
    for (const ValueId input : graph_.inputs) out += boundary("input", input);
    for (const Node& node : graph_.nodes) out += line(node);
    for (const ValueId output : graph_.outputs) out += boundary("output", output);
    return out;
  }

 private:
  const Shape* known_shape(ValueId id) const {
    const bool inferred = facts_ != nullptr && facts_->shapes.has(id) && facts_->shapes[id];
    if (inferred) return &*facts_->shapes[id];
    const Value& value = graph_.value(id);
    if (value.weight != kNone) return &graph_.weight(value.weight).dims;
    return value.declared ? &*value.declared : nullptr;
  }

  std::string dims(ValueId id) const {
    const Shape* shape = known_shape(id);
    if (shape == nullptr) return "[?]";
    const std::vector<std::string>& symbols = graph_.value(id).symbols;
    std::string out;
    for (size_t d = 0; d < shape->size(); ++d) {
      const bool named = d < symbols.size() && !symbols[d].empty();
      const std::string open = named ? on_one_line(symbols[d]) : "?";
      out += (d > 0 ? ", " : "") + ((*shape)[d] < 0 ? open : text_of((*shape)[d]));
    }
    return '[' + out + ']';
  }

  std::string operand(ValueId id) const {
    if (id == kNone) return "-";
    const Value& value = graph_.value(id);
    std::string out = on_one_line(value.name);
    if (value.weight != kNone) {
      const std::string& weight = graph_.weight(value.weight).name;
      out += '{' + (weight == value.name ? "" : on_one_line(weight)) + '}';
    }
    return out + dims(id) + elements(id);
  }

  /// Weights are not computed; their elements are the file's.
  std::string elements(ValueId id) const {
    const bool computed = facts_ != nullptr && graph_.value(id).producer != kNone &&
                          facts_->constants.has(id) && facts_->constants[id];
    if (!computed) return {};
    const HostTensor& tensor = *facts_->constants[id];
    return '<' + (tensor.floating() ? listed(tensor.floats) : listed(tensor.ints)) + '>';
  }

  std::string operands(const std::vector<ValueId>& ids) const {
    std::string out;
    for (size_t i = 0; i < ids.size(); ++i) out += (i > 0 ? ", " : "") + operand(ids[i]);
    return out;
  }

  std::string line(const Node& node) const {
    std::string out = on_one_line(label_of(graph_, node)) + ": " + operands(node.outputs) + " = ";
    if (!node.domain.empty()) out += on_one_line(node.domain) + '.';
    out += on_one_line(node.op) + '(' + operands(node.inputs) + ')';
    for (const auto& [name, attribute] : node.attributes) {
      const auto text = [](const auto& content) { return text_of(content); };
      out += ' ' + on_one_line(name) + '=' + std::visit(text, attribute);
    }
    return out + (node.has_subgraph ? " with subgraph\n" : "\n");
  }

  std::string boundary(std::string_view kind, ValueId id) const {
    return std::string(kind) + ' ' + operand(id) + ' ' +
           std::string(name_of(graph_.value(id).dtype)) + '\n';
  }

  const Graph& graph_;
  const Facts* facts_;
};

}  // namespace

std::string dump(const Graph& graph, const Facts* facts) { return Dumper(graph, facts).text(); }

}  // namespace parsimony
