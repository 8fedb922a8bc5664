#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/training/sweep/sweep.h"
#include "tests/support/fixture.h"

namespace parsimony::training {
namespace {

using test::TemporaryFolder;

TEST(Claim, OneAtATime) {
  const TemporaryFolder folder;
  const std::string path = folder / "claim";
  {
    const Claim one(path);
    EXPECT_TRUE(one.held());
    EXPECT_FALSE(Claim(path).held());
    EXPECT_FALSE(Claim(path).held()) << "looking must not let go";
    EXPECT_TRUE(Claim(folder / "other").held());
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(Claim(path).held());
}

TEST(Claim, AFileThatAKilledProcessLeftIsFree) {
  const TemporaryFolder folder;
  const std::string path = folder / "claim";
  std::optional<Claim> removed(std::in_place, path);
  std::filesystem::create_hard_link(path, folder / "kept");
  removed.reset();
  std::filesystem::rename(folder / "kept", path);
  EXPECT_TRUE(Claim(path).held());
}

TEST(Claim, WaitsIfAskedTo) {
  const TemporaryFolder folder;
  const std::string path = folder / "claim";
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Claim claim(path, Claim::IfTaken::kWait);
        EXPECT_TRUE(claim.held());
        most = std::max(most.load(), ++inside);
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST(Claim, NeedsAFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(Claim(folder / "none/claim"), IoError);
}

}  // namespace
}  // namespace parsimony::training
