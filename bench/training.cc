// Training the CIFAR-10 CNN, batch 64: dense, pruned, and small from the start; beside the same
// loop in Python, and beside the usual one with a data set of images and a DataLoader.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/support/limits.h"
#include "examples/models/cifar_cnn.h"
#include "parsimony/configs/config.h"
#include "parsimony/data/dataset.h"
#include "parsimony/engines/timing.h"
#include "parsimony/training/loader/endless.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/labelled.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::bench {
namespace {

using namespace training;

constexpr int kSteps = 200;  // of each of Python's runs
constexpr int kTurns = 3;

/// The CNN with convolutions of any width.
struct SmallCnnImpl : torch::nn::Module {
  SmallCnnImpl(int64_t first, int64_t second)
      : conv1(torch::nn::Conv2dOptions(3, first, 3).padding(1)),
        conv2(torch::nn::Conv2dOptions(first, second, 3).padding(1)),
        fc1(second * 64, 512),
        fc2(512, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  at::Tensor forward(at::Tensor x) {
    x = at::max_pool2d(conv1(x).relu(), 2);
    x = at::max_pool2d(conv2(x).relu(), 2);
    return fc2(fc1(x.flatten(1)));
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(SmallCnn);

const Dataset& data() {
  static const Dataset read = read_dataset("shapes:6400,64");
  return read;
}

class Contestant {
 public:
  explicit Contestant(std::unique_ptr<TrainableModel> net, double ratio = 0)
      : net_(std::move(net)), context_{data(), c10::kCPU, true}, watch_(nullptr) {
    if (ratio > 0) {
      PruneRequest half = from_shorthand({.ratio = ratio, .op_types = {"Conv2d"}});
      half.verify = false;
      net_->prune(at::zeros({1, 3, 32, 32}), half);
    }
    place(*net_, c10::kCPU, true);
    net_->train(true);
    TrainSettings settings;
    settings.lr = 1e-5;
    settings.weight_decay = 0.005;
    trainer_.emplace(labelled_training(*net_, context_, settings));
    loader_.emplace(data().train, loader_options(context_, settings));
  }

  void step() {
    watch_.skip();
    const Batch batch = loader_->next();
    watch_.charge(&Phases::wait, "wait");
    trainer_->step(batch, watch_);
  }

  const Phases& phases() const { return watch_.phases(); }

 private:
  std::unique_ptr<TrainableModel> net_;
  TrainContext context_;
  PhaseWatch watch_;
  std::optional<Trainer> trainer_;
  std::optional<EndlessLoader> loader_;
};

std::unique_ptr<TrainableModel> dense() {
  return live_net([] { return live(examples::CifarCnn()); });
}

std::unique_ptr<TrainableModel> written(int64_t first, int64_t second) {
  return live_net([=] { return live(SmallCnn(first, second)); });
}

struct Speed {
  double dense = 0, half = 0, half_written = 0, fifth = 0, fifth_written = 0;  ///< seconds a step
  double wait = 0;  ///< share of the dense steps
};

/// All in turn, once.
const Speed& measured() {
  static const Speed speed = [] {
    at::set_num_threads(1);
    Contestant whole(dense()), half(dense(), 0.5), half_written(written(16, 32)),
        fifth(dense(), 0.8), fifth_written(written(7, 13));
    const std::array<Contestant*, 5> all = {&whole, &half, &half_written, &fifth, &fifth_written};
    std::vector<machine::Work> works;
    for (Contestant* each : all) works.push_back([each] { each->step(); });
    const machine::InterleavedOptions options{.seconds = 6};
    for (const machine::Work& work : works) machine::warm_up(work, options);
    std::vector<double> medians;
    for (const machine::RunTimes& samples : machine::run_interleaved(works, options)) {
      medians.push_back(machine::summary_of(samples.runs).median);
    }
    return Speed{medians[0], medians[1], medians[2],
                 medians[3], medians[4], whole.phases().wait / whole.phases().total()};
  }();
  return speed;
}

/// Milliseconds of a step in Python; nothing if it does not run here.
std::optional<double> python(const std::string& arguments) {
  const std::string command = "OMP_NUM_THREADS=1 '" PARSIMONY_TORCH_PYTHON
                              "' '" PARSIMONY_SOURCE_DIR "/tools/python_training.py' " +
                              arguments + " --batches " + std::to_string(kSteps);
  std::FILE* pipe = popen(command.c_str(), "r");
  double result = 0;
  const bool read = pipe != nullptr && std::fscanf(pipe, "%lf", &result) == 1;
  if (pipe != nullptr) pclose(pipe);
  return read ? std::optional(result) : std::nullopt;
}

/// Our step by Python's, in turn; the middle of three.
void against_python(benchmark::State& state, const std::string& arguments, double limit) {
  at::set_num_threads(1);
  Contestant ours(dense());
  for (int i = 0; i < 10; ++i) ours.step();
  for (auto _ : state) {
    std::vector<double> ratios;
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto theirs = python(arguments);
      if (!theirs) return state.SkipWithError("there is no PyTorch: run tools/setup.sh");
      const double begin = machine::steady_seconds();
      for (int i = 0; i < kSteps; ++i) ours.step();
      ratios.push_back((machine::steady_seconds() - begin) * 1e3 / kSteps / *theirs);
    }
    const double ratio = machine::summary_of(ratios).median;
    state.SetIterationTime(ratio);
    must_reach(state, ratio, limit, "x");
  }
}

void epoch_against_python_in_memory(benchmark::State& state) {
  against_python(state, "memory", 1.0);
}
BENCHMARK(epoch_against_python_in_memory)->Iterations(1)->UseManualTime();

void epoch_against_python_in_memory_channels_last(benchmark::State& state) {
  against_python(state, "memory --channels-last", 1.0);
}
BENCHMARK(epoch_against_python_in_memory_channels_last)->Iterations(1)->UseManualTime();

void epoch_against_python_pipeline(benchmark::State& state) {
  against_python(state, "pipeline", 0.7);
}
BENCHMARK(epoch_against_python_pipeline)->Iterations(1)->UseManualTime();

/// `seconds` by those of the dense network; the limit is the inverse of a speedup.
void share(benchmark::State& state, double seconds, double of, double limit) {
  for (auto _ : state) {
    state.SetIterationTime(seconds);
    state.counters["ms"] = 1e3 * seconds;
    state.counters["times"] = of / seconds;
    must_reach(state, seconds / of, limit, "x");
  }
}

void step_pruned_by_50_percent(benchmark::State& state) {
  share(state, measured().half, measured().dense, 1 / 3.0);
}
BENCHMARK(step_pruned_by_50_percent)->Iterations(1)->UseManualTime();

void step_pruned_by_80_percent(benchmark::State& state) {
  share(state, measured().fifth, measured().dense, 1 / 5.5);
}
BENCHMARK(step_pruned_by_80_percent)->Iterations(1)->UseManualTime();

void step_pruned_by_50_percent_against_written(benchmark::State& state) {
  share(state, measured().half, measured().half_written, 1 / 0.9);
}
BENCHMARK(step_pruned_by_50_percent_against_written)->Iterations(1)->UseManualTime();

void step_pruned_by_80_percent_against_written(benchmark::State& state) {
  share(state, measured().fifth, measured().fifth_written, 1 / 0.9);
}
BENCHMARK(step_pruned_by_80_percent_against_written)->Iterations(1)->UseManualTime();

void loader_share(benchmark::State& state) {
  for (auto _ : state) {
    state.SetIterationTime(measured().wait);
    must_reach(state, measured().wait, 0.02, "x");
  }
}
BENCHMARK(loader_share)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
