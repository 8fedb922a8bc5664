// Checkpoints of several files: shards behind an index, as transformers writes them, and the
// directories of trainers, which have weights and optimizer in files of their own.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"

namespace parsimony::checkpoints {
namespace {

namespace fs = std::filesystem;

/// The tensors of several checkpoints, one behind the other.
class SeveralFiles : public Checkpoint {
 public:
  const IdVector<TensorId, StoredTensor>& tensors() const override { return tensors_; }
  std::vector<CheckpointLine> tree() const override { return tree_; }

  CheckpointGlobals globals() const override {
    CheckpointGlobals all;
    for (const auto& file : files_) {
      const CheckpointGlobals some = file->globals();
      for (const auto& [from, to] :
           {std::pair(&some.names, &all.names), std::pair(&some.refused, &all.refused)}) {
        for (const std::string& name : *from) {
          if (!contains(*to, name)) to->push_back(name);
        }
      }
    }
    return all;
  }

  StoredValues values(TensorId tensor) const override {
    const auto [file, id] = places_[tensor];
    return files_[file]->values(id);
  }
  void cut(TensorId tensor, std::vector<AxisKeep> axes) override {
    const auto [file, id] = places_[tensor];
    files_[file]->cut(id, std::move(axes));
  }
  void assign(TensorId tensor, std::vector<std::byte> values) override {
    const auto [file, id] = places_[tensor];
    files_[file]->assign(id, std::move(values));
  }

  void rename(TensorId tensor, std::string name) override {
    const auto [file, id] = places_[tensor];
    files_[file]->rename(id, std::move(name));
  }

  void release(std::span<const std::byte> elements) const override {
    for (const auto& file : files_) file->release(elements);
  }

 protected:
  explicit SeveralFiles(std::string path) : path_(std::move(path)) {}

  /// With the file's name before the paths of its tensors, if `is_nested`.
  void add(const std::string& file, const std::string& name, bool is_nested) {
    files_.push_back(open_checkpoint(file));
    const Checkpoint& added = *files_.back();
    const auto first = static_cast<int32_t>(tensors_.size());
    std::vector<CheckpointLine> lines = added.tree();
    const bool has_root = !lines.empty() && lines.front().tensor == TensorId() &&
                          lines.front().depth == 0 && lines.front().key.empty();
    if (is_nested && has_root) lines.front().key = name;
    if (is_nested && !has_root) tree_.push_back({1, name, std::string(added.format()), {}});
    for (CheckpointLine& line : lines) {
      if (is_nested) line.depth += has_root ? 1 : 2;
      if (line.tensor != TensorId()) line.tensor = TensorId(first + line.tensor.number());
      tree_.push_back(std::move(line));
    }
    for (const TensorId id : added.tensors().ids()) {
      tensors_.push_back(added.tensors()[id]);
      if (is_nested) tensors_.back().path.insert(tensors_.back().path.begin(), name);
      places_.emplace_back(files_.size() - 1, id);
    }
  }

  /// @throws ConfigError if `folder` is the one that the files were read from
  void check_is_another(const fs::path& folder, const fs::path& from) const {
    std::error_code error;
    if (fs::equivalent(fs::absolute(from), fs::absolute(folder), error)) {
      throw ConfigError(path_,
                        ": its files keep their names, and would replace those that they are made "
                        "of; write into another folder");
    }
  }

  std::string path_;
  std::vector<std::unique_ptr<Checkpoint>> files_;
  IdVector<TensorId, StoredTensor> tensors_;
  IdVector<TensorId, std::pair<size_t, TensorId>> places_;
  std::vector<CheckpointLine> tree_;
};

/// Several files of safetensors or torch.save, and the index that says which tensor is in which.
class Shards : public SeveralFiles {
 public:
  explicit Shards(const std::string& path) : SeveralFiles(path), text_(read_file(path)) {
    const JsonDocument index(text_, path, throw_as<ModelError>);
    const fs::path folder = fs::path(path).parent_path();
    for (const JsonReader file : index.root().at("weight_map").members()) {
      const std::string name = file.name();
      if (fs::path(name).filename() != name) file.fail("a shard lies in another folder");
      if (!contains(names_, name)) names_.push_back(name);
    }
    std::ranges::sort(names_);
    for (const std::string& name : names_) add(folder / name, name, /*is_nested=*/false);
    for (const JsonReader file : index.root().at("weight_map").members()) {
      const std::string key(file.own_key());
      const auto is_key = [&](const StoredTensor& tensor) { return tensor.path.back() == key; };
      if (std::ranges::none_of(tensors_, is_key)) file.fail("the file has no such tensor");
    }
  }

  std::string_view format() const override { return "index of shards"; }
  const std::vector<std::string>& names() const { return names_; }

  void cut(TensorId tensor, std::vector<AxisKeep> axes) override {
    removed_ += bytes_of(tensors_[tensor].dims, tensor);
    Shape dims = tensors_[tensor].dims;
    for (const AxisKeep& axis : axes) dims[axis.axis] = static_cast<int64_t>(axis.keep.size());
    removed_ -= bytes_of(dims, tensor);
    SeveralFiles::cut(tensor, std::move(axes));
  }

  void rename(TensorId tensor, std::string name) override {
    if (name.empty()) removed_ += bytes_of(tensors_[tensor].dims, tensor);
    new_names_[tensors_[tensor].path.back()] = name;
    SeveralFiles::rename(tensor, std::move(name));
  }

