#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/slice.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/live/edit_impl.h"

namespace parsimony::torch_io::live {
namespace {

bool same_cuts(const std::vector<AxisKeep>& cuts, std::span<const AxisKeep> axes) {
  if (cuts.size() != axes.size()) return false;
  for (const AxisKeep& axis : axes) {
    const AxisKeep* known = find_axis(cuts, axis.axis);
    if (known == nullptr || known->size != axis.size || known->keep != axis.keep) {
      return false;
    }
  }
  return true;
}

template <typename Node>
std::weak_ptr<Node> weak(const std::shared_ptr<Node>& node) {
  return node;
}

template <typename Node>
c10::weak_intrusive_ptr<Node> weak(const c10::intrusive_ptr<Node>& node) {
  return c10::weak_intrusive_ptr<Node>(node);
}

/// Without one, the next use of the leaf creates a new one.
void set_accumulator(const at::Tensor& leaf, const GradAccumulator& accumulator) {
  torch::autograd::impl::set_grad_accumulator(leaf, weak(accumulator));
}

at::Tensor grad_of(const at::Tensor& tensor) {
  return tensor.is_leaf() ? tensor.grad() : at::Tensor();
}

}  // namespace

Journal::Entry& Journal::entry(const at::Tensor& tensor) {
  const auto [known, is_new] = entries_.try_emplace(tensor.unsafeGetTensorImpl());
  Entry& entry = known->second;
  if (is_new) {
    entry.tensor = tensor;
    entry.data = tensor.variable_data();
    entry.grad = grad_of(tensor);
    entry.accumulator = torch::autograd::impl::try_get_grad_accumulator(tensor);
  }
  return entry;
}

void Journal::set_data(const at::Tensor& tensor, const at::Tensor& data) {
  const at::NoGradGuard no_grad;
  const bool same_shape = tensor.sizes() == data.sizes();
  tensor.set_data(data);
  // A loss of an earlier forward pass keeps its gradient accumulator alive, which expects gradients
  // of the old shape.
  if (!same_shape && tensor.requires_grad()) {
    set_accumulator(tensor, {});
  }
}

void Journal::slice(const std::string& name, const at::Tensor& tensor,
                    std::span<const AxisKeep> axes) {
  const auto known = entries_.find(tensor.unsafeGetTensorImpl());
  if (known != entries_.end() && !known->second.cuts.empty() && known->second.cut_as != name) {
    if (same_cuts(known->second.cuts, axes)) return;
    throw ModelError("tensor ", in_quotes(name), ": it is also registered as ",
                     in_quotes(known->second.cut_as), ", which keeps other indices");
  }
  const at::NoGradGuard no_grad;
  const at::Tensor data = cut(name, tensor, axes);
  const at::Tensor grad = grad_of(tensor);
  const bool has_grad = grad.defined() && grad.sizes() == tensor.sizes();
  const at::Tensor kept_grad = has_grad ? cut(name, grad, axes) : at::Tensor();
  Entry& remembered = entry(tensor);
  remembered.cut_as = name;
  compose(remembered.cuts, merged(axes));
  set_data(tensor, data);
  if (grad.defined()) tensor.mutable_grad() = kept_grad;
}

void Journal::assign(const at::Tensor& tensor, const at::Tensor& values) {
  entry(tensor);
  set_data(tensor, values);
}

bool Journal::touched(const at::Tensor& tensor) const {
  return entries_.contains(tensor.unsafeGetTensorImpl());
}

AxisKeep Journal::kept(const at::Tensor& tensor, int axis) const {
  const auto known = entries_.find(tensor.unsafeGetTensorImpl());
  if (known != entries_.end()) {
    const AxisKeep* cut = find_axis(known->second.cuts, axis);
    if (cut != nullptr) return *cut;
  }
  return {axis, tensor.size(axis), successive(0, tensor.size(axis))};
}

void Journal::undo() {
  for (auto& [impl, entry] : entries_) {
    set_data(entry.tensor, entry.data);
    if (entry.grad.defined() || grad_of(entry.tensor).defined()) {
      entry.tensor.mutable_grad() = entry.grad;
    }
    if (entry.tensor.requires_grad()) {
      set_accumulator(entry.tensor, entry.accumulator);
    }
  }
  undo_options();
  forget();
}

void Journal::undo_options() {
  while (!restores_.empty()) {
    restores_.back()();
    restores_.pop_back();
  }
}

void Journal::forget() {
  entries_.clear();
  restores_.clear();
}

}  // namespace parsimony::torch_io::live
