#include "parsimony/training/net/file_net.h"

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "parsimony/api/blame.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/net/file_net_impl.h"

namespace parsimony::training {
namespace {

PruneOptions prune_options(const Cutting& cutting, const CutOptions& options) {
  PruneOptions result;
  result.inputs = cutting.inputs;
  result.granularity = options.granularity;
  result.seed = options.seed;
  result.measure = options.measure;
  return result;
}

std::string blame(const Cutting& cutting, const ConfigList& config, const CutOptions& options) {
  Graph graph = cutting.again();
  const Pruning pruning = plan_pruning(graph, config, prune_options(cutting, options));
  return group_at_fault(graph, pruning, [&](const Plan& plan) {
    return torch_io::differs(graph, plan, pruning.analysis.probe, {});
  });
}

/// Empty, with the reason in `proof`, where the original cannot be run masked.
std::optional<torch_io::Reference> reference(const Cutting& cutting, const Pruning& pruning,
                                             Proof& proof) {
  const bool mixes = torch_io::mixes(pruning.plan);
  try {
    return torch_io::Reference(cutting.graph, pruning.analysis.probe, mixes,
                               cutting.masked(pruning.plan), {});
  } catch (const UnsupportedError& error) {
    proof.not_run = error.what();
    return std::nullopt;
  }
}

bool takes(const at::Tensor& x, const std::function<void(const at::Tensor&)>& run) {
  const at::NoGradGuard no_grad;
  try {
    run(x);
    return true;
  } catch (const std::exception&) {  // libtorch has several kinds
    return false;
  }
}

}  // namespace

void blame_batch(const std::string& path, const at::Tensor& x, const std::string& why,
                 const std::function<void(const at::Tensor&)>& run) {
  if (x.size(0) < 2 || !takes(x.narrow(0, 0, 1), run) || takes(x.narrow(0, 0, 2), run)) return;
  throw errors::fixed_batch(path, x.size(0), why);
}

Cut carry_out(const Cutting& cutting, const ConfigList& config, const CutOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Pruning pruning = plan_pruning(cutting.graph, config, prune_options(cutting, options));
  Proof proof;
  proof.not_run = options.verify ? "nothing was pruned" : "switched off";
  if (!pruning.plan.empty()) {
    std::optional<torch_io::Reference> original;
    if (options.verify) original = reference(cutting, pruning, proof);
    const torch_io::Computation small = cutting.edit(pruning);
    if (original) {
      proof = original->compare(small);
      if (!proof.holds()) original->allow_for_rounding(proof);
      if (!proof.holds()) {
        throw errors::not_proven(to_text(*proof.worst()), blame(cutting, config, options));
      }
    }
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return {std::move(pruning.plan),  pruning.dense, pruning.small, std::move(proof),
          std::move(pruning.notes), passed.count()};
}

Plan shapes_of(const Plan& plan) {
  Plan shapes = plan;
  shapes.zeros.clear();
  shapes.folds.clear();
  return shapes;
}

std::function<std::unique_ptr<Net>()> file_net(const std::string& path,
                                               const FileNetOptions& options) {
  return [path, options] {
    if (!is_zip(path)) return onnx_net(path, options);
    if (options.batch_norm) throw errors::norms_need_onnx(path);
    return script_net(path);
  };
}

}  // namespace parsimony::training
