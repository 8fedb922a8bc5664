// Whatever ends a command, no file is left half written: full disks, folders that cannot be
// written, outputs that are inputs, kills at any time.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/cli/background.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

namespace fs = std::filesystem;

/// Large enough that reading, pruning and writing take some milliseconds each.
onnx::ModelProto wide() {
  onnx::ModelProto model = model_of(
      "g (float[1,8] x) => (float[1,4] y) { h = MatMul(x, a) r = Relu(h) i = MatMul(r, b) "
      "s = Relu(i) y = MatMul(s, c) }");
  add_weight(model, "a", "8x1024");
  add_weight(model, "b", "1024x1024");
  add_weight(model, "c", "1024x4");
  return model;
}

/// Files that an interrupted command may leave beside its results.
bool is_temporary(const std::string& name) { return name.find(".tmp") != std::string::npos; }

TEST(CliWholeFiles, AFullDiskLeavesTheOldFile) {
  const Workplace place;
  save(wide(), place / "wide.onnx");
  place.write("o.onnx", "old");
  // Of one kilobyte each; the signal for it would kill the command before it could say anything.
  const Outcome outcome = place.shell(
      "trap '' XFSZ; ulimit -f 100; parsimony prune wide.onnx --no-verify -o o.onnx --ratio 0.5");
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_NE(outcome.err.find("o.onnx: cannot be written: File too large"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(place.bytes("o.onnx"), "old");
  for (const std::string& name : place.results()) EXPECT_FALSE(is_temporary(name)) << name;
}

TEST(CliWholeFiles, ADeviceIsNoTarget) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx --no-verify -o /dev/full --ratio 0.5");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("/dev/full: cannot be written"), std::string::npos) << outcome.err;
}

TEST(CliWholeFiles, AFolderThatCannotBeWrittenIsNamed) {
  const Workplace place;
  fs::create_directory(place / "locked");
  // The system lets root write everywhere but there.
  const std::string target = ::geteuid() == 0 ? "/proc/o.onnx" : "locked/o.onnx";
  if (::geteuid() != 0) ::chmod((place / "locked").c_str(), 0555);
  const Outcome outcome =
      place.run("prune cnn.onnx --no-verify -o " + target + " --ratio 0.5 --plan p.json");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find(target + ": cannot be written: "), std::string::npos) << outcome.err;
  EXPECT_FALSE(place.has("p.json")) << "nothing describes a model that is not there";
}

TEST(CliWholeFiles, TheOutputMayBeTheModel) {
  const Workplace place;
  const std::string original = place.bytes("cnn.onnx");
  ASSERT_EQ(place.run("prune cnn.onnx --no-verify -o o.onnx --ratio 0.5").code, 0);
  ASSERT_EQ(place.run("prune cnn.onnx --no-verify -o cnn.onnx --ratio 0.5").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), place.bytes("o.onnx")));
  EXPECT_FALSE(same_bytes(place.bytes("cnn.onnx"), original));
}

TEST(CliWholeFiles, AKillLeavesTheOldModelOrTheNewOne) {
  const Workplace place;
  save(wide(), place / "wide.onnx");
  const std::string old = place.bytes("wide.onnx");
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(place.run("prune wide.onnx --no-verify -o small.onnx --ratio 0.5").code, 0);
  const auto whole = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const std::string small = place.bytes("small.onnx");
  std::mt19937 random(1);
  int killed = 0;
  for (int round = 0; round < 40; ++round) {
    place.write("wide.onnx", old);
    Background run(place, "prune wide.onnx --no-verify -o wide.onnx --ratio 0.5 --quiet");
    std::this_thread::sleep_for(whole * (random() % 100) / 100);
    run.kill();
    const std::string bytes = place.bytes("wide.onnx");
    ASSERT_TRUE(bytes == old || bytes == small) << bytes.size() << " bytes, round " << round;
    killed += bytes == old ? 1 : 0;
  }
  EXPECT_GT(killed, 0) << "or nothing was shown";
}

}  // namespace
}  // namespace parsimony::test
