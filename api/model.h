// A model file of any format, and what every front end can do with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/engines/executable.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {

/// Inputs or outputs of several runs of a network. Complete only where libtorch is.
struct Tensors;

/// A network that libtorch runs.
class Runner : public Executable {
 public:
  /// Outputs in the network's order, run by run.
  virtual Tensors run(const Tensors& inputs) = 0;
};

/// Runs of the masked original, kept until there is a small model to compare them with.
class Prover {
 public:
  virtual ~Prover() = default;

  /// Runs the small model on the same inputs.
  virtual Proof prove(Runner& small) = 0;
};

/// Read once, edited in place, written back.
class Model {
 public:
  virtual ~Model() = default;

  virtual const std::string& path() const = 0;
  /// Fingerprint of the file as it was read, lower-case hexadecimal. @throws IoError
  virtual std::string sha256() const = 0;

  /// Files beside the model that are read as long as this lives.
  virtual std::vector<std::string> data_files() const { return {}; }

  /// The network as it was read. Its weights are gone once the model was edited.
  virtual Graph& graph() = 0;

  /// @throws UnsupportedError if the model cannot be edited
  virtual std::unique_ptr<ModelEditor> editor() = 0;

  /// Runs the original with the plan's channels absent. To be called before the model is edited.
  /// @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Prover> prover(const Plan& plan, const Probe& probe,
                                         const ProofOptions& options) = 0;

  /// Runs the model as it is now. @throws UnsupportedError, saying why, if it cannot be run
  virtual std::unique_ptr<Runner> runner() = 0;

  /// Writes under a temporary name, then renames; `path` may be the model itself. @throws IoError
  virtual void write(const std::string& path) = 0;
};

}  // namespace parsimony
