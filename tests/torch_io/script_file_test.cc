// Files: good ones, bad ones, and the real ones of other people.
#include "parsimony/torch_io/script/script_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cstdlib>
#include <filesystem>

#include "parsimony/api/prune.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/editor.h"
#include "tests/support/fixture.h"
#include "tests/support/same_bytes.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

torch::jit::Module small_net() {
  at::manual_seed(1);
  return scripted(
      "def forward(self, x):\n"
      "    return torch.linear(torch.relu(torch.linear(x, self.w1)), self.w2)\n",
      {{"w1", at::randn({8, 6})}, {"w2", at::randn({3, 8})}});
}

std::string refusal(const std::string& path) {
  try {
    torch_io::ScriptFile file(path);
    return "";
  } catch (const ModelError& error) {
    return error.what();
  }
}

Plan plan_of(torch_io::ScriptFile& file, const std::vector<InputSpec>& specs) {
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = specs;
  return plan_pruning(file.read(specs).graph, request).plan;
}

void replay_on(const Plan& plan, const std::string& from, const std::string& to,
               const std::vector<InputSpec>& specs) {
  torch_io::ScriptFile file(from);
  torch_io::ScriptGraph& script = file.read(specs);
  apply_plan(plan, script.graph, choose_probe(script.graph, specs), file.editor());
  file.write(to);
}

/// As a hostile file may say: libtorch would read what lies after the stored bytes.
TEST(ScriptFile, TensorsBeyondTheirBytesAreRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    torch::jit::Module module = small_net();
    const at::Tensor weight = module.attr("w1").toTensor();
    weight.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    module.save(folder / "net.pt");
    return refusal(folder / "net.pt");
  };
  EXPECT_EQ(refused({8, 6}, {6, 1}), "");
  EXPECT_EQ(refused({48}, {1}), "");
  EXPECT_EQ(refused({1000, 48}, {0, 1}), "") << "expanded";
  const std::string beyond = refused({9, 6}, {6, 1});
  const std::string refused_as = (folder / "net.pt") + ": not a TorchScript model: ";
  EXPECT_TRUE(beyond ==
                  refused_as +
                      "it contains a tensor of [9, 6] with strides [6, 1] from element 0 on, of "
                      "which 192 bytes are stored" ||
              beyond.starts_with(refused_as +
                                 "Tensor: sizes 9 6, strides 6 1, storage offset 0 and itemsize 4 "
                                 "require a storage of at least 216 bytes"))
      << beyond << ": newer libtorch says it itself";
  EXPECT_NE(refused({8, 6}, {7, 1}), "");
  EXPECT_NE(refused({2, 2}, {int64_t{1} << 62, int64_t{1} << 62}), "");
  EXPECT_NE(refused({int64_t{1} << 40, 48}, {0, 1}), "") << "192 TB when it is written out";
}

TEST(ScriptFile, ExpandedTensorsGetMemoryOfTheirOwn) {
  const TemporaryFolder folder;
  torch::jit::Module module = small_net();
  const at::Tensor expanded = at::full({8, 1}, 3.0).expand({8, 6});
  module.setattr("w1", expanded);
  module.save(folder / "net.pt");
  const torch_io::ScriptFile file(folder / "net.pt");
  const at::Tensor read = file.module().attr("w1").toTensor();
  EXPECT_TRUE(read.is_contiguous());
  EXPECT_TRUE(at::equal(read, expanded));
}

/// Three layers, of which the third multiplies by a view of the memory of the second's weight.
torch::jit::Module net_of_views(const at::Tensor& up, const at::Tensor& down) {
  return scripted(
      "def forward(self, x):\n"
      "    x = torch.relu(torch.linear(x, self.first))\n"
      "    x = torch.relu(torch.linear(x, self.up))\n"
      "    return torch.linear(torch.relu(torch.linear(x, self.down)), self.last)\n",
      {{"first", at::randn({16, 6})}, {"up", up}, {"down", down}, {"last", at::randn({3, 16})}});
}

/// Prunes half of each layer of a file, and proves it.
void expect_proven(const std::string& path) {
  torch_io::ScriptModel model(path, {{{4, 6}, {}}});
  torch_io::TorchEngine engine;
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = {{{4, 6}, {}}};
  request.require_proof = true;
  const PruneResult result = prune_model(model, request, {.engine = &engine});
  EXPECT_TRUE(result.proof.holds());
  EXPECT_EQ(result.plan.groups.size(), 3);
}

