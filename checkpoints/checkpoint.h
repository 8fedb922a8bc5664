// Checkpoints: what torch.save and safetensors write, read without running anything in them, and
// written again with other shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/ids.h"
#include "parsimony/base/types.h"
#include "parsimony/graph/slice.h"

namespace parsimony {

struct ElementType {
  std::string_view name;         ///< of torch: "float32"
  std::string_view storage;      ///< "FloatStorage"; empty if only untyped storages hold it
  std::string_view safetensors;  ///< "F32"; empty if that format has none
  int64_t bytes = 0;
  DType dtype = DType::kUnknown;  ///< unknown if we do not compute with it
};

/// Null for an unknown name.
const ElementType* element_type_of_name(std::string_view name);
const ElementType* element_type_of_storage(std::string_view storage);
const ElementType* element_type_of_safetensors(std::string_view name);

using TensorId = Id<struct StoredTensorTag>;
using StorageId = Id<struct StorageTag>;

/// A tensor of a checkpoint: a view of a storage, which several may share.
struct StoredTensor {
  std::vector<std::string> path =
      {};  ///< keys from the root: {"state_dict", "module.conv1.weight"}
  const ElementType* type = nullptr;
  Shape dims = {};
  std::vector<int64_t> strides = {};  ///< in elements
  int64_t offset = 0;                 ///< of the first element in its storage, in elements
  StorageId storage = {};
  std::string why_fixed = {};  ///< why its shape cannot change; empty if it can

  int64_t count() const { return element_count(dims); }
};

/// "state_dict/module.conv1.weight"
std::string to_string(const std::vector<std::string>& path);

/// A line of the tree that a checkpoint is.
struct CheckpointLine {
  int depth = 0;
  std::string key;
  std::string what;  ///< "float32 [64, 3, 7, 7]", "dict of 62", "12", "argparse.Namespace"
  TensorId tensor;   ///< kNone if it is none
};

/// The Python globals that a checkpoint's pickles import: what they could make Python do.
struct CheckpointGlobals {
  std::vector<std::string> names;  ///< each once, in order
  /// Why torch.load(weights_only=True) of PyTorch 2.6 refuses the file; empty if it takes it.
  std::vector<std::string> refused;
};

/// The elements of a tensor, little-endian and row-major: where they lie in the file if they lie so
/// there, else a copy.
class StoredValues {
 public:
  explicit StoredValues(std::span<const std::byte> in_place) : bytes_(in_place) {}
  explicit StoredValues(std::vector<std::byte> copy) : copy_(std::move(copy)), bytes_(copy_) {}
  StoredValues(StoredValues&&) = default;
  StoredValues& operator=(StoredValues&&) = delete;

  /// Valid as long as this object and the checkpoint.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

/// A file that is read once, mapped, edited and written.
///
///     auto checkpoint = open_checkpoint("last.ckpt");
///     checkpoint->cut(id, {{0, 64, keep}});
///     checkpoint->write("small.ckpt");
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  virtual std::string_view format() const = 0;  ///< "PyTorch zip archive", "safetensors", …
  virtual const IdVector<TensorId, StoredTensor>& tensors() const = 0;
  virtual std::vector<CheckpointLine> tree() const = 0;
  virtual CheckpointGlobals globals() const { return {}; }

  virtual StoredValues values(TensorId tensor) const = 0;

  /// Keeps these indices of these axes. Tensors that are the same view of one storage are tied: cut
  /// one and all are. @throws UnsupportedError if the tensor's shape is fixed
  virtual void cut(TensorId tensor, std::vector<AxisKeep> axes) = 0;
  /// New elements, of the tensor's type and of its shape after the cut.
  virtual void assign(TensorId tensor, std::vector<std::byte> values) = 0;

  /// Gives the tensor another last key; empty: it is not written.
  /// @throws UnsupportedError if the format cannot
  virtual void rename(TensorId tensor, std::string name);

  /// The text of a file beside the tensors; none: it is not written.
  /// @throws UnsupportedError if this is no directory
  virtual void replace_file(const std::string& name, std::optional<std::string> text);
  /// These elements, which `values` gave, need not stay resident until they are read again.
  virtual void release(std::span<const std::byte> elements) const = 0;

  /// Writes under a temporary name, then renames. Without edits the result is the file, byte for
  /// byte. @throws IoError; UnsupportedError if tensors that overlap would be cut differently
  virtual void write(const std::string& path) const = 0;
};

/// Returns the values of a tensor that views `bytes` in `file`. @throws ModelError if it reaches
/// beyond them, or repeats so many elements that their number overflows
StoredValues values_in(const StoredTensor& tensor, std::string_view bytes, std::string_view file);

/// Is the file, by its content, a checkpoint and no model: a pickle, an archive with a pickle but
/// without a program, safetensors, the index of several such files, or a directory?
bool is_checkpoint(const std::string& path);

/// @throws IoError; ModelError, naming byte or key, if it is damaged or no checkpoint
std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path);
/// A zip archive of torch.save inside another file, whose bytes must outlive it. `name` is for
/// messages. @throws ModelError
std::unique_ptr<Checkpoint> open_checkpoint(std::string_view bytes, std::string name);

}  // namespace parsimony
