#include "parsimony/api/latency/profiler.h"

#include <ctime>
#include <filesystem>

#include "parsimony/api/engines.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/files.h"
#include "parsimony/base/sha256.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

std::string cached_path(const LatencyFile& file) {
  const std::string what = file.machine + "\n" + file.engine + "\n" + std::to_string(file.threads);
  constexpr size_t kDigits = 12;
  return cache_folder() / "latency" / (sha256(what).substr(0, kDigits) + ".json");
}

}  // namespace

LatencyProfiler::LatencyProfiler(const PruneOptions& options) {
  const LatencyBudgetOptions& wanted = options.latency;
  file_.threads = name_of(options.engine) == "libtorch"
                      ? torch_component().choose_threads(options.threads)
                      : options.threads.value_or(1);
  engine_ = engine_of(options.engine, file_.threads);
  file_.engine = engine_->name() + " " + engine_->version();
  file_.machine = machine::this_processor().model;
  named_ = !wanted.table.empty();
  path_ = named_ ? wanted.table : cached_path(file_);
  if (fs::exists(path_)) file_.tables = read_latency_file(path_, file_, named_);
  known_ = file_.tables.size();
  meter_ =
      std::make_unique<EngineMeter>(*engine_, MeterOptions{options.inputs, wanted.batch},
                                    file_.threads == 1 ? machine::Clock(thread_seconds)
                                                       : machine::Clock(machine::steady_seconds));
}

void LatencyProfiler::attach_to(PruneOptions& options) {
  options.latency.meter = meter_.get();
  options.tables = &file_.tables;
}

void LatencyProfiler::save() {
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

}  // namespace parsimony
