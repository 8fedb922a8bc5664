// Programs of torch.export, as PyTorch 2.6 to 2.15 write them (tests/exported), without libtorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "parsimony/api/engines.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/programs/exported/model.h"
#include "tests/support/same_bytes.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::ordered_json;
using programs::Archive;
using programs::ExportedModel;

const std::string kFolder = "tests/exported/";

std::vector<std::string> all_programs() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json program_of(const std::string& path) { return Json::parse(Archive(path).program().json()); }

/// Prunes by half and writes the small file; proven where there is ONNX Runtime.
PruneResult prune_file_to(const std::string& from, const std::string& to,
                          InterfaceOptions interface = {},
                          const std::vector<std::string>& exclude = {},
                          Granularity granularity = Granularity::kChannel) {
  ExportedModel model(from, {});
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5, .exclude = exclude});
  request.inputs = model.inputs();
  request.interface = std::move(interface);
  request.granularity = granularity;
  std::unique_ptr<Engine> engine;
  try {
    engine = onnx_runtime_engine(runtime::find_onnx_runtime(), {});
  } catch (const UnsupportedError&) {
    request.verify = false;
  }
  PruneServices services;
  services.engine = engine.get();
  PruneResult result = prune_model(model, request, services);
  // ONNX Runtime gets no memory that is seen twice, and no mixed channels of inputs.
  const bool runs = engine != nullptr && from.find("aliases") == std::string::npos &&
                    request.interface.free.empty();
  EXPECT_TRUE(!runs || (result.proof.ran() && result.proof.holds())) << result.proof.not_run;
  model.write(to);
  return result;
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

/// Copies an archive with `to` in place of the first `from` in its program.
void copy_with_program(const std::string& file, const std::string& copy, const std::string& from,
                       const std::string& to) {
  copy_with(file, copy,
            [&](const std::string& name, std::string content) -> std::optional<std::string> {
              const size_t at = is_program(name) ? content.find(from) : std::string::npos;
              EXPECT_TRUE(!is_program(name) || at != std::string::npos) << from;
              if (at != std::string::npos) content.replace(at, from.size(), to);
              return content;
            });
}

class ExportedFile : public testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return kFolder + GetParam(); }
};

TEST_P(ExportedFile, IsPrunedProvenAndReadAgain) {
  const TemporaryFolder folder;
  const PruneResult result = prune_file_to(path(), folder / "small.pt2");
  EXPECT_FALSE(result.plan.groups.empty());
  ExportedModel original(path(), {});
  ExportedModel small(folder / "small.pt2", {});
  EXPECT_EQ(small.graph().inputs.size(), original.graph().inputs.size());
  EXPECT_FALSE(analyse(small.graph()).coupling.groups.empty()) << "shapes fit, unread ones too";
}

TEST_P(ExportedFile, HasOnlyKnownOperators) {
  ExportedModel model(path(), {});
  for (const Node& node : model.graph().nodes) {
    EXPECT_TRUE(node.domain != "torch" || node.op == "write") << node.op;
  }
}

TEST_P(ExportedFile, UnchangedItIsTheSameFile) {
  const TemporaryFolder folder;
  ExportedModel(path(), {}).write(folder / "same.pt2");
  EXPECT_TRUE(same_bytes(read_file(folder / "same.pt2"), read_file(path())));
}

INSTANTIATE_TEST_SUITE_P(All, ExportedFile, testing::ValuesIn(all_programs()),
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
  InputSpec input;
  input.dims = {5, 3, 8, 8};
  ExportedModel small(folder / "small.pt2", {input});
  const Facts facts = infer(small.graph(), {.inputs = {input}});
  EXPECT_EQ(facts.shapes[small.graph().outputs[0]], (Shape{5, 5}));
}

