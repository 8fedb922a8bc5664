#include "parsimony/torch_io/executor/choices.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

thread_local Choices* in_use = nullptr;

/// Returns the small network's part: along each axis the positions where anything is present.
at::Tensor compact(at::Tensor tensor, const at::Tensor& present) {
  if (!present.defined()) return tensor;
  for (int64_t axis = 0; axis < present.dim(); ++axis) {
    const at::Tensor any = present.movedim(axis, 0).reshape({present.size(axis), -1}).any(1);
    if (!any.all().item<bool>()) tensor = tensor.index_select(axis, any.nonzero().flatten());
  }
  return tensor;
}

bool casts_to_real(const Node& node) {
  const auto* to = attr_if<int64_t>(node, "to");
  return to != nullptr && is_floating(dtype_of_onnx(*to));
}

}  // namespace

bool chooses(const Node& node) { return has_trait(node, kChooses) && !casts_to_real(node); }

Choices::Use::Use(Choices& choices, Mode mode) : before_(in_use) {
  in_use = &choices;
  choices.mode_ = mode;
  if (mode == Mode::kRecord) {
    choices.list_.clear();
    choices.runs_.clear();
  }
  std::erase_if(choices.list_, [](const Choice& one) { return !one.numbers.defined(); });
  for (Choice& choice : choices.list_) choice.found.reset();
  for (auto& [node, runs] : choices.runs_) runs.replayed = 0;
}

Choices::Use::~Use() { in_use = before_; }

Choices* Choices::current() { return in_use; }

at::Tensor Choices::given(const Node& node, const std::string& key, size_t index,
                          const at::Tensor& operand, const at::Tensor& present) {
  const at::Tensor here = compact(operand, present);
  Runs& runs = runs_[{key, index}];
  if (mode_ == Mode::kReplay && runs.replayed < runs.recorded.size()) {
    Choice& choice = list_[runs.recorded[runs.replayed++]];
    choice.found = here;
    return choice.numbers.sizes() == here.sizes() ? choice.numbers.to(here.scalar_type()) : operand;
  }
  const std::string name = node.op + " " + in_quotes(key);
  if (mode_ == Mode::kRecord) {
    runs.recorded.push_back(list_.size());
    list_.push_back({name, index, here, {}});
  } else {
    list_.push_back({name, index, {}, here});
  }
  return operand;
}

}  // namespace parsimony
