#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/transfer.h"
#include "parsimony/cli/checkpoint.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

struct ImportOptions {
  std::string model;
  std::string checkpoint;
  std::string before;
  std::string output;
  std::vector<std::string> inputs;
  bool partial = false;
  bool in_place = false;
  TransferOptions transfer;
};

/// Matches the model's weights with the checkpoint's tensors, using the checkpoint that the model
/// was made from if available, since its elements show what was folded.
CheckpointMatch match_of(const Graph& graph, const Checkpoint& checkpoint,
                         const std::string& before) {
  if (before.empty()) return match_checkpoint(graph, checkpoint);
  CheckpointMatch match = match_checkpoint(graph, *open_checkpoint(before));
  const CheckpointMatch now = match_checkpoint(graph, checkpoint);
  match.copies = now.copies;
  return match;
}

/// @throws VerificationError unless the new weights equal the checkpoint's, element by element
void prove(const Graph& graph, const std::vector<TensorUpdate>& updates,
           const Checkpoint& checkpoint) {
  const CheckpointMatch found = match_checkpoint(graph, checkpoint);
  for (const TensorUpdate& update : updates) {
    const auto same = std::ranges::find(found.weights, update.tensor, &WeightMatch::weight);
    if (same == found.weights.end() || !same->equal) {
      throw VerificationError("weight ", in_quotes(update.tensor),
                              " of the new model differs from the checkpoint; nothing was written");
    }
  }
}

void run_import(const ImportOptions& options, const Session& session) {
  const std::vector<NamedFile> outputs = {{"--output", options.output, kModel}};
  const std::vector<NamedFile> inputs = {
      {kModel, options.model}, {"--checkpoint", options.checkpoint}, {"--before", options.before}};
  check_outputs(outputs, inputs, options.in_place);
  const auto checkpoint = open_checkpoint(options.checkpoint);
  const auto model = open_model(options.model, options.inputs);
  check_outputs_beside(outputs, inputs, *model, options.in_place);
  check_ending(options.output, model->graph().format);
  const CheckpointMatch match = match_of(model->graph(), *checkpoint, options.before);
  const TransferredWeights made = transfer(model->graph(), match, *checkpoint, options.transfer);
  if (!made.left.empty() && !options.partial) {
    throw ModelError("the checkpoint does not fit the model: it is missing ", made.left.size(),
                     " of its weights, first ", made.left.front(),
                     ". With --partial they are kept");
  }
  const TemporaryFolder folder;
  prove(reopened(*model, made.updates, folder.path() / "model", options.inputs)->graph(),
        made.updates, *checkpoint);
  model->write(options.output);
  if (session.quiet) return;
  std::string text = printable(options.model) + " -> " + printable(options.output) + ", " +
                     counted(static_cast<int64_t>(made.updates.size()), "weight") +
                     " of the checkpoint\n";
  for (const std::string& left : made.left) {
    text += note_mark() + "unchanged: " + printable(left) + "\n";
  }
  if (made.assumed_epsilon) {
    text +=
        note_mark() +
        "normalisations were folded with --epsilon, as the model does not store its own epsilon; "
        "pass the checkpoint that the model was made from with --before to recover it\n";
  }
  print(text + "Proven: the weights equal those of the checkpoint, element by element.\n");
}

void add_options(CLI::App& command, ImportOptions& options) {
  add_model_argument(command, options.model);
  add_option(command, "--checkpoint", options.checkpoint, "CKPT",
             "Checkpoint with the trained weights (torch.save or safetensors)")
      ->required();
  add_option(command, "-o,--output", options.output, "OUT", "Output file")->required();
  add_in_place_option(command, options.in_place);
  add_option(command, "--before", options.before, "CKPT",
             "Checkpoint of the model's current weights, which shows how they were folded");
  add_option(command, "--epsilon", options.transfer.epsilon, "E",
             "Epsilon of folded normalizations, if --before does not show it (default: 1e-5)")
      ->check(not_below_zero());
  command.add_flag("--partial", options.partial,
                   "Keep weights that the checkpoint lacks, such as constants");
  add_input_option(command, options.inputs);
}

}  // namespace

void add_import(CLI::App& app, Session& session) {
  add_command<ImportOptions>(app, session, "import",
                             "Loads a checkpoint's weights into its model, and verifies it",
                             "parsimony import small.onnx --checkpoint tuned.pth -o deployed.onnx",
                             add_options, run_import);
}

}  // namespace parsimony::cli
