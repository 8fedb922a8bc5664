#include "parsimony/api/depth.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "parsimony/api/prune_impl.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {
namespace {

/// Too many blocks were requested; `excluded` of the `blocks` are kept because the configuration
/// excludes layers in them.
ConfigError too_few_blocks(int64_t expected, size_t blocks, size_t excluded) {
  std::string stay;
  if (excluded > 0) {
    stay = str_cat(", of which ", excluded,
                   " are kept because the configuration excludes layers in them");
  }
  return ConfigError("--layers ", expected, ": the network has ", blocks, " residual block",
                     blocks == 1 ? "" : "s", stay, "; `parsimony explain --blocks` lists them");
}

/// Tolerance for rounding when a budget is compared.
constexpr double kSlack = 1e-9;

/// Does it limit the whole network?
bool limits_network(const Request& request) {
  return (request.budget == Budget::kParams || request.budget == Budget::kMacs) &&
         (request.amount || request.ratio > 0);
}

double quantity(const Cost& cost, Budget budget) {
  return static_cast<double>(budget == Budget::kParams ? cost.params : cost.macs);
}

Cost cost_of(const Graph& graph, const Facts& sample) {
  Cost cost;
  const IdVector<WeightId, bool> counts = parameters(graph);
  IdVector<WeightId, bool> shown(graph.weights.size(), false);
  for (const Value& value : graph.values) {
    if (value.weight != kNone) shown[value.weight] = true;
  }
  for (const WeightId w : graph.weights.ids()) {
    if (counts[w] && shown[w]) cost.params += graph.weights[w].count();
  }
  for (const Node& node : graph.nodes) cost.macs += macs(NodeView(graph, node, sample));
  return cost;
}

/// Counts the elements of weights that are used only in the block.
int64_t params_of(const Graph& graph, const ResidualBlock& block,
                  const IdVector<WeightId, bool>& counts, const IdVector<WeightId, size_t>& uses) {
  std::map<WeightId, size_t> inside;
  for (const NodeId n : block.nodes) {
    for (const ValueId v : graph.node(n).inputs) {
      if (v != kNone && graph.value(v).weight != kNone) ++inside[graph.value(v).weight];
    }
  }
  int64_t params = 0;
  for (const auto& [w, count] : inside) {
    if (count == uses[w] && counts[w]) params += graph.weights[w].count();
  }
  return params;
}

/// A network without some of its blocks, and the settings of the remaining layers.
struct Reduced {
  Graph graph;
  Settings settings;
};

NodeId renumbered(const IdVector<NodeId, NodeId>& numbers, NodeId node) {
  return node == kNone ? kNone : numbers[node];
}

class DepthPlanner {
 public:
  DepthPlanner(const Graph& graph, const PruneRequest& request, const PruneServices& services,
               SharedAnalyses* shared)
      : graph_(graph),
        request_(request),
        services_(services),
        shared_(shared),
        settings_(resolve(request.config, graph)) {
    for (const Request& asked : settings_.requests) {
      if (!is_counted(asked.budget) || !asked.also.empty()) {
        throw UnsupportedError(
            "--layers does not support budgets of milliseconds, of bytes or of several amounts; "
            "pass --budget macs=… or params=…");
      }
    }
    const Probed probed = infer_with_choice(graph, request.inputs);
    sample_ = infer_sample(graph, probed);
    dense_ = cost_of(graph, sample_);
    blocks_ = residual_blocks(graph, probed.facts);
  }

  DepthPruning run() {
    const bool choose = request_.depth->kind == DepthRequest::Kind::kAuto;
    if (choose && !asks_for_amount()) {
      throw ConfigError("--layers auto requires a budget: pass --budget macs=50% or params=50%");
    }
    describe_blocks();
    const size_t expected = choose ? 0 : count();
    rank();
    return choose ? best() : finished(planned(expected), expected);
  }

 private:
  bool asks_for_amount() const {
    return std::ranges::any_of(settings_.requests,
                               [](const Request& r) { return limits_network(r); });
  }

  size_t excluded() const {
    return std::ranges::count_if(report_.blocks, [](const BlockOutcome& b) { return b.excluded; });
  }

