#include "parsimony/speedup/constants.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/masks/errors.h"
#include "parsimony/masks/slice_values.h"
#include "parsimony/speedup/constant_folds_impl.h"

namespace parsimony {
namespace {

// The constant of an absorbing channel must not be much smaller than those that it absorbs:
// rounding errors grow with the quotient.
constexpr double kFairAbsorber = 0.1;

/// Decides channel by channel.
class Decision {
 public:
  Decision(const Graph& graph, const Facts& facts, const Coupling& coupling,
           const std::vector<ElementMask>& masks)
      : graph_(graph),
        coupling_(coupling),
        slice_values_(propagate_slice_values(graph, facts, masks)),
        sites_(find_reduction_sites(graph, facts, coupling)),
        candidate_(AxisMasks::all_kept(coupling).keep),
        observed_(sites_.size()) {
    for (auto& group : candidate_) std::ranges::fill(group, uint8_t{0});
    find_candidates();
    for (size_t e = 0; e < sites_.size(); ++e) examine(e);
  }

  /// Reduction sites whose operands have constants that must be known.
  std::vector<size_t> unknown() const {
    std::vector<size_t> result;
    for (size_t e = 0; e < sites_.size(); ++e) {
      bool asks = false;
      each_candidate(sites_[e], SliceValue::kConstant, [&](size_t, ChannelId) { asks = true; });
      if (asks) result.push_back(e);
    }
    return result;
  }

  const ReductionSite& site(size_t e) const { return sites_[e]; }

  void learn(size_t e, std::vector<IndexContent> slice_values) {
    observed_[e] = std::move(slice_values);
    const ReductionSite& site = sites_[e];
    each_candidate(site, SliceValue::kConstant, [&](size_t j, ChannelId channel) {
      if (j >= observed_[e].size() || !observed_[e][j].uniform) {
        block(channel, "what is left varies by position at " + label(site));
      } else if (observed_[e][j].value != 0 && site.weight == kNone) {
        block(channel, "constant but not zero at " + label(site) +
                           ", which has no weights of its own for it");
      } else if (observed_[e][j].value != 0 && site.bias == kNone && !site.can_absorb) {
        block(channel, "there is nowhere to put the constant at " + label(site));
      }
    });
  }

  void abandon(size_t e) {
    const ReductionSite& site = sites_[e];
    each_candidate(site, SliceValue::kConstant, [&](size_t /*j*/, ChannelId channel) {
      block(channel, "the constant is not known, for nothing was run, at " + label(site));
    });
  }

  AxisMasks channels() const {
    AxisMasks kept = AxisMasks::all_kept(coupling_);
    for (const GroupId g : candidate_.ids()) {
      for (size_t c = 0; c < candidate_[g].size(); ++c) kept.keep[g][c] = candidate_[g][c] ? 0 : 1;
    }
    keep_enough(coupling_, {}, kept);
    return kept;
  }

  std::vector<Sum> sums() const {
    std::vector<Sum> result;
    for (size_t e = 0; e < sites_.size(); ++e) {
      if (observed_[e].empty() || sites_[e].weight == kNone) continue;
      Sum sum{sites_[e], {}};
      for (size_t j = 0; j < observed_[e].size(); ++j) {
        const bool known = at(sites_[e], j) == SliceValue::kConstant && observed_[e][j].uniform;
        sum.constants.push_back(known ? observed_[e][j].value : 0);
      }
      result.push_back(std::move(sum));
    }
    return result;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> result;
    for (const auto& [key, count] : blocked_) {
      const Group& group = coupling_.groups[key.first];
      result.push_back("group " + group.id + ": " + std::to_string(count) +
                       (count == 1 ? " channel is kept" : " channels are kept") +
                       ", zero in the weights: " + key.second);
    }
    return result;
  }

 private:
  SliceValue at(const ReductionSite& site, size_t j) const {
    return slice_value(site.value, site.dim, j);
  }

  SliceValue slice_value(ValueId value, int dim, size_t j) const {
    const auto& dims = slice_values_[value];
    return dims.empty() ? SliceValue::kVaries : dims[dim][j];
  }

  const std::string& label(const ReductionSite& site) const {
    return label_of(graph_, graph_.node(site.node));
  }

  /// Is the channel cancelled there?
  bool stopped(const ReductionSite& site, size_t j) const {
    if (at(site, j) == SliceValue::kZero) return true;
    if (site.weight != kNone) {
      const Shape& dims = graph_.weight_of(site.weight).dims;
      const size_t i = site.weight_index(static_cast<int64_t>(j), dims);
      return slice_value(site.weight, site.axis, i) == SliceValue::kZero;
    }
    return std::ranges::any_of(site.partners, [&](const auto& partner) {
      return slice_value(partner.first, partner.second, j) == SliceValue::kZero;
    });
  }

