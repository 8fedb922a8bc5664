// What can be pruned: a model file of any format, or a live module.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A network that is read once and edited in place.
class EditableModel {
 public:
  virtual ~EditableModel() = default;

  /// The network as it was read. Its weights are gone once the model was edited.
  virtual Graph& graph() = 0;

  /// Lives as long as the model. @throws UnsupportedError if the model cannot be edited
  virtual ModelEditor& editor() = 0;

  /// Is the graph's tensor one of the model's own, or made up when it was read?
  virtual bool owns(const std::string& /*tensor*/) const { return true; }

  /// To be called behind the last edit. @throws UnsupportedError if the model does not run so
  virtual void settle() {}

  /// Takes all edits back: `graph` is what it was. Networks that were opened are no longer valid.
  virtual void restore() = 0;

  /// The model as it is now. The network must not outlive it.
  /// @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Network> open(Engine& engine) = 0;

  /// The original with the plan's channels absent. To be called before the model is edited.
  /// @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) = 0;
};

/// One that lies in a file.
class EditableFile : public EditableModel {
 public:
  virtual const std::string& path() const = 0;
  /// Fingerprint of the file as it was read, lower-case hexadecimal. @throws IoError
  virtual std::string sha256() const = 0;

  /// Files beside the model that are read as long as this lives.
  virtual std::vector<std::string> data_files() const { return {}; }

  /// Writes under a temporary name, then renames; `path` may be the model itself. @throws IoError
  virtual void write(const std::string& path) = 0;
};

}  // namespace parsimony
