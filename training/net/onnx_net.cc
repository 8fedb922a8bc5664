// An ONNX file as a TrainableModel: the file is edited in place, the executor runs it.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/net/file_net_impl.h"
#include "parsimony/training/net/graph_net.h"
#include "parsimony/training/net/training_norms.h"

namespace parsimony::training {
namespace {

using onnx_io::ModelFile;
using onnx_io::OnnxEditor;
using onnx_io::OnnxModel;
using onnx_io::to_graph;

/// Returns the example's shape if the file leaves more than the batch dynamic.
std::vector<InputSpec> specs_of(const Graph& graph, const at::Tensor& example) {
  const auto& declared = graph.value(graph.inputs.front()).declared;
  bool open = !declared;
  for (size_t d = 1; declared && d < declared->size(); ++d) open = open || (*declared)[d] < 0;
  if (!open) return {};
  return {spec_of(example)};
}

/// Finds the last node that does not preserve the batch.
class BatchWatch {
 public:
  explicit BatchWatch(int64_t batch) : batch_(batch) {}

  void see(const Node& node, ValueId value, const at::Tensor& result) {
    const bool whole = result.dim() > 0 && result.size(0) == batch_;
    if (whole) batches_.push_back(value);
    for (const ValueId input : node.inputs) {
      const bool taken = std::find(batches_.begin(), batches_.end(), input) != batches_.end();
      if (taken && !whole) lost_ = describe(node, result);
    }
  }
  const std::string& lost() const { return lost_; }

 private:
  static std::string describe(const Node& node, const at::Tensor& result) {
    return "node \"" + (node.name.empty() ? node.op : node.name) + "\" (" + node.op +
           ") maps them to shape " + to_string(result.sizes().vec());
  }

  int64_t batch_;
  std::vector<ValueId> batches_;
  std::string lost_ = "its outputs differ in number";
};

class OnnxNet final : public TrainableModel {
 public:
  OnnxNet(const std::string& path, const FileNetOptions& options)
      : model_(path), options_(options), net_(nullptr) {
    Graph graph = model_.graph();
    if (graph.inputs.size() != 1) {
      throw UnsupportedError(path, ": the network has ", graph.inputs.size(),
                             " inputs; only networks with one input can be trained");
    }
    build(std::move(graph));
    if (options.batch_norm && norms_.empty()) {
      throw ConfigError(path,
                        ": \"batch_norm\" finds no convolution with a bias and no "
                        "BatchNormalization after it. Remove it: the network trains without it");
    }
    if (parameters().empty()) throw errors::nothing_to_train(path);
  }

  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor predictions;
    if (net_->is_training()) norms_.settle(*net_, x);
    try {
      predictions = net_->forward(x);
    } catch (const ModelError& error) {
      blame_batch(model_.path(), x, error.what(), [this](const at::Tensor& some) {
        const torch_io::Evaluating evaluating(*net_);
        net_->forward(some);
      });
      throw;
    }
    if (predictions.dim() > 0 && predictions.size(0) == x.size(0)) return predictions;
    throw errors::fixed_batch(model_.path(), x.size(0), where_batch_is_lost(x));
  }

  std::vector<NamedParameter> parameters() override {
    return by_graph_names(*net_, net_->named_parameters());
  }
  std::vector<NamedParameter> buffers() override {
    return by_graph_names(*net_, net_->named_buffers());
  }
  void train(bool on) override { net_->train(on); }

  std::vector<ParameterGroup> groups(const at::Tensor& example, Granularity granularity) override {
    Graph graph = to_graph(model_.file());
    return parameter_groups(graph, specs_of(graph, example), granularity, parameters());
  }

  PruneResult prune(const at::Tensor& example, const PruneRequest& request,
                    const PruneServices& services) override {
    write_back(model_.file());
    model_.rebase([this](ModelFile& file) {
      for (const Plan& plan : plans_) apply(plan, file);
      write_back(file);
    });
    try {
      PruneResult cut = prune_file(model_, specs_of(model_.graph(), example), request, services);
      assign_plan(cut.plan);
      return cut;
    } catch (...) {
      model_.restore();
      throw;
    }
  }

  void restore(const Plan& plan) override {
    apply(shapes_of(plan), model_.file());
    assign_plan(plan);
  }

  std::unique_ptr<TrainableModel> clone_architecture() const override {
    return onnx_net(model_.path(), options_);
  }

  void save(const std::string& path, const at::Tensor& /*example*/) override {
    write_back(model_.file());
    model_.write(path);
  }

 private:
  void build(Graph graph) {
    graph = with_logits(std::move(graph));
    norms_ = options_.batch_norm ? TrainingNorms(graph) : TrainingNorms();
    net_ = GraphModule(graph);
  }

  std::string where_batch_is_lost(const at::Tensor& x) {
    const at::NoGradGuard no_grad;
    const torch_io::Evaluating evaluating(*net_);
    BatchWatch watch(x.size(0));
    net_->observe([&](const Node& node, ValueId value, const at::Tensor& result) {
      watch.see(node, value, result);
    });
    net_->forward(x);
    net_->observe({});
    return watch.lost();
  }

  /// Writes the values that training has changed to the file; the others keep their bytes.
  void write_back(ModelFile& file) const {
    OnnxEditor editor(file);
    const Graph graph = to_graph(file);
    std::map<std::string, at::Tensor> trained = norms_.folded(*net_);
    trained.insert(net_->weights().begin(), net_->weights().end());
    for (const Weight& weight : graph.weights) {
      const auto known = trained.find(weight.name);
      if (known == trained.end() || !known->second.is_floating_point()) continue;
      const at::Tensor values = known->second.detach().cpu().contiguous();
      if (at::equal(values, torch_io::to_tensor(weight))) continue;
      editor.assign(weight.name,
                    {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
    }
  }

  static void apply(const Plan& shapes, ModelFile& file) {
    const Graph graph = to_graph(file);
    std::vector<InputSpec> inputs;
    for (const std::string& spec : shapes.inputs) inputs.push_back(parse_input_spec(spec));
    OnnxEditor editor(file);
    apply_plan(shapes, graph, choose_probe(graph, inputs), editor);
  }

  /// Replaces the network by the pruned one.
  void assign_plan(const Plan& plan) {
    const bool training = net_->is_training();
    build(to_graph(model_.file()));
    net_->train(training);
    plans_.push_back(shapes_of(plan));
  }

  OnnxModel model_;
  FileNetOptions options_;
  TrainingNorms norms_;
  GraphModule net_;
  std::vector<Plan> plans_;  ///< applied to the file since it was read from disk
};

}  // namespace

std::unique_ptr<TrainableModel> onnx_net(const std::string& path, const FileNetOptions& options) {
  return std::make_unique<OnnxNet>(path, options);
}

}  // namespace parsimony::training
