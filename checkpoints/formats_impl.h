// The formats of checkpoints, and what their files have in common: storages, and what becomes of
// them when the tensors that view them are cut; the tensors that a pickle of torch.save describes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/pickle.h"

namespace parsimony::checkpoints {

/// The edits of all tensors.
struct Edits {
  IdVector<TensorId, std::vector<AxisKeep>> cuts;
  IdVector<TensorId, std::optional<std::vector<std::byte>>> values;
  IdVector<TensorId, std::optional<std::string>> names;  ///< empty: the tensor leaves

  explicit Edits(size_t tensors) : cuts(tensors), values(tensors), names(tensors) {}
  /// The elements, or how many they are.
  bool changes(TensorId id) const { return !cuts[id].empty() || values[id]; }
  bool empty() const;
};

/// The position and layout of a tensor in its storage after the edits.
struct View {
  int64_t offset = 0;
  Shape dims;
  std::vector<int64_t> strides;
};

/// A storage after the edits: its views, one behind the other.
struct NewStorage {
  std::vector<TensorId> order;  ///< the tensors whose elements it consists of
  int64_t elements = 0;
};

struct NewLayout {
  IdVector<StorageId, std::optional<NewStorage>> storages;  ///< none: as it was
  IdVector<TensorId, View> views;
};

/// @throws UnsupportedError if tensors overlap that would be cut differently
NewLayout lay_out(const IdVector<TensorId, StoredTensor>& tensors, size_t storages,
                  const Edits& edits);

using Sink = std::function<void(std::string_view bytes)>;

/// The elements of a storage after the edits.
void copy_storage(const IdVector<TensorId, StoredTensor>& tensors, std::string_view storage,
                  const NewStorage& as, const Edits& edits, const Sink& sink);

StoredValues values_of(const StoredTensor& tensor, std::string_view storage);

/// @throws ModelError if the tensor reaches beyond its storage
void check_fits(const StoredTensor& tensor, std::string_view storage, std::string_view file);

/// A mapped file with tensors on storages, and the edits so far.
class CheckpointFile : public Checkpoint {
 public:
  const IdVector<TensorId, StoredTensor>& tensors() const override { return tensors_; }
  std::vector<CheckpointLine> tree() const override { return tree_; }
  StoredValues values(TensorId tensor) const override;
  void cut(TensorId tensor, std::vector<AxisKeep> axes) override;
  void assign(TensorId tensor, std::vector<std::byte> values) override;
  void release(std::span<const std::byte> elements) const override;
  void write(const std::string& path) const override;

 protected:
  explicit CheckpointFile(const std::string& path)
      : path_(path), file_(std::make_unique<MappedFile>(path)), bytes_(file_->bytes()) {}
  /// A part of a larger file, which must outlive it.
  CheckpointFile(std::string_view bytes, std::string name)
      : path_(std::move(name)), bytes_(bytes) {}

  /// Call once tensors and storages are known. @throws ModelError if one does not fit
  void index_tensors();

  /// Writes the changed file.
  virtual void write_changed(NewFile& file, const NewLayout& layout) const = 0;

  void set_name(TensorId tensor, std::string name);
  const std::optional<std::string>& new_name(TensorId tensor) const;
  bool leaves(TensorId tensor) const { return new_name(tensor) && new_name(tensor)->empty(); }

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

/// A storage as the pickle names it.
struct NamedStorage {
  std::string key;
  const ElementType* type = nullptr;
  int64_t elements = 0;
  std::vector<pickle::Part> counts;  ///< every place that says how many elements it has
  std::string why_fixed;
};

/// The parts of the pickle that describe one tensor.
struct TensorParts {
  pickle::Part offset, dims, strides, whole;
  std::optional<pickle::Part> key;  ///< in the dictionary that it lies in
};

struct PickledTensors {
  IdVector<TensorId, StoredTensor> tensors;
  IdVector<TensorId, TensorParts> parts;
  IdVector<StorageId, NamedStorage> storages;
  std::vector<CheckpointLine> tree;
};

/// @throws ModelError if a tensor is described in a way that PyTorch does not
PickledTensors tensors_of(const pickle::Pickle& pickle, std::string_view file);

/// Why torch.load(weights_only=True) would refuse the pickle.
std::vector<std::string> refused_by_weights_only(const pickle::Pickle& pickle);

}  // namespace parsimony::checkpoints
