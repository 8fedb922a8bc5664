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

/// The same in the file `name`, with its tensors in the file `data`.
void write_with_data(const Workplace& place, const std::string& name, const std::string& data) {
  onnx::ModelProto model = wide();
  std::string bytes;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const auto add = [&](const char* key, const std::string& value) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", data);
    add("offset", std::to_string(bytes.size()));
    add("length", std::to_string(tensor.raw_data().size()));
    bytes += tensor.raw_data();
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  }
  place.write(data, bytes);
  save(model, place / name);
}

constexpr char kHalf[] = " --no-verify --ratio 0.5";

TEST(CliWholeFiles, TheModelIsReplacedInPlaceOnly) {
  const Workplace place;
  const std::string original = place.bytes("cnn.onnx");
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --plan p.json" + std::string(kHalf)).code, 0);
  ASSERT_EQ(place
                .shell("ln -s cnn.onnx link.onnx; ln cnn.onnx hard.onnx; mkdir sub; ln -s . same; "
                       "ln -s link.onnx chain.onnx")
                .code,
            0);
  for (const std::string output : {"cnn.onnx", "./cnn.onnx", "sub/../cnn.onnx", "link.onnx",
                                   "hard.onnx", "same/cnn.onnx", "chain.onnx", ""}) {
    const std::string path = output.empty() ? place / "cnn.onnx" : output;
    for (const std::string& command :
         {"prune cnn.onnx" + std::string(kHalf), std::string("apply cnn.onnx --plan p.json")}) {
      const Outcome outcome = place.run(command + " -o " + path);
      EXPECT_EQ(outcome.code, 2) << path;
      EXPECT_EQ(outcome.err, "parsimony: --output is the model: " + path +
                                 "; pass --in-place to overwrite it\n");
      EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), original));
    }
  }
  // Of two hard links the one that is named is replaced; a symbolic one leads to the model.
  ASSERT_EQ(place.run("prune cnn.onnx --in-place -o hard.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("hard.onnx"), place.bytes("o.onnx")));
  EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), original));
  ASSERT_EQ(place.run("prune cnn.onnx --in-place -o chain.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), place.bytes("o.onnx")));
  EXPECT_TRUE(fs::is_symlink(place / "chain.onnx"));
  place.write("cnn.onnx", original);
  ASSERT_EQ(place.run("prune cnn.onnx --in-place -o ./cnn.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), place.bytes("o.onnx")));
}

TEST(CliWholeFiles, MetricsInPlaceCompareWithTheModelThatWas) {
  if (!has_onnx_runtime()) GTEST_SKIP() << "there is no ONNX Runtime";
  const Workplace place;
  const auto psnr = [&](const std::string& more) {
    const Outcome outcome = place.run("prune cnn.onnx --engine onnxruntime --metric psnr " + more,
                                      {{"PARSIMONY_ONNXRUNTIME", onnx_runtime()}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return lines_with(outcome.out, "psnr");
  };
  const std::string elsewhere = psnr("-o o.onnx --ratio 0.5");
  EXPECT_NE(elsewhere, "");
  EXPECT_EQ(psnr("-o cnn.onnx --in-place --ratio 0.5"), elsewhere);
}

TEST(CliWholeFiles, DataBesideAModelStay) {
  const Workplace place;
  write_with_data(place, "m.onnx", "m.onnx.data");
  write_with_data(place, "n.onnx", "o.onnx.data");
  const std::string data = place.bytes("m.onnx.data");
  ASSERT_EQ(place.shell("ln -s m.onnx link.onnx; ln m.onnx hard.onnx").code, 0);
  const auto refused = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run(arguments + kHalf);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.err, "parsimony: " + message + "\n");
  };
  refused("prune m.onnx -o m.onnx.data",
          "the model's external data and --output are the same file: m.onnx.data");
  refused("prune m.onnx -o s.onnx --plan m.onnx.data",
          "the model's external data and --plan are the same file: m.onnx.data");
  refused("prune m.onnx -o s.onnx --report s.onnx.data",
          "the output's external data and --report are the same file: s.onnx.data");
  EXPECT_TRUE(same_bytes(place.bytes("m.onnx.data"), data));
  // Data of the model's under the name that the output's would have.
  ASSERT_EQ(place.run("prune n.onnx -o o.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("o.onnx.data"), data));
  ASSERT_EQ(place.run("prune m.onnx -o s.onnx" + std::string(kHalf)).code, 0);
  const std::string small = place.bytes("s.onnx.data");
  EXPECT_LT(small.size(), data.size());
  // By a hard link the old model stays, so its data do.
  ASSERT_EQ(place.run("prune m.onnx --in-place -o hard.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("m.onnx.data"), data));
  EXPECT_EQ(place.run("inspect m.onnx").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("hard.onnx.data"), small));
  ASSERT_EQ(place.run("prune m.onnx --in-place -o link.onnx" + std::string(kHalf)).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("link.onnx.data"), small));
  EXPECT_EQ(place.run("inspect m.onnx").code, 0);
  write_with_data(place, "m.onnx", "m.onnx.data");
  ASSERT_EQ(place.run("prune m.onnx --in-place -o m.onnx" + std::string(kHalf)).code, 0);
  EXPECT_FALSE(place.has("m.onnx.data")) << "what nothing reads any more";
  EXPECT_TRUE(same_bytes(place.bytes("m.onnx.1.data"), small));
}

TEST(CliWholeFiles, OutputsAndInputsDiffer) {
  const Workplace place;
  place.write("c.json", R"([{"op_types": ["Conv"], "sparse_ratio": 0.5}])");
  const auto error = [&](const std::string& arguments) {
    const Outcome outcome = place.run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    return outcome.err;
  };
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --plan p.json" + std::string(kHalf)).code, 0);
  EXPECT_EQ(error("prune cnn.onnx -o s.onnx --config c.json --in-place --report c.json"),
            "parsimony: --config and --report are the same file: c.json\n");
  EXPECT_EQ(error("apply cnn.onnx --plan p.json --in-place -o p.json"),
            "parsimony: --plan and --output are the same file: p.json\n");
  EXPECT_EQ(error("prune cnn.onnx -o s.onnx --masks-out ./s.onnx --in-place" + std::string(kHalf)),
            "parsimony: --output and --masks-out are the same file: ./s.onnx\n");
  EXPECT_EQ(error("know cnn cnn.onnx -o cnn.onnx"),
            "parsimony: the model and --output are the same file: cnn.onnx\n");
}

TEST(CliWholeFiles, EndingsSayWhatIsWritten) {
  const Workplace place;
  const std::string wrong =
      "the output has the format onnx, but the file extension implies another; ";
  for (const std::string ending : {"pt", "pth", "pt2", "safetensors", "ckpt"}) {
    const Outcome outcome = place.run("prune cnn.onnx -o a.b/s." + ending + kHalf);
    EXPECT_EQ(outcome.code, 4) << "there is no such folder";
    const Outcome named = place.run("prune cnn.onnx -o s." + ending + kHalf);
    EXPECT_EQ(named.code, 2);
    EXPECT_EQ(named.err, "parsimony: s." + ending + ": " + wrong + "use for example s.onnx\n");
    EXPECT_FALSE(place.has("s." + ending));
  }
  for (const std::string name : {"s.model", "s", "s.onnx.bin", ".onnx"}) {
    EXPECT_EQ(place.run("prune cnn.onnx -o " + name + kHalf).code, 0) << name;
  }
  EXPECT_EQ(place.run("know net cnn.onnx -o net.pt").code, 2);
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
    Background run(place,
                   "prune wide.onnx --no-verify --in-place -o wide.onnx --ratio 0.5 --quiet");
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
