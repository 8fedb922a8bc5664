#include "parsimony/api/known_networks.h"

#include <algorithm>
#include <optional>
#include <set>

#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/checkpoints/transfer.h"
#include "parsimony/checkpoints/zip.h"
#include "parsimony/graph/infer.h"
#include "parsimony/onnx_io/model.h"
#include "parsimony/onnx_io/skeleton.h"

namespace parsimony {
namespace {

/// The checkpoint belongs to no known network.
UnsupportedError checkpoint_alone(std::string_view path, std::string_view why) {
  return UnsupportedError(
      path, " is a checkpoint, which has tensors but no network, and ", why,
      ". Either pass the network as ONNX or .pt2 (torch.onnx.export, torch.export.save) and this "
      "file with --checkpoint, or register the network once with `parsimony know NAME net.pt`. "
      "`parsimony inspect` lists the contents of the file");
}

namespace fs = std::filesystem;
using onnx_io::SkeletonWeight;

constexpr std::string_view kEnding = ".onnx";

fs::path user_folder() {
  const fs::path data = environment("XDG_DATA_HOME");
  const fs::path base = data.empty() ? fs::path(environment("HOME")) / ".local" / "share" : data;
  return base / "parsimony" / "networks";
}

/// Calls `visit` with the name and the graph of every known network; the user's come last.
template <typename Visit>
void for_each_network(const Visit& visit) {
  const fs::path archive = installed_file("networks.zip");
  if (fs::exists(archive)) {
    const MappedFile file(archive);
    const ZipReader zip(file.bytes(), archive);
    for (const ZipEntry& entry : zip.entries()) {
      if (!entry.name.ends_with(kEnding)) continue;
      visit(entry.name.substr(0, entry.name.size() - kEnding.size()), zip.content(entry));
    }
  }
  std::error_code error;
  std::set<fs::path> added;
  for (const auto& entry : fs::directory_iterator(user_folder(), error)) {
    if (entry.path().extension() == kEnding) added.insert(entry.path());
  }
  for (const fs::path& path : added) visit(path.stem().string(), read_file(path));
}

/// The mapping of a graph's weights to a checkpoint.
struct Fit {
  std::string name;
  std::string prefix;
  std::vector<std::string> reshaped;
};

/// Returns the module of a tensor: "layer1.0.bn1" of "layer1.0.bn1.weight".
std::string_view module_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? std::string_view() : name.substr(0, dot);
}

class Recogniser {
 public:
  explicit Recogniser(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), names_(checkpoint), dependents_(checkpoint, names_) {
    for (const StoredTensor& tensor : checkpoint.tensors()) full_.push_back(dotted_name(tensor));
  }

  /// Returns the first prefix under which the checkpoint has all weights, and no tensors that the
  /// network does not have.
  std::optional<Fit> fit(const std::string& name, std::string_view skeleton) const {
    const onnx_io::Skeleton graph = onnx_io::read_skeleton(skeleton);
    const auto first = std::ranges::find(graph.weights, false, &SkeletonWeight::filled);
    if (first == graph.weights.end()) return std::nullopt;
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string& full = dependents_.weight_of(id);
      if (!full.ends_with(first->name)) continue;
      const std::string prefix = full.substr(0, full.size() - first->name.size());
      if (!prefix.empty() && !prefix.ends_with('.')) continue;
      if (auto found = fit_under(prefix, graph)) {
        found->name = name;
        return found;
      }
    }
    return std::nullopt;
  }

  const StoredTensor* tensor(const std::string& name) const {
    const TensorId id = find(name);
    return id == TensorId() ? nullptr : &checkpoint_.tensors()[id];
  }

  /// Returns the values of the weight; nothing if the checkpoint has none.
  std::optional<onnx_io::Filling> filling(const std::string& prefix,
                                          const SkeletonWeight& weight) const {
    const TensorId id = find(prefix + weight.name);
    if (id == TensorId()) return std::nullopt;
    return onnx_io::Filling{weight.dtype, checkpoint_.tensors()[id].dims,
                            weight_as(checkpoint_, dependents_, id, weight.dtype)};
  }

 private:
  /// Finds a weight by its own name, or the tensor from which it is computed.
  TensorId find(const std::string& name) const {
    const TensorId id = names_.find(name);
    return id == TensorId() ? dependents_.standing_for(name) : id;
  }

  /// Returns whether the tensor belongs to a weight of the network without changing its function.
  bool belongs(TensorId id, const std::set<std::string>& weights) const {
    const std::string& weight = dependents_.weight_of(id);
    return weights.contains(weight) &&
           std::ranges::any_of(dependents_.of(weight), [&](const Dependent& dependent) {
             const bool adds =
                 dependent.part == DependentPart::kDown || dependent.part == DependentPart::kUp;
             return dependent.tensor == id && !adds;
           });
  }

