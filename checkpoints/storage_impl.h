// Storages, and what becomes of them when the tensors that view them are cut.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"

namespace parsimony::checkpoints {

/// The edits of all tensors.
struct Edits {
  IdVector<TensorId, std::vector<AxisKeep>> cuts;
  IdVector<TensorId, std::optional<std::vector<std::byte>>> values;

  explicit Edits(size_t tensors) : cuts(tensors), values(tensors) {}
  bool changes(TensorId id) const { return !cuts[id].empty() || values[id]; }
  bool empty() const;
};

/// Where a tensor is after the edits.
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

/// Those of a row-major tensor.
std::vector<int64_t> dense_strides(const Shape& dims);

using Sink = std::function<void(std::string_view bytes)>;

/// The elements of a storage after the edits.
void copy_storage(const IdVector<TensorId, StoredTensor>& tensors, std::string_view storage,
                  const NewStorage& as, const Edits& edits, const Sink& sink);

StoredValues values_of(const StoredTensor& tensor, std::string_view storage);

/// @throws ModelError if the tensor reaches beyond its storage
void check_fits(const StoredTensor& tensor, std::string_view storage, std::string_view file);

}  // namespace parsimony::checkpoints
