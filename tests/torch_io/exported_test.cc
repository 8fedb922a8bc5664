// Programs of torch.export, as PyTorch 2.6 and 2.14 write them: tests/exported.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/new_checkpoint.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/exported/words_impl.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/script/script_file.h"
#include "parsimony/torch_io/tensor.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temporary_folder.h"
#include "tests/torch_io/script_support.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::ordered_json;
using torch_io::ScriptFile;

const std::string kFolder = "tests/exported/";

std::vector<std::string> all_programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<at::Tensor> random_inputs(const std::vector<InputSpec>& specs) {
  std::vector<at::Tensor> inputs;
  for (const InputSpec& spec : specs) {
    const at::ScalarType type = torch_io::scalar_type_of(spec.dtype);
    inputs.push_back(at::isFloatingType(type) ? at::randn(spec.dims, type)
                                              : at::randint(0, 5, spec.dims, type));
  }
  return inputs;
}

std::vector<c10::IValue> as_values(const std::vector<at::Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

Json program_of(const std::string& path) {
  return Json::parse(torch_io::exported::Archive(path).program());
}

/// Prunes by half and writes the small file.
Plan prune_file_to(const std::string& from, const std::string& to,
                   InterfaceOptions interface = {}) {
  ScriptFile file(from);
  torch_io::ScriptGraph& script = file.read({});
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = file.inputs();
  request.interface = std::move(interface);
  Plan plan = plan_pruning(script.graph, request).plan;
  apply_plan(plan, script.graph, choose_probe(script.graph, file.inputs()), file.editor());
  file.write(to);
  return plan;
}

/// Copies an archive; `change` may give an entry another content, or none.
void copy_with(
    const std::string& from, const std::string& to,
    const std::function<std::optional<std::string>(const std::string&, std::string)>& change) {
  const MappedFile file(from);
  const ZipReader zip(file.bytes(), from);
  NewFile copy(to);
  ZipWriter writer(copy);
  for (const ZipEntry& entry : zip.entries()) {
    const auto content = change(entry.name, std::string(zip.content(entry)));
    if (content) writer.add(entry.name, *content);
  }
  writer.finish();
  copy.commit();
}

bool is_program(const std::string& entry) {
  return entry.ends_with("program.json") || entry.ends_with("model.json");
}

class ExportedProgram : public testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return kFolder + GetParam(); }
};

TEST_P(ExportedProgram, PrunedEqualsMasked) {
  at::manual_seed(1);
  const ScriptFile file(path());
  const Pruned pruned = prune(file.module(), as_values(random_inputs(file.inputs())),
                              {.ratio = 0.5, .exact_only = true});
  EXPECT_LE(pruned.difference, 1e-5);
  EXPECT_TRUE(pruned.misread.has_value());
  EXPECT_LE(pruned.misread.value_or(0), 1e-5);
}

TEST_P(ExportedProgram, UnchangedItIsTheSameFile) {
  const TemporaryFolder folder;
  ScriptFile file(path());
  file.read({});
  file.write(folder / "same.pt2");
  EXPECT_TRUE(same_bytes(read_file(folder / "same.pt2"), read_file(path())));
}

/// What was written computes what the editor's module does, and again after being read and written.
TEST_P(ExportedProgram, WhatIsWrittenIsTheSmallNetwork) {
  at::manual_seed(1);
  const TemporaryFolder folder;
  ScriptFile file(path());
  torch_io::ScriptGraph& script = file.read({});
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = file.inputs();
  const Pruning pruning = plan_pruning(script.graph, request);
  ASSERT_FALSE(pruning.plan.groups.empty());
  apply_plan(pruning.plan, script.graph, pruning.analysis.probe, file.editor());
  const auto inputs = as_values(random_inputs(file.inputs()));
  const auto requested = run(file.small(), inputs);
  file.write(folder / "small.pt2");
  ScriptFile small(folder / "small.pt2");
  EXPECT_LE(relative_difference(run(small.module(), inputs), requested), 1e-6);
  EXPECT_FALSE(analyse(small.read({}).graph).coupling.groups.empty())
      << "shapes fit, unread ones too";
  EXPECT_EQ(small.inputs().size(), file.inputs().size());
}

