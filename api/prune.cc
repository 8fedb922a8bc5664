#include "parsimony/api/prune.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "parsimony/api/importance.h"
#include "parsimony/api/latency/budget.h"
#include "parsimony/api/prune_impl.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/interface.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/words.h"
#include "parsimony/pruners/elements/elements.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/given_scores.h"
#include "parsimony/pruners/latency/model.h"
#include "parsimony/speedup/constants.h"
#include "parsimony/speedup/make_plan.h"
#include "parsimony/speedup/scales.h"

namespace parsimony {
namespace {

// A network with more refused nodes than this is not described by the rules.
constexpr size_t kMostRefusals = 64;

/// Groups that are not pruned may still have channels that zeroed elements made zero.
void exclude_groups(const PruneRequest& request, const Coupling& coupling, AxisMasks& masks) {
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    const bool stays = contains(request.left_groups, group.id) || !may_prune(group, request.mixing);
    if (stays) std::ranges::fill(masks.keep[g], uint8_t{1});
  }
}

}  // namespace

TrainSettings gentle_training() {
  TrainSettings settings;
  settings.optimizer = OptimizerKind::kSgd;
  settings.lr = 1e-3;
  settings.schedule = RateSchedule::kCosine;
  settings.batch = 128;
  settings.epochs = 2;
  return settings;
}

Analysis analyse(Graph& graph, const PruneRequest& request) {
  separate_shared_vectors(graph);
  Analysis analysis;
  Probed probed = infer_with_choice(graph, request.inputs);
  analysis.sample = infer_sample(graph, probed);
  analysis.probe = std::move(probed.probe);
  analysis.facts = std::move(probed.facts);
  CouplingOptions coupling;
  coupling.granularity = request.granularity;
  coupling.interface = resolve(request.interface, graph, analysis.facts);
  analysis.coupling = couple(graph, analysis.facts, coupling);
  return analysis;
}

namespace {

/// The policy of layers that have none of their own.
Granularity network_granularity(const PruneRequest& request) {
  return request.config.granularity.value_or(request.granularity);
}

}  // namespace

CouplingOptions coupling_options(const PruneRequest& request, const Settings& settings) {
  CouplingOptions result;
  result.granularity = network_granularity(request);
  for (const NodeId n : settings.layers.ids()) {
    const int index = settings.layers[n].request;
    if (index == kNone) continue;
    const auto& own = settings.requests[index].granularity;
    if (own) result.of_layers.emplace_back(n, *own);
  }
  return result;
}

namespace {

/// One run of plan_pruning.
class Planner {
 public:
  Planner(Graph& graph, const PruneRequest& request, const PruneServices& services,
          SharedAnalysis* shared)
      : graph_(graph),
        request_(request),
        services_(services),
        shared_(shared),
        timed_(pruning_.times, services) {}

  /// @param settings  in place of the configuration; null: those of the configuration
  Pruning run(const Settings* settings) {
    settings_ = timed_("config", [&] {
      return settings != nullptr ? *settings : resolve(request_.config, graph_);
    });
    settings_.mixing = request_.mixing;
    settings_.granularity = network_granularity(request_);
    pruning_.notes = graph_.notes;
    pruning_.notes.insert(pruning_.notes.end(), settings_.notes.begin(), settings_.notes.end());
    if (!services_.score)
      needs_ = needs_of(settings_);  // custom scores are for channels, not elements
    add_element_needs(graph_, settings_, needs_);
    require_measurement();
    timed_("weights", [&] {
      return once(&SharedAnalysis::weights_are_numbers, [&] {
        check_weights(graph_);
        return true;
      });
    });
    check_masks(graph_, request_.masks);
    check_scores(graph_, request_.scores);
    coupling_options_ = coupling_options(request_, settings_);
    infer_shapes();
    while (!attempt()) {
    }
    finish();
    return std::move(pruning_);
  }

