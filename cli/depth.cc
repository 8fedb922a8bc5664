#include "parsimony/cli/depth.h"

#include <memory>
#include <utility>

#include "parsimony/api/network_error.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/torch_component.h"

namespace parsimony::cli {
namespace {

/// Compares outputs; runs the original when it is first asked.
NetworkError output_error(const Graph& original, const CalibrationOrder& data) {
  auto comparison = std::make_shared<std::unique_ptr<NetworkComparison>>();
  return [&original, data, comparison](const Graph& small) {
    if (!*comparison) {
      ErrorData samples = torch_component().samples(original, data);
      samples.labels.clear();  // with labels it would be accuracy, which is too coarse
      *comparison = std::make_unique<NetworkComparison>(
          original, [](const Graph& graph) { return torch_component().runner(graph); },
          std::move(samples));
    }
    return (**comparison)(small);
  };
}

}  // namespace

DepthOptions depth_options(const std::string& layers, const Graph& original,
                           const CalibrationOrder& data, std::optional<int> threads) {
  DepthOptions options;
  options.request = parse_depth(layers, "--layers");
  if (data.data.empty()) throw errors::depth_without_data();
  options.influence = [data, threads](const Graph& graph,
                                      const std::vector<ResidualBlock>& blocks) {
    torch_component().choose_threads(threads);
    return torch_component().block_influences(graph, blocks, data);
  };
  options.error = output_error(original, data);
  return options;
}

}  // namespace parsimony::cli
