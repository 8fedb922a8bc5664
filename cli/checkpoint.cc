#include "parsimony/cli/checkpoint.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "parsimony/api/known_networks.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/transfer.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// One of --checkpoint and --checkpoint-out without the other.
ConfigError half_a_checkpoint() {
  return ConfigError("--checkpoint and --checkpoint-out must be passed together");
}

using Json = nlohmann::ordered_json;

constexpr int kMostIndented = 100;  // whoever wrote the file chose the depth

int64_t bytes_of(const StoredTensor& tensor) { return tensor.count() * tensor.type->bytes; }

int64_t bytes_of(const Checkpoint& checkpoint) {
  int64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) bytes += bytes_of(tensor);
  return bytes;
}

/// The prunable axes of a checkpoint without a model file.
struct KnownCuts {
  std::string network;                          ///< empty if it is not known
  std::map<TensorId, std::set<int>> axes = {};  ///< prunable axes, in every copy
};

KnownCuts known_cuts(const std::string& path, const Checkpoint& checkpoint) {
  std::optional<KnownNetwork> known;
  try {
    known = open_known_network(path);
  } catch (const UnsupportedError&) {
    return {};
  }
  KnownCuts cuts{known->name};
  Graph& graph = known->model->graph();
  const Analysis analysis = analyse(graph, {});
  const CheckpointMatch match = match_checkpoint(graph, checkpoint);
  const TensorNames names(checkpoint);
  for (const Group& group : analysis.coupling.groups) {
    for (const Member& member : group.members) {
      const std::string& weight = graph.weight_of(member.value).name;
      const auto found = std::ranges::find(match.weights, weight, &WeightMatch::weight);
      if (found == match.weights.end()) continue;
      for (const NetworkCopy& copy : match.copies) {
        for (const MatchTarget& target : found->targets) {
          const int axis = target.axes[member.axis];
          if (axis >= 0) cuts.axes[names.find(copy.prefix + target.name)].insert(axis);
        }
      }
    }
  }
  return cuts;
}

Json to_json(const Checkpoint& checkpoint, const KnownCuts& cuts) {
  const CheckpointGlobals globals = checkpoint.globals();
  Json json = {{"parsimony_checkpoint", 1},
               {"format", checkpoint.format()},
               {"bytes", bytes_of(checkpoint)},
               {"globals", globals.names},
               {"weights_only_refuses", globals.refused}};
  if (!cuts.network.empty()) json["network"] = cuts.network;
  Json& tensors = json["tensors"] = Json::array();
  for (const TensorId id : checkpoint.tensors().ids()) {
    const StoredTensor& tensor = checkpoint.tensors()[id];
    Json& row = tensors.emplace_back();
    row = {{"path", tensor.path},
           {"type", tensor.type->name},
           {"shape", tensor.dims},
           {"bytes", bytes_of(tensor)}};
    if (!tensor.why_fixed.empty()) row["fixed"] = tensor.why_fixed;
    if (const auto found = cuts.axes.find(id); found != cuts.axes.end()) {
      row["prunable_axes"] = found->second;
    }
  }
  return json;
}

/// Returns ", axes 0 and 1 can lose channels"; often empty.
std::string axes_text(const KnownCuts& cuts, TensorId id) {
  const auto found = cuts.axes.find(id);
  if (id == TensorId() || found == cuts.axes.end()) return {};
  std::string text = found->second.size() == 1 ? ", axis" : ", axes";
  for (const int axis : found->second) {
    text += (axis == *found->second.begin() ? " " : " and ") + std::to_string(axis);
  }
  return text + " can lose channels";
}

std::string to_text(const Checkpoint& checkpoint, const KnownCuts& cuts) {
  std::string text;
  for (const CheckpointLine& line : checkpoint.tree()) {
    text.append(2 * std::min(line.depth, kMostIndented), ' ');
    if (!line.key.empty()) text += printable(line.key) + ": ";
    text += printable(line.what) + axes_text(cuts, line.tensor) + "\n";
  }
  text += "\n" + std::string(checkpoint.format()) + ", " +
          counted(static_cast<int64_t>(checkpoint.tensors().size()), "tensor") + ", " +
          counted(bytes_of(checkpoint), "byte") + "\n";
  if (!cuts.network.empty()) {
    text += "a checkpoint of the known network " + printable(cuts.network) +
            ": `parsimony prune` needs no model file for it\n";
  }
  const CheckpointGlobals globals = checkpoint.globals();
  if (!globals.names.empty()) {
    text += "its globals:";
    for (const std::string& name : globals.names) text += " " + printable(name);
    text += "\n";
  }
  text += "torch.load(weights_only=True) ";
  if (globals.refused.empty()) return text + "loads it\n";
  text += "rejects it:";
  for (const std::string& name : globals.refused) text += " " + printable(name);
  return text + "\n";
}

}  // namespace

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options) {
  add_option(command, "--checkpoint", options.in, "CKPT",
             "Checkpoint of this network (torch.save or safetensors), which is pruned with it");
  add_option(command, "--checkpoint-out", options.out, "CKPT",
             "Output file for the pruned checkpoint");
  add_option(command, "--weights-from", options.weights_from, "WHAT",
             "Weights to prune: the model's (model, the default) or the checkpoint's (checkpoint), "
             "if the model was exported earlier")
      ->check(any_of({"model", "checkpoint"}));
  command.add_flag("--strict", options.strict,
                   "Fail if the checkpoint lacks a weight of the plan, or has a tensor next to a "
                   "pruned weight that is not pruned");
}

