// Checkpoints alone, weights that return to their model, and which tensor is which weight where
// names do not say it; checkpoints of PyTorch are in tests/checkpoints/torch_test.py and
// parts_test.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "parsimony/masks/tensor_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

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
  EXPECT_NE(listed.find("a checkpoint of the known network mine"), std::string::npos) << listed;
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
    EXPECT_EQ(
        place.know("prune a.safetensors -o " + output + half).err,
        "parsimony: --output is the model: " + output + "; pass --in-place to overwrite it\n");
    EXPECT_EQ(place.know(beside + output + half).err,
              "parsimony: --checkpoint-out is --checkpoint: " + output +
                  "; pass --in-place to overwrite it\n");
    EXPECT_TRUE(same_bytes(place.bytes("a.safetensors"), original));
  }
  for (const std::string output : {"s.pth", "s.ckpt", "s.pt2"}) {
    const std::string error = place.know("prune a.safetensors -o " + output + half).err;
    EXPECT_EQ(error, "parsimony: " + output +
                         ": the output has the format safetensors, but the file extension implies "
                         "another; use for example s.safetensors\n");
    EXPECT_EQ(place.know(beside + output + half).err, error);
  }
  ASSERT_EQ(place.know("prune a.safetensors -o a.safetensors --in-place" + half).code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("a.safetensors"), place.bytes("b.safetensors")));
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
  EXPECT_NE(outcome.out.find("element by element"), std::string::npos) << outcome.out;
  const Outcome other = place.run("import small.onnx --checkpoint a.safetensors -o no.onnx");
  EXPECT_EQ(other.code, 4);
  EXPECT_NE(other.err.find("has shape [8], the weight [4]"), std::string::npos) << other.err;
  EXPECT_FALSE(place.has("no.onnx"));
  const std::string in_place = "import small.onnx --checkpoint b.safetensors -o small.onnx";
  EXPECT_EQ(place.run(in_place).code, 2);
  ASSERT_EQ(place.run(in_place + " --in-place").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("small.onnx"), place.bytes("same.onnx")));
}

using Floats = std::vector<float>;

struct Named {
  Shape dims;
  Floats values;

  bool operator==(const Named&) const = default;
};

using NamedTensors = std::vector<std::pair<std::string, Named>>;

Named sines(const Shape& dims, float seed) {
  Named tensor{dims, Floats(element_count(dims))};
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    tensor.values[i] = std::sin(seed + static_cast<float>(i));
  }
  return tensor;
}

Named exchanged(const Named& matrix) {
  Named result{{matrix.dims[1], matrix.dims[0]}, matrix.values};
  for (int64_t i = 0; i < matrix.dims[0]; ++i) {
    for (int64_t k = 0; k < matrix.dims[1]; ++k) {
      result.values[k * matrix.dims[0] + i] = matrix.values[i * matrix.dims[1] + k];
    }
  }
  return result;
}

/// A model in text whose initializers are these, and a checkpoint of others.
class Matched : public ::testing::Test {
 protected:
  void write_model(const std::string& text, const NamedTensors& weights) const {
    onnx::ModelProto model = model_of(text);
    for (const auto& [name, tensor] : weights) {
      onnx::TensorProto& initializer = *model.mutable_graph()->add_initializer();
      initializer.set_name(name);
      initializer.set_data_type(onnx::TensorProto::FLOAT);
      for (const int64_t size : tensor.dims) initializer.add_dims(size);
      for (const float value : tensor.values) initializer.add_float_data(value);
    }
    save(model, place_ / "net.onnx");
  }

  /// Prunes by half, with a checkpoint of these tensors.
  Outcome prune(const NamedTensors& tensors, const std::string& options = "") const {
    std::vector<FileTensor> file;
    for (const auto& [name, tensor] : tensors) {
      const auto* data = reinterpret_cast<const std::byte*>(tensor.values.data());
      file.push_back(
          {name, DType::kFloat32, tensor.dims, {data, tensor.values.size() * sizeof(float)}});
    }
    write_tensors(place_ / "a.safetensors", file);
    return place_.run(
        "prune net.onnx -o small.onnx --ratio 0.5 --no-verify --report r.json "
        "--checkpoint a.safetensors --checkpoint-out b.safetensors " +
        options);
  }

  std::map<std::string, Named> cut() const {
    const std::string bytes = place_.bytes("b.safetensors");
    std::map<std::string, Named> result;
    for (const FileTensor& tensor : parse_tensors(bytes, "b")) {
      Named& named = result[tensor.name];
      named.dims = tensor.dims;
      named.values.resize(tensor.data.size() / sizeof(float));
      std::memcpy(named.values.data(), tensor.data.data(), tensor.data.size());
    }
    return result;
  }

