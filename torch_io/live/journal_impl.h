// What an edit changed, and how it was before.
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

/// Changes tensors in place: the TensorImpl stays, and with it every holder of the tensor, its
/// optimizer state, hooks and whether it wants a gradient.
class Journal {
 public:
  Journal() = default;
  Journal(Journal&&) = default;
  Journal& operator=(Journal&&) = default;
  ~Journal() = default;

  /// @throws ModelError if the slices do not fit; then nothing has changed
  void slice(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);
  void zero_smallest(const std::string& name, const at::Tensor& tensor, int64_t count);
  void assign(const std::string& name, const at::Tensor& tensor, std::span<const std::byte> values);
  /// Runs `restore` if the edit is undone.
  void remember(std::function<void()> restore) { restores_.push_back(std::move(restore)); }

  bool touched(const at::Tensor& tensor) const;
  /// What stays of the axis, in the indices and the size of before the edit.
  AxisKeep kept(const at::Tensor& tensor, int axis) const;

  void undo();
  /// Only what was remembered besides tensors.
  void undo_options();
  void forget();

 private:
  struct Entry {
    at::Tensor tensor;
    at::Tensor data;  // of before
    at::Tensor grad;
    compat::GradAccumulator accumulator;
    std::string cut_as;          // the name under which it was cut
    std::vector<AxisKeep> cuts;  // in indices of before
  };

  Entry& entry(const at::Tensor& tensor);
  void set_data(const at::Tensor& tensor, const at::Tensor& data);

  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::vector<std::function<void()>> restores_;
};

}  // namespace parsimony::torch_io::live
