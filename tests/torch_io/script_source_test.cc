// Programs in TorchScript: control flow, sizes, shared tensors, state, frozen graphs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/passes/freeze_module.h>

#include <memory>
#include <span>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/script/run.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using at::Tensor;
using torch::jit::Module;

std::vector<std::pair<std::string, Tensor>> two_layers(int64_t in = 6, int64_t hidden = 8,
                                                       int64_t out = 3) {
  at::manual_seed(3);
  return {{"w1", at::randn({hidden, in})},
          {"b1", at::randn({hidden})},
          {"w2", at::randn({out, hidden})},
          {"b2", at::randn({out})}};
}

using Named = std::pair<std::string, at::IntArrayRef>;

/// The two layers, and matrices of these sizes.
std::vector<std::pair<std::string, Tensor>> two_layers_and(std::initializer_list<Named> more) {
  auto parts = two_layers();
  for (const auto& [name, sizes] : more) parts.emplace_back(name, at::randn(sizes));
  return parts;
}

Pruned expect_exact(const Module& module, const std::vector<c10::IValue>& inputs, size_t groups,
                    const ScriptRequest& request = {}) {
  Pruned pruned = prune(module, inputs, request);
  EXPECT_EQ(pruned.pruning.plan.groups.size(), groups) << pruned.dump;
  EXPECT_LE(pruned.difference, 1e-4) << pruned.dump;
  return pruned;
}

bool is_whole(const Pruned& pruned, const std::string& axis, const std::string& reason) {
  for (const UnprunedDim& whole : pruned.pruning.plan.unpruned_dims) {
    if (whole.axis == axis && whole.reason.find(reason) != std::string::npos) return true;
  }
  return false;
}

TEST(ScriptSource, FollowsConditionsThatRanksAndConstantsDecide) {
  const Module net = scripted(R"(
def forward(self, x):
    if x.dim() == 2:
        y = torch.addmm(self.b1, x, self.w1.t())
    else:
        y = torch.matmul(x, self.w1.t()) + self.b1
    if self.training:
        y = y * 2
    return torch.linear(torch.relu(y), self.w2, self.b2)
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
  expect_exact(net, {at::randn({2, 4, 6})}, 1);
}

TEST(ScriptSource, WhatLayersForTrainingReadStaysWhole) {
  auto parameters = two_layers();
  parameters.emplace_back("aux", at::randn({3, 8}));
  Module net = scripted(R"(
def forward(self, x):
    h = torch.relu(torch.linear(x, self.w1, self.b1))
    y = torch.linear(h, self.w2, self.b2)
    if self.training and x.dim() == 2:
        y = y + torch.linear(h, self.aux)
    return y
)",
                        parameters);
  Pruned pruned = prune(net, {at::randn({4, 6})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "a training-only branch has layers that read it"));
}

TEST(ScriptSource, WhatOnlyDropsElementsInTrainingDoesNotHinder) {
  Module net = scripted(R"(
def forward(self, x):
    h = torch.relu(torch.linear(x, self.w1, self.b1))
    if not self.training:
        y = h
    else:
        y = h * torch.rand_like(h)
    return torch.linear(y, self.w2, self.b2)
)",
                        two_layers());
  Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  pruned.small.train();
  EXPECT_NO_THROW(pruned.small.forward({at::randn({4, 6})}));
}

TEST(ScriptSource, MethodsThatForwardDoesNotCallAreNamed) {
  const Module net = scripted(R"(
def body(self, x):
    return torch.relu(torch.linear(x, self.w1, self.b1))
def forward(self, x):
    return torch.linear(self.body(x), self.w2, self.b2)
def features(self, x):
    return self.body(x) * 2
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  ASSERT_EQ(pruned.pruning.notes.size(), 1U);
  EXPECT_EQ(pruned.pruning.notes[0].find("method \"features\" is not analysed"), 0U)
      << pruned.pruning.notes[0];
}

TEST(ScriptSource, NumbersBesideTensorsAreNoOutputs) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    return x.size(0), torch.linear(y, self.w2, self.b2), x.size(1) / 2
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
  const torch_io::ScriptGraph script = torch_io::read_script(net, specs_of({at::randn({4, 6})}));
  EXPECT_EQ(script.graph.outputs.size(), 1U);
  EXPECT_EQ(script.results.size(), 1U);
  EXPECT_EQ(script.numbers, 2U);
}

