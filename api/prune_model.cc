#include "parsimony/api/prune_model.h"

#include <exception>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "parsimony/api/apply.h"
#include "parsimony/api/blame.h"
#include "parsimony/api/depth.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/own_literals.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/stopwatch.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/masks/memory.h"

namespace parsimony {
namespace {

class ModelPruning {
 public:
  ModelPruning(EditableModel& model, const ConfigList& config, const PruneOptions& options,
               Engine* engine)
      : model_(model), config_(config), options_(options), wanted_(options.proof) {
    use(engine);
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

  void use(Engine* engine) {
    engine_ = engine;
    if (engine == nullptr) return;
    options_.proof = fitted_to(*engine, model_.graph(), wanted_);
    const bool coarse = options_.proof.tolerance > wanted_.tolerance;
    // One that runs files would be given a copy of all weights.
    const bool unsuited = coarse || (!engine->executes_graphs() && !is_small());
    if (unsuited && engine->otherwise() != nullptr) use(engine->otherwise());
  }

  /// False if a group was at fault, which the next attempt leaves as it is.
  bool attempt() {
    result_.proof = {};
    plan();
    if (plan_of_it().empty()) {
      result_.proof.not_run = "nothing was pruned";
      return true;
    }
    const std::optional<Recovered> recovered = recover();
    if (!proven(begin_original())) return false;
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

  using Pending = std::future<Reference>;

  /// Runs the masked original before its weights become invalid or, on an engine that has it as a
  /// file, beside what follows. Empty, with the reason in the proof, if it cannot be opened.
  std::optional<Pending> begin_original() {
    std::string& why_not = result_.proof.not_run;
    if (!options_.verify) why_not = "switched off";
    if (options_.verify && engine_ == nullptr) why_not = "there is no engine to run it";
    while (why_not.empty()) {
      try {
        return timed_("prove", [&] { return running(model_.open_masked(*engine_, plan_of_it())); });
      } catch (const UnsupportedError& error) {
        if (engine_->otherwise() == nullptr) {
          leave_unproven(error);
        } else {
          use(engine_->otherwise());
        }
      }
    }
    return std::nullopt;
  }

  bool is_small() {
    constexpr int64_t kLarge = int64_t{1} << 30;  // bytes
    return weight_bytes(model_.graph()) < kLarge;
  }

  /// The network is gone when it has run; both are in memory if they are small.
  Pending running(std::unique_ptr<Network> masked) {
    const auto run = [this](const Graph& graph, Network& original) {
      return Reference(graph, result_.pruning.analysis.probe, plan_of_it(), original,
                       options_.proof, options_.sample);
    };
    if (!engine_->executes_graphs() && is_small()) {
      LiteralMemory memory;
      Graph graph = model_.graph();
      own_literals(graph, memory);
      return std::async(std::launch::async,
                        [run, graph = std::move(graph), memory = std::move(memory),
                         masked = std::move(masked)] { return run(graph, *masked); });
    }
    std::promise<Reference> now;
    try {
      now.set_value(run(model_.graph(), *masked));
    } catch (...) {
      now.set_exception(std::current_exception());
    }
    return now.get_future();
  }

  void leave_unproven(const UnsupportedError& error) {
    const bool no_numbers = dynamic_cast<const errors::NoNumbersError*>(&error) != nullptr;
    if (options_.require_proof || (no_numbers && options_.require_numbers)) throw;
    result_.proof.not_run = error.what();
  }

  void edit() {
    timed_("edit", [&] {
      const Graph& graph = result_.shallow ? *result_.shallow : model_.graph();
      apply_plan(result_.pruning, graph, model_.editor());
      model_.settle();
    });
  }

  /// Edits, and compares if there is something to compare with. False if that fails and the group
  /// at fault is to be left.
  bool proven(std::optional<Pending> original) {
    edit();
    if (!original) return true;
    const bool alone = engine_->otherwise() == nullptr;
    std::unique_ptr<Network> small;
    std::exception_ptr does_not_open;
    std::optional<Reference> reference;
    timed_("prove", [&] {
      try {
        small = model_.open(*engine_);
      } catch (const UnsupportedError&) {
        does_not_open = std::current_exception();
      }
      try {
        reference.emplace(original->get());
      } catch (const UnsupportedError& error) {
        if (alone) leave_unproven(error);
      }
    });
    if (!alone && (!reference || !small)) return proven_otherwise();
    if (!reference) return true;
    if (!small) std::rethrow_exception(does_not_open);
    Proof proof = timed_("prove", [&] { return reference->compare(*small); });
    if (!proof.holds() && !alone) return proven_otherwise();
    if (!proof.holds() && !allowed(*reference, proof)) return false;
    if (proof.ran()) proof.engine = engine_->name();
    result_.proof = std::move(proof);
    return true;
  }

  /// The same by the engine that has the last word.
  bool proven_otherwise() {
    use(engine_->otherwise());
    start_again();
    return proven(begin_original());
  }

  void start_again() {
    model_.restore();
    separate_shared_vectors(model_.graph());
  }

  /// Does the original round as much, or is the difference in doubt? False if the group at fault is
  /// to be left.
  bool allowed(const Reference& original, Proof& proof) {
    start_again();
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
  const ProofOptions wanted_;
  Engine* engine_ = nullptr;
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
