// Prunes an ONNX file, fine-tunes it, and writes it back to ONNX.
#include <ATen/core/grad_mode.h>
#include <parsimony/api/prune.h>
#include <parsimony/onnx_io/editor.h>
#include <parsimony/onnx_io/model_file.h>
#include <parsimony/onnx_io/reader.h>
#include <parsimony/torch_io/executor/graph_module.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>
#include <zlib.h>

#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace {

using namespace parsimony;

const std::string kModels = EXAMPLES_DIR "/models/";

/// Reads a file in MNIST's format as floats: `header` bytes, then bytes of values.
at::Tensor read_idx(const std::string& name, unsigned header, at::IntArrayRef dims) {
  const std::unique_ptr<gzFile_s, decltype(&gzclose)> file(gzopen((kModels + name).c_str(), "rb"),
                                                           &gzclose);
  at::Tensor bytes = at::empty(dims, at::kByte);
  const auto size = static_cast<unsigned>(bytes.numel());
  if (file == nullptr || gzseek(file.get(), header, SEEK_SET) < 0 ||
      gzread(file.get(), bytes.data_ptr(), size) != static_cast<int>(size)) {
    throw std::runtime_error("cannot read " + kModels + name);
  }
  return bytes;
}

struct Digits {
  at::Tensor images, labels;

  Digits between(int64_t first, int64_t last) const {
    return {images.slice(0, first, last), labels.slice(0, first, last)};
  }
};

Digits read_digits() {
  return {read_idx("mnist_test_images.idx3.gz", 16, {180, 1, 28, 28}).to(at::kFloat) / 255,
          read_idx("mnist_test_labels.idx1.gz", 8, {180}).to(at::kLong)};
}

double accuracy(GraphModule& net, const Digits& digits) {
  const torch::NoGradGuard no_grad;
  net->eval();
  const at::Tensor right = net->forward(digits.images).argmax(1).eq(digits.labels);
  return right.to(at::kFloat).mean().item<double>();
}

void train(GraphModule& net, const Digits& digits) {
  torch::optim::Adam optimizer(net->parameters(), 2e-3);
  net->train();
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const at::Tensor logits = net->forward(digits.images);
    torch::nn::functional::cross_entropy(logits, digits.labels).backward();
    optimizer.step();
  }
}

/// Copies the module's current weights to the file.
void write_back(GraphModule& net, onnx_io::OnnxEditor& editor) {
  for (const auto& [name, weight] : net->weights()) {
    if (!weight.is_floating_point()) continue;
    const at::Tensor values = weight.detach().contiguous();
    editor.assign(name, {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
  }
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const Digits digits = read_digits();
  const Digits seen = digits.between(0, 120);
  const Digits unseen = digits.between(120, 180);

  onnx_io::ModelFile file(kModels + "mnist_cnn.onnx");
  Graph graph = onnx_io::to_graph(file);
  GraphModule dense(graph);
  const Pruning pruning = plan_pruning(graph, from_shorthand({.criterion = "l1", .ratio = 0.75}));
  onnx_io::OnnxEditor editor(file);
  apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);

  GraphModule net(onnx_io::to_graph(file));
  const double pruned = accuracy(net, unseen);
  train(net, seen);
  const double tuned = accuracy(net, unseen);
  write_back(net, editor);
  file.write("mnist_cnn_small.onnx");

  GraphModule again(onnx_io::to_graph(onnx_io::ModelFile("mnist_cnn_small.onnx")));
  const torch::NoGradGuard no_grad;
  const double difference =
      (again->forward(unseen.images) - net->forward(unseen.images)).abs().max().item<double>();

  std::printf("%lld -> %lld parameters\n", static_cast<long long>(pruning.dense.params),
              static_cast<long long>(pruning.small.params));
  std::printf("test accuracy: %.0f%%, pruned %.0f%%, fine-tuned %.0f%%\n",
              100 * accuracy(dense, unseen), 100 * pruned, 100 * tuned);
  std::printf("largest difference of the written file: %.1e\n", difference);
  return tuned > pruned && tuned > 0.8 && difference == 0 ? 0 : 1;
}
