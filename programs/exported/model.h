// A program of torch.export that can be pruned.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/graph/interface.h"
#include "parsimony/programs/exported/archive.h"
#include "parsimony/programs/exported/editor.h"
#include "parsimony/programs/exported/program.h"

namespace parsimony::programs {

/// Reads `.pt2` files without libtorch. Engines that read files run what the program is as ONNX.
class ExportedModel final : public EditableFile {
 public:
  /// @param inputs  shapes, by position or by name; without them: those with which the program was
  ///     exported
  /// @throws IoError, ModelError, UnsupportedError
  ExportedModel(const std::string& path, std::vector<InputSpec> inputs);
  ~ExportedModel() override;

  const std::string& path() const override { return archive_.path(); }
  std::string sha256() const override;
  bool owns(const std::string& tensor) const override;
  /// The inputs with which the program was exported.
  const std::vector<InputSpec>& inputs() const { return program_->inputs; }
  /// The inputs with which it was read.
  const std::vector<InputSpec>& sizes() const { return program_->sizes; }
  Graph& graph() override { return program_->graph; }
  ModelEditor& editor() override;
  void finalize() override;
  void restore() override;
  std::unique_ptr<Network> open(Engine& engine) override;
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override;
  int64_t write(const std::string& path) override;

 private:
  void place_inputs();
  void read();
  const Graph& original();
  const Graph& small();
  std::string scratch_folder();
  std::string scratch_onnx(const Graph& graph, const std::vector<InputSpec>& sizes,
                           const Archive& archive);

  std::vector<InputSpec> inputs_;
  std::vector<std::unique_ptr<TemporaryFolder>> scratch_;
  std::vector<std::unique_ptr<EditableFile>> exported_;  ///< originals as ONNX, which networks use
  Archive archive_;
  std::optional<Program> program_;
  std::optional<Program> original_;  ///< read when it is first run
  std::optional<ProgramEditor> editor_;
  std::optional<EditedProgram> edited_;
  std::unique_ptr<Archive> written_;  ///< what was edited, as a scratch file
  std::optional<Program> small_;      ///< read from it
  std::shared_future<std::string> sha256_;
};

}  // namespace parsimony::programs
