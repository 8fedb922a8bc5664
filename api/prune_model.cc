#include "parsimony/api/prune_model.h"

#include <exception>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "parsimony/api/choice_trials_impl.h"
#include "parsimony/api/depth.h"
#include "parsimony/api/engines.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/prune_impl.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/speedup/make_plan.h"
#include "parsimony/speedup/proof.h"
#include "parsimony/speedup/scales.h"

namespace parsimony {
namespace {

/// Verification failed; `worst` is a to_text(OutputDifference), `guilty` a group or empty.
VerificationError not_proven(std::string_view worst, std::string_view guilty) {
  const std::string where =
      guilty.empty()
          ? "No single group causes the difference: the fault must be in the edit of the model."
          : "It is caused by " + std::string(guilty) + ": exclude its layers.";
  return VerificationError("verification failed: ", worst, ". ", where,
                           " Nothing was changed or written.");
}

class ModelPruning {
 public:
  ModelPruning(EditableModel& model, const PruneRequest& request, const PruneServices& services,
               SharedAnalyses* shared)
      : model_(model),
        request_(request),
        services_(services),
        requested_(request.proof),
        shared_(shared) {}

  PruneResult run() {
    const int64_t file_bytes = model_.graph().file_bytes;
    while (!attempt()) model_.graph().file_bytes = file_bytes;

    if (!result_.depth) result_.graph = model_.graph();
    result_.notes.insert(result_.notes.end(), left_.begin(), left_.end());
    return std::move(result_);
  }

 private:
  Plan& plan_of_it() { return result_.plan; }

  /// Returns the graph of the plan, without the removed blocks.
  const Graph& planned_graph() { return result_.depth ? result_.graph : model_.graph(); }

  void use(Engine* engine) {
    engine_ = engine;
    if (engine == nullptr) return;
    request_.proof = tolerance_for(*engine, model_.graph(), requested_);
    const bool coarse = request_.proof.tolerance > requested_.tolerance;
    // An engine that runs files would need a copy of all weights.
    const bool unsuited =
        coarse || (!engine->executes_graphs() && too_large_to_copy(model_.graph()));
    if (unsuited && engine->fallback() != nullptr) use(engine->fallback());
  }

  /// Returns false if a group was at fault, which the next attempt does not prune.
  bool attempt() {
    result_.proof = {};
    refuted_ = nullptr;
    held_.reset();
    use(services_.engine);
    std::optional<Recovered> recovered = plan_best();
    if (plan_of_it().empty()) {
      result_.proof.not_run = "nothing was pruned";
      return true;
    }
    if (!recovered) recovered = recover();
    if (!proven(begin_original())) return false;
    if (recovered) assign_recovered(*recovered);
    return true;
  }

  /// Plans with the criterion and scope or, of several, with those whose network is nearest to the
  /// dense one. @returns the recovered values, if the comparison has made all steps of the recovery
  std::optional<Recovered> plan_best() {
    if (!has_choice(request_.config)) {
      plan(request_, shared_);
      return {};
    }
    const Recovery& repair = services_.repair ? services_.repair : services_.recover;
    if (!repair) throw errors::comparison_without_data();
    ChoiceTrials trials(request_, shared_);
    PruneResult best;
    std::optional<Recovered> recovered;
    while (trials.next()) {
      result_ = {};
      std::optional<Recovered> found;
      try {
        trials.plan([&](const PruneRequest& one, SharedAnalyses* shared) { plan(one, shared); });
        if (trials.repeats(result_)) continue;
        if (!plan_of_it().empty()) {
          found = timed_("recover", [&] { return repair(model_.graph(), plan_of_it()); });
        }
      } catch (const ConfigError&) {
        throw;
      } catch (const Error& error) {
        trials.leave(error.what());
        continue;
      }
      if (trials.add(result_, found)) {
        best = std::move(result_);
        recovered = std::move(found);
      }
    }
    result_ = std::move(best);
    result_.times = trials.times();
    if (!plan_of_it().empty()) result_.notes.push_back(trials.note());
    return services_.repair ? std::nullopt : std::move(recovered);
  }

  void plan(const PruneRequest& request, SharedAnalyses* shared) {
    Pruning& pruning = result_;
    if (request.depth) {
      DepthPruning found = plan_depth(model_.graph(), request, services_, shared);
      pruning = std::move(found.pruning);
      result_.graph = std::move(found.graph);
      result_.depth = std::move(found.report);
    } else {
      pruning = plan_pruning(model_.graph(), request, services_,
                             shared == nullptr ? nullptr : &shared->whole);
    }
    for (PlanGroup& group : plan_of_it().groups) {
      std::erase_if(group.slices,
                    [&](const PlanSlice& slice) { return !model_.owns(slice.tensor); });
    }
  }

  std::optional<Recovered> recover() {
    if (!services_.recover) return std::nullopt;
    return timed_("recover", [&] { return services_.recover(model_.graph(), plan_of_it()); });
  }

  using Pending = std::future<Reference>;

