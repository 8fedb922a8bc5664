#include "parsimony/api/latency/command_meter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/sha256.h"
#include "parsimony/base/shell.h"
#include "parsimony/engines/timing.h"
#include "parsimony/onnx_io/graph_file.h"

namespace parsimony {
namespace {

constexpr double kPauseFactor = 8;
constexpr double kOutlier = 0.25;  ///< deviation from the median

/// Those that are no outliers.
std::vector<double> usual(const std::vector<double>& times) {
  const double median = machine::summary_of(times).median;
  std::vector<double> kept = times;
  std::erase_if(kept, [&](double time) { return std::abs(time / median - 1) > kOutlier; });
  return kept;
}

double mean_of(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

}  // namespace

double seconds_by(const LatencyCommand& command, const std::string& model) {
  const std::string line = with_path(command.line, "{model}", model);
  double pause = command.pause;
  for (int attempt = 0;; ++attempt) {
    const ShellOutcome ran = run_shell(line, command.timeout);
    const std::optional<double> number = last_number(ran.output);
    if (ran.failure.empty() && number.value_or(0) > 0) return *number * 1e-3;
    if (attempt == command.retries) {
      throw errors::command_failed(
          "--latency-command", line,
          ran.failure.empty() ? "it printed no number above 0" : ran.failure, ran.output);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause *= kPauseFactor;
  }
}

std::vector<std::optional<double>> CommandMeter::subgraphs(std::span<const Graph* const> graphs) {
  if (layers_ != nullptr) return layers_->subgraphs(graphs);
  std::vector<std::optional<double>> seconds;
  for (const Graph* graph : graphs) {
    try {
      const std::string path = (folder_.path() / "layer.onnx").string();
      write_file(path, onnx_io::to_onnx(*graph));
      seconds.emplace_back(seconds_by(command_, path));
    } catch (const UnsupportedError&) {
      seconds.emplace_back();
    }
  }
  return seconds;
}

const CommandMeter::Times& CommandMeter::measured(const std::string& model, int runs) {
  const std::string path = (folder_.path() / "model.onnx").string();
  write_file(path, model);
  Times& times = times_[sha256(model)];
  for (int run = 0; run < runs; ++run) times.push_back(seconds_by(command_, path));
  return times;
}

double CommandMeter::scatter() const {
  double squares = 0;
  size_t freedom = 0;
  for (const auto& [network, all] : times_) {
    const Times times = usual(all);
    if (times.size() < 2) continue;
    const double mean = mean_of(times);
    for (const double time : times) squares += (time / mean - 1) * (time / mean - 1);
    freedom += times.size() - 1;
  }
  return freedom == 0 ? kOutlier : std::sqrt(squares / static_cast<double>(freedom));
}

std::optional<LatencyMeter::Pair> CommandMeter::networks(const Graph& dense, const Graph& small) {
  constexpr int kDenseRuns = 3;  // in place of one
  const std::string original = onnx_io::to_onnx(dense);
  const auto known = times_.find(sha256(original));
  Pair pair;
  pair.dense = mean_of(usual(
      known != times_.end() ? known->second : measured(original, kDenseRuns * command_.runs)));
  const std::string cut = onnx_io::to_onnx(small);
  if (cut == original) return pair;
  const Times times = usual(measured(cut, command_.runs));
  pair.share = mean_of(times) / pair.dense;
  pair.noise = scatter() / std::sqrt(static_cast<double>(times.size()));
  return pair;
}

}  // namespace parsimony
