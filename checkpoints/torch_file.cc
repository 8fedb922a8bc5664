// Both formats of torch.save: a zip archive (since PyTorch 1.6), and before a stream of pickles
// that the storages follow.
#include <cstring>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/checkpoints/pickle.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony::checkpoints {
namespace {

ModelError bad_torch_file(std::string_view file, std::string_view why) {
  return ModelError(file, ": not a file of torch.save: ", why);
}

using pickle::Pickle;
using pickle::PickleEdit;

constexpr std::string_view kMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr int64_t kStreamVersion = 1001;

/// A file of torch.save, whichever its format: one pickle describes its tensors.
class TorchFile : public CheckpointFile {
 public:
  CheckpointGlobals globals() const override {
    CheckpointGlobals globals{{}, refused_by_weights_only(*pickle_)};
    for (const std::string_view name : pickle_->globals()) globals.names.emplace_back(name);
    return globals;
  }

 protected:
  using CheckpointFile::CheckpointFile;

  void describe(std::string_view bytes) {
    pickle_ = std::make_unique<Pickle>(bytes, path());
    PickledTensors found = tensors_of(*pickle_, path());
    tensors_ = std::move(found.tensors);
    tree_ = std::move(found.tree);
    parts_ = std::move(found.parts);
    named_ = std::move(found.storages);
    storages_ = IdVector<StorageId, std::string_view>(named_.size());
  }

  void set_storage(StorageId id, std::string_view bytes) {
    const NamedStorage& named = named_[id];
    const auto expected = static_cast<uint64_t>(named.elements) * named.type->bytes;
    if (bytes.size() < expected) {
      throw bad_torch_file(path(), "storage " + in_quotes(named.key) + " has " +
                                       std::to_string(bytes.size()) + " bytes, expected " +
                                       std::to_string(expected));
    }
    storages_[id] = bytes.substr(0, expected);
  }

  void fix_all(const std::string& why) {
    for (StoredTensor& tensor : tensors_) tensor.why_fixed = why;
  }

  std::string changed_pickle(const NewLayout& layout) const {
    PickleEdit edit(*pickle_);
    for (const TensorId id : tensors_.ids()) {
      const TensorParts& parts = parts_[id];
      if (leaves(id)) {
        edit.remove(*parts.key, parts.whole);
        continue;
      }
      if (new_name(id)) edit.rename(*parts.key, *new_name(id));
      const View& view = layout.views[id];
      edit.set(parts.offset, view.offset);
      edit.set(parts.dims, view.dims);
      edit.set(parts.strides, view.strides);
    }
    for (const StorageId id : named_.ids()) {
      if (!layout.storages[id]) continue;
      const auto elements = static_cast<int64_t>(size_of(id, layout)) / named_[id].type->bytes;
      for (const pickle::Part& count : named_[id].counts) edit.set(count, elements);
    }
    return edit.bytes();
  }

  /// Has the tensor a key that may change?
  bool is_named(TensorId tensor) const { return parts_[tensor].key && pickle_->protocol() < 4; }

  const Pickle& pickle() const { return *pickle_; }
  const IdVector<StorageId, NamedStorage>& named() const { return named_; }
  StorageId find(std::string_view key) const {
    for (const StorageId id : named_.ids()) {
      if (named_[id].key == key) return id;
    }
    return {};
  }

 private:
  std::unique_ptr<Pickle> pickle_;
  IdVector<TensorId, TensorParts> parts_;
  IdVector<StorageId, NamedStorage> named_;
};

constexpr std::string_view kData = "data.pkl";

class TorchZip : public TorchFile {
 public:
  explicit TorchZip(const std::string& file) : TorchFile(file), zip_(bytes(), path()) { read(); }
  TorchZip(std::string_view part, std::string name)
      : TorchFile(part, std::move(name)), zip_(bytes(), path()) {
    read();
  }

  std::string_view format() const override { return "PyTorch zip archive"; }

  void rename(TensorId tensor, std::string name) override {
    if (!is_named(tensor)) return CheckpointFile::rename(tensor, std::move(name));
    set_name(tensor, std::move(name));
  }

 private:
  void read() {
    for (const ZipEntry& entry : zip_.entries()) {
      const size_t slash = entry.name.find('/');
      if (slash != std::string::npos && entry.name.substr(slash + 1) == kData) {
        folder_ = entry.name.substr(0, slash + 1);
      }
      entries_.emplace(entry.name, &entry);
    }
    if (folder_.empty()) throw bad_torch_file(path(), "the archive has no data.pkl");
    describe(zip_.content(*entries_.at(folder_ + std::string(kData))));
    for (const StorageId id : named().ids()) {
      const auto entry = entries_.find(folder_ + "data/" + named()[id].key);
      if (entry == entries_.end()) {
        throw bad_torch_file(path(), "the archive has no storage " + in_quotes(named()[id].key));
      }
      set_storage(id, zip_.content(*entry->second));
      storage_of_.emplace(entry->first, id);
    }
    index_tensors();
    const auto order = entries_.find(folder_ + "byteorder");
    if (order != entries_.end() && zip_.content(*order->second) == "big") {
      fix_all("its elements are big-endian");
    }
  }

