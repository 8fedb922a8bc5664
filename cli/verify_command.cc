#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/data/arrays.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/report/speedup.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::cli {
namespace {

struct VerifyOptions {
  std::string original;
  std::string small;
  std::string plan;
  std::vector<std::string> specs;  ///< of --input
  std::string sample;
  ProofOptions proof;
  std::string engine = "auto";
  OnnxRuntimeChoice onnxruntime;
  std::optional<int> threads;
};

std::unique_ptr<Engine> engine_of(const VerifyOptions& options) {
  const EngineChoice requested{options.engine == "executor" ? "libtorch" : options.engine,
                               options.onnxruntime};
  return parsimony::engine_of({name_of(requested), requested.onnxruntime}, options.threads);
}

/// A comparison of two models on one engine.
class Verification {
 public:
  Verification(const VerifyOptions& options, const Plan& plan)
      : options_(options),
        plan_(plan),
        specs_(options.specs.empty() ? plan.inputs : options.specs),
        engine_(engine_of(options)),
        original_(open_model(options.original, specs_)),
        small_(open_model(options.small, specs_)) {
    const Graph& graph = original_->graph();
    std::vector<InputSpec> inputs = input_specs(specs_, graph);
    if (!options.sample.empty()) {
      sample_ = place_sample(read_arrays(options.sample), graph);
      inputs = with_shapes_of(sample_, std::move(inputs));
    }
    probe_ = choose_probe(graph, inputs);
    proof_options_ = tolerance_for(*engine_, graph, options.proof);
  }

  Proof run() {
    Proof proof = compared();
    if (!plan_.sha256.empty() && plan_.sha256 != original_->sha256()) {
      proof.notes.emplace_back("the plan was made for a different file (sha256 differs)");
    }
    return proof;
  }

 private:
  bool own() const { return engine_->executes_graphs(); }

  Proof compared() {
    Proof none;
    none.not_run = why_incomparable(original_->graph());
    if (!none.not_run.empty()) return none;
    const auto masked = original_->open_masked(*engine_, plan_);
    const Reference reference(original_->graph(), probe_, plan_, *masked, proof_options_, sample_);
    Proof proof = reference.compare(*small_->open(*engine_));
    if (!proof.holds()) reference.widen_tolerance(proof, *masked);
    if (!proof.holds()) {
      throw VerificationError("verification failed: ", to_text(*proof.worst()) + hint());
    }
    constexpr double kWeak = 5e-2;
    if (!own() && proof.worst() != nullptr && proof.worst()->difference > kWeak) {
      proof.not_run =
          "in ONNX Runtime the masked original differs as much from itself when computed with "
          "other kernels or on inputs rounded otherwise; --engine libtorch compares the operands "
          "of discrete choices";
    }
    return proof;
  }

  std::string hint() const {
    return own() ? ""
                 : "; for a network with discrete choices, such as a detector, --engine libtorch "
                   "compares the operands of the choices";
  }

  const VerifyOptions& options_;
  const Plan& plan_;
  const std::vector<std::string>& specs_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<EditableFile> original_;
  std::unique_ptr<EditableFile> small_;
  ProofOptions proof_options_;
  TensorList sample_;
  Probe probe_;
};

void run_verify(const VerifyOptions& options, const Session& session) {
  enter_sandbox(session.limits, {}, !options.onnxruntime.provider.empty());
  const Plan plan = Plan::load(options.plan);
  Progress progress({}, !session.quiet);
  progress.begin("running both models");
  const Proof proof = Verification(options, plan).run();
  progress.finish();
  if (!session.quiet) print(to_text(proof, true, plan));
}

void add_options(CLI::App& command, VerifyOptions& options) {
  add_option(command, "IN", options.original, "", "The original")->required();
  add_option(command, "OUT", options.small, "", "The smaller model")->required();
  add_option(command, "--plan", options.plan, "P.json", "The plan that made it")->required();
  add_option(command, "--inputs", options.proof.inputs, "N", "Number of random inputs")
      ->check(above_zero());
  add_option(command, "--seed", options.proof.seed, "S", "Random seed (default: 1)")
      ->check(above_zero());
  add_option(command, "--engine", options.engine, "NAME",
             "Engine: libtorch (Parsimony's executor), onnxruntime (ONNX only, independent of it) "
             "or auto (default): libtorch if it is installed")
      ->check(any_of({"auto", "libtorch", "executor", "onnxruntime"}));
  add_settings(command, onnx_runtime_settings(), options.onnxruntime);
  add_threads_option(command, options.threads);
  add_input_option(command, options.specs);
  add_sample_option(command, options.sample);
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  add_command<VerifyOptions>(
      app, session, "verify", "Compares a pruned model with its masked original",
      "parsimony verify resnet.onnx small.onnx --plan p.json --inputs 8", add_options, run_verify);
}

}  // namespace parsimony::cli
