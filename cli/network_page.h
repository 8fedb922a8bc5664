// The page of `explain --html` and `prune --html`.
#pragma once

#include <string>

#include "parsimony/api/prune.h"
#include "parsimony/report/network/picture.h"

namespace parsimony::cli {

/// `asked`: what decided, as it was typed; `done`: the network was pruned so.
PictureDecision decision_of(const Pruning& pruning, const std::string& asked, bool done);

/// Writes the page; `model` is the path of the file that it is about.
void write_network_page(const std::string& path, const std::string& model, const Graph& graph,
                        const Analysis& analysis,
                        const std::optional<PictureDecision>& decision = std::nullopt);

}  // namespace parsimony::cli