/// Every size that the small program declares is that of a run.
TEST_P(ExportedProgram, DeclaredSizesAreThoseOfARun) {
  namespace exported = torch_io::exported;
  const TemporaryFolder folder;
  const std::string small = folder / "small.pt2";
  prune_file_to(path(), small);
  const exported::Archive archive(small);
  const exported::Program program = exported::assemble(archive, small);
  const auto graph = program.module.get_method("forward").graph()->copy();
  std::vector<Json::json_pointer> declared_in;
  graph->eraseOutput(0);
  for (torch::jit::Node* node : graph->nodes()) {
    const auto step = exported::step_of(*node);
    if (!step) continue;
    for (torch::jit::Value* output : node->outputs()) {
      const bool tensor = output->type()->kind() == c10::TypeKind::TensorType;
      const std::string& name = program.steps[*step].outputs.at(tensor ? output->offset() : 0);
      if (!tensor || name.empty()) continue;
      graph->registerOutput(output);
      declared_in.push_back(Json::json_pointer(exported::graph_of(program.steps[*step].place)) /
                            "tensor_values" / name);
    }
  }
  std::vector<c10::IValue> values =
      torch_io::run_graph(program.module, graph, random_inputs(program.inputs));
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(declared_in.size()));
  const Json json = program_of(small);
  ASSERT_FALSE(declared_in.empty());
  for (size_t i = 0; i < declared_in.size(); ++i) {
    std::vector<int64_t> declared;
    for (const Json& size : json.at(declared_in[i])["sizes"]) {
      declared.push_back(size.contains("as_int")
                             ? size["as_int"].get<int64_t>()
                             : size["as_expr"]["hint"]["as_int"].get<int64_t>());
    }
    EXPECT_EQ(declared, values[i].toTensor().sizes().vec()) << declared_in[i];
  }
}