  /// Runs the masked original before its weights become invalid or, on an engine that has it as a
  /// file, concurrently with the following steps. Empty, with the reason in the proof, if it cannot
  /// be opened.
  std::optional<Pending> begin_original() {
    std::string& why_not = result_.proof.not_run;
    if (!request_.verify) why_not = "switched off";
    if (request_.verify && engine_ == nullptr) why_not = "no engine is available";
    if (why_not.empty()) {
      why_not = why_incomparable(model_.graph());
      if (!why_not.empty() && request_.require_proof) throw UnsupportedError(why_not);
    }
    while (why_not.empty()) {
      try {
        return timed_("prove", [&] { return running(model_.open_masked(*engine_, plan_of_it())); });
      } catch (const UnsupportedError& error) {
        if (engine_->fallback() == nullptr) {
          leave_unproven(error);
        } else {
          use(engine_->fallback());
        }
      }
    }
    return std::nullopt;
  }

  /// Runs the network and releases it; small networks are run concurrently.
  Pending running(std::unique_ptr<Network> masked) {
    const Probe& probe = result_.analysis.probe;
    if (!engine_->executes_graphs() && !too_large_to_copy(model_.graph())) {
      TensorMemory memory;
      Graph graph = model_.graph();
      own_literals(graph, memory);
      // The thread shares nothing: meanwhile the model is edited and the result filled in.
      return std::async(
          std::launch::async,
          [probe, plan = plan_of_it(), proof = request_.proof, sample = request_.sample,
           graph = std::move(graph), memory = std::move(memory), masked = std::move(masked)] {
            return Reference(graph, probe, plan, *masked, proof, sample);
          });
    }
    std::promise<Reference> now;
    try {
      now.set_value(
          Reference(model_.graph(), probe, plan_of_it(), *masked, request_.proof, request_.sample));
    } catch (...) {
      now.set_exception(std::current_exception());
    }
    return now.get_future();
  }

  void leave_unproven(const UnsupportedError& error) {
    const bool no_numbers = dynamic_cast<const errors::NoNumbersError*>(&error) != nullptr;
    if (request_.require_proof || (no_numbers && request_.require_numbers)) throw;
    result_.proof.not_run = error.what();
  }

  void edit() {
    timed_("edit", [&] {
      const Graph& graph = planned_graph();
      apply_plan(result_, graph, model_.editor());
      model_.finalize();
    });
  }

  /// Edits the model, and compares it if possible. Returns false if the comparison fails and the
  /// group at fault is to be excluded.
  bool proven(std::optional<Pending> original) {
    edit();
    if (!original) return conclude();
    const bool alone = engine_->fallback() == nullptr;
    std::unique_ptr<Network> small;
    std::string does_not_open;
    std::optional<Reference> reference;
    timed_("prove", [&] {
      try {
        small = model_.open(*engine_);
      } catch (const UnsupportedError& error) {
        does_not_open = error.what();
      }
      try {
        reference.emplace(original->get());
      } catch (const UnsupportedError& error) {
        if (alone) leave_unproven(error);
      }
    });
    if (!small && (reference || opens_original())) {
      refuted_ = std::make_exception_ptr(UnsupportedError(
          "the original can be opened, but the small network cannot: ", does_not_open,
          ". Nothing was written."));
    }
    if (!reference || !small) return alone ? conclude() : proven_by_fallback();
    Proof proof = timed_("prove", [&] { return reference->compare(*small); });
    proof.engine = engine_->name();
    if (proof.holds()) return conclude(std::move(proof));
    allow(*reference, proof);
    if (!alone) {
      held_ = proof;
      return proven_by_fallback();
    }
    if (!proof.ran() || proof.holds()) {
      edit();
      return conclude(std::move(proof));
    }
    return leave(proof.worst_text(), guilty());
  }

  /// Concludes the proof. If an engine that ran the original rejected or refuted the small network,
  /// nothing is written, whatever another engine finds. Differences within the original's own
  /// rounding are accepted, unless another engine finds one.
  bool conclude(std::optional<Proof> proof = {}) {
    if (refuted_) std::rethrow_exception(refuted_);
    if (!proof && held_ && !held_->ran()) held_->not_run += ", but: " + result_.proof.not_run;
    if (!proof) proof = std::move(held_);
    if (proof) result_.proof = *std::move(proof);
    return true;
  }

  /// Repeats the proof on the engine that reports the operands of choices and the group at fault.
  bool proven_by_fallback() {
    use(engine_->fallback());
    start_again();
    return proven(begin_original());
  }

  void start_again() {
    model_.restore();
    separate_shared_vectors(model_.graph());
  }

  /// Accepts a difference within the original's own rounding; an inconclusive comparison is not a
  /// proof. Reverts the edits.
  void allow(const Reference& original, Proof& proof) {
    start_again();
    original.widen_tolerance(proof, *model_.open_masked(*engine_, plan_of_it()));
    if (proof.holds()) return;
    const Graph& graph = planned_graph();
    const std::string doubt = why_inconclusive(*engine_, graph, result_.analysis.facts);
    if (doubt.empty() || !proof.fault.empty() || request_.require_proof) {
      refuted_ = std::make_exception_ptr(
          VerificationError("verification failed in ", engine_->name(), ": ", proof.worst_text(),
                            ". Nothing was changed or written; pass --engine libtorch to verify "
                            "with libtorch alone."));
    } else {
      proof = {};
      proof.not_run = doubt;
    }
  }

