#include "parsimony/graph/operators/node_view.h"

#include <algorithm>
#include <optional>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {

ValueId NodeView::input(int i) const { return i < inputs() ? node_.inputs[i] : kNone; }

ValueId NodeView::output(int i) const { return i < outputs() ? node_.outputs[i] : kNone; }

const Shape* NodeView::shape(ValueId value) const {
  if (value == kNone) return nullptr;
  const auto& shape = facts_.shapes[value];
  return shape ? &*shape : nullptr;
}

const HostTensor* NodeView::constant(int i) const {
  const ValueId value = input(i);
  if (value == kNone) return nullptr;
  const auto& constant = facts_.constants[value];
  return constant ? &*constant : nullptr;
}

bool NodeView::computed(ValueId value) const { return value != kNone && facts_.computed[value]; }

bool NodeView::has_unknown_shape() const {
  const auto unknown = [&](ValueId value) { return value != kNone && shape(value) == nullptr; };
  return std::ranges::any_of(node_.inputs, unknown) || std::ranges::any_of(node_.outputs, unknown);
}

const Attribute* NodeView::find(std::string_view name) const { return find_attribute(node_, name); }

int64_t NodeView::attr(std::string_view name, int64_t fallback) const {
  if (find(name) != nullptr && attr_if<int64_t>(node_, name) == nullptr) {
    throw errors::bad_attribute(label(), name, "expected an integer");
  }
  return parsimony::attr(node_, name, fallback);
}

std::string NodeView::attr(std::string_view name, std::string_view fallback) const {
  return parsimony::attr(node_, name, fallback);
}

std::vector<int64_t> NodeView::attrs(std::string_view name) const {
  if (find(name) != nullptr && attr_if<std::vector<int64_t>>(node_, name) == nullptr) {
    throw errors::bad_attribute(label(), name, "expected a list of integers");
  }
  return parsimony::attrs(node_, name);
}

std::optional<std::vector<int64_t>> NodeView::attr_or_input(std::string_view name, int i) const {
  if (find(name) != nullptr) return attrs(name);
  const HostTensor* tensor = constant(i);
  if (tensor == nullptr || tensor->floating()) return std::nullopt;
  return tensor->ints;
}

namespace {

int64_t distinct_coordinates(const std::vector<int64_t>& kept, int64_t stride, int64_t size) {
  std::vector<bool> seen(static_cast<size_t>(size), false);
  for (const int64_t index : kept) seen[(index / stride) % size] = true;
  return std::ranges::count(seen, true);
}

}  // namespace

void PatchView::set_attribute(std::string_view name, const std::vector<int64_t>& from,
                              const std::vector<int64_t>& to) {
  if (from == to) return;
  const auto id = before.graph().nodes.id_of(before.node());
  patches_.push_back({id, -1, std::string(name), HostTensor::vector(from), HostTensor::vector(to)});
}

void PatchView::set_number(std::string_view name, double from, double to) {
  const auto id = before.graph().nodes.id_of(before.node());
  patches_.push_back({id, -1, std::string(name), HostTensor::of(from, DType::kFloat32),
                      HostTensor::of(to, DType::kFloat32)});
}

void PatchView::set_input(int input, std::string_view name, const HostTensor& to) {
  const auto id = before.graph().nodes.id_of(before.node());
  const HostTensor* from = before.constant(input);
  set_input_of(id, input, name, from == nullptr ? HostTensor::vector({}) : *from, to);
}

void PatchView::set_input_of(NodeId node, int input, std::string_view name, const HostTensor& from,
                             const HostTensor& to) {
  // An input shared by several readers may be patched more than once.
  for (const Patch& patch : patches_) {
    if (patch.node == node && patch.input == input && patch.to == to) return;
  }
  patches_.push_back({node, input, std::string(name), from, to});
}

void PatchView::set_attr_or_input(std::string_view name, int input,
                                  const std::vector<int64_t>& to) {
  if (before.find(name) != nullptr) {
    set_attribute(name, before.attrs(name), to);
    return;
  }
  const HostTensor* now = after.constant(input);
  if (now != nullptr && now->ints == to) return;
  HostTensor expected = HostTensor::vector(to);
  if (now != nullptr) expected.dtype = now->dtype;
  set_input(input, name, expected);
}

void patch_bindings(PatchView& view) {
  const notation::Line* line = compiled(schema_of(view.before.node()));
  if (line == nullptr || view.before.has_unknown_shape()) return;
  std::optional<Match> found;
  try {
    found = match(*line, view.before);
  } catch (const ModelError&) {  // functions of the row follow what no form of its line fits
  }
  if (!found) return;
  for (const notation::Binding& binding : found->alternative->bindings) {
    if (binding.counts_dims || view.before.find(binding.attribute) == nullptr) continue;
    for (size_t l = 0; l < found->labels.size(); ++l) {
      if (found->labels[l].name != binding.label) continue;
      const auto place = locate(*found, static_cast<int>(l));
      const auto* kept = place ? view.kept(place->value, place->dim) : nullptr;
      if (kept == nullptr || place->size == 1) continue;
      view.set_attribute(binding.attribute, {place->size},
                         {distinct_coordinates(*kept, place->stride, place->size)});
    }
  }
}

}  // namespace parsimony