  /// Without the files that no tensor is left of.
  void write(const std::string& path) const override {
    const fs::path folder = fs::path(path).parent_path();
    check_is_another(fs::absolute(path).parent_path(), fs::absolute(path_).parent_path());
    const std::string index = changed_index();
    const JsonDocument written(index, path, throw_as<ModelError>);
    std::set<std::string> used;
    for (const JsonReader file : written.root().at("weight_map").members()) {
      used.insert(file.name());
    }
    for (size_t i = 0; i < files_.size(); ++i) {
      if (used.contains(names_[i])) files_[i]->write(folder / names_[i]);
    }
    write_file(path, index);
  }

 private:
  int64_t bytes_of(const Shape& dims, TensorId tensor) const {
    return element_count(dims) * tensors_[tensor].type->bytes;
  }

  /// The index with the new names, and the new total, which stands once in it.
  std::string changed_index() const {
    if (new_names_.empty()) return with_new_total(text_);
    const JsonDocument index(text_, path_, throw_as<ModelError>);
    std::string text = "{";
    for (const JsonReader member : index.root().members()) {
      text.append(text == "{" ? "\n  " : ",\n  ").append(json_text(member.own_key())).append(": ");
      text += member.own_key() == "weight_map" ? new_map(member) : member.json();
    }
    return with_new_total(text + "\n}\n");
  }

  std::string new_map(const JsonReader& map) const {
    std::string text = "{";
    for (const JsonReader file : map.members()) {
      const auto found = new_names_.find(std::string(file.own_key()));
      const std::string_view name = found == new_names_.end() ? file.own_key() : found->second;
      if (name.empty()) continue;
      text.append(text == "{" ? "\n    " : ",\n    ");
      text.append(json_text(name)).append(": ").append(json_text(file.name()));
    }
    return text + "\n  }";
  }

  std::string with_new_total(const std::string& text) const {
    const JsonDocument index(text, path_, throw_as<ModelError>);
    const auto metadata = index.root().find("metadata");
    const auto total = metadata ? metadata->find("total_size") : std::nullopt;
    if (!total || removed_ == 0) return text;
    const std::string old = total->json();
    const size_t key = text.find("\"total_size\"");
    const size_t at = text.find(old, key);
    if (key == std::string::npos || at == std::string::npos) return text;
    const int64_t left = total->count() - removed_;
    return std::string(text).replace(at, old.size(), std::to_string(left));
  }

  std::string text_;
  std::vector<std::string> names_;
  std::map<std::string, std::string> new_names_;  ///< by the old ones; empty: the tensor leaves
  int64_t removed_ = 0;                           ///< bytes
};

/// A directory, such as checkpoint-500 of transformers' Trainer or what accelerate's save_state
/// writes. What is no checkpoint in it is copied.
class Directory : public SeveralFiles {
 public:
  explicit Directory(const std::string& path) : SeveralFiles(path) {
    std::set<std::string> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      entries.insert(entry.path().filename());
    }
    std::set<std::string> shards;  // which their index brings
    for (const std::string& name : entries) {
      if (!is_index(name)) continue;
      const Shards index(fs::path(path) / name);
      shards.insert(index.names().begin(), index.names().end());
    }
    tree_.push_back({0, "", "directory of " + std::to_string(entries.size()), {}});
    for (const std::string& name : entries) {
      if (shards.contains(name)) continue;
      const fs::path file = fs::path(path) / name;
      if (!fs::is_regular_file(file) || !is_checkpoint(file)) {
        others_.push_back(name);
        continue;
      }
      names_.push_back(name);
      add(file, name, /*is_nested=*/true);
    }
    if (tensors_.empty()) {
      throw errors::not_a_checkpoint(path, "none of its files has tensors");
    }
  }

  std::string_view format() const override { return "directory"; }

  void replace_file(const std::string& name, std::optional<std::string> text) override {
    changed_[name] = std::move(text);
  }

  /// A new directory appears once it is complete; in one that exists, files are replaced one by
  /// one.
  void write(const std::string& path) const override {
    check_is_another(path, path_);
    if (fs::exists(path)) return write_into(path);
    const TemporaryFolder folder(path + ".tmp" + std::to_string(getpid()));
    write_into(folder.path());
    std::error_code error;
    fs::rename(folder.path(), path, error);
    if (error) throw IoError(path, ": cannot be written: ", error.message());
  }

 private:
  void write_into(const fs::path& folder) const {
    std::error_code error;
    for (const std::string& name : others_) {
      if (changed_.contains(name)) continue;
      fs::copy(fs::path(path_) / name, folder / name,
               fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
      if (error) throw IoError((folder / name).string(), ": cannot be written: ", error.message());
    }
    for (const auto& [name, text] : changed_) {
      if (text) write_file(folder / name, *text);
    }
    for (size_t i = 0; i < files_.size(); ++i) files_[i]->write(folder / names_[i]);
  }

  static bool is_index(const std::string& name) { return name.ends_with(".index.json"); }

  std::vector<std::string> names_;                             ///< of the checkpoints
  std::vector<std::string> others_;                            ///< files and folders
  std::map<std::string, std::optional<std::string>> changed_;  ///< the texts of some of them
};

}  // namespace

std::unique_ptr<Checkpoint> open_shards(const std::string& path) {
  return std::make_unique<Shards>(path);
}

std::unique_ptr<Checkpoint> open_directory(const std::string& path) {
  return std::make_unique<Directory>(path);
}

}  // namespace parsimony::checkpoints