TEST(ScriptSource, SizesThatAreReturnedStay) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    return torch.linear(y, self.w2, self.b2), y.size(1)
)",
                              two_layers());
  const Pruned pruned = prune(net, {at::randn({4, 6})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
}

TEST(ScriptSource, ArgumentsWithADefaultMayBeLeftOut) {
  const Module net = scripted(R"(
def forward(self, x, scale: float = 2.0, times: int = 3, twice: bool = True):
    y = torch.relu(torch.linear(x, self.w1, self.b1)) * scale * times
    if twice:
        y = y * 2
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
}

/// Tensors and numbers are given one after the other, wherever they stand.
TEST(ScriptSource, ArgumentsMayBeTuplesListsAndDictionaries) {
  const Module net = scripted(R"(
def forward(self, batch: Dict[str, Tensor], pair: Tuple[Tensor, float], more: List[Tensor], last: int):
    x = batch["x"] * batch["scale"] + pair[0] * pair[1]
    for one in more:
        x = x + one * last
    return torch.linear(torch.relu(torch.linear(x, self.w1, self.b1)), self.w2, self.b2)
)",
                              two_layers());
  const std::vector<InputSpec> specs = {
      {{4, 6}, {}}, {{4, 1}, {}}, {{4, 6}, {}}, parse_input_spec(":float32=0.5"),
      {{4, 6}, {}}, {{1, 6}, {}}, {{4, 6}, {}}, parse_input_spec(":int64=3")};
  torch_io::ScriptGraph script = torch_io::read_script(net, specs);
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = specs;
  const Plan plan = plan_pruning(script.graph, request).plan;
  EXPECT_EQ(plan.groups.size(), 1U);
  std::vector<Tensor> inputs;
  for (const InputSpec& spec : specs) {
    inputs.push_back(spec.value ? at::scalar_tensor(*spec.value) : at::randn(spec.dims));
  }
  torch_io::TorchNetwork as_it_is = torch_io::script_run(net);
  torch_io::TorchNetwork as_read = torch_io::plain_run(script.graph);
  EXPECT_LE((as_it_is(inputs)[0] - as_read(inputs)[0]).abs().max().item<double>(), 1e-5);
  EXPECT_THROW(torch_io::read_script(net, {specs[0], specs[1]}), ConfigError);
}

TEST(ScriptSource, ChecksOfSizesThatChangeGo) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    assert y.size(1) == 8, "eight"
    assert x.size(1) == 6, "six"
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_ANY_THROW(run(pruned.small, {at::randn({4, 7})}));
}

TEST(ScriptSource, WhatDecidesTheWayKeepsItsSize) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    if y.size(1) == 8:
        y = y * 2
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 0);
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "If"));
}

TEST(ScriptSource, UnrollsLoopsAndGrowsLists) {
  const Module net = scripted(R"(
def forward(self, x):
    parts = [torch.linear(x, self.w1, self.b1)]
    for i in range(3):
        parts.append(torch.relu(parts[-1]) * (i + 1))
    return torch.linear(parts[0] + parts[3], self.w2, self.b2)
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
}

/// Cells that go through a sequence, as often as it is long: by `for`, and by `while` with a break.
TEST(ScriptSource, FollowsLoopsThatSizesEnd) {
  const std::string step = R"(
        h = torch.gru_cell(torch.relu(torch.linear(x[i], self.w1, self.b1)), h, self.w3, self.w4)
)";
  const auto net = [&](const std::string& loop) {
    return scripted("\ndef forward(self, x):\n    h = torch.zeros([4, 5])\n" + loop + step +
                        "        i += 1\n    return torch.linear(h, self.w5)\n",
                    two_layers_and({{"w3", {15, 8}}, {"w4", {15, 5}}, {"w5", {2, 5}}}));
  };
  for (const std::string loop :
       {"    for i in range(x.size(0)):", "    i = 0\n    while i < len(x):",
        "    i = 0\n    while True:\n        if i >= 3:\n            break"}) {
    const Pruned pruned = expect_exact(net(loop), {at::randn({3, 4, 6})}, 2);
    EXPECT_LE(pruned.misread.value_or(1), 1e-5) << loop;
  }
}

