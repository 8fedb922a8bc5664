#include "parsimony/torch_io/prune.h"

#include <ATen/core/grad_mode.h>

#include <memory>
#include <optional>
#include <utility>

#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/live/module_editor.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/observe.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/torch_io/zeroed.h"

namespace parsimony {
namespace {

using namespace torch_io;

/// A torch::nn module that is restored at the end unless `keep` is called.
class LiveModule final : public EditableModel {
 public:
  LiveModule(torch::nn::Module& module, const Forward& forward,
             const std::vector<at::Tensor>& example)
      : module_(module), forward_(forward), example_(example) {
    for (const at::Tensor& tensor : example) {
      specs_.push_back({tensor.sizes().vec(), {}, dtype_of(tensor.scalar_type())});
    }
    script_ = read_script(traced(module, forward, example), specs_, Computed::kStay);
  }

  const std::vector<InputSpec>& specs() const { return specs_; }

  Graph& graph() override { return script_.graph; }

  ModelEditor& editor() override {
    if (!editor_) editor_.emplace(module_);
    return *editor_;
  }

  bool owns(const std::string& tensor) const override { return !is_synthetic(script_, tensor); }

  /// Numbers in the user's forward cannot be edited, but may be computed from shapes.
  void finalize() override {
    editor_->commit();
    if (editor_->forward_constants().empty()) return;
    try {
      runs()(example_);
    } catch (const std::exception& error) {
      throw torch_io::errors::forward_is_fixed(editor_->forward_constants(), reason_of(error));
    }
  }

  void restore() override {
    if (editor_) editor_->rollback();
    editor_.reset();
  }

  void keep() {
    if (editor_) editor_->keep();
  }

  std::unique_ptr<Network> open(Engine& /*engine*/) override {
    return std::make_unique<TorchNetwork>(runs());
  }

  /// Zeros in the module's own tensors depend on neither reader nor executor.
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override {
    if (!zeros_suffice(plan)) {
      return engine.open_masked(script_.graph, plan, {});
    }
    return std::make_unique<TorchNetwork>([this, plan](const std::vector<TorchNetwork::List>& x) {
      const Zeroed zeroed(plan, tensors_of(module_));
      return runs().each(x);
    });
  }

 private:
  /// Returns the module itself, as run for inference.
  TorchNetwork runs() {
    return [this](const std::vector<at::Tensor>& inputs) -> std::vector<at::Tensor> {
      const Evaluating evaluating(module_);
      const Preserved state(module_.buffers());
      const at::NoGradGuard no_grad;
      return {forward_(inputs)};
    };
  }

  torch::nn::Module& module_;
  const Forward& forward_;
  const std::vector<at::Tensor>& example_;
  std::vector<InputSpec> specs_;
  ScriptGraph script_;
  std::optional<ModuleEditor> editor_;
};

}  // namespace

Pruned prune(torch::nn::Module& module, const torch_io::Forward& forward,
             const std::vector<at::Tensor>& example, const PruneRequest& request,
             const PruneServices& services) {
  LiveModule model(module, forward, example);
  PruneRequest own = request;
  own.inputs = model.specs();
  own.require_proof = true;
  PruneServices served = services;
  TorchEngine engine;
  if (served.engine == nullptr) served.engine = &engine;
  if (!served.observe) served.observe = torch_io::observe;
  Pruned pruned{prune_model(model, own, served), {}};
  model.keep();
  for (const auto& parameter : module.named_parameters()) {
    pruned.parameters.emplace_back(parameter.key(), parameter.value());
  }
  return pruned;
}

void restore(torch::nn::Module& module, const std::string& plan_path) {
  restore(module, Plan::load(plan_path));
}

void restore(torch::nn::Module& module, const Plan& plan) {
  Plan shapes = plan;
  shapes.zeros.clear();
  shapes.updates.clear();
  torch_io::ModuleEditor editor(module);
  editor.apply(shapes);
  editor.keep();
}

}  // namespace parsimony
