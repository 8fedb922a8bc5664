// An undo journal of an edit.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "parsimony/graph/model_editor.h"
#include "parsimony/torch_io/compat.h"

namespace parsimony::torch_io::live {

/// Changes tensors in place: the TensorImpl is preserved, and with it every reference to the
/// tensor, its optimizer state, hooks and requires_grad.
class Journal {
 public:
  /// @throws ModelError if the slices do not fit; then nothing has changed
  void slice(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);
  void assign(const at::Tensor& tensor, const at::Tensor& values);
  /// Registers `restore` to be called if the edit is undone.
  void remember(std::function<void()> restore) { restores_.push_back(std::move(restore)); }

  bool touched(const at::Tensor& tensor) const;
  /// The kept indices of the axis, relative to its original size.
  AxisKeep kept(const at::Tensor& tensor, int axis) const;

  void undo();
  /// Undoes only registered restores, not tensors.
  void undo_options();
  void forget();

 private:
  struct Entry {
    at::Tensor tensor;
    at::Tensor data;  // original
    at::Tensor grad;
    compat::GradAccumulator accumulator;
    std::string cut_as;          // the name under which it was sliced
    std::vector<AxisKeep> cuts;  // in original indices
  };

  Entry& entry(const at::Tensor& tensor);
  void set_data(const at::Tensor& tensor, const at::Tensor& data);

  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::vector<std::function<void()>> restores_;
};

}  // namespace parsimony::torch_io::live
