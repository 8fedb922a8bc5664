// Prunes a live torch::nn module in place.
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::torch_io {

/// A number in the user's own forward that the plan changes but that an edit of the module cannot
/// reach: `view({n, 512})`. If C++ computes the number, as `x.size(1)` does, no edit is needed;
/// only a run can tell.
struct ForwardConstant {
  std::string node;
  int input = -1;                  ///< operand index; -1 for an attribute
  std::string what;                ///< operand or attribute, if known
  std::optional<HostTensor> from;  ///< known if the edit came from a plan
  HostTensor to;

  bool operator==(const ForwardConstant&) const = default;
};

/// Edits a module in place. Tensors are named as named_parameters() and named_buffers() name them
/// ("features.0.weight"), layers by their path ("features.0"). Tensors keep their identity, so that
/// references, optimizers and hooks remain valid; they keep device, type, memory format and
/// requires_grad, and a gradient is sliced with its parameter. A tensor with several names is
/// sliced once.
///
/// All or nothing: unless `keep` is called, the destructor restores everything.
///
///     ModuleEditor editor(*net);
///     editor.apply(plan);
///     net->forward(example);  // a size that forward has written out would throw here
///     editor.keep();
///
/// Graphs of earlier forward passes can no longer be differentiated: their tensors have changed.
class ModuleEditor : public ModelEditor {
 public:
  /// The module must outlive the editor.
  explicit ModuleEditor(torch::nn::Module& module);
  ~ModuleEditor() override;
  ModuleEditor(const ModuleEditor&) = delete;
  ModuleEditor& operator=(const ModuleEditor&) = delete;

  /// Replays the plan and commits.
  /// @throws UnsupportedError, ModelError like the individual calls; then only `rollback` may be
  /// called
  void apply(const Plan& plan);

  /// @throws UnsupportedError: registered parameters cannot be separated from outside
  void copy(const std::string& name, const std::string& of, const std::string& consumer,
            int input) override;
  void slice(const std::string& tensor, std::span<const AxisKeep> axes) override;
  void zero_smallest(const std::string& tensor, int64_t count) override;
  void assign(const std::string& tensor, std::span<const std::byte> values) override;
  /// `node` is a layer's path: `groups` (or `group`) of convolutions, `num_groups` of GroupNorm,
  /// `normalized_shape` of LayerNorm, `hidden_size` of recurrent layers, `num_heads` of
  /// MultiheadAttention, `sizes` of Unflatten. Except for layers without tensors they also follow
  /// from the slices. For any other node it is recorded as a forward constant.
  void set_attribute(const std::string& node, const std::string& attribute,
                     std::span<const int64_t> values) override;
  /// Never possible, so it is only recorded among the forward constants.
  void set_input(const std::string& node, int input, const HostTensor& constant) override;

  /// Updates the options of every edited layer to match its tensors, so that it can be run, printed
  /// and cloned. Layers of unknown type are skipped. May be called again after further edits.
  /// @throws UnsupportedError naming the module if its type does not support these shapes,
  /// ModelError if its tensors do not match each other
  void commit();

  /// Returns numbers that forward may contain; see ForwardConstant.
  const std::vector<ForwardConstant>& forward_constants() const { return forward_constants_; }

  /// Makes the edit final.
  void keep();
  /// Restores everything: data, gradients, options. Tensors are the original objects, not copies.
  void rollback();

 private:
  struct State;

  const at::Tensor& tensor(const std::string& name) const;

  std::unique_ptr<State> state_;
  std::vector<ForwardConstant> forward_constants_;
};

}  // namespace parsimony::torch_io
