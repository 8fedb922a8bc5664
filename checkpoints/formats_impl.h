// The formats of checkpoints, and what their files have in common.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/storage_impl.h"

namespace parsimony::checkpoints {

/// A mapped file with tensors on storages, and the edits so far.
class CheckpointFile : public Checkpoint {
 public:
  const IdVector<TensorId, StoredTensor>& tensors() const override { return tensors_; }
  std::vector<CheckpointLine> tree() const override { return tree_; }
  StoredValues values(TensorId tensor) const override;
  void cut(TensorId tensor, std::vector<AxisKeep> axes) override;
  void assign(TensorId tensor, std::vector<std::byte> values) override;
  void write(const std::string& path) const override;

 protected:
  explicit CheckpointFile(const std::string& path)
      : path_(path), file_(std::make_unique<MappedFile>(path)), bytes_(file_->bytes()) {}
  /// A part of a larger file, which must outlive it.
  CheckpointFile(std::string_view bytes, std::string name)
      : path_(std::move(name)), bytes_(bytes) {}

  /// Call once tensors and storages are known. @throws ModelError if one does not fit
  void settle();

  /// Writes the changed file.
  virtual void write_changed(NewFile& file, const NewLayout& layout) const = 0;

  void copy(StorageId storage, const NewLayout& layout, const Sink& sink) const;
  /// Bytes of a storage after the edits.
  uint64_t size_of(StorageId storage, const NewLayout& layout) const;

  const std::string& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }

  IdVector<TensorId, StoredTensor> tensors_;
  IdVector<StorageId, std::string_view> storages_;  ///< their bytes
  std::vector<CheckpointLine> tree_;

 private:
  /// The tensors that are the same view as this one, itself among them.
  std::vector<TensorId> tied(TensorId tensor) const;
  void check_may_change(TensorId tensor) const;

  std::string path_;
  std::unique_ptr<MappedFile> file_;  ///< null for a part of a larger file
  std::string_view bytes_;
  Edits edits_{0};
};

std::unique_ptr<Checkpoint> open_torch_zip(const std::string& path);
std::unique_ptr<Checkpoint> open_torch_zip(std::string_view bytes, std::string name);
std::unique_ptr<Checkpoint> open_torch_stream(const std::string& path);
std::unique_ptr<Checkpoint> open_safetensors(const std::string& path);
std::unique_ptr<Checkpoint> open_shards(const std::string& path);
/// All files in it that are checkpoints, their tensors under the files' names; `write` makes a
/// directory, into which everything else is copied.
std::unique_ptr<Checkpoint> open_directory(const std::string& path);

}  // namespace parsimony::checkpoints
