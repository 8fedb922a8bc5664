// A group is one thing, its layers may have been asked for different ones: which request it
// follows.
#pragma once

#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Why a group was treated otherwise than some of its layers ask.
struct Compromise {
  int group = kNone;  ///< kNone: concerns a whole request
  std::string reason;
};

/// Request per group; kNone for a group that stays whole.
struct Followed {
  std::vector<int> request;
  std::vector<Compromise> compromises;
};

/// A group follows its most careful layer: it stays whole if one of them is excluded or not named,
/// and takes the smallest of their ratios otherwise (of equal ones the earlier request); a request
/// aligned with another layer goes before a ratio, a ratio before a threshold or an amount of the
/// network. Its layers are those whose matrices produce its channels. Requests that judge single
/// elements do not count. With Settings::exact_only a group that mixes stays whole.
///
/// A request for in_channels concerns the groups that its layers read. Those who produce such a
/// group need not be named, but one that is excluded keeps it whole. The `in_channel` of an
/// embedding is what it produces, as in NNI.
Followed follow(const Graph& graph, const Layers& layers, const Coupling& coupling,
                const Settings& settings);

/// Layers whose matrices produce the channels of a group (Role::kOut), or read them (Role::kIn).
std::vector<NodeId> layers_of(const Graph& graph, const Layers& layers, const Group& group,
                              Role role);

/// Does a layer's request for in_channels mean what it reads? Embeddings read indices.
bool reads_channels(const Graph& graph, NodeId layer);

}  // namespace parsimony