 private:
  /// Returns a part of the analysis, reused if it is shared.
  template <typename Part, typename Make>
  Part once(std::optional<Part> SharedAnalysis::*part, const Make& make) {
    if (shared_ == nullptr || !coupling_options_.pinned_nodes.empty()) return make();
    std::optional<Part>& known = shared_->*part;
    if (!known) known = make();
    return *known;
  }

  void infer_shapes() {
    SharedAnalysis::Shapes shapes = timed_("infer", [&] {
      separate_shared_vectors(graph_);
      return once(&SharedAnalysis::shapes, [&] {
        Probed first = infer_with_choice(graph_, request_.inputs);
        auto second = second_probe(graph_, first);
        Facts sample = infer_sample(graph_, first);
        return SharedAnalysis::Shapes{std::move(first), std::move(second), std::move(sample)};
      });
    });
    Analysis& analysis = pruning_.analysis;
    analysis.probe = std::move(shapes.probed.probe);
    analysis.facts = std::move(shapes.probed.facts);
    analysis.sample = std::move(shapes.sample);
    other_sizes_ = std::move(shapes.other_sizes);
    if (analysis.probe.open) {
      pruning_.notes.push_back(
          "no sizes were found for what the file leaves open of its inputs: what follows from them "
          "keeps its channels; --input gives them");
    }
    resolve_interface();
  }

  void resolve_interface() {
    const Facts& facts = pruning_.analysis.facts;
    const InterfaceOptions& requested = request_.interface;
    coupling_options_.interface = resolve(requested, graph_, facts);
    find_kept_words();
    for (const StatePair& state : coupling_options_.interface.states) {
      states_.push_back({graph_.value(state.output).name, graph_.value(state.input).name});
    }
    const std::vector<StatePair> likely = likely_states(graph_, facts);
    if (!requested.states.empty() || likely.empty()) return;
    const StatePair& first = likely.front();
    pruning_.notes.push_back("output \"" + graph_.value(first.output).name +
                             "\" looks like a state that is fed back to \"" +
                             graph_.value(first.input).name +
                             "\", and keeps its channels; pass --states auto to prune states");
  }

  void find_kept_words() {
    std::vector<int64_t> keep = request_.keep_tokens;
    if (keep.empty()) return;
    sort_unique(keep);
    words_ = find_words(graph_, pruning_.analysis.facts);
    if (words_.size == 0) {
      throw UnsupportedError("keep_tokens: no input of the network has numbers of words");
    }
    const int64_t beyond = keep.front() < 0 ? keep.front() : keep.back();
    if (beyond < 0 || beyond >= words_.size) {
      throw ConfigError("keep_tokens: the network has ", words_.size, " words, and no number ",
                        beyond);
    }
    kept_words_ = std::move(keep);
    auto& free = coupling_options_.interface.free;
    free.insert(free.end(), words_.dims.begin(), words_.dims.end());
  }

  /// Words are chosen by the user, not by scores.
  void keep_words(const Coupling& coupling, AxisMasks& masks) const {
    const auto stays = [&](int64_t word) { return std::ranges::binary_search(kept_words_, word); };
    for (const ValueDim& dim : words_.dims) {
      const DimClassId dim_class = coupling.dim_class_of(dim.value, dim.dim);
      const auto channels =
          dim_class == kNone ? std::span<const ChannelId>() : coupling.channels(dim_class);
      for (const ChannelId& channel : channels) {
        if (channel.group != kNone)
          masks.keep[channel.group].assign(masks.keep[channel.group].size(), 1);
      }
    }
    for (const ValueDim& dim : words_.dims) {
      const DimClassId dim_class = coupling.dim_class_of(dim.value, dim.dim);
      const auto channels =
          dim_class == kNone ? std::span<const ChannelId>() : coupling.channels(dim_class);
      bool all = std::ssize(channels) == words_.size;
      for (int64_t word = 0; all && word < words_.size; ++word) {
        const ChannelId& channel = channels[word];
        all = channel.group != kNone || stays(word);
        if (all && !stays(word)) masks.keep[channel.group][channel.channel] = 0;
      }
      for (int64_t word = 0; all && word < words_.size; ++word) {
        all = masks.keeps(channels[word]) == stays(word);
      }
      if (!all) {
        throw UnsupportedError("keep_tokens: words cannot leave axis ", dim.dim, " of ",
                               in_quotes(graph_.value(dim.value).name),
                               ", which is coupled with others");
      }
    }
  }