TEST(Exported, InputsMayBeGivenByName) {
  const std::string path = kFolder + "tiny_waves.2.6.pt2";
  const std::vector<InputSpec> as_exported = ExportedModel(path, {}).inputs();
  const InputSpec t = parse_input_spec("t=2:float32");
  const InputSpec x = parse_input_spec("x=2x8x3:float32");
  for (const std::vector<InputSpec>& specs : {std::vector<InputSpec>{t, x}, {x}, {t}}) {
    ExportedModel model(path, specs);
    EXPECT_EQ(model.inputs(), as_exported);
    const Facts facts = infer(model.graph(), choose_probe(model.graph(), specs));
    EXPECT_EQ(facts.shapes[model.graph().inputs[0]], (Shape{2, 8, 3}));
    EXPECT_EQ(facts.shapes[model.graph().inputs[1]], (Shape{2}));
  }
  EXPECT_THROW(ExportedModel(path, {parse_input_spec("y=2:float32")}), ConfigError);
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
  ExportedModel model(kFolder + "tiny_image.2.6.pt2", {});
  const Graph& graph = model.graph();
  const auto split =
      std::ranges::find_if(graph.nodes, [](const Node& node) { return node.op == "Split"; });
  ASSERT_NE(split, graph.nodes.end());
  const AxisKeep rows{0, 8, {0, 1, 2, 4, 5, 6, 7}};
  for (const char* tensor : {"conv1.weight", "conv1.bias", "bn.weight", "bn.bias",
                             "bn.running_mean", "bn.running_var"}) {
    model.editor().slice(tensor, {&rows, 1});
  }
  const AxisKeep columns{1, 4, {0, 1, 2}};
  model.editor().slice("conv2.weight", {&columns, 1});
  model.editor().set_input(key_of(graph, *split), 1, HostTensor::vector({3, 4}));
  model.finalize();
  model.write(folder / "small.pt2");
  const Json nodes = program_of(folder / "small.pt2")["graph_module"]["graph"]["nodes"];
  const auto named = std::ranges::find_if(nodes, [](const Json& node) {
    return node["target"] == "torch.ops.aten.split_with_sizes.default";
  });
  ASSERT_NE(named, nodes.end());
  EXPECT_EQ((*named)["inputs"][1]["arg"], Json::parse(R"({"as_ints": [3, 4]})"));
}

