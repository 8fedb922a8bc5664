#include "parsimony/api/latency/profiler.h"

#include <ctime>
#include <filesystem>

#include "parsimony/api/engines.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/hash.h"
#include "parsimony/engines/machine/processor.h"

namespace parsimony {
namespace {

namespace fs = std::filesystem;

std::string cached_path(const LatencyFile& file) {
  const std::string what = file.machine + "\n" + file.engine + "\n" + std::to_string(file.threads);
  constexpr size_t kDigits = 12;
  return cache_folder() / "latency" / (sha256(what).substr(0, kDigits) + ".json");
}

/// Another machine's tables, where nothing can be measured.
class TableMeter final : public LatencyMeter {
 public:
  TableMeter(std::string path, std::string machine)
      : path_(std::move(path)), machine_(std::move(machine)) {}

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override {
    throw UnsupportedError(path_, " has the times of layers on ", machine_, ", but none of ",
                           described(*graphs.front()),
                           "; measure it there, or give --latency-command");
  }
  std::optional<Pair> networks(const Graph&, const Graph&) override { return std::nullopt; }

 private:
  static std::string described(const Graph& layer) {
    std::string text;
    for (const Node& node : layer.nodes) text += (text.empty() ? "" : ", ") + node.op;
    return text;
  }

  std::string path_;
  std::string machine_;
};

}  // namespace

LatencyProfiler::LatencyProfiler(const PruneRequest& request) {
  const LatencySettings& wanted = request.latency;
  named_ = !wanted.table.empty();
  command_ = wanted.command.line;
  std::optional<LatencyFile> found;
  if (named_ && fs::exists(wanted.table)) {
    found = parse_latency_file(read_file(wanted.table), wanted.table);
  }
  path_ = wanted.table;
  file_.machine = machine::this_processor().model;
  if (named_ && !command_.empty()) {
    file_.machine = command_;
    file_.engine = "command";
  } else if (found && found->machine != file_.machine) {
    other_machine_ = found->machine;
    file_ = std::move(*found);
    found.reset();
    meter_ = std::make_unique<TableMeter>(path_, other_machine_);
  } else {
    use_engine(request);
  }
  if (found) {
    check_origin(*found, file_, path_);
    file_.tables = std::move(found->tables);
  }
  if (!command_.empty()) {
    meter_ = std::make_unique<CommandMeter>(wanted.command, layers_.get());
  }
  known_ = file_.tables.size();
}

LatencyProfiler::~LatencyProfiler() {
  try {
    save();
  } catch (const IoError&) {
    // Another failure has been reported, or save() has.
  }
}

void LatencyProfiler::use_engine(const PruneRequest& request) {
  file_.threads = name_of(request.engine) == "libtorch"
                      ? torch_component().choose_threads(request.threads)
                      : request.threads.value_or(1);
  engine_ = timed_engine_of(request.engine, file_.threads);
  file_.engine = engine_->name() + " " + engine_->version();
  layers_ =
      std::make_unique<EngineMeter>(*engine_, MeterOptions{request.inputs, request.latency.batch},
                                    file_.threads == 1 ? machine::Clock(thread_seconds)
                                                       : machine::Clock(machine::steady_seconds));
  if (named_) return;
  path_ = cached_path(file_);
  if (!fs::exists(path_)) return;
  try {
    LatencyFile cached = parse_latency_file(read_file(path_), path_);
    check_origin(cached, file_, path_);
    file_.tables = std::move(cached.tables);
  } catch (const ConfigError&) {
    // The layers will be measured again.
  }
}

void LatencyProfiler::save() {
  if (file_.tables.size() == known_) return;
  for (auto& [key, table] : file_.tables) {
    if (table.measured == 0) table.measured = static_cast<int64_t>(std::time(nullptr));
  }
  known_ = file_.tables.size();
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