// As torch.nn.functional writes interpolate() and instance_norm().
TEST(ScriptSource, FollowsModesAndRanges) {
  const Module net = scripted(R"(
def forward(self, x):
    mode = "bilinear"
    corners: Optional[bool] = False
    if mode in ["nearest", "area"]:
        corners = None
    y = torch.relu(torch.conv2d(x, self.w1, self.b1))
    sizes = y.size()
    places = 1
    for i in range(2, len(sizes)):
        places *= sizes[i]
    assert places != 1, "one place only"
    y = torch.instance_norm(y, None, None, None, None, True, 0.1, 1e-5, True)
    scales: List[float] = []
    for i in range(y.dim() - 2):
        scales.append(2.0)
    if corners is not None:
        y = torch.upsample_bilinear2d(y, None, corners, scales)
    else:
        y = torch.upsample_nearest2d(y, None, scales)
    return torch.conv2d(y, self.w2, self.b2)
)",
                              {{"w1", at::randn({8, 3, 3, 3})},
                               {"b1", at::randn({8})},
                               {"w2", at::randn({5, 8, 1, 1})},
                               {"b2", at::randn({5})}});
  expect_exact(net, {at::randn({1, 3, 7, 6})}, 1);
}

TEST(ScriptSource, AMeanOfWhatIsZeroDividesByAllOfIt) {
  const Module net = scripted(R"(
def forward(self, x):
    h = torch.relu(torch.linear(x, self.w1, self.b1))
    return h.sum(-1) / h.shape[-1]
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
}

TEST(ScriptSource, Float16RunsAsFloat32AndStaysFloat16) {
  std::vector<std::pair<std::string, Tensor>> halves;
  std::vector<std::pair<std::string, Tensor>> floats;
  for (const auto& [name, tensor] : two_layers()) {
    halves.emplace_back(name, tensor.to(at::kHalf));
    floats.emplace_back(name, halves.back().second.to(at::kFloat));
  }
  const std::string source = R"(
def forward(self, x):
    return torch.linear(torch.relu(torch.linear(x, self.w1, self.b1)), self.w2, self.b2)
)";
  const Module half = scripted(source, halves);
  Module wide = scripted(source, floats);
  const Tensor x = at::randn({4, 6}).to(at::kHalf);
  const std::vector<Tensor> found = torch_io::script_run(half)({x});
  const Tensor expected = wide.forward({x.to(at::kFloat)}).toTensor();
  EXPECT_TRUE(at::equal(found.at(0), expected));
  EXPECT_EQ(half.attr("w1").toTensor().scalar_type(), at::kHalf);
  EXPECT_TRUE(at::equal(half.attr("w1").toTensor(), halves[0].second));
}

TEST(ScriptSource, SizesFlow) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.w1, self.b1)
    n, c = y.size(0), y.size(1)
    z = y.view([n, 2, c // 2]).transpose(1, 2).contiguous().reshape([n, -1])
    z = z + torch.zeros([n, 8])
    return torch.linear(z.expand([n, 8]), self.w2, self.b2)
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
}

TEST(ScriptSource, UnknownOperatorsPinWhatTheyTouch) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.digamma(torch.linear(x, self.w1, self.b1))
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::rand({4, 6})}, 0);
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "unknown operator digamma"));
}

TEST(ScriptSource, TwoNamesOfOneTensorStayOne) {
  at::manual_seed(4);
  auto parameters = two_layers(6, 8, 6);
  parameters[3].second = at::randn({6});
  parameters.emplace_back("again", parameters[0].second);
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    y = torch.linear(y, self.w2, self.b2)
    return torch.linear(torch.relu(torch.linear(y, self.again)), self.w2, self.b2)
)",
                              parameters);
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_TRUE(pruned.small.attr("w1").toTensor().data_ptr() ==
              pruned.small.attr("again").toTensor().data_ptr());
}

