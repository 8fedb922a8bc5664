#include "parsimony/torch_io/prune.h"

#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

#include "parsimony/api/blame.h"
#include "parsimony/base/errors.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/live/errors.h"
#include "parsimony/torch_io/live/module_editor.h"
#include "parsimony/torch_io/prove.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/torch_io/zeroed.h"

namespace parsimony {
namespace {

using namespace torch_io;

/// One pruning of one module.
class LivePruning {
 public:
  LivePruning(torch::nn::Module& module, const Forward& forward,
              const std::vector<at::Tensor>& example, const TorchPruneOptions& options)
      : module_(module), forward_(forward), options_(options) {
    for (const at::Tensor& tensor : example) {
      specs_.push_back({tensor.sizes().vec(), {}, dtype_of(tensor.scalar_type())});
    }
    script_ = read_script(traced(module, forward, example), specs_);
  }

  Pruned run(const ConfigList& config) {
    PruneOptions plan_options;
    plan_options.inputs = specs_;
    plan_options.granularity = options_.granularity;
    plan_options.seed = options_.seed;
    plan_options.exact_only = options_.exact_only;
    plan_options.measure = options_.measure;
    plan_options.score = options_.score;
    plan_options.choose = options_.choose;
    pruning_ = plan_pruning(script_.graph, config, plan_options);
    for (PlanGroup& group : pruning_.plan.groups) {
      std::erase_if(group.slices,
                    [&](const PlanSlice& slice) { return is_made_up(script_, slice.tensor); });
    }
    Proof proof = edit();
    return result(std::move(proof));
  }

 private:
  /// The module itself, as a user would run it for inference.
  torch_io::Computation runs() {
    return [this](const std::vector<at::Tensor>& inputs) -> std::vector<at::Tensor> {
      const Evaluating evaluating(module_);
      const Preserved state(module_.buffers());
      const at::NoGradGuard no_grad;
      return {forward_(inputs)};
    };
  }

  /// The masked original: the module with zeros in its own tensors, unless channels are mixed.
  torch_io::Computation masked() {
    if (mixes(pruning_.plan)) return masked_run(script_.graph, pruning_.plan);
    return [this](const std::vector<torch_io::Computation::List>& inputs) {
      const Zeroed zeroed(pruning_.plan, tensors_of(module_));
      return runs().each(inputs);
    };
  }

  Proof edit() {
    const Plan& plan = pruning_.plan;
    Proof proof;
    proof.not_run = options_.verify ? "nothing was pruned" : "switched off";
    if (plan.empty()) return proof;
    const Probe& probe = pruning_.analysis.probe;
    std::optional<Reference> reference;
    if (options_.verify) {
      reference.emplace(script_.graph, probe, mixes(plan), masked(), options_.proof);
    }
    ModuleEditor editor(module_);
    editor.apply(plan);
    require_to_run(editor);
    if (reference) proof = reference->compare(runs());
    if (reference && !proof.holds()) {
      editor.rollback();  // the original runs once more
      reference->allow_for_rounding(proof);
      if (!proof.holds()) fail(proof);
      ModuleEditor again(module_);
      again.apply(plan);
      again.keep();
    } else {
      editor.keep();
    }
    return proof;
  }

  /// Numbers in the user's forward are out of reach, and may have followed by themselves.
  void require_to_run(const ModuleEditor& editor) {
    if (editor.forward_constants().empty()) return;
    try {
      runs()(random_inputs(script_.graph, pruning_.analysis.probe, options_.proof.seed));
    } catch (const std::exception& error) {
      throw live::errors::forward_is_fixed(editor.forward_constants(), reason_of(error));
    }
  }

  [[noreturn]] void fail(const Proof& proof) {
    const std::string guilty = group_at_fault(script_.graph, pruning_, [&](const Plan& plan) {
      return differs(script_.graph, plan, pruning_.analysis.probe, options_.proof);
    });
    throw VerificationError(to_text(*proof.worst()) + ". " +
                            (guilty.empty()
                                 ? "The fault is in no group alone."
                                 : "It begins with " + guilty + ": exclude its layers.") +
                            " The module is as it was.");
  }

  Pruned result(Proof proof) {
    Pruned pruned;
    static_cast<Plan&>(pruned) = std::move(pruning_.plan);
    pruned.dense = pruning_.dense;
    pruned.small = pruning_.small;
    pruned.proof = std::move(proof);
    pruned.notes = std::move(pruning_.notes);
    pruned.times = std::move(pruning_.times);
    for (const auto& parameter : module_.named_parameters()) {
      pruned.parameters.emplace_back(parameter.key(), parameter.value());
    }
    return pruned;
  }

  torch::nn::Module& module_;
  const Forward& forward_;
  const TorchPruneOptions& options_;
  std::vector<InputSpec> specs_;
  ScriptGraph script_;
  Pruning pruning_;
};

}  // namespace

Pruned prune(torch::nn::Module& module, const torch_io::Forward& forward,
             const std::vector<at::Tensor>& example, const ConfigList& config,
             const TorchPruneOptions& options) {
  return LivePruning(module, forward, example, options).run(config);
}

}  // namespace parsimony