  void write_changed(NewFile& file, const NewLayout& layout) const override {
    ZipWriter zip(file);
    const IdVector<StorageId, bool> is_used = used();
    for (const ZipEntry& entry : zip_.entries()) {
      const auto storage = storage_of_.find(entry.name);
      if (storage != storage_of_.end() && !is_used[storage->second]) continue;
      if (entry.name == folder_ + std::string(kData)) {
        zip.add(entry.name, changed_pickle(layout));
      } else if (storage != storage_of_.end()) {
        zip.begin(entry.name, size_of(storage->second, layout));
        copy(storage->second, layout, [&](std::string_view piece) { zip.write(piece); });
      } else {
        zip.add(entry.name, zip_.content(entry));
      }
    }
    zip.finish();
  }

  /// Says of each storage whether anything still has its elements.
  IdVector<StorageId, bool> used() const {
    IdVector<StorageId, bool> used(named().size());
    for (const TensorId id : tensors_.ids()) {
      if (!leaves(id)) used[tensors_[id].storage] = true;
    }
    for (const StorageId id : named().ids()) {
      if (!named()[id].why_fixed.empty()) used[id] = true;
    }
    return used;
  }

  ZipReader zip_;
  std::string folder_;
  absl::flat_hash_map<std::string, const ZipEntry*> entries_;
  absl::flat_hash_map<std::string, StorageId> storage_of_;
};

class TorchStream : public TorchFile {
 public:
  explicit TorchStream(const std::string& path) : TorchFile(path) {
    const Pickle magic = next();
    const pickle::Object& number = magic[magic.root()];
    if (number.kind != pickle::Kind::kLong || number.text != kMagic) {
      throw bad_torch_file(path, "it is a pickle of something else");
    }
    const Pickle version = next();
    if (version.integer_of(version.root()) != kStreamVersion) {
      throw bad_torch_file(path, "its version is not 1001");
    }
    const Pickle system = next();
    begin_ = at_;
    describe(bytes().substr(at_));
    at_ += pickle().bytes().size();
    const Pickle keys = next();
    read_storages(keys);
    index_tensors();
    const pickle::Part* little = system.find(system.root().object, "little_endian");
    if (little != nullptr && system[*little].integer == 0) fix_all("its elements are big-endian");
  }

  std::string_view format() const override { return "PyTorch stream"; }

 private:
  Pickle next() {
    Pickle pickle(bytes().substr(at_), path());
    at_ += pickle.bytes().size();
    return pickle;
  }

  void read_storages(const Pickle& keys) {
    storages_begin_ = at_;
    for (const pickle::Part& part : keys[keys.root()].parts) {
      const auto key = keys.text_of(part);
      const StorageId id = key ? find(*key) : StorageId();
      if (id == StorageId()) {
        throw bad_torch_file(path(), "its list of storages names one that none uses");
      }
      if (bytes().size() - at_ < sizeof(int64_t)) {
        throw bad_torch_file(path(), "it ends before storage " + in_quotes(*key));
      }
      int64_t count = 0;
      std::memcpy(&count, bytes().data() + at_, sizeof(count));
      at_ += sizeof(count);
      if (count != named()[id].elements) {
        throw bad_torch_file(path(), "storage " + in_quotes(*key) + " has two sizes");
      }
      set_storage(id, bytes().substr(at_));
      at_ += storages_[id].size();
      order_.push_back(id);
    }
    if (order_.size() < named().size()) {
      throw bad_torch_file(path(), "its list of storages is incomplete");
    }
  }

  void write_changed(NewFile& file, const NewLayout& layout) const override {
    const size_t after = begin_ + pickle().bytes().size();
    file.write(bytes().substr(0, begin_));
    file.write(changed_pickle(layout));
    file.write(bytes().substr(after, storages_begin_ - after));
    for (const StorageId id : order_) {
      const auto count = static_cast<int64_t>(size_of(id, layout)) / named()[id].type->bytes;
      file.write({reinterpret_cast<const char*>(&count), sizeof(count)});
      copy(id, layout, [&](std::string_view piece) { file.write(piece); });
    }
    file.write(bytes().substr(at_));
  }

  size_t at_ = 0;
  size_t begin_ = 0;  ///< of the pickle that describes the tensors
  size_t storages_begin_ = 0;
  std::vector<StorageId> order_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_torch_zip(const std::string& path) {
  return std::make_unique<TorchZip>(path);
}

std::unique_ptr<Checkpoint> open_torch_zip(std::string_view bytes, std::string name) {
  return std::make_unique<TorchZip>(bytes, std::move(name));
}

std::unique_ptr<Checkpoint> open_torch_stream(const std::string& path) {
  return std::make_unique<TorchStream>(path);
}

}  // namespace parsimony::checkpoints
