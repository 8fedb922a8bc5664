#include "parsimony/programs/literal_editor.h"

#include <algorithm>
#include <functional>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/operators/node_view.h"

namespace parsimony::programs {
namespace {

bool all_equal(const std::vector<int64_t>& values) {
  return std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
}

}  // namespace

UnsupportedError not_written(std::string_view node, std::string_view what) {
  return UnsupportedError("node ", in_quotes(node), ": ", what,
                          " is not a literal in the program, so it cannot be changed");
}

std::string input_name(int input) { return "input " + std::to_string(input); }

LiteralEditor::LiteralEditor(const Graph& graph, const Sources& sources)
    : graph_(graph), sources_(sources) {
  for (const NodeId n : graph.nodes.ids()) nodes_.emplace(key_of(graph, graph.nodes[n]), n);
}

NodeId LiteralEditor::node(const std::string& key) const {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) throw ModelError("there is no node ", in_quotes(key));
  return found->second;
}

HostTensor LiteralEditor::constant_of(ValueId value) const {
  return to_host(graph_.weight_of(value));
}

void LiteralEditor::set_attribute(const std::string& key, const std::string& attribute,
                                  std::span<const int64_t> values) {
  const auto found = sources_.attributes.find(node(key));
  if (found != sources_.attributes.end() && values.size() == 1) {
    for (const auto& [name, location] : found->second) {
      if (name != attribute) continue;
      return write(location, HostTensor::scalar(values[0]), key, in_quotes(attribute));
    }
  }
  throw not_written(key, in_quotes(attribute));
}

void LiteralEditor::set_input(const std::string& key, int input, const HostTensor& constant) {
  const NodeId id = node(key);
  const Node& node = graph_.node(id);
  const bool exists = input >= 0 && input < std::ssize(node.inputs);
  const ValueId value = exists ? node.inputs[static_cast<size_t>(input)] : ValueId(kNone);
  if (value == kNone) throw not_written(key, input_name(input));
  const auto found = sources_.constants.find(value);
  if (found == sources_.constants.end()) return set_operand(key, id, input, constant);
  const ConstantOrigin& written = found->second;
  if (graph_.value(value).weight == kNone) {  // put together when the program runs
    return set_parts(key, id, constant, written.equal_parts);
  }
  const bool whole =
      written.elements.empty() && !written.equal_parts && sources_.operand(id, input).known();
  if (whole || constant.floating()) return set_operand(key, id, input, constant);
  const bool placed = std::ranges::any_of(written.elements, &SourceLocation::known);
  if (written.start_of != kNone) {
    set_length(key, written, constant);
  } else if (node.op == "Split" && (written.equal_parts || !placed)) {
    set_parts(key, id, constant, written.equal_parts);
  } else {
    set_elements(key, input_name(input), written, constant_of(value), constant);
  }
}

void LiteralEditor::set_operand(const std::string& key, NodeId id, int input,
                                const HostTensor& to) {
  const SourceLocation location = sources_.operand(id, input);
  if (!location.known() && set_pieces(id, input, to)) return;
  write(location, to, key, input_name(input));
}

/// Of a list that is put together from numbers, such as the bounds of a slice.
bool LiteralEditor::set_pieces(NodeId id, int input, const HostTensor& to) {
  const NodeId list = graph_.value(graph_.node(id).inputs[input]).producer;
  if (list == kNone || graph_.node(list).op != "Concat" || to.floating()) return false;
  const auto pieces = static_cast<int>(graph_.node(list).inputs.size());
  if (to.count() != pieces) return false;
  for (int i = 0; i < pieces; ++i) {
    if (!sources_.operand(list, i).known()) return false;
  }
  for (int i = 0; i < pieces; ++i) {
    set_operand(key_of(graph_, graph_.node(list)), list, i, HostTensor::vector({to.ints[i]}));
  }
  return true;
}

/// chunk, tensor_split, split and split_with_sizes of computed sizes get explicit sizes.
void LiteralEditor::set_parts(const std::string& key, NodeId id, const HostTensor& to,
                              bool equal_parts) {
  if (equal_parts && all_equal(to.ints)) return;
  const SourceLocation call = sources_.operand(id, 0);
  if (!call.known()) throw not_written(key, "the sizes of the parts");
  write_parts(call, to.ints, key);
}

/// narrow(x, dim, start, length): the end is where the length has brought it.
void LiteralEditor::set_length(const std::string& key, const ConstantOrigin& written,
                               const HostTensor& to) {
  const SourceLocation start = sources_.constants.at(written.start_of).elements.at(0);
  const HostTensor begin = written_at(start).value_or(constant_of(written.start_of));
  write(written.elements.at(0), HostTensor::scalar(to.ints.at(0) - begin.ints.at(0)), key,
        "the length");
}

void LiteralEditor::set_elements(const std::string& key, const std::string& what,
                                 const ConstantOrigin& written, const HostTensor& from,
                                 const HostTensor& to) {
  if (from.ints.size() != to.ints.size()) throw not_written(key, what);
  const int64_t sign = written.negated ? -1 : 1;
  for (size_t i = 0; i < to.ints.size(); ++i) {
    const SourceLocation location =
        i < written.elements.size() ? written.elements[i] : SourceLocation{};
    if (location.item != kNone) note_item(location, sign * from.ints[i]);
    if (from.ints[i] == to.ints[i]) continue;
    write(location, HostTensor::scalar(sign * to.ints[i]), key, what);
  }
}

void LiteralEditor::update_shapes(const ChangeOf& change) {
  const auto name = [&](ValueId value) -> const std::string& { return graph_.value(value).name; };
  for (const SizeLiteral& literal : sources_.size_literals) {
    const auto shapes = change(name(literal.value));
    if (!shapes) continue;
    const auto dim = static_cast<size_t>(literal.dim);
    const int64_t before = shapes->before.at(dim);
    const int64_t after = shapes->after.at(dim);
    if (literal.location.item != kNone) note_item(literal.location, before);
    if (before == after) continue;
    write(literal.location, HostTensor::scalar(after), name(literal.value), "a repeated size");
  }
  for (const ImplicitScale& frozen : sources_.frozen) {
    const auto shapes = change(name(frozen.value));
    const auto dim = static_cast<size_t>(frozen.dim);
    if (!shapes || shapes->before.at(dim) == shapes->after.at(dim)) continue;
    if (written_at(frozen.location)) continue;  // a plan may have let it follow
    const HostTensor number =
        HostTensor::of(frozen.number, frozen.whole ? DType::kInt64 : DType::kFloat64);
    write(frozen.location, number, name(frozen.value), frozen.whole ? "a number" : "the scale");
  }
}

std::vector<NodeId> LiteralEditor::refused(const std::vector<Patch>& patches) {
  std::vector<NodeId> nodes;
  for (const Patch& patch : patches) {
    const std::string& key = key_of(graph_, graph_.node(patch.node));
    try {
      if (patch.input >= 0) {
        set_input(key, patch.input, patch.to);
      } else if (!patch.to.floating()) {
        set_attribute(key, patch.what, patch.to.ints);
      }
    } catch (const UnsupportedError&) {
      nodes.push_back(patch.node);
    }
  }
  sort_unique(nodes);
  return nodes;
}

}  // namespace parsimony::programs