  /// Returns whether the engine can open the model as it was read.
  bool opens_original() {
    start_again();
    bool opens = true;
    try {
      static_cast<void>(model_.open(*engine_));
    } catch (const UnsupportedError&) {
      opens = false;
    }
    edit();
    return opens;
  }

  /// Excludes a group. @throws VerificationError if that is not possible
  bool leave(const std::string& worst, const std::optional<GroupAtFault>& group) {
    const bool again = request_.on_failure == OnFailure::kExclude && group.has_value() &&
                       !contains(request_.left_groups, group->id);
    if (!again) throw not_proven(worst, group ? group->text : "");
    request_.left_groups.push_back(group->id);
    left_.push_back(group->text + " was not pruned: verification failed with it: " + worst);
    return false;
  }

  std::optional<GroupAtFault> guilty() {
    const Pruning& pruning = result_;
    // Constants are folded for all groups together.
    if (pruning.plan.constants == Constants::kExact || !engine_->executes_graphs()) {
      return std::nullopt;
    }
    std::vector<PlanBlock> removed = pruning.plan.blocks;
    std::erase_if(removed, [](const PlanBlock& block) { return !block.group.empty(); });
    Graph graph = without_blocks(model_.graph(), removed).first;
    separate_shared_vectors(graph);
    return group_at_fault(graph, pruning, [&](const Plan& plan) {
      return differs(graph, plan, pruning.analysis.probe, request_.proof, *engine_);
    });
  }

  /// Changes values only: the structure of the small model has been proven before.
  void assign_recovered(const Recovered& recovered) {
    ModelEditor& editor = model_.editor();
    for (const TensorUpdate& update : recovered.updates) {
      if (!update.values.empty()) editor.assign(update.tensor, update.values);
    }
    model_.finalize();
    plan_of_it().updates = recovered.updates;
    result_.recovery = recovered.report;
  }

  EditableModel& model_;
  PruneRequest request_;
  const PruneServices& services_;
  const ProofOptions requested_;
  SharedAnalyses* const shared_;  ///< null: none
  Engine* engine_ = nullptr;      ///< used for the proof: the first, or its fallback
  std::exception_ptr refuted_;    ///< why an engine rejected the small network
  std::optional<Proof> held_;     ///< of an engine whose fallback was used
  PruneResult result_;
  std::vector<std::string> left_;  ///< notes on groups at fault
  Stopwatch timed_{result_.times, services_};
};

}  // namespace

PruneResult prune_model(EditableModel& model, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared) {
  return ModelPruning(model, request, services, shared).run();
}

PruneResult prune_model(EditableModel& model, const PruneRequest& request,
                        const PruneServices& services) {
  return prune_model(model, request, services, nullptr);
}

namespace {

/// Returns the groups that lose channels, in the plan's order.
std::vector<GroupId> pruned_groups(const Pruning& pruning) {
  std::vector<GroupId> groups;
  for (const GroupId g : pruning.allocation.masks.keep.ids()) {
    const auto& keep = pruning.allocation.masks.keep[g];
    if (contains(keep, 0)) groups.push_back(g);
  }
  return groups;
}

std::string description(const Graph& graph, const Group& group) {
  std::string text = "group " + group.id;
  std::string before = " (";
  for (const Member& member : group.members) {
    if (member.role != Role::kOut) continue;
    const std::string& label = label_of(graph, graph.node(member.node));
    if (text.ends_with(label)) continue;
    text += before + label;
    before = ", ";
  }
  return text + (before == ", " ? ")" : "");
}

}  // namespace

std::optional<GroupAtFault> group_at_fault(const Graph& graph, const Pruning& pruning,
                                           const std::function<bool(const Plan&)>& differs) {
  const Analysis& analysis = pruning.analysis;
  const std::vector<GroupId> groups = pruned_groups(pruning);
  const auto differ = [&](size_t n) {
    AxisMasks masks = AxisMasks::all_kept(analysis.coupling);
    for (size_t i = 0; i < n; ++i) masks.keep[groups[i]] = pruning.allocation.masks.keep[groups[i]];
    Plan plan = make_plan(graph, analysis.facts, analysis.coupling, masks).plan;
    if (!pruning.plan.scales.empty()) {
      rescale(graph, frozen_scales(graph, analysis.facts, analysis.coupling, masks, plan), plan);
    }
    return differs(plan);
  };
  try {
    if (groups.empty() || !differ(groups.size())) return std::nullopt;
    const size_t guilty = first_guilty(groups.size(), differ);
    const Group& group = analysis.coupling.groups[groups[guilty]];
    return GroupAtFault{group.id, description(graph, group)};
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

}  // namespace parsimony