  template <typename Visit>
  void each(const ReductionSite& site, const Visit& visit) const {
    const auto channels = coupling_.channels(site.dim_class);
    for (size_t j = 0; j < channels.size(); ++j) {
      if (channels[j].group != kNone) visit(j, channels[j]);
    }
  }

  /// The candidates that are not stopped there and whose operand holds `content`.
  template <typename Visit>
  void each_candidate(const ReductionSite& site, SliceValue content, const Visit& visit) const {
    each(site, [&](size_t j, ChannelId channel) {
      const bool candidate = candidate_[channel.group][channel.channel] != 0;
      if (candidate && !stopped(site, j) && at(site, j) == content) visit(j, channel);
    });
  }

  /// Channels with a zero `out` slice, or without a consumer.
  void find_candidates() {
    PerGroup<std::vector<uint8_t>> leads_on = candidate_;
    PerGroup<uint8_t> ends(coupling_.groups.size(), 0);
    for (const ReductionSite& site : sites_) {
      each(site, [&](size_t j, ChannelId channel) {
        ends[channel.group] = 1;
        if (!stopped(site, j) || at(site, j) == SliceValue::kZero) {
          leads_on[channel.group][channel.channel] = 1;
        }
      });
    }
    for (const GroupId g : coupling_.groups.ids()) {
      const Group& group = coupling_.groups[g];
      for (int c = 0; c < group.size; ++c) {
        const bool nowhere = ends[g] != 0 && leads_on[g][c] == 0;
        if (!nowhere && !is_masked(group, c)) continue;
        candidate_[g][c] = 1;
        if (group.mixes) {
          block({g, c}, "what remains depends on how many there are at " + group.mixes_at);
        }
      }
    }
  }

  bool is_masked(const Group& group, int channel) const {
    return std::ranges::any_of(group.members, [&](const Member& member) {
      if (member.role != Role::kOut) return false;
      const auto indices = member.of(channel);
      return !indices.empty() && std::ranges::all_of(indices, [&](int64_t i) {
        return slice_value(member.value, member.axis, i) == SliceValue::kZero;
      });
    });
  }

  /// A channel that may depend on the inputs at a reduction site must be kept.
  void examine(size_t e) {
    const ReductionSite& site = sites_[e];
    each_candidate(site, SliceValue::kVaries, [&](size_t /*j*/, ChannelId channel) {
      block(channel, "not masked in all operands of " + label(site));
    });
  }

  void block(ChannelId channel, const std::string& reason) {
    auto& flag = candidate_[channel.group][channel.channel];
    if (flag == 0) return;
    flag = 0;
    ++blocked_[{channel.group, reason}];
  }

