// safetensors: one file, or several behind an index (as transformers shards them). An index may
// also name files of torch.save.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/masks/tensor_file.h"

namespace parsimony::checkpoints {
namespace {

namespace fs = std::filesystem;

class Safetensors : public CheckpointFile {
 public:
  explicit Safetensors(const std::string& path)
      : CheckpointFile(path), header_(parse_header(bytes(), path)) {
    for (const TensorEntry& entry : header_.tensors) {
      const ElementType* type = element_type_of_safetensors(entry.dtype);
      const std::string_view data = bytes().substr(entry.begin, entry.end - entry.begin);
      StoredTensor tensor{{entry.name}, type, entry.dims, dense_strides(entry.dims), 0};
      if (type == nullptr) {  // kept as its bytes
        tensor.type = element_type_of_name("bytes");
        tensor.dims = {static_cast<int64_t>(data.size())};
        tensor.strides = {1};
        tensor.why_fixed = "elements of type " + in_quotes(entry.dtype) + " are not known";
      } else if (element_count(entry.dims) * type->bytes != static_cast<int64_t>(data.size())) {
        throw errors::bad_stored_tensor(path, entry.name,
                                        "its shape does not fit its data_offsets");
      }
      tensor.storage = storages_.next_id();
      storages_.push_back(data);
      tree_.push_back(
          {0, entry.name,
           (type == nullptr ? entry.dtype : std::string(type->name)) + " " + to_string(entry.dims),
           tensors_.next_id()});
      tensors_.push_back(std::move(tensor));
    }
    settle();
  }

  std::string_view format() const override { return "safetensors"; }

 private:
  void write_changed(NewFile& file, const NewLayout& layout) const override {
    std::vector<TensorId> by_place(tensors_.ids().begin(), tensors_.ids().end());
    std::ranges::stable_sort(by_place, {},
                             [&](TensorId id) { return header_.tensors[id.index()].begin; });
    std::vector<TensorEntry> entries = header_.tensors;
    uint64_t at = 0;
    for (const TensorId id : by_place) {
      TensorEntry& entry = entries[id.index()];
      if (layout.storages[tensors_[id].storage]) entry.dims = layout.views[id].dims;
      entry.begin = at;
      at += size_of(tensors_[id].storage, layout);
      entry.end = at;
    }
    file.write(header_text(entries, header_.metadata));
    for (const TensorId id : by_place) {
      copy(tensors_[id].storage, layout, [&](std::string_view piece) { file.write(piece); });
    }
  }

  TensorHeader header_;
};

/// Several files, and the index that says which tensor is in which.
class Shards : public Checkpoint {
 public:
  explicit Shards(const std::string& path) : path_(path), text_(read_file(path)) {
    const JsonDocument index(text_, path, throw_as<ModelError>);
    const fs::path folder = fs::path(path).parent_path();
    for (const JsonReader file : index.root().at("weight_map").members()) {
      const std::string name = file.name();
      if (fs::path(name).filename() != name) file.fail("a shard lies in another folder");
      if (!contains(names_, name)) names_.push_back(name);
    }
    std::ranges::sort(names_);
    for (const std::string& name : names_) {
      shards_.push_back(open_checkpoint(folder / name));
      const Checkpoint& shard = *shards_.back();
      const auto first = static_cast<int32_t>(tensors_.size());
      for (CheckpointLine line : shard.tree()) {
        if (line.tensor != TensorId()) line.tensor = TensorId(first + line.tensor.number());
        tree_.push_back(std::move(line));
      }
      for (const TensorId id : shard.tensors().ids()) {
        tensors_.push_back(shard.tensors()[id]);
        places_.emplace_back(shards_.size() - 1, id);
      }
    }
    for (const JsonReader file : index.root().at("weight_map").members()) {
      const std::string key(file.own_key());
      const auto is_key = [&](const StoredTensor& tensor) { return tensor.path.back() == key; };
      if (std::ranges::none_of(tensors_, is_key)) file.fail("the file has no such tensor");
    }
  }

  std::string_view format() const override { return "index of shards"; }
  const IdVector<TensorId, StoredTensor>& tensors() const override { return tensors_; }
  std::vector<CheckpointLine> tree() const override { return tree_; }

  CheckpointGlobals globals() const override {
    CheckpointGlobals all;
    for (const auto& shard : shards_) {
      const CheckpointGlobals some = shard->globals();
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
    const auto [shard, id] = places_[tensor];
    return shards_[shard]->values(id);
  }
  void cut(TensorId tensor, std::vector<AxisKeep> axes) override {
    const auto [shard, id] = places_[tensor];
    removed_ += bytes_of(tensors_[tensor].dims, tensor);
    Shape dims = tensors_[tensor].dims;
    for (const AxisKeep& axis : axes) dims[axis.axis] = static_cast<int64_t>(axis.keep.size());
    removed_ -= bytes_of(dims, tensor);
    shards_[shard]->cut(id, std::move(axes));
  }
  void assign(TensorId tensor, std::vector<std::byte> values) override {
    const auto [shard, id] = places_[tensor];
    shards_[shard]->assign(id, std::move(values));
  }

  void write(const std::string& path) const override {
    const fs::path folder = fs::path(path).parent_path();
    std::error_code error;
    if (fs::equivalent(fs::absolute(path_).parent_path(), fs::absolute(path).parent_path(),
                       error)) {
      throw errors::shards_in_place(path);
    }
    for (size_t i = 0; i < shards_.size(); ++i) shards_[i]->write(folder / names_[i]);
    write_file(path, changed_index());
  }

 private:
  int64_t bytes_of(const Shape& dims, TensorId tensor) const {
    return element_count(dims) * tensors_[tensor].type->bytes;
  }

  /// The index with the new total, which stands once in it.
  std::string changed_index() const {
    const JsonDocument index(text_, path_, throw_as<ModelError>);
    const auto metadata = index.root().find("metadata");
    const auto total = metadata ? metadata->find("total_size") : std::nullopt;
    if (!total || removed_ == 0) return text_;
    const std::string old = total->json();
    const size_t key = text_.find("\"total_size\"");
    const size_t at = text_.find(old, key);
    if (key == std::string::npos || at == std::string::npos) return text_;
    const int64_t left = total->count() - removed_;
    return std::string(text_).replace(at, old.size(), std::to_string(left));
  }

  std::string path_;
  std::string text_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Checkpoint>> shards_;
  IdVector<TensorId, StoredTensor> tensors_;
  IdVector<TensorId, std::pair<size_t, TensorId>> places_;
  std::vector<CheckpointLine> tree_;
  int64_t removed_ = 0;  ///< bytes
};

}  // namespace

std::unique_ptr<Checkpoint> open_safetensors(const std::string& path) {
  return std::make_unique<Safetensors>(path);
}

std::unique_ptr<Checkpoint> open_shards(const std::string& path) {
  return std::make_unique<Shards>(path);
}

}  // namespace parsimony::checkpoints