/// Both names of a tied tensor are cut, though the program reads one.
TEST(Exported, TiedTensorsStayTied) {
  for (const std::string version : {"2.6", "2.14"}) {
    const TemporaryFolder folder;
    prune_file_to(kFolder + "tiny_text." + version + ".pt2", folder / "small.pt2");
    const Archive archive(folder / "small.pt2");
    const programs::ArchivedTensor& head = archive.tensors().at("net.head.weight");
    EXPECT_EQ(head.elements.data(), archive.tensors().at("net.tokens.weight").elements.data());
    EXPECT_EQ(head.dims.at(1), 4) << version;
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
  const TemporaryFolder folder;
  for (const std::string version : {"2.6", "2.14"}) {
    const std::string path = kFolder + "tiny_image." + version + ".pt2";
    ExportedModel model(path, {});
    const Graph& graph = model.graph();
    std::string sum;  // of the trunk and its branch: a normalisation and a convolution
    for (const Node& node : graph.nodes) {
      const auto computed = [&](ValueId value) {
        return graph.value(value).weight == kNone && !graph.value(value).is_input;
      };
      if (node.op == "Add" && std::ranges::all_of(node.inputs, computed)) sum = node.name;
    }
    model.editor().bypass({{{sum, 0}}});
    model.finalize();
    model.write(folder / "small.pt2");
    const Archive before(path);
    const Archive after(folder / "small.pt2");
    EXPECT_EQ(after.tensors().size() + 3, before.tensors().size()) << version;
    EXPECT_LT(program_of(folder / "small.pt2")["graph_module"]["graph"]["nodes"].size(),
              program_of(path)["graph_module"]["graph"]["nodes"].size());
  }
}

/// A copy of a tensor becomes a parameter of the program; of the original, which then nothing
/// reads, nothing stays.
TEST(Exported, ACopyTakesThePlaceOfItsOriginal) {
  const TemporaryFolder folder;
  for (const std::string version : {"2.6", "2.7", "2.14"}) {
    ExportedModel model(kFolder + "tiny_image." + version + ".pt2", {});
    const Graph& graph = model.graph();
    const auto reader = std::ranges::find_if(graph.nodes, [&](const Node& node) {
      return node.op == "Conv" && graph.weight_of(node.inputs[1]).name == "conv4.weight";
    });
    ASSERT_NE(reader, graph.nodes.end());
    model.editor().copy("own.weight", "conv4.weight", reader->name, 1);
    model.finalize();
    model.write(folder / "copied.pt2");
    const Archive copied(folder / "copied.pt2");
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
TEST(Exported, ValuesThatAreAssignedAfterTheProofAreWritten) {
  const TemporaryFolder folder;
  ExportedModel model(kFolder + "tiny_rotary.2.15.pt2", {});
  const PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  const Pruning pruning = plan_pruning(model.graph(), request);
  apply_plan(pruning, model.graph(), model.editor());
  model.finalize();
  model.write(folder / "before.pt2");
  try {
    model.open(*onnx_runtime_engine(runtime::find_onnx_runtime(), {}));
  } catch (const UnsupportedError&) {
    GTEST_SKIP() << "there is no ONNX Runtime";
  }
  const std::vector<float> bias(8, 3.5F);
  model.editor().assign("out.bias", std::as_bytes(std::span(bias)));
  model.finalize();
  model.write(folder / "after.pt2");
  const auto elements = [](const Archive& archive) {
    const auto bytes = archive.tensors().at("out.bias").elements;
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  EXPECT_TRUE(
      std::ranges::equal(elements(Archive(folder / "after.pt2")), std::as_bytes(std::span(bias))));
  EXPECT_NE(elements(Archive(folder / "before.pt2")), elements(Archive(folder / "after.pt2")));
}

TEST(Exported, ExpertsOfALoopLeave) {
  const TemporaryFolder folder;
  const PruneResult result = prune_file_to(kFolder + "tiny_experts.2.15.pt2", folder / "small.pt2",
                                           {}, {}, Granularity::kExpert);
  ASSERT_EQ(result.plan.groups.size(), 1U);
  EXPECT_EQ(result.plan.groups[0].kept, 2);
  EXPECT_EQ(result.plan.blocks.size(), 2U);
  ExportedModel small(folder / "small.pt2", {});
  EXPECT_EQ(std::ranges::count_if(small.graph().weights,
                                  [](const Weight& w) { return w.name.starts_with("experts."); }),
            2 * 4);
}

TEST(Exported, PartsThatAreWrittenArePutTogetherAnew) {
  ExportedModel model(kFolder + "tiny_writes.2.15.pt2", {});
  const auto prunes = [](ExportedModel& one) {
    const PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
    std::set<std::string> tensors;
    for (const PlanGroup& group : plan_pruning(one.graph(), request).plan.groups) {
      for (const PlanSlice& slice : group.slices) {
        tensors.insert(slice.tensor + "[" + std::to_string(slice.axis) + "]");
      }
    }
    return tensors;
  };
  EXPECT_TRUE(prunes(model).contains("conv.weight[0]"));
  // What shows the memory under another name, and is read after the write, stays.
  ExportedModel aliases(kFolder + "tiny_aliases.2.15.pt2", {});
  EXPECT_FALSE(prunes(aliases).contains("conv.weight[0]"));
  EXPECT_TRUE(prunes(aliases).contains("first.weight[0]"));
  EXPECT_THROW(onnx_io::export_onnx(aliases.graph(), aliases.sizes()), UnsupportedError);
}

TEST(Exported, UnknownOperatorsPin) {
  const TemporaryFolder folder;
  rename_relu("torch.ops.my.relu.default", folder / "other.pt2");
  EXPECT_TRUE(has_opaque(ExportedModel(folder / "other.pt2", {}).graph(), "relu"));
}

TEST(Exported, ANewerMinorSchemaIsReadWithANote) {
  const TemporaryFolder folder;
  copy_with_program(kFolder + "nested.2.14.pt2", folder / "newer.pt2", R"("minor": 20)",
                    R"("minor": 21)");
  ExportedModel model(folder / "newer.pt2", {});
  ASSERT_EQ(model.graph().notes.size(), 1U);
  EXPECT_NE(model.graph().notes[0].find("schema version 8.21"), std::string::npos);
}

TEST(Exported, AMillionLevelsAreRefused) {
  const TemporaryFolder folder;
  const std::string list = R"("guards_code": [)";
  copy_with_program(kFolder + "nested.2.14.pt2", folder / "deep.pt2", list,
                    list + std::string(1000000, '['));
  EXPECT_THROW(ExportedModel(folder / "deep.pt2", {}), ModelError);
}

TEST(Exported, WhatIsCutShortIsRefused) {
  const TemporaryFolder folder;
  for (const char* file : {"nested.2.6.pt2", "nested.2.14.pt2"}) {
    const std::string whole = read_file(kFolder + file);
    for (size_t part = 0; part < 50; ++part) {
      write_file(folder / "short.pt2", whole.substr(0, whole.size() * part / 50));
      EXPECT_THROW(ExportedModel(folder / "short.pt2", {}), Error) << file << ", part " << part;
    }
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
    ExportedModel model(folder / "damaged.pt2", {});
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
        Damage{"NewerSchema", "nested.2.14.pt2", "", "\"major\": 8", "\"major\": 9",
               "schema version 9.20 of a newer PyTorch"},
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
        Damage{"BigEndian", "nested.2.14.pt2", "byteorder", "little", "big", "big-endian"},
        Damage{"OutOfTheArchive", "nested.2.14.pt2", "weights_config.json",
               "\"path_name\": \"weight_0\"", "\"path_name\": \"../../../etc/passwd\"",
               "the archive has no ../../../etc/passwd"},
        Damage{"OffsetOverflows", "nested.2.14.pt2", "weights_config.json",
               "\"storage_offset\": {\"as_int\": 0}",
               "\"storage_offset\": {\"as_int\": 9223372036854775807}", "elements"},
        Damage{"NoPickle", "nested.2.6.pt2", "state_dict.pt", "", "", "missing in the archive"},
        Damage{"OtherPickle", "nested.2.6.pt2", "state_dict.pt", "PK", "KP", "zip archive"},
        Damage{"NoProgram", "nested.2.6.pt2", "program.json", "", "", "program"}),
    [](const testing::TestParamInfo<Damage>& one) { return one.param.name; });

}  // namespace
}  // namespace parsimony::test