void add_files(const CheckpointOptions& options, std::vector<NamedFile>& outputs,
               std::vector<NamedFile>& inputs) {
  outputs.push_back({"--checkpoint-out", options.out, "--checkpoint"});
  inputs.push_back({"--checkpoint", options.in});
}

CheckpointOptions resolved(const CheckpointOptions& options, const std::string& model,
                           const std::string& output) {
  if (!is_checkpoint(model)) return options;
  if (!options.in.empty()) {
    throw ConfigError(model,
                      " is itself a checkpoint, so --checkpoint cannot be used; its network is "
                      "identified by the names of its tensors");
  }
  CheckpointOptions result = options;
  if (result.out.empty() && !output.ends_with(".onnx")) result.out = output;
  if (!result.out.empty()) result.in = model;
  return result;
}

CheckpointJob::CheckpointJob(CheckpointOptions options, const Graph& graph)
    : options_(std::move(options)) {
  if (options_.in.empty() != options_.out.empty()) throw half_a_checkpoint();
  if (options_.in.empty()) return;
  checkpoint_ = open_checkpoint(options_.in);
  check_ending(options_.out, checkpoint_->format());
  match_ = match_checkpoint(graph, *checkpoint_);
}

std::optional<CheckpointJob> CheckpointJob::by_name(CheckpointOptions options, const Plan& plan) {
  CheckpointJob job(std::move(options));
  job.checkpoint_ = open_checkpoint(job.options_.in);
  std::optional<CheckpointMatch> match = match_names(plan, *job.checkpoint_);
  if (!match) return std::nullopt;
  job.match_ = std::move(*match);
  return job;
}

std::unique_ptr<EditableFile> reopened(EditableFile& model,
                                       const std::vector<TensorUpdate>& weights,
                                       const std::string& path,
                                       const std::vector<std::string>& specs) {
  for (const TensorUpdate& update : weights) model.editor().assign(update.tensor, update.values);
  model.write(path);
  return open_model(path, specs);
}

std::unique_ptr<EditableFile> CheckpointJob::weighted(std::unique_ptr<EditableFile> model,
                                                      const std::vector<std::string>& specs) {
  if (options_.weights_from != "checkpoint") return model;
  if (!checkpoint_) throw half_a_checkpoint();
  const TransferredWeights made = transfer(model->graph(), match_, *checkpoint_);
  for (const std::string& left : made.left) notes_.push_back("keeps the model's weights: " + left);
  folder_ = std::make_unique<TemporaryFolder>();
  auto result = reopened(*model, made.updates, folder_->path() / "model", specs);
  match_ = match_checkpoint(result->graph(), *checkpoint_);
  return result;
}

void CheckpointJob::write(const Plan& plan, const std::string& path) {
  if (!checkpoint_) return;
  if (is_cut_) checkpoint_ = open_checkpoint(options_.in);
  is_cut_ = true;
  cut_ = cut_checkpoint(plan, match_, options_.strict, *checkpoint_);
  checkpoint_->write(path);
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
  std::vector<std::string> notes = notes_;
  for (const std::string& left : cut_.left) notes.push_back("unchanged: " + left);
  for (const std::string& note : notes) {
    text += note_mark() + printable(note) + "\n";
  }
  return text;
}

std::optional<CheckpointReport> CheckpointJob::report() const {
  if (!checkpoint_) return std::nullopt;
  CheckpointReport report{options_.in, options_.out, cut_.copies, cut_.tensors,
                          cut_.states, cut_.left,    {}};
  for (const TensorOutcome& outcome : cut_.outcomes) {
    report.tensors.push_back({outcome.tensor, outcome.weight, outcome.matched, outcome.before,
                              outcome.after, outcome.why_left});
  }
  return report;
}

void inspect_checkpoint(const std::string& path, bool as_json) {
  const auto checkpoint = open_checkpoint(path);
  const KnownCuts cuts = known_cuts(path, *checkpoint);
  print(as_json
            ? to_json(*checkpoint, cuts).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
            : to_text(*checkpoint, cuts));
}

}  // namespace parsimony::cli
