#include "parsimony/cli/checkpoint.h"

#include <nlohmann/json.hpp>

#include "parsimony/cli/command.h"
#include "parsimony/cli/errors.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

using Json = nlohmann::ordered_json;

int64_t bytes_of(const StoredTensor& tensor) { return tensor.count() * tensor.type->bytes; }

int64_t bytes_of(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) bytes += bytes_of(tensor);
  return bytes;
}

Json to_json(const Checkpoint& checkpoint) {
  const CheckpointGlobals globals = checkpoint.globals();
  Json json = {{"parsimony_checkpoint", 1},
               {"format", checkpoint.format()},
               {"bytes", bytes_of(checkpoint)},
               {"globals", globals.names},
               {"weights_only_refuses", globals.refused}};
  Json& tensors = json["tensors"] = Json::array();
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    Json& row = tensors.emplace_back();
    row = {{"path", tensor.path},
           {"type", tensor.type->name},
           {"shape", tensor.dims},
           {"bytes", bytes_of(tensor)}};
    if (!tensor.why_fixed.empty()) row["fixed"] = tensor.why_fixed;
  }
  return json;
}

std::string to_text(const Checkpoint& checkpoint) {
  std::string text;
  for (const CheckpointLine& line : checkpoint.tree()) {
    text.append(2 * line.depth, ' ');
    if (!line.key.empty()) text += printable(line.key) + ": ";
    text += printable(line.what) + "\n";
  }
  text += "\n" + std::string(checkpoint.format()) + ", " +
          counted(static_cast<int64_t>(checkpoint.tensors().size()), "tensor") + ", " +
          counted(bytes_of(checkpoint), "byte") + "\n";
  const CheckpointGlobals globals = checkpoint.globals();
  if (!globals.names.empty()) {
    text += "it names";
    for (const std::string& name : globals.names) text += " " + printable(name);
    text += "\n";
  }
  text += "torch.load(weights_only=True) ";
  if (globals.refused.empty()) return text + "takes it\n";
  text += "refuses it:";
  for (const std::string& name : globals.refused) text += " " + printable(name);
  return text + "\n";
}

}  // namespace

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options) {
  add_option(command, "--checkpoint", options.in, "CKPT",
             "A checkpoint of this network, to be cut with it: of torch.save, or safetensors");
  add_option(command, "--checkpoint-out", options.out, "CKPT", "Where the cut checkpoint goes");
  command.add_flag("--strict", options.strict,
                   "Fail if the plan names a weight that the checkpoint has not");
}

void add_files(const CheckpointOptions& options, std::vector<NamedFile>& outputs,
               std::vector<NamedFile>& inputs) {
  outputs.push_back({"--checkpoint-out", options.out});
  inputs.push_back({"--checkpoint", options.in});
}

CheckpointJob::CheckpointJob(const CheckpointOptions& options, const Graph& graph)
    : options_(options) {
  if (options.in.empty() != options.out.empty()) throw errors::half_a_checkpoint();
  if (options.in.empty()) return;
  checkpoint_ = open_checkpoint(options.in);
  match_ = match_checkpoint(graph, *checkpoint_);
}

void CheckpointJob::write(const Plan& plan) {
  if (!checkpoint_) return;
  cut_ = cut_checkpoint(plan, match_, options_.strict, *checkpoint_);
  checkpoint_->write(options_.out);
}

std::string CheckpointJob::summary() const {
  if (!checkpoint_) return {};
  std::string text = printable(options_.in) + " -> " + printable(options_.out) + ", " +
                     counted(cut_.tensors, "tensor") + " cut";
  if (cut_.states > 0) text += " and " + counted(cut_.states, "optimizer state");
  for (const std::string& copy : cut_.copies) {
    text += "\n  under " + in_quotes(printable(copy));
  }
  text += "\n";
  for (const std::string& left : cut_.left) {
    text += coloured("note: ", Colour::kYellow, Stream::kOut) +
            "left as it is: " + printable(left) + "\n";
  }
  return text;
}

void inspect_checkpoint(const std::string& path, bool as_json) {
  const auto checkpoint = open_checkpoint(path);
  print(as_json ? to_json(*checkpoint).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                : to_text(*checkpoint));
}

}  // namespace parsimony::cli
