#include "parsimony/cli/model.h"

#include "parsimony/cli/command.h"
#include "parsimony/cli/progress.h"
#include "parsimony/onnx_io/reader.h"

namespace parsimony::cli {

AnalysedModel read_and_analyse(const std::string& path, const std::vector<std::string>& specs,
                               const std::string& granularity, bool quiet) {
  Progress progress({"read", "analyse"}, !quiet);
  progress.begin("read");
  AnalysedModel model{onnx_io::ModelFile(path), {}, {}};
  model.graph = onnx_io::to_graph(model.file);
  progress.begin("analyse");
  PruneOptions options;
  options.inputs = input_specs(specs, model.graph);
  if (!granularity.empty()) options.granularity = parse_granularity(granularity, "--granularity");
  model.analysis = analyse(model.graph, options);
  return model;
}

}  // namespace parsimony::cli