TEST(ScriptFile, ViewsOfOneMemoryAreProven) {
  const TemporaryFolder folder;
  at::manual_seed(6);
  const at::Tensor up = at::randn({32, 16});
  const at::Tensor buffer = at::randn({800});
  for (const auto& [name, module] : {
           std::pair("transposed", net_of_views(up, up.t())),
           std::pair("overlapping", net_of_views(buffer.narrow(0, 0, 512).view({32, 16}),
                                                 buffer.narrow(0, 288, 512).view({16, 32}))),
           std::pair("strided", net_of_views(buffer.narrow(0, 0, 800).unfold(0, 16, 25), up.t())),
       }) {
    SCOPED_TRACE(name);
    module.save(folder / "net.pt");
    expect_proven(folder / "net.pt");
    torch::jit::freeze(module).save(folder / "frozen.pt");
    expect_proven(folder / "frozen.pt");
  }
}

TEST(ScriptFile, PlansReplay) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.pt";
  torch::jit::ExtraFilesMap extra{{"labels.txt", "a b c"}};
  small_net().save(path, extra);
  const std::vector<InputSpec> specs{{{4, 6}, {}}};
  torch_io::ScriptFile file(path);
  plan_of(file, specs).save(folder / "plan.json");
  const Plan plan = Plan::load(folder / "plan.json");
  replay_on(plan, path, folder / "a.pt", specs);
  replay_on(plan, path, folder / "b.pt", specs);
  EXPECT_TRUE(same_bytes(read_file(folder / "a.pt"), read_file(folder / "b.pt")));
  torch::jit::ExtraFilesMap found{{"labels.txt", ""}};
  const auto small = torch::jit::load(folder / "a.pt", at::kCPU, found);
  EXPECT_EQ(found["labels.txt"], "a b c");
  EXPECT_EQ(small.attr("w1").toTensor().sizes(), (std::vector<int64_t>{4, 6}));
}

at::Tensor tensor_of(const torch::jit::Module& module, const std::string& name) {
  return module.attr(name).toTensor();
}

