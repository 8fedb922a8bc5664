#include "parsimony/speedup/constants.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/masks/contents.h"
#include "parsimony/speedup/constants_impl.h"

namespace parsimony {
namespace {

// A carrier's constant must not be much smaller than those that it carries: rounding grows with
// the quotient.
constexpr double kFairCarrier = 0.1;

/// Decides channel by channel.
class Decision {
 public:
  Decision(const Graph& graph, const Facts& facts, const Coupling& coupling,
           const std::vector<ElementMask>& masks)
      : graph_(graph),
        coupling_(coupling),
        contents_(trace_contents(graph, facts, masks)),
        exits_(find_exits(graph, facts, coupling)),
        candidate_(AxisMasks::all_kept(coupling).keep),
        observed_(exits_.size()) {
    for (auto& group : candidate_) std::fill(group.begin(), group.end(), uint8_t{0});
    find_candidates();
    for (size_t e = 0; e < exits_.size(); ++e) examine(e);
  }

  /// Exits whose operands have constants that must be known.
  std::vector<size_t> unknown() const {
    std::vector<size_t> result;
    for (size_t e = 0; e < exits_.size(); ++e) {
      bool asks = false;
      each_candidate(exits_[e], [&](size_t j, ChannelId) {
        asks = asks || !(stopped(exits_[e], j) || at(exits_[e], j) != Content::kConstant);
      });
      if (asks) result.push_back(e);
    }
    return result;
  }

  const Exit& exit(size_t e) const { return exits_[e]; }

  void learn(size_t e, std::vector<IndexContent> contents) {
    observed_[e] = std::move(contents);
    const Exit& exit = exits_[e];
    each_candidate(exit, [&](size_t j, ChannelId channel) {
      if (stopped(exit, j) || at(exit, j) != Content::kConstant) return;
      if (j >= observed_[e].size() || !observed_[e][j].uniform) {
        block(channel, "what is left differs from place to place at " + label(exit));
      } else if (observed_[e][j].value != 0 && exit.weight == kNone) {
        block(channel, "constant but not zero at " + label(exit) +
                           ", which has no weights of its own for it");
      } else if (observed_[e][j].value != 0 && exit.bias == kNone && !exit.can_carry) {
        block(channel, "there is nowhere to put the constant at " + label(exit));
      }
    });
  }

  void give_up(size_t e) {
    const Exit& exit = exits_[e];
    each_candidate(exit, [&](size_t j, ChannelId channel) {
      if (stopped(exit, j) || at(exit, j) != Content::kConstant) return;
      block(channel, "the constant is not known, for nothing was run, at " + label(exit));
    });
  }

  AxisMasks channels() const {
    AxisMasks kept = AxisMasks::all_kept(coupling_);
    for (size_t g = 0; g < candidate_.size(); ++g) {
      for (size_t c = 0; c < candidate_[g].size(); ++c) kept.keep[g][c] = candidate_[g][c] ? 0 : 1;
    }
    keep_at_least_one(coupling_, std::vector<std::vector<double>>(coupling_.groups.size()), kept);
    return kept;
  }

  std::vector<Sum> sums() const {
    std::vector<Sum> result;
    for (size_t e = 0; e < exits_.size(); ++e) {
      if (observed_[e].empty() || exits_[e].weight == kNone) continue;
      Sum sum{exits_[e], {}};
      for (size_t j = 0; j < observed_[e].size(); ++j) {
        const bool known = at(exits_[e], j) == Content::kConstant && observed_[e][j].uniform;
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
                       (count == 1 ? " channel stays" : " channels stay") +
                       ", zero in the weights: " + key.second);
    }
    return result;
  }

 private:
  Content at(const Exit& exit, size_t j) const { return content(exit.value, exit.dim, j); }

  Content content(ValueId value, int dim, size_t j) const {
    const auto& dims = contents_[value];
    return dims.empty() ? Content::kVaries : dims[dim][j];
  }

  const std::string& label(const Exit& exit) const {
    return label_of(graph_, graph_.node(exit.node));
  }

  /// Whatever arrives, nothing of it goes on.
  bool stopped(const Exit& exit, size_t j) const {
    if (at(exit, j) == Content::kZero) return true;
    if (exit.weight != kNone) {
      const Shape& dims = graph_.weight(graph_.value(exit.weight).weight).dims;
      const size_t i = exit.weight_index(static_cast<int64_t>(j), dims);
      return content(exit.weight, exit.axis, i) == Content::kZero;
    }
    return std::any_of(exit.partners.begin(), exit.partners.end(), [&](const auto& partner) {
      return content(partner.first, partner.second, j) == Content::kZero;
    });
  }

  template <typename Visit>
  void each(const Exit& exit, const Visit& visit) const {
    const auto channels = coupling_.channels(exit.line);
    for (size_t j = 0; j < channels.size(); ++j) {
      if (channels[j].group != kNone) visit(j, channels[j]);
    }
  }

  template <typename Visit>
  void each_candidate(const Exit& exit, const Visit& visit) const {
    each(exit, [&](size_t j, ChannelId channel) {
      if (candidate_[channel.group][channel.channel]) {
        visit(j, channel);
      }
    });
  }