  /// Couples, scores and plans; false if some node has to be pinned for the plan to be consistent.
  bool attempt() {
    const Facts& facts = pruning_.analysis.facts;
    Coupling& coupling = pruning_.analysis.coupling;
    AxisMasks& masks = pruning_.allocation.masks;
    coupling = timed_("couple", [&] {
      return once(&SharedAnalysis::coupling,
                  [&] { return couple(graph_, facts, coupling_options_); });
    });
    measure();
    if (is_targeted()) read_steps();
    const Facts& sample = pruning_.analysis.sample;  // MACs are counted for one sample
    pruning_.allocation = timed_("score", [&] {
      return allocate(graph_, sample, coupling, settings_, criterion(), services_.choose,
                      importance());
    });
    if (asks_for_latency(settings_)) {
      pruning_.latency = timed_("measure", [&] { return spend(); });
    }
    const bool exact = request_.constants == Constants::kExact;
    exclude_groups(request_, coupling, masks);
    keep_words(coupling, masks);
    if (is_targeted() && !pruning_.latency) {
      pruning_.rounding = timed_("measure", [&] { return measure_rounding(); });
    }
    const ElementOptions elements{needs_.empty() ? nullptr : &statistics_, request_.mixing, !exact};
    elements_ = timed_("score",
                       [&] { return zero_elements(graph_, coupling, settings_, elements, masks); });
    if (exact && !elements_.only_zeros()) {
      throw UnsupportedError(
          "\"sparsegpt\" changes the remaining elements, but exact constants refer to masked "
          "weights: use constants drop");
    }
    if (exact && request_.rescale) {
      throw UnsupportedError(
          "--rescale cannot be combined with --constants exact, which depends on the values that "
          "it changes");
    }
    if (exact) masks = timed_("constants", [&] { return fold_constants(masks); });
    PlanAttempt made = timed_("plan", [&] { return make_plan(graph_, facts, coupling, masks); });
    pruning_.plan = std::move(made.plan);
    pruning_.plan.states = states_;
    for (const ValueId input : words_.inputs) {
      pruning_.plan.words.push_back({graph_.value(input).name, words_.size, kept_words_});
    }
    pruning_.scales = frozen_scales(graph_, facts, coupling, masks, pruning_.plan);
    if (request_.rescale) rescale(graph_, pruning_.scales, pruning_.plan);
    if (made.refused.empty()) made.refused = timed_("check", [&] { return check(); });
    for (const NodeId node : made.refused) refuse(node);
    return made.refused.empty();
  }

  bool is_targeted() const {
    return std::ranges::any_of(settings_.requests,
                               [](const Request& request) { return request.target.has_value(); });
  }

  /// Reads fast widths from a table specified by the user.
  void read_steps() {
    if (services_.tables == nullptr || request_.latency.table.empty()) return;
    Probe probe = pruning_.analysis.probe;
    probe.first = request_.latency.batch;
    const Coupling& coupling = pruning_.analysis.coupling;
    const auto subgraphs = subgraphs_of(graph_, infer(graph_, probe), coupling);
    settings_.multiples = multiples_of(coupling, subgraphs, *services_.tables);
    const auto known = std::ranges::count_if(settings_.multiples, [](int m) { return m > 0; });
    const std::string note = "widths of " + std::to_string(known) + " of " +
                             counted(std::ssize(coupling.groups), "group") +
                             " are rounded to the latency steps in " + request_.latency.table;
    if (!contains(pruning_.notes, note)) pruning_.notes.push_back(note);
  }