  size_t count() const {
    const size_t free = blocks_.size() - excluded();
    if (request_.depth->kind == DepthRequest::Kind::kFraction) {
      return std::min<size_t>(free, floor_of(request_.depth->share, std::ssize(blocks_)));
    }
    if (request_.depth->count > static_cast<int64_t>(free)) {
      throw too_few_blocks(request_.depth->count, blocks_.size(), excluded());
    }
    return request_.depth->count;
  }

  void describe_blocks() {
    report_.blocks = describe(graph_, sample_, blocks_);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const auto& nodes = blocks_[b].nodes;
      report_.blocks[b].excluded = std::ranges::any_of(nodes, [&](NodeId n) {
        const LayerSetting& layer = settings_.layers[n];
        return layer.state == LayerSetting::State::kExcluded;
      });
    }
  }

  /// Ranks the removable blocks by ascending influence.
  void rank() {
    if (blocks_.empty()) return;
    if (services_.progress) services_.progress("blocks");
    const auto begin = std::chrono::steady_clock::now();
    const std::vector<double> influences = measured_influences();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    seconds_ = passed.count();
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const double value = influences.at(b);
      report_.blocks[b].influence =
          std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
      if (!report_.blocks[b].excluded) order_.push_back(b);
    }
    std::ranges::stable_sort(order_, [&](size_t a, size_t b) {
      return report_.blocks[a].influence < report_.blocks[b].influence;
    });
  }

  std::vector<double> measured_influences() const {
    if (shared_ == nullptr) return services_.influence(graph_, blocks_);
    if (!shared_->influences) shared_->influences = services_.influence(graph_, blocks_);
    return *shared_->influences;
  }

  std::vector<PlanBlock> first(size_t count) const {
    std::vector<size_t> chosen(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(chosen);
    std::vector<PlanBlock> blocks;
    for (const size_t b : chosen) blocks.push_back({report_.blocks[b].add, blocks_[b].kept_input});
    return blocks;
  }

  Reduced reduced(const std::vector<PlanBlock>& blocks) const {
    auto [graph, numbers] = without_blocks(graph_, blocks);
    Reduced result{std::move(graph), settings_};
    IdVector<NodeId, LayerSetting> layers(result.graph.nodes.size());
    for (const NodeId n : numbers.ids()) {
      if (numbers[n] != kNone) layers[numbers[n]] = settings_.layers[n];
    }
    result.settings.layers = std::move(layers);
    for (Request& request : result.settings.requests) {
      request.aligned_with = renumbered(numbers, request.aligned_with);
    }
    return result;
  }

  /// Returns the amount of the whole network that may remain.
  double allowed(const Request& request) const {
    return request.amount ? *request.amount
                          : (1 - request.ratio) * quantity(dense_, request.budget);
  }

  /// Converts budgets of the whole network to budgets of the rest. @returns false if the blocks
  /// already exceed one
  bool spend(const Cost& left, Settings& settings) const {
    bool met = true;
    for (size_t r = 0; r < settings.requests.size(); ++r) {
      Request& request = settings.requests[r];
      if (!limits_network(request)) continue;
      const double most = allowed(settings_.requests[r]);
      const double now = quantity(left, request.budget);
      if (now <= most) {
        request.amount.reset();
        request.ratio = 0;
        continue;
      }
      met = false;
      if (!request.amount) request.ratio = 1 - most / now;
    }
    return met;
  }

  SharedAnalysis* shared_without(const std::vector<PlanBlock>& blocks) const {
    if (shared_ == nullptr) return nullptr;
    std::vector<std::string> additions;
    for (const PlanBlock& block : blocks) additions.push_back(block.add);
    return &shared_->rest[additions];
  }

  struct Planned {
    DepthPruning result;
    bool blocks_suffice = false;
  };

  Planned planned(size_t count) const {
    const std::vector<PlanBlock> blocks = first(count);
    Reduced less = reduced(blocks);
    const Probed probed = infer_with_choice(less.graph, request_.inputs);
    Planned planned;
    planned.blocks_suffice =
        spend(cost_of(less.graph, infer_sample(less.graph, probed)), less.settings);
    planned.result.graph = std::move(less.graph);
    planned.result.pruning = plan_pruning(planned.result.graph, request_, services_,
                                          shared_without(blocks), &less.settings);
    auto& removed = planned.result.pruning.plan.blocks;
    removed.insert(removed.begin(), blocks.begin(), blocks.end());
    planned.result.pruning.dense = dense_;
    return planned;
  }

  bool meets(const Cost& cost) const {
    return std::ranges::all_of(settings_.requests, [&](const Request& r) {
      if (!limits_network(r)) return true;
      return quantity(cost, r.budget) <= allowed(r) * (1 + kSlack);
    });
  }

  DepthPruning best() {
    std::optional<Planned> chosen;
    size_t at = 0;
    for (size_t k = 0; k <= order_.size(); ++k) {
      if (services_.progress) services_.progress(std::to_string(k) + " blocks removed");
      Planned next = planned(k);
      DepthCandidate candidate;
      candidate.removed = static_cast<int>(k);
      candidate.cost = next.result.pruning.small;
      candidate.met = meets(candidate.cost);
      candidate.error = services_.error(next.result.pruning.plan);
      const bool last = next.blocks_suffice;
      if (!chosen || better(candidate, report_.candidates[at])) {
        chosen = std::move(next);
        at = k;
      }
      report_.candidates.push_back(candidate);
      if (last) break;
    }
    return finished(std::move(*chosen), at);
  }

  /// Returns whether `a` is better; if neither meets the budget, the cheaper one is.
  static bool better(const DepthCandidate& a, const DepthCandidate& b) {
    if (a.met != b.met) return a.met;
    if (!a.met && a.cost.macs != b.cost.macs) return a.cost.macs < b.cost.macs;
    return a.error < b.error;
  }

  DepthPruning finished(Planned planned, size_t count) {
    for (size_t i = 0; i < count; ++i) report_.blocks[order_[i]].removed = true;
    planned.result.report = std::move(report_);
    auto& times = planned.result.pruning.times;
    times.insert(times.begin(), {"blocks", seconds_});
    return std::move(planned.result);
  }

  const Graph& graph_;
  const PruneRequest& request_;
  const PruneServices& services_;
  SharedAnalyses* const shared_;  ///< null: none
  const Settings settings_;
  Facts sample_;
  Cost dense_;
  std::vector<ResidualBlock> blocks_;
  std::vector<size_t> order_;
  DepthReport report_;
  double seconds_ = 0;  ///< of the ranking
};

}  // namespace

