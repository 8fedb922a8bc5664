#include "parsimony/programs/exported/model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/hash.h"
#include "parsimony/graph/interface.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/weights.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/model.h"

namespace parsimony::programs {
namespace {

/// Numbers whose changes cannot be written stay; the plan leaves their dimensions whole.
class ProgramSource final : public ParameterSource {
 public:
  ProgramSource(const Archive& archive, const Program& program)
      : archive_(archive), program_(program) {}

  std::vector<NodeId> unwritable(const Graph& /*graph*/,
                                 const std::vector<Patch>& patches) const override {
    return ProgramEditor(archive_, program_, program_.inputs).refused(patches);
  }

  bool can_bypass(const Graph& /*graph*/, NodeId sum, int kept) const override {
    return ProgramEditor::can_bypass(program_, sum, kept);
  }

  std::vector<std::string> parameters() const override { return program_.parameters; }
  void release(const Weight& weight) const override { archive_.release(weight); }

 private:
  const Archive& archive_;
  const Program& program_;
};

/// Weights of the archive are read there.
OpenOptions in(const Archive& archive) {
  OpenOptions options;
  options.stays = [&archive](const Weight& weight) { return archive.place_of(weight).has_value(); };
  return options;
}

}  // namespace

ExportedModel::ExportedModel(const std::string& path, std::vector<InputSpec> inputs)
    : inputs_(std::move(inputs)), archive_(path) {
  const auto named = [](const InputSpec& spec) { return !spec.name.empty(); };
  if (std::ranges::any_of(inputs_, named)) place_inputs();
  read();
  sha256_ = std::async(std::launch::async, [this] { return parsimony::sha256(archive_.file()); });
}

ExportedModel::~ExportedModel() = default;

/// Puts the specs in the order of the program's inputs; those that none names stay as exported.
void ExportedModel::place_inputs() {
  const Program as_exported = read_program(archive_, {});
  inputs_ = by_position(inputs_, as_exported.graph);
  InputSpec nothing;
  nothing.open = true;
  inputs_.resize(as_exported.inputs.size(), nothing);
}

void ExportedModel::read() {
  program_.emplace(read_program(archive_, inputs_));
  program_->graph.source = std::make_shared<ProgramSource>(archive_, *program_);
}

std::string ExportedModel::sha256() const { return sha256_.get(); }

bool ExportedModel::owns(const std::string& tensor) const {
  return !program_->sources.synthetic.contains(tensor);
}

ModelEditor& ExportedModel::editor() {
  return editor_ ? *editor_ : editor_.emplace(archive_, *program_, inputs_);
}

void ExportedModel::finalize() {
  if (!editor_ || !editor_->edited()) return;
  small_.reset();  // of an earlier state
  written_.reset();
  edited_.emplace(editor_->finish());
}

void ExportedModel::restore() {
  exported_.clear();
  small_.reset();
  written_.reset();
  edited_.reset();
  editor_.reset();
  read();
}

std::string ExportedModel::scratch_folder() {
  return scratch_.emplace_back(std::make_unique<TemporaryFolder>())->path();
}

/// Large weights stay in the archive, beside which the model lies.
std::string ExportedModel::scratch_onnx(const Graph& graph, const std::vector<InputSpec>& sizes,
                                        const Archive& archive) {
  constexpr int64_t kLarge = 1024;
  const std::filesystem::path folder = scratch_folder();
  const std::string link = "weights";
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::canonical(archive.path());
  std::filesystem::create_hard_link(target, folder / link, failed);
  if (failed) std::filesystem::copy_file(target, folder / link);
  const auto place = [&](const Weight& weight) -> std::optional<onnx_io::ExternalPlace> {
    const auto offset = archive.place_of(weight);
    if (!offset || weight.count() * weight.stride < kLarge) return std::nullopt;
    return onnx_io::ExternalPlace{link, *offset};
  };
  const std::string path = folder / "model.onnx";
  try {
    write_file(path, onnx_io::export_onnx(graph, sizes, {.keeps_weights = true, .place = place}));
  } catch (const ModelError& error) {
    throw UnsupportedError("the program cannot be run as ONNX: ", error.what());
  }
  return path;
}

/// As it was read: `graph` may have tensors of its own by now, which plans make of the program's.
const Graph& ExportedModel::original() {
  if (!original_) original_.emplace(read_program(archive_, inputs_));
  return original_->graph;
}

/// As it was written.
const Graph& ExportedModel::small() {
  if (!small_) {
    const std::string path = scratch_folder() + "/small.pt2";
    write(path);
    written_ = std::make_unique<Archive>(path);
    small_.emplace(read_program(*written_, edited_->inputs));
  }
  return small_->graph;
}

std::unique_ptr<Network> ExportedModel::open(Engine& engine) {
  const Graph& now = edited_ ? small() : original();
  const Archive& archive = edited_ ? *written_ : archive_;
  const std::vector<InputSpec>& sizes = edited_ ? small_->sizes : program_->sizes;
  OpenOptions options = in(archive);
  options.file = [this, &now, &archive, &sizes] { return scratch_onnx(now, sizes, archive); };
  return engine.open(now, options);
}

std::unique_ptr<Network> ExportedModel::open_masked(Engine& engine, const Plan& plan) {
  if (engine.executes_graphs()) return engine.open_masked(program_->graph, plan, in(archive_));
  // Before the export, which folds what is computed from sizes.
  GraphEditor editor(original());
  for (const PlanInteger& number : plan.followed) {
    editor.set_input(number.node, number.input, number.to);
  }
  std::optional<Plan> rest;
  if (!plan.followed.empty()) rest.emplace(plan).followed.clear();
  auto& exported = exported_.emplace_back(std::make_unique<onnx_io::OnnxModel>(
      scratch_onnx(editor.graph(), program_->sizes, archive_)));
  try {
    return exported->open_masked(engine, rest ? *rest : plan);
  } catch (const ModelError& error) {
    throw UnsupportedError("the masked program cannot be run as ONNX: ", error.what());
  }
}

int64_t ExportedModel::write(const std::string& path) {
  if (!edited_) finalize();  // whoever only replays a plan does not run the result
  if (!edited_ || written_) {
    write_file(path, (edited_ ? *written_ : archive_).file().bytes());
    return size_of_file(path);
  }
  std::vector<ArchivedTensor> weights;
  std::vector<ArchivedTensor> constants;
  for (const ArchivedTensor& tensor : edited_->tensors) {
    (archive_.is_constant(tensor.name) ? constants : weights).push_back(tensor);
  }
  archive_.write(path, edited_->json, weights, constants);
  return size_of_file(path);
}

}  // namespace parsimony::programs