  /// Channels of which some `out` slice is zero, or that go nowhere.
  void find_candidates() {
    std::vector<std::vector<uint8_t>> leads_on = candidate_;
    std::vector<uint8_t> ends(coupling_.groups.size(), 0);
    for (const Exit& exit : exits_) {
      each(exit, [&](size_t j, ChannelId channel) {
        ends[channel.group] = 1;
        if (!stopped(exit, j) || at(exit, j) == Content::kZero) {
          leads_on[channel.group][channel.channel] = 1;
        }
      });
    }
    for (size_t g = 0; g < coupling_.groups.size(); ++g) {
      const Group& group = coupling_.groups[g];
      for (int c = 0; c < group.size; ++c) {
        const bool nowhere = ends[g] != 0 && leads_on[g][c] == 0;
        if (!nowhere && !is_masked(group, c)) continue;
        candidate_[g][c] = 1;
        if (group.mixes) {
          block({static_cast<int>(g), c},
                "what remains depends on how many there are at " + group.mixes_at);
        }
      }
    }
  }

  bool is_masked(const Group& group, int channel) const {
    return std::any_of(group.members.begin(), group.members.end(), [&](const Member& member) {
      if (member.role != Role::kOut) return false;
      const auto indices = member.of(channel);
      return !indices.empty() && std::all_of(indices.begin(), indices.end(), [&](int64_t i) {
        return content(member.value, member.axis, i) == Content::kZero;
      });
    });
  }

  /// A channel that may depend on the inputs where it is summed over must stay.
  void examine(size_t e) {
    const Exit& exit = exits_[e];
    each_candidate(exit, [&](size_t j, ChannelId channel) {
      if (stopped(exit, j) || at(exit, j) != Content::kVaries) return;
      block(channel, "not masked in all that comes together at " + label(exit));
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
  const Contents contents_;
  const std::vector<Exit> exits_;
  std::vector<std::vector<uint8_t>> candidate_;
  std::vector<std::vector<IndexContent>> observed_;
  std::map<std::pair<int, std::string>, int> blocked_;
};

/// Chooses, for every sum without a bias to put constants into, the index that carries them.
class Carriers {
 public:
  Carriers(const Coupling& coupling, AxisMasks& channels)
      : coupling_(coupling), channels_(channels) {}

  void choose(Sum& sum) {
    if (sum.exit.bias != kNone) return;
    const auto line = coupling_.channels(sum.exit.line);
    double largest = 0;
    int64_t removed = kNone;
    int64_t kept = kNone;
    for (size_t j = 0; j < sum.constants.size(); ++j) {
      const double size = std::abs(sum.constants[j]);
      if (size == 0) continue;
      int64_t& best = channels_.keeps(line[j]) ? kept : removed;
      if (best == kNone || size > std::abs(sum.constants[best])) {
        best = static_cast<int64_t>(j);
      }
      if (!channels_.keeps(line[j])) largest = std::max(largest, size);
    }
    if (removed == kNone) return;
    const bool fair = kept != kNone && std::abs(sum.constants[kept]) >= kFairCarrier * largest;
    sum.carrier = fair ? kept : removed;
    if (fair) return;
    const ChannelId channel = line[removed];
    channels_.keep[channel.group][channel.channel] = 1;
    ++count;
  }

  int count = 0;

 private:
  const Coupling& coupling_;
  AxisMasks& channels_;
};

}  // namespace

ConstantFolding::ConstantFolding(const Graph& graph, const Facts& facts, const Probe& probe,
                                 const Coupling& coupling, std::vector<ElementMask> masks,
                                 const Observe& observe) {
  Decision decision(graph, facts, coupling, masks);
  const std::vector<size_t> unknown = decision.unknown();
  std::vector<Dimension> dimensions;
  for (const size_t e : unknown) {
    dimensions.push_back({decision.exit(e).value, decision.exit(e).dim});
  }
  if (observe && !unknown.empty()) {
    auto contents = observe(graph, probe, masks, dimensions);
    for (size_t i = 0; i < unknown.size(); ++i) decision.learn(unknown[i], std::move(contents[i]));
  } else {
    for (const size_t e : unknown) decision.give_up(e);
  }
  state_ = std::make_unique<State>(
      State{graph, coupling, std::move(masks), decision.channels(), decision.sums(), 0, {}});
  Carriers carriers(coupling, state_->channels);
  for (Sum& sum : state_->sums) carriers.choose(sum);
  state_->carriers = carriers.count;
  state_->notes = decision.notes();
}

ConstantFolding::~ConstantFolding() = default;
ConstantFolding::ConstantFolding(ConstantFolding&&) noexcept = default;
ConstantFolding& ConstantFolding::operator=(ConstantFolding&&) noexcept = default;

const AxisMasks& ConstantFolding::channels() const { return state_->channels; }
int ConstantFolding::carriers() const { return state_->carriers; }
const std::vector<std::string>& ConstantFolding::notes() const { return state_->notes; }

}  // namespace parsimony