std::vector<BlockOutcome> describe(const Graph& graph, const Facts& sample,
                                   const std::vector<ResidualBlock>& blocks) {
  const IdVector<WeightId, bool> counts = parameters(graph);
  IdVector<WeightId, size_t> uses(graph.weights.size(), 0);
  for (const Value& value : graph.values) {
    if (value.weight != kNone) uses[value.weight] += value.uses.size();
  }
  std::vector<BlockOutcome> outcomes;
  for (const ResidualBlock& block : blocks) {
    BlockOutcome& outcome = outcomes.emplace_back();
    outcome.add = key_of(graph, graph.node(block.add));
    outcome.label = label_of(graph, graph.node(block.add));
    outcome.nodes = static_cast<int>(block.nodes.size()) + 1;
    outcome.cost.params = params_of(graph, block, counts, uses);
    for (const NodeId n : block.nodes) {
      outcome.cost.macs += macs(NodeView(graph, graph.node(n), sample));
    }
  }
  return outcomes;
}

DepthRequest parse_depth(std::string_view text, std::string_view place) {
  if (text == "auto") return {DepthRequest::Kind::kAuto, 0, 0};
  const bool is_share = text.ends_with('%');
  const double number = share_of(text).value_or(-1);
  constexpr double kMost = 1e9;
  const bool fits = number >= 0 && number <= (is_share ? 1 : kMost);
  if (!fits || (!is_share && number != std::floor(number))) {
    throw ConfigError(
        place, ": found ", in_quotes(text),
        ", expected a number of blocks such as 3, a share of them such as 25%, or auto");
  }
  if (is_share) return {DepthRequest::Kind::kFraction, 0, number};
  return {DepthRequest::Kind::kCount, static_cast<int64_t>(number), 0};
}

DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared) {
  if (!request.interface.empty()) {
    throw UnsupportedError(
        "--layers runs the small network on the data of the original, so it cannot be combined "
        "with --states or --free, which change its shapes");
  }
  return DepthPlanner(graph, request, services, shared).run();
}

DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services) {
  return plan_depth(graph, request, services, nullptr);
}

}  // namespace parsimony
