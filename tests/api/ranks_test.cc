// What launchers say of a process's rank.
#include "parsimony/api/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "parsimony/base/errors.h"

namespace parsimony {
namespace {

std::optional<RankPlace> place_with(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  std::optional<RankPlace> place;
  try {
    place = ranks_of_environment();
  } catch (const ConfigError&) {
    place = RankPlace{.rank = -1};
  }
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  return place;
}

TEST(RanksOfEnvironment, OfEveryLauncher) {
  EXPECT_FALSE(place_with({}));
  const auto torchrun = place_with({{"RANK", "3"},
                                    {"WORLD_SIZE", "4"},
                                    {"LOCAL_WORLD_SIZE", "2"},
                                    {"MASTER_ADDR", "node7"},
                                    {"MASTER_PORT", "29500"},
                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->rank, 3);
  EXPECT_EQ(torchrun->size, 4);
  EXPECT_EQ(torchrun->local_size, 2);
  EXPECT_EQ(torchrun->store, "tcp:node7:29500");
  EXPECT_TRUE(torchrun->store_is_open);
  const auto mpi = place_with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi->local_size, 1);
  EXPECT_EQ(mpi->store, "");
  EXPECT_EQ(place_with({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}})->rank, -1) << "refused";
}

TEST(RanksOfEnvironment, SlurmSaysHowManyShareAMachine) {
  const auto local = [](const std::string& node, const std::string& tasks) {
    return place_with({{"SLURM_PROCID", "0"},
                       {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_NODEID", node},
                       {"SLURM_STEP_TASKS_PER_NODE", tasks}})
        ->local_size;
  };
  EXPECT_EQ(local("0", "2"), 2);
  EXPECT_EQ(local("2", "2(x3),1"), 2);
  EXPECT_EQ(local("3", "2(x3),1"), 1);
  EXPECT_EQ(local("4", "2(x3),1"), 1) << "beyond the list";
  EXPECT_EQ(local("1", "4,3"), 3);
  EXPECT_EQ(local("0", "many"), 1);
}

}  // namespace
}  // namespace parsimony