Module net_that_shares_a_vector() {
  at::manual_seed(5);
  return scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b))
    y = torch.relu(torch.linear(y, self.w2, self.b))
    return torch.linear(y, self.w3)
)",
                  {{"w1", at::randn({8, 6})},
                   {"w2", at::randn({8, 8})},
                   {"w3", at::randn({3, 8})},
                   {"b", at::zeros({8})}});
}

TEST(ScriptSource, SharedVectorsAreSeparated) {
  const Pruned pruned = expect_exact(net_that_shares_a_vector(), {at::randn({4, 6})}, 2);
  EXPECT_EQ(pruned.pruning.plan.copies.size(), 1);
}

TEST(ScriptSource, AttributesMethodsAndGradientsSurvive) {
  Module net = scripted(R"(
def forward(self, x):
    return torch.linear(torch.relu(torch.linear(x, self.w1, self.b1)), self.w2, self.b2)

def classes(self):
    return ["a", "b", "c"]
)",
                        two_layers());
  net.register_attribute("version", c10::IntType::get(), 7);
  net.attr("w1").toTensor().set_requires_grad(true);
  Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_EQ(pruned.small.attr("version").toInt(), 7);
  EXPECT_EQ(pruned.small.get_method("classes")({}).toListRef().size(), 3);
  EXPECT_TRUE(pruned.small.attr("w1").toTensor().requires_grad());
  EXPECT_EQ(net.attr("w1").toTensor().size(0), 8);
}

TEST(ScriptSource, ListsThatHoldATensorHoldTheNewOne) {
  Module net = scripted(R"(
def forward(self, x):
    return torch.linear(torch.relu(torch.linear(x, self.w1, self.b1)), self.w2, self.b2)
)",
                        two_layers());
  c10::List<c10::List<Tensor>> lists;
  lists.push_back(c10::List<Tensor>({net.attr("w1").toTensor(), net.attr("b2").toTensor()}));
  net.register_attribute("all_weights", c10::ListType::create(c10::ListType::ofTensors()), lists);
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  const auto held = pruned.small.attr("all_weights").toListRef()[0].toTensorVector();
  EXPECT_EQ(held[0].data_ptr(), pruned.small.attr("w1").toTensor().data_ptr());
  EXPECT_EQ(held[1].size(0), 3);
  EXPECT_EQ(net.attr("w1").toTensor().size(0), 8);
}

/// Constants instead of attributes.
Module frozen_net() {
  Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.conv2d(x, self.w1, self.b1, [1, 1], [1, 1]))
    y = torch.conv2d(y, self.w2, None, [1, 1], [0, 0], [1, 1], 8)
    return torch.conv2d(y, self.w3).view([-1, 4 * 16])
)",
                        {{"w1", at::randn({8, 3, 3, 3})},
                         {"b1", at::randn({8})},
                         {"w2", at::randn({8, 1, 1, 1})},
                         {"w3", at::randn({4, 8, 1, 1})}});
  net.eval();
  return torch::jit::freeze_module(net);
}

TEST(ScriptSource, FrozenGraphs) {
  const Pruned pruned = expect_exact(frozen_net(), {at::randn({2, 3, 4, 4})}, 1);
  EXPECT_LT(pruned.pruning.small.params, pruned.pruning.dense.params);
}

/// A number for every element of every tensor of the small network.
void assign_all(ModelEditor& editor, const SmallNetwork& small) {
  float value = 0;
  for (const Weight& weight : small.graph().weights) {
    if (weight.dtype != DType::kFloat32) continue;
    const std::vector<float> values(weight.count(), value += 0.125F);
    editor.assign(weight.name, std::as_bytes(std::span(values)));
  }
}

