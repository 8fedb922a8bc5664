// An edit of a live module: its undo journal, and the options of layers, which follow their
// tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimony/graph/model_editor.h"

namespace parsimony::torch_io::live {

/// A leaf's node that takes its gradient up; a smart pointer that differs between versions.
using GradAccumulator =
    decltype(torch::autograd::impl::try_get_grad_accumulator(std::declval<const at::Tensor&>()));

/// An undo journal. Changes tensors in place: the TensorImpl is preserved, and with it every
/// reference to the tensor, its optimizer state, hooks and requires_grad.
class Journal {
 public:
  /// @throws ModelError if the slices do not fit; then nothing has changed
  void slice(const std::string& name, const at::Tensor& tensor, std::span<const AxisKeep> axes);
  void assign(const at::Tensor& tensor, const at::Tensor& values);
  /// Registers `restore` to be called if the edit is undone.
  void remember(std::function<void()> restore) { restores_.push_back(std::move(restore)); }

  bool touched(const at::Tensor& tensor) const;
  /// Returns the kept indices of the axis, relative to its original size.
  AxisKeep kept(const at::Tensor& tensor, int axis) const;

  void undo();
  /// Undoes only the registered restores, not the tensors.
  void undo_options();
  void forget();

 private:
  struct Entry {
    at::Tensor tensor;
    at::Tensor data;  // original
    at::Tensor grad;
    GradAccumulator accumulator;
    std::string cut_as;          // the name under which it was sliced
    std::vector<AxisKeep> cuts;  // in original indices
  };

  Entry& entry(const at::Tensor& tensor);
  void set_data(const at::Tensor& tensor, const at::Tensor& data);

  std::unordered_map<const c10::TensorImpl*, Entry> entries_;
  std::vector<std::function<void()>> restores_;
};

/// The edits of a layer, and the attributes that were set.
struct LayerEdit {
  std::string path;
  const Journal* journal = nullptr;
  std::map<std::string, std::vector<int64_t>, std::less<>> requested;

  std::string name_of(std::string_view tensor) const;
  /// Returns the attribute's value, if set. @throws ModelError if it is not one positive number
  std::optional<int64_t> integer(std::string_view attribute) const;
  /// @throws ModelError if the attribute was set to something other than `found`
  void agrees(std::string_view attribute, int64_t found) const;
  /// @throws ModelError unless the tensor is undefined or has the shape
  void require(std::string_view tensor, const at::Tensor& value,
               const std::vector<int64_t>& shape) const;
};

/// A type of layer.
struct LayerKind {
  std::string_view name;
  std::vector<std::string_view> attributes;  ///< that can be set
  bool (*matches)(const torch::nn::Module& layer);
  /// Returns a function that restores the options.
  std::function<void()> (*remember)(torch::nn::Module& layer);
  void (*follow)(torch::nn::Module& layer, const LayerEdit& edit);
};

/// Returns null for user-defined modules and for layers whose options do not contain shapes.
const LayerKind* kind_of(const torch::nn::Module& layer);

/// Returns the number of kept indices in each of `parts` equal parts of the axis.
std::vector<int64_t> count_in_parts(const AxisKeep& axis, int64_t parts);

template <typename Layer>
std::function<void()> remember_options(torch::nn::Module& module) {
  Layer& layer = *module.as<Layer>();
  if constexpr (requires { layer.options_base; }) {
    return [&layer, options = layer.options, base = layer.options_base] {
      layer.options = options;
      layer.options_base = base;
    };
  } else {
    return [&layer, options = layer.options] { layer.options = options; };
  }
}

template <typename Layer, void (*kFollow)(Layer&, const LayerEdit&)>
LayerKind layer_kind(std::string_view name, std::vector<std::string_view> attributes = {}) {
  return {
      name, std::move(attributes),
      [](const torch::nn::Module& module) { return module.as<Layer>() != nullptr; },
      &remember_options<Layer>,
      [](torch::nn::Module& module, const LayerEdit& edit) { kFollow(*module.as<Layer>(), edit); }};
}

}  // namespace parsimony::torch_io::live
