#include "parsimony/graph/operators/node_view.h"

#include <algorithm>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"

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
    throw errors::bad_attribute(label(), name, "wanted an integer");
  }
  return parsimony::attr(node_, name, fallback);
}

std::string NodeView::attr(std::string_view name, std::string_view fallback) const {
  return parsimony::attr(node_, name, fallback);
}

std::vector<int64_t> NodeView::attrs(std::string_view name) const {
  if (find(name) != nullptr && attr_if<std::vector<int64_t>>(node_, name) == nullptr) {
    throw errors::bad_attribute(label(), name, "wanted a list of integers");
  }
  return parsimony::attrs(node_, name);
}

std::optional<std::vector<int64_t>> NodeView::attr_or_input(std::string_view name, int i) const {
  if (find(name) != nullptr) return attrs(name);
  const HostTensor* tensor = constant(i);
  if (tensor == nullptr || tensor->floating()) return std::nullopt;
  return tensor->ints;
}

}  // namespace parsimony