void expect_values_to_change_late(const Module& net, const at::Tensor& input) {
  const std::vector<InputSpec> specs = specs_of({input});
  const torch_io::ScriptGraph script = torch_io::read_script(net, specs);
  const Plan plan = prune(net, {input}).pruning.plan;
  const SmallNetwork small(script.graph, plan);
  const auto edited = [&](const torch_io::ScriptGraph& read) {
    auto editor = std::make_unique<torch_io::ScriptEditor>(read);
    apply_plan(plan, read.graph, choose_probe(read.graph, specs), *editor);
    return editor;
  };
  const auto early = edited(script);
  assign_all(*early, small);
  const at::Tensor expected = run(early->finish(), {input}).at(0);
  const torch_io::ScriptGraph again = torch_io::read_script(net, specs);
  const auto late = edited(again);
  const Module first = late->finish();
  const at::Tensor before = run(first, {input}).at(0);
  assign_all(*late, small);
  EXPECT_TRUE(at::equal(run(late->finish(), {input}).at(0), expected));
  EXPECT_TRUE(at::equal(run(reloaded(late->finish()), {input}).at(0), expected));
  EXPECT_TRUE(at::equal(run(first, {input}).at(0), before)) << "made before, and stays";
  EXPECT_FALSE(at::equal(before, expected));
  EXPECT_THROW(apply_plan(plan, again.graph, choose_probe(again.graph, specs), *late),
               UnsupportedError);
}

TEST(ScriptSource, ValuesMayChangeAfterTheModuleWasMade) {
  expect_values_to_change_late(frozen_net(), at::randn({2, 3, 4, 4}));
  expect_values_to_change_late(net_that_shares_a_vector(), at::randn({4, 6}));
}

TEST(ScriptSource, SeveralInputsAndResults) {
  const Module net = scripted(R"(
def forward(self, x, rate: int, mask: Optional[Tensor]=None):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    if rate == 16000:
        z = torch.linear(y, self.w2, self.b2)
    else:
        z = torch.zeros([1])
    return (z, [z * 2, z + 1])
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6}), int64_t{16000}}, 1);
}

TEST(ScriptSource, Dictionaries) {
  const Module net = scripted(R"(
def forward(self, x):
    d = {"y": torch.relu(torch.linear(x, self.w1, self.b1))}
    d["z"] = torch.linear(d["y"], self.w2, self.b2)
    return {"out": d["z"], "aux": d["z"] * 2}
)",
                              two_layers());
  expect_exact(net, {at::randn({4, 6})}, 1);
}

TEST(ScriptSource, ListsThatAreChangedUnseenAreForgotten) {
  const Module net = scripted(R"(
def forward(self, x):
    sizes = [4, 2, -1]
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    sizes.sort()
    return torch.linear(y.view(sizes).reshape([-1, 8]), self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 0);
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "unknown operator view")) << pruned.dump;
}

TEST(ScriptSource, MissingSizesAreTheUsersFault) {
  const Module net = scripted("def forward(self, x, y):\n    return x + y\n", {});
  try {
    torch_io::read_script(net, {{{1, 3}, {}}});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("\"y\" as input 2"), std::string::npos)
        << error.what();
  }
}

TEST(ScriptSource, AModuleWithoutForwardIsRefused) {
  EXPECT_THROW(torch_io::read_script(Module("Empty"), {}), ModelError);
}

/// With tensors made of numbers as a trace makes them.
Module as_traced(Module module) {
  const auto graph = module.get_method("forward").graph();
  for (auto it = graph->block()->nodes().begin(); it != graph->block()->nodes().end();) {
    torch::jit::Node* node = *it++;
    if (node->kind() != c10::Symbol::fromQualString("aten::tensor")) continue;
    const torch::jit::WithInsertPoint here(node);
    torch::jit::Node* traced = graph->createNumToTensor(node->input(0));
    node->output()->replaceAllUsesWith(graph->insertNode(traced)->output());
    node->destroy();
  }
  return reloaded(module);
}

TEST(ScriptSource, APowerOfASizeStaysAsItWas) {
  const Module net = as_traced(scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    scale = torch.pow(torch.floor_divide(torch.tensor(y.size(1)), 2), -0.5)
    return torch.linear(y * scale, self.w2, self.b2)
)",
                                        two_layers()));
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  ASSERT_TRUE(pruned.misread.has_value());
  EXPECT_LE(*pruned.misread, 1e-6);
}