  std::optional<Fit> fit_under(const std::string& prefix, const onnx_io::Skeleton& graph) const {
    Fit fit{.name = {}, .prefix = prefix, .reshaped = {}};
    std::set<std::string> used;
    std::set<std::string, std::less<>> reshaped;  // modules
    std::set<std::vector<std::string>> containers;
    for (const SkeletonWeight& weight : graph.weights) {
      const StoredTensor* found = tensor(prefix + weight.name);
      if (found == nullptr) {
        if (!weight.filled) return std::nullopt;
        continue;
      }
      if (found->dims.size() != weight.dims.size()) return std::nullopt;
      const bool floats = is_floating(found->type->dtype) && is_floating(weight.dtype);
      if (!floats && found->type->dtype != weight.dtype) return std::nullopt;
      if (found->dims != weight.dims) {
        fit.reshaped.push_back(weight.name);
        reshaped.emplace(module_of(weight.name));
      }
      used.insert(prefix + weight.name);
      containers.emplace(found->path.begin(), found->path.end() - 1);
    }
    for (const TensorId id : checkpoint_.tensors().ids()) {
      const std::string& name = full_[id];
      if (!name.starts_with(prefix) || used.contains(name) || belongs(id, used)) continue;
      const std::vector<std::string>& path = checkpoint_.tensors()[id].path;
      if (!containers.contains({path.begin(), path.end() - 1})) continue;
      const std::string_view core = std::string_view(name).substr(prefix.size());
      // A counter, or a table of indices into the same module's weights, which is a constant of the
      // graph.
      const bool is_counter = checkpoint_.tensors()[id].count() <= 1;
      if (is_integer(id) && (is_counter || !reshaped.contains(module_of(core)))) continue;
      const bool ignored = std::ranges::any_of(graph.ignored, [&](const std::string& module) {
        return core.starts_with(module + ".") || core == module;
      });
      if (!ignored) return std::nullopt;
    }
    return fit;
  }

  bool is_integer(TensorId id) const {
    const DType dtype = checkpoint_.tensors()[id].type->dtype;
    return dtype != DType::kUnknown && !is_floating(dtype);
  }

  const Checkpoint& checkpoint_;
  TensorNames names_;
  Dependents dependents_;
  IdVector<TensorId, std::string> full_;
};

/// A model of the network, in its own temporary folder.
class FilledNetwork final : public EditableFile {
 public:
  FilledNetwork(std::unique_ptr<TemporaryFolder> folder, const std::string& file, const Fit& fit)
      : folder_(std::move(folder)), model_(file) {
    notes_.push_back("the checkpoint belongs to the network " + fit.name);
    for (const std::string& weight : fit.reshaped) {
      notes_.push_back(weight + " has a different shape than in " + fit.name);
    }
  }

  Graph& graph() override { return model_.graph(); }
  ModelEditor& editor() override { return model_.editor(); }
  void restore() override { model_.restore(); }
  std::unique_ptr<Network> open(Engine& engine) override { return model_.open(engine); }
  std::unique_ptr<Network> open_masked(Engine& engine, const Plan& plan) override {
    return model_.open_masked(engine, plan);
  }
  const std::string& path() const override { return model_.path(); }
  std::string sha256() const override { return model_.sha256(); }
  std::vector<std::string> notes() const override { return notes_; }
  std::vector<std::string> data_files() const override { return model_.data_files(); }
  int64_t write(const std::string& path) override { return model_.write(path); }

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  onnx_io::OnnxModel model_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> known_networks() {
  std::set<std::string> names;
  for_each_network([&](const std::string& name, std::string_view) { names.insert(name); });
  return {names.begin(), names.end()};
}

fs::path known_network_path(const std::string& name) {
  const bool is_plain = !name.empty() && name.front() != '.' && name.find('/') == name.npos;
  if (!is_plain) {
    throw ConfigError("found ", in_quotes(name), ", expected a network name without slashes");
  }
  return user_folder() / (name + std::string(kEnding));
}

KnownNetwork open_known_network(const std::string& path) {
  const auto checkpoint = open_checkpoint(path);
  const Recogniser recogniser(*checkpoint);
  std::optional<Fit> best;
  std::string skeleton;
  for_each_network([&](const std::string& name, std::string_view stored) {
    const std::optional<Fit> fit = recogniser.fit(name, stored);
    // The user's come last, and take precedence.
    if (!fit || (best && best->reshaped.size() < fit->reshaped.size())) return;
    best = fit;
    skeleton = stored;
  });
  if (!best) {
    throw checkpoint_alone(path,
                           "their names match no known network (`parsimony know` lists them)");
  }
  auto folder = std::make_unique<TemporaryFolder>();
  const std::string file = folder->path() / (best->name + std::string(kEnding));
  const auto fill = [&](const SkeletonWeight& weight) {
    return recogniser.filling(best->prefix, weight);
  };
  onnx_io::fill_skeleton(skeleton, fill, file);
  auto model = std::make_unique<FilledNetwork>(std::move(folder), file, *best);
  try {
    static_cast<void>(infer_with_choice(model->graph()));
  } catch (const ModelError& error) {
    throw checkpoint_alone(path, str_cat("their shapes do not fit the network with these names, ",
                                         best->name, " (", error.what(), ")"));
  }
  return {best->name, std::move(model)};
}

}  // namespace parsimony
