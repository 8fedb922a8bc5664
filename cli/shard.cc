#include "parsimony/cli/shard.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "parsimony/base/parse.h"
#include "parsimony/cli/errors.h"

namespace parsimony::cli {
namespace {

std::optional<int> from_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : number_of<int>(text);
}

/// Where a launcher says which of its processes this is.
struct Launcher {
  const char* index;
  const char* count;
  const char* first;  ///< the index that it begins with; null: 0
};

constexpr std::array<Launcher, 4> kLaunchers = {
    {{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", nullptr},
     {"PMI_RANK", "PMI_SIZE", nullptr},
     // Not SLURM_NTASKS: a batch script has that too, and is itself but one process.
     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr}}};

}  // namespace

Shard parse_shard(const std::string& text) {
  if (!text.empty()) {
    const size_t slash = text.find('/');
    const auto index = number_of<int>(std::string_view(text).substr(0, slash));
    const auto count = slash == std::string::npos
                           ? std::nullopt
                           : number_of<int>(std::string_view(text).substr(slash + 1));
    if (!index || !count || *index < 1 || *index > *count) throw errors::bad_shard(text);
    return {*index - 1, *count};
  }
  for (const Launcher& launcher : kLaunchers) {
    const auto index = from_environment(launcher.index);
    const auto count = from_environment(launcher.count);
    if (!index || !count) continue;
    const int first = launcher.first == nullptr ? 0 : from_environment(launcher.first).value_or(0);
    if (*index >= first && *index - first < *count) return {*index - first, *count};
  }
  return {};
}

}  // namespace parsimony::cli