  std::map<std::string, Named> small() const {
    const onnx_io::ModelFile file(place_ / "small.onnx");
    const Graph graph = onnx_io::to_graph(file);
    std::map<std::string, Named> result;
    for (const Weight& weight : graph.weights) {
      if (weight.dtype != DType::kFloat32) continue;
      const HostTensor host = to_host(weight);
      result[weight.name] = {weight.dims, Floats(host.floats.begin(), host.floats.end())};
    }
    return result;
  }

  Workplace place_;
};

/// Layers of a product and a sum, as exporters write a linear layer without its names.
constexpr const char* kLayers = R"(
net (float[1,8] x) => (float[1,3] y)
{
  m0 = MatMul(x, M0)
  a0 = Add(m0, B0)
  r0 = Relu(a0)
  m1 = MatMul(r0, M1)
  a1 = Add(B1, m1)
  r1 = Relu(a1)
  m2 = MatMul(r1, M2)
  y = Add(m2, B2)
}
)";

TEST_F(Matched, ABiasIsTheOneBesideItsMatrix) {
  const Named a = sines({8, 8}, 1);
  const Named b = sines({8, 8}, 100);
  const Named c = sines({3, 8}, 200);
  const Named bias = sines({8}, 7);
  const Named last = sines({3}, 9);
  write_model(kLayers, {{"M0", exchanged(a)},
                        {"B0", bias},
                        {"M1", exchanged(b)},
                        {"B1", bias},
                        {"M2", exchanged(c)},
                        {"B2", last}});
  // In another order than the model's.
  const Outcome outcome = prune({{"b.weight", b},
                                 {"b.bias", bias},
                                 {"a.weight", a},
                                 {"a.bias", bias},
                                 {"c.weight", c},
                                 {"c.bias", last}},
                                "--strict");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto got = cut();
  auto requested = small();
  EXPECT_EQ(got["a.bias"], requested["B0"]);
  EXPECT_EQ(got["b.bias"], requested["B1"]);
  EXPECT_EQ(exchanged(got["a.weight"]), requested["M0"]);
  EXPECT_EQ(exchanged(got["b.weight"]), requested["M1"]);
  EXPECT_EQ(exchanged(got["c.weight"]), requested["M2"]);
  const std::string report = place_.bytes("r.json");
  EXPECT_NE(report.find("beside its matrix"), std::string::npos) << report;
  EXPECT_NE(report.find("elements, transposed"), std::string::npos) << report;
}

TEST_F(Matched, EqualMatricesAreToldApartByTheirBiases) {
  const Named a = sines({8, 8}, 1);
  const Named c = sines({3, 8}, 200);
  const NamedTensors stored = {{"b.weight", a}, {"b.bias", sines({8}, 5)},
                               {"a.weight", a}, {"a.bias", sines({8}, 7)},
                               {"c.weight", c}, {"c.bias", sines({3}, 9)}};
  write_model(kLayers, {{"M0", exchanged(a)},
                        {"B0", sines({8}, 7)},
                        {"M1", exchanged(a)},
                        {"B1", sines({8}, 5)},
                        {"M2", exchanged(c)},
                        {"B2", sines({3}, 9)}});
  const Outcome outcome = prune(stored, "--strict");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto got = cut();
  auto requested = small();
  EXPECT_EQ(exchanged(got["a.weight"]), requested["M0"]);
  EXPECT_EQ(exchanged(got["b.weight"]), requested["M1"]);
  EXPECT_EQ(got["b.bias"], requested["B1"]);
}

TEST_F(Matched, EqualLayersAreRefusedWithBothNames) {
  const Named a = sines({8, 8}, 1);
  const Named c = sines({3, 8}, 200);
  const Named bias = sines({8}, 7);
  write_model(kLayers, {{"M0", exchanged(a)},
                        {"B0", bias},
                        {"M1", exchanged(a)},
                        {"B1", bias},
                        {"M2", exchanged(c)},
                        {"B2", sines({3}, 9)}});
  const Outcome outcome = prune({{"b.weight", a},
                                 {"b.bias", bias},
                                 {"a.weight", a},
                                 {"a.bias", bias},
                                 {"c.weight", c},
                                 {"c.bias", sines({3}, 9)}});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("\"a.weight\""), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("\"b.weight\""), std::string::npos) << outcome.err;
  EXPECT_FALSE(place_.has("b.safetensors"));
  EXPECT_FALSE(place_.has("small.onnx"));
}

