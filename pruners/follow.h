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
/// and takes the smallest of their ratios otherwise (of equal ones the earlier request). Its layers
/// are those whose matrices produce its channels. Requests that judge single elements do not count.
Followed follow(const Graph& graph, const Layers& layers, const Coupling& coupling,
                const Settings& settings);

}  // namespace parsimony
