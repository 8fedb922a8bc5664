// What zeroed elements cost: how far the output of a pruned network is from the dense one's, on
// inputs that were not used for calibration.
//
//     bench_elements MODEL.onnx hands|files:DIR|cifar10:DIR [SAMPLES]
//
// `hands` draws 21 points of a hand at random; `files:DIR` takes the first and the last 1,024 bytes
// of files. Half of the samples calibrate, the other half judge.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/data/dataset.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/training/statistics/measure.h"

namespace parsimony::bench {
namespace {

using Batches = std::vector<at::Tensor>;

constexpr int64_t kBatch = 32;
constexpr int64_t kEnd = 1024;     // bytes at either end of a file
constexpr int64_t kPadding = 256;  // stands where a file has no byte

/// Wrist and five fingers of four joints, [42]: relative to the wrist, the largest number 1.
at::Tensor hand(std::mt19937& engine) {
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<double> points = {0, 0};
  const double turn = draw(engine) * std::numbers::pi;
  for (int finger = 0; finger < 5; ++finger) {
    double angle = turn + 0.35 * (finger - 2) + 0.1 * draw(engine);
    const double curl = 0.8 * std::abs(draw(engine));
    double x = 0;
    double y = 0;
    for (const double bone : {0.5, 0.25, 0.18, 0.14}) {
      const double length = bone * (1 + 0.15 * draw(engine));
      x += length * std::cos(angle);
      y += length * std::sin(angle);
      angle += curl;
      points.insert(points.end(), {x, y});
    }
  }
  const at::Tensor all = at::tensor(points, at::kDouble);
  return (all / all.abs().max()).to(at::kFloat);
}

at::Tensor hands(int64_t count) {
  std::mt19937 engine(1);
  std::vector<at::Tensor> drawn;
  for (int64_t i = 0; i < count; ++i) drawn.push_back(hand(engine));
  return at::stack(drawn);
}

/// First and last bytes without the blanks around the text, [2 * kEnd].
at::Tensor ends_of(const std::string& text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), blank);
  const auto end = std::find_if_not(text.rbegin(), std::make_reverse_iterator(begin), blank).base();
  const int64_t size = end - begin;
  at::Tensor ends = at::full({2 * kEnd}, kPadding, at::kInt);
  auto* to = ends.data_ptr<int>();
  for (int64_t i = 0; i < std::min(size, kEnd); ++i) {
    to[i] = static_cast<unsigned char>(begin[i]);
    to[2 * kEnd - 1 - i] = static_cast<unsigned char>(end[-1 - i]);
  }
  return ends;
}

/// Files of a folder and those within it, by name, every k-th so that `count` are taken.
at::Tensor files(const std::string& folder, int64_t count) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().string();
    const bool hidden = name.find("/.") != std::string::npos;
    const bool built = name.find("/build/") != std::string::npos;
    if (entry.is_regular_file() && !hidden && !built) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::vector<at::Tensor> read;
  const size_t step = std::max<size_t>(1, names.size() / static_cast<size_t>(count));
  for (size_t i = 0; i < names.size() && static_cast<int64_t>(read.size()) < count; i += step) {
    read.push_back(ends_of(read_file(names[i])));
  }
  return at::stack(read);
}

at::Tensor images(const std::string& spec, int64_t count) {
  const Dataset data = read_dataset(spec, {.train_samples = count});
  Shape dims = data.train.dims;
  dims.insert(dims.begin(), data.train.count());
  const at::Tensor bytes =
      at::from_blob(const_cast<std::byte*>(data.train.values.data()), dims, at::kByte);
  const at::Tensor mean = at::tensor({0.4914, 0.4822, 0.4465}).reshape({1, 3, 1, 1});
  const at::Tensor deviation = at::tensor({0.2023, 0.1994, 0.2010}).reshape({1, 3, 1, 1});
  return ((bytes.to(at::kFloat) / 255 - mean) / deviation).to(at::kFloat);
}

at::Tensor samples_of(const std::string& spec, int64_t count) {
  if (spec == "hands") return hands(count);
  if (spec.starts_with("files:")) return files(spec.substr(6), count);
  return images(spec, count);
}

