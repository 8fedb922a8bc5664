#include "parsimony/api/ranks.h"

#include <array>
#include <cstdlib>

#include "parsimony/api/errors.h"
#include "parsimony/base/parse.h"

namespace parsimony {
namespace {

std::string text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::optional<int> number_in(const char* name) {
  const std::string text = text_of(name);
  return text.empty() ? std::nullopt : number_of<int>(text);
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
      throw errors::bad_ranks(launcher.rank, *rank, launcher.size, *size);
    }
    RankPlace place{.rank = *rank, .size = *size};
    place.local_size = number_in(launcher.local_size).value_or(1);
    const std::string host = text_of("MASTER_ADDR");
    const std::string port = text_of("MASTER_PORT");
    place.store = text_of("PARSIMONY_STORE");
    if (!place.store.empty() || host.empty() || port.empty()) return place;
    place.store = "tcp:" + host + ":" + port;
    place.store_is_open = text_of("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return place;
  }
  return {};
}

}  // namespace parsimony
