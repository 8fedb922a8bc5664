// Memory: the largest resident set of `parsimony prune`, mapped files included, against the file.
#include <filesystem>
#include <functional>

#include "bench/support/limits.h"
#include "bench/support/models.h"
#include "bench/support/process.h"

namespace parsimony::bench {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

/// `make` writes the model in a process of its own: this one must stay small, see `run`.
void measure(benchmark::State& state, double limit, const std::string& measured_file,
             const std::function<void(const std::string& path)>& make) {
  const Folder folder;
  const std::string path = folder / "in.onnx";
  in_child([&] { make(path); });
  for (auto _ : state) {
    const Run now = run({parsimony_command(), "prune", path, "--no-verify", "-o",
                         folder / "out.onnx", "--ratio", "0.5", "--quiet"});
    const auto bytes = static_cast<double>(std::filesystem::file_size(path + measured_file));
    state.SetIterationTime(now.seconds);
    state.counters["file MB"] = bytes / kMegabyte;
    state.counters["peak MB"] = static_cast<double>(now.peak_bytes) / kMegabyte;
    must_reach(state, static_cast<double>(now.peak_bytes) / bytes, limit, "times");
  }
}

void peak_memory_resnet50(benchmark::State& state) {
  measure(state, 2.2, "", [](const std::string& path) { save(resnet50(), path); });
}
BENCHMARK(peak_memory_resnet50)->Iterations(1)->UseManualTime();

void peak_memory_one_tensor_of_400_mb(benchmark::State& state) {
  measure(state, 2.2, "",
          [](const std::string& path) { save(one_large_tensor(400 * kMegabyte), path); });
}
BENCHMARK(peak_memory_one_tensor_of_400_mb)->Iterations(1)->UseManualTime();

void peak_memory_external_data_of_1_gb(benchmark::State& state) {
  measure(state, 0.3, ".data",
          [](const std::string& path) { save_with_external_data(path, 1024 * kMegabyte); });
}
BENCHMARK(peak_memory_external_data_of_1_gb)->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace parsimony::bench

int main(int argc, char** argv) { return parsimony::bench::run_benchmarks(argc, argv); }