/// What a network answers before it is rounded to a class or squashed.
ValueId answer_of(const Graph& graph) {
  ValueId value = graph.outputs.front();
  while (graph.value(value).producer != kNone) {
    const Node& node = graph.node(graph.value(value).producer);
    if (node.op != "ArgMax" && node.op != "Softmax" && node.op != "Identity") break;
    value = node.inputs.front();
  }
  return value;
}

class Network {
 public:
  explicit Network(const Graph& graph, const Plan* plan = nullptr)
      : net_(graph, GraphModuleOptions{.trainable = false}) {
    if (plan != nullptr) net_->mask(*plan);
    net_->observe([this, answer = answer_of(graph)](const Node&, ValueId id, const at::Tensor& x) {
      if (id == answer) answer_ = x;
    });
  }

  at::Tensor predictions(const Batches& batches) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& batch : batches) {
      net_->forward(batch);
      all.push_back(answer_.reshape({batch.size(0), -1}));
    }
    return at::cat(all);
  }

 private:
  GraphModule net_;
  at::Tensor answer_;
};

/// Batches of the samples at even places, or at odd ones.
Batches half(const at::Tensor& samples, int64_t begin, const Graph& graph) {
  const auto& declared = graph.value(graph.inputs.front()).declared;
  const bool fixed = declared && !declared->empty() && declared->front() > 0;
  return samples.slice(0, begin, samples.size(0), 2)
      .contiguous()
      .split(fixed ? declared->front() : kBatch);
}

Measurement measurement(const Batches& batches) {
  return [&batches](const Graph& graph, const Facts& facts, const Coupling& coupling,
                    const Needs& needs) {
    training::Measuring measuring(graph, facts, coupling, needs);
    for (const at::Tensor& x : batches) {
      measuring.add(training::Batch{x, at::zeros({x.size(0)}, at::kLong)});
    }
    return measuring.finish();
  };
}

struct Row {
  const char* criterion;
  double ratio;
};
constexpr Row kRows[] = {{"level", 0.5}, {"wanda_elements", 0.5},   {"sparsegpt", 0.5},
                         {"2:4", 0},     {"wanda_elements:2:4", 0}, {"sparsegpt:2:4", 0}};

void run(const std::string& model, const std::string& spec, int64_t count) {
  const at::NoGradGuard no_grad;
  const onnx_io::ModelFile file(model);
  const Graph dense = onnx_io::to_graph(file);
  const at::Tensor samples = samples_of(spec, 2 * count);
  const Batches calibration = half(samples, 0, dense);
  const Batches held_out = half(samples, 1, dense);
  const at::Tensor expected = Network(dense).predictions(held_out);
  std::printf("%s, %lld samples to calibrate, %lld held out\n", model.c_str(),
              static_cast<long long>((samples.size(0) + 1) / 2),
              static_cast<long long>(expected.size(0)));
  std::printf("%-20s %8s %8s %12s %8s\n", "criterion", "zero", "error", "same class", "seconds");
  for (const Row& row : kRows) {
    Graph graph = onnx_io::to_graph(file);
    PruneRequest request;
    PruneServices services;
    services.measure = measurement(calibration);
    Shorthand asked;
    asked.criterion = row.criterion;
    asked.ratio = row.ratio;
    request.config = from_shorthand(asked);
    const Pruning pruning = plan_pruning(graph, request, services);
    double seconds = 0;
    for (const StageTime& time : pruning.times) {
      if (time.stage == "score") seconds += time.seconds;
    }
    double zero = 0;
    double all = 0;
    for (const ElementMask& mask : pruning.element_masks) {
      zero += static_cast<double>(std::count(mask.keep.begin(), mask.keep.end(), 0));
      all += static_cast<double>(mask.keep.size());
    }
    const at::Tensor found = Network(dense, &pruning.plan).predictions(held_out);
    const double error = ((found - expected).norm() / expected.norm()).item<double>();
    const double same =
        (found.argmax(1) == expected.argmax(1)).to(at::kDouble).mean().item<double>();
    std::printf("%-20s %7.1f%% %8.4f %11.1f%% %8.2f\n", row.criterion, 100 * zero / all, error,
                100 * same, seconds);
  }
}

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "bench_elements MODEL.onnx hands|files:DIR|cifar10:DIR [SAMPLES]\n");
    return 2;
  }
  try {
    parsimony::bench::run(argv[1], argv[2], argc > 3 ? std::atoll(argv[3]) : 256);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
