#include "parsimony/torch_io/script/model.h"

#include <utility>

#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/run.h"

namespace parsimony::torch_io {
namespace {

void require_graphs(const Engine& engine, const std::string& path) {
  if (!engine.executes_graphs()) {
    throw UnsupportedError(engine.name(), " runs ONNX files only, and ", path, " is none");
  }
}

}  // namespace

ScriptModel::ScriptModel(const std::string& path, std::vector<InputSpec> specs)
    : specs_(std::move(specs)), file_(path), script_(&file_.read(specs_)) {}

std::unique_ptr<Network> ScriptModel::open(Engine& engine) {
  require_graphs(engine, path());
  if (!file_.is_exported() || !file_.edited()) {
    return std::make_unique<TorchNetwork>(script_run(file_.small()));
  }
  // What is written is made from the program's JSON: it is read back, shapes included.
  const std::string copy = (scratch_.path() / "small.pt2").string();
  file_.write(copy);
  try {
    written_.emplace(copy);
    written_->read({});
  } catch (const Error& error) {
    throw VerificationError("verification failed: the small program cannot be read back: ",
                            error.what(), ". Nothing was changed or written.");
  }
  return std::make_unique<TorchNetwork>(script_run(written_->small()));
}

std::unique_ptr<Network> ScriptModel::open_masked(Engine& engine, const Plan& plan) {
  require_graphs(engine, path());
  // Zeros in the module's own tensors depend on neither reader nor executor.
  if (!zeros_suffice(plan) || !has_all(*script_, plan)) {
    return engine.open_masked(script_->graph, plan, {});
  }
  return std::make_unique<TorchNetwork>(zeroed_run(file_.module(), *script_, plan));
}

}  // namespace parsimony::torch_io
