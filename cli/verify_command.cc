#include <memory>
#include <optional>

#include "parsimony/api/reference.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/oracle.h"
#include "parsimony/cli/progress.h"
#include "parsimony/cli/threads_option.h"
#include "parsimony/cli/torch_component.h"
#include "parsimony/cli/validators.h"
#include "parsimony/report/proof.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::cli {
namespace {

struct VerifyOptions {
  OracleJob job;
  std::string engine = "executor";
  std::string threads;
};

/// Both models by our own executor.
Proof by_executor(const OracleJob& job, const Plan& plan, std::optional<int> threads) {
  LazyTorch engine(threads);
  const auto& specs = job.specs.empty() ? plan.inputs : job.specs;
  const auto original = open_model(job.original, specs);
  const auto small = open_model(job.small, specs);
  const Graph& graph = original->graph();
  ProofOptions options;
  if (job.inputs > 0) options.inputs = job.inputs;
  options.seed = static_cast<uint64_t>(job.seed);
  const Probe probe = choose_probe(graph, input_specs(specs, graph));
  const auto masked = original->open_masked(engine, plan);
  const Reference reference(graph, probe, mixes(plan), *masked, options);
  Proof proof = reference.compare(*small->open(engine));
  if (!proof.holds()) reference.allow_for_rounding(proof, *masked);
  return proof;
}

/// Both models by ONNX Runtime: what it says of a plan that mixes is only that the models run.
Proof by_onnx_runtime(const OracleJob& job) {
  const OracleVerdict verdict = ask_oracle(job);
  if (!verdict.fine) throw errors::differs(verdict.worst);
  Proof proof;
  proof.inputs = static_cast<int>(verdict.probes);
  proof.seed = static_cast<uint64_t>(job.seed);
  proof.notes = verdict.notes;
  if (verdict.mixes) {
    proof.not_run =
        "a group passes a mixing operator, which ONNX Runtime cannot mask; both models run and "
        "stay finite";
  }
  if (verdict.weak) {
    proof.not_run =
        "in ONNX Runtime the masked original differs from itself by as much when it is computed "
        "another way; --engine executor compares what such a network chooses from";
  }
  for (const OracleOutput& output : verdict.outputs) {
    proof.outputs.push_back({output.name, output.difference, output.tolerance});
  }
  return proof;
}

void run(const VerifyOptions& options, const Session& session) {
  const Plan plan = Plan::load(options.job.plan);
  Progress progress({}, !session.quiet);
  progress.begin("running both models");
  const bool own = options.engine == "executor";
  const auto threads = parse_threads(options.threads);
  const Proof proof = own ? by_executor(options.job, plan, threads) : by_onnx_runtime(options.job);
  progress.finish();
  if (own && !proof.holds()) throw errors::differs(to_text(*proof.worst()));
  if (!session.quiet) print(to_text(proof, true, plan));
}

}  // namespace

void add_verify(CLI::App& app, Session& session) {
  auto options = std::make_shared<VerifyOptions>();
  OracleJob& job = options->job;
  CLI::App* command =
      add_command(app, "verify", "Compares a pruned model with its masked original",
                  "parsimony verify resnet.onnx small.onnx --plan p.json --inputs 8");
  command->add_option("IN", job.original, "The original")->required()->type_name("");
  command->add_option("OUT", job.small, "The smaller model")->required()->type_name("");
  command->add_option("--plan", job.plan, "The plan that made it")->required()->type_name("P.json");
  command->add_option("--inputs", job.inputs, "How many random inputs to try")
      ->type_name("N")
      ->check(above_zero());
  command->add_option("--seed", job.seed, "Where the random numbers begin (1)")
      ->type_name("S")
      ->check(above_zero());
  command
      ->add_option("--engine", options->engine,
                   "What runs the models: executor (ours, the default) or onnxruntime (ONNX only, "
                   "an independent judge; needs Node.js)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"executor", "onnxruntime"}));
  add_threads_option(*command, options->threads);
  add_input_option(*command, job.specs);
  command->callback(
      [options, &session] { session.run = [options, &session] { run(*options, session); }; });
}

}  // namespace parsimony::cli
