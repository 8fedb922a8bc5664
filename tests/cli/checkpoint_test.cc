// Checkpoints alone, and weights that return to their model; those of PyTorch are in
// tests/checkpoints/torch_test.py.
#include <gtest/gtest.h>

#include "parsimony/masks/tensor_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

/// A folder with the network's graph among the known ones, under the name "mine".
class KnownPlace : public Workplace {
 public:
  KnownPlace() {
    const Outcome outcome = know("know mine cnn.onnx");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }

  Outcome know(const std::string& arguments) const {
    return run(arguments, {{"XDG_DATA_HOME", *this / "data"}});
  }

  /// The weights of a model under `prefix`, the last layer with other classes.
  void write_checkpoint(const std::string& model, const std::string& name,
                        const std::string& prefix, int64_t classes = 5) const {
    const onnx_io::ModelFile file(*this / model);
    const Graph graph = onnx_io::to_graph(file);
    std::vector<FileTensor> tensors;
    const std::vector<std::byte> row(classes * 6 * sizeof(float), std::byte{0x3e});
    for (const Weight& weight : graph.weights) {
      FileTensor& tensor = tensors.emplace_back();
      tensor.name = prefix + weight.name;
      tensor.dtype = weight.dtype;
      tensor.dims = weight.dims;
      tensor.data = {weight.data, weight.count() * sizeof(float)};
      if (weight.name == "w3" && classes != 5) {
        tensor.dims = {classes, 6};
        tensor.data = row;
      }
    }
    write_tensors(*this / name, tensors);
  }
};

TEST(CliKnow, ListsWhatItWasTold) {
  const KnownPlace place;
  const std::string known = place.know("know").out;
  EXPECT_EQ(lines_with(known, "mine"), "mine\n");
  EXPECT_NE(lines_with(known, "resnet50"), "");
  EXPECT_EQ(place.know("know ../x cnn.onnx").code, 2);
}

TEST(CliKnow, AKnownNetworkNeedsItsCheckpointOnly) {
  const KnownPlace place;
  place.write_checkpoint("cnn.onnx", "a.safetensors", "module.", 7);
  const Outcome pruned = place.know("prune a.safetensors -o b.safetensors --ratio 0.5 --no-verify");
  ASSERT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_NE(pruned.out.find("the network mine"), std::string::npos) << pruned.out;
  const std::string listed = place.know("inspect b.safetensors").out;
  EXPECT_NE(listed.find("module.w1: float32 [4, 3, 3, 3]"), std::string::npos) << listed;
  EXPECT_NE(listed.find("module.w3: float32 [7, 3]"), std::string::npos) << listed;
  // The small checkpoint is one of the same network, too.
  EXPECT_NE(listed.find("a checkpoint of the network mine"), std::string::npos) << listed;
}

TEST(CliKnow, ACheckpointIsReplacedInPlaceOnly) {
  const KnownPlace place;
  place.write_checkpoint("cnn.onnx", "a.safetensors", "");
  const std::string original = place.bytes("a.safetensors");
  const std::string half = " --ratio 0.5 --no-verify";
  ASSERT_EQ(place.know("prune a.safetensors -o b.safetensors" + half).code, 0);
  ASSERT_EQ(place.shell("ln -s a.safetensors link.safetensors").code, 0);
  const std::string beside =
      "prune cnn.onnx -o o.onnx --checkpoint a.safetensors --checkpoint-out ";
  for (const std::string output : {"a.safetensors", "./link.safetensors"}) {
    EXPECT_EQ(place.know("prune a.safetensors -o " + output + half).err,
              "parsimony: --output is the model: " + output + ". With --in-place it is replaced\n");
    EXPECT_EQ(place.know(beside + output + half).err,
              "parsimony: --checkpoint-out is --checkpoint: " + output +
                  ". With --in-place it is replaced\n");
    EXPECT_EQ(place.bytes("a.safetensors"), original);
  }
  for (const std::string output : {"s.pth", "s.ckpt", "s.pt2"}) {
    const std::string error = place.know("prune a.safetensors -o " + output + half).err;
    EXPECT_EQ(error, "parsimony: " + output +
                         ": what is written is of the format safetensors, and the name says "
                         "another; wanted for example s.safetensors\n");
    EXPECT_EQ(place.know(beside + output + half).err, error);
  }
  ASSERT_EQ(place.know("prune a.safetensors -o a.safetensors --in-place" + half).code, 0);
  EXPECT_EQ(place.bytes("a.safetensors"), place.bytes("b.safetensors"));
}

TEST(CliKnow, AnotherNetworkIsRefusedWithTheWaysOn) {
  const KnownPlace place;
  place.write_checkpoint("whole.onnx", "a.safetensors", "");
  const Outcome outcome = place.know("prune a.safetensors -o b.safetensors --ratio 0.5");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("--checkpoint"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("parsimony know NAME net.pt"), std::string::npos) << outcome.err;
  EXPECT_FALSE(place.has("b.safetensors"));
}

TEST(CliImport, SetsTheWeightsOfACheckpoint) {
  const KnownPlace place;
  place.write_checkpoint("cnn.onnx", "a.safetensors", "net.");
  ASSERT_EQ(place
                .run("prune cnn.onnx -o small.onnx --ratio 0.5 --no-verify --checkpoint "
                     "a.safetensors --checkpoint-out b.safetensors")
                .code,
            0);
  const Outcome outcome = place.run("import small.onnx --checkpoint b.safetensors -o same.onnx");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("number by number"), std::string::npos) << outcome.out;
  const Outcome other = place.run("import small.onnx --checkpoint a.safetensors -o no.onnx");
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("has shape [8], the weight [4]"), std::string::npos) << other.err;
  EXPECT_FALSE(place.has("no.onnx"));
  const std::string in_place = "import small.onnx --checkpoint b.safetensors -o small.onnx";
  EXPECT_EQ(place.run(in_place).code, 2);
  ASSERT_EQ(place.run(in_place + " --in-place").code, 0);
  EXPECT_EQ(place.bytes("small.onnx"), place.bytes("same.onnx"));
}

}  // namespace
}  // namespace parsimony::test
