#include "tests/properties/workbench.h"

#include <random>
#include <stdexcept>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony::test {
namespace {

PruneRequest request_of(const Fixture& fixture) {
  PruneRequest request;
  request.mixing = Mixing::kAll;
  request.granularity = parse_granularity(fixture.granularity, fixture.name);
  for (const std::string& spec : fixture.inputs) request.inputs.push_back(parse_input_spec(spec));
  return request;
}

std::string write(const TemporaryFolder& folder, const std::string& bytes) {
  std::string path = folder / "model.onnx";
  write_file(path, bytes);
  return path;
}

}  // namespace

Workbench::Workbench(std::string bytes, const PruneRequest& request)
    : bytes_(std::move(bytes)),
      request_(request),
      file_(write(folder_, bytes_)),
      graph_(onnx_io::to_graph(file_)),
      analysis_(analyse(graph_, request)) {}

Workbench::Workbench(std::string bytes, const PruneRequest& request,
                     const CouplingOptions& coupling)
    : Workbench(std::move(bytes), request) {
  analysis_.coupling = couple(graph_, facts(), coupling);
}

Workbench::Workbench(const onnx::ModelProto& model, const PruneRequest& request)
    : Workbench(model.SerializeAsString(), request) {}

Workbench::Workbench(const Fixture& fixture) : Workbench(fixture.model, request_of(fixture)) {}

Plan Workbench::plan(const AxisMasks& masks) const {
  PlanAttempt attempt = make_plan(graph_, facts(), coupling(), masks);
  if (!attempt.refused.empty()) {
    throw std::runtime_error("refused at " + label_of(graph_, graph_.node(attempt.refused[0])));
  }
  return std::move(attempt.plan);
}

std::string Workbench::apply(const Plan& plan) const {
  onnx_io::ModelFile file(folder_ / "model.onnx");
  onnx_io::OnnxEditor editor(file);
  apply_plan(plan, graph_, probe(), editor);
  file.write(folder_ / "small.onnx");
  return read_file(folder_ / "small.onnx");
}

AxisMasks without(const Coupling& coupling, const std::vector<ChannelId>& channels) {
  AxisMasks masks = AxisMasks::all_kept(coupling);
  for (const ChannelId& channel : channels) {
    masks.keep[channel.group][channel.channel] = 0;
  }
  keep_enough(coupling, {}, masks);
  return masks;
}

AxisMasks random_masks(const Coupling& coupling, double ratio, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<ChannelId> channels;
  for (const GroupId g : coupling.groups.ids()) {
    for (int c = 0; c < coupling.groups[g].size; ++c) {
      const bool goes = static_cast<double>(random() % 1000) < ratio * 1000;
      if (goes) channels.push_back({g, c});
    }
  }
  return without(coupling, channels);
}

DepthPruning plan_random_depth(const Graph& graph, unsigned seed, int blocks, double ratio) {
  PruneRequest request;
  request.mixing = Mixing::kAll;
  request.depth = DepthRequest{.count = (blocks + 1) / 2};
  PruneServices services;
  services.influence = [seed](const Graph&, const std::vector<ResidualBlock>& found) {
    std::mt19937 random(seed);
    std::vector<double> influences;
    for (size_t b = 0; b < found.size(); ++b) influences.push_back(static_cast<double>(random()));
    return influences;
  };
  Shorthand shorthand;
  shorthand.ratio = ratio;
  request.config = from_shorthand(shorthand);
  return plan_depth(graph, request, services);
}

bool removes(const AxisMasks& masks) {
  for (const auto& keep : masks.keep) {
    for (const uint8_t k : keep) {
      if (k == 0) return true;
    }
  }
  return false;
}

}  // namespace parsimony::test
