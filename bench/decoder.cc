// A decoder with 2.5 GB of float16 weights beside it: memory and time of `parsimony prune`, against
// copying the files, and the memory of its proof. Page cache as after writing them; the turns of
// both alternate.
//
//   bench_decoder [--keep FOLDER]    with --keep it only writes FOLDER/in.onnx and
//   FOLDER/in.onnx.data
#include "bench/support/decoder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/process.h"

namespace parsimony::bench {
namespace {

constexpr int kTurns = 3;
constexpr double kMegabyte = 1e6;

struct Measured {
  double prune_seconds = 0;
  double copy_seconds = 0;
  int64_t peak_bytes = 0;
  Run proven;
};

double copy(const Folder& folder) {
  const std::string target = folder / "copy.data";
  const Run run_of_cp = run({"/bin/cp", folder / "in.onnx.data", target});
  std::filesystem::remove(target);
  return run_of_cp.seconds;
}

Run prune(const Folder& folder, const std::vector<std::string>& options) {
  std::vector<std::string> command = {
      parsimony_command(), "prune", folder / "in.onnx", "-o", folder / "out.onnx",
      "--ratio",           "0.5",   "--quiet"};
  command.insert(command.end(), options.begin(), options.end());
  const Run now = run(command);
  std::filesystem::remove(folder / "out.onnx");
  std::filesystem::remove(folder / "out.onnx.data");
  return now;
}

/// Best times of some turns, so that other work on the machine counts least; the largest memory.
Measured turns(const Folder& folder) {
  Measured best;
  for (int i = 0; i < kTurns; ++i) {
    const double copied = copy(folder);
    const Run now = prune(folder, {"--no-verify"});
    const auto least = [&](double was, double is) { return i == 0 ? is : std::min(was, is); };
    best.copy_seconds = least(best.copy_seconds, copied);
    best.prune_seconds = least(best.prune_seconds, now.seconds);
    best.peak_bytes = std::max(best.peak_bytes, now.peak_bytes);
  }
  best.proven = prune(folder, {});
  return best;
}

const Measured& measured() {
  static const Measured once = [] {
    const Folder folder;
    in_child([&] { save_decoder(folder / "in.onnx"); });
    return turns(folder);
  }();
  return once;
}

void decoder_peak_memory(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(measured().prune_seconds);
  must_reach(state, static_cast<double>(measured().peak_bytes) / kMegabyte, 800, "MB");
}
BENCHMARK(decoder_peak_memory)->Iterations(1)->UseManualTime();

void decoder_time_against_copying(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(measured().prune_seconds);
  state.counters["copy s"] = measured().copy_seconds;
  must_reach(state, measured().prune_seconds / measured().copy_seconds, 3, "times");
}
BENCHMARK(decoder_time_against_copying)->Iterations(1)->UseManualTime();

void decoder_proven_peak_memory(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(measured().proven.seconds);
  state.counters["copy s"] = measured().copy_seconds;
  must_reach(state, static_cast<double>(measured().proven.peak_bytes) / kMegabyte, 800, "MB");
}
BENCHMARK(decoder_proven_peak_memory)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) {
  if (argc >= 3 && std::string_view(argv[1]) == "--keep") {
    const int64_t part = argc > 3 ? std::max(1, std::atoi(argv[3])) : 1;
    parsimony::bench::DecoderSizes sizes;
    for (int64_t* size :
         {&sizes.width, &sizes.hidden, &sizes.heads, &sizes.key_heads, &sizes.words}) {
      *size = std::max<int64_t>(1, *size / part);
    }
    parsimony::bench::save_decoder(std::string(argv[2]) + "/in.onnx", sizes);
    return 0;
  }
  return parsimony::bench::run_benchmarks(argc, argv);
}
