#include <cstdio>
#include <fstream>

#include "parsimony/api/export_model.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

std::string rows(const char* what, const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += std::string(what) + printable(value) + "\n";
  return text;
}

std::string proof_text(const Proof& proof) {
  if (proof.outputs.empty()) return {};
  const OutputDifference& worst = *proof.worst();
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, "largest difference %.1e (allowed %.1e)", worst.difference,
                worst.tolerance);
  return std::string("Proven: ") + numbers + " from the original, on " +
         counted(proof.inputs, "random input") + ".\n";
}

void print_summary(const ExportJob& job, const Exported& made) {
  std::string text =
      coloured(printable(job.model) + " -> " + printable(job.output), Colour::kBold, Stream::kOut) +
      "\n" + rows("input   ", made.inputs) + rows("output  ", made.outputs) + "ONNX opset " +
      std::to_string(made.opset) + ", " + counted(made.nodes, "node") + ", " +
      counted(made.bytes, "byte") + "\n";
  for (const auto* notes : {&made.notes, &made.proof.notes}) {
    for (const std::string& note : *notes) {
      text += note_mark() + printable(note) + "\n";
    }
  }
  print(text + proof_text(made.proof));
}

void run_export(const ExportJob& job, const Session& session) {
  const std::vector<NamedFile> outputs = {{"--output", job.output}};
  check_outputs(outputs, {{kModel, job.model}});
  check_ending(job.output, "onnx");
  enter_sandbox(session.limits, outputs, false);
  if (std::ifstream(job.model).good() && !is_zip(job.model)) {
    throw UnsupportedError(job.model,
                           " is not a TorchScript or .pt2 file, which `export` writes as ONNX; "
                           "`prune` takes ONNX models directly");
  }
  Progress progress({}, !session.quiet);
  progress.begin("exporting");
  const Exported made = export_model(job);
  progress.finish();
  if (!session.quiet) print_summary(job, made);
}

void add_options(CLI::App& command, ExportJob& job) {
  add_option(command, "IN", job.model, "", "The model: TorchScript or .pt2")->required();
  add_option(command, "-o,--output", job.output, "OUT.onnx", "Output file")->required();
  add_input_option(command, job.inputs);
  add_option(command, "--output-name", job.settings.outputs, "NAME",
             "Name of an output; repeat for each output, in order");
  command.add_flag("--dynamic-batch", job.settings.dynamic_batch,
                   "Make the leading dimension of the inputs dynamic");
  command.add_flag("--fold-batchnorm", job.settings.fold_batchnorm,
                   "Fold each BatchNorm into the preceding convolution");
  add_option(command, "--inputs", job.settings.proof.inputs, "N",
             "Number of random inputs (default: 3)")
      ->check(above_zero());
  add_option(command, "--seed", job.settings.proof.seed, "S", "Random seed (default: 1)")
      ->check(above_zero());
  add_threads_option(command, job.cores);
}

}  // namespace

void add_export(CLI::App& app, Session& session) {
  add_command<ExportJob>(
      app, session, "export", "Exports TorchScript or .pt2 to ONNX, and verifies it",
      "parsimony export small.pt -o small.onnx --input 1x3x224x224", add_options, run_export);
}

}  // namespace parsimony::cli