  const Graph& graph_;
  const Coupling& coupling_;
  const SliceValues slice_values_;
  const std::vector<ReductionSite> sites_;
  PerGroup<std::vector<uint8_t>> candidate_;
  std::vector<std::vector<IndexContent>> observed_;
  std::map<std::pair<GroupId, std::string>, int> blocked_;
};

/// Chooses the absorbing channel of a sum without a bias; true if it is kept for that alone.
bool choose_absorber(const Coupling& coupling, Sum& sum, AxisMasks& channels) {
  if (sum.site.bias != kNone) return false;
  const auto dim_class = coupling.channels(sum.site.dim_class);
  double largest = 0;
  int64_t removed = kNone;
  int64_t kept = kNone;
  for (size_t j = 0; j < sum.constants.size(); ++j) {
    const double size = std::abs(sum.constants[j]);
    if (size == 0) continue;
    int64_t& best = channels.keeps(dim_class[j]) ? kept : removed;
    if (best == kNone || size > std::abs(sum.constants[best])) best = static_cast<int64_t>(j);
    if (!channels.keeps(dim_class[j])) largest = std::max(largest, size);
  }
  if (removed == kNone) return false;
  const bool fair = kept != kNone && std::abs(sum.constants[kept]) >= kFairAbsorber * largest;
  sum.absorber = fair ? kept : removed;
  if (fair) return false;
  const ChannelId channel = dim_class[removed];
  channels.keep[channel.group][channel.channel] = 1;
  return true;
}

}  // namespace

ConstantFolding::ConstantFolding(const Graph& graph, const Facts& facts, const Probe& probe,
                                 const Coupling& coupling, std::vector<ElementMask> masks,
                                 const Observe& observe) {
  Decision decision(graph, facts, coupling, masks);
  const std::vector<size_t> unknown = decision.unknown();
  std::vector<Dimension> dimensions;
  for (const size_t e : unknown) {
    dimensions.push_back({decision.site(e).value, decision.site(e).dim});
  }
  if (observe && !unknown.empty()) {
    auto slice_values = observe(graph, probe, masks, dimensions);
    for (size_t i = 0; i < unknown.size(); ++i)
      decision.learn(unknown[i], std::move(slice_values[i]));
  } else {
    for (const size_t e : unknown) decision.abandon(e);
  }
  state_ = std::make_unique<State>(
      State{graph, coupling, std::move(masks), decision.channels(), decision.sums(), 0, {}});
  for (Sum& sum : state_->sums) {
    if (choose_absorber(coupling, sum, state_->channels)) ++state_->absorbers;
  }
  state_->notes = decision.notes();
}

ConstantFolding::~ConstantFolding() = default;
ConstantFolding::ConstantFolding(ConstantFolding&&) noexcept = default;
ConstantFolding& ConstantFolding::operator=(ConstantFolding&&) noexcept = default;

const AxisMasks& ConstantFolding::channels() const { return state_->channels; }
int ConstantFolding::absorbers() const { return state_->absorbers; }
const std::vector<std::string>& ConstantFolding::notes() const { return state_->notes; }

// Masks on their way into a plan with exact constants.
namespace {

/// Do masked weights make the layer's channel zero? Integers are followed by more, such as scales.
bool is_layer(const Node& node) {
  const Linear& linear = schema_of(node).linear;
  return linear.plain || linear.kind == LinearKind::kContraction ||
         linear.kind == LinearKind::kLookup || linear.kind == LinearKind::kRecurrence;
}

bool is_transposed_for_product(const Graph& graph, const Node& node) {
  if (!has_trait(node, kPermutes)) return false;
  const std::vector<Use>& uses = graph.value(node.outputs.front()).uses;
  return std::ranges::any_of(uses, [&](const Use& use) { return is_layer(graph.node(use.node)); });
}

/// Whether the node multiplies matrices, without a bias.
bool is_bare_product(const Node& node) {
  const Linear& linear = schema_of(node).linear;
  return linear.plain && linear.kind == LinearKind::kMatrixProduct && linear.bias < 0;
}

/// The bias of a matrix product, which exporters write as an addition, is part of the layer.
bool produces(const Graph& graph, const Node& node) {
  if (is_layer(node) || is_transposed_for_product(graph, node)) return true;
  if (!has_trait(node, kAdds)) return false;
  return std::ranges::any_of(node.inputs, [&](ValueId v) {
    const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
    return producer != kNone && is_bare_product(graph.node(producer));
  });
}

}  // namespace

std::vector<ElementMask> producer_masks(const Graph& graph, const Coupling& coupling,
                                        const AxisMasks& selection) {
  Coupling producers;
  producers.groups = coupling.groups;
  for (Group& group : producers.groups) {
    const auto other = [&](const Member& m) {
      return m.role != Role::kOut || !produces(graph, graph.node(m.node));
    };
    if (std::ranges::all_of(group.members, other)) {
      std::erase_if(group.members, [](const Member& m) { return m.role != Role::kOut; });
    } else {
      std::erase_if(group.members, other);
    }
  }
  return to_element_masks(graph, producers, selection);
}

void merge_masks(std::vector<ElementMask>& masks, const std::vector<ElementMask>& further) {
  for (const ElementMask& mask : further) {
    const auto same = std::ranges::find_if(
        masks, [&](const ElementMask& other) { return other.tensor == mask.tensor; });
    if (same == masks.end()) {
      masks.push_back(mask);
      continue;
    }
    if (same->dims != mask.dims) {
      throw errors::mask_does_not_fit(mask.tensor, mask.dims, same->dims);
    }
    for (size_t i = 0; i < mask.keep.size(); ++i) same->keep[i] &= mask.keep[i];
  }
}

void check_masks(const Graph& graph, const std::vector<ElementMask>& masks) {
  for (const ElementMask& mask : masks) {
    const auto found =
        std::ranges::find_if(graph.weights, [&](const Weight& w) { return w.name == mask.tensor; });
    if (found == graph.weights.end()) {
      std::vector<std::string> names;
      for (const Weight& weight : graph.weights) names.push_back(weight.name);
      throw ModelError("the masks name tensor ", in_quotes(mask.tensor),
                       ", which the model does not have.", did_you_mean(mask.tensor, names));
    }
    if (found->dims != mask.dims) {
      throw errors::mask_does_not_fit(mask.tensor, mask.dims, found->dims);
    }
  }
}

}  // namespace parsimony