TEST(ScriptFile, WeightsAreCutInTheirMemory) {
  const TemporaryFolder folder;
  const torch::jit::Module net = small_net();
  tensor_of(net, "w1").set_requires_grad(true);
  net.save(folder / "net.pt");
  const std::vector<InputSpec> specs{{{4, 6}, {}}};
  torch_io::ScriptFile file(folder / "net.pt");
  const Plan plan = plan_of(file, specs);
  torch_io::ScriptGraph& script = file.read(specs);
  const void* before = tensor_of(file.module(), "w1").data_ptr();
  apply_plan(plan, script.graph, choose_probe(script.graph, specs), file.editor());
  const at::Tensor small = tensor_of(file.small(), "w1");
  EXPECT_EQ(small.data_ptr(), before);
  EXPECT_EQ(small.sizes(), (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(small.storage().nbytes(), 4 * 6 * sizeof(float)) << "else files keep what was cut off";
  EXPECT_TRUE(small.requires_grad());
}

TEST(ScriptFile, EditsAreForgottenWhenItIsReadAgain) {
  const TemporaryFolder folder;
  small_net().save(folder / "net.pt");
  const std::vector<InputSpec> specs{{{4, 6}, {}}};
  torch_io::ScriptFile file(folder / "net.pt");
  const at::Tensor original = tensor_of(file.module(), "w1").clone();
  const Plan plan = plan_of(file, specs);
  torch_io::ScriptGraph& script = file.read(specs);
  apply_plan(plan, script.graph, choose_probe(script.graph, specs), file.editor());
  EXPECT_TRUE(file.edited());
  EXPECT_EQ(plan_of(file, specs).to_json(), plan.to_json());
  EXPECT_FALSE(file.edited());
  EXPECT_TRUE(at::equal(tensor_of(file.module(), "w1"), original));
}

TEST(ScriptFile, MemoryThatSeveralTensorsShowIsNotUsedUp) {
  const TemporaryFolder folder;
  at::manual_seed(1);
  const at::Tensor both = at::randn({11, 8});
  const at::Tensor w1 = both.narrow(0, 0, 8);  // [8, 8]
  const at::Tensor w2 = both.narrow(0, 3, 8);
  const torch::jit::Module net = scripted(
      "def forward(self, x):\n"
      "    return torch.linear(torch.relu(torch.linear(x, self.w1)), self.w2)\n",
      {{"w1", w1}, {"w2", w2}});
  net.save(folder / "net.pt");
  const std::vector<InputSpec> specs{{{4, 8}, {}}};
  torch_io::ScriptFile file(folder / "net.pt");
  ASSERT_TRUE(tensor_of(file.module(), "w1").is_alias_of(tensor_of(file.module(), "w2")));
  replay_on(plan_of(file, specs), folder / "net.pt", folder / "small.pt", specs);
  const auto small = torch::jit::load(folder / "small.pt", at::kCPU);
  torch_io::ScriptGraph script = torch_io::read_script(net, specs);
  torch_io::ScriptEditor editor(script);
  apply_plan(plan_of(file, specs), script.graph, choose_probe(script.graph, specs), editor);
  const torch::jit::Module expected = editor.finish();
  for (const std::string name : {"w1", "w2"}) {
    EXPECT_TRUE(at::equal(tensor_of(small, name), tensor_of(expected, name))) << name;
    EXPECT_FALSE(tensor_of(expected, name).is_alias_of(both)) << name;
  }
  EXPECT_EQ(tensor_of(small, "w1").size(0), 4);
}

TEST(ScriptEditor, SharesNoTensorWithAnOriginalThatStays) {
  at::manual_seed(1);
  const torch::jit::Module net = scripted(
      "def forward(self, x):\n"
      "    return torch.conv2d(torch.relu(torch.conv2d(x, self.w1)), self.w2) + self.b\n",
      {{"w1", at::randn({8, 3, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast)},
       {"w2", at::randn({4, 8, 1, 1})},
       {"b", at::randn({4, 1, 1})}});
  const Pruned pruned = prune(net, {at::randn({1, 3, 5, 5})});
  for (const std::string name : {"w1", "w2", "b"}) {
    const at::Tensor before = tensor_of(net, name);
    const at::Tensor after = tensor_of(pruned.small, name);
    EXPECT_FALSE(after.is_alias_of(before)) << name;
    EXPECT_EQ(after.requires_grad(), before.requires_grad()) << name;
  }
  EXPECT_EQ(tensor_of(pruned.small, "w1").size(0), 4);
  EXPECT_LE(pruned.difference, 1e-5);
}

TEST(ScriptFile, AnUneditedFileComesOutByteForByte) {
  const TemporaryFolder folder;
  small_net().save(folder / "net.pt");
  torch_io::ScriptFile file(folder / "net.pt");
  file.read({{{4, 6}, {}}});
  EXPECT_FALSE(file.edited());
  file.write(folder / "copy.pt");
  EXPECT_TRUE(same_bytes(read_file(folder / "net.pt"), read_file(folder / "copy.pt")));
}

TEST(ScriptFile, BadFilesAreRefused) {
  const TemporaryFolder folder;
  small_net().save(folder / "net.pt");
  const std::string whole = read_file(folder / "net.pt");
  write_file(folder / "half.pt", std::string_view(whole).substr(0, whole.size() / 2));
  write_file(folder / "empty.pt", "");
  write_file(folder / "text.pt", "not a model");
  write_file(folder / "pickle.pt", "\x80\x02}q");
  EXPECT_NE(refusal(folder / "half.pt").find("truncated"), std::string::npos);
  EXPECT_NE(refusal(folder / "empty.pt").find("empty"), std::string::npos);
  EXPECT_NE(refusal(folder / "text.pt").find("not a zip archive"), std::string::npos);
  EXPECT_NE(refusal(folder / "pickle.pt").find("pickle"), std::string::npos);
  EXPECT_THROW(torch_io::ScriptFile(folder / "absent.pt"), IoError);
}

TEST(ScriptFile, DamageNeverGoesUnnoticedAsACrash) {
  const TemporaryFolder folder;
  small_net().save(folder / "net.pt");
  const std::string whole = read_file(folder / "net.pt");
  for (size_t at = 0; at < whole.size(); at += whole.size() / 40) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    write_file(folder / "damaged.pt", damaged);
    try {
      torch_io::ScriptFile file(folder / "damaged.pt");
      file.read({{{4, 6}, {}}});
    } catch (const Error&) {
    }
  }
}

struct Summary {
  std::vector<int> groups;
  int64_t params, macs;
};

Summary summary_of(Graph& graph, const std::vector<InputSpec>& specs) {
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = specs;
  const Pruning pruning = plan_pruning(graph, request);
  Summary summary{{}, pruning.dense.params, pruning.dense.macs};
  for (const Group& group : pruning.analysis.coupling.groups) summary.groups.push_back(group.size);
  return summary;
}

/// The exporter to ONNX may have folded normalisations into convolutions, which leaves groups and
/// multiply-adds as they are.
enum class Folded : bool { kNo, kYes };

void expect_same(const onnx_io::ModelFile& onnx, const torch::jit::Module& module,
                 const std::vector<InputSpec>& specs, Folded folded) {
  Graph from_onnx = onnx_io::to_graph(onnx);
  torch_io::ScriptGraph script = torch_io::read_script(module, specs);
  const Summary expected = summary_of(from_onnx, specs);
  const Summary found = summary_of(script.graph, specs);
  EXPECT_EQ(found.groups, expected.groups);
  if (folded == Folded::kNo) {
    EXPECT_EQ(found.params, expected.params);
  }
  EXPECT_EQ(found.macs, expected.macs);
}

TEST(TwoFrontEnds, AgreeOnASmallNetwork) {
  const TemporaryFolder folder;
  onnx::ModelProto model = model_of(R"(
net (float[2,3,8,8] x) => (float[2,5] y)
{
  a = Conv<pads=[1,1,1,1]>(x, w1, b1)
  n = BatchNormalization(a, gamma, beta, mean, var)
  r = Relu(n)
  c = Conv<group=8, pads=[1,1,1,1]>(r, w2)
  p = GlobalAveragePool(c)
  f = Flatten(p)
  y = Gemm<transB=1>(f, w3, b3)
}
)");
  const std::vector<std::pair<std::string, std::string>> dims{
      {"w1", "8x3x3x3"}, {"b1", "8"},       {"gamma", "8"}, {"beta", "8"}, {"mean", "8"},
      {"var", "8"},      {"w2", "8x1x3x3"}, {"w3", "5x8"},  {"b3", "5"}};
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  for (const auto& [name, text] : dims) {
    add_weight(model, name, text);
    parameters.emplace_back(name, at::rand(parse_input_spec(text).dims));
  }
  write_file(folder / "net.onnx", model.SerializeAsString());
  const auto module = scripted(R"(
def forward(self, x):
    y = torch.conv2d(x, self.w1, self.b1, [1, 1], [1, 1])
    y = torch.batch_norm(y, self.gamma, self.beta, self.mean, self.var, False, 0.1, 1e-5, False)
    y = torch.conv2d(torch.relu(y), self.w2, None, [1, 1], [1, 1], [1, 1], 8)
    y = torch.flatten(torch.adaptive_avg_pool2d(y, [1, 1]), 1)
    return torch.linear(y, self.w3, self.b3)
)",
                               parameters);
  expect_same(onnx_io::ModelFile(folder / "net.onnx"), module, {{{2, 3, 8, 8}, {}}}, Folded::kNo);
}

TEST(TwoFrontEnds, AgreeOnResNet20) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "no real models";
  const std::string models = std::string(data) + "/models/";
  if (!std::filesystem::exists(models + "torchscript")) GTEST_SKIP() << "no TorchScript";
  expect_same(onnx_io::ModelFile(models + "onnx/resnet20_cifar10.onnx"),
              torch_io::ScriptFile(models + "torchscript/resnet20_cifar10.ts.pt").module(),
              {{{1, 3, 32, 32}, {}}}, Folded::kYes);
}

