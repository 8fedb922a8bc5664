#include "parsimony/cli/network_page.h"

#include <filesystem>

#include "parsimony/base/files.h"
#include "parsimony/report/html/page.h"

namespace parsimony::cli {

PictureDecision decision_of(const Pruning& pruning, const std::string& asked, bool done) {
  return {pruning.allocation.masks, pruning.allocation.scores, asked, done};
}

void write_network_page(const std::string& path, const std::string& model, const Graph& graph,
                        const Analysis& analysis, const std::optional<PictureDecision>& decision) {
  NetworkPicture picture =
      picture_of(graph, analysis.sample, analysis.coupling, analysis.probe, decision);
  picture.model = std::filesystem::path(model).filename().string();
  write_file(path, to_html(picture));
}

}  // namespace parsimony::cli