  CriterionOptions criterion() const {
    static const int cores = machine::these_cores().usable();
    return {request_.seed, needs_.empty() ? nullptr : &statistics_, services_.score,
            request_.scores.empty() ? nullptr : &request_.scores, request_.threads.value_or(cores)};
  }

  /// Returns the importance measured on outputs; empty if networks cannot be run.
  ImportanceCurves importance() const {
    if (!services_.r_squared || !request_.interface.empty()) return {};
    return [this, meter = std::optional<ImportanceMeter>()](std::span<const GroupId> groups,
                                                            const Candidate& candidate) mutable {
      const Analysis& analysis = pruning_.analysis;
      const Coupled network{graph_, analysis.probe, analysis.facts, analysis.coupling};
      if (!meter) meter.emplace(network, services_.r_squared);
      return meter->curve(groups, candidate);
    };
  }

  void require_measurement() const {
    if (needs_.empty() || services_.measure) return;
    if (needs_.channels.contains(Measure::kMovement)) throw errors::needs_training("movement");
    throw errors::needs_data(*needs_.criteria.begin());
  }

  /// Runs data through the network if a criterion needs it.
  void measure() {
    if (needs_.empty()) return;
    const Analysis& analysis = pruning_.analysis;
    add_reader_needs(graph_, analysis.coupling, settings_, needs_);
    statistics_ = timed_("measure", [&] {
      return once(&SharedAnalysis::statistics, [&] {
        return services_.measure(graph_, analysis.facts, analysis.coupling, needs_);
      });
    });
  }

  /// Compares with the network that the same settings give without a target.
  RoundingOutcome measure_rounding() {
    RoundingOutcome outcome;
    Settings exact = settings_;
    for (Request& request : exact.requests) {
      outcome.target = request.target.value_or(outcome.target);
      request.target.reset();
    }
    const Analysis& analysis = pruning_.analysis;
    Allocation without = allocate(graph_, analysis.sample, analysis.coupling, exact, criterion(),
                                  services_.choose, importance());
    exclude_groups(request_, analysis.coupling, without.masks);
    outcome.score = score_kept(pruning_.allocation);
    outcome.score_without = score_kept(without);
    outcome.macs_without =
        CostModel(graph_, analysis.sample, analysis.coupling).under(without.masks).macs;
    const Coupled network{graph_, analysis.probe, analysis.facts, analysis.coupling};
    const auto other = cut(network, without.masks);
    const auto rounded = cut(network, pruning_.allocation.masks);
    if (services_.meter == nullptr || !other || !rounded) return outcome;
    try {
      const auto pair = services_.meter->networks(other->graph(), rounded->graph());
      if (pair) outcome.time = pair->share;
    } catch (const Error& error) {  // the engine cannot run it, or a device does not respond
      pruning_.notes.push_back("the speedup by rounding was not measured: " +
                               std::string(error.what()));
    }
    return outcome;
  }

  /// Returns the share of scores kept, over the scored groups.
  static double score_kept(const Allocation& allocation) {
    double all = 0;
    double kept = 0;
    for (const GroupId g : allocation.scores.ids()) {
      for (size_t c = 0; c < allocation.scores[g].size(); ++c) {
        all += allocation.scores[g][c];
        if (allocation.masks.keep[g][c] != 0) kept += allocation.scores[g][c];
      }
    }
    return all > 0 ? kept / all : 1;
  }

  LatencyOutcome spend() {
    const Analysis& analysis = pruning_.analysis;
    LatencyTables own;
    const LatencyTask task{graph_,    analysis.probe, analysis.sample,     analysis.coupling,
                           settings_, criterion(),    services_.r_squared, services_.meter};
    return spend_latency(task, request_.latency,
                         services_.tables == nullptr ? own : *services_.tables,
                         pruning_.allocation);
  }

  /// Returns the channels of the selection, and of the request's masks, that can be removed
  /// exactly.
  AxisMasks fold_constants(const AxisMasks& selected) {
    const Analysis& analysis = pruning_.analysis;
    std::vector<ElementMask> masks = request_.masks;
    merge_masks(masks, elements_.masks());
    merge_masks(masks, producer_masks(graph_, analysis.coupling, selected));
    folding_.emplace(graph_, analysis.facts, analysis.probe, analysis.coupling, std::move(masks),
                     services_.observe);
    return folding_->channels();
  }

