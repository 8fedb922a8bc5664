#include "parsimony/cli/latency_budget.h"

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "parsimony/base/cache_folder.h"
#include "parsimony/base/files.h"
#include "parsimony/base/sha256.h"
#include "parsimony/cli/engines.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/cli/validators.h"
#include "parsimony/engines/machine/processor.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTorch = "libtorch";
constexpr const char* kOnnxRuntime = "onnxruntime";

std::string cached_path(const LatencyFile& file) {
  const std::string what = file.machine + "\n" + file.engine + "\n" + std::to_string(file.threads);
  constexpr size_t kDigits = 12;
  return cache_folder() / "latency" / (sha256(what).substr(0, kDigits) + ".json");
}

}  // namespace

void add_latency_options(CLI::App& command, LatencyBudgetArguments& arguments) {
  const std::string group = "With a budget of milliseconds";
  command
      .add_option("--engine", arguments.engine,
                  "What the network is to be quick on: libtorch (the default) or onnxruntime")
      ->type_name("NAME")
      ->group(group);
  command
      .add_option("--onnxruntime", arguments.onnxruntime,
                  "Library of ONNX Runtime (PARSIMONY_ONNXRUNTIME, else where it is usually found)")
      ->type_name("PATH")
      ->group(group);
  command
      .add_option("--latency-table", arguments.table,
                  "Times of layers, read and added to (a file of the cache)")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--batch", arguments.batch, "Samples per run (1)")
      ->type_name("N")
      ->check(above_zero())
      ->group(group);
}

bool asks_for_latency(const ConfigList& config) {
  return std::any_of(config.entries.begin(), config.entries.end(), [](const ConfigEntry& entry) {
    return !entry.exclude && entry.request.budget == Budget::kLatency;
  });
}

LatencyWorkshop::LatencyWorkshop(const LatencyBudgetArguments& arguments,
                                 std::optional<int> threads, std::vector<InputSpec> specs)
    : batch_(arguments.batch) {
  const std::vector<std::string> known = {kTorch, kOnnxRuntime};
  if (arguments.engine == kTorch) {
    file_.threads = torch_component().choose_threads(threads);
    engine_ = std::make_unique<LazyTorch>(file_.threads);
  } else if (arguments.engine == kOnnxRuntime) {
    file_.threads = threads.value_or(1);
    engine_ = onnx_runtime_engine(runtime::find_onnx_runtime(arguments.onnxruntime), file_.threads);
  } else {
    throw errors::unknown_engine(arguments.engine, known);
  }
  file_.engine = engine_->name() + " " + engine_->version();
  file_.machine = machine::this_processor().model;
  named_ = !arguments.table.empty();
  path_ = named_ ? arguments.table : cached_path(file_);
  if (fs::exists(path_)) file_.tables = read_latency_file(path_, file_, named_);
  known_ = file_.tables.size();
  meter_ =
      std::make_unique<EngineMeter>(*engine_, MeterOptions{std::move(specs), arguments.batch},
                                    file_.threads == 1 ? machine::Clock(thread_seconds)
                                                       : machine::Clock(machine::steady_seconds));
}

void LatencyWorkshop::lend(PruneOptions& options) {
  options.latency.meter = meter_.get();
  options.latency.batch = batch_;
  options.tables = &file_.tables;
}

void LatencyWorkshop::save() {
  if (file_.tables.size() == known_) return;
  for (auto& [key, table] : file_.tables) {
    if (table.measured == 0) table.measured = static_cast<int64_t>(std::time(nullptr));
  }
  if (named_) {
    write_file(path_, to_json(file_));
    return;
  }
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  try {
    write_file(path_, to_json(file_));
  } catch (const IoError&) {
    // They will be measured again.
  }
}

}  // namespace parsimony::cli
