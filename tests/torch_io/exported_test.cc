// Programs of torch.export, as PyTorch 2.6 and 2.14 write them: tests/exported.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "parsimony/api/prune_model.h"
#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/new_checkpoint.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/graph/elements.h"
#include "parsimony/programs/exported/model.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/script/script_file.h"
#include "parsimony/torch_io/tensor.h"
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

Json program_of(const std::string& path) { return Json::parse(programs::Archive(path).program()); }

/// Prunes by half and writes the small file, without libtorch.
Plan prune_file_to(const std::string& from, const std::string& to) {
  programs::ExportedModel model(from, {});
  PruneRequest request = from_shorthand({.criterion = "l1", .ratio = 0.5});
  request.inputs = model.inputs();
  request.verify = false;
  const PruneResult result = prune_model(model, request);
  model.write(to);
  return result.plan;
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

/// What was written computes in libtorch what the original does with the plan's channels masked.
TEST_P(ExportedProgram, WhatIsWrittenIsTheMaskedNetwork) {
  at::manual_seed(1);
  const TemporaryFolder folder;
  const Plan plan = prune_file_to(path(), folder / "small.pt2");
  const ScriptFile original(path());
  const std::vector<at::Tensor> inputs = random_inputs(original.inputs());
  torch_io::ScriptModel model(path(), original.inputs());
  torch_io::TorchEngine engine;
  TensorList values;
  for (const at::Tensor& input : inputs) {
    const Weight view = torch_io::view_of("x", input);
    values.push_back({"", view.dtype, view.dims, dense_bytes(view)});
  }
  const TensorList masked = model.open_masked(engine, plan)->run({values}).at(0);
  const auto small = run(ScriptFile(folder / "small.pt2").module(), as_values(inputs));
  ASSERT_EQ(small.size(), masked.size());
  for (size_t i = 0; i < small.size(); ++i) {
    const at::Tensor found = small[i].contiguous();
    const Weight view = torch_io::view_of("y", found);
    EXPECT_LE(difference_of(masked[i], {"", view.dtype, view.dims, dense_bytes(view)}), 1e-5);
  }
}

/// Every size that the small program declares is that of a run.
TEST_P(ExportedProgram, DeclaredSizesAreThoseOfARun) {
  namespace exported = torch_io::exported;
  const TemporaryFolder folder;
  const std::string small = folder / "small.pt2";
  prune_file_to(path(), small);
  const programs::Archive archive(small);
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
  const programs::Archive archive(folder / "small.pt2");
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
