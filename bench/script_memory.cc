// Memory of TorchScript: the largest resident set of `parsimony prune` against the file.
#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>

#include <filesystem>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/process.h"

namespace parsimony::bench {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;
constexpr int kLayers = 16;
constexpr int64_t kWidth = 4096;  // 64 MB a layer

void save_layers(const std::string& path) {
  torch::jit::Module net("net");
  std::string result = "x";
  for (int i = 0; i < kLayers; ++i) {
    const std::string name = "w" + std::to_string(i);
    net.register_parameter(name, at::randn({kWidth, kWidth}), /*is_buffer=*/false);
    result = "torch.relu(torch.linear(" + result + ", self." + name + "))";
  }
  net.define("def forward(self, x):\n    return " + result + "\n");
  net.save(path);
}

void measure(benchmark::State& state, double limit, const std::vector<std::string>& options) {
  const Folder folder;
  const std::string path = folder / "in.pt";
  in_child([&] { save_layers(path); });  // this process must stay small, see `run`
  for (auto _ : state) {
    std::vector<std::string> command{
        parsimony_command(), "prune",   path,  "--input", "1x" + std::to_string(kWidth), "-o",
        folder / "out.pt",   "--ratio", "0.5", "--quiet"};
    command.insert(command.end(), options.begin(), options.end());
    const Run now = run(command);
    const auto bytes = static_cast<double>(std::filesystem::file_size(path));
    state.SetIterationTime(now.seconds);
    state.counters["file MB"] = bytes / kMegabyte;
    state.counters["peak MB"] = static_cast<double>(now.peak_bytes) / kMegabyte;
    must_reach(state, static_cast<double>(now.peak_bytes) / bytes, limit, "times");
  }
}

void torchscript_of_1_gb(benchmark::State& state) { measure(state, 1.6, {"--no-verify"}); }
BENCHMARK(torchscript_of_1_gb)->Iterations(1)->UseManualTime();

void torchscript_of_1_gb_proven(benchmark::State& state) { measure(state, 2.5, {}); }
BENCHMARK(torchscript_of_1_gb_proven)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