/// What the next run reads has the channels of what was written last, however often.
TEST(ScriptFiles, TensorsOfTheModuleAreCutWithWhatIsWrittenIntoThem) {
  const auto module = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.l))
    z = torch.relu(torch.linear(self.h, self.m))
    out = torch.linear(y + z, self.o)
    self.h.mul_(0.9)
    self.h.copy_(y)
    return out
)",
                               {{"l", at::rand({8, 4})},
                                {"h", at::zeros({1, 8})},
                                {"m", at::rand({8, 8})},
                                {"o", at::rand({3, 8})}});
  const Pruned pruned = prune(module, {at::rand({1, 4})});
  ASSERT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-5);
  torch::jit::Module small = pruned.small;
  EXPECT_EQ(small.attr("h").toTensor().sizes(), at::IntArrayRef({1, 4}));
}

struct RealModel {
  std::string name;
  std::vector<c10::IValue> inputs;
  size_t groups;
};

class RealScripts : public testing::TestWithParam<int> {
 public:
  static RealModel model(int i) {
    at::manual_seed(7);
    switch (i) {
      case 0:
        return {"resnet20_cifar10.ts.pt", {at::randn({2, 3, 32, 32})}, 12};
      case 1:
        return {"rl_sar_go2_himloco.pt", {at::randn({3, 270})}, 6};
      case 2:
        return {"unitree_g1_motion.pt", {at::randn({1, 47})}, 2};
      case 3:
        return {"reddit.pt", {at::randint(0, 256, {2, 20})}, 3};
      default:
        return {"silero_vad.jit", {at::randn({1, 512}), int64_t{16000}}, 4};
    }
  }
};

TEST_P(RealScripts, ArePrunedAndExact) {
  const char* data = std::getenv("PARSIMONY_TEST_DATA");
  if (data == nullptr || *data == '\0') GTEST_SKIP() << "no real models";
  const RealModel real = model(GetParam());
  const std::string path = std::string(data) + "/models/torchscript/" + real.name;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const Pruned pruned =
      prune(torch_io::ScriptFile(path).module(), real.inputs, {.exact_only = false});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), real.groups) << pruned.dump;
  bool mixes = false;
  for (const PlanGroup& group : pruned.pruning.plan.groups) mixes = mixes || group.mixes;
  if (!mixes) {
    EXPECT_LE(pruned.difference, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealScripts, testing::Range(0, 5));

}  // namespace
}  // namespace parsimony::test