  std::vector<NodeId> check() {
    const Analysis& analysis = pruning_.analysis;
    pruning_.small_shapes = {};
    if (pruning_.plan.groups.empty()) return {};
    GraphEditor trial(graph_);
    replay(pruning_.plan, trial);
    const auto differ = [&](const Probe& original, const Facts& facts, ValueShapes* shapes) {
      const Probe probe = small_probe(graph_, pruning_.plan, original);
      const AxisMasks& masks = pruning_.allocation.masks;
      const auto predicted = predict_shapes(facts, analysis.coupling, masks);
      return disagreements(trial.graph(), probe, predicted, shapes);
    };
    auto nodes = differ(analysis.probe, analysis.facts, &pruning_.small_shapes);
    if (nodes.empty() && other_sizes_) {
      nodes = differ(other_sizes_->probe, other_sizes_->facts, nullptr);
    }
    return nodes;
  }

  void refuse(NodeId node) {
    const std::string label = label_of(graph_, graph_.node(node));
    auto& whole = coupling_options_.pinned_nodes;
    if (whole.size() >= kMostRefusals || contains(whole, node)) {
      throw UnsupportedError("the pruned shapes are inconsistent at node \"" + label + "\"");
    }
    whole.push_back(node);
    pruning_.notes.push_back("node \"" + label +
                             "\" was not pruned: the pruned shapes are inconsistent there");
  }

  void finish() {
    const Analysis& analysis = pruning_.analysis;
    if (folding_) {
      complete_constants();  // zeroed elements are among its masks
    } else {
      pruning_.elements = add_elements(elements_, pruning_.plan);
      pruning_.element_masks = elements_.masks();
    }
    pruning_.notes.insert(pruning_.notes.end(), elements_.notes.begin(), elements_.notes.end());
    if (elements_.zero_channels > 0) {
      pruning_.notes.push_back(std::to_string(elements_.zero_channels) +
                               " channels became zero and are removed");
    }
    for (const InputSpec& spec : by_position(request_.inputs, graph_)) {
      pruning_.plan.inputs.push_back(to_text(spec));
    }
    pruning_.plan.unpruned_dims = unpruned_dims(graph_, analysis.coupling);
    const CostModel cost(graph_, analysis.sample, analysis.coupling);
    pruning_.dense = cost.dense();
    pruning_.small = cost.under(pruning_.allocation.masks);
    add_notes(graph_, request_, settings_, pruning_);
  }

  void complete_constants() {
    folding_->complete(pruning_.plan);
    pruning_.masked = folding_->outcomes(pruning_.plan);
    pruning_.absorbers = folding_->absorbers();
    for (const std::string& note : folding_->notes()) pruning_.notes.push_back(note);
  }

  Graph& graph_;
  const PruneRequest& request_;
  const PruneServices& services_;
  SharedAnalysis* const shared_;  ///< null: none
  Pruning pruning_;
  Stopwatch timed_;
  Settings settings_;
  CouplingOptions coupling_options_;
  std::vector<PlanState> states_;
  Words words_;                      ///< of which some leave
  std::vector<int64_t> kept_words_;  ///< ascending
  std::optional<Probed> other_sizes_;
  Needs needs_;
  Statistics statistics_;
  ElementPruning elements_;
  std::optional<ConstantFolding> folding_;
};

}  // namespace

Pruning plan_pruning(Graph& graph, const PruneRequest& request, const PruneServices& services,
                     SharedAnalysis* shared, const Settings* settings) {
  return Planner(graph, request, services, shared).run(settings);
}

Pruning plan_pruning(Graph& graph, const PruneRequest& request, const PruneServices& services) {
  return plan_pruning(graph, request, services, nullptr);
}

}  // namespace parsimony
