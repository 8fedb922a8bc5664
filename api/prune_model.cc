#include "parsimony/api/prune_model.h"

#include <string>
#include <utility>

#include "parsimony/api/apply.h"
#include "parsimony/api/blame.h"
#include "parsimony/api/depth.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/stopwatch.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"

namespace parsimony {
namespace {

class ModelPruning {
 public:
  ModelPruning(EditableModel& model, const ConfigList& config, const PruneOptions& options,
               Engine* engine)
      : model_(model), config_(config), options_(options), engine_(engine) {
    if (engine != nullptr) options_.proof = fitted_to(*engine, model.graph(), options_.proof);
  }

  PruneResult run() {
    const int64_t file_bytes = model_.graph().file_bytes;
    while (!attempt()) model_.graph().file_bytes = file_bytes;

    std::vector<std::string>& notes = result_.pruning.notes;
    notes.insert(notes.end(), left_.begin(), left_.end());
    return std::move(result_);
  }

 private:
  Plan& plan_of_it() { return result_.pruning.plan; }

  /// False if a group was at fault, which the next attempt leaves as it is.
  bool attempt() {
    result_.proof = {};
    plan();
    if (plan_of_it().empty()) {
      result_.proof.not_run = "nothing was pruned";
      return true;
    }
    const std::optional<Recovered> recovered = recover();
    const std::optional<Reference> original = run_original();
    edit();
    if (original && !prove(*original)) return false;
    if (recovered) take_over(*recovered);
    return true;
  }

  void plan() {
    if (options_.depth) {
      DepthPruning found = plan_depth(model_.graph(), config_, options_);
      result_.pruning = std::move(found.pruning);
      result_.shallow = std::move(found.graph);
      result_.depth = std::move(found.report);
    } else {
      result_.pruning = plan_pruning(model_.graph(), config_, options_);
    }
    for (PlanGroup& group : plan_of_it().groups) {
      std::erase_if(group.slices,
                    [&](const PlanSlice& slice) { return !model_.owns(slice.tensor); });
    }
  }

  std::optional<Recovered> recover() {
    if (!options_.recover) return std::nullopt;
    return timed_("recover", [&] { return options_.recover(model_.graph(), plan_of_it()); });
  }

  /// Runs the masked original before its weights become invalid; empty, with the reason in the
  /// proof, if it cannot be run.
  std::optional<Reference> run_original() {
    std::string& why_not = result_.proof.not_run;
    if (!options_.verify) why_not = "switched off";
    if (options_.verify && engine_ == nullptr) why_not = "there is no engine to run it";
    if (!why_not.empty()) return std::nullopt;
    return timed_("prove", [&]() -> std::optional<Reference> {
      try {
        const auto masked = model_.open_masked(*engine_, plan_of_it());
        return Reference(model_.graph(), result_.pruning.analysis.probe, plan_of_it(), *masked,
                         options_.proof, options_.sample);
      } catch (const errors::NoNumbersError& error) {
        if (options_.require_proof || options_.require_numbers) throw;
        why_not = error.what();
      } catch (const UnsupportedError& error) {
        if (options_.require_proof) throw;
        why_not = error.what();
      }
      return std::nullopt;
    });
  }

  void edit() {
    timed_("edit", [&] {
      const Graph& graph = result_.shallow ? *result_.shallow : model_.graph();
      apply_plan(result_.pruning, graph, model_.editor());
      model_.settle();
    });
  }

  /// False if it fails and the group at fault is to be left.
  bool prove(const Reference& original) {
    Proof proof = timed_("prove", [&] { return original.compare(*model_.open(*engine_)); });
    if (!proof.holds()) {
      model_.restore();
      separate_shared_vectors(model_.graph());
      original.allow_for_rounding(proof, *model_.open_masked(*engine_, plan_of_it()));
      const std::string doubt = proof.holds() ? "" : doubt_of(*engine_, model_.graph());
      if (!proof.holds() && (doubt.empty() || options_.require_proof)) {
        return leave(to_text(*proof.worst()), guilty());
      }
      edit();
      if (!doubt.empty()) {
        proof = {};
        proof.not_run = doubt;
      }
    }
    result_.proof = std::move(proof);
    return true;
  }

  /// @throws VerificationError unless a group can be left
  bool leave(const std::string& worst, const std::optional<GroupAtFault>& group) {
    const bool again = options_.on_failure == OnFailure::kExclude && group.has_value() &&
                       !contains(options_.left_groups, group->id);
    if (!again) throw errors::not_proven(worst, group ? group->text : "");
    options_.left_groups.push_back(group->id);
    left_.push_back(group->text + " is left as it is, for with it the proof fails: " + worst);
    return false;
  }

  std::optional<GroupAtFault> guilty() {
    const Pruning& pruning = result_.pruning;
    // Constants are folded for all groups together.
    if (pruning.plan.constants == Constants::kExact || !engine_->executes_graphs()) {
      return std::nullopt;
    }
    Graph graph = without_blocks(model_.graph(), pruning.plan.blocks).first;
    separate_shared_vectors(graph);
    return group_at_fault(graph, pruning, [&](const Plan& plan) {
      return differs(graph, plan, pruning.analysis.probe, options_.proof, *engine_);
    });
  }

  /// Changes values only: the structure of the small model has been proven before.
  void take_over(const Recovered& recovered) {
    ModelEditor& editor = model_.editor();
    for (const TensorUpdate& update : recovered.updates) {
      if (!update.values.empty()) editor.assign(update.tensor, update.values);
    }
    model_.settle();
    plan_of_it().updates = recovered.updates;
    result_.recovery = recovered.report;
  }

  EditableModel& model_;
  const ConfigList& config_;
  PruneOptions options_;
  Engine* engine_;
  PruneResult result_;
  std::vector<std::string> left_;  ///< notes on groups at fault
  Stopwatch timed_{result_.pruning.times, options_};
};

}  // namespace

PruneResult prune_model(EditableModel& model, const ConfigList& config, const PruneOptions& options,
                        Engine* engine) {
  return ModelPruning(model, config, options, engine).run();
}

}  // namespace parsimony