/// So is that of a value that goes into a sub-graph or comes out of it.
TEST(Exported, SubGraphsDeclareTheSizesAround) {
  const TemporaryFolder folder;
  prune_file_to(kFolder + "tiny_guarded.2.14.pt2", folder / "small.pt2");
  const torch_io::exported::Archive archive(folder / "small.pt2");
  const auto program = torch_io::exported::assemble(archive, folder / "small.pt2");
  const Json json = program_of(folder / "small.pt2");
  const auto sizes = [&](const std::string& graph, const std::string& name) {
    return json.at(Json::json_pointer(graph) / "tensor_values" / name)["sizes"];
  };
  ASSERT_FALSE(program.aliases.empty());
  for (const auto& [from_graph, from, to_graph, to] : program.aliases) {
    EXPECT_EQ(sizes(from_graph, from), sizes(to_graph, to)) << to;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExportedProgram, testing::ValuesIn(all_programs()),
                         [](const testing::TestParamInfo<std::string>& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(Exported, DynamicDimensionsStay) {
  const TemporaryFolder folder;
  prune_file_to(kFolder + "tiny_image.2.14.pt2", folder / "small.pt2");
  const Json graph = program_of(folder / "small.pt2")["graph_module"]["graph"];
  const Json& sizes = graph["tensor_values"]["conv2d"]["sizes"];
  EXPECT_TRUE(sizes[0].contains("as_expr")) << sizes.dump();
  EXPECT_EQ(sizes[1]["as_int"], 4) << sizes.dump();
  ScriptFile small(folder / "small.pt2");
  EXPECT_EQ(run(small.module(), {at::randn({5, 3, 8, 8})})[0].sizes().vec(),
            (std::vector<int64_t>{5, 5}));
}

TEST(Exported, AFreeInputDeclaresItsSize) {
  const TemporaryFolder folder;
  prune_file_to(kFolder + "tiny_image.2.14.pt2", folder / "small.pt2", {{}, {"x:1"}});
  const Json graph = program_of(folder / "small.pt2")["graph_module"]["graph"];
  const Json& sizes = graph["tensor_values"]["x"]["sizes"];
  EXPECT_TRUE(sizes[0].contains("as_expr")) << sizes.dump();
  EXPECT_EQ(sizes[1]["as_int"], 2) << sizes.dump();  // of three, half of them gone
  EXPECT_EQ(sizes[2]["as_int"], 8) << sizes.dump();
}

/// Unequal parts need their sizes: chunk has none.
TEST(Exported, PartsOfOtherSizesAreNamed) {
  const TemporaryFolder folder;
  ScriptFile file(kFolder + "tiny_image.2.6.pt2");
  torch_io::ScriptGraph& script = file.read({});
  PruneRequest request;
  request.inputs = file.inputs();
  ConfigList config = from_shorthand({.criterion = "l1", .ratio = 0.5, .exclude = {"conv2"}});
  request.config = config;
  Pruning pruning = plan_pruning(script.graph, request);
  apply_plan(pruning.plan, script.graph, pruning.analysis.probe, file.editor());
  const auto inputs = as_values(random_inputs(file.inputs()));
  const auto requested = run(file.small(), inputs);
  file.write(folder / "small.pt2");
  EXPECT_LE(relative_difference(run(ScriptFile(folder / "small.pt2").module(), inputs), requested),
            1e-6);
}

/// Both names of a tied tensor are cut, though the program reads one.
TEST(Exported, TiedTensorsStayTied) {
  for (const std::string version : {"2.6", "2.14"}) {
    const TemporaryFolder folder;
    prune_file_to(kFolder + "tiny_text." + version + ".pt2", folder / "small.pt2");
    const torch_io::exported::Archive archive(folder / "small.pt2");
    const at::Tensor head = archive.tensors().at("net.head.weight");
    EXPECT_TRUE(head.is_same(archive.tensors().at("net.tokens.weight"))) << version;
    EXPECT_EQ(head.size(1), 4) << version;
  }
}

/// What stands in the sub-graphs of torch.cond, and their declared sizes.
TEST(Exported, BranchesOfTheRunAreWritten) {
  const TemporaryFolder folder;
  prune_file_to(kFolder + "branch.2.14.pt2", folder / "small.pt2");
  const Json program = program_of(folder / "small.pt2");
  const Json& nodes = program["graph_module"]["graph"]["nodes"];
  const auto cond = std::ranges::find_if(
      nodes, [](const Json& node) { return node["target"] == "torch.ops.higher_order.cond"; });
  ASSERT_NE(cond, nodes.end());
  const Json& graph = (*cond)["inputs"][1]["arg"]["as_graph"]["graph"];
  std::vector<Json> shapes;
  for (const Json& node : graph["nodes"]) {
    for (const Json& input : node["inputs"]) {
      if (input["arg"].contains("as_ints")) shapes.push_back(input["arg"]["as_ints"]);
    }
  }
  EXPECT_EQ(shapes, (std::vector<Json>{{-1, 3, 2}, {-1, 6}}));
  const auto size = [&](const char* name) {
    return graph["tensor_values"][name]["sizes"].back()["as_int"].get<int64_t>();
  };
  EXPECT_EQ(size("view"), 2);
  EXPECT_EQ(size("p_b_weight"), 6);
}

/// A bypassed sum takes with it what only its other operand needed.
TEST(Exported, WhatIsBypassedIsGone) {
  at::manual_seed(1);
  const TemporaryFolder folder;
  for (const std::string version : {"2.6", "2.14"}) {
    const std::string path = kFolder + "tiny_image." + version + ".pt2";
    ScriptFile file(path);
    const Graph& graph = file.read({}).graph;
    std::string sum;  // of the trunk and its branch: a normalisation and a convolution
    for (const Node& node : graph.nodes) {
      const auto computed = [&](ValueId value) {
        return graph.value(value).weight == kNone && !graph.value(value).is_input;
      };
      if (node.op == "Add" && std::ranges::all_of(node.inputs, computed)) sum = node.name;
    }
    const auto inputs = as_values(random_inputs(file.inputs()));
    file.editor().bypass(sum, 0);
    const auto requested = run(file.small(), inputs);
    file.write(folder / "small.pt2");
    EXPECT_LE(
        relative_difference(run(ScriptFile(folder / "small.pt2").module(), inputs), requested),
        1e-6);
    const torch_io::exported::Archive before(path);
    const torch_io::exported::Archive after(folder / "small.pt2");
    EXPECT_EQ(after.tensors().size() + 3, before.tensors().size()) << version;
    EXPECT_LT(program_of(folder / "small.pt2")["graph_module"]["graph"]["nodes"].size(),
              program_of(path)["graph_module"]["graph"]["nodes"].size());
  }
}

/// A copy of a tensor becomes a parameter of the program; of the original, which then nothing
/// reads, nothing stays.
TEST(Exported, ACopyTakesThePlaceOfItsOriginal) {
  at::manual_seed(1);
  const TemporaryFolder folder;
  for (const std::string version : {"2.6", "2.7", "2.14"}) {
    ScriptFile file(kFolder + "tiny_image." + version + ".pt2");
    const Graph& graph = file.read({}).graph;
    const auto reader = std::ranges::find_if(graph.nodes, [&](const Node& node) {
      return node.op == "Conv" &&
             graph.weight(graph.value(node.inputs[1]).weight).name == "conv4.weight";
    });
    ASSERT_NE(reader, graph.nodes.end());
    const auto inputs = as_values(random_inputs(file.inputs()));
    const auto requested = run(file.module(), inputs);
    file.editor().copy("own.weight", "conv4.weight", reader->name, 1);
    file.write(folder / "copied.pt2");
    EXPECT_LE(
        relative_difference(run(ScriptFile(folder / "copied.pt2").module(), inputs), requested),
        1e-6);
    const torch_io::exported::Archive copied(folder / "copied.pt2");
    EXPECT_FALSE(copied.tensors().contains("conv4.weight")) << version;
    EXPECT_TRUE(copied.tensors().contains("own_weight")) << version;
  }
}

bool has_opaque(const Graph& graph, const std::string& op) {
  return std::ranges::any_of(
      graph.nodes, [&](const Node& node) { return node.op == op && node.domain == "torch"; });
}

/// A program with another operator in the place of its first relu.
void rename_relu(const std::string& target, const std::string& to) {
  copy_with(kFolder + "nested.2.14.pt2", to,
            [&](const std::string& name, std::string content) -> std::optional<std::string> {
              const std::string from = "torch.ops.aten.relu.default";
              const size_t at = is_program(name) ? content.find(from) : std::string::npos;
              if (at != std::string::npos) content.replace(at, from.size(), target);
              return content;
            });
}

/// An operator that no version of libtorch has pins what it reads, and is not run.
TEST(Exported, UnknownOperatorsPin) {
  const TemporaryFolder folder;
  rename_relu("torch.ops.my.relu.default", folder / "other.pt2");
  ScriptFile file(folder / "other.pt2");
  EXPECT_TRUE(has_opaque(file.read({}).graph, "relu"));
}

/// A file does not choose what is run: neither what touches other files nor what is no operator.
TEST(Exported, OperatorsThatDoMoreThanComputeAreNotRun) {
  for (const std::string target : {"aten.from_file", "aten.save", "prim.If", "prim.Loop"}) {
    const TemporaryFolder folder;
    rename_relu("torch.ops." + target + ".default", folder / "other.pt2");
    ScriptFile file(folder / "other.pt2");
    EXPECT_TRUE(has_opaque(file.read({}).graph, target.substr(target.find('.') + 1))) << target;
    EXPECT_ANY_THROW(run(file.module(), as_values(random_inputs(file.inputs())))) << target;
  }
}

struct Damage {
  const char* name;
  const char* file;
  const char* entry;  ///< that ends like this; empty: the program
  const char* from;   ///< empty: the entry goes
  const char* to;
  const char* message;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedProgram : public testing::TestWithParam<Damage> {};

TEST_P(DamagedProgram, IsRefusedWithItsPlace) {
  const Damage& damage = GetParam();
  const TemporaryFolder folder;
  copy_with(kFolder + damage.file, folder / "damaged.pt2",
            [&](const std::string& name, std::string content) -> std::optional<std::string> {
              const std::string_view entry = damage.entry;
              if (entry.empty() ? !is_program(name) : !name.ends_with(entry)) return content;
              const std::string from = damage.from;
              if (from.empty()) return std::nullopt;
              const size_t at = content.find(from);
              EXPECT_NE(at, std::string::npos) << from;
              content.replace(at, from.size(), damage.to);
              return content;
            });
  try {
    ScriptFile file(folder / "damaged.pt2");
    file.read({});
    FAIL() << "was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(damage.message), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedProgram,
    testing::Values(
        Damage{"NoGraph", "nested.2.14.pt2", "", "\"graph\": {\"inputs\"", "\"other\": {\"inputs\"",
               "graph_module"},
        Damage{"UnknownValue", "nested.2.14.pt2", "", "{\"as_tensor\": {\"name\": \"conv2d\"}}, \"",
               "{\"as_tensor\": {\"name\": \"nobody\"}}, \"", "there is no earlier value named"},
        Damage{"NoName", "nested.2.6.pt2", "", "{\"name\": \"input\", \"arg\"",
               "{\"mane\": \"input\", \"arg\"", "inputs[0]"},
        Damage{"TargetIsANumber", "nested.2.6.pt2", "", "\"torch.ops.aten.conv2d.default\"", "7",
               "target"},
        Damage{"NotJson", "nested.2.6.pt2", "", "{\"graph_module\"", "{{\"graph_module\"",
               "not JSON"},
        Damage{"MissingTensor", "nested.2.14.pt2", "weights_config.json", "\"head.bias\"",
               "\"head.sibias\"", "head.bias"},
        Damage{"MissingBytes", "nested.2.14.pt2", "data/weights/weight_0", "", "", "weight_0"},
        Damage{"BeyondItsBytes", "nested.2.14.pt2", "weights_config.json",
               "\"strides\": [{\"as_int\": 27}", "\"strides\": [{\"as_int\": 2700}",
               "needs more elements"},
        Damage{"TooManyElements", "nested.2.14.pt2", "weights_config.json", "{\"as_int\": 16}",
               "{\"as_int\": 16000000000}", "elements"},
        Damage{"NegativeStride", "nested.2.14.pt2", "weights_config.json",
               "\"strides\": [{\"as_int\": 27}", "\"strides\": [{\"as_int\": -27}", "strides"},
        Damage{"UnknownType", "nested.2.14.pt2", "weights_config.json", "\"dtype\": 7",
               "\"dtype\": 99", "type"},
        Damage{"NoPickle", "nested.2.6.pt2", "state_dict.pt", "", "", "missing in the archive"},
        Damage{"OtherPickle", "nested.2.6.pt2", "state_dict.pt", "PK", "KP", "zip archive"},
        Damage{"NoProgram", "nested.2.6.pt2", "program.json", "", "", "program"}),
    [](const testing::TestParamInfo<Damage>& one) { return one.param.name; });

/// A new file of torch.save is read as what was written.
TEST(NewCheckpoint, IsReadBack) {
  const TemporaryFolder folder;
  const at::Tensor a = at::randn({3, 2});
  const at::Tensor b = at::arange(4);
  const auto plain = [](const char* name, const at::Tensor& tensor, const char* type) {
    return PlainTensor{
        .name = name,
        .type = element_type_of_name(type),
        .dims = tensor.sizes().vec(),
        .elements = {static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()},
        .is_parameter = tensor.is_floating_point(),
        .requires_grad = tensor.is_floating_point()};
  };
  const std::vector<PlainTensor> tensors = {plain("a", a, "float32"), plain("b", b, "int64"),
                                            plain("tied", a, "float32")};
  write_new_checkpoint(folder / "new.pt", tensors);
  const auto checkpoint = open_checkpoint(folder / "new.pt");
  ASSERT_EQ(checkpoint->tensors().size(), 3U);
  EXPECT_TRUE(checkpoint->globals().refused.empty());
  EXPECT_EQ(checkpoint->tensors()[TensorId(0)].storage, checkpoint->tensors()[TensorId(2)].storage);
  EXPECT_EQ(checkpoint->tensors()[TensorId(1)].dims, (Shape{4}));
  const StoredValues values = checkpoint->values(TensorId(0));
  EXPECT_TRUE(std::ranges::equal(values.bytes(), tensors[0].elements));
}

}  // namespace
}  // namespace parsimony::test