TEST(ScriptSource, TensorsAreSplitAtPlacesAndIntoParts) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.w1, self.b1)
    a, b = torch.tensor_split(y, [2], 1)
    c, d = torch.tensor_split(torch.cat([a.relu(), b], 1), 2, 1)
    z = torch.linear(torch.cat([c, d.relu()], 1), self.w2, self.b2)
    first, rest = torch.tensor_split(z, [1], 0)
    return first, rest
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  ASSERT_TRUE(pruned.misread.has_value());
  EXPECT_LE(*pruned.misread, 1e-6);
}

TEST(ScriptSource, RolledChannelsGo) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    y = torch.roll(torch.roll(y, [2], [-1]), [-3], [-1])
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_LE(pruned.misread.value_or(1), 1e-5);
}

TEST(ScriptSource, OfWhatWindowsSlideOverNothingGoes) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    return torch.linear(y.unfold(1, 8, 1).sum([1]), self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = prune(net, {at::randn({4, 6})});
  EXPECT_TRUE(pruned.pruning.plan.groups.empty()) << pruned.dump;
}

TEST(ScriptSource, DeviationsWithBesselsCorrectionMix) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    y = (y - y.mean([-1], True)) / (y.std([-1], True, True) + 1e-3)
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = prune(net, {at::randn({4, 6})}, {.exact_only = false});
  ASSERT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_TRUE(pruned.pruning.plan.groups[0].mixes);
  EXPECT_LE(pruned.misread.value_or(1), 1e-5);
}

TEST(ScriptSource, BehindAnUnknownOperatorPruningGoesOn) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.logcumsumexp(torch.linear(x, self.w1, self.b1), 0)
    y = torch.linear(y, self.w3)
    return torch.linear(torch.relu(y), self.w2, self.b2)
)",
                              two_layers_and({{"w3", {8, 8}}}));
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "unknown operator logcumsumexp"));
}

TEST(ScriptSource, WhatCannotBeWrittenStaysWhole) {
  const Module net =
      scripted(R"(
def forward(self, x):
    parts = [torch.relu(torch.linear(x, self.w1)), torch.relu(torch.linear(x, self.w3))]
    weights = [self.w4, self.w5]
    y = torch.relu(torch.linear(x, self.w6))
    y = torch.linear(y, self.w2, self.b2)
    for i in range(2):
        y = y + torch.linear(parts[i].view([4, 8]), weights[i])
    return y, parts[1]
)",
               two_layers_and({{"w3", {8, 6}}, {"w6", {8, 6}}, {"w4", {3, 8}}, {"w5", {3, 8}}}));
  // One round of the loop would want another number than the other.
  expect_exact(net, {at::randn({4, 6})}, 1);
}

TEST(ScriptSource, SizesOfPartsThatWouldShrinkAreWrittenDown) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    parts = torch.split_with_sizes(self.w3, [y.size(-1), y.size(-1) * 2])
    return torch.linear(torch.linear(y, parts[0]), self.w2, self.b2), torch.linear(y, parts[1])
)",
                              two_layers_and({{"w3", {24, 8}}}));
  expect_exact(net, {at::randn({4, 6})}, 2);
}

TEST(ScriptSource, BoundsComputedFromAnotherSizeAreWrittenDown) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    part = y.size(1) // 4
    z = torch.linear(y, self.w3)
    z = torch.cat([torch.sigmoid(z[:, :part]), z[:, part:]], 1)
    return torch.linear(z, self.w4)
)",
                              two_layers_and({{"w3", {10, 8}}, {"w4", {3, 10}}}));
  const Pruned pruned = expect_exact(net, {at::randn({2, 6})}, 2);
  EXPECT_EQ(pruned.small.attr("w1").toTensor().size(0), 4);
  EXPECT_EQ(pruned.small.attr("w3").toTensor().size(0), 5);
}

