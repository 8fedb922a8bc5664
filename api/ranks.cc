#include "parsimony/api/ranks.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/base/parse.h"

namespace parsimony {
namespace {

std::optional<int> number_in(const char* name) {
  const std::string text = environment(name);
  return text.empty() ? std::nullopt : number_of<int>(text);
}

/// Parses "2(x3),1": two tasks on each of three machines, one on a fourth.
std::optional<int> tasks_of_machine(std::string_view list, int machine) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const size_t bracket = entry.find("(x");
    const auto tasks = number_of<int>(entry.substr(0, bracket));
    const auto times =
        bracket == std::string_view::npos
            ? std::optional(1)
            : number_of<int>(entry.substr(bracket + 2, entry.find(')') - bracket - 2));
    if (!tasks || !times) return {};
    if (machine < *times) return tasks;
    machine -= *times;
  }
  return {};
}

struct Launcher {
  const char* rank;
  const char* size;
  const char* local_size;
};

constexpr std::array<Launcher, 4> kLaunchers = {
    {{"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
     // Not SLURM_NTASKS: a batch script has that too, and is itself but one process.
     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"}}};

}  // namespace

std::optional<RankPlace> ranks_of_environment() {
  for (const Launcher& launcher : kLaunchers) {
    const std::optional<int> rank = number_in(launcher.rank);
    const std::optional<int> size = number_in(launcher.size);
    if (!rank || !size) continue;
    if (*size < 1 || *rank < 0 || *rank >= *size) {
      throw ConfigError(launcher.rank, " is ", *rank, " and ", launcher.size, " is ", *size,
                        "; expected 0 <= rank < size");
    }
    RankPlace place{.rank = *rank, .size = *size};
    place.local_size = number_in(launcher.local_size)
                           .value_or(tasks_of_machine(environment("SLURM_STEP_TASKS_PER_NODE"),
                                                      number_in("SLURM_NODEID").value_or(0))
                                         .value_or(1));
    const std::string host = environment("MASTER_ADDR");
    const std::string port = environment("MASTER_PORT");
    place.store = environment("PARSIMONY_STORE");
    if (!place.store.empty() || host.empty() || port.empty()) return place;
    place.store = "tcp:" + host + ":" + port;
    place.store_is_open = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return place;
  }
  return {};
}

}  // namespace parsimony