/// Two layers side by side that read and write the same channels are cut alike.
TEST_F(Matched, EqualLayersThatAreCutAlikeAreCut) {
  const Named a = sines({8, 8}, 1);
  const Named c = sines({3, 8}, 200);
  write_model(
      R"(
net (float[1,8] x) => (float[1,3] y)
{
  h = MatMul(x, M)
  r = Relu(h)
  p = MatMul(r, P)
  q = MatMul(r, Q)
  s = Add(p, q)
  t = Relu(s)
  y = MatMul(t, Y)
}
)",
      {{"M", sines({8, 8}, 40)}, {"P", exchanged(a)}, {"Q", exchanged(a)}, {"Y", exchanged(c)}});
  const Outcome outcome = prune({{"q.weight", a},
                                 {"p.weight", a},
                                 {"m.weight", exchanged(sines({8, 8}, 40))},
                                 {"y.weight", c}},
                                "--strict");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto got = cut();
  EXPECT_EQ(exchanged(got["p.weight"]), small()["P"]);
  EXPECT_EQ(got["p.weight"], got["q.weight"]);
}

TEST_F(Matched, AModuleWhoseMatrixIsLeftKeepsItsBias) {
  const Named a = sines({8, 8}, 1);
  const Named b = sines({8, 8}, 100);
  const Named c = sines({3, 8}, 200);
  write_model(kLayers, {{"M0", exchanged(a)},
                        {"B0", sines({8}, 7)},
                        {"M1", exchanged(b)},
                        {"B1", sines({8}, 5)},
                        {"M2", exchanged(c)},
                        {"B2", sines({3}, 9)}});
  const NamedTensors stored = {{"a.weight", a},
                               {"a.bias", sines({8}, 7)},
                               {"b.weight", sines({8, 8}, 300)},  // trained on
                               {"b.bias", sines({8}, 5)},
                               {"c.weight", c},
                               {"c.bias", sines({3}, 9)}};
  const Outcome outcome = prune(stored);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(cut()["b.bias"], sines({8}, 5));
  EXPECT_NE(outcome.out.find("unchanged: B1: the matrix"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("unchanged: M1:"), std::string::npos) << outcome.out;
  EXPECT_EQ(prune(stored, "--strict").code, 3);
}

/// Words are looked up and changed; what follows makes scores of them.
constexpr const char* kTable = R"(
net (int64[1,4] ids) => (float[1,4,12] y)
{
  e = Gather(table, ids)
  a = MatMul(e, w1)
  b = Relu(a)
  c = MatMul(b, w2)
  d = Add(e, c)
)";

/// A table that is read as rows and, transposed, as the last layer; the head lies before and behind
/// it in the file.
TEST_F(Matched, EqualCopiesOfWhatIsReadTwiceAreTied) {
  const Named table = sines({12, 8}, 1);
  const Named w1 = sines({8, 6}, 50);
  const Named w2 = sines({6, 8}, 90);
  write_model(kTable + std::string("t = Transpose<perm = [1, 0]>(table) y = MatMul(d, t) }"),
              {{"table", table}, {"w1", w1}, {"w2", w2}});
  const Outcome outcome = prune(
      {{"decoder.weight", table}, {"table", table}, {"w1", w1}, {"w2", w2}, {"head.weight", table}},
      "--strict");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  auto got = cut();
  EXPECT_EQ(got["table"], small()["table"]);
  EXPECT_EQ(got["head.weight"], got["table"]);
  EXPECT_EQ(got["decoder.weight"], got["table"]);
}

TEST_F(Matched, EqualCopiesOfWhatIsReadOnceAreListed) {
  const Named a = sines({8, 8}, 1);
  write_model(R"(
net (float[1,8] x) => (float[1,3] y)
{
  h = MatMul(x, w1)
  r = Relu(h)
  y = MatMul(r, w2)
}
)",
              {{"w1", a}, {"w2", sines({8, 3}, 60)}});
  const NamedTensors stored = {{"w1", a}, {"w2", sines({8, 3}, 60)}, {"old.w1", a}};
  const Outcome outcome = prune(stored);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(cut()["old.w1"], a);
  EXPECT_NE(outcome.out.find("old.w1: it has the elements of"), std::string::npos) << outcome.out;
  EXPECT_EQ(prune(stored, "--strict").code, 3);
}

TEST_F(Matched, WeightsThatOneTensorIsAreCutAlike) {
  // The model has the table twice, the checkpoint once.
  const Named table = sines({12, 8}, 1);
  write_model(kTable + std::string("y = MatMul(d, head) }"), {{"table", table},
                                                              {"w1", sines({8, 6}, 50)},
                                                              {"w2", sines({6, 8}, 90)},
                                                              {"head", exchanged(table)}});
  const Outcome outcome =
      prune({{"table", table}, {"w1", sines({8, 6}, 50)}, {"w2", sines({6, 8}, 90)}}, "--strict");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(cut()["table"], small()["table"]);
  EXPECT_EQ(exchanged(cut()["table"]), small()["head"]);
}

}  // namespace
}  // namespace parsimony::test