TEST(ScriptSource, ListsThatArePutTogetherAreWrittenAnew) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.w1, self.b1)
    y = torch.relu(y).view(y.size()[:-1] + [2, 4])
    y = torch.linear(y.view(y.size()[:-2] + [8]), self.w3)
    return torch.linear(torch.relu(y), self.w2, self.b2)
)",
                              two_layers_and({{"w3", {8, 8}}}));
  expect_exact(net, {at::randn({4, 6})}, 2);
}

TEST(ScriptSource, ListsGrowAndShrinkAndTurnRound) {
  const Module net = scripted(R"(
def forward(self, x):
    ys: List[Tensor] = []
    for i in range(3):
        ys.append(torch.relu(torch.linear(x, self.w1, self.b1)))
    ys.insert(0, ys.pop() * 2)
    ys += [ys[0] * 3]
    ys.reverse()
    y = torch.zeros_like(ys[0])
    for one in ys[::-1]:
        y = y + one
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_LE(pruned.misread.value_or(1), 1e-5);
}

TEST(ScriptSource, NumbersFromSizesAreRounded) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    y = y.view(int(y.size(0) / 2), 2, -1)
    y = y / torch.norm(y, 2, [-1], True)
    return torch.linear(y.squeeze(), self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = prune(net, {at::randn({4, 6})}, {.exact_only = false});
  EXPECT_EQ(pruned.pruning.plan.groups.size(), 1U) << pruned.dump;
  EXPECT_LE(pruned.misread.value_or(1), 1e-5);
}

TEST(ScriptSource, RepeatedRowsStayBesideEachOther) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.repeat_interleave(torch.linear(x, self.w1, self.b1), 3, 0)
    z = torch.repeat_interleave(torch.linear(torch.relu(y), self.w2, self.b2), 2, 1)
    return z + torch.arange(6)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  ASSERT_TRUE(pruned.misread.has_value());
  EXPECT_LE(*pruned.misread, 1e-6);
}

TEST(ScriptSource, WritesIntoPartsArePartsPutTogetherAnew) {
  const Module net = scripted(R"(
def forward(self, x):
    b = self.b1.clone()
    part = b.numel() // 4
    b[part:part * 2].zero_()
    m = torch.zeros([4, 5])
    m[:2, -3:].fill_(2.0)
    m[2:, :-2].fill_(3.0)
    m[1, 1:3].add_(1.0)
    m[3].copy_(torch.ones([5]))
    y = torch.relu(torch.linear(x, self.w1, b))
    return torch.linear(y, self.w2, self.b2), m * y.sum()
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  ASSERT_TRUE(pruned.misread.has_value());
  EXPECT_LE(*pruned.misread, 1e-6);
}

/// Nothing is written where only the view of a tensor changes.
TEST(ScriptSource, ShapesThatChangeInPlaceAreViews) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.relu(torch.linear(x, self.w1, self.b1))
    z = y.unsqueeze(0).squeeze_(0).unsqueeze_(1).transpose_(0, 1).squeeze_(0)
    return torch.linear(z, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 1);
  EXPECT_LE(pruned.misread.value_or(1), 1e-6);
}

TEST(ScriptSource, WritesIntoAPrunedPartFollowIt) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.w1, self.b1).clone()
    y[:, 2:6] = torch.relu(y[:, 0:4])
    y[:, 6:8].mul_(3.0)
    return torch.linear(y, self.w2, self.b2)
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 2);
  ASSERT_TRUE(pruned.misread.has_value());
  EXPECT_LE(*pruned.misread, 1e-6);
}

TEST(ScriptSource, APartThatIsStillReadKeepsItsWholeWhole) {
  const Module net = scripted(R"(
def forward(self, x):
    y = torch.linear(x, self.w1, self.b1).clone()
    z = y[:, 2:6]
    y[:, 3:5].mul_(3.0)
    return torch.linear(y, self.w2, self.b2) + z.sum()
)",
                              two_layers());
  const Pruned pruned = expect_exact(net, {at::randn({4, 6})}, 0);
  EXPECT_TRUE(is_whole(pruned, "w1[0]", "unknown operator mul_"));
}

}  // namespace
}  // namespace parsimony::test
