// A model that can be pruned: a file of any format, or a live module.
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

  /// The network as it was read. Its weights are invalid once the model has been edited.
  virtual Graph& graph() = 0;

  /// Lives as long as the model. @throws UnsupportedError if the model cannot be edited
  virtual ModelEditor& editor() = 0;

  /// Returns whether a tensor of the graph belongs to the model; false if the reader synthesised
  /// it.
  virtual bool owns(const std::string& /*tensor*/) const { return true; }

  /// Call after the last edit. @throws UnsupportedError if the model cannot be run in this form
  virtual void finalize() {}

  /// Reverts all edits: `graph` is restored. Opened networks become invalid.
  virtual void restore() = 0;

  /// Opens the model in its current state. The network must not outlive it.
  /// @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Network> open(Engine& engine) = 0;

  /// Opens the original with the plan's channels masked. Must be called before the model is edited.
  /// @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) = 0;
};

/// A model in a file.
class EditableFile : public EditableModel {
 public:
  virtual const std::string& path() const = 0;
  /// Fingerprint of the file as it was read, lower-case hexadecimal. @throws IoError
  virtual std::string sha256() const = 0;

  /// Returns notes for the user on how the file was read.
  virtual std::vector<std::string> notes() const { return {}; }

  /// Returns the external data files, which must remain readable during the lifetime of this
  /// object.
  virtual std::vector<std::string> data_files() const { return {}; }

  /// Writes under a temporary name, then renames; `path` may be the model itself. @returns the
  /// bytes written, including external data. @throws IoError
  virtual int64_t write(const std::string& path) = 0;
};

}  // namespace parsimony
